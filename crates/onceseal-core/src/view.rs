//! What a decision sees: rows by stream, and ranges of an index.
//!
//! A view is filled by a store. What it has not been given it does not guess:
//! it answers [`Halt::Need`], and the store comes back with it.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hash::Hash;
use crate::journal::{Index, Key, Payload, Stored};
use crate::policy::ActivePolicy;
use crate::run::Definition;
use crate::stream::{StreamId, Tenant};
use crate::tool::Tool;

/// Something that must be seen before a command can be decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// A stream's row.
    Stream(StreamId),
    /// Streams in a range of an index.
    Range(Range),
    /// A policy by its hash.
    Policy(Hash),
    /// A tool's contract by its digest.
    Tool(Hash),
    /// A run definition by its digest.
    Definition(Hash),
    /// The text kept beside an event.
    Payload(StreamId, u64),
}

/// Keys of one index from `from` up to and including `to`, in key order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The index.
    pub index: Index,
    /// The first key.
    pub from: Vec<u8>,
    /// The last key.
    pub to: Vec<u8>,
    /// At most so many.
    pub limit: usize,
}

impl Range {
    /// Every key that is exactly these bytes.
    #[must_use]
    pub fn equal(key: Key) -> Range {
        Range { index: key.index, from: key.bytes.clone(), to: key.bytes, limit: 64 }
    }
}

/// Why a decision stopped without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// It must see these first.
    Need(Vec<Read>),
    /// A row it must see does not decode.
    Unreadable,
}

/// What a store found of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// No event yet.
    Absent,
    /// Its row.
    Row(Arc<Stored>),
    /// A row that does not decode.
    Unreadable,
}

/// What is found by hash and never changes, and the tenant's constants.
#[derive(Debug, Clone)]
pub struct Pinned {
    /// The tenant.
    pub tenant: Tenant,
    /// Who owns the store, as `os:<login>`; nobody in memory.
    pub owner: Option<String>,
    /// The stream of the active policy, which nearly every command reads.
    pub policy_stream: StreamId,
    policies: BTreeMap<Hash, Option<Arc<ActivePolicy>>>,
    tools: BTreeMap<Hash, Option<Arc<Tool>>>,
    definitions: BTreeMap<Hash, Option<Arc<Definition>>>,
}

impl Pinned {
    /// The constants of a tenant, with no policy known yet.
    #[must_use]
    pub fn new(tenant: Tenant, owner: Option<String>) -> Pinned {
        let policy_stream = tenant.policy();
        let (policies, tools, definitions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Pinned { policy_stream, tenant, owner, policies, tools, definitions }
    }

    /// Adds a policy, or the fact that no policy of this hash was ever active.
    pub fn know(&mut self, hash: Hash, policy: Option<Arc<ActivePolicy>>) {
        self.policies.insert(hash, policy);
    }

    /// Adds a contract, or the fact that none of this digest was ever active.
    pub fn know_tool(&mut self, digest: Hash, tool: Option<Arc<Tool>>) {
        self.tools.insert(digest, tool);
    }

    /// Adds a run definition, or the fact that no run ever went by it.
    pub fn know_definition(&mut self, digest: Hash, definition: Option<Arc<Definition>>) {
        self.definitions.insert(digest, definition);
    }

    /// Forgets what was unknown: it may become active at any time.
    pub fn forget_unknown(&mut self) {
        self.policies.retain(|_, policy| policy.is_some());
        self.tools.retain(|_, tool| tool.is_some());
        self.definitions.retain(|_, definition| definition.is_some());
    }

    /// Forgets everything: what was seen in a batch that failed may not be so.
    pub fn forget_all(&mut self) {
        self.policies.clear();
        self.tools.clear();
        self.definitions.clear();
    }

    /// The policy of this hash; `None` if it was never active.
    ///
    /// # Errors
    /// [`Halt::Need`] until the store has looked.
    pub fn policy(&self, hash: Hash) -> Result<Option<&Arc<ActivePolicy>>, Halt> {
        match self.policies.get(&hash) {
            Some(policy) => Ok(policy.as_ref()),
            None => Err(Halt::Need(vec![Read::Policy(hash)])),
        }
    }

    /// The contract of this digest.
    ///
    /// # Errors
    /// [`Halt::Need`] until the store has looked, [`Halt::Unreadable`] if it was
    /// never active.
    pub fn tool(&self, digest: Hash) -> Result<&Arc<Tool>, Halt> {
        match self.tools.get(&digest) {
            Some(tool) => tool.as_ref().ok_or(Halt::Unreadable),
            None => Err(Halt::Need(vec![Read::Tool(digest)])),
        }
    }

    /// The run definition of this digest.
    ///
    /// # Errors
    /// [`Halt::Need`] until the store has looked, [`Halt::Unreadable`] if no run
    /// ever went by it.
    pub fn definition(&self, digest: Hash) -> Result<&Arc<Definition>, Halt> {
        match self.definitions.get(&digest) {
            Some(definition) => definition.as_ref().ok_or(Halt::Unreadable),
            None => Err(Halt::Need(vec![Read::Definition(digest)])),
        }
    }
}

/// Rows and ranges, as of one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    rows: BTreeMap<StreamId, Loaded>,
    found: BTreeMap<Range, Vec<(Vec<u8>, StreamId)>>,
    payloads: BTreeMap<(StreamId, u64), Option<Payload>>,
    /// The keys of the rows, kept once a range has been given: most commands
    /// ask for none.
    keys: Option<BTreeSet<(Key, StreamId)>>,
}

impl View {
    /// Gives a stream as the store has it.
    pub fn load(&mut self, stream: StreamId, loaded: Loaded) {
        if let Some(keys) = &mut self.keys {
            for key in self.rows.get(&stream).map(keys_of).unwrap_or_default() {
                keys.remove(&(key, stream));
            }
            keys.extend(keys_of(&loaded).into_iter().map(|key| (key, stream)));
        }
        self.rows.insert(stream, loaded);
    }

    /// Gives the streams a store has in a range.
    pub fn load_range(&mut self, range: Range, found: Vec<(Vec<u8>, StreamId)>) {
        let rows = &self.rows;
        self.keys.get_or_insert_with(|| {
            let keys = rows.iter().map(|(stream, loaded)| (stream, keys_of(loaded)));
            keys.flat_map(|(stream, keys)| keys.into_iter().map(|key| (key, *stream))).collect()
        });
        self.found.insert(range, found);
    }

    /// Gives the text beside an event.
    pub fn load_payload(&mut self, stream: StreamId, sequence: u64, payload: Option<Payload>) {
        self.payloads.insert((stream, sequence), payload);
    }

    /// Whether this has been given.
    #[must_use]
    pub fn has(&self, read: &Read) -> bool {
        match read {
            Read::Stream(stream) => self.rows.contains_key(stream),
            Read::Range(range) => self.found.contains_key(range),
            Read::Payload(stream, sequence) => self.payloads.contains_key(&(*stream, *sequence)),
            Read::Policy(_) | Read::Tool(_) | Read::Definition(_) => false,
        }
    }

    /// A stream's row.
    ///
    /// # Errors
    /// [`Halt`] if it was not given or does not decode.
    pub fn stored(&self, stream: &StreamId) -> Result<Option<&Stored>, Halt> {
        match self.rows.get(stream) {
            Some(Loaded::Row(stored)) => Ok(Some(stored)),
            Some(Loaded::Absent) => Ok(None),
            Some(Loaded::Unreadable) => Err(Halt::Unreadable),
            None => Err(Halt::Need(vec![Read::Stream(*stream)])),
        }
    }

    /// A stream's row, to keep.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn shared(&self, stream: &StreamId) -> Result<Option<Arc<Stored>>, Halt> {
        match self.rows.get(stream) {
            Some(Loaded::Row(stored)) => Ok(Some(stored.clone())),
            _ => self.stored(stream).map(|_| None),
        }
    }

    /// Whether all of these have been given.
    ///
    /// # Errors
    /// [`Halt::Need`] of those that were not, all at once.
    pub fn all(&self, reads: impl IntoIterator<Item = Read>) -> Result<(), Halt> {
        let missing: Vec<Read> = reads.into_iter().filter(|read| !self.has(read)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Halt::Need(missing)) }
    }

    /// The streams found in a range, as many as there are up to its limit: what the
    /// store has, with the rows of this view in place of what it had of them. Where a
    /// row does not decode the store's word stands: what is there must not be taken
    /// for absent.
    ///
    /// # Errors
    /// [`Halt::Need`] of what was not given: of a wider range where so much of this
    /// one has moved elsewhere since that what follows is not known.
    pub fn range(&self, range: &Range) -> Result<Vec<StreamId>, Halt> {
        let mut wide = range.clone();
        loop {
            if let Some(mut all) = self.known(&wide, range.limit)? {
                all.truncate(range.limit);
                return Ok(all);
            }
            wide.limit = wide.limit.saturating_mul(WIDER);
        }
    }

    /// What is known of a range, if that is all, or at least so much.
    fn known(&self, range: &Range, wanted: usize) -> Result<Option<Vec<StreamId>>, Halt> {
        let found = self.found.get(range).ok_or_else(|| Halt::Need(vec![Read::Range(range.clone())]))?;
        // Beyond the last of what was cut off there may be more.
        let cut = found.last().filter(|_| found.len() >= range.limit);
        let is_known = |stream| matches!(self.rows.get(stream), Some(Loaded::Row(_) | Loaded::Absent));
        let stored = found.iter().filter(|(_, stream)| !is_known(stream)).cloned();
        let first = (Key { index: range.index, bytes: range.from.clone() }, LOWEST);
        let ours = self
            .keys
            .iter()
            .flat_map(|keys| keys.range(first.clone()..))
            .take_while(|(key, _)| key.index == range.index && key.bytes <= range.to)
            .map(|(key, stream)| (key.bytes.clone(), *stream));
        let mut all: Vec<_> = stored.chain(ours).filter(|key| cut.is_none_or(|last| key <= last)).collect();
        if cut.is_some() && all.len() < wanted {
            return Ok(None);
        }
        all.sort();
        Ok(Some(all.into_iter().map(|(_, stream)| stream).collect()))
    }

    /// The text kept beside an event; `None` if it has been erased.
    ///
    /// # Errors
    /// [`Halt::Need`] if it was not given.
    pub fn payload(&self, stream: StreamId, sequence: u64) -> Result<Option<&Payload>, Halt> {
        let payload = self.payloads.get(&(stream, sequence));
        payload.map(Option::as_ref).ok_or_else(|| Halt::Need(vec![Read::Payload(stream, sequence)]))
    }
}

fn keys_of(loaded: &Loaded) -> Vec<Key> {
    match loaded {
        Loaded::Row(stored) => stored.row.keys(),
        Loaded::Absent | Loaded::Unreadable => Vec::new(),
    }
}

/// By so much wider a range is looked at where too much of it has moved elsewhere.
const WIDER: usize = 16;

const LOWEST: StreamId = StreamId { kind: crate::stream::StreamKind::Action, name: [0; 16] };
