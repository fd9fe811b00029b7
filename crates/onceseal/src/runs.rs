//! Runs, long jobs that survive their process, and the leases under which they
//! are worked on.
//!
//! A [`Run`] goes through the states of its definition; [`Runs`] starts and finds
//! them for one principal. [`Leasing`] takes a [`Resource`], and the
//! [`LeaseGuard`] that it gives renews by itself. What is changed under a lease is
//! changed only while the lease holds.
//!
//! What was worked out for a run is bound to its gates ([`Run::bind`]), and its
//! parts are tasks of a plan ([`Run::plan`]) that workers take one after another
//! ([`Run::take`]): each is a [`TaskGuard`], and moves on by facts alone. What
//! stands in the way is [`Run::blockers`]. A resource goes from one holder to
//! another by a handoff ([`Control::handoff`]).
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use onceseal::core::time::Span;
//! use onceseal::runs::{Resource, Subject};
//! use onceseal::{Control, Principal, config::Config};
//!
//! # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
//! # let config = Config::parse(b"schema: onceseal.policy/v1\nactions: {}\n")?;
//! let control = Control::memory(config.policy, clock).await?;
//! let runs = control.runs().by(Principal::agent("builder"));
//!
//! // Whoever starts the same change again, in whichever process, joins its run.
//! let run = runs.start("simple").change("add-login").request("start-1").send().await?.run;
//! assert!(runs.start("simple").change("add-login").send().await?.answer.answered.joined);
//!
//! // One works on it at a time.
//! let mut lease = control.lease(Resource::Run(run.id())).length(Span::seconds(30)).take().await?;
//! assert_eq!(control.lease(Resource::Run(run.id())).take().await.unwrap_err().code(), "lease_held");
//! run.transition("running").under(&lease).send().await?;
//! // … and is told if somebody else does: `lease.lost()`, `lease.is_lost()`.
//! run.transition("completed").under(&lease).request("done-1").send().await?;
//! lease.give_back().await?;
//!
//! // The same request is answered as the first time.
//! let again = run.transition("completed").request("done-1").send().await;
//! assert!(again?.replayed);
//! let found = runs.find("simple", &Subject::Change("add-login".into())).await?.expect("it ended");
//! assert!(found.view().await?.row.terminal);
//! # Ok::<(), onceseal::Error>(())
//! # }).unwrap();
//! ```
//!
//! Code that blocks waits for any of these with
//! [`blocking::Control::wait`](crate::blocking::Control::wait).

mod asking;
mod attribution;
mod defined;
mod delivering;
mod finding;
mod guard;
mod handing;
mod happened;
mod history;
mod holding;
mod leasing;
mod planning;
mod reading;
mod tasks;
mod working;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::hash::write_hex;
use onceseal_core::id::{RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_store::StoreError;

pub use asking::{Moving, Naming, Started, Starting};
pub(crate) use defined::section;
pub use defined::{DefinedError, DefinedErrors};
pub use delivering::{AskedDelivery, Binding};
pub use guard::LeaseGuard;
pub(crate) use guard::given_up;
pub use handing::{Handing, HandoffView};
pub use happened::{Part, Replanned, RunEvent, RunHistory};
pub use history::{Change, Rebuilt};
pub use holding::{LeaseView, ListedLeases};
pub use leasing::Leasing;
pub use onceseal_core::handoff::{Giver, HandoffRow, HandoffState};
pub use onceseal_core::lease::{Lease, Misnamed, Named, Preempt, Resource};
pub use onceseal_core::reply::{LeaseNow, RunNow, TaskNow};
pub use onceseal_core::run::event::Answered;
pub use onceseal_core::run::{
    BIND_DELIVERY, Definition, Delivery, DeliveryPrivate, DeliveryRow, DocumentError, Standing, Subject,
};
pub use onceseal_core::task::{Blocker, Blocking, Fact, PlanRow, TaskRow, TaskState, TaskTo};
pub use planning::{Planning, Queueing, TaskMoving};
pub use reading::{ListedRuns, RunFilter, RunView, Stand};

pub use onceseal_store::OwnRows;
pub use tasks::{InTheWay, ListedTasks, TaskFilter, TaskView};
pub use working::{Taking, TaskGuard};
pub use writing::WriteError;

use crate::chance::random;
use crate::control::Control;
use crate::error::Error;

/// Starts and finds the runs of a project, for one principal. Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    control: Control,
    principal: Principal,
    root: RootId,
    definitions: Arc<BTreeMap<String, Arc<Definition>>>,
}

impl Control {
    /// The runs of this store's project, by nobody yet: see [`Runs::by`]. Known are
    /// the built-in definitions and, where [`Control::open`] opened the store, those
    /// of the configuration.
    #[must_use]
    pub fn runs(&self) -> Runs {
        let defined = self.inner.definitions.get().into_iter().flatten().cloned();
        let known = Definition::built_in().into_iter().map(Arc::new).chain(defined);
        let definitions = known.map(|known| (known.kind().to_owned(), known)).collect();
        let principal = Principal { agent: String::new(), user: None };
        Runs { control: self.clone(), principal, root: self.root(), definitions: Arc::new(definitions) }
    }

    /// The project that this store is of: what its runs and workspaces are about.
    /// A store without a project has an id of its own instead.
    #[must_use]
    pub fn root(&self) -> RootId {
        self.inner.root
    }

    /// Begins to take a resource.
    pub fn lease(&self, resource: Resource) -> Leasing {
        Leasing::new(self.clone(), resource)
    }
}

impl Runs {
    /// Who asks.
    #[must_use]
    pub fn by(self, principal: Principal) -> Runs {
        Runs { principal, ..self }
    }

    /// The runs of another project that is kept in the same store.
    #[must_use]
    pub fn root(self, root: RootId) -> Runs {
        Runs { root, ..self }
    }

    /// Knows these definitions too; one of a kind that is known replaces it. A run
    /// goes by the definition that it was started with, for all its life.
    #[must_use]
    pub fn with(mut self, definitions: impl IntoIterator<Item = Arc<Definition>>) -> Runs {
        let known = Arc::make_mut(&mut self.definitions);
        known.extend(definitions.into_iter().map(|added| (added.kind().to_owned(), added)));
        self
    }

    /// The definitions that runs can be started by, by their kind.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// Begins to start a run of this kind, or to join the one that lives.
    pub fn start(&self, kind: impl Into<String>) -> Starting {
        Starting::new(self.clone(), kind.into())
    }

    /// The run with this id, whether or not there is one: asking it for something
    /// finds out.
    #[must_use]
    pub fn run(&self, id: RunId) -> Run {
        Run { control: self.control.clone(), principal: self.principal.clone(), id }
    }
}

/// A run, for one principal. Cheap to clone.
#[derive(Clone)]
pub struct Run {
    control: Control,
    principal: Principal,
    id: RunId,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Run {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.id
    }

    /// Begins to move it on to a state.
    pub fn transition(&self, state: impl Into<String>) -> Moving {
        Moving::to_state(self.clone(), state.into())
    }

    /// Begins to ask what an operator may ask for in the state that it is in, such
    /// as `cancel`: the definition says what follows.
    pub fn command(&self, name: impl Into<String>) -> Moving {
        Moving::by_command(self.clone(), name.into())
    }

    /// Begins to name its change, if it was started without one.
    pub fn bind_change(&self, change: impl Into<String>) -> Naming {
        Naming::new(self.clone(), change.into())
    }

    /// What was answered to a request of this run, if one with this id was made.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub async fn answered(&self, request: &str) -> Result<Option<Answered>, Error> {
        let stream = self.control.store().tenant().request(&self.id.to_string(), request);
        let row = self.control.aside(move |control| control.row(&stream)).await?;
        Ok(match row {
            Some(Row::Request(row)) => Some(row.answered),
            _ => None,
        })
    }

    /// All that is known of it now.
    ///
    /// # Errors
    /// `run_unknown`, or the store cannot be read.
    pub async fn view(&self) -> Result<RunView, Error> {
        let id = self.id;
        let view = self.control.aside(move |control| control.run(id)).await?;
        view.ok_or_else(|| crate::control::refused(Code::RunUnknown.into()))
    }
}

/// A stored object, read back from its canonical text.
fn object(text: &str) -> Result<Object, Error> {
    match json::read_canonical(text, &Limits::DATA) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(corrupt()),
    }
}

fn corrupt() -> Error {
    StoreError::new(Code::Corrupt).into()
}

/// A request id that nobody else draws: `req-` and 32 hex digits.
///
/// # Errors
/// `no_randomness`: the system gives no random numbers.
pub fn draw_request() -> Result<String, Error> {
    let mut text = "req-".to_owned();
    write_hex(&random()?, &mut text);
    Ok(text)
}
