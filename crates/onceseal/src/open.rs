//! Opening a store: to act, to answer, or only to read.
//!
//! Invariant: whoever opens to act or to answer has compared the store with
//! what this account has seen of it.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, RwLock};

use onceseal_core::code::Code;
use onceseal_core::id::RootId;
use onceseal_core::policy::ActivePolicy;
use onceseal_store::clock::{Clock, SystemClock};
use onceseal_store::mark::MarkFile;
use onceseal_store::place::{Concessions, Place, Surroundings};
use onceseal_store::{Options, Store, StoreError};

use crate::config::{Config, Settings, StoreAddress};
use crate::control::{Control, Inner, blocking, owner};
use crate::error::Error;
use crate::keeper::Keeper;
use crate::marking::Marking;
use crate::seen::Seen;
use crate::site::Site;
use crate::sweep::Sweeper;
use crate::watch::{Waiters, Watch};

/// How a store is opened.
#[derive(Clone)]
pub struct Opening {
    /// Where this process is.
    pub surroundings: Surroundings,
    /// Settings of the program.
    pub settings: Settings,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether lapsed leases, requests and proposals are ended in the background.
    pub sweep: bool,
}

impl Opening {
    /// As this process is, with these settings. `ONCESEAL_STORE` says which server
    /// before they do.
    ///
    /// # Errors
    /// A working directory that is gone, or an address that cannot be used.
    pub fn new(mut settings: Settings) -> Result<Opening, Error> {
        let here = std::env::current_dir().map_err(StoreError::from)?;
        let surroundings = Surroundings::of_process(here);
        if let Some(address) = std::env::var_os("ONCESEAL_STORE") {
            settings.store = Some(StoreAddress::parse(&address.to_string_lossy())?);
            settings.memory = false;
        }
        Ok(Opening { surroundings, settings, clock: Arc::new(SystemClock), sweep: true })
    }

    /// As this process is, for the project that a configuration file is in:
    /// wherever the process was started, one file means one store.
    ///
    /// # Errors
    /// A directory that is gone.
    pub fn beside(config: &Path, settings: Settings) -> Result<Opening, Error> {
        let opening = Opening::new(settings)?;
        let path = opening.surroundings.working_directory.join(config);
        let directory = path.parent().unwrap_or(&path).to_owned();
        Ok(Opening {
            surroundings: Surroundings { working_directory: directory, ..opening.surroundings },
            ..opening
        })
    }

    /// What the settings permit that is refused otherwise.
    #[must_use]
    pub fn concessions(&self) -> Concessions {
        Concessions {
            trust_group: self.settings.trust_group,
            // Beside a server nothing is kept there that needs locks, or that the project
            // could lose.
            any_filesystem: self.settings.force_filesystem || self.is_on_server(),
            inside_project: self.settings.state_in_project || self.is_on_server(),
            copies: self.is_on_server(),
        }
    }

    /// Whether the store is on a server.
    #[must_use]
    pub const fn is_on_server(&self) -> bool {
        self.settings.store.is_some() && !self.settings.memory
    }

    /// Where the state lives, checked as far as it exists. Makes nothing.
    ///
    /// # Errors
    /// The first thing that makes it unsafe, or that there is no project.
    pub fn place(&self) -> Result<Place, Error> {
        Ok(Place::find(&self.surroundings, &self.concessions())?)
    }

    /// The site of a store that exists; `None` if it was never written to.
    pub(crate) fn existing(&self) -> Result<Option<Site>, Error> {
        let site = Site::find(self)?;
        Ok(site.exists(self)?.then_some(site))
    }

    pub(crate) fn options(&self) -> Options {
        let (tenant, clock) = (self.settings.tenant.clone(), self.clock.clone());
        let asynchronous_standby = self.settings.asynchronous_standby;
        Options { tenant, owner: Some(owner()), clock, asynchronous_standby, ..Options::default() }
    }
}

impl Control {
    /// Opens the store of the project that this file is in to act, under the
    /// policy in it.
    ///
    /// # Errors
    /// A malformed file, an unsafe place, a store that went back in time, a
    /// policy that was active before and is not now.
    pub async fn open(config: impl AsRef<Path>) -> Result<Control, Error> {
        let path = config.as_ref();
        let config = Config::load(path)?;
        let opening = Opening::beside(path, config.settings.clone())?;
        let control = tokio::task::spawn_blocking(move || Control::found(&opening))
            .await
            .map_err(|_| Error::Unexpected)??;
        control.activate(config.policy, false, Some(Control::account())).await?;
        // Nobody else has this handle yet.
        let _ = control.inner.definitions.set(config.runs);
        Ok(control)
    }

    /// Opens a store in memory under a policy; it is gone with the process.
    ///
    /// # Errors
    /// A system without random numbers.
    pub async fn memory(policy: Arc<ActivePolicy>, clock: Arc<dyn Clock>) -> Result<Control, Error> {
        let options = Options { owner: Some(owner()), clock, ..Options::default() };
        // Away from async tasks: opening waits for the store's first answer.
        let control = blocking(move || Control::start(Store::memory(&options)?, None, None, false)).await?;
        control.activate(policy, false, None).await?;
        Ok(control)
    }

    /// Opens the store of this project under the policy that is active in it.
    /// Without a project it makes the store in an explicit state directory.
    ///
    /// # Errors
    /// An unsafe place, `state_missing` for a project whose state is gone, or a
    /// store that went back in time.
    pub fn found(opening: &Opening) -> Result<Control, Error> {
        if opening.settings.memory {
            return Control::start(Store::memory(&opening.options())?, None, None, opening.sweep);
        }
        let site = Site::find(opening)?;
        site.prepare()?;
        let control = Control::at(&site, opening)?;
        site.leave_file();
        Ok(control)
    }

    /// Opens the store of this project if there is one: for answering and
    /// resolving, which never make a store.
    ///
    /// # Errors
    /// As [`Control::found`], and `store_went_back` where there was a store and now
    /// there is none.
    pub fn existing(opening: &Opening) -> Result<Option<Control>, Error> {
        opening.existing()?.map(|site| Control::at(&site, opening)).transpose()
    }

    /// Opens the store of this project for reading, if there is one: no
    /// thread, no lock, no write, and no turn to wait for. Commands are
    /// answered `store_closed`. A store that went back in time opens too, see
    /// [`Control::seen`], unless nothing is left of it.
    ///
    /// # Errors
    /// An unsafe place, a file that is no store of ours, or `store_went_back` where
    /// there was a store and now there is none, or an empty file.
    pub fn reading(opening: &Opening) -> Result<Option<Control>, Error> {
        let site = if opening.settings.memory { None } else { opening.existing()? };
        match site {
            Some(site) => Control::reading_at(&site, opening, opening.options()),
            None => Ok(None),
        }
    }

    pub(crate) fn reading_at(
        site: &Site,
        opening: &Opening,
        options: Options,
    ) -> Result<Option<Control>, Error> {
        let known = site.known(opening)?;
        // What cannot be read of it is told by `seen`.
        let options = Options { known: known.id().unwrap_or_default(), ..options };
        let Some(store) = site.open_to_read(&options)? else { return Ok(None) };
        let mark = known.mark(store.tenant().id);
        let (seen, store) = (Seen::of(&store, &mark)?, Arc::new(store));
        let inner = Inner {
            watch: Watch::new(store.clone(), Arc::default()),
            keeper: Keeper::none(),
            policy: RwLock::new(policy_for_reading(&store)?),
            sweeper: Sweeper::none(),
            mark: Some(Arc::new(Marking::unmoved(mark))),
            seen,
            root: root(site.place(), &store),
            store,
            outbox: tokio::sync::Notify::new(),
            directory: None,
            definitions: OnceLock::new(),
            closed: AtomicBool::new(false),
        };
        Ok(Some(Control { inner: Arc::new(inner), blocks: false }))
    }

    fn at(site: &Site, opening: &Opening) -> Result<Control, Error> {
        let known = site.known(opening)?;
        let options = Options { known: known.id()?, ..opening.options() };
        let store = site.open(&options)?;
        let mark = known.mark(store.tenant().id);
        let seen = Seen::of(&store, &mark)?.or_refuse()?;
        // Before anything is done: whoever acts may be killed before the mark moves.
        let remembered = known.remember_first(&store.tenant().id);
        let control = Control::start(store, Some((mark, seen)), site.place(), opening.sweep)?;
        if let (Err(error), Some(mark)) = (remembered, &control.inner.mark) {
            mark.failed(&error.into());
        }
        Ok(control)
    }

    pub(crate) fn start(
        store: Store,
        mark: Option<(MarkFile, Seen)>,
        place: Option<&Place>,
        sweep: bool,
    ) -> Result<Control, Error> {
        let store = Arc::new(store);
        let policy = RwLock::new(policy_for_reading(&store)?);
        let (mark, seen) = mark.unzip();
        let mark = mark.map(|mark| Arc::new(Marking::new(mark)));
        let waiters = Arc::new(Waiters::default());
        let sweeper = if sweep { Sweeper::start(store.clone(), waiters.clone())? } else { Sweeper::none() };
        let keeper = Keeper::start(store.clone(), mark.clone(), waiters.clone())?;
        let watch = Watch::new(store.clone(), waiters);
        let (seen, closed) = (seen.unwrap_or(Seen::Nothing), AtomicBool::new(false));
        let outbox = tokio::sync::Notify::new();
        let directory = place.map(|place| place.directory().to_owned());
        let (root, definitions) = (root(place, &store), OnceLock::new());
        let inner = Inner {
            store,
            keeper,
            watch,
            policy,
            sweeper,
            mark,
            seen,
            outbox,
            directory,
            root,
            definitions,
            closed,
        };
        Ok(Control { inner: Arc::new(inner), blocks: false })
    }
}

/// The project that runs here are about; where there is none, the tenant, which
/// is named at random too and stays.
fn root(place: Option<&Place>, store: &Store) -> RootId {
    let project = place.and_then(Place::project).map(|project| project.id().bytes());
    RootId(project.unwrap_or(store.tenant().id))
}

/// The active policy, unless it does not decode or its text is gone: whoever
/// acts looks again and is refused, and an audit names what is wrong.
fn policy_for_reading(store: &Store) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
    match store.active_policy() {
        Err(error) if matches!(error.code(), Code::Corrupt | Code::Erased) => Ok(None),
        policy => policy,
    }
}
