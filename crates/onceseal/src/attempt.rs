//! Performing an attempt: the executor runs once, between two durable writes.
//!
//! From the moment an attempt is handed out until its outcome is recorded,
//! something here knows what to record if nothing more is said.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::id::{ActionId, ReceiptId};
use onceseal_core::json::{Object, Value};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::route::Health;
use onceseal_core::time::Span;

use crate::call::Receipt;
use crate::control::{Control, Inner, accepted};
use crate::error::Error;
use crate::executed::{Done, Failure, Performed};
use crate::fault::{self, point};
use crate::keeper::{Hold, PAUSES};
use crate::moment::Moment;
use crate::outcome::settle_of;
use crate::secrets::Secrets;

/// What an executor is called with.
#[derive(Clone)]
pub struct Call {
    attempt: Attempt,
    arguments: Object,
    deadline: Instant,
    hold: Arc<Hold>,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl Call {
    /// The arguments as they were approved: parsed back from their canonical text.
    #[must_use]
    pub const fn args(&self) -> &Object {
        &self.arguments
    }

    /// The action.
    #[must_use]
    pub const fn action(&self) -> ActionId {
        self.attempt.action
    }

    /// The effect key, if the policy entry declares one.
    #[must_use]
    pub fn effect_key(&self) -> Option<&str> {
        self.attempt.key.as_deref()
    }

    /// The attempt's number: for logs, and for remotes that take a fence.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.attempt.fence
    }

    /// The attempt itself.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// When the executor is dropped if it has not returned, and the outcome
    /// counts as unknown.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the lease has ended, as far as is known here, or could not be
    /// renewed: somebody else may answer for this attempt, so a long executor
    /// should stop where it safely can.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }
}

/// What follows from a worker's attempt that came to nothing, or to nothing known.
pub(crate) struct Sequel {
    /// When it is made again by itself.
    pub(crate) again: Option<Span>,
    /// What it says of its destination.
    pub(crate) health: Option<Health>,
}

/// Finds that out by what the executor said, or that it never ran.
pub(crate) type Judging = Arc<dyn Fn(Option<&Failure>) -> Sequel + Send + Sync>;

/// An attempt that was handed out. Dropped before its outcome is recorded, it
/// leaves what is known of it to the keeper.
pub(crate) struct Held {
    /// Gone once the outcome is recorded.
    inner: Option<Arc<Inner>>,
    attempt: Attempt,
    /// What is recorded if nothing more is said.
    settle: Settle,
    /// From just before the attempt was asked for.
    asked: Moment,
    executing: bool,
    /// Whether the caller had given the action its id.
    named: bool,
    /// So much of the lease must be left when the executor starts.
    needs: Duration,
    /// Of a worker's attempt.
    judging: Option<Judging>,
}

impl Held {
    pub(crate) fn new(control: &Control, attempt: Attempt, asked: Moment, named: bool) -> Held {
        let (settle, needs) = (dropped(&attempt), attempt.lease.to_std() / 2);
        let inner = Some(control.inner.clone());
        Held { inner, attempt, settle, asked, executing: false, named, needs, judging: None }
    }

    /// Of an operation that a worker has claimed and begun.
    pub(crate) fn of_worker(
        control: &Control,
        attempt: Attempt,
        asked: Moment,
        needs: Duration,
        judging: Judging,
    ) -> Held {
        let mut held = Held::new(control, attempt, asked, false);
        held.needs = needs;
        held.settle.again = judging(None).again;
        held.judging = Some(judging);
        held
    }

    /// Runs the executor and records its outcome.
    pub(crate) async fn perform<F, Fut, D>(
        mut self,
        control: &Control,
        arguments: Object,
        secrets: &Secrets,
        executor: F,
    ) -> Result<Receipt, Error>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<D, Failure>>,
        D: Into<Done>,
    {
        let (asked, lease) = (self.asked, self.attempt.lease.to_std());
        let store = control.store();
        if let Err(error) = fault::reach(point::AFTER_RESERVE) {
            return Err(self.give_back(control, error.into()).await);
        }
        // What the store's answer took has been taken from the lease.
        if asked.after(lease - self.needs).is_over(store.clock().as_ref()) {
            return self.conclude(control, secrets, Err(too_late()), false).await;
        }
        let deadline = asked.instant + self.attempt.deadline.since(self.attempt.taken_at).to_std();
        let kept = control.inner.keeper.keep(store, &self.attempt, asked);
        if let Err(error) = fault::reach(point::BEFORE_EXECUTOR) {
            return Err(self.give_back(control, error.into()).await);
        }
        let call = Call { attempt: self.attempt.clone(), arguments, deadline, hold: kept.hold() };
        // What came since the store's answer may have taken any time.
        if call.is_lost() {
            drop(kept);
            return self.conclude(control, secrets, Err(too_late()), false).await;
        }
        self.settle = unknown(&self.attempt, "cancelled", "the call was dropped while its executor ran");
        self.executing = true;
        let mut outcome = match tokio::time::timeout_at(deadline.into(), executor(call)).await {
            Ok(outcome) => outcome.map(D::into),
            Err(_) => Err(Failure::Unknown {
                code: Some("deadline".to_owned()),
                message: "the executor had not returned at the attempt's deadline".to_owned(),
            }),
        };
        self.executing = false;
        if let Err(error) = fault::reach(point::AFTER_DOWNSTREAM_COMMIT) {
            self.inner = None;
            return Err(error.into());
        }
        if let Err(error) = fault::reach(point::AFTER_EXECUTOR) {
            outcome = Err(Failure::unknown(error.to_string()));
        }
        drop(kept);
        self.conclude(control, secrets, outcome, true).await
    }

    /// Records that nothing was done, because of this.
    pub(crate) async fn give_back(mut self, control: &Control, because: Error) -> Error {
        self.settle.code = Some(because.code().to_owned());
        self.settle.error = Some("the executor could not be started".to_owned());
        // The lapse of the lease speaks for what cannot be recorded.
        drop(self.record(control).await);
        because
    }

    /// Records the outcome, and tells the caller about it. `ran`: it is the
    /// executor's.
    async fn conclude(
        mut self,
        control: &Control,
        secrets: &Secrets,
        outcome: Performed,
        ran: bool,
    ) -> Result<Receipt, Error> {
        let Sequel { again, health } = match (&self.judging, &outcome) {
            (Some(judging), Err(failure)) => judging(Some(failure).filter(|_| ran)),
            _ => Sequel { again: None, health: None },
        };
        let outcome = outcome.map_err(|failure| failure.without(secrets));
        self.settle = Settle { again, health, ..settle_of(&self.attempt, &outcome, secrets) };
        let (action, fence, named) = (self.attempt.action, self.attempt.fence, self.named);
        let recorded = self.record(control).await;
        let unsettled = |returned, because| match ran {
            true => Error::Unsettled { action, fence, returned, because: Box::new(because) },
            false => because,
        };
        match (outcome, recorded) {
            (Ok(done), Ok(id)) => {
                let value = Some(done.value).filter(|value| *value != Value::Null);
                Ok(Receipt { id, action, fence, value, replayed: false })
            }
            (Ok(done), Err(because)) => Err(unsettled(Ok(secrets.hide_in(done.value)), because)),
            (Err(Failure::NotExecuted { code, message }), Ok(receipt)) => {
                Err(Error::NotExecuted { action, receipt, code, message, ran, named })
            }
            (Err(failure @ Failure::NotExecuted { .. }), Err(because)) => {
                Err(unsettled(Err(failure), because))
            }
            (Err(Failure::Unknown { code, message }), recorded) => {
                let (receipt, unrecorded) = match recorded {
                    Ok(receipt) => (receipt, None),
                    Err(error) => (None, Some(Box::new(error))),
                };
                Err(Error::Unknown { action, receipt, code, message, unrecorded, ran })
            }
        }
    }

    /// Submits the outcome, again and again while the store cannot say that it
    /// has it, for as long as a lease lasts.
    async fn record(&mut self, control: &Control) -> Result<Option<ReceiptId>, Error> {
        let clock = control.store().clock().as_ref();
        let until = Moment::now(clock).after(self.attempt.lease.to_std());
        let mut pause = PAUSES.0;
        loop {
            let answer = match fault::reach(point::BEFORE_SETTLE) {
                Ok(()) => control.submit(Command::Settle(self.settle.clone())).await,
                Err(error) => Err(error.into()),
            };
            // An answer lost on the way, as a test may have it, is an answer not known.
            let answer = answer.and_then(|reply| Ok(fault::reach(point::AFTER_SETTLE).map(|()| reply)?));
            match answer {
                Err(Error::Store(error)) if error.may_pass() && !until.is_over(clock) => {
                    tokio::time::sleep_until(until.instant.min(Instant::now() + pause).into()).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                answer => {
                    // Whatever it was, it was said: nothing is left to record.
                    self.inner = None;
                    return match accepted(answer?)? {
                        Reply::Settled { receipt, .. } => Ok(receipt),
                        _ => Err(Error::Unexpected),
                    };
                }
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        if self.executing && std::thread::panicking() {
            self.settle = unknown(&self.attempt, "panic", "the executor panicked");
        }
        let until = Instant::now() + self.attempt.lease.to_std();
        inner.keeper.settle(self.settle.clone(), until);
    }
}

/// Nothing is done any more, since too little of the lease is left.
fn too_late() -> Failure {
    Failure::NotExecuted {
        code: Some("lease_too_short".to_owned()),
        message: "when the executor was to start, too little of the lease was left".to_owned(),
    }
}

/// What becomes of an attempt whose caller has gone before its executor started.
pub(crate) fn dropped(attempt: &Attempt) -> Settle {
    let text = "the call was dropped before its executor started";
    report(attempt, Outcome::Failed, "dropped", text)
}

fn unknown(attempt: &Attempt, code: &str, text: &str) -> Settle {
    report(attempt, Outcome::Ambiguous, code, text)
}

fn report(attempt: &Attempt, outcome: Outcome, code: &str, text: &str) -> Settle {
    let (code, error) = (Some(code.to_owned()), Some(text.to_owned()));
    Settle { code, error, ..Settle::new(Holding::from(attempt), outcome) }
}
