//! The writer: one transaction per batch, statements prepared once.

use std::collections::BTreeMap;

use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload, Recorded};
use onceseal_core::pack::Pack;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range};
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension};

use super::open::{Connector, FileIdentity};
use super::{rows, schema, statements};
use crate::backend::{Backend, Changes, Fault, Loader, RowChange, Work};
use crate::error::StoreError;
use crate::time::BatchClock;
use crate::turnstile::Turnstile;

/// Statements a writer uses; the cache keeps all of them.
const STATEMENTS: usize = 24;

/// The writer of one file for one tenant.
pub(crate) struct SqliteBackend {
    connector: Connector,
    connection: Connection,
    turnstile: Turnstile,
    clock: BatchClock,
    opened: Opened,
}

/// What was opened, and must be there still whenever something is written.
#[derive(Clone, Copy)]
struct Opened {
    file: Option<FileIdentity>,
    tenant: i64,
    tenant_id: [u8; 16],
}

impl SqliteBackend {
    pub(crate) fn new(
        connector: Connector,
        turnstile: Turnstile,
        clock: BatchClock,
        (tenant, tenant_id): (i64, [u8; 16]),
    ) -> Result<SqliteBackend, StoreError> {
        let opened = Opened { file: connector.identity()?, tenant, tenant_id };
        let connection = connector.writer()?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(SqliteBackend { connector, connection, turnstile, clock, opened })
    }

    /// Commits a marker on the connection whose COMMIT failed: after that the
    /// file says whether the event at this position with this hash was recorded.
    ///
    /// It stays open: its index of the log knows which frames are committed.
    /// Opened anew, SQLite believes every whole frame it reads, and one whose
    /// sync failed is read from memory and may never reach the disk: a later
    /// sync that succeeds says nothing of it (fsync(2), EIO). The marker takes
    /// the place of such frames.
    fn look_again(&mut self, first: &Recorded, position: i64) -> Result<bool, StoreError> {
        let _turn = self.turnstile.enter()?;
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        guard(&transaction, &self.connector, &self.opened)?;
        // The same number again: a page is written all the same.
        transaction.pragma_update(None, "user_version", schema::SCHEMA_VERSION)?;
        transaction.commit()?;
        let found = self.connection.query_row(statements::HASH, [position], |row| row.get::<_, [u8; 32]>(0));
        Ok(found.optional()? == Some(first.hash.0))
    }
}

impl Backend for SqliteBackend {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let committed = {
            let SqliteBackend { connector, connection, turnstile, clock, opened } = &mut *self;
            let _turn = turnstile.enter().map_err(StoreError::from)?;
            let result = transact(connection, connector, clock, opened, work);
            if result.is_err() {
                roll_back(connection);
            }
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
    connector: &Connector,
    clock: &mut BatchClock,
    opened: &Opened,
    work: &mut Work<'_>,
) -> Result<(), Failed> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    guard(connection, connector, opened)?;
    crate::fault::reach("after_begin")?;
    let now = clock.read()?;
    let mut batch =
        Transaction { prepared: Prepared::new(connection), tenant: opened.tenant, now, ids: BTreeMap::new() };
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

/// The file is still the one at the path, still ours and still has our tenant:
/// somebody may have put another in its place, restored one over it, or brought
/// it to a newer schema.
fn guard(connection: &Connection, connector: &Connector, opened: &Opened) -> Result<(), StoreError> {
    let foreign = |what| Err(StoreError::with(Code::StoreForeign, what));
    if connector.identity()? != opened.file {
        return foreign("another file has taken its place; open it anew");
    }
    if !schema::is_current(connection)? {
        return foreign("its schema is not the one that was opened; use a newer onceseal");
    }
    let mut statement = connection.prepare_cached(statements::TENANT_ID)?;
    match statement.query_row([opened.tenant], |row| row.get::<_, [u8; 16]>(0)).optional()? {
        Some(id) if id == opened.tenant_id => Ok(()),
        _ => foreign("its tenant is not the one that was opened; open it anew"),
    }
}

/// Statements taken from the connection's cache, once per transaction: looking
/// one up by its text costs as much as a short statement takes to run.
struct Prepared<'a> {
    connection: &'a Connection,
    taken: Vec<(&'static str, CachedStatement<'a>)>,
}

impl<'a> Prepared<'a> {
    const fn new(connection: &'a Connection) -> Prepared<'a> {
        Prepared { connection, taken: Vec::new() }
    }

    fn get(&mut self, sql: &'static str) -> Result<&mut CachedStatement<'a>, StoreError> {
        // Texts are constants, so the same text is the same place in memory.
        let at = match self.taken.iter().position(|(text, _)| std::ptr::eq(*text, sql)) {
            Some(at) => at,
            None => {
                self.taken.push((sql, self.connection.prepare_cached(sql)?));
                self.taken.len() - 1
            }
        };
        Ok(&mut self.taken[at].1)
    }
}

/// One transaction.
struct Transaction<'a> {
    prepared: Prepared<'a>,
    tenant: i64,
    now: Timestamp,
    /// Row ids of streams met in this transaction.
    ids: BTreeMap<StreamId, i64>,
}

impl Transaction<'_> {
    fn id(&mut self, stream: &StreamId) -> Result<Option<i64>, StoreError> {
        if let Some(id) = self.ids.get(stream) {
            return Ok(Some(*id));
        }
        let found = self
            .prepared
            .get(statements::STREAM_ID)?
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
        crate::fault::reach("mid_save")?;
        let newest: i64 = self.prepared.get(statements::NEWEST)?.query_row([], |row| row.get(0))?;
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
        match (&change.before, self.ids.get(stream).copied()) {
            (Some(_), Some(id)) => {
                let sql =
                    "UPDATE streams SET sequence = ?2, head = ?3, open = ?4, private = ?5 WHERE id = ?1";
                self.prepared.get(sql)?.execute((id, sequence, head.hash.0, open, private))?;
            }
            // Two that made the same stream at once meet in its unique name.
            _ => {
                let sql = "INSERT INTO streams (tenant, kind, name, sequence, head, open, private)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let kind = stream.kind.number();
                let values = (self.tenant, kind, stream.name, sequence, head.hash.0, open, private);
                self.prepared.get(sql)?.execute(values)?;
                self.ids.insert(*stream, self.prepared.connection.last_insert_rowid());
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
        self.prepared.get(sql)?.execute(rusqlite::params![
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
            self.prepared.get(sql)?.execute((position, payload.salt, &payload.text))?;
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
            self.prepared.get(sql)?.execute((self.tenant, key.index.number(), key.bytes, stream))?;
        }
        for key in new {
            self.put_key(&key, stream, 0)?;
        }
        Ok(())
    }

    fn put_key(&mut self, key: &Key, stream: i64, sequence: u64) -> Result<(), StoreError> {
        let sql = "INSERT INTO keys (tenant, \"index\", key, stream, sequence) VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET sequence = excluded.sequence";
        let sequence = integer(sequence)?;
        self.prepared.get(sql)?.execute((self.tenant, key.index.number(), &key.bytes, stream, sequence))?;
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
        let statement = self.prepared.get(statements::STREAM)?;
        let mut found = statement.query((self.tenant, stream.kind.number(), stream.name))?;
        let Some(row) = found.next()? else { return Ok(Loaded::Absent) };
        let (id, loaded) = (row.get(0)?, rows::loaded(stream.kind, row, 1));
        drop(found);
        self.ids.insert(*stream, id);
        Ok(loaded)
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        let statement = self.prepared.get(statements::OLDEST)?;
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
        let statement = self.prepared.get(statements::EVENT_OF_KEY)?;
        let mut found = statement.query((self.tenant, key.index.number(), &key.bytes))?;
        let Some(row) = found.next()? else { return Ok(None) };
        Ok(Some((rows::stream_id(row, 0, 1)?, row.get::<_, i64>(2)?.unsigned_abs())))
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        let Some(id) = self.id(stream)? else { return Ok(None) };
        let found = self
            .prepared
            .get(statements::PAYLOAD)?
            .query_row((id, integer(sequence)?), |row| Ok(Payload { salt: row.get(0)?, text: row.get(1)? }));
        Ok(found.optional()?)
    }
}
