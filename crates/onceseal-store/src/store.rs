//! The store: commands in, answers out, snapshots for whoever reads.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal_core::code::Code;
use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::hash::Hash;
use onceseal_core::journal::Row;
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::Reply;
use onceseal_core::stream::Tenant;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Loaded, Pinned};

use crate::clock::Clock;
use crate::error::StoreError;
use crate::executor::{Executor, Outcome};
use crate::hints::Hints;
use crate::own::{OWN_TIME, OwnError, OwnRows, Undone};
use crate::parts::{Options, Parts, ReadingParts, fill};
#[cfg(feature = "postgres")]
use crate::postgres::PostgresUrl;
use crate::queue::Ticket;
use crate::read::{self, Readers, Rows, Snapshot};
use crate::sweeps::Sweeps;
use crate::writer::{Unwritten, Writer};

/// An open store of one tenant. Cheap to share behind an `Arc`.
pub struct Store {
    tenant: Tenant,
    clock: Arc<dyn Clock>,
    writer: Writer,
    readers: Box<dyn Readers>,
    hints: Hints,
    sweeps: Option<Box<dyn Sweeps>>,
    closed: AtomicBool,
}

impl Store {
    /// A store in memory, gone with the process.
    ///
    /// # Errors
    /// As [`Parts::memory`].
    pub fn memory(options: &Options) -> Result<Store, StoreError> {
        Store::of(Parts::memory(options)?)
    }

    /// The store in this file.
    ///
    /// # Errors
    /// As [`Parts::sqlite`].
    pub fn sqlite(path: PathBuf, options: &Options) -> Result<Store, StoreError> {
        Store::of(Parts::sqlite(path, options)?)
    }

    /// The store in this file for reading alone, without a writer: commands are
    /// answered `store_closed`. `None` if nothing is recorded for the tenant.
    ///
    /// # Errors
    /// `store_foreign` for another program's or a newer file; `store_failed` if
    /// it cannot be used.
    pub fn sqlite_reader(path: PathBuf, options: &Options) -> Result<Option<Store>, StoreError> {
        ReadingParts::sqlite(path, options)?.map(Store::reading).transpose()
    }

    /// The store at this address.
    ///
    /// # Errors
    /// As [`Parts::postgres`].
    #[cfg(feature = "postgres")]
    pub fn postgres(url: PostgresUrl, options: &Options) -> Result<Store, StoreError> {
        Store::of(Parts::postgres(url, options)?)
    }

    /// The store at this address for reading alone, as [`Store::sqlite_reader`].
    ///
    /// # Errors
    /// As [`Parts::postgres`].
    #[cfg(feature = "postgres")]
    pub fn postgres_reader(url: PostgresUrl, options: &Options) -> Result<Option<Store>, StoreError> {
        ReadingParts::postgres(url, options)?.map(Store::reading).transpose()
    }

    /// Whether the server at this address has this tenant; changes nothing.
    ///
    /// # Errors
    /// As [`Parts::postgres`].
    #[cfg(feature = "postgres")]
    pub fn is_on_server(url: &PostgresUrl, tenant: &str) -> Result<bool, StoreError> {
        ReadingParts::is_on_server(url, tenant)
    }

    pub(crate) fn reading(parts: ReadingParts) -> Result<Store, StoreError> {
        let ReadingParts { tenant, readers, hints, clock } = parts;
        let (closed, writer) = (AtomicBool::new(false), Writer::closed()?);
        Ok(Store { tenant, clock, writer, readers, hints, sweeps: None, closed })
    }

    /// The store of these parts.
    ///
    /// # Errors
    /// The tenant's first event cannot be recorded.
    pub fn of(parts: Parts) -> Result<Store, StoreError> {
        Store::created(parts, stamped(Command::Create)?)
    }

    /// As [`Store::of`], with what makes the tenant's first event this one.
    #[cfg(feature = "conformance")]
    pub fn same(parts: Parts, create: Stamped) -> Result<Store, StoreError> {
        Store::created(parts, create)
    }

    fn created(parts: Parts, create: Stamped) -> Result<Store, StoreError> {
        let Parts { tenant, owner, backend, helping, waiting, readers, decide, hints, sweeps, clock } = parts;
        let pinned = Pinned::new(tenant.clone(), owner);
        let executor = |backend| Executor::new(backend, pinned.clone(), decide.clone());
        let executors = |all: Vec<_>| all.into_iter().map(executor).collect();
        let writer = Writer::start(executor(backend), executors(helping), executors(waiting))?;
        let closed = AtomicBool::new(false);
        let store = Store { tenant, clock, writer, readers, hints, sweeps, closed };
        match store.writer.submit(create).wait() {
            // It was created, and its row was changed since: an audit names it.
            Err(error) if error.code() == Code::Corrupt => {}
            created => drop(created?),
        }
        Ok(store)
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Where its time comes from.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Hints that others committed something, for whoever waits for them: on a server
    /// whose address says where to `listen`.
    #[must_use]
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// The wall clock now: a hint for whoever looks for what is due. Decisions
    /// take the time of their batch instead.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().wall_us).unwrap_or(Timestamp::MIN)
    }

    /// Submits a command. It is run whether its answer is waited for or not.
    ///
    /// # Errors
    /// A system without random numbers. Whether the store takes the command is
    /// the ticket's answer.
    pub fn submit(&self, command: Command) -> Result<Ticket, StoreError> {
        Ok(self.writer.submit(stamped(command)?))
    }

    /// Submits commands that are stamped already, all at once: they are in one batch,
    /// if its time is enough for them.
    #[cfg(feature = "conformance")]
    pub fn submit_all(&self, commands: Vec<Stamped>) -> Vec<Ticket> {
        self.writer.submit_all(commands)
    }

    /// As [`Store::submit`], for a thread that may block: where nobody else
    /// writes it runs the command itself, and the ticket is answered. Not for
    /// async code.
    ///
    /// # Errors
    /// As [`Store::submit`].
    pub fn submit_here(&self, command: Command) -> Result<Ticket, StoreError> {
        Ok(self.writer.submit_here(stamped(command)?))
    }

    /// Submits a command and blocks until it is answered. Not for async code.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn run(&self, command: Command) -> Outcome {
        self.submit_here(command)?.wait()
    }

    /// Runs a command in a transaction of its own in which `write` changes rows of
    /// the caller's: both are recorded, or neither is. `write` is called once the
    /// command is decided, with its answer; not for a refusal, and not where the
    /// answer is one that was given before. Blocks; not for async code. Others wait
    /// meanwhile, so `write` has [`OWN_TIME`](crate::OWN_TIME) and calls nothing of
    /// this store.
    ///
    /// # Errors
    /// [`OwnError::Undone`] with what `write` failed with; [`OwnError::Store`] as
    /// [`Store::run`], and `own_rows_late` if `write` took too long. Nothing was
    /// recorded then but after `commit_unknown`.
    ///
    /// # Panics
    /// If `write` does: nothing was recorded then.
    pub fn run_with<E: From<StoreError>>(
        &self,
        command: Command,
        mut write: impl FnMut(&Reply, &mut OwnRows<'_>) -> Result<(), E>,
    ) -> Result<Reply, OwnError<E>> {
        let mut failed = None;
        let done = self.writer.run_with(stamped(command)?, &mut |reply, rows| {
            let began = self.clock.now().boot_us;
            let written = catch_unwind(AssertUnwindSafe(|| write(reply, rows)));
            let took = self.clock.now().boot_us.saturating_sub(began);
            match written {
                Ok(Ok(())) if i128::from(took) > OWN_TIME.as_micros() as i128 => Err(Undone::Late),
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => {
                    failed = Some(error);
                    Err(Undone::Said)
                }
                Err(panic) => Err(Undone::Panicked(panic)),
            }
        });
        match done {
            Ok(reply) => Ok(reply),
            Err(Unwritten::Failed(error)) => Err(OwnError::Store(error)),
            Err(Unwritten::Undone(Undone::Panicked(panic))) => resume_unwind(panic),
            Err(Unwritten::Undone(Undone::Late)) => Err(StoreError::new(Code::OwnRowsLate).into()),
            Err(Unwritten::Undone(Undone::Said)) => {
                Err(failed.map_or(OwnError::Store(StoreError::new(Code::Internal)), OwnError::Undone))
            }
        }
    }

    /// The caller's own row under a key.
    ///
    /// # Errors
    /// The store is closed or cannot be read.
    pub fn own_row(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_rows(|rows| rows.own(key))
    }

    /// Reads a consistent picture; `with` should be short, since it keeps the
    /// write-ahead log from being recycled.
    ///
    /// # Errors
    /// What `with` returns, or that the store is closed or cannot be read.
    pub fn read<T>(
        &self,
        with: impl FnOnce(&dyn Snapshot) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _reading = self.begin_reading()?;
        with(self.readers.snapshot()?.as_ref())
    }

    /// Reads rows, keys and texts, a consistent picture as well: on a server it waits
    /// for nobody, while [`Store::read`] sees to it that what is committed is in the log.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_rows<T>(
        &self,
        with: impl FnOnce(&dyn Rows) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _reading = self.begin_reading()?;
        with(self.readers.rows()?.as_ref())
    }

    fn begin_reading(&self) -> Result<Reading, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::new(Code::StoreClosed));
        }
        Ok(Reading::begin())
    }

    /// The policy that is active now; `None` if none ever was.
    ///
    /// # Errors
    /// `corrupt` if its row does not decode or its text is not what its hash
    /// says, `erased` if there is no text.
    pub fn active_policy(&self) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        let stream = self.tenant.policy();
        self.read_rows(|rows| match rows.stream(&stream)? {
            Loaded::Absent => Ok(None),
            Loaded::Unreadable => Err(StoreError::new(Code::Corrupt)),
            // Every event of this stream is an activation, the newest of them the active one.
            Loaded::Row(stored) => match &stored.row {
                Row::Policy(row) => {
                    read::policy_of(rows, &stream, stored.head.sequence, row.active).map(Some)
                }
                _ => Err(StoreError::new(Code::Corrupt)),
            },
        })
    }

    /// The policy of this hash, if it ever was active.
    ///
    /// # Errors
    /// As [`Store::active_policy`].
    pub fn policy(&self, hash: Hash) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        self.read_rows(|rows| read::policy(rows, hash))
    }

    /// The contract of this digest, if it ever was active.
    ///
    /// # Errors
    /// As [`Store::active_policy`].
    pub fn tool(&self, digest: Hash) -> Result<Option<Tool>, StoreError> {
        self.read_rows(|rows| read::tool(rows, digest))
    }

    /// Runs `sweep` if no other process is sweeping now.
    ///
    /// # Errors
    /// What `sweep` returns, or that it cannot be found out whether another is.
    pub fn try_sweep<T>(
        &self,
        sweep: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(sweeps) = &self.sweeps else { return sweep().map(Some) };
        let (mut sweep, mut done) = (Some(sweep), None);
        sweeps.alone(&mut || done = sweep.take().map(|sweep| sweep()))?;
        done.transpose()
    }

    /// Takes the clocks as right after `clock_jump`, for this process: for a
    /// program that is not to be started again. Other processes saw no jump, or
    /// their own.
    pub fn accept_clock(&self) {
        self.writer.accept_clock();
    }

    /// What the database says of its settings that protect: one sentence for
    /// each that is not as it has to be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        self.readers.unsafe_settings()
    }

    /// Runs what is waiting, then closes. Later commands and reads answer
    /// `store_closed`.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Readers first: the writer, the last to close, checkpoints as it must.
        self.readers.close();
        self.writer.close();
        self.hints.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

thread_local!(static IS_READING: Cell<bool> = const { Cell::new(false) });

/// That this thread reads. Whoever reads within that waits for a connection which may
/// be its own.
struct Reading;

impl Reading {
    fn begin() -> Reading {
        let is_reading = IS_READING.replace(true);
        debug_assert!(!is_reading, "a picture is taken while the thread has one");
        Reading
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        IS_READING.set(false);
    }
}

/// A command with what makes it this one.
fn stamped(command: Command) -> Result<Stamped, StoreError> {
    let mut nonce = [0; 16];
    fill(&mut nonce)?;
    let made_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    Ok(Stamped { command, made_at, nonce: Nonce(nonce) })
}
