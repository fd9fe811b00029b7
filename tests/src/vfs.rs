//! A virtual file system over SQLite's own `unix` that writes down what the
//! database does to its files, and lets calls fail by count.
//!
//! Locks, shared memory and everything else go through untouched. One
//! [`Recorder`] serves one database at a time.

mod disk;
mod fault;
mod log;
mod methods;

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

pub use disk::{Disk, Image, Loss};
pub use fault::{Call, Fault, Plan};
pub use log::{File, Op};

/// The virtual file system of one test.
#[derive(Debug, Clone, Copy)]
pub struct Recorder {
    shared: &'static Shared,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Op>,
    plan: Option<Plan>,
    met: u64,
}

/// What the callbacks of one file system share.
#[derive(Debug)]
struct Shared {
    name: String,
    base: *mut ffi::sqlite3_vfs,
    state: Mutex<State>,
}

// SAFETY: `base` is SQLite's `unix` file system: registered before any other,
// never unregistered, and not changed after SQLite was initialised. Its methods
// may be called from every thread.
unsafe impl Send for Shared {}
// SAFETY: as above; everything else is behind the mutex.
unsafe impl Sync for Shared {}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; answers what goes wrong with it.
    fn meet(&self, call: Call, file: File) -> Option<Fault> {
        let mut state = self.state();
        let fault = state.plan.as_mut()?.meet(call, file);
        state.met += u64::from(fault.is_some());
        fault
    }

    fn record(&self, op: Op) {
        self.state().log.push(op);
    }
}

impl Recorder {
    /// Registers a file system of this name, for the rest of the process.
    ///
    /// # Panics
    /// If SQLite does not take it.
    #[must_use]
    pub fn register(name: &str) -> Recorder {
        let unix = CString::new("unix").expect("no zero in it");
        let own = CString::new(name).expect("no zero in the name");
        // SAFETY: the name is a C string; SQLite initialises itself and answers
        // a file system that lives as long as the process.
        let base = unsafe { ffi::sqlite3_vfs_find(unix.as_ptr()) };
        assert!(!base.is_null(), "SQLite has its unix file system");
        let state = Mutex::new(State::default());
        let shared: &'static Shared = Box::leak(Box::new(Shared { name: name.to_owned(), base, state }));
        let vfs = Box::leak(Box::new(methods::file_system(shared, own.into_raw())));
        // SAFETY: `vfs`, its name and what it points to are leaked, so they
        // live and stay where they are as long as SQLite may use them.
        let answer = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        assert_eq!(answer, ffi::SQLITE_OK);
        Recorder { shared }
    }

    /// The name to open a store through it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Notes that the caller has been told `promises` things by now.
    pub fn told(&self, promises: usize) {
        self.shared.record(Op::Told(promises));
    }

    /// What was done since the last time this was asked.
    #[must_use]
    pub fn take_log(&self) -> Vec<Op> {
        std::mem::take(&mut self.shared.state().log)
    }

    /// Lets calls fail from now on, instead of what was armed before.
    pub fn arm(&self, plan: Plan) {
        let mut state = self.shared.state();
        state.plan = Some(plan);
        state.met = 0;
    }

    /// Lets nothing fail any more; answers how many calls did.
    pub fn disarm(&self) -> u64 {
        let mut state = self.shared.state();
        state.plan = None;
        std::mem::take(&mut state.met)
    }
}
