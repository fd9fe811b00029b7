//! Commands as people and programs say them in tests.

use onceseal_core::action::{Acquire, Action, Principal, Proposal, ProposalError, Reach, Run};
use onceseal_core::approval::{Answer, Identity, Said};
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::reply::{Attempt, Reply};
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

    /// Proposes, and goes as far as wanted and permitted.
    pub(crate) fn call(&mut self, call: Call) -> Reply {
        let proposal = self.prepare(&call).expect("a proposal");
        let Call { action, approval, reach, lease, deadline, .. } = call;
        self.run(Command::Run(Box::new(Run { proposal, action, approval, reach, lease, deadline })))
    }

    /// Goes on with a recorded action.
    pub(crate) fn acquire(&mut self, action: ActionId, approval: Option<ApprovalId>) -> Reply {
        let reach = Reach::Executing;
        self.run(Command::Acquire(Acquire { action, approval, reach, lease: None, deadline: None }))
    }

    /// A person's answer to what they were shown.
    pub(crate) fn answer(&mut self, approval: ApprovalId, person: &str, said: Said) -> Reply {
        let shown = self.approval(approval).private.bound.binding.expect("not erased");
        self.answer_shown(approval, person, said, shown)
    }

    /// A person's answer, repeating this hash.
    pub(crate) fn answer_shown(
        &mut self,
        approval: ApprovalId,
        person: &str,
        said: Said,
        shown: Hash,
    ) -> Reply {
        self.run(Command::Answer(Answer { approval, person: identity(person), said, shown }))
    }

    /// The holder's report.
    pub(crate) fn settle(&mut self, attempt: &Attempt, outcome: Outcome) -> Reply {
        self.run(Command::Settle(settle(attempt.into(), outcome)))
    }
}

/// A report with nothing beside the outcome.
pub(crate) fn settle(attempt: Holding, outcome: Outcome) -> Settle {
    Settle { attempt, outcome, code: None, error: None, result: None }
}

/// A person, as printed.
pub(crate) fn identity(text: &str) -> Identity {
    Identity::parse(text).expect("a person")
}

/// The attempt that was handed out.
#[track_caller]
pub(crate) fn attempt(reply: Reply) -> Attempt {
    match reply {
        Reply::Attempt(attempt) => attempt,
        other => panic!("no attempt: {other:?}"),
    }
}

/// The action that waits, and the request.
#[track_caller]
pub(crate) fn asked(reply: Reply) -> (ActionId, ApprovalId) {
    match reply {
        Reply::ApprovalNeeded { action, approval, .. } => (action, approval),
        other => panic!("nobody is asked: {other:?}"),
    }
}
