//! The caller's own rows: written in the transaction of a command, or not at all.
//!
//! They are a caller's alone: no rule reads them, the journal does not have them,
//! an audit does not look at them.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use onceseal_core::code::Code;
use onceseal_core::limits;
use onceseal_core::reply::Reply;

use crate::backend::Loader;
use crate::error::StoreError;

/// Others wait for the lock while a caller writes.
pub const OWN_TIME: Duration = Duration::from_secs(1);
/// As much as a caller may write beside one command, in bytes.
pub const OWN_BYTES: usize = 4 << 20;

/// A change of a caller's row; `None` takes it out.
pub type OwnChange = (String, Option<Vec<u8>>);

/// A caller's rows as its command has them: keys of 1 to 1,024 bytes without
/// control characters, and values of any bytes.
pub struct OwnRows<'a> {
    loader: &'a mut dyn Loader,
    changes: BTreeMap<String, Option<Vec<u8>>>,
    bytes: usize,
}

impl<'a> OwnRows<'a> {
    pub(crate) fn new(loader: &'a mut dyn Loader) -> OwnRows<'a> {
        OwnRows { loader, changes: BTreeMap::new(), bytes: 0 }
    }

    pub(crate) fn changes(self) -> Vec<OwnChange> {
        self.changes.into_iter().collect()
    }

    /// The row under this key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self.changes.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => self.loader.own(key),
        }
    }

    /// Puts a row under this key, in place of what was there.
    ///
    /// # Errors
    /// `out_of_bounds` for a key that is none, or if all of them together are
    /// longer than [`OWN_BYTES`].
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.change(key, Some(value.to_vec()))
    }

    /// Takes the row under this key out.
    ///
    /// # Errors
    /// As [`OwnRows::put`].
    pub fn remove(&mut self, key: &str) -> Result<(), StoreError> {
        self.change(key, None)
    }

    fn change(&mut self, key: &str, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        if !limits::is_long_name(key) {
            return Err(StoreError::with(Code::OutOfBounds, "the key of a row"));
        }
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        if self.bytes > OWN_BYTES {
            return Err(StoreError::with(Code::OutOfBounds, "the rows beside a command"));
        }
        self.changes.insert(key.to_owned(), value);
        Ok(())
    }
}

/// What a caller writes beside its command.
pub(crate) type Write<'a> = dyn FnMut(&Reply, &mut OwnRows<'_>) -> Result<(), Undone> + 'a;

/// Why a caller's writing, and its command with it, is undone.
pub(crate) enum Undone {
    /// The caller says so.
    Said,
    /// It took too long.
    Late,
    /// It panicked.
    Panicked(Box<dyn Any + Send>),
}

/// Why a command with a caller's own rows was not recorded.
#[derive(Debug, Clone)]
pub enum OwnError<E> {
    /// The caller undid it.
    Undone(E),
    /// The store did not take it.
    Store(StoreError),
}

impl<E: fmt::Display> fmt::Display for OwnError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnError::Undone(error) => write!(f, "undone: {error}"),
            OwnError::Store(error) => write!(f, "{error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for OwnError<E> {}

impl<E> From<StoreError> for OwnError<E> {
    fn from(error: StoreError) -> OwnError<E> {
        OwnError::Store(error)
    }
}
