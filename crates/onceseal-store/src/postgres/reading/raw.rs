//! All columns of all rows, for whoever checks them.

use onceseal_core::journal::Key;
use onceseal_core::view::Loaded;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{PostgresSnapshot, limit};
use crate::columns::{self, Columns, integer};
use crate::error::StoreError;
use crate::postgres::link::Parameter;
use crate::raw::{Entry, Logged, Misshapen, Raw, RawEvent, RawKey, Whole, Wholes};

/// Bytes of text after which a page ends.
const PAGE_BYTES: usize = 4 << 20;

impl Raw for PostgresSnapshot<'_> {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        let rows = self.rows(&self.link()?.sql.owner, &[])?;
        let row = rows.first().ok_or(Misshapen("owner"))?;
        Ok(Some(row.try_get(0).map_err(|_| Misshapen("owner"))?))
    }

    fn ordinals(&self, after: i64, most: usize) -> Result<Vec<i64>, StoreError> {
        let most = limit(most);
        let rows = self.rows(&self.link()?.sql.ordinals, &[(&after, Type::INT8), (&most, Type::INT8)])?;
        Ok(rows.iter().map(|row| integer(row, 0, "streams.id")).collect::<Result<_, Misshapen>>()?)
    }

    fn wholes(&self, from: i64, to: i64, after: i64, most: usize) -> Result<Wholes, StoreError> {
        // A stream without events has a row too.
        let rows = limit(most).saturating_add(1);
        let parameters: [Parameter<'_>; 4] =
            [(&from, Type::INT8), (&to, Type::INT8), (&after, Type::INT8), (&rows, Type::INT8)];
        let found = self.rows(&self.link()?.sql.wholes, &parameters)?;
        let is_cut = limit(found.len()) == rows;
        let mut page = Wholes { more: is_cut, ..Wholes::default() };
        let (mut events, mut bytes) = (0, 0);
        for row in &found {
            if events >= most || bytes >= PAGE_BYTES {
                page.more = true;
                break;
            }
            let ordinal = integer(row, 15, "streams.id")?;
            if page.streams.last().is_none_or(|stream| stream.ordinal != ordinal) {
                page.streams.push(stream(ordinal, row));
            }
            if let (Some(event), Some(stream)) = (event(row), page.streams.last_mut()) {
                events += 1;
                bytes += event.payload.as_ref().map_or(0, |p| p.as_ref().map_or(0, |p| p.text.len()));
                stream.events.push(event);
            }
        }
        Ok(page)
    }

    fn entries(&self, after: i64, most: usize) -> Result<Vec<Entry>, StoreError> {
        let most = limit(most);
        let rows = self.rows(&self.link()?.sql.entries, &[(&after, Type::INT8), (&most, Type::INT8)])?;
        let entry = |row: &Row| {
            let at = match row.integer(10) {
                Some(tenant) if tenant == i64::from(self.tenant) => {
                    own(row).unwrap_or_else(Logged::Misshapen)
                }
                Some(_) => Logged::Another,
                None => Logged::Stray { ordinal: row.integer(8).unwrap_or_default() },
            };
            Ok(Entry { position: integer(row, 0, "log.position")?, at })
        };
        Ok(rows.iter().map(entry).collect::<Result<_, Misshapen>>()?)
    }

    fn raw_keys(&self, after: Option<&RawKey>, most: usize) -> Result<Vec<RawKey>, StoreError> {
        let (index, bytes, ordinal) =
            after.map_or((i64::MIN, &[][..], i64::MIN), |key| (key.index, &key.bytes, key.ordinal));
        let (index, most) = (i16::try_from(index).unwrap_or(i16::MIN), limit(most));
        let parameters: [Parameter<'_>; 4] =
            [(&index, Type::INT2), (&bytes, Type::BYTEA), (&ordinal, Type::INT8), (&most, Type::INT8)];
        let rows = self.rows(&self.link()?.sql.all_keys, &parameters)?;
        let key = |row: &Row| {
            Ok(RawKey {
                index: integer(row, 0, "keys.index")?,
                bytes: row.bytes(1).ok_or(Misshapen("keys.key"))?.to_owned(),
                ordinal: integer(row, 2, "keys.stream")?,
                sequence: integer(row, 3, "keys.sequence")?,
            })
        };
        Ok(rows.iter().map(key).collect::<Result<_, Misshapen>>()?)
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        let index = i16::from(key.index.number());
        let parameters: [Parameter<'_>; 3] =
            [(&index, Type::INT2), (&key.bytes, Type::BYTEA), (&ordinal, Type::INT8)];
        let rows = self.rows(&self.link()?.sql.key, &parameters)?;
        Ok(rows.first().map(|row| integer(row, 0, "keys.sequence")).transpose()?)
    }
}

fn stream(ordinal: i64, row: &Row) -> Whole {
    let stream = columns::stream_id(row, 13, 14);
    let loaded = stream.map_or(Loaded::Unreadable, |stream| columns::loaded(stream.kind, row, 16));
    Whole { ordinal, stream, row: loaded, events: Vec::new() }
}

/// `None` for a stream without events.
fn event(row: &Row) -> Option<RawEvent> {
    let is_there = row.try_get(22).is_ok_and(|is_there: bool| is_there);
    let (position, sequence) = (row.integer(0)?, row.integer(1)?);
    is_there.then(|| RawEvent {
        position,
        sequence,
        event: columns::event(row),
        payload: columns::payload(row, 20, 21),
    })
}

fn own(row: &Row) -> Result<Logged, Misshapen> {
    let stamp = columns::stamp(row, [1, 2, 3, 4, 5, 6, 7])?;
    let ordinal = integer(row, 8, "log.stream")?;
    Ok(Logged::Own { ordinal, stamp, hash: columns::hash(row, 9, "events.hash")? })
}
