//! The writer: one transaction per batch, under the turnstile.

use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use onceseal_core::journal::Recorded;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::open::{Connector, FileIdentities, replaced};
use super::recent::Recent;
use super::transaction::Transaction;
use super::{schema, statements};
use crate::backend::{Backend, Fault, Work};
use crate::error::StoreError;
use crate::time::BatchClock;
use crate::turnstile::Turnstile;

/// Statements a writer uses; the cache keeps all of them.
const STATEMENTS: usize = 24;

/// The writer of one file for one tenant.
pub(crate) struct SqliteBackend {
    turnstile: Turnstile,
    file: File,
}

/// The file as its writer has it.
struct File {
    connector: Connector,
    connection: Connection,
    clock: BatchClock,
    opened: Opened,
    recent: Recent,
}

/// What was opened, and must be there still whenever something is written.
struct Opened {
    files: Option<FileIdentities>,
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
        let connection = connector.writer()?;
        // Looked at after SQLite has opened them.
        let opened = Opened { files: connector.identities()?, tenant, tenant_id };
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let file = File { connector, connection, clock, opened, recent: Recent::default() };
        Ok(SqliteBackend { turnstile, file })
    }

    fn look_again(&mut self, first: &Recorded, position: i64) -> Result<bool, StoreError> {
        let _turn = self.turnstile.enter()?;
        let marked = self.file.mark();
        if marked.is_err() {
            self.file.roll_back();
        }
        marked?;
        Ok(self.file.hash_at(position)? == Some(first.hash))
    }
}

impl Backend for SqliteBackend {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let failed = {
            let _turn = self.turnstile.enter().map_err(StoreError::from)?;
            match self.file.transact(work) {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            }
        };
        match failed {
            Failed::Before(error) => Err(Fault::Nothing(error)),
            Failed::Commit { error, first, position } => match self.look_again(&first, position) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Fault::Nothing(error)),
                Err(_) => Err(Fault::Unknown(StoreError::new(Code::CommitUnknown))),
            },
        }
    }

    fn accept_clock(&mut self) {
        self.file.clock.accept();
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

impl File {
    /// One transaction. After one that failed nothing is open and nothing is
    /// taken as known.
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), Failed> {
        let result = self.commit(work);
        if result.is_err() {
            self.recent.forget();
            self.roll_back();
        }
        result
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // A failed rollback leaves a transaction that the next BEGIN refuses;
            // SQLite itself rolls back when the connection closes.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn commit(&mut self, work: &mut Work<'_>) -> Result<(), Failed> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.guard()?;
        crate::fault::reach("after_begin")?;
        let now = self.clock.read()?;
        let mut transaction = Transaction::new(&self.connection, self.opened.tenant, now, &mut self.recent);
        let Some(changes) = work(&mut transaction)? else {
            self.connection.prepare_cached("ROLLBACK")?.execute([])?;
            return Ok(());
        };
        let position = transaction.save(&changes)?;
        crate::fault::reach("before_commit")?;
        let answer = match self.connection.prepare_cached("COMMIT")?.execute([]) {
            // An answer lost on the way, as a test may have it, is an answer not known.
            // Committed to files that are gone is committed to nothing.
            Ok(_) => crate::fault::reach("after_commit")
                .and_then(|()| guard_files(&self.connector, &self.opened))
                .map_err(|error| (true, error)),
            Err(error) => Err((is_uncertain(&error), error.into())),
        };
        if answer.is_ok() {
            transaction.committed(&changes);
        }
        match (answer, changes.events.into_iter().next()) {
            (Ok(()), _) => Ok(()),
            (Err((true, error)), Some(first)) => {
                Err(Failed::Commit { error, first: Box::new(first), position })
            }
            (Err((_, error)), _) => Err(Failed::Before(error)),
        }
    }

    /// The file is still the one at the path, still ours and still has our
    /// tenant: somebody may have put another in its place, restored one over it,
    /// or brought it to a newer schema.
    fn guard(&mut self) -> Result<(), StoreError> {
        let foreign = |what| Err(StoreError::with(Code::StoreForeign, what));
        guard_files(&self.connector, &self.opened)?;
        let version =
            self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.recent.is_of(version) {
            return Ok(());
        }
        if !schema::is_current(&self.connection)? {
            return foreign("its schema is not the one that was opened; use a newer onceseal");
        }
        let mut statement = self.connection.prepare_cached(statements::TENANT_ID)?;
        match statement.query_row([self.opened.tenant], |row| row.get::<_, [u8; 16]>(0)).optional()? {
            Some(id) if id == self.opened.tenant_id => {
                self.recent.begin_anew(version);
                Ok(())
            }
            _ => foreign("its tenant is not the one that was opened; open it anew"),
        }
    }

    /// Commits a marker on the connection whose COMMIT failed: after that the
    /// file says what was recorded.
    ///
    /// It stays open: its index of the log knows which frames are committed.
    /// Opened anew, SQLite believes every whole frame it reads, and one whose
    /// sync failed is read from memory and may never reach the disk: a later
    /// sync that succeeds says nothing of it (fsync(2), EIO). The marker takes
    /// the place of such frames.
    fn mark(&mut self) -> Result<(), StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.guard()?;
        // The same number again: a page is written all the same.
        self.connection.pragma_update(None, "user_version", schema::SCHEMA_VERSION)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    /// The hash of the event at a position of the log.
    fn hash_at(&self, position: i64) -> Result<Option<Hash>, StoreError> {
        let hash = self.connection.query_row(statements::HASH, [position], |row| row.get(0));
        Ok(hash.optional()?.map(Hash))
    }
}

/// The file and its log are still those at the path: in another's place or
/// removed, what is written reaches nobody who opens the path.
fn guard_files(connector: &Connector, opened: &Opened) -> Result<(), StoreError> {
    if connector.identities()? == opened.files {
        return Ok(());
    }
    Err(replaced())
}

/// An answered error other than I/O or disk full means that nothing happened.
fn is_uncertain(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::DiskFull) | None)
}
