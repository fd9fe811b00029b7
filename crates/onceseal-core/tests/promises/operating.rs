//! Operations in one line: a tool, a dispatch, a worker.

use std::sync::Arc;

use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::operation::{CallIdentity, Cancel, Claim, Dispatch, Retry};
use onceseal_core::reply::{Attempt, Job, OperationNow, Reply, Standing};
use onceseal_core::tool::{ContractError, Declare, Tool};

use crate::calls::{Call, identity};
use crate::world::World;

/// The contract in this document.
pub(crate) fn compile(text: &str) -> Result<Tool, ContractError> {
    match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(document)) => Tool::compile(&document),
        other => panic!("no document: {other:?}"),
    }
}

/// A call of a model, with an idempotency key.
pub(crate) fn model_call(call: &str, key: &str) -> CallIdentity {
    CallIdentity {
        provider: "openai".to_owned(),
        api_family: "responses".to_owned(),
        adapter_revision: "openai-responses-v1".to_owned(),
        response_id: "resp-1".to_owned(),
        call_id: call.to_owned(),
        operation_id: "op-1".to_owned(),
        idempotency_key: Some(key.to_owned()),
    }
}

/// What is dispatched, and how.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) call: Call,
    pub(crate) contract: Hash,
    pub(crate) by: CallIdentity,
    pub(crate) approvals: Vec<ApprovalId>,
    pub(crate) permitted: Option<bool>,
}

impl World<'_> {
    /// Makes the contract in this document active.
    pub(crate) fn declare(&mut self, text: &str) -> Hash {
        let tool = Arc::new(compile(text).expect("a contract"));
        let digest = tool.digest;
        self.run(Command::Declare(Declare::Activate(tool)));
        digest
    }

    pub(crate) fn order(&self, call: Call, contract: Hash, key: &str) -> Order {
        let by = model_call(&format!("call of {key}"), key);
        Order { call, contract, by, approvals: Vec::new(), permitted: None }
    }

    pub(crate) fn dispatch(&mut self, order: &Order) -> Reply {
        let proposal = self.prepare(&order.call).expect("a proposal");
        let Order { contract, by: call, approvals, permitted, .. } = order.clone();
        self.run(Command::Dispatch(Box::new(Dispatch { proposal, contract, call, approvals, permitted })))
    }

    /// Dispatches what is accepted.
    pub(crate) fn accepted(&mut self, order: &Order) -> ActionId {
        let now = operation(self.dispatch(order));
        assert!(!now.repeated && matches!(now.standing, Standing::Queued { .. }), "{now:?}");
        now.action
    }

    pub(crate) fn claim(&mut self, action: ActionId, begin: bool) -> Reply {
        let contract = self.action(action).operation.as_ref().expect("an operation").contract;
        self.run(Command::Claim(Claim { action, contract, lease: None, begin, absent: None }))
    }

    /// Claims what is to be carried out at once.
    pub(crate) fn begun(&mut self, action: ActionId) -> (Attempt, Job) {
        claimed(self.claim(action, true))
    }

    pub(crate) fn retry(&mut self, action: ActionId, person: &str) -> Reply {
        let (person, reason) = (identity(person), "looked at it".to_owned());
        self.run(Command::Retry(Retry { action, person, reason }))
    }

    pub(crate) fn cancel(&mut self, action: ActionId, person: &str) -> Reply {
        let (person, reason) = (identity(person), "not wanted".to_owned());
        self.run(Command::Cancel(Cancel { action, person, reason }))
    }
}

/// Where the operation stands.
#[track_caller]
pub(crate) fn operation(reply: Reply) -> OperationNow {
    match reply {
        Reply::Operation(now) => *now,
        other => panic!("no operation: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn standing(reply: Reply) -> Standing {
    operation(reply).standing
}

/// What a worker was handed.
#[track_caller]
pub(crate) fn claimed(reply: Reply) -> (Attempt, Job) {
    match reply {
        Reply::Claimed(attempt, job) => (*attempt, *job),
        other => panic!("not claimed: {other:?}"),
    }
}
