//! Commands as people and programs say them in tests.

use onceseal_core::action::{Action, Principal, Proposal, ProposalError, Reach};
use onceseal_core::approval::Identity;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::time::Span;

use crate::world::World;

/// What a caller wants done, and how far.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) arguments: String,
    pub(crate) agent: &'static str,
    pub(crate) user: Option<&'static str>,
    pub(crate) environment: &'static str,
    pub(crate) resource: Option<&'static str>,
    pub(crate) action: Option<ActionId>,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) reach: Reach,
    pub(crate) lease: Option<Span>,
    pub(crate) deadline: Option<Span>,
}

/// A call of the agent `bot` for nobody, in production, up to execution.
pub(crate) fn call(name: &'static str, arguments: &str) -> Call {
    Call {
        name,
        arguments: arguments.to_owned(),
        agent: "bot",
        user: None,
        environment: Action::DEFAULT_ENVIRONMENT,
        resource: None,
        action: None,
        approval: None,
        reach: Reach::Executing,
        lease: None,
        deadline: None,
    }
}

impl World<'_> {
    /// What a call is under the active policy.
    pub(crate) fn prepare(&self, call: &Call) -> Result<Proposal, ProposalError> {
        let Ok(Value::Object(arguments)) = json::read(call.arguments.as_bytes(), &Limits::DATA) else {
            panic!("arguments that no test means to pass: {}", call.arguments)
        };
        let action = Action {
            name: call.name.to_owned(),
            arguments,
            principal: Principal { agent: call.agent.to_owned(), user: call.user.map(str::to_owned) },
            environment: call.environment.to_owned(),
            resource: call.resource.map(str::to_owned),
        };
        Proposal::prepare(&self.pinned.tenant, &self.policy(), action)
    }
}

/// A report with nothing beside the outcome.
pub(crate) fn settle(attempt: Holding, outcome: Outcome) -> Settle {
    Settle::new(attempt, outcome)
}

/// A person, as printed.
pub(crate) fn identity(text: &str) -> Identity {
    Identity::parse(text).expect("a person")
}
