//! What a transaction saves, and its COMMIT: one round trip.

use std::collections::HashMap;

use futures_util::join;
use onceseal_core::code::Code;
use onceseal_core::journal::{Index, Key, Recorded};
use onceseal_core::pack::Pack;
use onceseal_core::stream::StreamId;
use tokio_postgres::types::{ToSql, Type};

use super::Transaction;
use crate::backend::{Changes, RowChange};
use crate::error::StoreError;
use crate::postgres::connect::Committed;
use crate::postgres::failure::Failure;
use crate::postgres::link::{Link, Parameter};
use crate::postgres::sequencer::{Left, Place, append, packed};

/// Streams are numbered by so many: what the sequence of blocks gives is the
/// number of a block.
pub(in crate::postgres) const BLOCK: i64 = 1_000;

/// Where saving failed.
pub(in crate::postgres) enum Unsaved {
    /// Before COMMIT was sent, or with an answer that means nothing happened.
    Before(Failure),
    /// After COMMIT was sent, without its answer. Nothing that another sees would tell
    /// where no event was to be recorded.
    Unknown { failure: Failure, commit: Option<Box<Commit>> },
}

/// A commit whose answer is missing: whether its first event is there tells what
/// became of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct Commit {
    pub(in crate::postgres) stream: i64,
    pub(in crate::postgres) sequence: i64,
    pub(in crate::postgres) command: [u8; 16],
    pub(in crate::postgres) last: Committed,
}

/// What a commit came to.
pub(in crate::postgres) struct Saved {
    /// Its last event.
    pub(in crate::postgres) last: Option<Committed>,
    /// Whether its events have their place in the log.
    pub(in crate::postgres) is_sequenced: bool,
}

/// Columns of what is to be saved.
#[derive(Default)]
struct New<'c> {
    made: Streams,
    moved: Streams,
    events: Events<'c>,
    payloads: Payloads<'c>,
    keys: Keys,
    gone: Keys,
}

#[derive(Default)]
struct Streams {
    ids: Vec<i64>,
    /// The sequence before; of those that are new nothing.
    before: Vec<i64>,
    kinds: Vec<i16>,
    names: Vec<Vec<u8>>,
    sequences: Vec<i64>,
    heads: Vec<Vec<u8>>,
    open: Vec<Vec<u8>>,
    private: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Events<'c> {
    streams: Vec<i64>,
    sequences: Vec<i64>,
    kinds: Vec<i16>,
    at: Vec<i64>,
    commands: Vec<&'c [u8]>,
    part: Vec<i32>,
    of: Vec<i32>,
    refs: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    salts: Vec<Option<&'c [u8]>>,
    seals: Vec<Option<&'c [u8]>>,
    hashes: Vec<&'c [u8]>,
}

#[derive(Default)]
struct Payloads<'c> {
    streams: Vec<i64>,
    sequences: Vec<i64>,
    salts: Vec<&'c [u8]>,
    texts: Vec<&'c [u8]>,
}

#[derive(Default)]
struct Keys {
    indexes: Vec<i16>,
    keys: Vec<Vec<u8>>,
    streams: Vec<i64>,
    sequences: Vec<i64>,
}

impl Keys {
    fn forget(&mut self, key: &Key, stream: i64) {
        let is_it = |n: &usize| {
            self.streams[*n] == stream
                && self.indexes[*n] == i16::from(key.index.number())
                && self.keys[*n] == key.bytes
        };
        if let Some(n) = (0..self.streams.len()).find(is_it) {
            self.indexes.swap_remove(n);
            self.keys.swap_remove(n);
            self.streams.swap_remove(n);
            self.sequences.swap_remove(n);
        }
    }

    fn push(&mut self, key: Key, stream: i64, sequence: i64) {
        self.indexes.push(i16::from(key.index.number()));
        self.keys.push(key.bytes);
        self.streams.push(stream);
        self.sequences.push(sequence);
    }
}

fn integer(n: u64) -> Result<i64, StoreError> {
    i64::try_from(n).map_err(|_| StoreError::new(Code::Internal))
}

impl Transaction<'_> {
    /// Saves everything and commits. It is committed if every statement changed what
    /// it should, the last one before COMMIT too, and COMMIT was answered: an
    /// aborted transaction answers each of them with an error.
    pub(in crate::postgres) fn save(&mut self, changes: &Changes) -> Result<Saved, Unsaved> {
        self.reserve(changes).map_err(Unsaved::Before)?;
        let new = self.columns(changes).map_err(|error| Unsaved::Before(error.into()))?;
        let places: Vec<Place> = (0..new.events.streams.len())
            .map(|n| Place { stream: new.events.streams[n], sequence: new.events.sequences[n] })
            .collect();
        let nothing = Left::default();
        let (newest, left) = self.sequencer.as_ref().map_or((0, &nothing), |(newest, left)| (*newest, left));
        let is_sequenced = self.sequencer.is_some() && left.is_all;
        let mut appended = left.places.clone();
        let mut unsequenced = Vec::new();
        match is_sequenced {
            true => appended.extend(&places),
            false => unsequenced = packed(&places),
        }
        let (link, tenant) = (self.link, self.lane.tenant);
        let commit = new.commit(changes).map(Box::new);
        let unknown = |failure: Failure| Unsaved::Unknown { failure, commit: commit.clone() };
        let saving = async {
            let saved = join!(
                insert_streams(link, tenant, &new.made),
                update_streams(link, &new.moved),
                insert_events(link, &new.events),
                insert_payloads(link, &new.payloads),
                // Taken out first: the key of a text that is active again leads to its new event.
                delete_keys(link, tenant, &new.gone),
                insert_keys(link, tenant, &new.keys),
                left.delete(link, tenant),
                insert_unsequenced(link, tenant, &unsequenced),
                own_rows(link, tenant, changes),
                append(link, tenant, newest, &appended),
            );
            let results =
                [saved.0, saved.1, saved.2, saved.3, saved.4, saved.5, saved.6, saved.7, saved.8, saved.9];
            results.into_iter().collect::<Result<(), Failure>>()
        };
        crate::fault::reach("before_commit").map_err(|error| Unsaved::Before(error.into()))?;
        let (saved, committed) =
            link.wait(async { Ok(join!(saving, link.run("COMMIT"))) }).map_err(unknown)?;
        match (saved, committed) {
            (Ok(()), Ok(())) => {}
            // An error that was answered aborted the transaction, whatever COMMIT said.
            (Err(failure), _) if !matches!(failure, Failure::Lost(_)) => {
                return Err(Unsaved::Before(failure));
            }
            (Err(failure), _) | (Ok(()), Err(failure)) => return Err(unknown(failure)),
        }
        crate::fault::reach("after_commit").map_err(|error| unknown(Failure::Lost(error)))?;
        Ok(Saved { last: commit.as_ref().map(|commit| commit.last), is_sequenced })
    }

    /// Numbers for the streams that are new.
    fn reserve(&mut self, changes: &Changes) -> Result<(), Failure> {
        let new = changes.rows.iter().filter(|change| change.before.is_none()).count() as i64;
        if self.lane.ids.end - self.lane.ids.start >= new {
            return Ok(());
        }
        // What is left of the last block stays unused: the order of numbers is the order
        // in which streams were made.
        let blocks = usize::try_from(new.div_euclid(BLOCK) + 1).unwrap_or(usize::MAX);
        let link = self.link;
        let first = link.wait(async {
            let mut first = None;
            let mut next = None;
            for _ in 0..blocks {
                let rows = link.rows(&link.sql.block, &[]).await?;
                let block: i64 = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
                // Blocks have to follow on each other; where another took one in between,
                // the count begins anew.
                if next != Some(block) {
                    first = Some(block);
                }
                next = Some(block + 1);
            }
            Ok(first.zip(next))
        })?;
        let Some((first, next)) = first else { return Err(Failure::Again("no numbers")) };
        self.lane.ids = first * BLOCK..next * BLOCK;
        if self.lane.ids.end - self.lane.ids.start < new {
            return Err(Failure::Again("another took the numbers"));
        }
        Ok(())
    }

    fn columns<'c>(&mut self, changes: &'c Changes) -> Result<New<'c>, StoreError> {
        let mut new = New::default();
        let mut ids: HashMap<StreamId, i64> = HashMap::new();
        for change in &changes.rows {
            let id = self.row(change, &mut new)?;
            ids.insert(change.stream, id);
        }
        let id = |stream: &StreamId| ids.get(stream).copied().ok_or_else(|| StoreError::new(Code::Internal));
        for event in &changes.events {
            new.event(event, id(&event.stamp.stream)?)?;
        }
        for change in &changes.rows {
            let (gone, added) = change.keys();
            let id = id(&change.stream)?;
            gone.into_iter().for_each(|key| new.gone.push(key, id, 0));
            added.into_iter().for_each(|key| new.keys.push(key, id, 0));
        }
        Ok(new)
    }

    fn row(&mut self, change: &RowChange, new: &mut New<'_>) -> Result<i64, StoreError> {
        let known = self.rows.get(&change.stream).and_then(|(id, _)| *id);
        let (id, before, streams) = match (&change.before, known) {
            (Some(before), Some(id)) => (id, integer(before.head.sequence)?, &mut new.moved),
            (Some(_), None) => return Err(StoreError::new(Code::Internal)),
            // Two that made the same stream at once meet in its unique name.
            (None, _) => {
                let id = self.lane.ids.next().ok_or_else(|| StoreError::new(Code::Internal))?;
                (id, 0, &mut new.made)
            }
        };
        let (open, private) = change.after.row.packed();
        streams.ids.push(id);
        streams.before.push(before);
        streams.kinds.push(i16::from(change.stream.kind.number()));
        streams.names.push(change.stream.name.to_vec());
        streams.sequences.push(integer(change.after.head.sequence)?);
        streams.heads.push(change.after.head.hash.0.to_vec());
        streams.open.push(open);
        streams.private.push(private);
        Ok(id)
    }
}

impl<'c> New<'c> {
    /// What tells whether it was committed.
    fn commit(&self, changes: &Changes) -> Option<Commit> {
        let Events { streams, sequences, .. } = &self.events;
        let (first, last) = (changes.events.first()?, changes.events.last()?);
        let last = Committed { stream: *streams.last()?, sequence: *sequences.last()?, hash: last.hash };
        let command = first.stamp.command;
        Some(Commit { stream: *streams.first()?, sequence: *sequences.first()?, command, last })
    }

    fn event(&mut self, event: &'c Recorded, stream: i64) -> Result<(), StoreError> {
        let stamp = &event.stamp;
        let sequence = integer(stamp.sequence)?;
        let small = |n: u32| i32::try_from(n).map_err(|_| StoreError::new(Code::Internal));
        let (mut refs, mut data, mut sealed) = (Vec::new(), Vec::new(), Vec::new());
        event.event.refs.pack(&mut refs);
        event.event.body.pack_data(&mut data);
        event.event.body.pack_sealed(&mut sealed);
        let events = &mut self.events;
        events.streams.push(stream);
        events.sequences.push(sequence);
        events.kinds.push(i16::from(event.event.body.kind().number()));
        events.at.push(stamp.at.micros());
        events.commands.push(&stamp.command);
        events.part.push(small(stamp.part)?);
        events.of.push(small(stamp.of)?);
        events.refs.push(refs);
        events.data.push(data);
        events.sealed.push(sealed);
        events.salts.push(event.sealed.as_ref().map(|(salt, _)| &salt[..]));
        events.seals.push(event.sealed.as_ref().map(|(_, seal)| &seal.0[..]));
        events.hashes.push(&event.hash.0);
        if let Some(payload) = &event.payload {
            self.payloads.streams.push(stream);
            self.payloads.sequences.push(sequence);
            self.payloads.salts.push(&payload.salt);
            self.payloads.texts.push(payload.text.as_bytes());
        }
        for key in event.event.keys() {
            // A text that is active again is found by its newest event.
            if key.index != Index::Receipt {
                self.keys.forget(&key, stream);
                self.gone.push(key.clone(), stream, 0);
            }
            self.keys.push(key, stream, sequence);
        }
        Ok(())
    }
}

async fn insert_streams(link: &Link, tenant: i32, new: &Streams) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 8] = [
        (&tenant, Type::INT4),
        (&new.ids, Type::INT8_ARRAY),
        (&new.kinds, Type::INT2_ARRAY),
        (&new.names, Type::BYTEA_ARRAY),
        (&new.sequences, Type::INT8_ARRAY),
        (&new.heads, Type::BYTEA_ARRAY),
        (&new.open, Type::BYTEA_ARRAY),
        (&new.private, Type::BYTEA_ARRAY),
    ];
    link.change(new.ids.len(), &link.sql.insert_streams, &parameters).await
}

async fn update_streams(link: &Link, new: &Streams) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 6] = [
        (&new.ids, Type::INT8_ARRAY),
        (&new.before, Type::INT8_ARRAY),
        (&new.sequences, Type::INT8_ARRAY),
        (&new.heads, Type::BYTEA_ARRAY),
        (&new.open, Type::BYTEA_ARRAY),
        (&new.private, Type::BYTEA_ARRAY),
    ];
    link.rows_for(!new.ids.is_empty(), &link.sql.update_streams, &parameters).await.map(drop)
}

async fn insert_events(link: &Link, new: &Events<'_>) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 13] = [
        (&new.streams, Type::INT8_ARRAY),
        (&new.sequences, Type::INT8_ARRAY),
        (&new.kinds, Type::INT2_ARRAY),
        (&new.at, Type::INT8_ARRAY),
        (&new.commands, Type::BYTEA_ARRAY),
        (&new.part, Type::INT4_ARRAY),
        (&new.of, Type::INT4_ARRAY),
        (&new.refs, Type::BYTEA_ARRAY),
        (&new.data, Type::BYTEA_ARRAY),
        (&new.sealed, Type::BYTEA_ARRAY),
        (&new.salts, Type::BYTEA_ARRAY),
        (&new.seals, Type::BYTEA_ARRAY),
        (&new.hashes, Type::BYTEA_ARRAY),
    ];
    link.change(new.streams.len(), &link.sql.insert_events, &parameters).await
}

async fn insert_payloads(link: &Link, new: &Payloads<'_>) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 4] = [
        (&new.streams, Type::INT8_ARRAY),
        (&new.sequences, Type::INT8_ARRAY),
        (&new.salts, Type::BYTEA_ARRAY),
        (&new.texts, Type::BYTEA_ARRAY),
    ];
    link.change(new.streams.len(), &link.sql.insert_payloads, &parameters).await
}

async fn delete_keys(link: &Link, tenant: i32, gone: &Keys) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 4] = [
        (&tenant, Type::INT4),
        (&gone.indexes, Type::INT2_ARRAY),
        (&gone.keys, Type::BYTEA_ARRAY),
        (&gone.streams, Type::INT8_ARRAY),
    ];
    // One that is missing is missed by an audit, and in nobody's way.
    link.rows_for(!gone.streams.is_empty(), &link.sql.delete_keys, &parameters).await.map(drop)
}

async fn insert_keys(link: &Link, tenant: i32, new: &Keys) -> Result<(), Failure> {
    let parameters: [Parameter<'_>; 5] = [
        (&tenant, Type::INT4),
        (&new.indexes, Type::INT2_ARRAY),
        (&new.keys, Type::BYTEA_ARRAY),
        (&new.streams, Type::INT8_ARRAY),
        (&new.sequences, Type::INT8_ARRAY),
    ];
    link.change(new.streams.len(), &link.sql.insert_keys, &parameters).await
}

async fn insert_unsequenced(link: &Link, tenant: i32, events: &[u8]) -> Result<(), Failure> {
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&tenant, Type::INT4), (&events, Type::BYTEA)];
    link.change(usize::from(!events.is_empty()), &link.sql.insert_unsequenced, &parameters).await
}

async fn own_rows(link: &Link, tenant: i32, changes: &Changes) -> Result<(), Failure> {
    let mut gone: Vec<&str> = Vec::new();
    let (mut keys, mut values): (Vec<&str>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for (key, value) in &changes.own {
        match value {
            Some(value) => {
                keys.push(key);
                values.push(value);
            }
            None => gone.push(key),
        }
    }
    let deleting: [Parameter<'_>; 2] = [(&tenant, Type::INT4), (&gone, Type::TEXT_ARRAY)];
    let putting: [Parameter<'_>; 3] =
        [(&tenant, Type::INT4), (&keys, Type::TEXT_ARRAY), (&values, Type::BYTEA_ARRAY)];
    let (deleted, put) = join!(
        // Taking out what was not there changes nothing.
        link.rows_for(!gone.is_empty(), &link.sql.delete_own, &deleting),
        link.change(keys.len(), &link.sql.put_own, &putting),
    );
    deleted?;
    put
}
