//! The one place where an executor runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use onceseal_core::code::Code;
use onceseal_core::reply::Reply;
use parking_lot::{Mutex, MutexGuard};

use crate::error::StoreError;
use crate::executor::{Executor, NotRun, Ran, Submitted};
use crate::own::Write;
use crate::queue::gone;

/// An executor and whoever runs it.
pub(crate) struct Desk {
    /// Nothing once it has ended.
    executor: Mutex<Option<Executor>>,
    /// The next batch takes the clocks as right.
    clock_accepted: AtomicBool,
}

impl Desk {
    pub(crate) fn new(executor: Option<Executor>) -> Arc<Desk> {
        Arc::new(Desk { executor: Mutex::new(executor), clock_accepted: AtomicBool::new(false) })
    }

    /// A panic while it runs is caught there, so what is in it is whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Executor>> {
        self.executor.lock()
    }

    /// The executor, if nobody has it.
    pub(crate) fn take(&self) -> Option<MutexGuard<'_, Option<Executor>>> {
        self.executor.try_lock().filter(|executor| executor.is_some())
    }

    /// Runs commands; `None` if what became of them is not known. After a panic
    /// the executor is gone: its file is closed, what was not committed rolled
    /// back.
    pub(crate) fn run(&self, place: &mut Option<Executor>, commands: &[Submitted]) -> Option<Vec<Ran>> {
        let executor = place.as_mut()?;
        self.look_at_clock(executor);
        match catch_unwind(AssertUnwindSafe(|| executor.run_some(commands))) {
            // Answers lost here, as a test may have it, are answers not known.
            Ok(ran) => crate::fault::reach("before_reply").ok().map(|()| ran),
            Err(_) => {
                *place = None;
                None
            }
        }
    }

    /// Runs a command with the caller's own rows, once nobody else is here: with every
    /// batch in turn, and `store_busy` if that is not by then.
    pub(crate) fn run_with(
        &self,
        command: &mut Submitted,
        write: &mut Write<'_>,
        until: Instant,
    ) -> Result<Reply, NotRun> {
        let Some(mut place) = self.executor.try_lock_until(until) else {
            return Err(NotRun::Failed(StoreError::new(Code::StoreBusy)));
        };
        let Some(executor) = place.as_mut() else {
            return Err(NotRun::Failed(StoreError::new(Code::StoreClosed)));
        };
        self.look_at_clock(executor);
        match catch_unwind(AssertUnwindSafe(|| executor.run_with(command, write))) {
            Ok(done) => {
                let answered = crate::fault::reach("before_reply");
                done.and_then(|reply| answered.map(|()| reply).map_err(|_| NotRun::Failed(gone())))
            }
            Err(_) => {
                *place = None;
                Err(NotRun::Failed(gone()))
            }
        }
    }

    /// Whether its executor has ended, as far as nobody is at it.
    pub(crate) fn is_gone(&self) -> bool {
        self.executor.try_lock().is_some_and(|executor| executor.is_none())
    }

    /// Has the next batch take the clocks as right.
    pub(crate) fn accept_clock(&self) {
        self.clock_accepted.store(true, Ordering::Release);
    }

    fn look_at_clock(&self, executor: &mut Executor) {
        if self.clock_accepted.swap(false, Ordering::AcqRel) {
            executor.backend().accept_clock();
        }
    }
}

#[cfg(test)]
mod tests {
    use onceseal_core::command::{Command, Nonce, Stamped};
    use onceseal_core::store::Note;

    use super::*;

    #[test]
    fn whoever_has_own_rows_does_not_wait_for_ever() {
        let desk = Desk::new(None);
        let note = Command::Note(Note { body: "1".to_owned(), source: "a test".to_owned() });
        let mut command = Submitted::from(Stamped { command: note, made_at: 0, nonce: Nonce([1; 16]) });
        let mut run = || desk.run_with(&mut command, &mut |_, _| Ok(()), Instant::now());
        let is = |done: Result<Reply, NotRun>, code| matches!(done, Err(NotRun::Failed(error)) if error.code() == code);
        let other = desk.lock();
        assert!(is(run(), Code::StoreBusy));
        drop(other);
        assert!(is(run(), Code::StoreClosed), "and is told of one that has ended");
    }
}
