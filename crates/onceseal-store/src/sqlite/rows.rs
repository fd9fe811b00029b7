//! Columns to values and back. What does not decode is reported, never guessed.

use std::sync::Arc;

use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Event, Head, Kind, Row, Stamp, Stored};
use onceseal_core::pack::{Corrupt, Pack};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;
use rusqlite::Row as SqlRow;

use crate::error::StoreError;
use crate::read::StoredEvent;

/// A stream's row from the columns of `statements::STREAM`.
pub(super) fn loaded(kind: StreamKind, row: &SqlRow<'_>) -> Result<Loaded, StoreError> {
    let sequence = row.get::<_, i64>(1)?;
    let head: [u8; 32] = row.get(2)?;
    let open = row.get_ref(3)?.as_blob().unwrap_or_default();
    let private = row.get_ref(4)?.as_blob().unwrap_or_default();
    let head = Head { sequence: sequence.unsigned_abs(), hash: Hash(head) };
    Ok(match Row::unpack(kind, open, private) {
        Ok(row) => Loaded::Row(Arc::new(Stored { head, row })),
        Err(Corrupt(_)) => Loaded::Unreadable,
    })
}

/// The stream that `kind` and `name` at these columns name.
pub(super) fn stream_id(row: &SqlRow<'_>, kind: usize, name: usize) -> Result<StreamId, StoreError> {
    let number: u8 = row.get(kind)?;
    Ok(StreamId { kind: stream_kind(number)?, name: row.get(name)? })
}

pub(super) fn stream_kind(number: u8) -> Result<StreamKind, StoreError> {
    Ok(StreamKind::unpacked(&[number])?)
}

/// An event with its stream, from the columns of `statements::EVENTS`.
pub(super) fn event(row: &SqlRow<'_>) -> Result<StoredEvent, StoreError> {
    let at: i64 = row.get(3)?;
    let seal: Option<[u8; 32]> = row.get(11)?;
    let stamp = Stamp {
        stream: stream_id(row, 13, 14)?,
        sequence: row.get::<_, i64>(1)?.unsigned_abs(),
        at: Timestamp::from_micros(at).ok_or(Corrupt("time"))?,
        command: row.get(4)?,
        part: row.get(5)?,
        of: row.get(6)?,
    };
    Ok(StoredEvent {
        position: row.get::<_, i64>(0)?.unsigned_abs(),
        stamp,
        event: decode(row)?.ok(),
        salt: row.get(10)?,
        seal: seal.map(Hash),
        hash: Hash(row.get(12)?),
    })
}

fn decode(row: &SqlRow<'_>) -> Result<Result<Event, Corrupt>, StoreError> {
    let kind: u8 = row.get(2)?;
    let blob = |at: usize| row.get_ref(at).map(|value| value.as_blob().unwrap_or_default());
    let (refs, data, sealed) = (blob(7)?, blob(8)?, blob(9)?);
    Ok((|| {
        let kind = Kind::unpacked(&[kind])?;
        let body = Body::unpack(kind, data, sealed)?;
        Ok(Event { refs: Pack::unpacked(refs)?, body })
    })())
}
