//! A call: from its arguments to its receipt.

use std::fmt;
use std::future::Future;

use onceseal_core::action::{Action, Principal, Reach};
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::json::{Object, Value};
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;

use crate::attempt::Call;
use crate::control::Control;
use crate::error::Error;
use crate::executed::Failure;
use crate::permit::Wanted;

/// The terminal answer of a committed action.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Its id; the document is [`Control::receipt`].
    pub id: Option<ReceiptId>,
    /// The action.
    pub action: ActionId,
    /// The attempt, counted per effect key from 1.
    pub fence: u64,
    /// What the executor returned; of an earlier call, what was stored of that.
    /// Nothing for `null`.
    pub value: Option<Value>,
    /// Whether an earlier, identical action committed and this call ran nothing.
    pub replayed: bool,
}

/// A call being put together. Nothing is recorded until it is executed or
/// proposed.
#[must_use = "a call does nothing until it is executed or proposed"]
pub struct Proposing {
    control: Control,
    action: Action,
    options: CallOptions,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Proposing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, principal) = (&self.action.name, &self.action.principal);
        f.debug_struct("Proposing").field("name", name).field("principal", principal).finish_non_exhaustive()
    }
}

/// How a call is made, besides what it is.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The action's id, to resume it.
    pub id: Option<ActionId>,
    /// An approval to use.
    pub approval: Option<ApprovalId>,
    /// How long to wait for a person, or for an identical attempt under way.
    pub wait: Option<std::time::Duration>,
    /// A shorter lease than the policy's.
    pub lease: Option<Span>,
    /// A shorter deadline than the policy's.
    pub deadline: Option<Span>,
    /// Whether the stored result of an identical, committed action is an answer.
    pub replay: bool,
}

impl Proposing {
    pub(crate) fn new(control: Control, name: String) -> Proposing {
        let principal = Principal { agent: String::new(), user: None };
        let environment = Action::DEFAULT_ENVIRONMENT.to_owned();
        let action = Action { name, arguments: Object::new(), principal, environment, resource: None };
        Proposing { control, action, options: CallOptions::default() }
    }

    /// Sets an argument.
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<Value>) -> Proposing {
        self.action.arguments.insert(name, value);
        self
    }

    /// Sets all arguments.
    pub fn args(mut self, arguments: Object) -> Proposing {
        self.action.arguments = arguments;
        self
    }

    /// Says who acts. Without it the call is refused.
    pub fn by(mut self, principal: Principal) -> Proposing {
        self.action.principal = principal;
        self
    }

    /// Says where: `production` unless said.
    pub fn environment(mut self, environment: impl Into<String>) -> Proposing {
        self.action.environment = environment.into();
        self
    }

    /// Names the resource, where the policy entry has no template for it.
    pub fn resource(mut self, resource: impl Into<String>) -> Proposing {
        self.action.resource = Some(resource.into());
        self
    }

    /// Sets every option at once.
    pub fn options(mut self, options: CallOptions) -> Proposing {
        self.options = options;
        self
    }

    /// Gives the action this id, or resumes the one that has it, which must have
    /// the same content. Once it has ended, the answer is the first one for ever.
    pub fn id(mut self, id: ActionId) -> Proposing {
        self.options.id = Some(id);
        self
    }

    /// Uses this approval.
    pub fn approval(mut self, approval: ApprovalId) -> Proposing {
        self.options.approval = Some(approval);
        self
    }

    /// Waits so long for a person's answer; with [`Proposing::replay`], also for
    /// an identical attempt under way.
    pub fn wait(mut self, wait: std::time::Duration) -> Proposing {
        self.options.wait = Some(wait);
        self
    }

    /// Takes the stored result of an identical action of the same principal,
    /// if it has committed.
    pub fn replay(mut self) -> Proposing {
        self.options.replay = true;
        self
    }

    /// Shortens the lease: 1 s at least.
    pub fn lease(mut self, lease: Span) -> Proposing {
        self.options.lease = Some(lease);
        self
    }

    /// Shortens the deadline.
    pub fn deadline(mut self, deadline: Span) -> Proposing {
        self.options.deadline = Some(deadline);
        self
    }

    /// Records the action and what the policy says, and takes nothing yet.
    ///
    /// # Errors
    /// [`Error::ApprovalNeeded`] if a person must answer first, or a refusal.
    pub async fn propose(self) -> Result<Reply, Error> {
        let call = Wanted::Proposal { action: self.action, options: self.options };
        match call.submit(&self.control, Reach::Ready).await?.reply {
            Reply::ApprovalNeeded { action, approval, expires_at, .. } => {
                Err(Error::ApprovalNeeded { action, approval, expires_at })
            }
            Reply::Refused(refusal) => Err(call.refused(refusal)),
            reply => Ok(reply),
        }
    }

    /// Takes the effect if policy, approval and the effect's state permit it,
    /// runs `executor` once, and records what became of it.
    ///
    /// The executor's own success is recorded as committed, [`Failure::NotExecuted`]
    /// as failed, everything else (any error, a panic, a dropped future, the
    /// deadline) as ambiguous. An action whose future is dropped before the
    /// executor started was not executed.
    ///
    /// # Errors
    /// [`Error::ran`] says whether the executor ran. After it ran there are three:
    /// [`Error::NotExecuted`] and [`Error::Unknown`], which an action that ended
    /// earlier is answered with as well, and [`Error::Unsettled`]. All others come
    /// before it.
    pub async fn execute<F, Fut, T, E>(self, executor: F) -> Result<Receipt, Error>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Into<Value>,
        E: Into<Failure>,
    {
        Wanted::Proposal { action: self.action, options: self.options }.execute(&self.control, executor).await
    }
}

/// A recorded action being gone on with.
#[must_use = "nothing happens until it is executed"]
pub struct Resuming {
    control: Control,
    action: ActionId,
    options: CallOptions,
}

impl Resuming {
    pub(crate) fn new(control: Control, action: ActionId) -> Resuming {
        Resuming { control, action, options: CallOptions::default() }
    }

    /// Sets the options; `id` is not looked at.
    pub fn options(mut self, options: CallOptions) -> Resuming {
        self.options = options;
        self
    }

    /// As [`Proposing::execute`].
    ///
    /// # Errors
    /// As [`Proposing::execute`].
    pub async fn execute<F, Fut, T, E>(self, executor: F) -> Result<Receipt, Error>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Into<Value>,
        E: Into<Failure>,
    {
        Wanted::Recorded { action: self.action, options: self.options, named: true }
            .execute(&self.control, executor)
            .await
    }
}
