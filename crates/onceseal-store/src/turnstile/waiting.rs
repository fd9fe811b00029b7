//! Waiting for the kernel's locks, with an end.
//!
//! They cannot be waited for with a time limit, so a thread waits in our place.
//! When it is too late it stays behind, and whoever comes next finds it in the
//! queue; with nobody waiting any more it lets the next in.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::place::private::{self, try_lock};

/// How far the thread is, if there is one.
#[derive(Debug)]
enum Progress {
    /// Nobody waits.
    None,
    /// It waits; somebody waits for it, or nobody any more.
    Queued { wanted: bool },
    /// It has come to its end: the lock is held, or could not be taken.
    Done(io::Result<()>),
}

/// The two locks of a turnstile.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) gate: File,
    pub(super) inside: File,
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Locks {
    pub(super) fn new(gate: File, inside: File) -> Arc<Locks> {
        let (progress, changed) = (Mutex::new(Progress::None), Condvar::new());
        Arc::new(Locks { gate, inside, progress, changed })
    }

    /// Takes the inner lock through the gate. One thread at a time calls this.
    ///
    /// # Errors
    /// `TimedOut` after `patience`, and what the operating system says.
    pub(super) fn take(self: &Arc<Locks>, patience: Duration) -> io::Result<()> {
        let mut progress = self.progress();
        match &mut *progress {
            Progress::Queued { wanted } => *wanted = true,
            // The kernel gives an open file what it holds already, so this asks only
            // where no thread of ours is in the queue.
            Progress::None if self.try_both()? => return Ok(()),
            Progress::None | Progress::Done(_) => {
                let locks = self.clone();
                thread::Builder::new().name("onceseal-turn".to_owned()).spawn(move || locks.queue())?;
                *progress = Progress::Queued { wanted: true };
            }
        }
        let queued = |progress: &mut Progress| matches!(progress, Progress::Queued { .. });
        let waited = self.changed.wait_timeout_while(progress, patience, queued);
        let mut progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        match std::mem::replace(&mut *progress, Progress::None) {
            Progress::Done(done) => done,
            Progress::Queued { .. } | Progress::None => {
                *progress = Progress::Queued { wanted: false };
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// The thread that waits.
    fn queue(&self) {
        let taken = private::lock(&self.gate).and_then(|()| {
            let taken = private::lock(&self.inside);
            self.gate.unlock().and(taken)
        });
        let mut progress = self.progress();
        *progress = match *progress {
            Progress::Queued { wanted: true } => Progress::Done(taken),
            _ => {
                if taken.is_ok() {
                    // Of an open file that holds the lock, unlocking has no way to fail.
                    let unlocked = self.inside.unlock();
                    debug_assert!(unlocked.is_ok(), "{unlocked:?}");
                }
                Progress::None
            }
        };
        self.changed.notify_all();
    }

    /// Takes both locks if nobody else is at either.
    fn try_both(&self) -> io::Result<bool> {
        if !try_lock(&self.gate)? {
            return Ok(false);
        }
        let taken = try_lock(&self.inside);
        self.gate.unlock()?;
        taken
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
