//! How connections are made: the same settings on each, checked as found.

use std::path::{Path, PathBuf};
use std::time::Duration;

use onceseal_core::code::Code;
use onceseal_core::hash::BlindingKey;
use onceseal_core::stream::Tenant;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::identity::{self, Identity};
use super::{schema, statements};
use crate::error::StoreError;
use crate::place::private::beside;

/// For programs that do not know the turnstile.
const BUSY: Duration = Duration::from_secs(5);
/// The size of a page of our files, in bytes.
const PAGE: u64 = 4096;

/// Settings as a connection reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) journal_mode: String,
    pub(crate) synchronous: i64,
    pub(crate) foreign_keys: bool,
}

/// A tenant as a file has it.
#[derive(Debug)]
pub(crate) struct Founded {
    /// Its number in the file.
    pub(crate) row: i64,
    pub(crate) tenant: Tenant,
    /// Whoever made it.
    pub(crate) owner: Option<String>,
}

/// Makes connections to one file.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    path: PathBuf,
    /// The database, its log and the log's index.
    files: [PathBuf; 3],
    vfs: Option<String>,
}

/// Which files they are, whatever their names: the database, its log and the
/// log's index.
pub(super) type FileIdentities = [Identity; 3];

impl Connector {
    /// For a path that names a file: SQLite takes some for a database in
    /// memory, a temporary one or a URI.
    pub(crate) fn new(path: PathBuf, vfs: Option<String>) -> Result<Connector, StoreError> {
        let name = path.as_os_str().as_encoded_bytes();
        if name.is_empty() || name.starts_with(b":") || name.starts_with(b"file:") || name.contains(&0) {
            return Err(StoreError::with(
                Code::StoreFailed,
                "the path does not name a file: databases in memory and URIs are refused",
            ));
        }
        let files = ["", "-wal", "-shm"].map(|suffix| beside(&path, suffix));
        Ok(Connector { path, files, vfs })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file before anything is written to it or beside it.
    pub(crate) fn look(&self) -> Result<(), StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // Another program's write-ahead log is not ours to carry into its file.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        match schema::facts(&connection) {
            Ok(facts) => schema::classify(facts).map(drop),
            // A rollback journal waits to be played back. Ours is at most the one of
            // an empty file that a crash left halfway into its write-ahead mode.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
                match std::fs::symlink_metadata(&self.path)?.len() {
                    ..=PAGE => Ok(()),
                    _ => Err(StoreError::with(
                        Code::StoreForeign,
                        "another program left work unfinished in it",
                    )),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Which files are at the path now, zeros for one that is missing; `None`
    /// where only a virtual file system knows.
    pub(super) fn identities(&self) -> Result<Option<FileIdentities>, StoreError> {
        if self.vfs.is_some() {
            return Ok(None);
        }
        let mut identities = FileIdentities::default();
        for (identity, path) in identities.iter_mut().zip(&self.files) {
            *identity = identity::of(path)?;
        }
        Ok(Some(identities))
    }

    /// Which file is at the path now; `None` where only a virtual file system knows.
    pub(super) fn identity(&self) -> Result<Option<Identity>, StoreError> {
        match self.vfs {
            Some(_) => Ok(None),
            None => Ok(Some(identity::of(&self.path)?)),
        }
    }

    /// Brings the file to this program's schema and finds the tenant of this name, or
    /// makes this one, which `owner` then owns.
    pub(crate) fn found(&self, new: &Tenant, owner: Option<&str>, now: i64) -> Result<Founded, StoreError> {
        let mut connection = self.writer()?;
        empty_log(&connection)?;
        crate::fault::reach("before_migrate")?;
        schema::migrate(&mut connection, now)?;
        crate::fault::reach("after_migrate")?;
        let found = match find_tenant(&connection, &new.name)? {
            Some(found) => found,
            None => make_tenant(&mut connection, new, owner, now)?,
        };
        crate::fault::reach("after_tenant")?;
        Ok(found)
    }

    /// The tenant, if the file has it; changes nothing.
    pub(crate) fn find(&self, tenant: &str) -> Result<Option<Founded>, StoreError> {
        self.look()?;
        let connection = self.reader()?;
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
             PRAGMA temp_store=MEMORY; PRAGMA cache_size=-4096; PRAGMA cell_size_check=ON;",
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
        // The writer carries the log into the file, with the syncs it takes.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
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

/// The store's files are gone, or others are in their place.
pub(super) fn replaced() -> StoreError {
    let what = "its files have been removed or others put in their place; open it anew";
    StoreError::with(Code::StoreForeign, what)
}

/// Brings what an earlier process left in the log into the database, before
/// anything is promised on top of it.
///
/// Its last frames may come from memory: a sync of theirs failed, and no later
/// one makes that good (fsync(2), EIO). Nothing recorded behind such a frame
/// would outlive a power loss. Where another process has the file open, the
/// log is its to know.
fn empty_log(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(connection.busy_timeout(BUSY)?)
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
///
/// # Errors
/// The default tenant is gone from a file that has been written to: what was
/// recorded for it would be forgotten under another key.
fn find_tenant(connection: &Connection, name: &str) -> Result<Option<Founded>, StoreError> {
    let found = connection.query_row(statements::TENANT, [name], |row| {
        let tenant = Tenant { name: name.to_owned(), id: row.get(1)?, key: BlindingKey(row.get(2)?) };
        Ok(Founded { row: row.get(0)?, tenant, owner: row.get(3)? })
    });
    let found = found.optional()?;
    if found.is_none() && name == Tenant::DEFAULT {
        let written =
            connection.query_row(statements::ANY_STREAM, [], |row| row.get::<_, i64>(0)).optional()?;
        if written.is_some() {
            return Err(StoreError::with(
                Code::StoreForeign,
                "it has been written to and has no default tenant; restore it, or set `tenant`",
            ));
        }
    }
    Ok(found)
}

/// The tenant of this name, made if the file does not have it.
fn make_tenant(
    connection: &mut Connection,
    new: &Tenant,
    owner: Option<&str>,
    now: i64,
) -> Result<Founded, StoreError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if let Some(found) = find_tenant(&transaction, &new.name)? {
        return Ok(found);
    }
    transaction.execute(
        "INSERT INTO tenants (tenant, owner, tenant_id, blinding_key, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (&new.name, owner, new.id, new.key.0, now),
    )?;
    let row = transaction.last_insert_rowid();
    transaction.commit()?;
    Ok(Founded { row, tenant: new.clone(), owner: owner.map(str::to_owned) })
}
