//! Operations: actions that are stored with their intent, and carried out later
//! by a worker, in this process or another.
//!
//! A [`Tool`] is a contract and what carries it out. [`Operations`] are the tools
//! of a program: what may be dispatched by it, and what its [`Worker`]s do.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use onceseal::core::json::{self, Limits, Value};
//! use onceseal::operations::{CallIdentity, Operations, Tool};
//! use onceseal::{Control, Done, Failure, Principal, config::Config};
//!
//! # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
//! let config = Config::parse(b"schema: onceseal.policy/v1\nactions: { refund: { decision: allow } }\n")?;
//! let control = Control::memory(config.policy, clock).await?;
//!
//! // A contract has the members of a tool in the file, but its executor.
//! let contract = json::read(
//!     br#"{"name": "refund", "recovery": "same_key", "key_ttl": "24h",
//!          "input": {"type": "object", "required": ["payment"]}}"#,
//!     &Limits::DATA,
//! );
//! let Ok(Value::Object(contract)) = contract else { unreachable!("it is an object") };
//! let tool = Tool::function(&contract, async |job: onceseal::operations::Job| {
//!     // Here the remote is called, with `job.provider_key()` as its idempotency key.
//!     let refunded = job.args().get("payment").cloned().unwrap_or(Value::Null);
//!     Ok::<_, Failure>(Done::from(refunded).receipt("re_1"))
//! });
//! let operations = Operations::of(&control, [tool.expect("a contract")]).await?;
//!
//! // A model's call, as its provider and the host name it.
//! let call = CallIdentity {
//!     provider: "openai".into(),
//!     api_family: "responses".into(),
//!     adapter_revision: "openai-responses-v1".into(),
//!     response_id: "resp_1".into(),
//!     call_id: "call_1".into(),
//!     operation_id: "support".into(),
//!     idempotency_key: Some("order-7".into()),
//! };
//! let dispatch = operations.dispatch("refund").arg("payment", "txn_1").call(call.clone());
//! let package = dispatch.by(Principal::agent("bot")).at_once().tell().await?;
//! assert_eq!(package.code(), None);
//! // For the model, as its provider's interface takes it.
//! let payload = package.payload().expect("a model's call");
//! assert!(json::canonical(&payload).contains("function_call_output"));
//!
//! // Later the host asks by itself what became of it.
//! let status_ref = package.answer().expect("accepted").status_ref.clone();
//! let asking = operations.ask("refund", call.status_query(&status_ref), status_ref.as_str());
//! let mut arguments = json::Object::new();
//! arguments.insert("payment", "txn_1");
//! let told = asking.args(arguments).by(Principal::agent("bot")).tell().await?;
//! assert_eq!((told.code(), told.problems()), (None, Vec::new()));
//! # Ok::<(), onceseal::Error>(())
//! # }).unwrap();
//! ```

mod asking;
#[cfg(feature = "http")]
mod body;
mod carried;
mod carrying;
mod checked;
mod declared;
mod directory;
mod dispatching;
mod earlier;
mod filling;
mod package;
mod program;
#[cfg(feature = "http")]
mod request;
mod returned;
mod running;
#[cfg_attr(not(feature = "schema"), path = "operations/schemaless.rs")]
mod schema;
mod tool;
mod undone;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use directory::CannotTell;
use onceseal_core::action::{ActionState, Principal, state_number, status_key};
use onceseal_core::approval::Identity;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::Row;
use onceseal_core::json::Object;
use onceseal_core::operation::{Cancel, Retry};
use onceseal_core::reply::Reply;
use onceseal_core::route::CloseRoute;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Declare;
use onceseal_store::StoreError;
use onceseal_store::read::Page;

pub use asking::Asking;
pub use carried::Carried;
pub use declared::Declared;
pub use directory::{Current, Directory, Looked, Subject};
pub use dispatching::Dispatching;
pub use onceseal_core::operation::{CallIdentity, ModelCode, Profile};
pub use onceseal_core::reply::{OperationNow, Standing};
pub use onceseal_core::tool::Recovery;
pub use package::Package;
pub use tool::{Answering, Handler, Job, Question, Tool, ToolError, Word};
pub use worker::{Drained, Worker};

use crate::control::{Control, accepted, refused};
use crate::error::Error;
use crate::views::Filter;
use crate::watch::from_now;
use earlier::Earlier;

/// The tools of a program. Cheap to clone.
#[derive(Clone)]
pub struct Operations {
    control: Control,
    tools: Arc<BTreeMap<Hash, Tool>>,
    /// The contract that is dispatched under, by the tool's name.
    newest: Arc<BTreeMap<String, Hash>>,
    directory: Option<Arc<dyn Directory>>,
    /// What these tools were before, if that is carried out too.
    earlier: Option<Arc<Earlier>>,
}

impl Operations {
    /// These tools, whose contracts are made active where they are not. Of
    /// several contracts of one tool the last is the one that is dispatched
    /// under; the others are carried out to their end.
    ///
    /// # Errors
    /// What the store fails with.
    pub async fn of(control: &Control, tools: impl IntoIterator<Item = Tool>) -> Result<Operations, Error> {
        let (mut all, mut newest) = (BTreeMap::new(), BTreeMap::new());
        for tool in tools {
            accepted(control.submit(Command::Declare(Declare::Activate(tool.compiled().clone()))).await?)?;
            newest.insert(tool.name().to_owned(), tool.digest());
            all.insert(tool.digest(), tool);
        }
        let (tools, newest) = (Arc::new(all), Arc::new(newest));
        Ok(Operations { control: control.clone(), tools, newest, directory: None, earlier: None })
    }

    /// Has this directory asked who a principal is, each time that it matters.
    /// Without one everybody is who they say, and has no roles.
    #[must_use]
    pub fn directory(mut self, directory: impl Directory) -> Operations {
        self.directory = Some(Arc::new(directory));
        self
    }

    /// Whether a principal may touch what these arguments name, as it is now.
    async fn authorized(&self, tool: &Tool, principal: &Principal, arguments: &Object) -> Result<(), Code> {
        let tenant = &self.control.store().tenant().name;
        let roles = directory::roles(self.directory.as_ref(), tenant, principal).await;
        let Some(roles) = roles.map_err(|CannotTell| Code::CannotTell)? else {
            return Err(Code::AuthorizationDenied);
        };
        match tool.handler().authorizes(Current { principal, roles: &roles }, arguments).await {
            Some(true) => Ok(()),
            Some(false) => Err(Code::AuthorizationDenied),
            None => Err(Code::CannotTell),
        }
    }

    /// Has what was accepted under earlier contracts of these tools carried out
    /// under them, as their stored text says: the programs and requests of
    /// declarations that were changed since. Programs run in `directory`.
    #[must_use]
    pub fn with_earlier(self, directory: impl Into<PathBuf>) -> Operations {
        Operations { earlier: Some(Arc::new(Earlier::new(directory.into()))), ..self }
    }

    /// Every contract that there may be something to carry out under.
    fn contracts(&self) -> Result<Vec<Hash>, StoreError> {
        let mut contracts: Vec<Hash> = self.tools.keys().copied().collect();
        if self.earlier.is_some() {
            let active = self.control.store().read_rows(|snapshot| {
                let active = |name: &String| earlier::active(&self.control, snapshot, name);
                self.newest.keys().map(active).collect::<Result<Vec<_>, _>>()
            })?;
            contracts.extend(active.into_iter().flatten().filter(|digest| !self.tools.contains_key(digest)));
        }
        Ok(contracts)
    }

    /// What carries out what was accepted under this contract, if anything here does.
    fn under(&self, contract: Hash) -> Result<Option<Tool>, StoreError> {
        match (self.tools.get(&contract), &self.earlier) {
            (Some(tool), _) => Ok(Some(tool.clone())),
            (None, Some(earlier)) => earlier.tool(&self.control, contract),
            (None, None) => Ok(None),
        }
    }

    /// The store these are kept in.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The tool of this name, as it is dispatched.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(self.newest.get(name)?)
    }

    /// Begins a dispatch of this tool.
    pub fn dispatch(&self, tool: impl Into<String>) -> Dispatching {
        Dispatching::new(self.clone(), tool.into())
    }

    /// A worker that carries these tools out.
    pub fn worker(&self) -> Worker {
        Worker::new(self.clone())
    }

    /// How many operations wait under contracts that these tools do not carry
    /// out, of the oldest thousand that wait: another program must.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn strays(&self) -> Result<usize, Error> {
        let operations = self.clone();
        let strays = move |control: &Control| {
            let mut carried = BTreeSet::new();
            for contract in operations.contracts()? {
                if operations.under(contract)?.is_some() {
                    carried.insert(contract);
                }
            }
            let queued = state_number(&ActionState::Queued { due: Timestamp::MIN, code: None });
            let filter = Filter { state: Some(queued), ..Filter::default() };
            let page = control.list(StreamKind::Action, &filter, 1_000)?;
            let stray = |row: &Row| match row {
                Row::Action(row) => row.operation.as_ref().is_some_and(|op| !carried.contains(&op.contract)),
                _ => false,
            };
            Ok(page.items.iter().filter(|(_, row)| stray(row)).count())
        };
        self.control.aside(strays).await
    }

    /// Where an operation stands, by its reference, for whoever answers for this
    /// store; a model asks by [`Operations::ask`].
    ///
    /// # Errors
    /// `operation_unknown`, or the store cannot be read.
    pub async fn find(&self, status_ref: &str) -> Result<ActionId, Error> {
        self.control.operation(status_ref).await
    }
}

impl Control {
    /// The operation of this reference.
    ///
    /// # Errors
    /// `operation_unknown`, or the store cannot be read.
    pub async fn operation(&self, status_ref: &str) -> Result<ActionId, Error> {
        let key = status_key(status_ref);
        let (from, to) = (key.bytes.clone(), key.bytes);
        let page = Page { index: key.index, from, to, after: None, newest_first: false, limit: 1 };
        let found =
            self.aside(move |control| Ok(control.store().read_rows(|snapshot| snapshot.keys(&page))?));
        match found.await?.first() {
            Some(hit) => Ok(ActionId(hit.stream.name)),
            None => Err(refused(Code::OperationUnknown.into())),
        }
    }

    /// The operations of this tool with this idempotency key, whoever they are
    /// for: one, unless several have used the key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn operations_of_key(&self, tool: &str, key: &str) -> Result<Vec<ActionId>, Error> {
        let mut filter = Filter { name: Some(tool.to_owned()), ..Filter::default() };
        let mut found = Vec::new();
        loop {
            let page = self.list(StreamKind::Action, &filter, 1_000)?;
            found.extend(page.items.iter().filter_map(|(stream, row)| match row {
                Row::Action(row) => {
                    let intent = row.private.intent.as_deref()?;
                    (intent.key == key).then_some(ActionId(stream.name))
                }
                _ => None,
            }));
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Waits until nothing more happens to an operation by itself: it has ended,
    /// is parked, or nobody knows. `false`: it was not so in time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn wait_for(&self, operation: ActionId, wait: Duration) -> Result<bool, Error> {
        self.inner.watch.carried_out(operation, from_now(wait)).await
    }

    /// Waits until a request has been answered, or is over. `false`: it was not so
    /// in time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn wait_for_answer(&self, approval: ApprovalId, wait: Duration) -> Result<bool, Error> {
        self.inner.watch.answered(approval, from_now(wait)).await
    }

    /// Has a parked or delayed operation attempted.
    ///
    /// # Errors
    /// Why it cannot be: `ambiguous`, `in_progress`, `not_operator`, …
    pub async fn retry(&self, action: ActionId, person: Identity, reason: String) -> Result<Reply, Error> {
        let reply = accepted(self.submit(Command::Retry(Retry { action, person, reason })).await?)?;
        self.inner.outbox.notify_one();
        Ok(reply)
    }

    /// Closes the circuit of a destination: it answers again, says a person. What
    /// was put off is attempted when it is due.
    ///
    /// # Errors
    /// Why not: `route_unknown`, `not_operator`, …
    pub async fn close_route(
        &self,
        destination: String,
        person: Identity,
        reason: String,
    ) -> Result<Reply, Error> {
        let close = CloseRoute { destination, person, reason };
        accepted(self.submit(Command::CloseRoute(close)).await?)
    }

    /// Calls an operation off, nothing of which may have happened.
    ///
    /// # Errors
    /// As [`Control::retry`].
    pub async fn cancel(&self, action: ActionId, person: Identity, reason: String) -> Result<Reply, Error> {
        accepted(self.submit(Command::Cancel(Cancel { action, person, reason })).await?)
    }
}
