//! Faults by call count: the n-th call of a kind fails, once or from then on.

use std::ffi::c_int;

use rusqlite::ffi;

use super::log::File;

/// A kind of call to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Bringing a file to disk.
    Sync,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full: half of the bytes are written.
    Full,
    /// The disk fails: half of the bytes are written or read, none is synced.
    Broken,
    /// Fewer bytes are read than the file has; the rest reads as zeros. Only of
    /// the log: of the database SQLite takes it for the end of the file, goes on
    /// with the zeros, and nothing above it can notice.
    Short,
    /// A sync that says it was done and was not.
    Lie,
    /// The process dies, after half of the bytes.
    Kill,
}

impl Fault {
    /// What SQLite is told.
    pub(super) const fn answer(self, call: Call) -> c_int {
        match (self, call) {
            (Fault::Full, _) => ffi::SQLITE_FULL,
            (Fault::Short, _) => ffi::SQLITE_IOERR_SHORT_READ,
            (Fault::Lie, _) => ffi::SQLITE_OK,
            (Fault::Broken | Fault::Kill, Call::Read) => ffi::SQLITE_IOERR_READ,
            (Fault::Broken | Fault::Kill, Call::Write) => ffi::SQLITE_IOERR_WRITE,
            (Fault::Broken | Fault::Kill, Call::Sync) => ffi::SQLITE_IOERR_FSYNC,
        }
    }
}

/// When what goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Which calls are counted.
    pub call: Call,
    /// Of which file; of all if absent.
    pub file: Option<File>,
    /// What goes wrong.
    pub fault: Fault,
    /// The first call that fails, counted from 1.
    pub first: u64,
    /// How many fail, one after another.
    pub times: u64,
}

impl Plan {
    /// The n-th call fails, and no other.
    #[must_use]
    pub const fn once(call: Call, fault: Fault, first: u64) -> Plan {
        Plan { call, file: None, fault, first, times: 1 }
    }

    /// The n-th call and all after it fail.
    #[must_use]
    pub const fn from(call: Call, fault: Fault, first: u64) -> Plan {
        Plan { call, file: None, fault, first, times: u64::MAX }
    }

    /// Only calls to this file are counted.
    #[must_use]
    pub const fn of(self, file: File) -> Plan {
        Plan { file: Some(file), ..self }
    }

    /// Counts a call; answers what goes wrong with it.
    pub(super) fn meet(&mut self, call: Call, file: File) -> Option<Fault> {
        if call != self.call || self.file.is_some_and(|only| only != file) {
            return None;
        }
        if self.first > 1 {
            self.first -= 1;
            return None;
        }
        self.times = self.times.checked_sub(1)?;
        Some(self.fault)
    }
}
