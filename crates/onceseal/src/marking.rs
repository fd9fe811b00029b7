//! The mark of what this account has seen: moved while a store is used, and
//! what came of that. A mark that stays behind does not notice what a store
//! forgot beyond it, so somebody has to know.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use onceseal_store::Store;
use onceseal_store::mark::MarkFile;

use crate::control::Control;
use crate::error::Error;
use crate::seen::newest;

/// Why the mark cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkFailure {
    /// A stable code.
    pub code: &'static str,
    /// What failed, for people.
    pub message: String,
}

impl fmt::Display for MarkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<&Error> for MarkFailure {
    fn from(error: &Error) -> MarkFailure {
        MarkFailure { code: error.code(), message: error.to_string() }
    }
}

/// How the mark stands to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkState {
    /// The position it is at; nothing if there is none, or it cannot be read.
    pub position: Option<u64>,
    /// The newest position of the log.
    pub newest: u64,
    /// Why it cannot be moved, if so.
    pub failure: Option<MarkFailure>,
}

impl MarkState {
    /// How many entries of the log it does not know. A few are usual while the
    /// store is used, since it moves once a second.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.newest.saturating_sub(self.position.unwrap_or_default())
    }
}

/// One store's mark.
pub(crate) struct Marking {
    file: MarkFile,
    /// Whether this handle moves it.
    moves: bool,
    /// What last came of moving it.
    failure: Mutex<Option<MarkFailure>>,
}

impl Marking {
    pub(crate) fn new(file: MarkFile) -> Marking {
        Marking { file, moves: true, failure: Mutex::default() }
    }

    /// For a handle that only reads: it may know of entries that nobody has
    /// acted on.
    pub(crate) fn unmoved(file: MarkFile) -> Marking {
        Marking { moves: false, ..Marking::new(file) }
    }

    /// Moves the mark to the newest entry of the log, and remembers what came of it.
    pub(crate) fn advance(&self, store: &Store) -> Result<(), Error> {
        let moved = match self.moves {
            true => self.moved(store),
            false => Ok(()),
        };
        let failure = moved.as_ref().err().map(MarkFailure::from);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        moved
    }

    /// Remembers why nothing can be written beside the mark.
    pub(crate) fn failed(&self, error: &Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.into());
    }

    fn moved(&self, store: &Store) -> Result<(), Error> {
        if let Some(mark) = newest(store)? {
            self.file.advance(&mark)?;
        }
        Ok(())
    }
}

impl Control {
    /// Moves the mark to the newest entry of the log.
    ///
    /// # Errors
    /// The store or the mark cannot be used.
    pub fn mark(&self) -> Result<(), Error> {
        self.inner.mark.as_ref().map_or(Ok(()), |mark| mark.advance(&self.inner.store))
    }

    /// Why this process could not move the mark when it last tried, be it in
    /// the background or on closing.
    #[must_use]
    pub fn mark_failure(&self) -> Option<MarkFailure> {
        let mark = self.inner.mark.as_ref()?;
        mark.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How the mark stands to the log now, and whether it can be moved, for
    /// which it is written again as it is. A store in memory has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn mark_state(&self) -> Result<Option<MarkState>, Error> {
        let Some(mark) = &self.inner.mark else { return Ok(None) };
        let newest = self.store().read(|snapshot| snapshot.newest())?;
        let (found, failure) = match mark.file.rewrite() {
            Ok(found) => (found, None),
            // It may be readable nevertheless.
            Err(error) => (mark.file.read().ok().flatten(), Some(MarkFailure::from(&error.into()))),
        };
        Ok(Some(MarkState { position: found.map(|mark| mark.position), newest, failure }))
    }
}
