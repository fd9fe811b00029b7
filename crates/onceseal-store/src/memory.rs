//! A store in memory: for tests, demonstrations and simulation. It forgets
//! everything with its process, and says so by its type.

mod raw;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload, Stamp, Stored};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range};

use crate::backend::{Backend, Changes, Fault, Loader, Work};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::read::{Counts, Hit, Page, Readers, Rows, Snapshot, StoredEvent};
use crate::time::BatchClock;

/// What is kept.
#[derive(Clone, Default)]
struct Kept {
    rows: BTreeMap<StreamId, Arc<Stored>>,
    log: Vec<StoredEvent>,
    streams: BTreeMap<StreamId, Vec<usize>>,
    payloads: BTreeMap<(StreamId, u64), Payload>,
    /// Streams in the order they were made, which breaks ties between keys.
    made: Vec<StreamId>,
    ordinals: BTreeMap<StreamId, u64>,
    keys: BTreeMap<(Key, u64), u64>,
    own: BTreeMap<String, Vec<u8>>,
}

/// The state of a memory store, shared by its writer and its readers. A
/// snapshot shares it too; the writer copies it while somebody looks at it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Arc<Kept>>>);

impl Memory {
    fn kept(&self) -> MutexGuard<'_, Arc<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self, clock: Arc<dyn Clock>) -> MemoryBackend {
        MemoryBackend { memory: self.clone(), clock: BatchClock::new(clock) }
    }
}

/// The writer of a memory store.
pub(crate) struct MemoryBackend {
    memory: Memory,
    clock: BatchClock,
}

impl Backend for MemoryBackend {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let now = self.clock.read()?;
        let mut kept = self.memory.kept();
        let changes = work(&mut MemoryLoader { kept: &kept, now })?;
        if let Some(changes) = changes {
            kept.takes(&changes)?;
            Arc::make_mut(&mut kept).save(changes);
        }
        Ok(())
    }

    fn accept_clock(&mut self) {
        self.clock.accept();
    }
}

struct MemoryLoader<'a> {
    kept: &'a Kept,
    now: Timestamp,
}

impl Loader for MemoryLoader<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        Ok(self.kept.stream(stream))
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        let Range { index, from, to, limit } = range.clone();
        let page = Page { index, from, to, after: None, newest_first: false, limit };
        Ok(self.kept.keys(&page).into_iter().map(|hit| (hit.key, hit.stream)).collect())
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        let page = Page {
            index: key.index,
            from: key.bytes.clone(),
            to: key.bytes.clone(),
            after: None,
            newest_first: true,
            limit: 1,
        };
        Ok(self.kept.keys(&page).first().map(|hit| (hit.stream, hit.sequence)))
    }

    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.kept.own.get(key).cloned())
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        Ok(self.kept.payloads.get(&(*stream, sequence)).cloned())
    }
}

impl Kept {
    fn stream(&self, stream: &StreamId) -> Loaded {
        self.rows.get(stream).map_or(Loaded::Absent, |stored| Loaded::Row(stored.clone()))
    }

    /// Whether every event is the next of its stream: the last word, as a
    /// database has it in a unique index.
    fn takes(&self, changes: &Changes) -> Result<(), StoreError> {
        let mut next: BTreeMap<StreamId, u64> = BTreeMap::new();
        for event in &changes.events {
            let Stamp { stream, sequence, .. } = event.stamp;
            let known = self.streams.get(&stream).map_or(0, Vec::len) as u64;
            let next = next.entry(stream).or_insert(known + 1);
            if sequence != *next {
                return Err(StoreError::with(Code::Internal, "an event out of sequence"));
            }
            *next += 1;
        }
        Ok(())
    }

    fn save(&mut self, changes: Changes) {
        for change in &changes.rows {
            self.ordinal(change.stream);
        }
        for event in changes.events {
            let stamp = event.stamp;
            for key in event.event.keys() {
                let ordinal = self.ordinal(stamp.stream);
                self.keys.insert((key, ordinal), stamp.sequence);
            }
            if let Some(payload) = event.payload {
                self.payloads.insert((stamp.stream, stamp.sequence), payload);
            }
            self.streams.entry(stamp.stream).or_default().push(self.log.len());
            let (salt, seal) = event.sealed.unzip();
            let position = self.log.len() as u64 + 1;
            self.log.push(StoredEvent {
                position,
                stamp,
                event: Some(event.event),
                salt,
                seal,
                hash: event.hash,
            });
        }
        for (key, value) in changes.own {
            match value {
                Some(value) => self.own.insert(key, value),
                None => self.own.remove(&key),
            };
        }
        for change in changes.rows {
            let (gone, new) = change.keys();
            let ordinal = self.ordinal(change.stream);
            for key in gone {
                self.keys.remove(&(key, ordinal));
            }
            self.keys.extend(new.into_iter().map(|key| ((key, ordinal), 0)));
            self.rows.insert(change.stream, change.after);
        }
    }

    fn ordinal(&mut self, stream: StreamId) -> u64 {
        *self.ordinals.entry(stream).or_insert_with(|| {
            self.made.push(stream);
            self.made.len() as u64
        })
    }

    fn keys(&self, page: &Page) -> Vec<Hit> {
        let key = |bytes: &Vec<u8>| Key { index: page.index, bytes: bytes.clone() };
        let mut from = (key(&page.from), 0);
        let mut to = (key(&page.to), u64::MAX);
        if let Some((bytes, stream)) = &page.after {
            // Ordinals count from 1, so one less is below every stream.
            let ordinal = self.ordinals.get(stream).copied().unwrap_or_default();
            if page.newest_first {
                to = to.min((key(bytes), ordinal.saturating_sub(1)));
            } else {
                from = from.max((key(bytes), ordinal + 1));
            }
        }
        if from > to {
            return Vec::new();
        }
        let hit = |((key, ordinal), sequence): (&(Key, u64), &u64)| {
            let stream = *self.made.get(usize::try_from(*ordinal).ok()?.checked_sub(1)?)?;
            Some(Hit { key: key.bytes.clone(), stream, sequence: *sequence })
        };
        let found = self.keys.range(from..=to);
        if page.newest_first {
            found.rev().take(page.limit).filter_map(hit).collect()
        } else {
            found.take(page.limit).filter_map(hit).collect()
        }
    }
}

impl Readers for Memory {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(Picture(self.kept().clone())))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        Ok(vec!["a store in memory forgets what it acknowledged".to_owned()])
    }

    fn close(&self) {}
}

/// The state at one moment.
struct Picture(Arc<Kept>);

impl Rows for Picture {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        Ok(self.0.stream(stream))
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        Ok(self.0.payloads.get(&(*stream, sequence)).cloned())
    }

    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.own.get(key).cloned())
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        Ok(self.0.keys(page))
    }
}

impl Snapshot for Picture {
    fn events(&self, stream: &StreamId, from: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let places = self.0.streams.get(stream).map(Vec::as_slice).unwrap_or_default();
        let skip = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(places.iter().skip(skip).take(limit).map(|at| self.0.log[*at].clone()).collect())
    }

    fn log(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(self.0.log.iter().skip(skip).take(limit).cloned().collect())
    }

    fn newest(&self) -> Result<u64, StoreError> {
        Ok(self.0.log.len() as u64)
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(self.0.rows.range((from, Bound::Unbounded)).take(limit).map(|(stream, _)| *stream).collect())
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        let kept = &self.0;
        Ok(Counts {
            streams: kept.rows.len() as u64,
            events: kept.log.len() as u64,
            keys: kept.keys.len() as u64,
            payloads: kept.payloads.len() as u64,
        })
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}
