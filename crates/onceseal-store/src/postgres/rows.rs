//! Rows on their way to the server: by columns, all in one statement.

use onceseal_core::code::Code;
use onceseal_core::journal::{Index, Key, Recorded};
use onceseal_core::pack::Pack;
use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::{Link, Parameter};
use super::sequencer::Place;
use crate::error::StoreError;

/// Everything that one statement saves.
#[derive(Default)]
pub(super) struct Rows<'c> {
    /// Streams that are new.
    pub(super) made: Streams,
    /// Streams that changed.
    pub(super) moved: Streams,
    pub(super) events: Events<'c>,
    pub(super) payloads: Payloads<'c>,
    pub(super) keys: Keys,
    /// Keys that are no more; taken out before new ones are put in.
    pub(super) gone: Keys,
    /// What is appended to the log, behind this position.
    pub(super) log: Vec<Place>,
    pub(super) newest: i64,
    /// Commits whose events are appended: they wait no more.
    pub(super) sequenced: Vec<i64>,
    /// What is left for the sequencer.
    pub(super) unsequenced: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Streams {
    pub(super) ids: Vec<i64>,
    /// The sequence before; of those that are new nothing.
    pub(super) before: Vec<i64>,
    pub(super) kinds: Vec<i16>,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) sequences: Vec<i64>,
    pub(super) heads: Vec<Vec<u8>>,
    pub(super) open: Vec<Vec<u8>>,
    pub(super) private: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(super) struct Events<'c> {
    pub(super) streams: Vec<i64>,
    pub(super) sequences: Vec<i64>,
    pub(super) kinds: Vec<i16>,
    pub(super) at: Vec<i64>,
    pub(super) commands: Vec<&'c [u8]>,
    pub(super) part: Vec<i32>,
    pub(super) of: Vec<i32>,
    pub(super) refs: Vec<Vec<u8>>,
    pub(super) data: Vec<Vec<u8>>,
    pub(super) sealed: Vec<Vec<u8>>,
    pub(super) salts: Vec<Option<&'c [u8]>>,
    pub(super) seals: Vec<Option<&'c [u8]>>,
    pub(super) hashes: Vec<&'c [u8]>,
}

#[derive(Default)]
pub(super) struct Payloads<'c> {
    pub(super) streams: Vec<i64>,
    pub(super) sequences: Vec<i64>,
    pub(super) salts: Vec<&'c [u8]>,
    pub(super) texts: Vec<&'c [u8]>,
}

#[derive(Default)]
pub(super) struct Keys {
    pub(super) indexes: Vec<i16>,
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) streams: Vec<i64>,
    pub(super) sequences: Vec<i64>,
}

impl Keys {
    /// Not this one after all.
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

    /// One more.
    pub(super) fn push(&mut self, key: Key, stream: i64, sequence: i64) {
        self.indexes.push(i16::from(key.index.number()));
        self.keys.push(key.bytes);
        self.streams.push(stream);
        self.sequences.push(sequence);
    }
}

/// A number as the server keeps it.
pub(super) fn integer(n: u64) -> Result<i64, StoreError> {
    i64::try_from(n).map_err(|_| StoreError::new(Code::Internal))
}

impl<'c> Rows<'c> {
    /// An event of the stream of this number, with its text and keys.
    pub(super) fn event(&mut self, event: &'c Recorded, stream: i64) -> Result<(), StoreError> {
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

    /// Saves them; nothing is sent where there are none. It fails where a row is not as
    /// it was read.
    pub(super) async fn save(&self, link: &Link, tenant: i32) -> Result<(), Failure> {
        let Rows { made, moved, events, payloads, keys, gone, newest, sequenced, unsequenced, .. } = self;
        let (log_streams, log_sequences): (Vec<i64>, Vec<i64>) =
            self.log.iter().map(|place| (place.stream, place.sequence)).unzip();
        let parameters: [Parameter<'_>; 43] = [
            (&tenant, Type::INT4),
            (&made.ids, Type::INT8_ARRAY),
            (&made.kinds, Type::INT2_ARRAY),
            (&made.names, Type::BYTEA_ARRAY),
            (&made.sequences, Type::INT8_ARRAY),
            (&made.heads, Type::BYTEA_ARRAY),
            (&made.open, Type::BYTEA_ARRAY),
            (&made.private, Type::BYTEA_ARRAY),
            (&moved.ids, Type::INT8_ARRAY),
            (&moved.before, Type::INT8_ARRAY),
            (&moved.sequences, Type::INT8_ARRAY),
            (&moved.heads, Type::BYTEA_ARRAY),
            (&moved.open, Type::BYTEA_ARRAY),
            (&moved.private, Type::BYTEA_ARRAY),
            (&events.streams, Type::INT8_ARRAY),
            (&events.sequences, Type::INT8_ARRAY),
            (&events.kinds, Type::INT2_ARRAY),
            (&events.at, Type::INT8_ARRAY),
            (&events.commands, Type::BYTEA_ARRAY),
            (&events.part, Type::INT4_ARRAY),
            (&events.of, Type::INT4_ARRAY),
            (&events.refs, Type::BYTEA_ARRAY),
            (&events.data, Type::BYTEA_ARRAY),
            (&events.sealed, Type::BYTEA_ARRAY),
            (&events.salts, Type::BYTEA_ARRAY),
            (&events.seals, Type::BYTEA_ARRAY),
            (&events.hashes, Type::BYTEA_ARRAY),
            (&payloads.streams, Type::INT8_ARRAY),
            (&payloads.sequences, Type::INT8_ARRAY),
            (&payloads.salts, Type::BYTEA_ARRAY),
            (&payloads.texts, Type::BYTEA_ARRAY),
            (&gone.indexes, Type::INT2_ARRAY),
            (&gone.keys, Type::BYTEA_ARRAY),
            (&gone.streams, Type::INT8_ARRAY),
            (&keys.indexes, Type::INT2_ARRAY),
            (&keys.keys, Type::BYTEA_ARRAY),
            (&keys.streams, Type::INT8_ARRAY),
            (&keys.sequences, Type::INT8_ARRAY),
            (sequenced, Type::INT8_ARRAY),
            (newest, Type::INT8),
            (&log_streams, Type::INT8_ARRAY),
            (&log_sequences, Type::INT8_ARRAY),
            (unsequenced, Type::BYTEA),
        ];
        link.rows(&link.sql.save, &parameters).await.map(drop)
    }
}
