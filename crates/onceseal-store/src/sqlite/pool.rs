//! Connections that read, and snapshots on them.

mod raw;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceseal_core::journal::Payload;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use rusqlite::{Connection, OptionalExtension};

use super::identity::Identity;
use super::open::{Connector, replaced, settings};
use super::{schema, statements};
use crate::columns;
use crate::error::StoreError;
use crate::read::{Counts, Hit, Page, Readers, Rows, Snapshot, StoredEvent};

/// Idle connections kept; more are made when needed and closed after use.
const IDLE: usize = 4;
/// Statements a reader uses; the cache keeps all of them.
const STATEMENTS: usize = 24;
/// `PRAGMA synchronous` that waits for the disk at every commit.
const FULL: i64 = 2;

/// Connections to one file that only read.
pub(crate) struct Pool {
    connector: Connector,
    /// Which file it is; `None` where only a virtual file system knows.
    file: Option<Identity>,
    tenant: i64,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(connector: Connector, tenant: i64) -> Result<Pool, StoreError> {
        let file = connector.identity()?;
        Ok(Pool { connector, file, tenant, idle: Mutex::default() })
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readers for Arc<Pool> {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        // What is read of a file that nobody else can open is nobody's word any more.
        if self.connector.identity()? != self.file {
            return Err(replaced());
        }
        let idle = self.idle().connections.pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = self.connector.reader()?;
                connection.set_prepared_statement_cache_capacity(STATEMENTS);
                connection
            }
        };
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Box::new(SqliteSnapshot { pool: self, connection: Some(connection), tenant: self.tenant }))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        // First as it is found: a connection that writes puts it right.
        let found = settings(&self.connector.reader()?)?;
        let writing = settings(&self.connector.writer()?)?;
        let mut faults = Vec::new();
        if found.journal_mode != "wal" {
            faults.push(format!("journal_mode is {}, not wal", found.journal_mode));
        }
        if writing.synchronous < FULL {
            faults.push(format!("synchronous is {}, not full", writing.synchronous));
        }
        if !writing.foreign_keys {
            faults.push("foreign_keys is off".to_owned());
        }
        Ok(faults)
    }

    fn close(&self) {
        let mut idle = self.idle();
        idle.closed = true;
        idle.connections.clear();
    }
}

/// A read transaction: all it reads is of the moment of its first reading.
struct SqliteSnapshot<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    tenant: i64,
}

impl Drop for SqliteSnapshot<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // A connection that cannot end its read transaction is closed instead.
        let ended = connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        let mut idle = self.pool.idle();
        if ended.is_ok() && !idle.closed && idle.connections.len() < IDLE {
            idle.connections.push(connection);
        }
    }
}

impl SqliteSnapshot<'_> {
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| StoreError::new(onceseal_core::code::Code::StoreClosed))
    }

    fn id(&self, stream: &StreamId) -> Result<Option<i64>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(statements::STREAM_ID)?;
        let values = (self.tenant, stream.kind.number(), stream.name);
        Ok(statement.query_row(values, |row| row.get(0)).optional()?)
    }

    fn events_of(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<StoredEvent>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let mut found = statement.query(values)?;
        let mut events = Vec::new();
        while let Some(row) = found.next()? {
            events.push(columns::event(row)?);
        }
        Ok(events)
    }

    fn count(&self, sql: &str) -> Result<u64, StoreError> {
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let n: i64 = statement.query_row([self.tenant], |row| row.get(0))?;
        Ok(n.unsigned_abs())
    }
}

fn limit(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Rows for SqliteSnapshot<'_> {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let mut statement = self.connection()?.prepare_cached(statements::STREAM)?;
        let mut found = statement.query((self.tenant, stream.kind.number(), stream.name))?;
        match found.next()? {
            Some(row) => Ok(columns::loaded(stream.kind, row, 1)),
            None => Ok(Loaded::Absent),
        }
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(None) };
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        let mut statement = self.connection()?.prepare_cached(statements::PAYLOAD)?;
        let found = statement
            .query_row((id, sequence), |row| Ok(Payload { salt: row.get(0)?, text: row.get(1)? }))
            .optional()?;
        Ok(found)
    }

    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(statements::OWN)?;
        Ok(statement.query_row((self.tenant, key), |row| row.get(0)).optional()?)
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        let Page { index, from, to, after, newest_first, .. } = page;
        // What comes after something outside the page is the page.
        let after = match after {
            Some((key, stream)) if *newest_first && key <= to || !*newest_first && key >= from => {
                Some((key, self.id(stream)?.unwrap_or_default()))
            }
            _ => None,
        };
        let (sql, from, to) = match (after, *newest_first) {
            (None, false) => (statements::OLDEST, from, to),
            (None, true) => (statements::NEWEST_FIRST, from, to),
            (Some((key, _)), false) => (statements::OLDEST_AFTER, key, to),
            (Some((key, _)), true) => (statements::NEWEST_AFTER, from, key),
        };
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let (tenant, index, most) = (self.tenant, index.number(), limit(page.limit));
        let mut found = match after {
            None => statement.query((tenant, index, from, to, most))?,
            Some((_, id)) => statement.query((tenant, index, from, to, most, id))?,
        };
        let mut hits = Vec::new();
        while let Some(row) = found.next()? {
            let sequence = row.get::<_, i64>(3)?.unsigned_abs();
            hits.push(Hit { key: row.get(0)?, stream: columns::stream_id(row, 1, 2)?, sequence });
        }
        Ok(hits)
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn events(&self, stream: &StreamId, from: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(Vec::new()) };
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        self.events_of(statements::EVENTS, (id, from, limit(most)))
    }

    fn log(&self, after: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.events_of(statements::LOG, (after, self.tenant, limit(most)))
    }

    fn newest(&self) -> Result<u64, StoreError> {
        let mut statement = self.connection()?.prepare_cached(statements::NEWEST_OF_TENANT)?;
        let found: Option<i64> = statement.query_row((self.tenant, i64::MAX), |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default().unsigned_abs())
    }

    fn streams(&self, after: Option<&StreamId>, most: usize) -> Result<Vec<StreamId>, StoreError> {
        let (kind, name) = after.map_or((0, [0; 16]), |stream| (stream.kind.number(), stream.name));
        let mut statement = self.connection()?.prepare_cached(statements::STREAMS)?;
        let mut found = statement.query((self.tenant, kind, name, limit(most)))?;
        let mut streams = Vec::new();
        while let Some(row) = found.next()? {
            streams.push(columns::stream_id(row, 0, 1)?);
        }
        Ok(streams)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        let joined = "JOIN streams s ON s.id = e.stream WHERE s.tenant = ?1";
        Ok(Counts {
            streams: self.count("SELECT count(*) FROM streams WHERE tenant = ?1")?,
            events: self.count(&format!("SELECT count(*) FROM events e {joined}"))?,
            keys: self.count("SELECT count(*) FROM keys WHERE tenant = ?1")?,
            payloads: self.count(&format!(
                "SELECT count(*) FROM payloads p JOIN events e ON e.position = p.event {joined}"
            ))?,
        })
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let bytes: i64 =
            self.connection()?.prepare_cached(statements::BYTES)?.query_row([], |row| row.get(0))?;
        Ok(bytes.unsigned_abs())
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut faults = schema::faults(self.connection()?)?;
        let mut statement = self.connection()?.prepare("PRAGMA integrity_check")?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let fault: String = row.get(0)?;
            if fault != "ok" {
                faults.push(fault);
            }
        }
        let mut statement = self.connection()?.prepare("PRAGMA foreign_key_check")?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let (table, number, parent): (String, Option<i64>, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let number = number.map(|number| format!(" {number}")).unwrap_or_default();
            faults.push(format!("row{number} of {table} names a row of {parent} that is not there"));
        }
        Ok(faults)
    }
}
