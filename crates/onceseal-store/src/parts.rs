//! What a store is made of, and how each kind of store puts it together.

use std::path::PathBuf;
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::decide::decide;
use onceseal_core::hash::BlindingKey;
use onceseal_core::stream::Tenant;

use crate::backend::Backend;
use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::executor::Decide;
use crate::hints::Hints;
use crate::memory::Memory;
#[cfg(feature = "postgres")]
use crate::postgres::{self, DatabaseClock, PostgresBackend, PostgresUrl};
use crate::read::Readers;
use crate::sqlite::{Connector, Founded, Pool, SqliteBackend};
use crate::sweeps::Sweeps;
use crate::time::BatchClock;
use crate::turnstile::Turnstile;

/// What a store is opened with.
#[derive(Clone)]
pub struct Options {
    /// The tenant, `[a-z0-9][a-z0-9_-]{0,62}`.
    pub tenant: String,
    /// The account of this process, as `os:<login>`. It owns the store if it
    /// made it, and is then the only person the operating system can prove.
    pub owner: Option<String>,
    /// The id that the tenant is known to have. A file without it was emptied, or
    /// is another: nothing is made in it.
    pub known: Option<[u8; 16]>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether a tenant is read that is on its way from a file to a server.
    pub arrives: bool,
    /// Whether a server may have a standby that commits do not wait for.
    pub asynchronous_standby: bool,
    /// A virtual file system registered with SQLite, for tests of power loss.
    pub vfs: Option<String>,
    /// The tenant where there is none yet, for tests that have the same one twice.
    #[cfg(feature = "conformance")]
    pub made: Option<Tenant>,
}

impl Options {
    /// The tenant where there is none yet.
    fn new_tenant(&self) -> Result<Tenant, StoreError> {
        check_tenant(&self.tenant)?;
        #[cfg(feature = "conformance")]
        if let Some(made) = &self.made {
            return Ok(made.clone());
        }
        new_tenant(&self.tenant)
    }
}

impl Default for Options {
    fn default() -> Options {
        let (tenant, clock) = (Tenant::DEFAULT.to_owned(), Arc::new(SystemClock));
        Options {
            tenant,
            owner: None,
            known: None,
            clock,
            arrives: false,
            asynchronous_standby: false,
            vfs: None,
            #[cfg(feature = "conformance")]
            made: None,
        }
    }
}

/// The pieces of a store before it runs. A test may put others in their place.
pub struct Parts {
    /// The tenant.
    pub tenant: Tenant,
    /// Who owns the store, as `os:<login>`.
    pub owner: Option<String>,
    /// Where rows and events are kept.
    pub backend: Box<dyn Backend>,
    /// The same again, where transactions run side by side: these help where many
    /// commands wait.
    pub helping: Vec<Box<dyn Backend>>,
    /// The same for commands that others are in the way of, where several write at
    /// once: these wait for locks.
    pub waiting: Vec<Box<dyn Backend>>,
    /// Where snapshots come from.
    pub readers: Box<dyn Readers>,
    /// What decides: the one decision function.
    pub decide: Arc<Decide>,
    /// What is told of commits and heard of others'.
    pub hints: Hints,
    /// Who sweeps, where several processes may; absent: this one.
    pub sweeps: Option<Box<dyn Sweeps>>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

/// The pieces of a store that is only read.
pub(crate) struct ReadingParts {
    pub(crate) tenant: Tenant,
    pub(crate) readers: Box<dyn Readers>,
    pub(crate) hints: Hints,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ReadingParts {
    /// Those of the store in this file; `None` if nothing is recorded for the
    /// tenant.
    pub(crate) fn sqlite(path: PathBuf, options: &Options) -> Result<Option<ReadingParts>, StoreError> {
        check_tenant(&options.tenant)?;
        let connector = Connector::new(path, options.vfs.clone())?;
        let Some(Founded { row, tenant, .. }) = connector.find(&options.tenant)? else {
            return options.known.map_or(Ok(None), |_| Err(StoreError::new(Code::StoreWentBack)));
        };
        let readers = Box::new(Arc::new(Pool::new(connector, row)?));
        Ok(Some(ReadingParts { tenant, readers, hints: Hints::none(), clock: options.clock.clone() }))
    }

    /// Whether a server has a tenant.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_on_server(url: &PostgresUrl, tenant: &str) -> Result<bool, StoreError> {
        check_tenant(tenant)?;
        Ok(postgres::Connector::new(url.clone())?.find(tenant, false)?.is_some())
    }

    /// Those of the store at this address; `None` if nothing is recorded for the
    /// tenant.
    #[cfg(feature = "postgres")]
    pub(crate) fn postgres(url: PostgresUrl, options: &Options) -> Result<Option<ReadingParts>, StoreError> {
        ReadingParts::on(postgres::Connector::new(url)?, options)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn on(
        connector: postgres::Connector,
        options: &Options,
    ) -> Result<Option<ReadingParts>, StoreError> {
        check_tenant(&options.tenant)?;
        let Some((founded, database_us)) = connector.find(&options.tenant, options.arrives)? else {
            return options.known.map_or(Ok(None), |_| Err(StoreError::new(Code::StoreWentBack)));
        };
        let postgres::Founded { row, tenant, .. } = founded;
        let clock = DatabaseClock::beside(options.clock.clone(), database_us);
        let pool = Arc::new(postgres::Pool::new(connector.clone(), (row, tenant.id)));
        let hints = Hints::postgres(&connector, &pool, row, false);
        Ok(Some(ReadingParts { tenant, readers: Box::new(pool), hints, clock }))
    }
}

impl Parts {
    /// Those of a store in memory, gone with the process.
    ///
    /// # Errors
    /// An invalid tenant, or a system without random numbers.
    pub fn memory(options: &Options) -> Result<Parts, StoreError> {
        let tenant = options.new_tenant()?;
        let memory = Memory::default();
        Ok(Parts {
            tenant,
            owner: options.owner.clone(),
            backend: Box::new(memory.writer(options.clock.clone())),
            helping: Vec::new(),
            waiting: Vec::new(),
            readers: Box::new(memory),
            decide: Arc::new(decide),
            hints: Hints::none(),
            sweeps: None,
            clock: options.clock.clone(),
        })
    }

    /// Those of the store in this file, which exists and is ours or empty; a
    /// safe place for it is found and made by [`crate::place`].
    ///
    /// # Errors
    /// `store_foreign` for another program's or a newer file, and
    /// `store_went_back` for one without the known tenant, which are left as they
    /// are; `store_failed` if it cannot be used.
    pub fn sqlite(path: PathBuf, options: &Options) -> Result<Parts, StoreError> {
        let new = options.new_tenant()?;
        let connector = Connector::new(path, options.vfs.clone())?;
        connector.look()?;
        let turnstile = Turnstile::open(connector.path())?;
        let sweeps = Turnstile::open(connector.path())?;
        if let Some(known) = options.known
            && connector.find(&options.tenant)?.is_none_or(|found| found.tenant.id != known)
        {
            return Err(StoreError::new(Code::StoreWentBack));
        }
        let now = options.clock.now().wall_us;
        let Founded { row, tenant, owner } = {
            let _turn = turnstile.enter()?;
            connector.found(&new, options.owner.as_deref(), now)?
        };
        let pool = Arc::new(Pool::new(connector.clone(), row)?);
        let clock = BatchClock::new(options.clock.clone());
        let backend = SqliteBackend::new(connector, turnstile, clock, (row, tenant.id))?;
        Ok(Parts {
            tenant,
            // Another account, or this one under a name that it gave itself, is not the
            // owner and proves nobody.
            owner: owner.filter(|owner| Some(owner) == options.owner.as_ref()),
            backend: Box::new(backend),
            helping: Vec::new(),
            waiting: Vec::new(),
            readers: Box::new(pool),
            decide: Arc::new(decide),
            hints: Hints::none(),
            sweeps: Some(Box::new(sweeps)),
            clock: options.clock.clone(),
        })
    }

    /// Those of the store at this address, whose schema is made or brought to this
    /// program's.
    ///
    /// # Errors
    /// `store_unreachable`; `store_foreign` for another program's schema or a newer
    /// one, and `store_went_back` for one without the known tenant, which are left as
    /// they are; `store_failed` for a server whose settings do not protect, and
    /// `standby_may_lose` for one with a standby that commits do not wait for.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: PostgresUrl, options: &Options) -> Result<Parts, StoreError> {
        Parts::on(postgres::Connector::new(url)?, options)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn on(connector: postgres::Connector, options: &Options) -> Result<Parts, StoreError> {
        let new = options.new_tenant()?;
        if let Some(known) = options.known
            && connector.find(&options.tenant, false)?.is_none_or(|(found, _)| found.tenant.id != known)
        {
            return Err(StoreError::new(Code::StoreWentBack));
        }
        let accepts = options.asynchronous_standby;
        let (founded, database_us) = connector.found(&new, options.owner.as_deref(), accepts)?;
        let postgres::Founded { row, tenant, owner } = founded;
        let clock = DatabaseClock::beside(options.clock.clone(), database_us);
        // Whoever was here before may have left something for the sequencer.
        let lane = |waits| -> Box<dyn Backend> {
            let (connector, clock) = (connector.clone(), BatchClock::new(clock.clone()));
            Box::new(PostgresBackend::new(connector, (row, tenant.id), clock, waits))
        };
        let pool = Arc::new(postgres::Pool::new(connector.clone(), (row, tenant.id)));
        Ok(Parts {
            owner: owner.filter(|owner| Some(owner) == options.owner.as_ref()),
            hints: Hints::postgres(&connector, &pool, row, true),
            backend: lane(false),
            helping: vec![lane(false)],
            waiting: (0..postgres::LANES).map(|_| lane(true)).collect(),
            readers: Box::new(pool.clone()),
            decide: Arc::new(decide),
            sweeps: Some(Box::new(pool)),
            clock,
            tenant,
        })
    }
}

fn check_tenant(name: &str) -> Result<(), StoreError> {
    if Tenant::name_is_valid(name) {
        Ok(())
    } else {
        Err(StoreError::with(Code::OutOfBounds, "a tenant is [a-z0-9][a-z0-9_-]{0,62}"))
    }
}

/// A tenant of this name, as nobody has it.
pub(crate) fn new_tenant(name: &str) -> Result<Tenant, StoreError> {
    let (mut id, mut key) = ([0; 16], [0; 32]);
    fill(&mut id)?;
    fill(&mut key)?;
    Ok(Tenant { name: name.to_owned(), id, key: BlindingKey(key) })
}

/// Random bytes of the operating system.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), StoreError> {
    getrandom::fill(bytes).map_err(|error| StoreError::with(Code::StoreFailed, error.to_string()))
}
