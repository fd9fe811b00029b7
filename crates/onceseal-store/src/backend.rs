//! The seam between the batch executor and what keeps the bytes.
//!
//! A backend loads rows and ranges under the right locks, and saves rows and
//! events. It never decides: no rule stands behind this trait.

use std::sync::Arc;

use onceseal_core::journal::{Key, Payload, Recorded, Stored};
use onceseal_core::lock::Locks;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range, Read};

use crate::error::StoreError;
use crate::own::OwnChange;

/// What a batch failed with.
#[derive(Debug)]
pub enum Fault {
    /// Nothing was recorded.
    Nothing(StoreError),
    /// The batch may have been recorded, and the backend could not find out.
    Unknown(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Nothing(error)
    }
}

/// One place where rows and events are kept, with one writer.
pub trait Backend: Send {
    /// Opens a transaction with the locks it needs, lets `work` load and decide
    /// in it, saves what `work` returns, and commits once. `None`: nothing to
    /// save.
    ///
    /// # Errors
    /// [`Fault`]. After `Nothing` the next batch may run; the backend itself
    /// has looked whether a commit without an answer took place.
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault>;

    /// Takes the clocks as right from now on, after they were found to have jumped.
    fn accept_clock(&mut self);
}

/// What is done inside a batch's transaction.
pub type Work<'a> = dyn FnMut(&mut dyn Loader) -> Result<Option<Changes>, StoreError> + 'a;

/// What a command needs before it can be decided.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// What it must hold.
    pub locks: Locks,
    /// What it looks at.
    pub reads: Vec<Read>,
}

impl Needs {
    /// These and those.
    pub fn join(&mut self, others: &Needs) {
        self.locks.join(&others.locks);
        for read in &others.reads {
            if !self.reads.contains(read) {
                self.reads.push(read.clone());
            }
        }
    }
}

/// Reading inside a batch's transaction.
pub trait Loader {
    /// Whether transactions of others run beside this one, so that what is looked
    /// at has to be locked. Without, the transaction is the lock.
    fn locks(&self) -> bool {
        false
    }

    /// Takes locks for each of these in turn, then reads the time, then loads what
    /// they look at. Says of each whether all its locks could be had.
    ///
    /// # Errors
    /// The store cannot be read.
    fn admit(&mut self, needs: &[Needs]) -> Result<Vec<bool>, StoreError> {
        Ok(vec![true; needs.len()])
    }

    /// More for a command that is being decided; locks are not waited for. Returns
    /// those that could not be had.
    ///
    /// # Errors
    /// The store cannot be read.
    fn more(&mut self, _needs: &Needs) -> Result<Locks, StoreError> {
        Ok(Locks::default())
    }

    /// The time, read after the locks were held; one per batch.
    fn now(&self) -> Timestamp;

    /// A stream's row.
    ///
    /// # Errors
    /// The store cannot be read. A row that does not decode is not an error.
    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError>;

    /// Keys and streams of a range, in key order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError>;

    /// The event that an event key names.
    ///
    /// # Errors
    /// The store cannot be read.
    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError>;

    /// The caller's own row under a key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The text kept beside an event.
    ///
    /// # Errors
    /// The store cannot be read.
    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError>;
}

/// What a batch saves.
#[derive(Debug, Default)]
pub struct Changes {
    /// Events in the order they are to stand in the log.
    pub events: Vec<Recorded>,
    /// Rows that changed, each once, in the order in which they first changed:
    /// streams that come to be at the same moment are listed in this order.
    pub rows: Vec<RowChange>,
    /// The caller's own rows, each once.
    pub own: Vec<OwnChange>,
}

/// A row before and after a batch.
#[derive(Debug)]
pub struct RowChange {
    /// Whose row.
    pub stream: StreamId,
    /// As it was loaded.
    pub before: Option<Arc<Stored>>,
    /// As it is to be saved.
    pub after: Arc<Stored>,
}

impl RowChange {
    /// Keys to take out and keys to put in.
    #[must_use]
    pub fn keys(&self) -> (Vec<Key>, Vec<Key>) {
        let mut before = self.before.as_ref().map(|stored| stored.row.keys()).unwrap_or_default();
        let mut after = self.after.row.keys();
        // A row has a handful of keys, so looking through them all is fastest.
        before.retain(|key| match after.iter().position(|new| new == key) {
            Some(at) => {
                after.swap_remove(at);
                false
            }
            None => true,
        });
        (before, after)
    }
}
