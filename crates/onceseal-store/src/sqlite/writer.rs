//! The writer: one transaction per batch, statements prepared once.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload, Recorded};
use onceseal_core::pack::Pack;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range};
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension};

use super::open::Connector;
use super::pool::Pool;
use super::{rows, schema};
use crate::backend::{Backend, Changes, Fault, Loader, RowChange, Work};
use crate::error::StoreError;
use crate::time::BatchClock;
use crate::turnstile::Turnstile;

/// Statements a writer uses; the cache keeps all of them.
const STATEMENTS: usize = 24;

/// The writer of one file for one tenant.
pub(crate) struct SqliteBackend {
    connector: Connector,
    connection: Option<Connection>,
    pool: Arc<Pool>,
    turnstile: Turnstile,
    clock: BatchClock,
    tenant: i64,
    tenant_id: [u8; 16],
}

impl SqliteBackend {
    pub(crate) fn new(
        connector: Connector,
        pool: Arc<Pool>,
        turnstile: Turnstile,
        clock: BatchClock,
        (tenant, tenant_id): (i64, [u8; 16]),
    ) -> Result<SqliteBackend, StoreError> {
        let connection = Some(prepare(&connector)?);
        Ok(SqliteBackend { connector, connection, pool, turnstile, clock, tenant, tenant_id })
    }

    /// Closes every connection of the process, opens the file again and commits
    /// a marker: after that the file says whether the event at this position
    /// with this hash was recorded.
    fn look_again(&mut self, first: &Recorded, position: i64) -> Result<bool, StoreError> {
        self.connection = None;
        let _readers = self.pool.close_all();
        let mut connection = prepare(&self.connector)?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.pragma_update(None, "user_version", schema::SCHEMA_VERSION)?;
        transaction.commit()?;
        let sql = "SELECT hash FROM events WHERE position = ?1";
        let found: Option<[u8; 32]> = connection.query_row(sql, [position], |row| row.get(0)).optional()?;
        self.connection = Some(connection);
        Ok(found == Some(first.hash.0))
    }
}

fn prepare(connector: &Connector) -> Result<Connection, StoreError> {
    let connection = connector.writer()?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

impl Backend for SqliteBackend {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        if self.connection.is_none() {
            self.connection = Some(prepare(&self.connector)?);
        }
        let committed = {
            let Some(connection) = &self.connection else {
                return Err(Fault::Nothing(StoreError::new(Code::StoreFailed)));
            };
            let turn = self.turnstile.enter().map_err(StoreError::from)?;
            let result = transact(connection, &mut self.clock, (self.tenant, self.tenant_id), work);
            if result.is_err() {
                roll_back(connection);
            }
            drop(turn);
            result
        };
        match committed {
            Ok(()) => Ok(()),
            Err(Failed::Before(error)) => Err(Fault::Nothing(error)),
            Err(Failed::Commit { error, first, position }) => match self.look_again(&first, position) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Fault::Nothing(error)),
                Err(_) => Err(Fault::Unknown(StoreError::new(Code::CommitUnknown))),
            },
        }
    }

    fn accept_clock(&mut self) {
        self.clock.accept();
    }
}

/// Where a batch failed.
enum Failed {
    /// Before COMMIT, or in COMMIT with an answer that means nothing happened.
    Before(StoreError),
    /// In COMMIT, with an error after which it may have happened.
    Commit { error: StoreError, first: Box<Recorded>, position: i64 },
}

impl<E: Into<StoreError>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed::Before(error.into())
    }
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // A failed rollback leaves a transaction that the next BEGIN refuses;
        // SQLite itself rolls back when the connection closes.
        let _ = connection.execute_batch("ROLLBACK");
    }
}

fn transact(
    connection: &Connection,
    clock: &mut BatchClock,
    tenant: (i64, [u8; 16]),
    work: &mut Work<'_>,
) -> Result<(), Failed> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    guard(connection, tenant)?;
    let now = clock.read()?;
    let mut batch = Transaction { connection, tenant: tenant.0, now, ids: BTreeMap::new() };
    let Some(changes) = work(&mut batch)? else {
        connection.prepare_cached("ROLLBACK")?.execute([])?;
        return Ok(());
    };
    let position = batch.save(&changes)?;
    crate::fault::reach("before_commit")?;
    let answer = match connection.prepare_cached("COMMIT")?.execute([]) {
        // An answer lost on the way, as a test may have it, is an answer not known.
        Ok(_) => crate::fault::reach("after_commit").map_err(|error| (true, error)),
        Err(error) => Err((is_uncertain(&error), error.into())),
    };
    match (answer, changes.events.into_iter().next()) {
        (Ok(()), _) => Ok(()),
        (Err((true, error)), Some(first)) => Err(Failed::Commit { error, first: Box::new(first), position }),
        (Err((_, error)), _) => Err(Failed::Before(error)),
    }
}

/// An answered error other than I/O or disk full means that nothing happened.
fn is_uncertain(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::DiskFull) | None)
}

/// The file is still ours and still has our tenant: somebody may have put
/// another file in its place, or restored one over it.
fn guard(connection: &Connection, tenant: (i64, [u8; 16])) -> Result<(), StoreError> {
    let sql = "SELECT tenant_id FROM tenants WHERE id = ?1";
    let found = connection.prepare_cached(sql)?.query_row([tenant.0], |row| row.get::<_, [u8; 16]>(0));
    match found.optional()? {
        Some(id) if id == tenant.1 => Ok(()),
        _ => Err(StoreError::with(Code::StoreForeign, "the store's tenant is not the one that was opened")),
    }
}

/// One transaction.
struct Transaction<'a> {
    connection: &'a Connection,
    tenant: i64,
    now: Timestamp,
    /// Row ids of streams met in this transaction.
    ids: BTreeMap<StreamId, i64>,
}

impl Transaction<'_> {
    fn statement(&self, sql: &'static str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    fn id(&mut self, stream: &StreamId) -> Result<Option<i64>, StoreError> {
        if let Some(id) = self.ids.get(stream) {
            return Ok(Some(*id));
        }
        let sql = "SELECT id FROM streams WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
        let found = self
            .statement(sql)?
            .query_row((self.tenant, stream.kind.number(), stream.name), |row| row.get(0));
        let id: Option<i64> = found.optional()?;
        if let Some(id) = id {
            self.ids.insert(*stream, id);
        }
        Ok(id)
    }

    /// Saves everything; returns the position of the first event.
    fn save(&mut self, changes: &Changes) -> Result<i64, StoreError> {
        for change in &changes.rows {
            self.save_row(change)?;
        }
        let sql = "SELECT coalesce(max(position), 0) FROM events";
        let newest: i64 = self.statement(sql)?.query_row([], |row| row.get(0))?;
        for (position, event) in (newest + 1..).zip(&changes.events) {
            self.save_event(position, event)?;
        }
        for change in &changes.rows {
            self.save_keys(change)?;
        }
        Ok(newest + 1)
    }

    fn save_row(&mut self, change: &RowChange) -> Result<(), StoreError> {
        let stream = &change.stream;
        let (open, private) = change.after.row.packed();
        let head = change.after.head;
        let sequence = integer(head.sequence)?;
        match self.id(stream)? {
            Some(id) => {
                let sql =
                    "UPDATE streams SET sequence = ?2, head = ?3, open = ?4, private = ?5 WHERE id = ?1";
                self.statement(sql)?.execute((id, sequence, head.hash.0, open, private))?;
            }
            None => {
                let sql = "INSERT INTO streams (tenant, kind, name, sequence, head, open, private)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let kind = stream.kind.number();
                let values = (self.tenant, kind, stream.name, sequence, head.hash.0, open, private);
                self.statement(sql)?.execute(values)?;
                self.ids.insert(*stream, self.connection.last_insert_rowid());
            }
        }
        Ok(())
    }

    fn save_event(&mut self, position: i64, event: &Recorded) -> Result<(), StoreError> {
        let stamp = &event.stamp;
        let stream = self.id(&stamp.stream)?.ok_or_else(|| StoreError::new(Code::Internal))?;
        let (mut refs, mut data, mut sealed) = (Vec::new(), Vec::new(), Vec::new());
        event.event.refs.pack(&mut refs);
        event.event.body.pack_data(&mut data);
        event.event.body.pack_sealed(&mut sealed);
        let (salt, seal) = event.sealed.map(|(salt, seal)| (salt, seal.0)).unzip();
        let sql = "INSERT INTO events
                     (position, stream, sequence, kind, at, command, part, of, refs, data, sealed, salt, seal, hash)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        self.statement(sql)?.execute(rusqlite::params![
            position,
            stream,
            integer(stamp.sequence)?,
            event.event.body.kind().number(),
            stamp.at.micros(),
            stamp.command,
            stamp.part,
            stamp.of,
            refs,
            data,
            sealed,
            salt,
            seal,
            event.hash.0,
        ])?;
        if let Some(payload) = &event.payload {
            let sql = "INSERT INTO payloads (event, salt, text) VALUES (?1, ?2, ?3)";
            self.statement(sql)?.execute((position, payload.salt, &payload.text))?;
        }
        for key in event.event.keys() {
            self.put_key(&key, stream, stamp.sequence)?;
        }
        Ok(())
    }

    fn save_keys(&mut self, change: &RowChange) -> Result<(), StoreError> {
        let stream = self.id(&change.stream)?.ok_or_else(|| StoreError::new(Code::Internal))?;
        let (gone, new) = change.keys();
        for key in gone {
            let sql = "DELETE FROM keys WHERE tenant = ?1 AND \"index\" = ?2 AND key = ?3 AND stream = ?4";
            self.statement(sql)?.execute((self.tenant, key.index.number(), key.bytes, stream))?;
        }
        for key in new {
            self.put_key(&key, stream, 0)?;
        }
        Ok(())
    }

    fn put_key(&self, key: &Key, stream: i64, sequence: u64) -> Result<(), StoreError> {
        let sql = "INSERT INTO keys (tenant, \"index\", key, stream, sequence) VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET sequence = excluded.sequence";
        let sequence = integer(sequence)?;
        self.statement(sql)?.execute((self.tenant, key.index.number(), &key.bytes, stream, sequence))?;
        Ok(())
    }
}

fn integer(n: u64) -> Result<i64, StoreError> {
    i64::try_from(n).map_err(|_| StoreError::new(Code::Internal))
}

impl Loader for Transaction<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let sql = "SELECT id, sequence, head, open, private FROM streams
                   WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
        let mut statement = self.statement(sql)?;
        let mut found = statement.query((self.tenant, stream.kind.number(), stream.name))?;
        let Some(row) = found.next()? else { return Ok(Loaded::Absent) };
        let (id, loaded) = (row.get(0)?, rows::loaded(stream.kind, row, 1));
        drop(found);
        drop(statement);
        self.ids.insert(*stream, id);
        Ok(loaded)
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        let sql = "SELECT k.key, s.kind, s.name FROM keys k JOIN streams s ON s.id = k.stream
                   WHERE k.tenant = ?1 AND k.\"index\" = ?2 AND k.key BETWEEN ?3 AND ?4
                   ORDER BY k.key, k.stream LIMIT ?5";
        let mut statement = self.statement(sql)?;
        let limit = i64::try_from(range.limit).unwrap_or(i64::MAX);
        let mut found =
            statement.query((self.tenant, range.index.number(), &range.from, &range.to, limit))?;
        let mut hits = Vec::new();
        while let Some(row) = found.next()? {
            hits.push((row.get(0)?, rows::stream_id(row, 1, 2)?));
        }
        Ok(hits)
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        let sql = "SELECT s.kind, s.name, k.sequence FROM keys k JOIN streams s ON s.id = k.stream
                   WHERE k.tenant = ?1 AND k.\"index\" = ?2 AND k.key = ?3 ORDER BY k.stream DESC LIMIT 1";
        let mut statement = self.statement(sql)?;
        let mut found = statement.query((self.tenant, key.index.number(), &key.bytes))?;
        let Some(row) = found.next()? else { return Ok(None) };
        Ok(Some((rows::stream_id(row, 0, 1)?, row.get::<_, i64>(2)?.unsigned_abs())))
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(None) };
        let sql = "SELECT p.salt, p.text FROM events e JOIN payloads p ON p.event = e.position
                   WHERE e.stream = ?1 AND e.sequence = ?2";
        let found = self
            .statement(sql)?
            .query_row((id, integer(sequence)?), |row| Ok(Payload { salt: row.get(0)?, text: row.get(1)? }));
        Ok(found.optional()?)
    }
}
