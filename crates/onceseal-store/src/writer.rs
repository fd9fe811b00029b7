//! The writer: a thread that runs batches, and whoever may block instead of it.
//!
//! Handing a command to another thread and its answer back costs about as much
//! as a commit's sync on a good disk. A thread that has nothing else to do
//! while it waits runs its command itself, when nobody else is writing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::reply::Reply;

use crate::error::StoreError;
use crate::executor::{Executor, NotRun, Outcome};
use crate::own::Write;
use crate::queue::{Queue, Ticket, gone};

/// The one place where an executor runs.
struct Desk {
    /// Nothing once it has ended.
    executor: Mutex<Option<Executor>>,
    /// The next batch takes the clocks as right.
    clock_accepted: AtomicBool,
}

impl Desk {
    fn new(executor: Option<Executor>) -> Arc<Desk> {
        Arc::new(Desk { executor: Mutex::new(executor), clock_accepted: AtomicBool::new(false) })
    }

    /// A panic while it runs is caught there, so what is in it is whole.
    fn lock(&self) -> MutexGuard<'_, Option<Executor>> {
        self.executor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executor, if nobody has it.
    fn take(&self) -> Option<MutexGuard<'_, Option<Executor>>> {
        self.executor.try_lock().ok().filter(|executor| executor.is_some())
    }

    /// Runs commands; `None` if what became of them is not known. After a panic
    /// the executor is gone: its file is closed, what was not committed rolled
    /// back.
    fn run(&self, place: &mut Option<Executor>, commands: &[Stamped]) -> Option<Vec<Outcome>> {
        let executor = place.as_mut()?;
        if self.clock_accepted.swap(false, Ordering::AcqRel) {
            executor.backend().accept_clock();
        }
        match catch_unwind(AssertUnwindSafe(|| executor.run_some(commands))) {
            // Answers lost here, as a test may have it, are answers not known.
            Ok(outcomes) => crate::fault::reach("before_reply").ok().map(|()| outcomes),
            Err(_) => {
                *place = None;
                None
            }
        }
    }
}

/// Commands in, answers out.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    desk: Arc<Desk>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(executor: Executor) -> Result<Writer, StoreError> {
        let queue = Arc::new(Queue::default());
        let desk = Desk::new(Some(executor));
        let (own_queue, own_desk) = (queue.clone(), desk.clone());
        let thread = std::thread::Builder::new()
            .name("onceseal-writer".to_owned())
            .spawn(move || batches(&own_queue, &own_desk))
            .map_err(|error| StoreError::with(Code::StoreFailed, error.kind().to_string()))?;
        Ok(Writer { queue, desk, thread: Mutex::new(Some(thread)) })
    }

    /// One that answers `store_closed`.
    pub(crate) fn closed() -> Writer {
        let writer =
            Writer { queue: Arc::new(Queue::default()), desk: Desk::new(None), thread: Mutex::new(None) };
        writer.queue.close();
        writer
    }

    /// Has the thread run this.
    pub(crate) fn submit(&self, command: Stamped) -> Ticket {
        self.queue.submit(command)
    }

    /// Runs this here if nobody is writing or waiting to; else as
    /// [`Writer::submit`].
    pub(crate) fn submit_here(&self, command: Stamped) -> Ticket {
        if self.queue.is_idle()
            && let Some(mut place) = self.desk.take()
        {
            let outcomes = self.desk.run(&mut place, std::slice::from_ref(&command));
            if place.is_none() {
                self.queue.close();
            }
            return Ticket::answered(outcomes.and_then(|mut outcomes| outcomes.pop()));
        }
        self.queue.submit(command)
    }

    /// Runs this here, once nobody else is at the desk, with the caller's own rows.
    pub(crate) fn run_with(&self, command: &Stamped, write: &mut Write<'_>) -> Result<Reply, NotRun> {
        let mut place = self.desk.lock();
        let Some(executor) = place.as_mut() else {
            return Err(NotRun::Failed(StoreError::new(Code::StoreClosed)));
        };
        if self.desk.clock_accepted.swap(false, Ordering::AcqRel) {
            executor.backend().accept_clock();
        }
        match catch_unwind(AssertUnwindSafe(|| executor.run_with(command, write))) {
            Ok(done) => {
                let answered = crate::fault::reach("before_reply");
                done.and_then(|reply| answered.map(|()| reply).map_err(|_| NotRun::Failed(gone())))
            }
            Err(_) => {
                *place = None;
                self.queue.close();
                Err(NotRun::Failed(gone()))
            }
        }
    }

    /// Has the next batch take the clocks as right.
    pub(crate) fn accept_clock(&self) {
        self.desk.clock_accepted.store(true, Ordering::Release);
    }

    /// Runs what is waiting, then ends.
    pub(crate) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // One that panicked has answered nobody; its callers know that.
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

/// The thread: batches until the queue is closed, and the file with it.
fn batches(queue: &Queue, desk: &Desk) {
    // However this ends, nobody is left waiting for a writer that is gone.
    let _gone = queue.until_gone();
    while queue.await_jobs() {
        // Begun only when nobody else is at the desk: until then whoever has
        // waited long enough may withdraw.
        let mut place = desk.lock();
        if place.is_none() {
            return;
        }
        let mut batch = queue.begin();
        while !batch.commands().is_empty() {
            let Some(outcomes) = desk.run(&mut place, batch.commands()) else { break };
            if outcomes.len() == batch.commands().len() {
                // Whoever is answered may have the desk.
                drop(place);
                batch.answer(outcomes);
                break;
            }
            batch.answer(outcomes);
        }
    }
    *desk.lock() = None;
}
