//! Operations: actions that are stored with their intent, and carried out later
//! by a worker, in this process or another.
//!
//! A [`Tool`] is a contract and what carries it out. [`Operations`] are the tools
//! of a program: what may be dispatched by it, and what its [`Worker`]s do.

#[cfg(feature = "http")]
mod body;
mod carrying;
mod declared;
mod dispatching;
mod filling;
mod program;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "schema")]
mod schema;
mod tool;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::action::status_key;
use onceseal_core::approval::Identity;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;
use onceseal_core::operation::{Cancel, Retry};
use onceseal_core::reply::Reply;
use onceseal_core::route::CloseRoute;
use onceseal_core::stream::StreamKind;
use onceseal_core::tool::Declare;
use onceseal_store::read::Page;

pub use declared::{Declared, ToolError};
pub use dispatching::Dispatching;
pub use onceseal_core::operation::{CallIdentity, Profile, Query};
pub use onceseal_core::reply::{OperationNow, Standing};
pub use onceseal_core::tool::{ContractError, Recovery};
pub use tool::{Answering, Handler, Job, Question, Tool, Word};
pub use worker::{Drained, Worker};

use crate::control::{Control, accepted, refused};
use crate::error::Error;
use crate::views::{Filter, state_numbers};

/// The tools of a program. Cheap to clone.
#[derive(Clone)]
pub struct Operations {
    control: Control,
    tools: Arc<BTreeMap<Hash, Tool>>,
    /// The contract that is dispatched under, by the tool's name.
    newest: Arc<BTreeMap<String, Hash>>,
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
        Ok(Operations { control: control.clone(), tools: Arc::new(all), newest: Arc::new(newest) })
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

    /// How many operations wait under contracts that these tools have not, of the
    /// oldest thousand that wait: another program must carry them out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn strays(&self) -> Result<usize, Error> {
        let known = self.tools.clone();
        let strays = move |control: &Control| {
            let state = state_numbers(StreamKind::Action).into_iter().find(|(_, name)| *name == "queued");
            let filter = Filter { state: state.map(|(number, _)| number), ..Filter::default() };
            let page = control.list(StreamKind::Action, &filter, 1_000)?;
            let stray = |row: &Row| match row {
                Row::Action(row) => {
                    row.operation.as_ref().is_some_and(|op| !known.contains_key(&op.contract))
                }
                _ => false,
            };
            Ok(page.items.iter().filter(|(_, row)| stray(row)).count())
        };
        self.control.aside(strays).await
    }

    /// Where an operation stands, by its reference, for whoever answers for this
    /// store; a model asks by [`Operations::query`].
    ///
    /// # Errors
    /// `operation_unknown`, or the store cannot be read.
    pub async fn find(&self, status_ref: &str) -> Result<ActionId, Error> {
        self.control.operation(status_ref).await
    }

    /// Answers a model that asks what became of an operation.
    ///
    /// # Errors
    /// `operation_unknown`, `call_id_conflict`, `status_conflict`.
    pub async fn query(&self, query: Query) -> Result<OperationNow, Error> {
        match self.control.submit(Command::Query(Box::new(query))).await? {
            Reply::Operation(now) => Ok(*now),
            reply => Err(refused(reply)),
        }
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
        let found = self.aside(move |control| Ok(control.store().read(|snapshot| snapshot.keys(&page))?));
        match found.await?.first() {
            Some(hit) => Ok(ActionId(hit.stream.name)),
            None => Err(refused(Code::OperationUnknown.into())),
        }
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
