//! The bounded queue to the writer, and tickets for its answers.
//!
//! Every ticket is answered: by the writer, by the queue that refuses the
//! command, or by the writer's end.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::lock::Locks;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::error::StoreError;
use crate::executor::{Outcome, Ran, Submitted};

/// Commands waiting at most; beyond it callers are told at once.
pub(crate) const QUEUE_MAX: usize = 4_096;
/// Commands in one batch at most.
pub(crate) const BATCH_MAX: usize = 256;
/// A command that has not been begun after this is withdrawn.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// When so many wait, whoever else may write helps.
const CROWD: usize = 32;

/// How long the writer looks for a next command before it sleeps.
const LOOK: Duration = Duration::from_micros(100);

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// A command and whoever waits for its answer.
pub(crate) struct Job {
    submitted: Submitted,
    caller: Caller,
}

struct Caller {
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<Outcome>,
    until: Instant,
}

impl Job {
    /// A job, and the ticket for its answer.
    pub(crate) fn new(submitted: Submitted) -> (Job, Ticket) {
        let (answer, receiver) = oneshot::channel();
        let state = Arc::new(AtomicU8::new(WAITING));
        let until = Instant::now() + PATIENCE;
        let ticket = Ticket { receiver, state: state.clone(), until };
        (Job { submitted, caller: Caller { state, answer, until } }, ticket)
    }

    /// Answers without having run. A caller that has gone does not mind.
    pub(crate) fn refuse(self, code: Code) {
        let _ = self.caller.answer.send(Err(StoreError::new(code)));
    }

    /// Whether its caller has waited long enough.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.caller.until <= now
    }

    /// What it was found to need.
    pub(crate) fn locks(&self) -> &Locks {
        &self.submitted.needs.locks
    }

    fn begin(&self) -> bool {
        self.caller.state.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Waiting {
    /// Takes a job in, or answers it.
    fn take(&mut self, job: Job) -> bool {
        if self.closed {
            job.refuse(Code::StoreClosed);
        } else if self.jobs.len() >= QUEUE_MAX {
            job.refuse(Code::StoreBusy);
        } else {
            self.jobs.push_back(job);
            return true;
        }
        false
    }
}

/// Commands on their way to the writer.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// Many wait, or none will.
    crowded: Condvar,
    /// How often something has arrived, for a writer that looks without the lock.
    arrivals: AtomicUsize,
}

/// Jobs that have been begun and not been answered.
#[derive(Default)]
pub(crate) struct Batch {
    commands: VecDeque<Submitted>,
    callers: VecDeque<Caller>,
}

impl Batch {
    /// The commands that have no answer yet.
    pub(crate) fn commands(&mut self) -> &[Submitted] {
        self.commands.make_contiguous()
    }

    /// Begins one more; `false`: it has been withdrawn.
    pub(crate) fn begin(&mut self, job: Job) -> bool {
        let begun = job.begin();
        if begun {
            self.commands.push_back(job.submitted);
            self.callers.push_back(job.caller);
        } else {
            job.refuse(Code::StoreBusy);
        }
        begun
    }

    /// Answers the first of them, whose callers may have gone, and gives back those
    /// that were put aside: as they left no trace they have not been begun.
    pub(crate) fn answer(&mut self, ran: Vec<Ran>) -> Vec<Job> {
        let mut aside = Vec::new();
        for (ran, (submitted, caller)) in ran.into_iter().zip(std::iter::from_fn(|| self.pop())) {
            match ran {
                Ran::Answered(outcome) => drop(caller.answer.send(outcome)),
                Ran::Aside(needs) => {
                    caller.state.store(WAITING, Ordering::Release);
                    aside.push(Job { submitted: Submitted { needs, ..submitted }, caller });
                }
            }
        }
        aside
    }

    fn pop(&mut self) -> Option<(Submitted, Caller)> {
        Some((self.commands.pop_front()?, self.callers.pop_front()?))
    }
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a command in the queue.
    pub(crate) fn submit(&self, submitted: Submitted) -> Ticket {
        let (job, ticket) = Job::new(submitted);
        let mut waiting = self.waiting();
        if waiting.take(job) {
            let is_crowded = waiting.jobs.len() >= CROWD;
            self.arrivals.fetch_add(1, Ordering::Release);
            drop(waiting);
            self.arrived.notify_one();
            if is_crowded {
                self.crowded.notify_one();
            }
        }
        ticket
    }

    /// Puts commands in the queue, between which the writer does not look.
    #[cfg(feature = "conformance")]
    pub(crate) fn submit_all(&self, all: impl Iterator<Item = Submitted>) -> Vec<Ticket> {
        let mut waiting = self.waiting();
        let put = |submitted| {
            let (job, ticket) = Job::new(submitted);
            waiting.take(job);
            ticket
        };
        let tickets = all.map(put).collect();
        self.arrivals.fetch_add(1, Ordering::Release);
        drop(waiting);
        self.arrived.notify_one();
        tickets
    }

    /// Nothing waits here, and something may.
    pub(crate) fn is_idle(&self) -> bool {
        let waiting = self.waiting();
        waiting.jobs.is_empty() && !waiting.closed
    }

    /// Waits until something is there; `false` when the queue is closed and empty.
    pub(crate) fn await_jobs(&self) -> bool {
        let mut waiting = self.waiting();
        while waiting.jobs.is_empty() && !waiting.closed {
            waiting = self.wait(waiting);
        }
        !waiting.jobs.is_empty()
    }

    /// Waits until many wait; `false` when the queue is closed.
    pub(crate) fn await_crowd(&self) -> bool {
        let mut waiting = self.waiting();
        while waiting.jobs.len() < CROWD && !waiting.closed {
            waiting = self.crowded.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        !waiting.closed
    }

    /// Begins what is there, for whoever can run it at once: from now on it is
    /// not withdrawn.
    pub(crate) fn begin(&self) -> Batch {
        let mut waiting = self.waiting();
        let mut batch = Batch::default();
        while batch.commands.len() < BATCH_MAX {
            let Some(job) = waiting.jobs.pop_front() else { break };
            batch.begin(job);
        }
        batch
    }

    /// Waits until something may have arrived. A caller that was just answered
    /// asks again within microseconds, so the writer looks for a moment before it
    /// sleeps: waking it costs more than that.
    fn wait<'a>(&'a self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        let seen = self.arrivals.load(Ordering::Acquire);
        drop(waiting);
        let until = Instant::now() + LOOK;
        while self.arrivals.load(Ordering::Acquire) == seen && Instant::now() < until {
            thread::yield_now();
        }
        let waiting = self.waiting();
        if waiting.jobs.is_empty() && !waiting.closed {
            return self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting
    }

    /// Takes no more commands; what is waiting is still run.
    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.arrived.notify_all();
        self.crowded.notify_all();
    }

    /// Held by the writer: when it goes, the queue closes, and what it never
    /// began is refused.
    pub(crate) fn until_gone(&self) -> WriterIsThere<'_> {
        WriterIsThere(self)
    }
}

/// Held by the writer as long as it runs.
pub(crate) struct WriterIsThere<'a>(&'a Queue);

impl Drop for WriterIsThere<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.closed = true;
        for job in waiting.jobs.drain(..) {
            job.refuse(Code::StoreClosed);
        }
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
    /// One that is answered already; `None`: it is not known what became of it.
    pub(crate) fn answered(outcome: Option<Outcome>) -> Ticket {
        let (answer, receiver) = oneshot::channel();
        // The receiver is there to take it.
        let _ = answer.send(outcome.unwrap_or_else(|| Err(gone())));
        Ticket { receiver, state: Arc::new(AtomicU8::new(BEGUN)), until: Instant::now() }
    }

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
    /// As the command's answer; `store_busy` if it was not begun in time and
    /// has been withdrawn.
    pub fn wait(self) -> Outcome {
        let until = self.until;
        self.wait_until(until)
    }

    /// As [`Ticket::wait`], with another end of patience. A command that has
    /// been begun is waited for beyond it.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn wait_until(mut self, until: Instant) -> Outcome {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut patient = true;
        loop {
            // Looked for without a runtime's leave: a task that has used up its
            // share is told to come again, and never does while it blocks.
            match self.receiver.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Closed) => return Err(gone()),
                Err(TryRecvError::Empty) => {}
            }
            if let Poll::Ready(answer) = Pin::new(&mut self).poll(&mut context) {
                return answer;
            }
            let left = until.saturating_duration_since(Instant::now());
            match patient {
                true if !left.is_zero() => thread::park_timeout(left),
                true if self.withdraw() => return Err(StoreError::new(Code::StoreBusy)),
                true => patient = false,
                false => thread::park(),
            }
        }
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.receiver).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(gone())))
    }
}

/// Wakes a thread that waits for an answer.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The writer ended without an answer: it is not known what became of the command.
pub(crate) fn gone() -> StoreError {
    StoreError::new(Code::CommitUnknown)
}
