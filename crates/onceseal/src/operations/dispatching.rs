//! A dispatch: from its arguments to the stored intent.

use std::fmt;

use onceseal_core::action::{Action, Principal, Proposal};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::ApprovalId;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::operation::{CallIdentity, Dispatch, Scope};
use onceseal_core::reply::{OperationNow, Question, Refusal, Reply};

use super::carrying::carry_out;
use super::package::Asked;
use super::{Operations, Tool};
use crate::control::{Control, STALE_MAX, refused};
use crate::error::Error;
use crate::fault::{self, point};

/// A dispatch being put together. Nothing is recorded until it is sent.
#[must_use = "a dispatch does nothing until it is sent"]
pub struct Dispatching {
    operations: Operations,
    action: Action,
    key: Option<String>,
    call: Option<CallIdentity>,
    approvals: Vec<ApprovalId>,
    at_once: bool,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Dispatching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatching").field("tool", &self.action.name).finish_non_exhaustive()
    }
}

impl Dispatching {
    pub(super) fn new(operations: Operations, name: String) -> Dispatching {
        let principal = Principal { agent: String::new(), user: None };
        let environment = Action::DEFAULT_ENVIRONMENT.to_owned();
        let action = Action { name, arguments: Object::new(), principal, environment, resource: None };
        Dispatching { operations, action, key: None, call: None, approvals: Vec::new(), at_once: false }
    }

    /// Sets an argument.
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<Value>) -> Dispatching {
        self.action.arguments.insert(name, value);
        self
    }

    /// Sets all arguments.
    pub fn args(mut self, arguments: Object) -> Dispatching {
        self.action.arguments = arguments;
        self
    }

    /// Says who acts. Without it the dispatch is refused.
    pub fn by(mut self, principal: Principal) -> Dispatching {
        self.action.principal = principal;
        self
    }

    /// Says where: `production` unless said.
    pub fn environment(mut self, environment: impl Into<String>) -> Dispatching {
        self.action.environment = environment.into();
        self
    }

    /// Names the resource, where the policy entry has no template for it.
    pub fn resource(mut self, resource: impl Into<String>) -> Dispatching {
        self.action.resource = Some(resource.into());
        self
    }

    /// Sets the idempotency key: two dispatches with one key are one wish, and
    /// without a key nothing is dispatched.
    pub fn key(mut self, key: impl Into<String>) -> Dispatching {
        self.key = Some(key.into());
        self
    }

    /// Says which call of a model asks for it, with its key. Without it the call
    /// is the program's own.
    pub fn call(mut self, call: CallIdentity) -> Dispatching {
        self.key.clone_from(&call.idempotency_key);
        self.call = Some(call);
        self
    }

    /// Adds an approval that may be used.
    pub fn approval(mut self, approval: ApprovalId) -> Dispatching {
        self.approvals.push(approval);
        self
    }

    /// Has it carried out here at once, before it is answered, unless a worker is
    /// faster.
    pub fn at_once(mut self) -> Dispatching {
        self.at_once = true;
        self
    }

    /// Stores the intent, or says where the one of this key stands.
    ///
    /// # Errors
    /// [`Error::ApprovalNeeded`], or why it is refused: `tool_unknown`,
    /// `authorization_denied`, `idempotency_conflict`, `business_rule_violation`, …
    pub async fn send(self) -> Result<OperationNow, Error> {
        if let Some(call) = &self.call {
            check(call)?;
        }
        let operations = &self.operations;
        let Some(tool) = operations.tool(&self.action.name).cloned() else {
            return Err(no(Code::ToolUnknown));
        };
        tool.handler().takes(&self.action.arguments).map_err(Error::Arguments)?;
        // Looked at twice: what may be touched can change while the rest is made.
        self.authorized(&tool).await?;
        let now = self.submit(&tool).await?;
        let fresh = !now.repeated;
        if fresh {
            fault::reach(point::AFTER_INTENT_COMMIT)?;
        }
        if fresh && self.at_once {
            carry_out(operations, &tool, now.action).await?;
            return Ok(OperationNow { repeated: false, ..self.submit(&tool).await? });
        }
        operations.control.inner.outbox.notify_one();
        Ok(now)
    }

    async fn submit(&self, tool: &Tool) -> Result<OperationNow, Error> {
        let operations = &self.operations;
        let mut permitted = None;
        let mut stale = 0;
        loop {
            let command = self.command(tool, permitted).await?;
            // What is accepted is looked at just before; a rule that is still to
            // be asked accepts nothing.
            if permitted.is_some() || !tool.contract().business_rule {
                self.authorized(tool).await?;
            }
            match operations.control.submit(command).await? {
                Reply::Ask(Question::BusinessRule) => {
                    let principal = &self.action.principal;
                    let answer = tool.handler().permits(principal, &self.action.arguments).await;
                    permitted = Some(answer.ok_or_else(|| no(Code::CannotTell))?);
                }
                Reply::PolicyStale { .. } if stale < STALE_MAX => {
                    stale += 1;
                    operations.control.refresh_policy().await?;
                }
                Reply::Operation(now) => return Ok(*now),
                Reply::ApprovalNeeded { action, approval, expires_at, .. } => {
                    return Err(Error::ApprovalNeeded { action, approval, expires_at });
                }
                reply => return Err(refused(reply)),
            }
        }
    }

    async fn authorized(&self, tool: &Tool) -> Result<(), Error> {
        let Action { principal, arguments, .. } = &self.action;
        self.operations.authorized(tool, principal, arguments).await.map_err(no)
    }

    async fn command(&self, tool: &Tool, permitted: Option<bool>) -> Result<Command, Error> {
        let control = &self.operations.control;
        let policy = match control.policy() {
            Some(policy) => policy,
            None => control.refresh_policy().await?,
        };
        let tenant = control.store().tenant();
        let proposal = Proposal::prepare(tenant, &policy, self.action.clone())?;
        let call = match &self.call {
            Some(call) => call.clone(),
            None => self.own_call(proposal.text(), tool),
        };
        let (contract, approvals) = (tool.digest(), self.approvals.clone());
        Ok(Command::Dispatch(Box::new(Dispatch { proposal, contract, call, approvals, permitted })))
    }

    pub(super) fn control(&self) -> &Control {
        self.operations.control()
    }

    /// Who asks for what, for what is told of it.
    pub(super) fn asked(&self) -> Asked {
        let Action { name, arguments, principal, .. } = &self.action;
        let tool = self.operations.tool(name).cloned();
        let tenant = &self.control().store().tenant().name;
        let call = match (&self.call, &tool) {
            (Some(call), _) => call.clone(),
            (None, Some(tool)) => self.own_call(&json::canonical(&Value::Object(arguments.clone())), tool),
            (None, None) => CallIdentity::own(name, name, self.key.clone()),
        };
        Asked {
            tenant: tenant.clone(),
            subject: principal.subject(),
            call,
            request: Asked::request(tenant, principal, tool.as_ref(), name, arguments),
            arguments: arguments.clone(),
            tool,
            name: name.clone(),
            status_ref: None,
        }
    }

    /// The program's own call: the same for the same wish.
    fn own_call(&self, arguments: &str, tool: &Tool) -> CallIdentity {
        let tenant = self.operations.control.store().tenant();
        let (subject, key) = (&self.action.principal.subject(), self.key.as_deref().unwrap_or_default());
        let scope = Scope { tenant: &tenant.name, subject, tool: tool.name(), key };
        let request = scope.request(arguments, tool.contract().revisions());
        let wish = scope.status_ref(&tenant.key, request);
        CallIdentity::own(&wish, tool.name(), self.key.clone())
    }
}

/// Whether the host says of the call what it must.
pub(super) fn check(call: &CallIdentity) -> Result<(), Error> {
    call.check().map_err(|_| no(Code::CallInvalid))
}

pub(super) fn no(code: Code) -> Error {
    Error::Refused(Box::new(Refusal::new(code)))
}
