//! The bounded queue to the writer, and tickets for its answers.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::executor::Outcome;

/// Commands waiting at most; beyond it callers are told at once.
const QUEUE_MAX: usize = 4_096;
/// Commands in one batch at most.
const BATCH_MAX: usize = 256;
/// A command that has not been begun after this is withdrawn.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

pub(crate) struct Job {
    command: Stamped,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
    accept_clock: bool,
}

/// Commands on their way to the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// What the writer is to do next.
pub(crate) enum Next {
    /// Run these.
    Batch(Batch),
    /// Take the clocks as right.
    AcceptClock,
    /// Stop.
    Closed,
}

/// Jobs that have been begun.
pub(crate) struct Batch {
    pub(crate) commands: Vec<Stamped>,
    answers: Vec<oneshot::Sender<Outcome>>,
}

impl Batch {
    /// Answers every caller. One that has gone does not mind.
    pub(crate) fn answer(self, outcomes: Vec<Outcome>) {
        for (answer, outcome) in self.answers.into_iter().zip(outcomes) {
            let _ = answer.send(outcome);
        }
    }
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a command in the queue.
    pub(crate) fn submit(&self, command: Stamped) -> Ticket {
        let (answer, receiver) = oneshot::channel();
        let state = Arc::new(AtomicU8::new(WAITING));
        let job = Job { command, state: state.clone(), answer };
        let mut waiting = self.waiting();
        let refused = match () {
            () if waiting.closed => Some(Code::StoreClosed),
            () if waiting.jobs.len() >= QUEUE_MAX => Some(Code::StoreBusy),
            () => None,
        };
        match refused {
            // A receiver that is dropped here cannot be waited for.
            Some(code) => drop(job.answer.send(Err(StoreError::new(code)))),
            None => waiting.jobs.push_back(job),
        }
        drop(waiting);
        self.arrived.notify_one();
        Ticket { receiver, state, until: Instant::now() + PATIENCE }
    }

    /// Waits for commands and begins what is there, without waiting for more.
    pub(crate) fn next(&self) -> Next {
        let mut waiting = self.waiting();
        loop {
            if std::mem::take(&mut waiting.accept_clock) {
                return Next::AcceptClock;
            }
            let mut batch = Batch { commands: Vec::new(), answers: Vec::new() };
            while batch.commands.len() < BATCH_MAX {
                let Some(job) = waiting.jobs.pop_front() else { break };
                let begun = job.state.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
                if begun.is_ok() {
                    batch.commands.push(job.command);
                    batch.answers.push(job.answer);
                }
            }
            if !batch.commands.is_empty() {
                return Next::Batch(batch);
            }
            if waiting.closed {
                return Next::Closed;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more commands; what is waiting is still run.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.arrived.notify_all();
    }

    /// Takes no more commands and refuses those that are waiting: there is no
    /// writer any more.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        for job in waiting.jobs.drain(..) {
            // A caller that has gone does not mind.
            let _ = job.answer.send(Err(StoreError::new(Code::StoreClosed)));
        }
    }

    /// Has the writer take the clocks as right.
    pub(crate) fn accept_clock(&self) {
        self.waiting().accept_clock = true;
        self.arrived.notify_all();
    }
}

/// The answer to a submitted command, once it is there. It can be awaited in
/// any runtime. Dropping it does not withdraw the command.
#[derive(Debug)]
#[must_use = "the answer says whether the command was recorded"]
pub struct Ticket {
    receiver: oneshot::Receiver<Outcome>,
    state: Arc<AtomicU8>,
    until: Instant,
}

impl Ticket {
    /// When the command should have been begun; see [`Ticket::withdraw`].
    #[must_use]
    pub fn patience_ends(&self) -> Instant {
        self.until
    }

    /// Withdraws the command if it has not been begun. `false`: it has, and its
    /// answer is to be waited for.
    #[must_use]
    pub fn withdraw(&self) -> bool {
        let withdrawn = self.state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
        withdrawn.is_ok()
    }

    /// Blocks this thread until the answer is there. Not for async code.
    ///
    /// # Errors
    /// As the command's answer.
    pub fn wait(self) -> Outcome {
        self.receiver.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.receiver).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(gone())))
    }
}

/// The writer ended without an answer: it is not known what became of the command.
fn gone() -> StoreError {
    StoreError::new(Code::CommitUnknown)
}
