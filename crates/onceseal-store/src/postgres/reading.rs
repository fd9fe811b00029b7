//! A snapshot: all it reads is of one moment.

mod raw;

use onceseal_core::code::Code;
use onceseal_core::journal::Payload;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::{Link, Parameter};
use super::pool::{Pool, Turn};
use super::schema;
use super::statements::{BYTES, READING_ALL};
use crate::columns::{self, Columns, integer};
use crate::error::StoreError;
use crate::raw::Misshapen;
use crate::read::{Counts, Hit, Page, Rows, Snapshot, StoredEvent};

/// A transaction that only reads.
pub(super) struct PostgresSnapshot<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    tenant: i32,
    /// Given up last, after the connection.
    _turn: Turn<'a>,
}

impl Drop for PostgresSnapshot<'_> {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        // A connection that cannot end its transaction is closed instead.
        if !link.is_closed() && link.wait(link.run("ROLLBACK")).is_ok() {
            self.pool.give_back(link);
        }
    }
}

impl<'a> PostgresSnapshot<'a> {
    pub(super) fn new(pool: &'a Pool, turn: Turn<'a>, link: Link, tenant: i32) -> PostgresSnapshot<'a> {
        PostgresSnapshot { pool, link: Some(link), tenant, _turn: turn }
    }

    fn link(&self) -> Result<&Link, StoreError> {
        self.link.as_ref().ok_or_else(|| StoreError::new(Code::StoreClosed))
    }

    /// The rows of a query whose first parameter is the tenant.
    fn rows(&self, sql: &str, rest: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
        let link = self.link()?;
        let mut parameters: Vec<Parameter<'_>> = vec![(&self.tenant, Type::INT4)];
        parameters.extend(rest.iter().map(|(value, kind)| (*value, kind.clone())));
        link.wait_for_picture(link.rows(sql, &parameters)).map_err(Failure::told)
    }

    /// The rows of a query whose parameters are the tenant, a stream and what more.
    fn rows_of(&self, sql: &str, stream: &StreamId, rest: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
        let (kind, name) = (i16::from(stream.kind.number()), &stream.name[..]);
        let mut parameters: Vec<Parameter<'_>> = vec![(&kind, Type::INT2), (&name, Type::BYTEA)];
        parameters.extend(rest.iter().map(|(value, kind)| (*value, kind.clone())));
        self.rows(sql, &parameters)
    }
}

fn limit(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn far(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn events(rows: &[Row]) -> Result<Vec<StoredEvent>, StoreError> {
    Ok(rows.iter().map(columns::event).collect::<Result<_, Misshapen>>()?)
}

impl Rows for PostgresSnapshot<'_> {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let rows = self.rows_of(&self.link()?.sql.stream, stream, &[])?;
        Ok(rows.first().map_or(Loaded::Absent, |row| columns::loaded(stream.kind, row, 0)))
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let sequence = far(sequence);
        let rows = self.rows_of(&self.link()?.sql.payload, stream, &[(&sequence, Type::INT8)])?;
        Ok(rows.first().map_or(Ok(None), |row| columns::payload(row, 0, 1))?)
    }

    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.rows(&self.link()?.sql.own, &[(&key, Type::TEXT)])?;
        Ok(rows.first().and_then(|row| row.bytes(0).map(<[u8]>::to_vec)))
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        let Page { index, from, to, after, newest_first, .. } = page;
        let sql = &self.link()?.sql;
        // What comes after something outside the page is the page.
        let after = match after {
            Some((key, stream)) if *newest_first && key <= to || !*newest_first && key >= from => {
                let rows = self.rows_of(&sql.stream_id, stream, &[])?;
                Some((key, rows.first().map_or(Ok(0), |row| integer(row, 0, "streams.id"))?))
            }
            _ => None,
        };
        let (sql, from, to) = match (after, *newest_first) {
            (None, false) => (&sql.oldest, from, to),
            (None, true) => (&sql.newest_first, from, to),
            (Some((key, _)), false) => (&sql.oldest_after, key, to),
            (Some((key, _)), true) => (&sql.newest_after, from, key),
        };
        let (index, most, id) =
            (i16::from(index.number()), limit(page.limit), after.map(|(_, id)| id).unwrap_or_default());
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&index, Type::INT2), (from, Type::BYTEA), (to, Type::BYTEA), (&most, Type::INT8)];
        if after.is_some() {
            parameters.push((&id, Type::INT8));
        }
        let hit = |row: &Row| {
            let key = row.bytes(0).ok_or(Misshapen("keys.key"))?.to_owned();
            let sequence = integer(row, 3, "keys.sequence")?.unsigned_abs();
            Ok(Hit { key, stream: columns::stream_id(row, 1, 2)?, sequence })
        };
        Ok(self.rows(sql, &parameters)?.iter().map(hit).collect::<Result<_, Misshapen>>()?)
    }
}

impl Snapshot for PostgresSnapshot<'_> {
    fn events(&self, stream: &StreamId, from: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let (from, most) = (far(from), limit(most));
        events(&self.rows_of(
            &self.link()?.sql.events,
            stream,
            &[(&from, Type::INT8), (&most, Type::INT8)],
        )?)
    }

    fn log(&self, after: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let (after, most) = (far(after), limit(most));
        events(&self.rows(&self.link()?.sql.log, &[(&after, Type::INT8), (&most, Type::INT8)])?)
    }

    fn newest(&self) -> Result<u64, StoreError> {
        let rows = self.rows(&self.link()?.sql.newest, &[])?;
        let newest = rows.first().map_or(Ok(0), |row| integer(row, 0, "log.position"))?;
        Ok(newest.unsigned_abs())
    }

    fn streams(&self, after: Option<&StreamId>, most: usize) -> Result<Vec<StreamId>, StoreError> {
        let (kind, name) =
            after.map_or((0, [0; 16]), |stream| (i16::from(stream.kind.number()), stream.name));
        let (name, most) = (&name[..], limit(most));
        let parameters: [Parameter<'_>; 3] = [(&kind, Type::INT2), (&name, Type::BYTEA), (&most, Type::INT8)];
        let rows = self.rows(&self.link()?.sql.all_streams, &parameters)?;
        Ok(rows.iter().map(|row| columns::stream_id(row, 0, 1)).collect::<Result<_, Misshapen>>()?)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        let rows = self.rows(&self.link()?.sql.counts, &[])?;
        let row = rows.first().ok_or(Misshapen("counts"))?;
        let count = |at| integer(row, at, "count").map(i64::unsigned_abs);
        Ok(Counts { streams: count(0)?, events: count(1)?, keys: count(2)?, payloads: count(3)? })
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let link = self.link()?;
        let schema = self.pool.schema();
        let rows =
            link.wait_for_picture(link.rows(BYTES, &[(&schema, Type::TEXT)])).map_err(Failure::told)?;
        Ok(rows.first().map_or(Ok(0), |row| integer(row, 0, "bytes"))?.unsigned_abs())
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let link = self.link()?;
        let all = async {
            // Every row is looked at, which may be many.
            link.run(READING_ALL).await?;
            schema::faults(link, self.pool.schema()).await
        };
        link.wait_for_work(all).map_err(Failure::told)
    }

    fn unseen(&self) -> Result<Vec<String>, StoreError> {
        let link = self.link()?;
        let hidden = link.wait(schema::hidden(link, self.pool.schema())).map_err(Failure::told)?;
        Ok(hidden.into_iter().collect())
    }
}
