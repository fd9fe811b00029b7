//! The schema and its migrations: numbered, forward only, one transaction each.

mod faults;

use std::cmp::Ordering;

use onceseal_core::code::Code;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::Failure;
use super::link::Link;
use super::lock::of_schema;
use super::statements::{BEGIN, WAIT_FOR_LOCKS, in_schema};
use crate::columns::integer;
use crate::error::StoreError;

pub(super) use faults::{faults, hidden};

/// Name and text of migrations, numbered from 1.
pub(super) type Migrations = &'static [(&'static str, &'static str)];

pub(super) const MIGRATIONS: Migrations = &[("first", include_str!("0001_first.sql"))];

/// The schema that a program writes: the number of its last migration.
pub(super) const fn version(migrations: Migrations) -> i64 {
    migrations.len() as i64
}

/// What a database is to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The schema is not there, or has nothing in it.
    Empty,
    /// Ours, at this version.
    Ours(i64),
}

/// Holds the version that was found against the one that is known, in every
/// transaction: another program may bring it further.
pub(super) fn check_version(found: i64, known: i64) -> Result<(), StoreError> {
    match found.cmp(&known) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(StoreError::new(Code::SchemaOld)),
        Ordering::Greater => Err(foreign("its schema is not the one that was opened; use a newer onceseal")),
    }
}

/// Looks at a database without changing it.
pub(super) async fn look(connector: &Connector, link: &Link) -> Result<Found, Failure> {
    let (schema, known) = (connector.url.schema.as_str(), version(connector.migrations));
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
        Some(version) if (1..=known).contains(&version) => Ok(Found::Ours(version)),
        Some(version) => Err(foreign(&format!(
            "its schema is {version}, this program knows up to {known}; use a newer onceseal"
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
    loop {
        if link.wait_for_work(step(connector, link, now))? {
            return Ok(());
        }
    }
}

/// The next migration; `true` where there is none.
async fn step(connector: &Connector, link: &Link, now: i64) -> Result<bool, Failure> {
    // Most of the time there is nothing to do, and nobody to be kept waiting.
    if look(connector, link).await? == Found::Ours(version(connector.migrations)) {
        return Ok(true);
    }
    link.run(BEGIN).await?;
    let stepped = within(connector, link, now).await;
    if stepped.is_err() {
        // What it failed with says more than this would.
        let _ = link.run("ROLLBACK").await;
    }
    stepped
}

async fn within(connector: &Connector, link: &Link, now: i64) -> Result<bool, Failure> {
    let schema = connector.url.schema.as_str();
    let (numbers, alone) = (vec![of_schema(schema)], vec![true]);
    link.run("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0").await?;
    link.rows(WAIT_FOR_LOCKS, &[(&numbers, Type::INT8_ARRAY), (&alone, Type::BOOL_ARRAY)]).await?;
    let version = match look(connector, link).await? {
        Found::Ours(version) => version,
        Found::Empty => {
            // Whoever owns one that is there need not be able to make one.
            let there = "SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1";
            if link.rows(there, &[(&schema, Type::TEXT)]).await?.is_empty() {
                link.run(&in_schema("CREATE SCHEMA @", schema)).await?;
            }
            0
        }
    };
    let next = usize::try_from(version).unwrap_or(usize::MAX);
    let Some((name, sql)) = connector.migrations.get(next) else {
        // Another has done it meanwhile.
        link.run("ROLLBACK").await?;
        return Ok(true);
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

#[cfg(test)]
mod tests;
