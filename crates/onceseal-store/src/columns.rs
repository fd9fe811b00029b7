//! Columns of a database to values. What does not decode is reported, never guessed.

use std::sync::Arc;

use crate::raw::Misshapen;
use crate::read::StoredEvent;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Event, Head, Kind, Payload, Row, Stamp, Stored};
use onceseal_core::pack::{Corrupt, Pack};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;

/// A row of a result, as its database gives it.
pub(crate) trait Columns {
    /// An integer, where the column holds one.
    fn integer(&self, at: usize) -> Option<i64>;

    /// Bytes, where the column holds such.
    fn bytes(&self, at: usize) -> Option<&[u8]>;

    /// Text, where the column holds such.
    fn text(&self, at: usize) -> Option<&str>;

    /// Whether the column holds nothing.
    fn is_null(&self, at: usize) -> bool;
}

/// A stream's row from `sequence, head, open, private` at the first columns.
pub(crate) fn loaded(kind: StreamKind, row: &impl Columns, first: usize) -> Loaded {
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
pub(crate) fn stream_id(row: &impl Columns, kind: usize, name: usize) -> Result<StreamId, Misshapen> {
    let number = small(row, kind, "streams.kind")?;
    let kind = StreamKind::unpacked(&[number]).map_err(|_| Misshapen("streams.kind"))?;
    Ok(StreamId { kind, name: bytes(row, name, "streams.name")? })
}

/// An event with its stream, from the columns of `statements::EVENTS`. One that only does not decode has no body.
pub(crate) fn event(row: &impl Columns) -> Result<StoredEvent, Misshapen> {
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
pub(crate) fn stamp(row: &impl Columns, columns: [usize; 7]) -> Result<Stamp, Misshapen> {
    let [sequence, at, command, part, of, kind, name] = columns;
    Ok(Stamp {
        stream: stream_id(row, kind, name)?,
        sequence: count(row, sequence, "events.sequence")?,
        at: Timestamp::from_micros(integer(row, at, "events.at")?).ok_or(Misshapen("events.at"))?,
        command: bytes(row, command, "events.command")?,
        part: small(row, part, "events.part")?,
        of: small(row, of, "events.of")?,
    })
}

fn decode(row: &impl Columns) -> Result<Event, Misshapen> {
    let wrong = |Corrupt(what): Corrupt| Misshapen(what);
    let number = small(row, 2, "events.kind")?;
    let (data, sealed) = (blob(row, 8, "events.data")?, blob(row, 9, "events.sealed")?);
    let kind = Kind::unpacked(&[number]).map_err(wrong)?;
    let body = Body::unpack(kind, data, sealed).map_err(wrong)?;
    Ok(Event { refs: Pack::unpacked(blob(row, 7, "events.refs")?).map_err(wrong)?, body })
}

pub(crate) fn integer(row: &impl Columns, at: usize, column: &'static str) -> Result<i64, Misshapen> {
    row.integer(at).ok_or(Misshapen(column))
}

fn small<T: TryFrom<i64>>(row: &impl Columns, at: usize, column: &'static str) -> Result<T, Misshapen> {
    T::try_from(integer(row, at, column)?).map_err(|_| Misshapen(column))
}

/// A number from 1.
fn count(row: &impl Columns, at: usize, column: &'static str) -> Result<u64, Misshapen> {
    let number = u64::try_from(integer(row, at, column)?).ok();
    number.filter(|number| *number > 0).ok_or(Misshapen(column))
}

fn blob<'r>(row: &'r impl Columns, at: usize, column: &'static str) -> Result<&'r [u8], Misshapen> {
    row.bytes(at).ok_or(Misshapen(column))
}

pub(crate) fn bytes<const N: usize>(
    row: &impl Columns,
    at: usize,
    column: &'static str,
) -> Result<[u8; N], Misshapen> {
    blob(row, at, column)?.try_into().map_err(|_| Misshapen(column))
}

pub(crate) fn hash(row: &impl Columns, at: usize, column: &'static str) -> Result<Hash, Misshapen> {
    bytes(row, at, column).map(Hash)
}

pub(crate) fn optional_bytes<const N: usize>(
    row: &impl Columns,
    at: usize,
    column: &'static str,
) -> Result<Option<[u8; N]>, Misshapen> {
    if row.is_null(at) { Ok(None) } else { bytes(row, at, column).map(Some) }
}

/// The text beside an event from these columns; `None` where there is none.
pub(crate) fn payload(row: &impl Columns, salt: usize, text: usize) -> Result<Option<Payload>, Misshapen> {
    let Some(salt) = optional_bytes(row, salt, "payloads.salt")? else { return Ok(None) };
    let text = row.text(text).ok_or(Misshapen("payloads.text"))?.to_owned();
    Ok(Some(Payload { salt, text }))
}
