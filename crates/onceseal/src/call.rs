//! A call: from its arguments to its receipt.

use std::future::Future;
use std::time::Instant;

use onceseal_core::action::{Acquire, Action, Answer, Principal, Proposal, Reach, Run};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::json::{Object, Value};
use onceseal_core::reply::{Attempt, Refusal, Reply};
use onceseal_core::time::Span;

use crate::attempt::{Call, perform};
use crate::control::{Control, STALE_MAX, refused};
use crate::error::{Error, Failure};

/// The terminal answer of a committed action.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Its id; the document is [`Control::receipt`].
    pub id: Option<ReceiptId>,
    /// The action.
    pub action: ActionId,
    /// The attempt, counted per effect key from 1.
    pub fence: u64,
    /// The stored result.
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

    /// Resumes the action with this id, which must have the same content.
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
        needed(call.submit(&self.control, Reach::Ready).await?.0)
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
    /// [`Error::NotExecuted`] and [`Error::Unknown`] after the executor ran; all
    /// others before it.
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
        Wanted::Recorded { action: self.action, options: self.options }.execute(&self.control, executor).await
    }
}

/// What is to be done: something new, or something recorded.
enum Wanted {
    Proposal { action: Action, options: CallOptions },
    Recorded { action: ActionId, options: CallOptions },
}

/// An attempt to perform, or the answer of an earlier one.
enum Permitted {
    Attempt(Box<Attempt>, Object),
    Answered(Receipt),
}

impl Wanted {
    const fn options(&self) -> &CallOptions {
        match self {
            Wanted::Proposal { options, .. } | Wanted::Recorded { options, .. } => options,
        }
    }

    async fn execute<F, Fut, T, E>(self, control: &Control, executor: F) -> Result<Receipt, Error>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Into<Value>,
        E: Into<Failure>,
    {
        let (permitted, asked) = self.permitted(control).await?;
        match permitted {
            Permitted::Answered(receipt) => Ok(receipt),
            Permitted::Attempt(attempt, arguments) => {
                let call = Call::new(*attempt, arguments, asked);
                perform(control, call, asked, |call| {
                    let running = executor(call);
                    async move { running.await.map(Into::into).map_err(Into::into) }
                })
                .await
            }
        }
    }

    /// Submits until there is an attempt, waiting for people as long as asked.
    /// The instant is the one before the deciding submission.
    async fn permitted(mut self, control: &Control) -> Result<(Permitted, Instant), Error> {
        let give_up = self.options().wait.map(|wait| Instant::now() + wait);
        loop {
            let asked = Instant::now();
            let (reply, arguments) = self.submit(control, Reach::Executing).await?;
            match reply {
                Reply::Attempt(attempt) => {
                    let arguments = match arguments {
                        Some(arguments) => arguments,
                        None => control.arguments(attempt.action)?,
                    };
                    return Ok((Permitted::Attempt(Box::new(attempt), arguments), asked));
                }
                Reply::ApprovalNeeded { action, approval, expires_at, .. } => {
                    let Some(until) = give_up else {
                        return Err(Error::ApprovalNeeded { action, approval, expires_at });
                    };
                    if !control.inner.watch.answered(approval, until).await? {
                        return Err(Error::WaitTimeout { action, approval });
                    }
                    self = self.resuming(action);
                }
                Reply::Ended { action, result: Answer::Committed, receipt, stored, .. } => {
                    let value = control.stored_value(stored)?;
                    let receipt = Receipt { id: Some(receipt), action, fence: 0, value, replayed: true };
                    return Ok((Permitted::Answered(receipt), asked));
                }
                Reply::Ended { action, code, receipt, .. } => {
                    let code = code.unwrap_or(Code::InvalidTransition);
                    let refusal =
                        Refusal { action: Some(action), receipt: Some(receipt), ..Refusal::new(code) };
                    return Err(Error::Refused(Box::new(refusal)));
                }
                Reply::Refused(refusal) => match self.replayed(control, &refusal, give_up).await? {
                    Some(Some(receipt)) => return Ok((Permitted::Answered(receipt), asked)),
                    Some(None) => {}
                    None => return Err(Error::Refused(refusal)),
                },
                reply => return Err(refused(reply)),
            }
        }
    }

    /// What another, identical attempt means for this call: its receipt, or
    /// that it is worth asking again (`Some(None)`), or nothing.
    async fn replayed(
        &self,
        control: &Control,
        refusal: &Refusal,
        give_up: Option<Instant>,
    ) -> Result<Option<Option<Receipt>>, Error> {
        let Some(effect) = refusal.effect.as_ref().filter(|_| self.options().replay) else { return Ok(None) };
        match (refusal.code, effect.receipt, give_up) {
            (Code::Duplicate, Some(receipt), _) => {
                let value = control.stored_value(effect.stored)?;
                let action = control.receipt_action(receipt)?.or(refusal.action);
                let Some(action) = action else { return Ok(None) };
                let fence = effect.fence;
                Ok(Some(Some(Receipt { id: Some(receipt), action, fence, value, replayed: true })))
            }
            (Code::InProgress, _, Some(until)) if effect.same_intent == Some(true) => {
                let ended = control.inner.watch.effect_ended(effect.stream, until).await?;
                Ok(ended.then_some(None))
            }
            _ => Ok(None),
        }
    }

    /// The answer, and the arguments as they were read back from the proposal.
    async fn submit(&self, control: &Control, reach: Reach) -> Result<(Reply, Option<Object>), Error> {
        for _ in 0..STALE_MAX {
            let mut arguments = None;
            let command = match self {
                Wanted::Recorded { action, options } => Command::Acquire(Acquire {
                    action: *action,
                    approval: options.approval,
                    reach,
                    lease: options.lease,
                    deadline: options.deadline,
                }),
                Wanted::Proposal { action, options } => {
                    let policy = match control.policy() {
                        Some(policy) => policy,
                        None => control.refresh_policy().await?,
                    };
                    let proposal = Proposal::prepare(control.store().tenant(), &policy, action.clone())?;
                    arguments = Some(proposal.arguments().clone());
                    Command::Run(Box::new(Run {
                        proposal,
                        action: options.id,
                        approval: options.approval,
                        reach,
                        lease: options.lease,
                        deadline: options.deadline,
                    }))
                }
            };
            let unclaimed = control.inner.keeper.claim(control.store().submit(command)?);
            match unclaimed.await? {
                Reply::PolicyStale { .. } => control.refresh_policy().await?,
                reply => return Ok((reply, arguments)),
            };
        }
        Err(Error::Refused(Box::new(Refusal::new(Code::PolicyStale))))
    }

    /// From here on the recorded action is gone on with.
    fn resuming(self, action: ActionId) -> Wanted {
        match self {
            Wanted::Proposal { options, .. } => Wanted::Recorded { action, options },
            recorded @ Wanted::Recorded { .. } => recorded,
        }
    }
}

fn needed(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::ApprovalNeeded { action, approval, expires_at, .. } => {
            Err(Error::ApprovalNeeded { action, approval, expires_at })
        }
        Reply::Refused(refusal) => Err(Error::Refused(refusal)),
        reply => Ok(reply),
    }
}
