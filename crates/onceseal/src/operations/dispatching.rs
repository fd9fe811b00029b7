//! A dispatch: from its arguments to the stored intent.

use std::fmt;

use onceseal_core::action::{Action, Principal, Proposal};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::ApprovalId;
use onceseal_core::json::{Object, Value};
use onceseal_core::operation::{CallIdentity, Dispatch, Profile, Scope};
use onceseal_core::reply::{OperationNow, Question, Refusal, Reply};

use super::{Operations, Tool};
use crate::control::{STALE_MAX, refused};
use crate::error::Error;

/// A dispatch being put together. Nothing is recorded until it is sent.
#[must_use = "a dispatch does nothing until it is sent"]
pub struct Dispatching {
    operations: Operations,
    action: Action,
    key: Option<String>,
    call: Option<CallIdentity>,
    approvals: Vec<ApprovalId>,
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
        Dispatching { operations, action, key: None, call: None, approvals: Vec::new() }
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

    /// Stores the intent, or says where the one of this key stands.
    ///
    /// # Errors
    /// [`Error::ApprovalNeeded`], or why it is refused: `tool_unknown`,
    /// `authorization_denied`, `idempotency_conflict`, `business_rule_violation`, …
    pub async fn send(self) -> Result<OperationNow, Error> {
        let operations = self.operations.clone();
        let Some(tool) = operations.tool(&self.action.name).cloned() else {
            return Err(no(Code::ToolUnknown));
        };
        tool.handler().takes(&self.action.arguments).map_err(Error::Arguments)?;
        // Looked at twice: what may be touched can change while the rest is made.
        self.authorized(&tool).await?;
        let mut permitted = None;
        let mut stale = 0;
        loop {
            let command = self.command(&tool, permitted).await?;
            self.authorized(&tool).await?;
            match operations.control.submit(command).await? {
                Reply::Ask(Question::BusinessRule) => {
                    let principal = &self.action.principal;
                    let answer = tool.handler().permits(principal, &self.action.arguments).await;
                    permitted = Some(answer.ok_or_else(|| no(Code::StoreBusy))?);
                }
                Reply::PolicyStale { .. } if stale < STALE_MAX => {
                    stale += 1;
                    operations.control.refresh_policy().await?;
                }
                Reply::Operation(now) => {
                    operations.control.inner.outbox.notify_one();
                    return Ok(*now);
                }
                Reply::ApprovalNeeded { action, approval, expires_at, .. } => {
                    return Err(Error::ApprovalNeeded { action, approval, expires_at });
                }
                reply => return Err(refused(reply)),
            }
        }
    }

    async fn authorized(&self, tool: &Tool) -> Result<(), Error> {
        match tool.handler().authorizes(&self.action.principal, &self.action.arguments).await {
            Some(true) => Ok(()),
            Some(false) => Err(no(Code::AuthorizationDenied)),
            None => Err(no(Code::StoreBusy)),
        }
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
            None => self.own_call(&proposal, tool),
        };
        let (contract, approvals) = (tool.digest(), self.approvals.clone());
        Ok(Command::Dispatch(Box::new(Dispatch { proposal, contract, call, approvals, permitted })))
    }

    /// The program's own call: the same for the same wish.
    fn own_call(&self, proposal: &Proposal, tool: &Tool) -> CallIdentity {
        let tenant = self.operations.control.store().tenant();
        let (subject, key) = (&proposal.principal().subject(), self.key.as_deref().unwrap_or_default());
        let scope = Scope { tenant: &tenant.name, subject, tool: tool.name(), key };
        let request = scope.request(proposal.text(), tool.contract().revisions());
        let wish = scope.status_ref(&tenant.key, request);
        CallIdentity {
            provider: Profile::OWN.provider.to_owned(),
            api_family: Profile::OWN.api_family.to_owned(),
            adapter_revision: Profile::OWN.adapter_revision.to_owned(),
            response_id: wish.clone(),
            call_id: wish,
            operation_id: tool.name().to_owned(),
            idempotency_key: self.key.clone(),
        }
    }
}

fn no(code: Code) -> Error {
    Error::Refused(Box::new(Refusal::new(code)))
}
