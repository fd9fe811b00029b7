//! What is stored, as it is stored: for whoever checks all of it.
//!
//! Nothing here fails because of what a row holds. A row that is not of the
//! shape it is written in is named, and the rest is read on.

pub(crate) mod rows;

use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Key, Payload, Stamp};
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;

use crate::error::StoreError;
use crate::read::StoredEvent;

/// A row that is not of the shape it is written in, with the first column that
/// holds something else than it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misshapen(pub &'static str);

impl From<Misshapen> for StoreError {
    fn from(Misshapen(column): Misshapen) -> StoreError {
        StoreError::with(Code::Corrupt, format!("{column} does not hold what is written there"))
    }
}

/// All that is stored of one stream, or the next part of it.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Its number, in the order in which streams were made.
    pub ordinal: i64,
    /// What it is called.
    pub stream: Result<StreamId, Misshapen>,
    /// Its row; never absent.
    pub row: Loaded,
    /// Its events by sequence.
    pub events: Vec<RawEvent>,
}

/// An event and the text beside it.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// Its place in the log as stored.
    pub position: i64,
    /// Its number in the stream as stored.
    pub sequence: i64,
    /// The event.
    pub event: Result<StoredEvent, Misshapen>,
    /// The text.
    pub payload: Result<Option<Payload>, Misshapen>,
}

/// Streams of one page.
#[derive(Debug, Clone, Default)]
pub struct Wholes {
    /// The streams by ordinal.
    pub streams: Vec<Whole>,
    /// Whether the page ended before the last stream did.
    pub more: bool,
}

/// One place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The place as stored.
    pub position: i64,
    /// What stands there.
    pub at: Logged,
}

/// What stands at a place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// An event of the tenant.
    Own {
        /// The number of its stream.
        ordinal: i64,
        /// Where and when it stands in its stream.
        stamp: Stamp,
        /// Its hash.
        hash: Hash,
    },
    /// An event of another tenant, in a log that is for all of them.
    Another,
    /// An event of another tenant's stream, in a log that is this tenant's own.
    Misplaced {
        /// The number of that stream.
        ordinal: i64,
    },
    /// An event of a stream that is not there.
    Stray {
        /// The number of that stream.
        ordinal: i64,
    },
    /// An event that cannot be placed.
    Misshapen(Misshapen),
}

/// A key as stored: which index, its bytes, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawKey {
    /// Number of the index.
    pub index: i64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Number of the stream.
    pub ordinal: i64,
    /// The event; 0 for the stream itself.
    pub sequence: i64,
}

/// Reading everything of the tenant, by pages.
pub trait Raw {
    /// The numbers of streams after one, ascending.
    ///
    /// # Errors
    /// The store cannot be read.
    fn ordinals(&self, after: i64, limit: usize) -> Result<Vec<i64>, StoreError>;

    /// The streams numbered `from` to `to`, with all that is stored of them:
    /// about `limit` events, and no more text than fits into memory at ease. Of
    /// the stream `from` only the events with a sequence above `after`, so that
    /// a page can go on where the last one ended.
    ///
    /// # Errors
    /// The store cannot be read.
    fn wholes(&self, from: i64, to: i64, after: i64, limit: usize) -> Result<Wholes, StoreError>;

    /// The log after a position, in order, with the places of other tenants
    /// where one log is for all.
    ///
    /// # Errors
    /// The store cannot be read.
    fn entries(&self, after: i64, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// All keys after one, by index, bytes and stream.
    ///
    /// # Errors
    /// The store cannot be read.
    fn raw_keys(&self, after: Option<&RawKey>, limit: usize) -> Result<Vec<RawKey>, StoreError>;

    /// Whom the tenant's own row names as its owner; `None` where the store keeps no
    /// such row.
    ///
    /// # Errors
    /// The store cannot be read, or `corrupt`.
    fn owner(&self) -> Result<Option<Option<String>>, StoreError>;

    /// The sequence that this key of this stream leads to, if it is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError>;
}
