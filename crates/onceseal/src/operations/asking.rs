//! A model asks what became of an operation. It is never carried out by that;
//! but a remote that can be asked is, so that what is done is known.

use std::fmt;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::EffectState;
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::json::Object;
use onceseal_core::operation::result::Delivery;
use onceseal_core::operation::{CallIdentity, Query, provider_key};
use onceseal_core::reply::{OperationNow, Reply, Standing};

use super::carrying::{Heard, ask};
use super::dispatching::{check, no};
use super::package::{Asked, Package};
use super::{Operations, Question, Tool};
use crate::control::refused;
use crate::error::Error;

/// A question being put together.
#[must_use = "nothing is asked until it is sent"]
pub struct Asking {
    operations: Operations,
    tool: String,
    arguments: Object,
    principal: Principal,
    call: CallIdentity,
    status_ref: String,
    expected: Option<Hash>,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("status_ref", &self.status_ref).finish_non_exhaustive()
    }
}

impl Operations {
    /// Begins to ask what became of a call of this tool. `call` is an identity of
    /// its own, with the key of the one that dispatched: if a model asks, the
    /// identity of the call by which it does; if the host asks by itself, the
    /// [`CallIdentity::status_query`] of the one that dispatched, which no
    /// provider takes a payload for.
    pub fn ask(&self, tool: impl Into<String>, call: CallIdentity, status_ref: impl Into<String>) -> Asking {
        Asking {
            operations: self.clone(),
            tool: tool.into(),
            arguments: Object::new(),
            principal: Principal { agent: String::new(), user: None },
            call,
            status_ref: status_ref.into(),
            expected: None,
        }
    }
}

impl Asking {
    /// Sets the arguments that were dispatched.
    pub fn args(mut self, arguments: Object) -> Asking {
        self.arguments = arguments;
        self
    }

    /// Says who asks.
    pub fn by(mut self, principal: Principal) -> Asking {
        self.principal = principal;
        self
    }

    /// Says what is expected to have been asked for, if that is not what the
    /// arguments say.
    pub fn expecting(mut self, request: Hash) -> Asking {
        self.expected = Some(request);
        self
    }

    /// Asks.
    ///
    /// # Errors
    /// `tool_unknown`, `authorization_denied`, `operation_unknown`,
    /// `call_id_conflict`, `status_conflict`, …
    pub async fn send(self) -> Result<OperationNow, Error> {
        check(&self.call)?;
        let Some(tool) = self.operations.tool(&self.tool).cloned() else { return Err(no(Code::ToolUnknown)) };
        tool.handler().takes(&self.arguments).map_err(Error::Arguments)?;
        self.operations.authorized(&tool, &self.principal, &self.arguments).await.map_err(no)?;
        let now = self.query(&tool).await?;
        match now.standing {
            Standing::Parked { .. } | Standing::Ended { .. } => Ok(now),
            Standing::Queued { .. } | Standing::Running { .. } | Standing::Unknown => {
                match self.found(now.action).await? {
                    true => self.query(&tool).await,
                    false => Ok(now),
                }
            }
        }
    }

    /// Asks, and tells the model of it.
    ///
    /// # Errors
    /// As [`Dispatching::tell`](super::Dispatching::tell).
    pub async fn tell(self) -> Result<Package, Error> {
        let (control, tool) = (self.operations.control().clone(), self.operations.tool(&self.tool).cloned());
        let asked = Asked {
            tenant: control.store().tenant().name.clone(),
            subject: self.principal.subject(),
            call: self.call.clone(),
            request: self.request(tool.as_ref()),
            arguments: self.arguments.clone(),
            tool,
            name: self.tool.clone(),
            status_ref: Some(self.status_ref.clone()),
        };
        asked.tell(&control, self.send().await, |_| Delivery::ReceiptReconciled).await
    }

    /// What these arguments ask for.
    fn request(&self, tool: Option<&Tool>) -> Hash {
        let tenant = &self.operations.control().store().tenant().name;
        Asked::request(tenant, &self.principal, tool, &self.tool, &self.arguments)
    }

    async fn query(&self, tool: &Tool) -> Result<OperationNow, Error> {
        let request = self.request(Some(tool));
        let query = Query {
            subject: self.principal.subject(),
            tool: self.tool.clone(),
            call: self.call.clone(),
            status_ref: self.status_ref.clone(),
            request,
            expected: self.expected.unwrap_or(request),
        };
        match self.operations.control().submit(Command::Query(Box::new(query))).await? {
            Reply::Operation(now) => Ok(*now),
            reply => Err(refused(reply)),
        }
    }

    /// Asks the remote, if an attempt may have reached it: whether it is there.
    async fn found(&self, action: ActionId) -> Result<bool, Error> {
        let control = self.operations.control();
        let read = control.aside(move |control| {
            let Some(row) = control.action_row(action)? else { return Ok(None) };
            let Some(operation) = row.operation.clone() else { return Ok(None) };
            let effect = control.effect_at(&operation.effect)?;
            Ok(effect.map(|effect| (row, operation, effect)))
        });
        let Some((row, operation, effect)) = read.await? else { return Ok(false) };
        let begun = matches!(effect.state, EffectState::Executing | EffectState::Ambiguous);
        // It is asked as its own contract says, which may be an older one.
        let (operations, contract) = (self.operations.clone(), operation.contract);
        let tool = control.aside(move |_| Ok(operations.under(contract)?)).await?;
        let (Some(tool), Some(key), true) = (tool, effect.private.key, begun) else { return Ok(false) };
        let Some(proposed) = row.private.proposal else { return Ok(false) };
        let question = Question {
            arguments: control.aside(move |control| control.arguments(action)).await?,
            principal: Principal { agent: proposed.agent, user: proposed.user },
            provider_key: provider_key(control.store().tenant(), &key, effect.generation),
            fence: effect.fence,
            patience: tool.contract().request_timeout.to_std(),
            effect: operation.effect,
            directory: control.inner.directory.clone(),
        };
        let heard = ask(control, &tool, operation.effect, row.decided.policy, &question).await?;
        Ok(matches!(heard, Heard::Recorded))
    }
}
