//! One transaction: what it loads, and what it saves.

use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload, Recorded};
use onceseal_core::pack::Pack;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::recent::{Known, Recent, StreamMap};
use super::statements;
use crate::backend::{Changes, Loader, RowChange};
use crate::columns;
use crate::error::StoreError;

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
pub(super) struct Transaction<'a> {
    prepared: Prepared<'a>,
    tenant: i64,
    now: Timestamp,
    recent: &'a mut Recent,
    /// Row ids of streams met in this transaction.
    ids: StreamMap<i64>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        tenant: i64,
        now: Timestamp,
        recent: &'a mut Recent,
    ) -> Transaction<'a> {
        Transaction { prepared: Prepared::new(connection), tenant, now, recent, ids: StreamMap::default() }
    }

    /// Remembers rows that are committed now.
    pub(super) fn committed(&mut self, changes: &Changes) {
        for change in &changes.rows {
            if let Some(&id) = self.ids.get(&change.stream) {
                self.recent.put(change.stream, Known { id, stored: change.after.clone() });
            }
        }
    }

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
    pub(super) fn save(&mut self, changes: &Changes) -> Result<i64, StoreError> {
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
        for (key, value) in &changes.own {
            self.save_own(key, value.as_deref())?;
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
        let sequence = integer(stamp.sequence)?;
        let (kind, at) = (event.event.body.kind().number(), stamp.at.micros());
        self.prepared.get(sql)?.execute((
            position,
            stream,
            sequence,
            kind,
            at,
            stamp.command,
            stamp.part,
            stamp.of,
            refs,
            data,
            sealed,
            salt,
            seal,
            event.hash.0,
        ))?;
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

    fn save_own(&mut self, key: &str, value: Option<&[u8]>) -> Result<(), StoreError> {
        match value {
            Some(value) => {
                let sql = "INSERT INTO own_rows (tenant, key, value) VALUES (?1, ?2, ?3)
                           ON CONFLICT DO UPDATE SET value = excluded.value";
                self.prepared.get(sql)?.execute((self.tenant, key, value))?;
            }
            None => {
                let sql = "DELETE FROM own_rows WHERE tenant = ?1 AND key = ?2";
                self.prepared.get(sql)?.execute((self.tenant, key))?;
            }
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
    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let tenant = self.tenant;
        let value = self.prepared.get(statements::OWN)?.query_row((tenant, key), |row| row.get(0));
        Ok(value.optional()?)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        if let Some(Known { id, stored }) = self.recent.get(stream) {
            self.ids.insert(*stream, *id);
            return Ok(Loaded::Row(stored.clone()));
        }
        let statement = self.prepared.get(statements::STREAM)?;
        let mut found = statement.query((self.tenant, stream.kind.number(), stream.name))?;
        let Some(row) = found.next()? else { return Ok(Loaded::Absent) };
        let (id, loaded) = (row.get(0)?, columns::loaded(stream.kind, row, 1));
        drop(found);
        self.ids.insert(*stream, id);
        if let Loaded::Row(stored) = &loaded {
            self.recent.put(*stream, Known { id, stored: stored.clone() });
        }
        Ok(loaded)
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        let statement = self.prepared.get(statements::OLDEST)?;
        let limit = i64::try_from(range.limit).unwrap_or(i64::MAX);
        let mut found =
            statement.query((self.tenant, range.index.number(), &range.from, &range.to, limit))?;
        let mut hits = Vec::new();
        while let Some(row) = found.next()? {
            hits.push((row.get(0)?, columns::stream_id(row, 1, 2)?));
        }
        Ok(hits)
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        let statement = self.prepared.get(statements::EVENT_OF_KEY)?;
        let mut found = statement.query((self.tenant, key.index.number(), &key.bytes))?;
        let Some(row) = found.next()? else { return Ok(None) };
        Ok(Some((columns::stream_id(row, 0, 1)?, row.get::<_, i64>(2)?.unsigned_abs())))
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
