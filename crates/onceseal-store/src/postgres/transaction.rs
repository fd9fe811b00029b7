//! One transaction: what it locks and loads, and what it saves.

mod saving;
mod wanted;

pub(super) use saving::{Commit, Unsaved};

use std::collections::HashMap;

use futures_util::join;
use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload};
use onceseal_core::lock::{Hold, Locks};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range, Read};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::{Link, Parameter};
use super::lock::Numbers;
use super::schema;
use super::sequencer::{Left, facts};
use super::statements::BEGIN;
use crate::backend::{Loader, Needs};
use crate::columns::{self, Columns, integer};
use crate::error::StoreError;
use crate::raw::Misshapen;
use crate::time::BatchClock;
use wanted::{find_payloads, find_ranges, take_locks, wanted_payloads, wanted_ranges, wanted_streams};

/// Locks of one transaction at most, unless one command needs more: the server
/// has room for some thousands in all.
pub(super) const LOCKS: usize = 256;

/// What stays from one transaction of a lane to the next.
pub(super) struct Lane {
    pub(super) numbers: Numbers,
    pub(super) schema: i64,
    /// The version of the schema that it writes.
    pub(super) version: i64,
    pub(super) tenant: i32,
    pub(super) tenant_id: [u8; 16],
    pub(super) clock: BatchClock,
    /// Whether the first command's locks are waited for.
    pub(super) waits: bool,
    /// Locks of one transaction at most, of several commands: fewer where the server
    /// had no room for them.
    pub(super) room: usize,
    /// Numbers for new streams.
    pub(super) ids: std::ops::Range<i64>,
}

/// One transaction.
pub(super) struct Transaction<'a> {
    link: &'a Link,
    lane: &'a mut Lane,
    /// Whether the first command's locks are waited for this time.
    waits: bool,
    begun: bool,
    held: Locks,
    now: Timestamp,
    rows: HashMap<StreamId, (Option<i64>, Loaded)>,
    ranges: HashMap<Range, Vec<(Vec<u8>, StreamId)>>,
    payloads: HashMap<(StreamId, u64), Option<Payload>>,
    /// The newest position and what others have left, where this transaction holds
    /// the sequencer's lock.
    sequencer: Option<(i64, Left)>,
    /// Why it cannot go on.
    pub(super) failure: Option<Failure>,
}

/// The answers of one flight.
struct Loading {
    facts: Row,
    streams: Vec<Row>,
    ranges: Vec<Row>,
    payloads: Vec<Row>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(link: &'a Link, lane: &'a mut Lane, waits: bool) -> Transaction<'a> {
        Transaction {
            link,
            lane,
            waits,
            begun: false,
            held: Locks::default(),
            now: Timestamp::MIN,
            rows: HashMap::new(),
            ranges: HashMap::new(),
            payloads: HashMap::new(),
            sequencer: None,
            failure: None,
        }
    }

    /// Whether the server was told to begin.
    pub(super) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// What it holds.
    pub(super) const fn held(&self) -> &Locks {
        &self.held
    }

    /// The failure is kept, and the batch ends with it.
    fn kept<T>(&mut self, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| {
            self.failure = Some(failure);
            StoreError::new(Code::StoreBusy)
        })
    }

    /// Begins, takes or tries locks, and then, each seeing what was committed before,
    /// reads the clock and the rows. Says of each lock whether it is held.
    fn load(
        &mut self,
        locks: &[(i64, Hold)],
        waited: &[(i64, Hold)],
        reads: &[&Read],
    ) -> Result<Vec<bool>, Failure> {
        let tenant = self.lane.tenant;
        let streams = wanted_streams(reads);
        let (kinds, names): (Vec<i16>, Vec<&[u8]>) =
            streams.iter().map(|stream| (i16::from(stream.kind.number()), &stream.name[..])).unzip();
        let texts: Vec<(StreamId, u64)> = wanted_payloads(reads);
        let ranges = wanted_ranges(reads);
        let begins = !self.begun;
        self.begun = true;
        let link = self.link;
        // The sequencer's lock is tried whenever it is not held, and what others have left
        // is read again after every lock: it may have come before that.
        let is_first = begins || self.sequencer.is_none();
        let (mut tries, mut waits) = (locks.to_vec(), waited.to_vec());
        if is_first {
            tries.push((self.lane.numbers.sequencer(), Hold::Exclusive));
        }
        if begins {
            waits.insert(0, (self.lane.schema, Hold::Shared));
        }
        let (mut tried, loading) = link.wait(async {
            let of_streams: [Parameter<'_>; 3] =
                [(&tenant, Type::INT4), (&kinds, Type::INT2_ARRAY), (&names, Type::BYTEA_ARRAY)];
            let (begun, tried, facts, streams, ranges, payloads) = join!(
                async { if begins { link.run(BEGIN).await } else { Ok(()) } },
                take_locks(link, &waits, &tries),
                facts(link, tenant),
                link.rows_for(!kinds.is_empty(), &link.sql.streams, &of_streams),
                find_ranges(link, tenant, &ranges),
                find_payloads(link, tenant, &texts),
            );
            // The first failure is the one that the others follow from.
            begun?;
            let (tried, facts, streams) = (tried?, facts?, streams?);
            Ok((tried, Loading { facts, streams, ranges: ranges?, payloads: payloads? }))
        })?;
        let has_sequencer = if is_first { tried.pop() == Some(true) } else { true };
        self.take(begins, has_sequencer, &loading)?;
        for stream in streams {
            self.rows.entry(stream).or_insert((None, Loaded::Absent));
        }
        self.take_ranges(&ranges, &loading.ranges)?;
        for text in texts {
            self.payloads.entry(text).or_insert(None);
        }
        Ok(tried)
    }

    fn take(&mut self, begins: bool, has_sequencer: bool, loading: &Loading) -> Result<(), Failure> {
        let facts = &loading.facts;
        if begins {
            schema::check_version(integer(facts, 1, "schema_migrations.id")?, self.lane.version)?;
            if facts.bytes(2) != Some(&self.lane.tenant_id[..]) {
                let what = "its tenant is not the one that was opened; open it anew";
                return Err(StoreError::with(Code::StoreForeign, what).into());
            }
            self.now = self.lane.clock.read_of(integer(facts, 0, "clock")?)?;
        }
        if has_sequencer {
            let newest = integer(facts, 3, "log.position")?;
            self.sequencer = Some((newest, Left::of(facts)?));
        }
        for row in &loading.streams {
            let stream = columns::stream_id(row, 0, 1)?;
            let id = integer(row, 2, "streams.id")?;
            self.rows.insert(stream, (Some(id), columns::loaded(stream.kind, row, 3)));
        }
        for row in &loading.payloads {
            let stream = columns::stream_id(row, 0, 1)?;
            let sequence = integer(row, 2, "payloads.sequence")?.unsigned_abs();
            let payload = columns::payload(row, 3, 4)?;
            self.payloads.insert((stream, sequence), payload);
        }
        Ok(())
    }

    fn take_ranges(&mut self, asked: &[&Range], found: &[Row]) -> Result<(), Failure> {
        let mut hits: Vec<Vec<(Vec<u8>, StreamId)>> = vec![Vec::new(); asked.len()];
        for row in found {
            // Counted from 1.
            let n = usize::try_from(integer(row, 0, "n")? - 1).unwrap_or(usize::MAX);
            let key = row.bytes(1).ok_or(Misshapen("keys.key"))?.to_owned();
            let stream = columns::stream_id(row, 2, 3)?;
            hits.get_mut(n).ok_or(Misshapen("n"))?.push((key, stream));
        }
        for (range, hits) in asked.iter().zip(hits) {
            self.ranges.insert((*range).clone(), hits);
        }
        Ok(())
    }

    /// As many of the commands as have room, with the locks of all of them.
    fn fitting(needs: &[Needs], room: usize) -> (usize, Locks) {
        let mut all = Locks::default();
        for (n, needs) in needs.iter().enumerate() {
            if n > 0 && all.len() + needs.locks.beyond(&all).len() > room {
                return (n, all);
            }
            all.join(&needs.locks);
        }
        (needs.len(), all)
    }

    fn admitted(&mut self, needs: &[Needs]) -> Result<Vec<bool>, Failure> {
        let (fit, all) = Transaction::fitting(needs, self.lane.room);
        let needs = &needs[..fit];
        let (waited, rest) = match needs.first() {
            Some(first) if self.waits => (first.locks.clone(), all.beyond(&first.locks)),
            _ => (Locks::default(), all),
        };
        let (waited_numbers, numbers) = (self.lane.numbers.sorted(&waited), self.lane.numbers.sorted(&rest));
        let reads: Vec<&Read> = needs.iter().flat_map(|needs| &needs.reads).collect();
        let granted = self.load(&numbers, &waited_numbers, &reads)?;
        let granted: HashMap<i64, bool> = numbers.iter().map(|(number, _)| *number).zip(granted).collect();
        self.held.join(&waited);
        for (lock, hold) in rest.iter() {
            if granted.get(&self.lane.numbers.of(lock)) == Some(&true) {
                self.held.add(lock.clone(), hold);
            }
        }
        Ok(needs.iter().map(|needs| needs.locks.beyond(&self.held).is_empty()).collect())
    }

    fn found_more(&mut self, needs: &Needs) -> Result<Locks, Failure> {
        let missing = needs.locks.beyond(&self.held);
        let reads: Vec<&Read> = needs.reads.iter().collect();
        if missing.is_empty() && reads.iter().all(|read| self.has(read)) {
            return Ok(Locks::default());
        }
        let numbers = self.lane.numbers.sorted(&missing);
        let granted = self.load(&numbers, &[], &reads)?;
        let granted: HashMap<i64, bool> = numbers.iter().map(|(number, _)| *number).zip(granted).collect();
        let mut denied = Locks::default();
        for (lock, hold) in missing.iter() {
            if granted.get(&self.lane.numbers.of(lock)) == Some(&true) {
                self.held.add(lock.clone(), hold);
            } else {
                denied.add(lock.clone(), hold);
            }
        }
        Ok(denied)
    }

    fn has(&self, read: &Read) -> bool {
        match read {
            Read::Stream(stream) => self.rows.contains_key(stream),
            Read::Range(range) => self.ranges.contains_key(range),
            Read::Payload(stream, sequence) => self.payloads.contains_key(&(*stream, *sequence)),
            Read::Policy(_) | Read::Tool(_) | Read::Definition(_) => true,
        }
    }

    /// One query on its own.
    fn query(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<Row>, StoreError> {
        let found = self.link.wait(self.link.rows(sql, parameters));
        Ok(self.kept(found)?.into_iter().next())
    }
}

impl Loader for Transaction<'_> {
    fn locks(&self) -> bool {
        true
    }

    fn admit(&mut self, needs: &[Needs]) -> Result<Vec<bool>, StoreError> {
        let admitted = self.admitted(needs);
        self.kept(admitted)
    }

    fn more(&mut self, needs: &Needs) -> Result<Locks, StoreError> {
        let denied = self.found_more(needs);
        self.kept(denied)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        // What was not asked for with its lock was not looked at under it.
        let unlocked = || StoreError::with(Code::Internal, "a stream that was not locked");
        self.rows.get(stream).map(|(_, loaded)| loaded.clone()).ok_or_else(unlocked)
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        let unlocked = || StoreError::with(Code::Internal, "a range that was not locked");
        self.ranges.get(range).cloned().ok_or_else(unlocked)
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        let (tenant, index) = (self.lane.tenant, i16::from(key.index.number()));
        let link = self.link;
        let parameters: [Parameter<'_>; 3] =
            [(&tenant, Type::INT4), (&index, Type::INT2), (&key.bytes, Type::BYTEA)];
        let Some(row) = self.query(&link.sql.event_of_key, &parameters)? else { return Ok(None) };
        let sequence = integer(&row, 2, "keys.sequence")?.unsigned_abs();
        Ok(Some((columns::stream_id(&row, 0, 1)?, sequence)))
    }

    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let (tenant, link) = (self.lane.tenant, self.link);
        let row = self.query(&link.sql.own, &[(&tenant, Type::INT4), (&key, Type::TEXT)])?;
        Ok(row.and_then(|row| row.bytes(0).map(<[u8]>::to_vec)))
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        if let Some(payload) = self.payloads.get(&(*stream, sequence)) {
            return Ok(payload.clone());
        }
        let (tenant, link) = (self.lane.tenant, self.link);
        let found = link.wait(find_payloads(link, tenant, &[(*stream, sequence)]));
        match self.kept(found)?.first() {
            Some(row) => Ok(columns::payload(row, 3, 4)?),
            None => Ok(None),
        }
    }
}
