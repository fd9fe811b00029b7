//! The writer: a thread that runs batches, and whoever may block instead of it.
//!
//! Handing a command to another thread and its answer back costs about as much
//! as a commit's sync on a good disk. A thread that has nothing else to do
//! while it waits runs its command itself, when nobody else is writing.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::reply::Reply;

use crate::desk::Desk;
use crate::error::StoreError;
use crate::executor::{Executor, NotRun, Ran, Submitted};
use crate::lanes::Lanes;
use crate::own::{Undone, Write};
use crate::queue::{Job, PATIENCE, Queue, Ticket};

/// Commands in, answers out.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    desk: Arc<Desk>,
    /// Those that help where many wait.
    helping: Vec<Arc<Desk>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lanes: Arc<Lanes>,
}

/// Why a command with a caller's own rows was not recorded.
pub(crate) enum Unwritten {
    /// The store did not take it.
    Failed(StoreError),
    /// The caller undid it.
    Undone(Undone),
}

impl Writer {
    /// A writer, with executors that help where many commands wait and executors that
    /// wait for locks, where there are such.
    pub(crate) fn start(
        executor: Executor,
        helping: Vec<Executor>,
        waiting: Vec<Executor>,
    ) -> Result<Writer, StoreError> {
        let queue = Arc::new(Queue::default());
        let desk = Desk::new(Some(executor));
        let desks = |all: Vec<Executor>| all.into_iter().map(|executor| Desk::new(Some(executor))).collect();
        let (helping, lanes): (Vec<Arc<Desk>>, _) =
            (desks(helping), Arc::new(Lanes::start(desks(waiting), &queue)?));
        let threads = Mutex::default();
        let writer = Writer { queue, desk, helping, threads, lanes };
        for (n, desk) in std::iter::once(&writer.desk).chain(&writer.helping).enumerate() {
            let (queue, desk, lanes) = (writer.queue.clone(), desk.clone(), writer.lanes.clone());
            let thread = std::thread::Builder::new()
                .name("onceseal-writer".to_owned())
                .spawn(move || batches(&queue, &desk, &lanes, n == 0))
                .map_err(|error| StoreError::with(Code::StoreFailed, error.kind().to_string()))?;
            writer.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(writer)
    }

    /// One that answers `store_closed`.
    pub(crate) fn closed() -> Result<Writer, StoreError> {
        let (queue, desk) = (Arc::new(Queue::default()), Desk::new(None));
        let lanes = Lanes::start(Vec::new(), &queue)?;
        queue.close();
        let (helping, threads, lanes) = (Vec::new(), Mutex::default(), Arc::new(lanes));
        Ok(Writer { queue, desk, helping, threads, lanes })
    }

    /// Has the thread run this.
    pub(crate) fn submit(&self, command: Stamped) -> Ticket {
        self.queue.submit(command.into())
    }

    /// Has the thread run these, one after another.
    #[cfg(feature = "conformance")]
    pub(crate) fn submit_all(&self, commands: Vec<Stamped>) -> Vec<Ticket> {
        self.queue.submit_all(commands.into_iter().map(Submitted::from))
    }

    /// Runs this here if nobody is writing or waiting to; else as
    /// [`Writer::submit`].
    pub(crate) fn submit_here(&self, command: Stamped) -> Ticket {
        let submitted = Submitted::from(command);
        if self.queue.is_idle()
            && let Some(mut place) = self.desk.take()
        {
            let ran = self.desk.run(&mut place, std::slice::from_ref(&submitted));
            if place.is_none() {
                self.queue.close();
            }
            return match ran.and_then(|mut ran| ran.pop()) {
                Some(Ran::Answered(outcome)) => Ticket::answered(Some(outcome)),
                Some(Ran::Aside(needs)) => {
                    let (job, ticket) = Job::new(Submitted { needs, ..submitted });
                    self.lanes.lobby().put(vec![job]);
                    ticket
                }
                None => Ticket::answered(None),
            };
        }
        self.queue.submit(submitted)
    }

    /// Runs this here, once nobody else is at the desk, with the caller's own rows.
    pub(crate) fn run_with(&self, command: Stamped, write: &mut Write<'_>) -> Result<Reply, Unwritten> {
        let until = Instant::now() + PATIENCE;
        let mut submitted = Submitted::from(command);
        let mut desk: &Desk = &self.desk;
        loop {
            let done = desk.run_with(&mut submitted, write, until);
            if done.is_err() && self.desk.is_gone() {
                self.queue.close();
            }
            match (done, self.lanes.desk()) {
                (Ok(reply), _) => return Ok(reply),
                (Err(NotRun::Failed(error)), _) => return Err(Unwritten::Failed(error)),
                (Err(NotRun::Undone(why)), _) => return Err(Unwritten::Undone(why)),
                // Now where its locks are waited for.
                (Err(NotRun::Aside(needs)), Some(waiting)) if Instant::now() < until => {
                    submitted.needs = needs;
                    desk = waiting;
                }
                (Err(NotRun::Aside(_)), _) => {
                    return Err(Unwritten::Failed(StoreError::new(Code::StoreBusy)));
                }
            }
        }
    }

    /// Has the next batch take the clocks as right.
    pub(crate) fn accept_clock(&self) {
        self.desk.accept_clock();
        self.helping.iter().for_each(|desk| desk.accept_clock());
        self.lanes.desks().for_each(Desk::accept_clock);
    }

    /// Runs what is waiting, then ends.
    pub(crate) fn close(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // One that panicked has answered nobody; its callers know that.
            drop(thread.join());
        }
        self.lanes.close();
    }
}

/// A thread: batches until the queue is closed, and the file with it. The first one
/// also runs what was waiting then.
fn batches(queue: &Queue, desk: &Desk, lanes: &Lanes, is_first: bool) {
    // However the first one ends, nobody is left waiting for a writer that is gone.
    let _gone = is_first.then(|| queue.until_gone());
    while if is_first { queue.await_jobs() } else { queue.await_crowd() } {
        // Begun only when nobody else is at the desk: until then whoever has
        // waited long enough may withdraw.
        let mut place = desk.lock();
        if place.is_none() {
            return;
        }
        let mut batch = queue.begin();
        while !batch.commands().is_empty() {
            let Some(ran) = desk.run(&mut place, batch.commands()) else { break };
            if ran.len() == batch.commands().len() {
                // Whoever is answered may have the desk.
                drop(place);
                lanes.lobby().put(batch.answer(ran));
                break;
            }
            lanes.lobby().put(batch.answer(ran));
        }
    }
    *desk.lock() = None;
}
