//! Connections that read, and snapshots on them.

mod raw;

use std::sync::{Mutex, MutexGuard, PoisonError};

use onceseal_core::journal::Payload;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use rusqlite::{Connection, OptionalExtension};

use super::open::{Connector, Settings, settings};
use super::{rows, schema};
use crate::error::StoreError;
use crate::read::{Counts, Hit, Page, Snapshot, StoredEvent};

/// Idle connections kept; more are made when needed and closed after use.
const IDLE: usize = 4;
/// Statements a reader uses; the cache keeps all of them.
const STATEMENTS: usize = 24;

/// Connections to one file that only read.
pub(crate) struct Pool {
    connector: Connector,
    tenant: i64,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) const fn new(connector: Connector, tenant: i64) -> Pool {
        Pool { connector, tenant, idle: Mutex::new(Vec::new()) }
    }

    /// A snapshot, from now until it is dropped.
    pub(crate) fn snapshot(&self) -> Result<SqliteSnapshot<'_>, StoreError> {
        let connection = match self.idle().pop() {
            Some(connection) => connection,
            None => {
                let connection = self.connector.reader()?;
                connection.set_prepared_statement_cache_capacity(STATEMENTS);
                connection
            }
        };
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(SqliteSnapshot { pool: self, connection: Some(connection), tenant: self.tenant })
    }

    /// What a reading connection says of its settings.
    pub(crate) fn settings(&self) -> Result<Settings, StoreError> {
        settings(&self.connector.reader()?)
    }

    /// Closes the idle connections.
    pub(crate) fn close_all(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read transaction.
pub(crate) struct SqliteSnapshot<'a> {
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
        if ended.is_ok() && idle.len() < IDLE {
            idle.push(connection);
        }
    }
}

impl SqliteSnapshot<'_> {
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| StoreError::new(onceseal_core::code::Code::StoreClosed))
    }

    fn id(&self, stream: &StreamId) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT id FROM streams WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let values = (self.tenant, stream.kind.number(), stream.name);
        Ok(statement.query_row(values, |row| row.get(0)).optional()?)
    }

    fn events_of(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<StoredEvent>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let mut found = statement.query(values)?;
        let mut events = Vec::new();
        while let Some(row) = found.next()? {
            events.push(rows::event(row)?);
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

impl Snapshot for SqliteSnapshot<'_> {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let sql =
            "SELECT sequence, head, open, private FROM streams WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let mut found = statement.query((self.tenant, stream.kind.number(), stream.name))?;
        match found.next()? {
            Some(row) => Ok(rows::loaded(stream.kind, row, 0)),
            None => Ok(Loaded::Absent),
        }
    }

    fn events(&self, stream: &StreamId, from: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(Vec::new()) };
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {} FROM events e JOIN streams s ON s.id = e.stream
             WHERE e.stream = ?1 AND e.sequence >= ?2 ORDER BY e.sequence LIMIT ?3",
            rows::EVENT_COLUMNS
        );
        self.events_of(&sql, (id, from, limit(most)))
    }

    fn log(&self, after: u64, most: usize) -> Result<Vec<StoredEvent>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {} FROM events e JOIN streams s ON s.id = e.stream
             WHERE e.position > ?1 AND s.tenant = ?2 ORDER BY e.position LIMIT ?3",
            rows::EVENT_COLUMNS
        );
        self.events_of(&sql, (after, self.tenant, limit(most)))
    }

    fn newest(&self) -> Result<u64, StoreError> {
        self.count("SELECT coalesce(max(position), 0) FROM events WHERE ?1 = ?1")
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(None) };
        let sql = "SELECT p.salt, p.text FROM events e JOIN payloads p ON p.event = e.position
                   WHERE e.stream = ?1 AND e.sequence = ?2";
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let found = statement
            .query_row((id, sequence), |row| Ok(Payload { salt: row.get(0)?, text: row.get(1)? }))
            .optional()?;
        Ok(found)
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        let (order, beyond) = if page.newest_first { ("DESC", "<") } else { ("ASC", ">") };
        let after = match &page.after {
            Some((key, stream)) => Some((key.clone(), self.id(stream)?.unwrap_or_default())),
            None => None,
        };
        let (key, id) = after.unzip();
        let sql = format!(
            "SELECT k.key, s.kind, s.name, k.sequence FROM keys k JOIN streams s ON s.id = k.stream
             WHERE k.tenant = ?1 AND k.\"index\" = ?2 AND k.key BETWEEN ?3 AND ?4
               AND (?5 IS NULL OR (k.key, k.stream) {beyond} (?5, ?6))
             ORDER BY k.key {order}, k.stream {order} LIMIT ?7"
        );
        let (from, to) = match (&key, page.newest_first) {
            (Some(key), true) => (&page.from, key.min(&page.to)),
            (Some(key), false) => (key.max(&page.from), &page.to),
            (None, _) => (&page.from, &page.to),
        };
        let mut statement = self.connection()?.prepare_cached(&sql)?;
        let mut found =
            statement.query((self.tenant, page.index.number(), from, to, &key, id, limit(page.limit)))?;
        let mut hits = Vec::new();
        while let Some(row) = found.next()? {
            let sequence = row.get::<_, i64>(3)?.unsigned_abs();
            hits.push(Hit { key: row.get(0)?, stream: rows::stream_id(row, 1, 2)?, sequence });
        }
        Ok(hits)
    }

    fn streams(&self, after: Option<&StreamId>, most: usize) -> Result<Vec<StreamId>, StoreError> {
        let sql = "SELECT kind, name FROM streams WHERE tenant = ?1 AND (kind, name) > (?2, ?3)
                   ORDER BY kind, name LIMIT ?4";
        let (kind, name) = after.map_or((0, [0; 16]), |stream| (stream.kind.number(), stream.name));
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let mut found = statement.query((self.tenant, kind, name, limit(most)))?;
        let mut streams = Vec::new();
        while let Some(row) = found.next()? {
            streams.push(rows::stream_id(row, 0, 1)?);
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
