//! Processes that write one database take turns.
//!
//! SQLite's own waiting starves all but one. Here whoever is next holds
//! `<db>.gate` and waits for `<db>.lock`; whoever leaves must queue at the gate
//! again. The kernel wakes all who queue there, and the first to run gets it:
//! with turns as long as a commit (100 µs and more) every process gets its
//! share. The kernel frees both when a process dies. This gives fairness only:
//! correctness is `BEGIN IMMEDIATE`.

mod waiting;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError as TryMutexError};
use std::time::Duration;

use crate::place::private::{self, try_lock};
use crate::place::{Account, PlaceError};
use crate::queue::PATIENCE;
use waiting::Locks;

/// The lock files beside one database, opened once.
#[derive(Debug)]
pub struct Turnstile {
    locks: Arc<Locks>,
    turn: Mutex<()>,
    sweeping: File,
    sweeps: Mutex<()>,
}

impl Turnstile {
    /// Opens the lock files beside a database, making them (0600) if they are
    /// missing. The database itself is not touched.
    ///
    /// # Errors
    /// A lock file that is linked, shared, another account's or no file.
    pub fn open(database: &Path) -> Result<Turnstile, PlaceError> {
        let account = Account::of_process();
        let open = |suffix| private::open_lock(&private::beside(database, suffix), &account);
        Ok(Turnstile {
            locks: Locks::new(open(".gate")?, open(".lock")?),
            turn: Mutex::new(()),
            sweeping: open(".sweep")?,
            sweeps: Mutex::new(()),
        })
    }

    /// Waits for this process's turn, and holds it until the pass is dropped.
    ///
    /// # Errors
    /// `TimedOut` where another process keeps its turn for 5 s, as one that is
    /// stopped does; the operating system's, when a file cannot be locked.
    pub fn enter(&self) -> io::Result<Pass<'_>> {
        self.enter_within(PATIENCE)
    }

    /// As [`Turnstile::enter`], with another patience.
    ///
    /// # Errors
    /// As [`Turnstile::enter`].
    pub fn enter_within(&self, patience: Duration) -> io::Result<Pass<'_>> {
        // Threads queue here: the kernel's locks belong to the open file, which
        // they share.
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.locks.take(patience)?;
        Ok(Pass(Held { file: &self.locks.inside, _turn: turn }))
    }

    /// The pass of the one process that sweeps, if no other has it.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be locked.
    pub fn try_sweep(&self) -> io::Result<Option<SweepPass<'_>>> {
        let turn = match self.sweeps.try_lock() {
            Ok(turn) => turn,
            Err(TryMutexError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryMutexError::WouldBlock) => return Ok(None),
        };
        let free = try_lock(&self.sweeping)?;
        Ok(free.then(|| SweepPass(Held { file: &self.sweeping, _turn: turn })))
    }
}

/// The turn to write. Dropping it lets the next in.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct Pass<'a>(#[expect(dead_code, reason = "held for its drop")] Held<'a>);

/// The right to sweep. Dropping it gives it up.
#[derive(Debug)]
#[must_use = "the right ends when this is dropped"]
pub struct SweepPass<'a>(#[expect(dead_code, reason = "held for its drop")] Held<'a>);

/// A lock among processes, and the turn among the threads of this one.
#[derive(Debug)]
struct Held<'a> {
    file: &'a File,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Of an open file that holds the lock, unlocking has no way to fail.
        let unlocked = self.file.unlock();
        debug_assert!(unlocked.is_ok(), "{unlocked:?}");
    }
}
