//! The schema and its migrations: numbered, forward only, one transaction each.

use onceseal_core::code::Code;
use onceseal_core::json::escape_for_display;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::Failure;
use super::link::Link;
use super::lock::of_schema;
use super::statements::{BEGIN, FOREIGN_TO_TABLES, WAIT_FOR_LOCKS, in_schema};
use crate::columns::integer;
use crate::error::StoreError;

const MIGRATIONS: [(&str, &str); 1] = [("first", include_str!("0001_first.sql"))];

/// The schema that this program writes: the number of the last migration.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a database is to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The schema is not there, or has nothing in it.
    Empty,
    /// Ours, at this version.
    Ours(i64),
}

/// Asked in every transaction, since another program may bring it further.
pub(super) fn check_version(version: i64) -> Result<(), StoreError> {
    match version {
        VERSION => Ok(()),
        ..VERSION => Err(StoreError::new(Code::SchemaOld)),
        _ => Err(StoreError::with(
            Code::StoreForeign,
            "its schema is not the one that was opened; use a newer onceseal",
        )),
    }
}

/// Looks at a database without changing it.
pub(super) async fn look(link: &Link, schema: &str) -> Result<Found, Failure> {
    let tables = link
        .rows(
            "SELECT c.relname = 'schema_migrations' FROM pg_catalog.pg_class c
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1",
            &[(&schema, Type::TEXT)],
        )
        .await?;
    if tables.is_empty() {
        return Ok(Found::Empty);
    }
    if !tables.iter().any(|row| row.try_get(0).is_ok_and(|is_ours: bool| is_ours)) {
        return Err(foreign("the schema holds another program's tables").into());
    }
    let applied = link.rows(&link.sql.migrations, &[]).await?;
    match applied.last().map(|row| integer(row, 0, "schema_migrations.id")).transpose()? {
        Some(version) if (1..=VERSION).contains(&version) => Ok(Found::Ours(version)),
        Some(version) => Err(foreign(&format!(
            "its schema is {version}, this program knows up to {VERSION}; use a newer onceseal"
        ))
        .into()),
        None => Err(foreign("its list of migrations is empty").into()),
    }
}

fn foreign(what: &str) -> StoreError {
    StoreError::with(Code::StoreForeign, what)
}

/// Brings a database to this program's schema. Whoever gets the lock first does
/// it; the others find it done.
pub(super) fn migrate(connector: &Connector, link: &Link, now: i64) -> Result<(), Failure> {
    let schema = connector.url.schema.as_str();
    loop {
        if link.wait(step(link, schema, now))? {
            return Ok(());
        }
    }
}

/// The next migration; `true` where there is none.
async fn step(link: &Link, schema: &str, now: i64) -> Result<bool, Failure> {
    // Most of the time there is nothing to do, and nobody to be kept waiting.
    if look(link, schema).await? == Found::Ours(VERSION) {
        return Ok(true);
    }
    link.run(BEGIN).await?;
    let stepped = within(link, schema, now).await;
    if stepped.is_err() {
        // What it failed with says more than this would.
        let _ = link.run("ROLLBACK").await;
    }
    stepped
}

async fn within(link: &Link, schema: &str, now: i64) -> Result<bool, Failure> {
    let (numbers, alone) = (vec![of_schema(schema)], vec![true]);
    link.run("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0").await?;
    link.rows(WAIT_FOR_LOCKS, &[(&numbers, Type::INT8_ARRAY), (&alone, Type::BOOL_ARRAY)]).await?;
    let version = match look(link, schema).await? {
        Found::Ours(VERSION) => {
            link.run("ROLLBACK").await?;
            return Ok(true);
        }
        Found::Ours(version) => version,
        Found::Empty => {
            link.run(&in_schema("CREATE SCHEMA IF NOT EXISTS @", schema)).await?;
            0
        }
    };
    let next = usize::try_from(version).unwrap_or(usize::MAX);
    let Some((name, sql)) = MIGRATIONS.get(next) else {
        return Err(foreign("no migration leads on from its schema").into());
    };
    link.run(&in_schema(sql, schema)).await?;
    crate::fault::reach("mid_migrate")?;
    let number = i32::try_from(version + 1).unwrap_or(i32::MAX);
    link.change(
        1,
        &link.sql.insert_migration,
        &[(&number, Type::INT4), (name, Type::TEXT), (&now, Type::INT8)],
    )
    .await?;
    link.run("COMMIT").await?;
    Ok(false)
}

/// Rows that name others which are not there, as foreign keys would forbid, what is
/// tied to our tables and none of ours, and another list of migrations: one sentence
/// each. Whether columns and functions are as they were made is not looked at.
pub(super) async fn faults(link: &Link, schema: &str) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    for (sql, what) in [
        (&link.sql.stray_events, "events name a stream that is not there"),
        (&link.sql.stray_payloads, "payloads name an event that is not there"),
        (&link.sql.stray_keys, "keys name a stream that is not there"),
        (&link.sql.stray_log, "places of the log name an event that is not there"),
    ] {
        let rows = link.rows(sql, &[]).await?;
        match rows.first().map_or(Ok(0), |row| integer(row, 0, "count"))? {
            0 => {}
            n => faults.push(format!("{n} {what}")),
        }
    }
    for row in link.rows(FOREIGN_TO_TABLES, &[(&schema, Type::TEXT)]).await? {
        let (table, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        faults.push(format!("{} on the table {table} is none of ours", escape_for_display(&name)));
    }
    let applied = link.rows(&link.sql.migrations, &[]).await?;
    let known = (1..).zip(MIGRATIONS.map(|(name, _)| name));
    let is_known = applied
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<Vec<(i64, &str)>, Failure>>()?
        .into_iter()
        .eq(known);
    if !is_known {
        faults.push("schema_migrations does not list the migrations of this program".to_owned());
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use onceseal_servers::server;

    use super::*;

    #[test]
    fn rows_that_name_nothing_and_triggers_of_others_are_found() {
        let database = server().new_database();
        let connector = Connector::new(database.url().parse().expect("an address")).expect("a connector");
        let link = connector.connect().expect("connected");
        migrate(&connector, &link, 0).expect("the schema");
        let found = || link.wait(faults(&link, "onceseal")).expect("looked");
        assert_eq!(found(), Vec::<String>::new());
        let hash = "decode(repeat('01', 32), 'hex')";
        database.sql(&format!(
            "INSERT INTO onceseal.payloads VALUES (7, 1, {hash}, ''); \
             INSERT INTO onceseal.keys VALUES (1, 1, '', 7, 0); \
             INSERT INTO onceseal.log VALUES (1, 1, 7, 1); \
             INSERT INTO onceseal.events VALUES (8, 1, 1, 0, decode(repeat('01', 16), 'hex'), 1, 1, '', '', '', NULL, \
                 NULL, {hash}); \
             INSERT INTO onceseal.schema_migrations VALUES (2, 'later', 0); \
             CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER spy BEFORE INSERT ON onceseal.events FOR EACH ROW EXECUTE FUNCTION public.spy()"
        ));
        assert_eq!(
            found(),
            [
                "1 events name a stream that is not there",
                "1 payloads name an event that is not there",
                "1 keys name a stream that is not there",
                "1 places of the log name an event that is not there",
                "spy on the table events is none of ours",
                "schema_migrations does not list the migrations of this program",
            ]
        );
    }
}
