//! What lies in the rows of databases, of which each says only how it finds them.

use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;

use super::{Entry, Logged, Misshapen, RawEvent, Whole, Wholes};
use crate::columns::{self, Columns, integer};

/// Bytes of text after which a page ends.
const PAGE_BYTES: usize = 4 << 20;

/// A page of streams, as its rows come: the columns of an event as `columns::event`
/// reads them, then those of its stream and of its payload. A stream without events
/// has a row without a position.
pub(crate) struct Gathering {
    page: Wholes,
    most: usize,
    events: usize,
    bytes: usize,
}

impl Gathering {
    /// About so many events.
    pub(crate) fn new(most: usize) -> Gathering {
        Gathering { page: Wholes::default(), most, events: 0, bytes: 0 }
    }

    /// Takes the next row; `false` where the page is full without it.
    pub(crate) fn take(&mut self, row: &impl Columns) -> Result<bool, Misshapen> {
        if self.events >= self.most || self.bytes >= PAGE_BYTES {
            self.page.more = true;
            return Ok(false);
        }
        let ordinal = integer(row, 15, "streams.id")?;
        if self.page.streams.last().is_none_or(|stream| stream.ordinal != ordinal) {
            self.page.streams.push(stream(ordinal, row));
        }
        if let (Some(event), Some(stream)) = (event(row), self.page.streams.last_mut()) {
            self.events += 1;
            self.bytes += event.payload.as_ref().map_or(0, |p| p.as_ref().map_or(0, |p| p.text.len()));
            stream.events.push(event);
        }
        Ok(true)
    }

    /// The page, which `is_cut` where there are more rows than were found.
    pub(crate) fn page(self, is_cut: bool) -> Wholes {
        Wholes { more: self.page.more || is_cut, ..self.page }
    }
}

fn stream(ordinal: i64, row: &impl Columns) -> Whole {
    let stream = columns::stream_id(row, 13, 14);
    let loaded = stream.map_or(Loaded::Unreadable, |stream: StreamId| columns::loaded(stream.kind, row, 16));
    Whole { ordinal, stream, row: loaded, events: Vec::new() }
}

fn event(row: &impl Columns) -> Option<RawEvent> {
    // What is no integer is no sequence that should be there.
    let (position, sequence) = (row.integer(0)?, row.integer(1).unwrap_or(i64::MAX));
    Some(RawEvent { position, sequence, event: columns::event(row), payload: columns::payload(row, 20, 21) })
}

/// A place of the log from the columns of its position, of the event's stamp, of the
/// number of its stream, of its hash and of the stream's tenant; `is_shared` where
/// one log is for all tenants.
pub(crate) fn entry(row: &impl Columns, tenant: i64, is_shared: bool) -> Result<Entry, Misshapen> {
    let ordinal = row.integer(8).unwrap_or_default();
    let at = match row.integer(10) {
        Some(its) if its == tenant => own(row).unwrap_or_else(Logged::Misshapen),
        Some(_) if is_shared => Logged::Another,
        Some(_) => Logged::Misplaced { ordinal },
        None if row.is_null(10) => Logged::Stray { ordinal },
        None => Logged::Misshapen(Misshapen("tenant")),
    };
    Ok(Entry { position: integer(row, 0, "events.position")?, at })
}

fn own(row: &impl Columns) -> Result<Logged, Misshapen> {
    let stamp = columns::stamp(row, [1, 2, 3, 4, 5, 6, 7])?;
    let ordinal = integer(row, 8, "events.stream")?;
    Ok(Logged::Own { ordinal, stamp, hash: columns::hash(row, 9, "events.hash")? })
}
