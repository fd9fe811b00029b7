//! Rows without history, of leases and of the run.
//!
//! The clock stands still: a tick moves the moments in the rows instead, and
//! moments so far back that they make no difference are made equal. So two
//! histories that permit the same are one state.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use onceseal_core::hash::Hash as Sha;
use onceseal_core::journal::{Head, Key, Payload, Row, Stored};
use onceseal_core::lease::LeaseRow;
use onceseal_core::policy::ActivePolicy;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::Tool;
use onceseal_core::view::{Loaded, Range};

use crate::executor::Shelf;

/// One step of the clock.
pub(crate) const TICK: Span = Span::minutes(1);

/// 2026-01-01T12:00:00Z, where the clock stands.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_micros(1_767_268_800_000_000).expect("a moment")
}

/// Ticks until a moment.
pub(crate) fn ticks(at: Timestamp) -> i8 {
    let left = at.micros() - now().micros();
    i8::try_from(left.div_euclid(TICK.as_micros()).clamp(-100, 100)).expect("few")
}

/// So many ticks from now.
pub(crate) fn moment(ticks: i8) -> Timestamp {
    let length = TICK.times(u32::from(ticks.unsigned_abs()));
    if ticks < 0 { now() - length } else { now() + length }
}

/// A row with what is found by it, and a digest of it.
#[derive(Debug, Clone)]
struct Cell {
    stored: Arc<Stored>,
    keys: Arc<[Key]>,
    digest: u64,
}

/// All rows, and the outcomes beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    cells: BTreeMap<StreamId, Cell>,
    texts: BTreeMap<(StreamId, u64), String>,
}

impl Hash for Ledger {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (stream, cell) in &self.cells {
            stream.hash(state);
            cell.digest.hash(state);
        }
        self.texts.hash(state);
    }
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Ledger) -> bool {
        self.texts == other.texts
            && self.cells.len() == other.cells.len()
            && self.cells.iter().zip(&other.cells).all(|(a, b)| a.0 == b.0 && a.1.digest == b.1.digest)
    }
}

impl Ledger {
    pub(crate) fn get(&self, stream: &StreamId) -> Option<&Stored> {
        self.cells.get(stream).map(|cell| &*cell.stored)
    }

    pub(crate) fn put(&mut self, stream: StreamId, row: Row) {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        let keys = row.keys().into();
        let head = Head { sequence: 1, hash: Sha([0; 32]) };
        let stored = Arc::new(Stored { head, row });
        self.cells.insert(stream, Cell { stored, keys, digest: hasher.finish() });
    }

    pub(crate) fn keep(&mut self, stream: StreamId, sequence: u64, text: String) {
        self.texts.insert((stream, sequence), text);
    }

    pub(crate) fn text(&self, stream: &StreamId, sequence: u64) -> Option<&str> {
        self.texts.get(&(*stream, sequence)).map(String::as_str)
    }

    pub(crate) fn lease(&self, stream: &StreamId) -> Option<&LeaseRow> {
        match &self.get(stream)?.row {
            Row::Lease(row) => Some(row),
            _ => None,
        }
    }

    /// Moves the clock by so many ticks, where it can still go back by as many.
    pub(crate) fn move_clock(&mut self, by: i8, back: u8) {
        let oldest = moment(-i8::try_from(back).expect("few"));
        let shifted = |at: Timestamp| if by < 0 { at + TICK } else { at - TICK };
        for (stream, cell) in std::mem::take(&mut self.cells) {
            let mut row = cell.stored.row.clone();
            match &mut row {
                Row::Lease(row) => {
                    for holder in &mut row.holders {
                        // What ended before that has ended for ever.
                        holder.until = shifted(holder.until).max(oldest - TICK);
                    }
                    row.updated_at = shifted(row.updated_at).max(oldest);
                    row.created_at = now();
                }
                Row::Run(row) => {
                    row.updated_at = shifted(row.updated_at).max(oldest);
                    row.created_at = now();
                }
                Row::Handoff(row) => {
                    row.updated_at = shifted(row.updated_at).max(oldest);
                    row.created_at = now();
                }
                _ => {}
            }
            self.put(stream, row);
        }
    }
}

impl Shelf for Ledger {
    fn loaded(&self, stream: &StreamId) -> Loaded {
        self.cells.get(stream).map_or(Loaded::Absent, |cell| Loaded::Row(cell.stored.clone()))
    }

    fn found(&self, range: &Range) -> Vec<(Vec<u8>, StreamId)> {
        let inside = |bytes: &[u8]| bytes >= &*range.from && bytes <= &*range.to;
        let keys =
            self.cells.iter().flat_map(|(stream, cell)| cell.keys.iter().map(move |key| (key, stream)));
        let found = keys.filter(|(key, _)| key.index == range.index && inside(&key.bytes));
        let mut found: Vec<_> = found.map(|(key, stream)| (key.bytes.clone(), *stream)).collect();
        found.sort();
        found.truncate(range.limit);
        found
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Option<Payload> {
        let text = self.text(stream, sequence)?.to_owned();
        Some(Payload { salt: [0; 32], text })
    }

    fn policy(&self, _: Sha) -> Option<Arc<ActivePolicy>> {
        None
    }

    fn tool(&self, _: Sha) -> Option<Arc<Tool>> {
        None
    }

    fn definition(&self, _: Sha) -> Option<Arc<Definition>> {
        None
    }
}
