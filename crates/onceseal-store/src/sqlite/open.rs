//! How connections are made: the same settings on each, checked as found.

use std::path::PathBuf;
use std::time::Duration;

use onceseal_core::code::Code;
use onceseal_core::hash::BlindingKey;
use onceseal_core::stream::Tenant;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::schema;
use crate::error::StoreError;

/// For programs that do not know the turnstile.
const BUSY: Duration = Duration::from_secs(5);

/// Settings as a connection reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) journal_mode: String,
    pub(crate) synchronous: i64,
    pub(crate) foreign_keys: bool,
}

/// Makes connections to one file.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    path: PathBuf,
    vfs: Option<String>,
}

impl Connector {
    pub(crate) const fn new(path: PathBuf, vfs: Option<String>) -> Connector {
        Connector { path, vfs }
    }

    /// Brings the file to this program's schema and finds or makes the tenant.
    pub(crate) fn found(&self, tenant: &str, now: i64) -> Result<(i64, Tenant), StoreError> {
        let mut connection = self.writer()?;
        schema::migrate(&mut connection, now)?;
        match find_tenant(&connection, tenant)? {
            Some(found) => Ok(found),
            None => make_tenant(&mut connection, tenant, now),
        }
    }

    /// The tenant, if the file has it; changes nothing.
    pub(crate) fn find(&self, tenant: &str) -> Result<Option<(i64, Tenant)>, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        match schema::look(&connection)? {
            schema::Found::Empty => Ok(None),
            schema::Found::Ours(_) => find_tenant(&connection, tenant),
        }
    }

    /// A connection that writes, to a file that is ours or empty.
    pub(super) fn writer(&self) -> Result<Connection, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::look(&connection)?;
        let mode: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(StoreError::with(
                Code::StoreFailed,
                "the file system does not support a write-ahead log",
            ));
        }
        connection.execute_batch(
            "PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON;
             PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=67108864;
             PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16384; PRAGMA cell_size_check=ON;",
        )?;
        Ok(connection)
    }

    /// A connection that writes without the writer's turns and statements.
    pub(crate) fn raw_writer(&self) -> Result<Connection, StoreError> {
        let connection = self.writer()?;
        connection.set_prepared_statement_cache_capacity(8);
        Ok(connection)
    }

    /// A connection that only reads.
    pub(super) fn reader(&self) -> Result<Connection, StoreError> {
        // Opened for writing: a reader of a write-ahead log may have to recover it.
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::look(&connection)?;
        connection.execute_batch("PRAGMA query_only=ON; PRAGMA cache_size=-4096;")?;
        Ok(connection)
    }

    fn connect(&self, access: OpenFlags) -> Result<Connection, StoreError> {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = match &self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs.as_str())?,
            None => Connection::open_with_flags(&self.path, flags)?,
        };
        connection.busy_timeout(BUSY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.set_prepared_statement_cache_capacity(0);
        Ok(connection)
    }
}

/// What a connection says of its settings.
pub(crate) fn settings(connection: &Connection) -> Result<Settings, StoreError> {
    Ok(Settings {
        journal_mode: connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?,
        synchronous: connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?,
        foreign_keys: connection.query_row("PRAGMA foreign_keys", [], |row| row.get(0))?,
    })
}

/// The tenant of this name, if the file has it.
fn find_tenant(connection: &Connection, name: &str) -> Result<Option<(i64, Tenant)>, StoreError> {
    let sql = "SELECT id, tenant_id, blinding_key FROM tenants WHERE tenant = ?1";
    let found = connection.query_row(sql, [name], |row| {
        let tenant = Tenant { name: name.to_owned(), id: row.get(1)?, key: BlindingKey(row.get(2)?) };
        Ok((row.get(0)?, tenant))
    });
    Ok(found.optional()?)
}

/// The tenant of this name, made if the file does not have it.
fn make_tenant(connection: &mut Connection, name: &str, now: i64) -> Result<(i64, Tenant), StoreError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if let Some(found) = find_tenant(&transaction, name)? {
        return Ok(found);
    }
    let (mut id, mut key) = ([0; 16], [0; 32]);
    for bytes in [&mut id[..], &mut key[..]] {
        getrandom::fill(bytes).map_err(|error| StoreError::with(Code::StoreFailed, error.to_string()))?;
    }
    transaction.execute(
        "INSERT INTO tenants (tenant, tenant_id, blinding_key, created_at) VALUES (?1, ?2, ?3, ?4)",
        (name, id, key, now),
    )?;
    let row = transaction.last_insert_rowid();
    transaction.commit()?;
    Ok((row, Tenant { name: name.to_owned(), id, key: BlindingKey(key) }))
}
