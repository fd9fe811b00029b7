//! From a call to its attempt, or to the answer that there is already.

use std::future::Future;
use std::time::Instant;

use onceseal_core::action::{Acquire, Action, Answer, Proposal, Reach, Run};
use onceseal_core::code::{Code, Retry};
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::json::{Object, Value};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::{Refusal, Reply};
use onceseal_store::StoreError;

use crate::attempt::{Call, Held};
use crate::call::{CallOptions, Receipt};
use crate::claim::Unclaimed;
use crate::control::{Control, STALE_MAX, refused};
use crate::error::Error;
use crate::executed::Failure;
use crate::fault::{self, point};
use crate::moment::Moment;
use crate::secrets::Secrets;
use crate::watch::from_now;

/// What is to be done: something new, or something recorded.
pub(crate) enum Wanted {
    Proposal {
        action: Action,
        options: CallOptions,
    },
    /// `named`: the caller says which, so the same call is this action again.
    Recorded {
        action: ActionId,
        options: CallOptions,
        named: bool,
    },
}

/// What a submission was answered.
pub(crate) struct Submitted {
    pub(crate) reply: Reply,
    /// Of a proposal: its arguments, read back from their canonical text.
    given: Option<Given>,
}

/// What the executor is given, and what of it is written down nowhere else.
struct Given {
    arguments: Object,
    secrets: Secrets,
}

/// An attempt to perform, or the answer of an earlier one.
enum Permitted {
    Attempt(Box<Held>, Given),
    Answered(Receipt),
}

/// What a refusal means for a call that takes the result of another.
enum Elsewhere {
    Answered(Receipt),
    AskAgain,
    No,
}

impl Wanted {
    const fn options(&self) -> &CallOptions {
        match self {
            Wanted::Proposal { options, .. } | Wanted::Recorded { options, .. } => options,
        }
    }

    pub(crate) async fn execute<F, Fut, T, E>(self, control: &Control, executor: F) -> Result<Receipt, Error>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Into<Value>,
        E: Into<Failure>,
    {
        match self.permitted(control).await? {
            Permitted::Answered(receipt) => Ok(receipt),
            Permitted::Attempt(held, Given { arguments, secrets }) => {
                let run = |call| {
                    let running = executor(call);
                    async move { running.await.map(Into::into).map_err(Into::into) }
                };
                held.perform(control, arguments, &secrets, run).await
            }
        }
    }

    /// Submits until there is an attempt, waiting for people as long as asked.
    async fn permitted(mut self, control: &Control) -> Result<Permitted, Error> {
        let give_up = self.options().wait.map(from_now);
        loop {
            let asked = Moment::now(control.store().clock().as_ref());
            let submitted = self.submit(control, Reach::Executing).await?;
            match submitted.reply {
                Reply::Attempt(attempt) => {
                    let action = attempt.action;
                    let held = Box::new(Held::new(control, attempt, asked, self.names(action)));
                    let given = match submitted.given {
                        Some(given) => Ok(given),
                        None => control.aside(move |control| Given::recorded(control, action)).await,
                    };
                    return match given {
                        Ok(given) => Ok(Permitted::Attempt(held, given)),
                        Err(error) => Err(held.give_back(control, error).await),
                    };
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
                Reply::Ended { action, result, code, receipt, stored } => {
                    let named = self.names(action);
                    let ended = move |control: &Control| {
                        let value = control.stored_value(stored)?;
                        control.ended(action, result, code, receipt, value, named)
                    };
                    return control.aside(ended).await.map(Permitted::Answered);
                }
                Reply::Refused(refusal) => match self.elsewhere(control, &refusal, give_up).await? {
                    Elsewhere::Answered(receipt) => return Ok(Permitted::Answered(receipt)),
                    Elsewhere::AskAgain => self.forget(&refusal),
                    Elsewhere::No => return Err(self.refused(refusal)),
                },
                reply => return Err(refused(reply)),
            }
        }
    }

    /// What another, identical attempt means for this call.
    async fn elsewhere(
        &self,
        control: &Control,
        refusal: &Refusal,
        give_up: Option<Instant>,
    ) -> Result<Elsewhere, Error> {
        let Some(effect) = refusal.effect.as_ref().filter(|_| self.options().replay) else {
            return Ok(Elsewhere::No);
        };
        match (refusal.code, effect.receipt, give_up) {
            (Code::Duplicate, Some(id), _) => {
                let (stored, fence, own) = (effect.stored, effect.fence, refusal.action);
                let replayed = move |control: &Control| {
                    let value = control.stored_value(stored)?;
                    let action = control.receipt_action(id)?.or(own).ok_or(Error::Unexpected)?;
                    Ok(Receipt { id: Some(id), action, fence, value, replayed: true })
                };
                control.aside(replayed).await.map(Elsewhere::Answered)
            }
            (Code::InProgress, _, Some(until)) if effect.same_intent == Some(true) => {
                let ended = control.inner.watch.effect_ended(effect.stream, until).await?;
                Ok(if ended { Elsewhere::AskAgain } else { Elsewhere::No })
            }
            _ => Ok(Elsewhere::No),
        }
    }

    /// Submits; again if the policy is not the one the proposal was prepared
    /// under.
    pub(crate) async fn submit(&self, control: &Control, reach: Reach) -> Result<Submitted, Error> {
        for _ in 0..=STALE_MAX {
            let (command, given) = self.command(control, reach).await?;
            fault::reach(point::BEFORE_SUBMIT)?;
            let ticket = control.ticket(command)?;
            match Unclaimed::new(&control.inner.keeper, ticket).await? {
                Reply::PolicyStale { .. } => control.refresh_policy().await?,
                reply => {
                    control.inner.keeper.recorded();
                    return Ok(Submitted { reply, given });
                }
            };
        }
        Err(Error::Refused(Box::new(Refusal::new(Code::PolicyStale))))
    }

    async fn command(&self, control: &Control, reach: Reach) -> Result<(Command, Option<Given>), Error> {
        let (action, options) = match self {
            Wanted::Recorded { action, options, .. } => {
                let CallOptions { approval, lease, deadline, .. } = *options;
                let acquire = Acquire { action: *action, approval, reach, lease, deadline };
                return Ok((Command::Acquire(acquire), None));
            }
            Wanted::Proposal { action, options } => (action, options),
        };
        let mut policy = match control.policy() {
            Some(policy) => policy,
            None => control.refresh_policy().await?,
        };
        let prepare = |policy: &ActivePolicy| {
            Proposal::prepare(control.store().tenant(), policy, action.clone()).map_err(Error::from)
        };
        let proposal = match prepare(&policy) {
            // The policy that is active now may take it.
            Err(error) => {
                let known = policy.hash;
                policy = control.refresh_policy().await?;
                if policy.hash == known { Err(error) } else { prepare(&policy) }
            }
            prepared => prepared,
        }?;
        let arguments = proposal.arguments().clone();
        let secrets = secrets(&policy, &action.name, &arguments);
        let CallOptions { id, approval, lease, deadline, .. } = *options;
        let run = Run { proposal, action: id, approval, reach, lease, deadline };
        Ok((Command::Run(Box::new(run)), Some(Given { arguments, secrets })))
    }

    /// Whether the caller gave this action its id.
    fn names(&self, action: ActionId) -> bool {
        match self {
            Wanted::Proposal { options, .. } => options.id == Some(action),
            Wanted::Recorded { action: own, named, .. } => *named && *own == action,
        }
    }

    /// The error that a refusal is.
    pub(crate) fn refused(&self, refusal: Box<Refusal>) -> Error {
        let recorded = refusal.action.filter(|_| refusal.receipt.is_some() && !refusal.repeated);
        let ended = recorded.is_some_and(|action| self.names(action));
        refusal_error(refusal, ended)
    }

    /// From here on the recorded action is gone on with.
    fn resuming(self, action: ActionId) -> Wanted {
        let named = self.names(action);
        match self {
            Wanted::Proposal { options, .. } => Wanted::Recorded { action, options, named },
            recorded @ Wanted::Recorded { .. } => recorded,
        }
    }

    /// An id whose action ended by a refusal is answered with that for ever.
    fn forget(&mut self, refusal: &Refusal) {
        if let Wanted::Proposal { options, .. } = self
            && refusal.receipt.is_some()
            && options.id == refusal.action
        {
            options.id = None;
        }
    }
}

/// `ended`: it has ended an action that the caller had given an id.
fn refusal_error(refusal: Box<Refusal>, ended: bool) -> Error {
    match refusal.code.retry() {
        // Nothing to wait for, with another id either.
        Retry::Never => Error::Refused(refusal),
        _ if ended => Error::Ended(refusal),
        _ => Error::Refused(refusal),
    }
}

impl Given {
    /// Of a recorded action.
    fn recorded(control: &Control, action: ActionId) -> Result<Given, Error> {
        let arguments = control.arguments(action)?;
        let (policy, name) = control.decided_under(action)?;
        let secrets = secrets(&policy, &name, &arguments);
        Ok(Given { arguments, secrets })
    }
}

/// What is redacted of an action, if it is recorded.
pub(crate) fn secrets_of(control: &Control, action: ActionId) -> Result<Secrets, Error> {
    match control.action_row(action)? {
        Some(_) => Given::recorded(control, action).map(|given| given.secrets),
        None => Ok(Secrets::default()),
    }
}

/// What is redacted of arguments under the policy of this hash.
pub(crate) async fn secrets_under(
    control: &Control,
    policy: Hash,
    name: &str,
    arguments: &Object,
) -> Result<Secrets, Error> {
    if let Some(active) = control.policy().filter(|active| active.hash == policy) {
        return Ok(secrets(&active, name, arguments));
    }
    let (name, arguments) = (name.to_owned(), arguments.clone());
    control
        .aside(move |control| {
            let policy = control.store().policy(policy)?.ok_or_else(|| StoreError::new(Code::Corrupt))?;
            Ok(secrets(&policy, &name, &arguments))
        })
        .await
}

fn secrets(policy: &ActivePolicy, name: &str, arguments: &Object) -> Secrets {
    let paths = policy.policy.entry(name).map_or(&[][..], |entry| &entry.redact);
    Secrets::of(arguments, paths)
}

impl Control {
    /// The first answer of an action that has one: its receipt, or as the
    /// error that it was.
    fn ended(
        &self,
        action: ActionId,
        result: Answer,
        code: Option<Code>,
        receipt: onceseal_core::id::ReceiptId,
        value: Option<Value>,
        named: bool,
    ) -> Result<Receipt, Error> {
        let row = self.action_row(action)?.ok_or(Error::Unexpected)?;
        let fence = row.held.map_or(0, |(_, fence)| fence);
        if result == Answer::Committed {
            return Ok(Receipt { id: Some(receipt), action, fence, value, replayed: true });
        }
        let said = self.last_word(&row)?;
        let why = code.map(|code| code.to_string());
        let message = said.text.or_else(|| code.map(|code| code.sentence().to_owned())).unwrap_or_default();
        Err(match result {
            Answer::Failed => {
                let (receipt, code) = (Some(receipt), said.code.or(why));
                Error::NotExecuted { action, receipt, code, message, ran: false, named }
            }
            Answer::Ambiguous => Error::Unknown {
                action,
                receipt: Some(receipt),
                code: said.code.or(why),
                message,
                unrecorded: None,
                ran: false,
            },
            Answer::Committed | Answer::Denied | Answer::Blocked | Answer::Cancelled => {
                let code = code.unwrap_or(Code::InvalidTransition);
                let reason = (code == Code::PolicyDenied).then(|| row.decided.reason.clone());
                let (receipt, approval) = (Some(receipt), row.approval);
                let refusal =
                    Refusal { action: Some(action), receipt, approval, reason, ..Refusal::new(code) };
                refusal_error(Box::new(refusal), named)
            }
        })
    }
}
