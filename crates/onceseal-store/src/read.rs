//! Reading: snapshots of what is stored. Nothing here changes anything.

use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Event, Index, Key, Payload, Stamp, Stored};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Loaded, Range};

use crate::error::StoreError;
use crate::raw::Raw;

/// The place of an event that is committed and has none in the log yet, as on a
/// server just after its commit: behind all that have.
pub const UNPLACED: u64 = i64::MAX as u64;

/// An event as it is stored. The hash of the stream's previous event is not
/// stored with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place in the log, from 1; [`UNPLACED`] where it has none yet.
    pub position: u64,
    /// Where and when it stands in its stream.
    pub stamp: Stamp,
    /// What happened; `None` if it does not decode.
    pub event: Option<Event>,
    /// Salt of the private part; gone once erased.
    pub salt: Option<[u8; 32]>,
    /// Seal of the private part, if there was one.
    pub seal: Option<Hash>,
    /// Its hash.
    pub hash: Hash,
}

/// One page of keys.
#[derive(Debug, Clone)]
pub struct Page {
    /// The index.
    pub index: Index,
    /// The first key, inclusive.
    pub from: Vec<u8>,
    /// The last key, inclusive.
    pub to: Vec<u8>,
    /// Only what comes after this key and stream, in the page's order.
    pub after: Option<(Vec<u8>, StreamId)>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
    /// At most so many.
    pub limit: usize,
}

impl Page {
    /// The first so many of a range, oldest first.
    #[must_use]
    pub fn of(range: Range, limit: usize) -> Page {
        let Range { index, from, to, .. } = range;
        Page { index, from, to, after: None, newest_first: false, limit }
    }
}

/// One key found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The key's bytes.
    pub key: Vec<u8>,
    /// The stream it leads to.
    pub stream: StreamId,
    /// The event it leads to; 0 for the stream itself.
    pub sequence: u64,
}

/// A consistent picture of rows, keys and texts. It says nothing of the log, and so
/// waits for nobody who gives the log its order.
pub trait Rows {
    /// A stream's row.
    ///
    /// # Errors
    /// The store cannot be read.
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError>;

    /// The text kept beside an event.
    ///
    /// # Errors
    /// The store cannot be read.
    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError>;

    /// The caller's own row under a key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// A page of keys.
    ///
    /// # Errors
    /// The store cannot be read.
    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError>;
}

/// A consistent picture of the store, held at most for one page or one stream:
/// it keeps the write-ahead log from being recycled.
pub trait Snapshot: Rows + Raw {
    /// A stream's events from `from` on, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn events(&self, stream: &StreamId, from: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError>;

    /// Events after a position of the log, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn log(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError>;

    /// The newest position of the tenant's log; 0 if it is empty.
    ///
    /// # Errors
    /// The store cannot be read.
    fn newest(&self) -> Result<u64, StoreError>;

    /// Streams of the tenant after one, in a fixed order, for whoever visits all.
    ///
    /// # Errors
    /// The store cannot be read.
    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError>;

    /// How many streams, events, keys and texts there are.
    ///
    /// # Errors
    /// The store cannot be read.
    fn counts(&self) -> Result<Counts, StoreError>;

    /// How many bytes the store takes, all tenants together; 0 in memory.
    ///
    /// # Errors
    /// The store cannot be read.
    fn bytes(&self) -> Result<u64, StoreError>;

    /// What a database says of its own soundness: one sentence per fault.
    ///
    /// # Errors
    /// The store cannot be read.
    fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// Tables and the like that [`Snapshot::integrity`] leaves out, since whoever asks
    /// may not look into them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn unseen(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// Where snapshots come from.
pub trait Readers: Send + Sync {
    /// A picture of what is committed now.
    ///
    /// # Errors
    /// The store cannot be read.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;

    /// The same of what is not about the log, which may be less to ask for.
    ///
    /// # Errors
    /// The store cannot be read.
    fn rows(&self) -> Result<Box<dyn Rows + '_>, StoreError> {
        Ok(self.snapshot()?)
    }

    /// One sentence for each setting that protects and is not as it has to be.
    ///
    /// # Errors
    /// The store cannot be read.
    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError>;

    /// Gives up what is held for reading.
    fn close(&self);
}

/// How much is stored for the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Index keys.
    pub keys: u64,
    /// Texts beside events.
    pub payloads: u64,
}

/// The row, where it decodes.
#[must_use]
pub fn row_of(loaded: Loaded) -> Option<Stored> {
    match loaded {
        Loaded::Row(stored) => Some(Arc::unwrap_or_clone(stored)),
        Loaded::Absent | Loaded::Unreadable => None,
    }
}

/// The policy of this hash, if it ever was active, as a snapshot has it.
///
/// # Errors
/// `corrupt` if its text is not what its hash says, `erased` if there is none.
pub fn policy(rows: &dyn Rows, hash: Hash) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
    let Some(hit) = activation(rows, Index::PolicyText, hash)? else { return Ok(None) };
    policy_of(rows, &hit.stream, hit.sequence, hash).map(Some)
}

/// The contract of this digest, if it ever was active, as a snapshot has it.
///
/// # Errors
/// As [`policy`].
pub fn tool(rows: &dyn Rows, digest: Hash) -> Result<Option<Tool>, StoreError> {
    let Some(hit) = activation(rows, Index::ToolText, digest)? else { return Ok(None) };
    let payload = rows.payload(&hit.stream, hit.sequence)?;
    let tool = Tool::restore(&payload.ok_or_else(|| StoreError::new(Code::Erased))?.text)?;
    if tool.digest == digest { Ok(Some(tool)) } else { Err(StoreError::new(Code::Corrupt)) }
}

/// The run definition of this digest, if a run ever went by it, as a snapshot
/// has it.
///
/// # Errors
/// As [`policy`].
pub fn definition(rows: &dyn Rows, digest: Hash) -> Result<Option<Definition>, StoreError> {
    let Some(hit) = activation(rows, Index::DefinitionText, digest)? else { return Ok(None) };
    let payload = rows.payload(&hit.stream, hit.sequence)?;
    let definition = Definition::restore(&payload.ok_or_else(|| StoreError::new(Code::Erased))?.text)?;
    if definition.digest() == digest { Ok(Some(definition)) } else { Err(StoreError::new(Code::Corrupt)) }
}

/// The newest event that activated what has this hash.
fn activation(rows: &dyn Rows, index: Index, hash: Hash) -> Result<Option<Hit>, StoreError> {
    let Key { index, bytes } = Key::of(index, &[&hash.0]);
    let page = Page { index, from: bytes.clone(), to: bytes, after: None, newest_first: true, limit: 1 };
    Ok(rows.keys(&page)?.into_iter().next())
}

/// The text beside an activation, compiled again and held against its hash.
pub(crate) fn policy_of(
    rows: &dyn Rows,
    stream: &StreamId,
    sequence: u64,
    hash: Hash,
) -> Result<Arc<ActivePolicy>, StoreError> {
    let payload = rows.payload(stream, sequence)?.ok_or_else(|| StoreError::new(Code::Erased))?;
    let policy = ActivePolicy::restore(&payload.text)?;
    if policy.hash == hash { Ok(Arc::new(policy)) } else { Err(StoreError::new(Code::Corrupt)) }
}
