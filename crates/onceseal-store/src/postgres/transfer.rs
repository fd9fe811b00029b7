//! A store moves from its file to a server: all tenants of it, with the journal as
//! it is, or nothing.

mod aside;

pub use aside::{Halted, put_aside_before};

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use onceseal_core::code::Code;
use rusqlite::{Connection, Row};
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::{Clash, Failure};
use super::link::{Link, Parameter};
use super::lock::of_schema;
use super::numbers::{BLOCK, next_block};
use super::rows::Rows;
use super::schema;
use super::sequencer::Place;
use super::statements::{BEGIN, WAIT_FOR_LOCKS};
use super::tenant::patiently;
use super::url::PostgresUrl;
use crate::error::StoreError;
use crate::parts::Options;
use crate::sqlite;

/// Rows that are moved at once.
const PAGE: usize = 2_000;

/// Events and texts belong to their streams, whoever's these are.
const NOBODY: i32 = 0;

/// What was moved of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its name.
    pub tenant: String,
    /// Its id, which it keeps.
    pub id: [u8; 16],
    /// How many events.
    pub events: u64,
    /// Whether its events have other positions in the log than they had: where one
    /// file held several tenants, each has a log of its own now.
    pub is_renumbered: bool,
}

/// Copies everything in the file `from` into the schema at `to`, which holds none of its
/// tenants, or what was copied of them before without coming to the end. The file stays
/// the store, and nobody can act on the copy: put the file aside before what halts it is
/// dropped, then say that it has [arrived].
///
/// # Errors
/// Either cannot be used, a tenant is there already, or the server has a standby that
/// commits do not wait for and the options do not accept that. Nothing was moved then,
/// but after `commit_unknown`, which the server did not say.
pub fn transfer(from: &Path, to: PostgresUrl, options: &Options) -> Result<(Vec<Moved>, Halted), StoreError> {
    Halted::check(from)?;
    let file = sqlite::Connector::new(from.to_owned(), None)?;
    let opened = identity(from)?;
    let source = file.raw_writer()?;
    sqlite::require_current(&source)?;
    // Whoever writes waits, and is refused once the file is no longer there.
    source.execute_batch("BEGIN IMMEDIATE")?;
    // Who waited for it finds what another move has put aside.
    if identity(from)? != opened {
        return Err(StoreError::from(std::io::Error::from(std::io::ErrorKind::NotFound)));
    }
    let connector = Connector::new(to)?;
    let link = connector.connect_to_act().map_err(Failure::told)?;
    let server = connector.server(&link).map_err(Failure::told)?;
    server.or_accepted(options.asynchronous_standby)?;
    let now = server.clock_us;
    schema::migrate(&connector, &link, now).map_err(Failure::told)?;
    let moved = Transfer { source: &source, link: &link, blocks: Vec::new() }.run(&connector.url.schema);
    if moved.is_err() {
        // What it failed with says more than this would.
        let _ = link.wait(link.run("ROLLBACK"));
    }
    Ok((moved.map_err(Failure::told)?, Halted { file: from.to_owned(), writer: source }))
}

/// Which file stands at a path.
fn identity(path: &Path) -> Result<(u64, u64), StoreError> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// A tenant's row.
struct Tenant {
    name: String,
    owner: Option<String>,
    id: [u8; 16],
    key: Vec<u8>,
    created_at: i64,
}

struct Transfer<'a> {
    source: &'a Connection,
    link: &'a Link,
    /// The blocks that stand for the file's numbers of streams, thousand by thousand.
    blocks: Vec<i64>,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Failed(error.into())
    }
}

impl Transfer<'_> {
    fn run(&mut self, schema: &str) -> Result<Vec<Moved>, Failure> {
        let link = self.link;
        // Migrations wait; other tenants need not.
        let (numbers, alone) = (vec![of_schema(schema)], vec![false]);
        link.wait(async {
            link.run(BEGIN).await?;
            link.run(
                "SET LOCAL idle_in_transaction_session_timeout = '60s'; SET LOCAL statement_timeout = 0",
            )
            .await?;
            link.rows(WAIT_FOR_LOCKS, &[(&numbers, Type::INT8_ARRAY), (&alone, Type::BOOL_ARRAY)]).await
        })?;
        let streams: i64 = self.one("SELECT coalesce(max(id), 0) FROM streams")?;
        for _ in 0..=streams / BLOCK {
            self.blocks.push(link.wait(next_block(link))?);
        }
        let tenants = self.tenants()?;
        let mut moved = Vec::new();
        for (old, new, Tenant { id, name, .. }) in &tenants {
            self.streams(*old, *new)?;
            let (events, is_renumbered) = (self.log(*old, *new)?, tenants.len() > 1);
            moved.push(Moved { tenant: name.clone(), id: *id, events, is_renumbered });
            self.keys(*old, *new)?;
            self.own_rows(*old, *new)?;
        }
        self.events()?;
        self.payloads()?;
        // A standby may have to write all of it first.
        link.wait_for_work(link.run("COMMIT")).map_err(|failure| match failure {
            Failure::Lost(_) => Failure::Failed(StoreError::new(Code::CommitUnknown)),
            failure => failure,
        })?;
        Ok(moved)
    }

    fn one(&self, sql: &str) -> Result<i64, Failure> {
        Ok(self.source.query_row(sql, [], |row| row.get(0))?)
    }

    /// A stream's number on the server.
    fn id(&self, old: i64) -> i64 {
        let block = usize::try_from(old / BLOCK).ok().and_then(|n| self.blocks.get(n)).copied();
        block.unwrap_or_default() * BLOCK + old % BLOCK
    }

    /// The tenants, each with its number in the file and its new number.
    fn tenants(&self) -> Result<Vec<(i64, i32, Tenant)>, Failure> {
        let link = self.link;
        let mut numbered = Vec::new();
        for (old, tenant) in tenants_of(self.source)? {
            let Tenant { name, owner, id, key, created_at } = &tenant;
            // There may be much of it.
            link.wait_for_work(link.rows(&link.sql.forget_arriving, &[(&&id[..], Type::BYTEA)]))?;
            let parameters: [Parameter<'_>; 5] = [
                (name, Type::TEXT),
                (owner, Type::TEXT),
                (&&id[..], Type::BYTEA),
                (key, Type::BYTEA),
                (created_at, Type::INT8),
            ];
            let rows = link.wait(link.rows(&link.sql.insert_arriving, &parameters));
            let rows = rows.map_err(|failure| match failure {
                Failure::Stale(Clash::Row) => there(name).into(),
                failure => failure,
            })?;
            numbered.push((old, rows.first().map_or(Ok(0), |row| row.try_get(0))?, tenant));
        }
        Ok(numbered)
    }

    fn streams(&self, old: i64, new: i32) -> Result<(), Failure> {
        let sql =
            "SELECT id, kind, name, sequence, head, open, private FROM streams WHERE tenant = ?1 ORDER BY id";
        self.pages(sql, &[old], |rows: Vec<Stream>| {
            let mut page = Rows::default();
            let made = &mut page.made;
            for (id, kind, name, sequence, head, open, private) in rows {
                made.ids.push(self.id(id));
                made.kinds.push(kind);
                made.names.push(name);
                made.sequences.push(sequence);
                made.heads.push(head);
                made.open.push(open);
                made.private.push(private);
            }
            self.save(&page, new)
        })
    }

    fn save(&self, page: &Rows<'_>, tenant: i32) -> Result<(), Failure> {
        self.link.wait_for_picture(page.save(self.link, tenant))
    }

    /// The log of a tenant, in its order.
    fn log(&self, old: i64, new: i32) -> Result<u64, Failure> {
        let sql = "SELECT e.stream, e.sequence FROM events e JOIN streams s ON s.id = e.stream
                   WHERE s.tenant = ?1 ORDER BY e.position";
        let mut events = 0;
        self.pages(sql, &[old], |rows: Vec<(i64, i64)>| {
            let log: Vec<Place> = rows
                .into_iter()
                .map(|(stream, sequence)| Place { stream: self.id(stream), sequence })
                .collect();
            let newest = events;
            events += log.len() as i64;
            self.save(&Rows { newest, log, ..Rows::default() }, new)
        })?;
        Ok(events.unsigned_abs())
    }

    fn keys(&self, old: i64, new: i32) -> Result<(), Failure> {
        let sql = "SELECT \"index\", key, stream, sequence FROM keys WHERE tenant = ?1
                   ORDER BY \"index\", key, stream";
        self.pages(sql, &[old], |rows: Vec<(i16, Vec<u8>, i64, i64)>| {
            let mut page = Rows::default();
            for (index, key, stream, sequence) in rows {
                page.keys.indexes.push(index);
                page.keys.keys.push(key);
                page.keys.streams.push(self.id(stream));
                page.keys.sequences.push(sequence);
            }
            self.save(&page, new)
        })
    }

    fn own_rows(&self, old: i64, new: i32) -> Result<(), Failure> {
        let sql = "SELECT key, value FROM own_rows WHERE tenant = ?1 ORDER BY key";
        let link = self.link;
        self.pages(sql, &[old], |rows: Vec<(String, Vec<u8>)>| {
            let (keys, values): (Vec<&str>, Vec<&[u8]>) =
                rows.iter().map(|(key, value)| (key.as_str(), &value[..])).unzip();
            let parameters: [Parameter<'_>; 3] =
                [(&new, Type::INT4), (&keys, Type::TEXT_ARRAY), (&values, Type::BYTEA_ARRAY)];
            link.wait_for_picture(link.change(rows.len(), &link.sql.put_own, &parameters))
        })
    }

    fn events(&self) -> Result<(), Failure> {
        let sql = "SELECT stream, sequence, kind, at, command, part, of, refs, data, sealed, salt, seal, hash
                   FROM events ORDER BY position";
        self.pages(sql, &[], |rows: Vec<Event>| {
            let mut page = Rows::default();
            let events = &mut page.events;
            for row in &rows {
                let [command, refs, data, sealed, salt, seal, hash] =
                    row.bytes.each_ref().map(Option::as_deref);
                events.streams.push(self.id(row.stream));
                events.sequences.push(row.sequence);
                events.kinds.push(row.kind);
                events.at.push(row.at);
                events.commands.push(command.unwrap_or_default());
                events.part.push(row.part);
                events.of.push(row.of);
                events.refs.push(refs.unwrap_or_default().to_vec());
                events.data.push(data.unwrap_or_default().to_vec());
                events.sealed.push(sealed.unwrap_or_default().to_vec());
                events.salts.push(salt);
                events.seals.push(seal);
                events.hashes.push(hash.unwrap_or_default());
            }
            self.save(&page, NOBODY)
        })
    }

    fn payloads(&self) -> Result<(), Failure> {
        let sql = "SELECT e.stream, e.sequence, p.salt, CAST(p.text AS BLOB) FROM payloads p
                   JOIN events e ON e.position = p.event ORDER BY p.event";
        self.pages(sql, &[], |rows: Vec<(i64, i64, Vec<u8>, Vec<u8>)>| {
            let mut page = Rows::default();
            for (stream, sequence, salt, text) in &rows {
                page.payloads.streams.push(self.id(*stream));
                page.payloads.sequences.push(*sequence);
                page.payloads.salts.push(salt);
                page.payloads.texts.push(text);
            }
            self.save(&page, NOBODY)
        })
    }

    /// What a query of the file finds, page by page.
    fn pages<T: FromRow>(
        &self,
        sql: &str,
        values: &[i64],
        mut page: impl FnMut(Vec<T>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut statement = self.source.prepare(sql)?;
        let mut found = statement.query(rusqlite::params_from_iter(values))?;
        let mut rows = Vec::with_capacity(PAGE);
        while let Some(row) = found.next()? {
            rows.push(T::from_row(row)?);
            if rows.len() == PAGE {
                page(std::mem::take(&mut rows))?;
            }
        }
        if rows.is_empty() { Ok(()) } else { page(rows) }
    }
}

/// Says that the files of these tenants, which were [copied](transfer) to the server at
/// this address, are the store no longer. From then on the server is. Returns the names of
/// those that had not arrived before.
///
/// # Errors
/// The server cannot be used; it may be said again.
pub fn arrived(at: PostgresUrl, tenants: &[[u8; 16]]) -> Result<Vec<String>, StoreError> {
    let connector = Connector::new(at)?;
    let ids: Vec<&[u8]> = tenants.iter().map(|id| &id[..]).collect();
    patiently(|| {
        let link = connector.connect_to_act()?;
        let rows = link.wait(async {
            link.run(BEGIN).await?;
            let rows = link.rows(&link.sql.arrive, &[(&ids, Type::BYTEA_ARRAY)]).await;
            let committed = link.run("COMMIT").await;
            let rows = rows?;
            committed.map(|()| rows)
        })?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    })
}

/// Each with its number in the file, and who made it and when.
fn tenants_of(source: &Connection) -> Result<Vec<(i64, Tenant)>, rusqlite::Error> {
    let mut statement = source
        .prepare("SELECT id, tenant, owner, tenant_id, blinding_key, created_at FROM tenants ORDER BY id")?;
    let tenants = statement.query_map([], |row| {
        let (name, owner, id) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, Tenant { name, owner, id, key: row.get(4)?, created_at: row.get(5)? }))
    })?;
    tenants.collect()
}

fn there(tenant: &str) -> StoreError {
    StoreError::with(Code::StoreForeign, format!("the server already has a tenant {tenant}"))
}

/// A row as the server takes it.
trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self>;
}

/// A stream's columns: number, kind, name, sequence, head, and the halves of its row.
type Stream = (i64, i16, Vec<u8>, i64, Vec<u8>, Vec<u8>, Vec<u8>);

/// An event's columns.
struct Event {
    stream: i64,
    sequence: i64,
    kind: i16,
    at: i64,
    part: i32,
    of: i32,
    bytes: [Option<Vec<u8>>; 7],
}

impl FromRow for Event {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Event> {
        let bytes = [4, 7, 8, 9, 10, 11, 12].map(|at| row.get(at));
        let [command, refs, data, sealed, salt, seal, hash] = bytes;
        Ok(Event {
            stream: row.get(0)?,
            sequence: row.get(1)?,
            kind: row.get(2)?,
            at: row.get(3)?,
            part: row.get(5)?,
            of: row.get(6)?,
            bytes: [command?, refs?, data?, sealed?, salt?, seal?, hash?],
        })
    }
}

macro_rules! rows {
    ($(($($kind:ident $at:tt),*))*) => {
        $(impl<$($kind: rusqlite::types::FromSql),*> FromRow for ($($kind,)*) {
            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                Ok(($(row.get::<_, $kind>($at)?,)*))
            }
        })*
    };
}

rows! {
    (A 0, B 1)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
}
