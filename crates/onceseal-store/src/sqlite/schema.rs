//! The schema and its migrations: numbered, forward only, one transaction each.

use std::collections::BTreeMap;

use onceseal_core::code::Code;
use onceseal_core::json::escape_for_display;
use rusqlite::Connection;

use crate::error::StoreError;

/// `application_id` of our files: "OnSl".
pub const APPLICATION_ID: i32 = 0x4f6e_536c;

/// The schema this program writes: the number of the last migration.
pub const SCHEMA_VERSION: i32 = MIGRATIONS.len() as i32;

const MIGRATIONS: [(&str, &str); 2] =
    [("first", include_str!("0001_first.sql")), ("own_rows", include_str!("0002_own_rows.sql"))];

/// What a file is to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing has been written to it.
    Empty,
    /// Ours, at this version.
    Ours(i32),
}

/// Looks at a file without changing it.
pub(super) fn look(connection: &Connection) -> Result<Found, StoreError> {
    classify(facts(connection)?)
}

/// Application id, version, number of tables and indexes.
pub(super) type Facts = (i32, i32, i64);

/// In one statement, since another process may be migrating just now.
pub(super) fn facts(connection: &Connection) -> rusqlite::Result<Facts> {
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
               FROM pragma_application_id, pragma_user_version";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

pub(super) fn classify((application, version, tables): Facts) -> Result<Found, StoreError> {
    match (application, version, tables) {
        (0, 0, 0) => Ok(Found::Empty),
        (APPLICATION_ID, version, _) if (1..=SCHEMA_VERSION).contains(&version) => Ok(Found::Ours(version)),
        (APPLICATION_ID, version, _) => Err(StoreError::with(
            Code::StoreForeign,
            format!(
                "its schema is {version}, this program knows up to {SCHEMA_VERSION}; use a newer onceseal"
            ),
        )),
        _ => Err(StoreError::with(Code::StoreForeign, "the file is another program's database")),
    }
}

/// Whether a file that was ours still is, and still has this program's schema:
/// asked in every transaction, since another program may bring it further.
pub(super) fn is_current(connection: &Connection) -> Result<bool, StoreError> {
    let read = |sql| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i32>(0));
    Ok(read("PRAGMA application_id")? == APPLICATION_ID && read("PRAGMA user_version")? == SCHEMA_VERSION)
}

/// Brings a file to this program's schema. Whoever gets the write lock first
/// does it; the others find it done.
pub(super) fn migrate(connection: &mut Connection, now: i64) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version = match look(&transaction)? {
            Found::Ours(SCHEMA_VERSION) => return Ok(()),
            Found::Ours(version) => version,
            Found::Empty => 0,
        };
        let next = usize::try_from(version).unwrap_or(usize::MAX);
        let Some((name, sql)) = MIGRATIONS.get(next) else {
            return Err(StoreError::with(Code::StoreForeign, "no migration leads on from its schema"));
        };
        transaction.execute_batch(sql)?;
        crate::fault::reach("mid_migrate")?;
        transaction.execute(
            "INSERT INTO schema_migrations (id, name, applied_at) VALUES (?1, ?2, ?3)",
            (version + 1, name, now),
        )?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
}

/// How the schema of a file differs from the one that the migrations make: one
/// sentence for each table, index, trigger or view.
pub(super) fn faults(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let ours = Connection::open_in_memory()?;
    for (_, sql) in MIGRATIONS {
        ours.execute_batch(sql)?;
    }
    let (expected, mut found) = (objects(&ours)?, objects(connection)?);
    let mut faults = Vec::new();
    for (object, sql) in expected {
        match found.remove(&object) {
            Some(other) if other == sql => {}
            Some(_) => faults.push(format!("the {} {} is not as this program makes it", object.0, object.1)),
            None => faults.push(format!("the {} {} is missing", object.0, object.1)),
        }
    }
    let more = found.into_keys();
    faults
        .extend(more.map(|(what, name)| format!("the {what} {} is none of ours", escape_for_display(&name))));
    if faults.is_empty() {
        faults.extend(unlike_migrations(connection)?);
    }
    Ok(faults)
}

/// How the record of migrations differs from those that this program knows.
fn unlike_migrations(connection: &Connection) -> Result<Option<String>, StoreError> {
    let mut statement = connection.prepare("SELECT id, name FROM schema_migrations ORDER BY id")?;
    let found = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let found = found.collect::<Result<Vec<_>, _>>();
    let known = (1..).zip(MIGRATIONS).map(|(id, (name, _))| (id, name.to_owned()));
    let is_known = found.is_ok_and(|found| found.into_iter().eq(known));
    Ok((!is_known).then(|| "schema_migrations does not list the migrations of this program".to_owned()))
}

/// What a schema has, by kind and name, with the text that made it; not what
/// SQLite makes by itself.
fn objects(connection: &Connection) -> Result<BTreeMap<(String, String), Option<String>>, StoreError> {
    // The indexes of unique columns and ANALYZE's tables are SQLite's own; no
    // trigger or view is, whatever its name.
    let sql = "SELECT type, name, sql FROM sqlite_schema
               WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(sql)?;
    let object = |row: &rusqlite::Row<'_>| Ok(((row.get(0)?, row.get(1)?), row.get(2)?));
    let found = statement.query_map([], object)?;
    Ok(found.collect::<Result<_, _>>()?)
}
