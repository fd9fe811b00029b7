//! Columns to values and back. What does not decode is reported, never guessed.

use std::sync::Arc;

use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Event, Head, Kind, Row, Stamp, Stored};
use onceseal_core::pack::{Corrupt, Pack};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;
use rusqlite::Row as SqlRow;

use crate::raw::Misshapen;
use crate::read::StoredEvent;

/// A stream's row from `sequence, head, open, private` at the first columns.
pub(super) fn loaded(kind: StreamKind, row: &SqlRow<'_>, first: usize) -> Loaded {
    let stored = || {
        let sequence = count(row, first, "streams.sequence")?;
        let head = Head { sequence, hash: hash(row, first + 1, "streams.head")? };
        let (open, private) =
            (blob(row, first + 2, "streams.open")?, blob(row, first + 3, "streams.private")?);
        let row = Row::unpack(kind, open, private).map_err(|Corrupt(what)| Misshapen(what))?;
        Ok::<_, Misshapen>(Stored { head, row })
    };
    stored().map_or(Loaded::Unreadable, |stored| Loaded::Row(Arc::new(stored)))
}

/// The stream that `kind` and `name` at these columns name.
pub(super) fn stream_id(row: &SqlRow<'_>, kind: usize, name: usize) -> Result<StreamId, Misshapen> {
    let number: u8 = row.get(kind).map_err(|_| Misshapen("streams.kind"))?;
    let kind = StreamKind::unpacked(&[number]).map_err(|_| Misshapen("streams.kind"))?;
    Ok(StreamId { kind, name: bytes(row, name, "streams.name")? })
}

/// An event with its stream, from the columns of `statements::EVENTS`. One that only does not decode has no body.
pub(super) fn event(row: &SqlRow<'_>) -> Result<StoredEvent, Misshapen> {
    Ok(StoredEvent {
        position: count(row, 0, "events.position")?,
        stamp: stamp(row, [1, 3, 4, 5, 6, 13, 14])?,
        event: decode(row).ok(),
        salt: optional_bytes(row, 10, "events.salt")?,
        seal: optional_bytes(row, 11, "events.seal")?.map(Hash),
        hash: hash(row, 12, "events.hash")?,
    })
}

/// A stamp from the columns of sequence, time, command, part, of, the stream's
/// kind and its name.
pub(super) fn stamp(row: &SqlRow<'_>, columns: [usize; 7]) -> Result<Stamp, Misshapen> {
    let [sequence, at, command, part, of, kind, name] = columns;
    let small = |at, column| row.get::<_, u32>(at).map_err(|_| Misshapen(column));
    Ok(Stamp {
        stream: stream_id(row, kind, name)?,
        sequence: count(row, sequence, "events.sequence")?,
        at: Timestamp::from_micros(integer(row, at, "events.at")?).ok_or(Misshapen("events.at"))?,
        command: bytes(row, command, "events.command")?,
        part: small(part, "events.part")?,
        of: small(of, "events.of")?,
    })
}

fn decode(row: &SqlRow<'_>) -> Result<Event, Misshapen> {
    let wrong = |Corrupt(what): Corrupt| Misshapen(what);
    let number: u8 = row.get(2).map_err(|_| Misshapen("events.kind"))?;
    let (data, sealed) = (blob(row, 8, "events.data")?, blob(row, 9, "events.sealed")?);
    let kind = Kind::unpacked(&[number]).map_err(wrong)?;
    let body = Body::unpack(kind, data, sealed).map_err(wrong)?;
    Ok(Event { refs: Pack::unpacked(blob(row, 7, "events.refs")?).map_err(wrong)?, body })
}

pub(super) fn integer(row: &SqlRow<'_>, at: usize, column: &'static str) -> Result<i64, Misshapen> {
    row.get(at).map_err(|_| Misshapen(column))
}

/// A number from 1.
fn count(row: &SqlRow<'_>, at: usize, column: &'static str) -> Result<u64, Misshapen> {
    let number = u64::try_from(integer(row, at, column)?).ok();
    number.filter(|number| *number > 0).ok_or(Misshapen(column))
}

fn blob<'r>(row: &'r SqlRow<'_>, at: usize, column: &'static str) -> Result<&'r [u8], Misshapen> {
    let value = row.get_ref(at).ok();
    value.and_then(|value| value.as_blob().ok()).ok_or(Misshapen(column))
}

fn bytes<const N: usize>(row: &SqlRow<'_>, at: usize, column: &'static str) -> Result<[u8; N], Misshapen> {
    blob(row, at, column)?.try_into().map_err(|_| Misshapen(column))
}

pub(super) fn hash(row: &SqlRow<'_>, at: usize, column: &'static str) -> Result<Hash, Misshapen> {
    bytes(row, at, column).map(Hash)
}

pub(super) fn optional_bytes<const N: usize>(
    row: &SqlRow<'_>,
    at: usize,
    column: &'static str,
) -> Result<Option<[u8; N]>, Misshapen> {
    match row.get_ref(at) {
        Ok(rusqlite::types::ValueRef::Null) => Ok(None),
        _ => bytes(row, at, column).map(Some),
    }
}
