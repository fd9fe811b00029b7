//! Stores that are broken on purpose: what passes between executor, backend
//! and readers can be changed on its way.

use onceseal_core::journal::{Key, Payload};
use onceseal_core::lock::Locks;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range};

use crate::backend::{Backend, Changes, Fault, Loader, Needs, Work};
use crate::error::StoreError;
use crate::raw::{Entry, Raw, RawKey, Wholes};
use crate::read::{Counts, Hit, Page, Readers, Rows, Snapshot, StoredEvent};

/// Keys and the streams they lead to.
pub type Found = Vec<(Vec<u8>, StreamId)>;

/// What changes between an executor and its backend; nothing, unless a method
/// says otherwise.
pub trait Tamper: Send {
    /// The time of a batch.
    fn now(&mut self, now: Timestamp) -> Timestamp {
        now
    }

    /// A row that was loaded.
    fn loaded(&mut self, _stream: &StreamId, loaded: Loaded) -> Loaded {
        loaded
    }

    /// What was found in a range.
    fn found(&mut self, _range: &Range, found: Found) -> Found {
        found
    }

    /// A text that was loaded.
    fn text(&mut self, _stream: &StreamId, _sequence: u64, text: Option<Payload>) -> Option<Payload> {
        text
    }

    /// What is to be saved; `None`: nothing.
    ///
    /// # Errors
    /// Saving fails, and nothing was recorded.
    fn saving(&mut self, changes: Changes) -> Result<Option<Changes>, StoreError> {
        Ok(Some(changes))
    }
}

/// The backend with what is changed.
#[must_use]
pub fn backend(backend: Box<dyn Backend>, tamper: impl Tamper + 'static) -> Box<dyn Backend> {
    Box::new(Tampered { backend, tamper: Box::new(tamper) })
}

struct Tampered {
    backend: Box<dyn Backend>,
    tamper: Box<dyn Tamper>,
}

impl Backend for Tampered {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let Tampered { backend, tamper } = self;
        backend.batch(&mut |loader| {
            let now = tamper.now(loader.now());
            let changes = work(&mut TamperedLoader { loader, tamper: tamper.as_mut(), now })?;
            changes.map_or(Ok(None), |changes| tamper.saving(changes))
        })
    }

    fn accept_clock(&mut self) {
        self.backend.accept_clock();
    }
}

struct TamperedLoader<'a> {
    loader: &'a mut dyn Loader,
    tamper: &'a mut dyn Tamper,
    now: Timestamp,
}

impl Loader for TamperedLoader<'_> {
    fn locks(&self) -> bool {
        self.loader.locks()
    }

    fn admit(&mut self, needs: &[Needs]) -> Result<Vec<bool>, StoreError> {
        let admitted = self.loader.admit(needs)?;
        self.now = self.tamper.now(self.loader.now());
        Ok(admitted)
    }

    fn more(&mut self, needs: &Needs) -> Result<Locks, StoreError> {
        self.loader.more(needs)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let loaded = self.loader.stream(stream)?;
        Ok(self.tamper.loaded(stream, loaded))
    }

    fn range(&mut self, range: &Range) -> Result<Found, StoreError> {
        let found = self.loader.range(range)?;
        Ok(self.tamper.found(range, found))
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        self.loader.event(key)
    }

    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.loader.own(key)
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let text = self.loader.payload(stream, sequence)?;
        Ok(self.tamper.text(stream, sequence, text))
    }
}

/// What changes between readers and whoever reads; nothing, unless a method
/// says otherwise.
pub trait Distort: Send + Sync {
    /// A row.
    ///
    /// # Errors
    /// Reading fails.
    fn stream(&self, _stream: &StreamId, loaded: Loaded) -> Result<Loaded, StoreError> {
        Ok(loaded)
    }

    /// Events of a stream.
    ///
    /// # Errors
    /// Reading fails.
    fn events(&self, events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(events)
    }

    /// Events of the log after a position.
    ///
    /// # Errors
    /// Reading fails.
    fn log(&self, _after: u64, events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(events)
    }

    /// The newest position.
    fn newest(&self, newest: u64) -> u64 {
        newest
    }

    /// A text.
    ///
    /// # Errors
    /// Reading fails.
    fn text(&self, text: Option<Payload>) -> Result<Option<Payload>, StoreError> {
        Ok(text)
    }

    /// A page that is asked for.
    fn asked(&self, page: &Page) -> Page {
        page.clone()
    }

    /// What was found for a page.
    ///
    /// # Errors
    /// Reading fails.
    fn hits(&self, _page: &Page, hits: Vec<Hit>) -> Result<Vec<Hit>, StoreError> {
        Ok(hits)
    }

    /// Streams, one after another.
    fn streams(&self, streams: Vec<StreamId>) -> Vec<StreamId> {
        streams
    }

    /// How much there is.
    fn counts(&self, counts: Counts) -> Counts {
        counts
    }
}

/// The readers with what is changed.
#[must_use]
pub fn readers(readers: Box<dyn Readers>, distort: impl Distort + 'static) -> Box<dyn Readers> {
    Box::new(Distorted { readers, distort: Box::new(distort) })
}

struct Distorted {
    readers: Box<dyn Readers>,
    distort: Box<dyn Distort>,
}

impl Readers for Distorted {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        let snapshot = self.readers.snapshot()?;
        Ok(Box::new(DistortedSnapshot { snapshot, distort: self.distort.as_ref() }))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        self.readers.unsafe_settings()
    }

    fn close(&self) {
        self.readers.close();
    }
}

struct DistortedSnapshot<'a> {
    snapshot: Box<dyn Snapshot + 'a>,
    distort: &'a dyn Distort,
}

/// An audit's view is not distorted: the suite reads by the other methods.
impl Raw for DistortedSnapshot<'_> {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        self.snapshot.owner()
    }

    fn ordinals(&self, after: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        self.snapshot.ordinals(after, limit)
    }

    fn wholes(&self, from: i64, to: i64, after: i64, limit: usize) -> Result<Wholes, StoreError> {
        self.snapshot.wholes(from, to, after, limit)
    }

    fn entries(&self, after: i64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.snapshot.entries(after, limit)
    }

    fn raw_keys(&self, after: Option<&RawKey>, limit: usize) -> Result<Vec<RawKey>, StoreError> {
        self.snapshot.raw_keys(after, limit)
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        self.snapshot.raw_key(key, ordinal)
    }
}

impl Rows for DistortedSnapshot<'_> {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        self.distort.stream(stream, self.snapshot.stream(stream)?)
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        self.distort.text(self.snapshot.payload(stream, sequence)?)
    }

    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.snapshot.own(key)
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        let asked = self.distort.asked(page);
        self.distort.hits(page, self.snapshot.keys(&asked)?)
    }
}

impl Snapshot for DistortedSnapshot<'_> {
    fn events(&self, stream: &StreamId, from: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.distort.events(self.snapshot.events(stream, from, limit)?)
    }

    fn log(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.distort.log(after, self.snapshot.log(after, limit)?)
    }

    fn newest(&self) -> Result<u64, StoreError> {
        Ok(self.distort.newest(self.snapshot.newest()?))
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        Ok(self.distort.streams(self.snapshot.streams(after, limit)?))
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        Ok(self.distort.counts(self.snapshot.counts()?))
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        self.snapshot.bytes()
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.snapshot.integrity()
    }

    fn unseen(&self) -> Result<Vec<String>, StoreError> {
        self.snapshot.unseen()
    }
}
