//! The writer: a thread that runs batches, and whoever may block instead of it.
//!
//! Handing a command to another thread and its answer back costs about as much
//! as a commit's sync on a good disk. A thread that has nothing else to do
//! while it waits runs its command itself, when nobody else is writing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;

use crate::error::StoreError;
use crate::executor::{Executor, Outcome};
use crate::queue::{Queue, Ticket};

/// The one place where an executor runs; nothing in it once it has ended.
struct Desk(Mutex<Option<Executor>>);

impl Desk {
    /// A panic while it runs is caught there, so what is in it is whole.
    fn lock(&self) -> MutexGuard<'_, Option<Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs commands; `None` if what became of them is not known. After a panic the
/// executor is gone: its file is closed, what was not committed rolled back.
fn run(desk: &mut Option<Executor>, commands: &[Stamped]) -> Option<Vec<Outcome>> {
    let executor = desk.as_mut()?;
    match catch_unwind(AssertUnwindSafe(|| executor.run_some(commands))) {
        // Answers lost here, as a test may have it, are answers not known.
        Ok(outcomes) => crate::fault::reach("before_reply").ok().map(|()| outcomes),
        Err(_) => {
            *desk = None;
            None
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
        let desk = Arc::new(Desk(Mutex::new(Some(executor))));
        let (own_queue, own_desk) = (queue.clone(), desk.clone());
        let thread = std::thread::Builder::new()
            .name("onceseal-writer".to_owned())
            .spawn(move || batches(&own_queue, &own_desk))
            .map_err(|error| StoreError::with(Code::StoreFailed, error.kind().to_string()))?;
        Ok(Writer { queue, desk, thread: Mutex::new(Some(thread)) })
    }

    /// One that answers `store_closed`.
    pub(crate) fn closed() -> Writer {
        let writer = Writer {
            queue: Arc::new(Queue::default()),
            desk: Arc::new(Desk(Mutex::new(None))),
            thread: Mutex::new(None),
        };
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
            && let Ok(mut desk) = self.desk.0.try_lock()
            && desk.is_some()
        {
            let outcomes = run(&mut desk, std::slice::from_ref(&command));
            if desk.is_none() {
                self.queue.close();
            }
            return Ticket::answered(outcomes.and_then(|mut outcomes| outcomes.pop()));
        }
        self.queue.submit(command)
    }

    pub(crate) fn accept_clock(&self) {
        if let Some(executor) = self.desk.lock().as_mut() {
            executor.backend().accept_clock();
        }
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
    while let Some(mut batch) = queue.next() {
        while !batch.commands().is_empty() {
            let mut desk = desk.lock();
            if desk.is_none() {
                return batch.refuse(Code::StoreClosed);
            }
            let outcomes = run(&mut desk, batch.commands());
            drop(desk);
            let Some(outcomes) = outcomes else { break };
            if outcomes.len() == batch.commands().len() {
                queue.rest();
            }
            batch.answer(outcomes);
        }
    }
    *desk.lock() = None;
}
