//! The store: commands in, answers out, snapshots for whoever reads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal_core::code::Code;
use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::hash::{BlindingKey, Hash};
use onceseal_core::journal::{Index, Key};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::stream::Tenant;
use onceseal_core::view::Pinned;

use crate::backend::Backend;
use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::executor::{Executor, Outcome};
use crate::memory::Memory;
use crate::queue::{Next, Queue, Ticket};
use crate::read::{Page, Snapshot, row_of};
use crate::sqlite::{Connector, Pool, SqliteBackend};
use crate::time::BatchClock;
use crate::turnstile::Turnstile;

/// What a store is opened with.
#[derive(Clone)]
pub struct Options {
    /// The tenant, `[a-z0-9][a-z0-9_-]{0,62}`.
    pub tenant: String,
    /// Who owns the store, as `os:<login>`: the only person the operating
    /// system can prove.
    pub owner: Option<String>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// A virtual file system registered with SQLite, for tests of power loss.
    pub vfs: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { tenant: "default".to_owned(), owner: None, clock: Arc::new(SystemClock), vfs: None }
    }
}

enum Readers {
    Memory(Memory),
    Sqlite(Arc<Pool>),
}

/// An open store of one tenant. Cheap to share behind an `Arc`.
pub struct Store {
    tenant: Tenant,
    queue: Arc<Queue>,
    readers: Readers,
    turnstile: Option<Turnstile>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// A store in memory, gone with the process.
    ///
    /// # Errors
    /// An invalid tenant, or a system without random numbers.
    pub fn memory(options: &Options) -> Result<Store, StoreError> {
        check_tenant(&options.tenant)?;
        let (mut id, mut key) = ([0; 16], [0; 32]);
        fill(&mut id)?;
        fill(&mut key)?;
        let tenant = Tenant { name: options.tenant.clone(), id, key: BlindingKey(key) };
        let memory = Memory::default();
        let backend = Box::new(memory.writer(options.clock.clone()));
        Store::start(tenant, options, backend, Readers::Memory(memory), None)
    }

    /// The store in this file, which exists and is ours or empty; a safe place
    /// for it is found and made by [`crate::place`].
    ///
    /// # Errors
    /// `store_foreign` for another program's or a newer file, which is left as
    /// it is; `store_failed` if it cannot be used.
    pub fn sqlite(path: PathBuf, options: &Options) -> Result<Store, StoreError> {
        check_tenant(&options.tenant)?;
        let turnstile = Turnstile::open(&path)?;
        let sweeps = Turnstile::open(&path)?;
        let now = options.clock.now().wall_us;
        let connector = Connector::new(path, options.vfs.clone());
        let (row, tenant) = {
            let _turn = turnstile.enter()?;
            connector.found(&options.tenant, now)?
        };
        let pool = Arc::new(Pool::new(connector.clone(), row));
        let clock = BatchClock::new(options.clock.clone());
        let backend = SqliteBackend::new(&connector, turnstile, clock, (row, tenant.id))?;
        Store::start(tenant, options, Box::new(backend), Readers::Sqlite(pool), Some(sweeps))
    }

    /// A store on any backend, for the conformance suite. It has no snapshots
    /// of its own: `memory` tells where the backend keeps what it saves.
    fn start(
        tenant: Tenant,
        options: &Options,
        backend: Box<dyn Backend>,
        readers: Readers,
        turnstile: Option<Turnstile>,
    ) -> Result<Store, StoreError> {
        let queue = Arc::new(Queue::default());
        let executor = Executor::new(backend, Pinned::new(tenant.clone(), options.owner.clone()));
        let own = queue.clone();
        let writer = std::thread::Builder::new()
            .name("onceseal-writer".to_owned())
            .spawn(move || write(&own, executor))
            .map_err(|error| StoreError::with(Code::StoreFailed, error.kind().to_string()))?;
        let store = Store { tenant, queue, readers, turnstile, writer: Mutex::new(Some(writer)) };
        store.submit(Command::Create)?.wait()?;
        Ok(store)
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Submits a command. It is run whether its answer is waited for or not.
    ///
    /// # Errors
    /// A system without random numbers. Whether the store takes the command is
    /// the ticket's answer.
    pub fn submit(&self, command: Command) -> Result<Ticket, StoreError> {
        let mut nonce = [0; 16];
        fill(&mut nonce)?;
        let made_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
        Ok(self.queue.submit(Stamped { command, made_at, nonce: Nonce(nonce) }))
    }

    /// Submits a command and blocks until it is answered.
    ///
    /// # Errors
    /// As the command's answer.
    pub fn run(&self, command: Command) -> Outcome {
        self.submit(command)?.wait()
    }

    /// Reads a consistent picture; `with` should be short, since it keeps the
    /// write-ahead log from being recycled.
    ///
    /// # Errors
    /// What `with` returns, or that the store cannot be read.
    pub fn read<T>(
        &self,
        with: impl FnOnce(&dyn Snapshot) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &self.readers {
            Readers::Memory(memory) => with(memory),
            Readers::Sqlite(pool) => with(&pool.snapshot()?),
        }
    }

    /// The policy that is active now; `None` if there is none.
    ///
    /// # Errors
    /// `corrupt` if its text is not what its hash says.
    pub fn active_policy(&self) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        let stream = self.tenant.policy();
        let text = self.read(|snapshot| {
            let Some(stored) = row_of(snapshot.stream(&stream)?) else { return Ok(None) };
            let payload = snapshot.payload(&stream, stored.head.sequence)?;
            Ok(payload.map(|payload| payload.text))
        })?;
        Ok(text.map(|text| ActivePolicy::restore(&text)).transpose()?.map(Arc::new))
    }

    /// The policy of this hash, if it ever was active.
    ///
    /// # Errors
    /// `corrupt` if its text is not what its hash says.
    pub fn policy(&self, hash: Hash) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        let key = Key::of(Index::PolicyText, &[&hash.0]);
        let text = self.read(|snapshot| {
            let page = Page {
                index: key.index,
                from: key.bytes.clone(),
                to: key.bytes.clone(),
                after: None,
                newest_first: true,
                limit: 1,
            };
            let Some(hit) = snapshot.keys(&page)?.into_iter().next() else { return Ok(None) };
            Ok(snapshot.payload(&hit.stream, hit.sequence)?.map(|payload| payload.text))
        })?;
        Ok(text.map(|text| ActivePolicy::restore(&text)).transpose()?.map(Arc::new))
    }

    /// Runs `sweep` if no other process is sweeping now.
    ///
    /// # Errors
    /// What `sweep` returns, or that the lock file cannot be used.
    pub fn try_sweep<T>(
        &self,
        sweep: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match &self.turnstile {
            None => sweep().map(Some),
            Some(turnstile) => match turnstile.try_sweep()? {
                Some(_pass) => sweep().map(Some),
                None => Ok(None),
            },
        }
    }

    /// Takes the clocks as right after `clock_jump`.
    pub fn accept_clock(&self) {
        self.queue.accept_clock();
    }

    /// What the database says of its settings that protect: one sentence for
    /// each that is not as it has to be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        match &self.readers {
            Readers::Memory(_) => Ok(vec!["a store in memory forgets what it acknowledged".to_owned()]),
            Readers::Sqlite(pool) => {
                let found = pool.settings()?;
                let mut faults = Vec::new();
                if found.journal_mode != "wal" {
                    faults.push(format!("journal_mode is {}, not wal", found.journal_mode));
                }
                if !found.foreign_keys {
                    faults.push("foreign_keys is off".to_owned());
                }
                Ok(faults)
            }
        }
    }

    /// Runs what is waiting, then closes. Later commands answer `store_closed`.
    pub fn close(&self) {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A writer that panicked has answered nobody; its callers know that.
        if let Some(writer) = writer {
            drop(writer.join());
        }
        if let Readers::Sqlite(pool) = &self.readers {
            pool.close_all();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// However the writer ends, nobody waits for it afterwards.
struct Ends<'a>(&'a Queue);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The writer's thread: batches until the queue is closed.
fn write(queue: &Queue, mut executor: Executor) {
    let _ends = Ends(queue);
    loop {
        match queue.next() {
            Next::Batch(batch) => {
                let outcomes = executor.run(&batch.commands);
                // Answers lost here, as a test may have it, are answers not known.
                if crate::fault::reach("before_reply").is_ok() {
                    batch.answer(outcomes);
                }
            }
            Next::AcceptClock => executor.backend().accept_clock(),
            Next::Closed => return,
        }
    }
}

fn check_tenant(name: &str) -> Result<(), StoreError> {
    if Tenant::name_is_valid(name) {
        Ok(())
    } else {
        Err(StoreError::with(Code::OutOfBounds, "a tenant is [a-z0-9][a-z0-9_-]{0,62}"))
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), StoreError> {
    getrandom::fill(bytes).map_err(|error| StoreError::with(Code::StoreFailed, error.to_string()))
}
