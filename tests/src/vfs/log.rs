//! What a database does to its files, in order.

use std::ffi::c_int;

use rusqlite::ffi;

/// The files of one database that outlive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// The database itself.
    Main,
    /// The write-ahead log.
    Wal,
    /// The rollback journal, used until the write-ahead log is switched on.
    Journal,
}

impl File {
    /// All of them.
    pub const ALL: [File; 3] = [File::Main, File::Wal, File::Journal];

    /// What stands behind the database's name.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            File::Main => "",
            File::Wal => "-wal",
            File::Journal => "-journal",
        }
    }

    /// The file that SQLite opens with these flags; `None` for temporary ones.
    pub(super) const fn of_flags(flags: c_int) -> Option<File> {
        match flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL) {
            ffi::SQLITE_OPEN_MAIN_DB => Some(File::Main),
            ffi::SQLITE_OPEN_WAL => Some(File::Wal),
            ffi::SQLITE_OPEN_MAIN_JOURNAL => Some(File::Journal),
            _ => None,
        }
    }

    /// The file of this name; SQLite deletes no other than these two.
    pub(super) fn of_name(name: &[u8]) -> Option<File> {
        [File::Wal, File::Journal].into_iter().find(|file| name.ends_with(file.suffix().as_bytes()))
    }
}

/// One thing done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A file that was not there was made.
    Create(File),
    /// Bytes were written.
    Write {
        /// Where.
        file: File,
        /// From this byte on.
        offset: u64,
        /// These.
        bytes: Vec<u8>,
    },
    /// A file was cut to a length.
    Truncate {
        /// Which.
        file: File,
        /// How long it is now.
        size: u64,
    },
    /// A file was brought to disk.
    Sync(File),
    /// Bringing a file to disk failed. What was to be written may be lost, and
    /// the system does not try again: a later sync that succeeds says nothing
    /// about it (fsync(2), "EIO").
    SyncFailed(File),
    /// A file was deleted; durably, if its directory was synced.
    Delete {
        /// Which.
        file: File,
        /// Whether its directory was synced.
        durable: bool,
    },
    /// The test's caller was told something: its number of promises now.
    Told(usize),
}

impl Op {
    /// Whether it changes what the running system sees of the files.
    #[must_use]
    pub const fn changes_files(&self) -> bool {
        matches!(self, Op::Create(_) | Op::Write { .. } | Op::Truncate { .. } | Op::Delete { .. })
    }
}
