//! The engine for code that blocks: executors are ordinary functions, run on
//! the thread that calls.
//!
//! Leases are renewed from a thread of their own, so an executor may block as
//! long as it likes. It cannot be stopped at its deadline, as an async one is:
//! it should look at [`Call::deadline`] and [`Call::is_lost`].
//!
//! Not for use inside an async runtime: there, use the async
//! [`Control`](crate::Control).
//!
//! ```
//! use std::sync::Arc;
//!
//! use onceseal::blocking::Control;
//! use onceseal::config::Config;
//! use onceseal::store::clock::SystemClock;
//! use onceseal::{Failure, Principal};
//!
//! let config = Config::parse(
//!     b"schema: onceseal.policy/v1\nactions:\n  pay: { effect: 'pay:{order}', decision: allow }\n",
//! )?;
//! let control = Control::memory(config.policy, Arc::new(SystemClock))?;
//! let pay = || control.action("pay").arg("order", "o-1").arg("amount", 100).by(Principal::agent("bot"));
//!
//! let receipt = pay().execute(|call| {
//!     println!("paying {:?}", call.args().get("amount"));
//!     Ok::<_, Failure>("ch_1")
//! })?;
//! assert_eq!(receipt.value, Some("ch_1".into()));
//!
//! // The same effect does not happen twice; its result can be had again.
//! let again = pay().execute(|_| Ok::<_, Failure>("ch_2"));
//! assert_eq!(again.unwrap_err().code(), "duplicate");
//! let replayed = pay().replay().execute(|_| Ok::<_, Failure>("ch_2"))?;
//! assert_eq!((replayed.value, replayed.replayed), (Some("ch_1".into()), true));
//! # Ok::<(), onceseal::Error>(())
//! ```

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::approval::{Identity, Said};
use onceseal_core::command::Command;
use onceseal_core::effect::Finding;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::json::{Object, Value};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;
use onceseal_store::StoreError;
use onceseal_store::clock::Clock;
use tokio::runtime::Runtime;

use crate::attempt::Call;
use crate::call::{CallOptions, Receipt};
use crate::error::Error;
use crate::executed::Failure;
use crate::open::Opening;

/// An open store, as [`crate::Control`]; cheap to clone. What only reads is
/// reached through [`Control::engine`].
#[derive(Clone)]
pub struct Control {
    engine: crate::Control,
    /// The same, for calls that block the thread they are made on.
    here: crate::Control,
    runtime: Arc<Threads>,
}

/// One thread for timers; callers run their own work.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> Result<Arc<Threads>, Error> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("onceseal-timer").enable_time().build();
        Ok(Arc::new(Threads(Some(runtime.map_err(StoreError::from)?))))
    }

    fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.0 {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::Unexpected),
        }
    }
}

/// Runs the caller's code as if there were no runtime, so that it may have its
/// own, or make calls itself.
fn outside<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed everywhere; none has work left.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Control {
    /// As [`crate::Control::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(config: impl AsRef<Path>) -> Result<Control, Error> {
        let runtime = Threads::start()?;
        Ok(Control::new(runtime.run(crate::Control::open(config))?, runtime))
    }

    /// As [`crate::Control::memory`].
    ///
    /// # Errors
    /// As there.
    pub fn memory(policy: Arc<ActivePolicy>, clock: Arc<dyn Clock>) -> Result<Control, Error> {
        let runtime = Threads::start()?;
        Ok(Control::new(runtime.run(crate::Control::memory(policy, clock))?, runtime))
    }

    /// As [`crate::Control::found`].
    ///
    /// # Errors
    /// As there.
    pub fn found(opening: &Opening) -> Result<Control, Error> {
        Control::of(crate::Control::found(opening)?)
    }

    /// The facade of an engine that is open already.
    ///
    /// # Errors
    /// A system without threads.
    pub fn of(engine: crate::Control) -> Result<Control, Error> {
        Ok(Control::new(engine, Threads::start()?))
    }

    fn new(engine: crate::Control, runtime: Arc<Threads>) -> Control {
        let here = crate::Control { blocks: true, ..engine.clone() };
        Control { engine, here, runtime }
    }

    /// The engine itself: for lists, rows, receipts, snapshots and closing,
    /// which do not wait for the store.
    #[must_use]
    pub const fn engine(&self) -> &crate::Control {
        &self.engine
    }

    /// Waits for anything that the engine can be asked for, such as
    /// `control.wait(control.runs().by(principal).start("simple").change("c").send())`.
    /// What it calls runs on this thread.
    ///
    /// # Errors
    /// As what is waited for.
    pub fn wait<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.runtime.run(asked)
    }

    /// As [`crate::Control::runs`], to be [waited for](Control::wait).
    #[must_use]
    pub fn runs(&self) -> crate::runs::Runs {
        self.here.runs()
    }

    /// As [`crate::Control::lease`], to be [waited for](Control::wait).
    pub fn lease(&self, resource: crate::runs::Resource) -> crate::runs::Leasing {
        self.here.lease(resource)
    }

    /// Begins a call of this action.
    pub fn action(&self, name: impl Into<String>) -> Proposing<'_> {
        Proposing { control: self, call: self.here.action(name) }
    }

    /// Goes on with a recorded action, as [`crate::Control::resume`].
    ///
    /// # Errors
    /// As [`crate::Proposing::execute`].
    pub fn resume<T, E>(
        &self,
        action: ActionId,
        options: CallOptions,
        executor: impl FnOnce(Call) -> Result<T, E>,
    ) -> Result<Receipt, Error>
    where
        T: Into<Value>,
        E: Into<Failure>,
    {
        let resuming = self.here.resume(action).options(options);
        self.runtime.run(resuming.execute(async |call| outside(|| executor(call))))
    }

    /// As [`crate::Control::submit`].
    ///
    /// # Errors
    /// As there.
    pub fn submit(&self, command: Command) -> Result<Reply, Error> {
        self.runtime.run(self.here.submit(command))
    }

    /// As [`crate::Control::activate`].
    ///
    /// # Errors
    /// As there.
    pub fn activate(
        &self,
        policy: Arc<ActivePolicy>,
        again: bool,
        person: Option<Identity>,
    ) -> Result<bool, Error> {
        self.runtime.run(self.here.activate(policy, again, person))
    }

    /// As [`crate::Control::answer`].
    ///
    /// # Errors
    /// As there.
    pub fn answer(
        &self,
        approval: ApprovalId,
        person: Identity,
        said: Said,
        shown: Hash,
    ) -> Result<Reply, Error> {
        self.runtime.run(self.here.answer(approval, person, said, shown))
    }

    /// As [`crate::Control::revoke`].
    ///
    /// # Errors
    /// As there.
    pub fn revoke(&self, approval: ApprovalId, person: Identity) -> Result<Reply, Error> {
        self.runtime.run(self.here.revoke(approval, person))
    }

    /// As [`crate::Control::resolve`].
    ///
    /// # Errors
    /// As there.
    pub fn resolve(
        &self,
        key: &str,
        fence: Option<u64>,
        happened: bool,
        reason: String,
        evidence: Option<String>,
        person: Identity,
    ) -> Result<Reply, Error> {
        self.runtime.run(self.here.resolve(key, fence, happened, reason, evidence, person))
    }

    /// As [`crate::Control::reconcile`].
    ///
    /// # Errors
    /// As there.
    pub fn reconcile(
        &self,
        key: &str,
        settle: Span,
        ask: impl FnOnce(String, u64) -> Option<(Finding, Option<String>)>,
    ) -> Result<Option<Reply>, Error> {
        self.runtime.run(self.here.reconcile(key, settle, async |key, fence| outside(|| ask(key, fence))))
    }

    /// As [`crate::Control::note`].
    ///
    /// # Errors
    /// As there.
    pub fn note(&self, source: String, body: String) -> Result<Reply, Error> {
        self.runtime.run(self.here.note(source, body))
    }
}

/// A call being put together, as [`crate::Proposing`].
#[derive(Debug)]
#[must_use = "a call does nothing until it is executed or proposed"]
pub struct Proposing<'a> {
    control: &'a Control,
    call: crate::Proposing,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Proposing<'_> {
    /// As [`crate::Proposing::arg`].
    pub fn arg(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        Proposing { call: self.call.arg(name, value), ..self }
    }

    /// As [`crate::Proposing::args`].
    pub fn args(self, arguments: Object) -> Self {
        Proposing { call: self.call.args(arguments), ..self }
    }

    /// As [`crate::Proposing::by`].
    pub fn by(self, principal: Principal) -> Self {
        Proposing { call: self.call.by(principal), ..self }
    }

    /// As [`crate::Proposing::environment`].
    pub fn environment(self, environment: impl Into<String>) -> Self {
        Proposing { call: self.call.environment(environment), ..self }
    }

    /// As [`crate::Proposing::resource`].
    pub fn resource(self, resource: impl Into<String>) -> Self {
        Proposing { call: self.call.resource(resource), ..self }
    }

    /// As [`crate::Proposing::options`].
    pub fn options(self, options: CallOptions) -> Self {
        Proposing { call: self.call.options(options), ..self }
    }

    /// As [`crate::Proposing::wait`].
    pub fn wait(self, wait: Duration) -> Self {
        Proposing { call: self.call.wait(wait), ..self }
    }

    /// As [`crate::Proposing::replay`].
    pub fn replay(self) -> Self {
        Proposing { call: self.call.replay(), ..self }
    }

    /// As [`crate::Proposing::propose`].
    ///
    /// # Errors
    /// As there.
    pub fn propose(self) -> Result<Reply, Error> {
        self.control.runtime.run(self.call.propose())
    }

    /// As [`crate::Proposing::execute`]; `executor` runs on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn execute<T, E>(self, executor: impl FnOnce(Call) -> Result<T, E>) -> Result<Receipt, Error>
    where
        T: Into<Value>,
        E: Into<Failure>,
    {
        self.control.runtime.run(self.call.execute(async |call| outside(|| executor(call))))
    }
}
