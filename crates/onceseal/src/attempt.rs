//! Performing an attempt: the executor runs once, between two durable writes.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::id::{ActionId, ReceiptId};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::limits;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_store::StoreError;

use crate::call::Receipt;
use crate::control::{Control, Inner, accepted};
use crate::error::{Error, Executed, Failure};

/// What an executor is called with.
#[derive(Debug, Clone)]
pub struct Call {
    attempt: Attempt,
    arguments: Object,
    deadline: Instant,
    lost: Arc<AtomicBool>,
}

impl Call {
    /// `asked` is before the attempt was handed out.
    pub(crate) fn new(attempt: Attempt, arguments: Object, asked: Instant) -> Call {
        let deadline = asked + attempt.deadline.since(attempt.taken_at).to_std();
        Call { attempt, arguments, deadline, lost: Arc::new(AtomicBool::new(false)) }
    }

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

    /// Whether the lease could not be renewed: somebody else may answer for
    /// this attempt, so a long executor should stop where it safely can.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

/// Runs the executor of an attempt that was asked for at `asked`, and records
/// its outcome.
pub(crate) async fn perform<F, Fut>(
    control: &Control,
    call: Call,
    asked: Instant,
    executor: F,
) -> Result<Receipt, Error>
where
    F: FnOnce(Call) -> Fut,
    Fut: Future<Output = Executed>,
{
    let attempt = call.attempt.clone();
    let mut guard = Guard { inner: Some(control.inner.clone()), attempt: attempt.clone(), begun: false };
    let lease = attempt.lease.to_std();
    // What the store's answer took has been taken from the lease.
    if asked.elapsed() > lease / 2 {
        guard.disarm();
        let failure = Failure::NotExecuted {
            code: Some("lease_half_gone".to_owned()),
            message: "the store took more than half of the lease to answer".to_owned(),
        };
        return conclude(control, &attempt, Err(failure)).await;
    }
    let kept = control.inner.keeper.keep(&attempt, asked, call.lost.clone());
    let deadline = call.deadline;
    guard.begun = true;
    let outcome = match tokio::time::timeout_at(deadline.into(), executor(call)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Unknown {
            code: Some("deadline".to_owned()),
            message: "the executor had not returned at the attempt's deadline".to_owned(),
        }),
    };
    guard.disarm();
    drop(kept);
    conclude(control, &attempt, outcome).await
}

/// Records the outcome, and tells the caller about it.
async fn conclude(control: &Control, attempt: &Attempt, outcome: Executed) -> Result<Receipt, Error> {
    let settle = settle_of(attempt, &outcome);
    let recorded = settle_until(control, attempt, settle).await;
    let receipt_of = |recorded: &Result<Option<ReceiptId>, Error>| recorded.as_ref().ok().copied().flatten();
    let action = attempt.action;
    match outcome {
        Ok(value) => {
            let id = recorded?;
            Ok(Receipt { id, action, fence: attempt.fence, value: Some(value), replayed: false })
        }
        Err(Failure::NotExecuted { code, message }) => {
            Err(Error::NotExecuted { action, receipt: recorded?, code, message })
        }
        Err(Failure::Unknown { code, message }) => {
            let receipt = receipt_of(&recorded);
            let unrecorded = recorded.err().map(Box::new);
            Err(Error::Unknown { action, receipt, code, message, unrecorded })
        }
    }
}

fn settle_of(attempt: &Attempt, outcome: &Executed) -> Settle {
    let (outcome, code, error, result) = match outcome {
        Ok(value) => (Outcome::Committed, None, None, storable(value)),
        Err(Failure::NotExecuted { code, message }) => (Outcome::Failed, code.clone(), Some(message), None),
        Err(Failure::Unknown { code, message }) => (Outcome::Ambiguous, code.clone(), Some(message), None),
    };
    let error = error.map(|text| text.replace('\0', "\u{fffd}"));
    Settle { attempt: Holding::from(attempt), outcome, code, error, result }
}

/// The stored form of a result. A committed effect never becomes an error
/// because of what its executor returned.
fn storable(value: &Value) -> Option<String> {
    if *value == Value::Null {
        return None;
    }
    let text = json::canonical(value);
    let problem = match json::read(text.as_bytes(), &Limits::RESULT) {
        Ok(_) => return Some(text),
        Err(_) if text.len() > limits::RESULT_BYTES => "too_large",
        Err(_) => value.type_name(),
    };
    let mut stand_in = Object::new();
    stand_in.insert("unstorable", problem);
    stand_in.insert("bytes", Value::Integer(i64::try_from(text.len()).unwrap_or(json::SAFE_INTEGER)));
    Some(json::canonical(&stand_in.into()))
}

/// Submits the outcome, again and again while the store cannot say that it has
/// it and the lease may still be answered for.
async fn settle_until(
    control: &Control,
    attempt: &Attempt,
    settle: Settle,
) -> Result<Option<ReceiptId>, Error> {
    let give_up = Instant::now() + attempt.lease.to_std();
    let mut pause = Duration::from_millis(20);
    loop {
        match control.submit(Command::Settle(settle.clone())).await {
            Err(Error::Store(error)) if again(&error) && Instant::now() + pause < give_up => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
            Err(error) => return Err(error),
            Ok(reply) => {
                return match accepted(reply)? {
                    Reply::Settled { receipt, .. } => Ok(receipt),
                    _ => Err(Error::Unexpected),
                };
            }
        }
    }
}

pub(crate) fn again(error: &StoreError) -> bool {
    matches!(error.code(), Code::CommitUnknown | Code::StoreBusy | Code::StoreFailed)
}

/// Settles an attempt whose future is dropped or whose executor panics.
struct Guard {
    inner: Option<Arc<Inner>>,
    attempt: Attempt,
    begun: bool,
}

impl Guard {
    fn disarm(&mut self) {
        self.inner = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        let (outcome, code, text) = match (self.begun, std::thread::panicking()) {
            (false, _) => (Outcome::Failed, "dropped", "the call was dropped before its executor started"),
            (true, true) => (Outcome::Ambiguous, "panic", "the executor panicked"),
            (true, false) => (Outcome::Ambiguous, "cancelled", "the call was dropped while its executor ran"),
        };
        inner.keeper.settle(Settle {
            attempt: Holding::from(&self.attempt),
            outcome,
            code: Some(code.to_owned()),
            error: Some(text.to_owned()),
            result: None,
        });
    }
}
