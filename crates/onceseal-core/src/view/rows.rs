//! The rows of a view by what they are of.

use super::{Halt, Pinned, View};
use crate::action::ActionRow;
use crate::approval::ApprovalRow;
use crate::effect::EffectRow;
use crate::handoff::HandoffRow;
use crate::id::{ActionId, ApprovalId, RunId};
use crate::journal::Row;
use crate::lease::LeaseRow;
use crate::operation::CallRow;
use crate::policy::PolicyRow;
use crate::route::RouteRow;
use crate::run::{DefinitionRow, DeliveryRow, RequestRow, RunRow};
use crate::store::StoreRow;
use crate::stream::{StreamId, Tenant};
use crate::task::{PlanRow, TaskRow};
use crate::tool::ToolRow;

/// The row of a stream, if it is of this kind.
macro_rules! row {
    ($view:expr, $stream:expr, $kind:ident) => {
        Ok($view.stored($stream)?.and_then(|stored| match &stored.row {
            Row::$kind(row) => Some(row),
            _ => None,
        }))
    };
}

impl View {
    /// An action's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn action(&self, id: ActionId) -> Result<Option<&ActionRow>, Halt> {
        row!(self, &StreamId::action(id), Action)
    }

    /// An approval's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn approval(&self, id: ApprovalId) -> Result<Option<&ApprovalRow>, Halt> {
        row!(self, &StreamId::approval(id), Approval)
    }

    /// An effect's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn effect(&self, stream: &StreamId) -> Result<Option<&EffectRow>, Halt> {
        row!(self, stream, Effect)
    }

    /// The row of the active policy.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn policy(&self, pinned: &Pinned) -> Result<Option<&PolicyRow>, Halt> {
        row!(self, &pinned.policy_stream, Policy)
    }

    /// A tool's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn tool(&self, stream: &StreamId) -> Result<Option<&ToolRow>, Halt> {
        row!(self, stream, Tool)
    }

    /// The row of a call's identity.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn call(&self, stream: &StreamId) -> Result<Option<&CallRow>, Halt> {
        row!(self, stream, Call)
    }

    /// The row of a route.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn route(&self, stream: &StreamId) -> Result<Option<&RouteRow>, Halt> {
        row!(self, stream, Route)
    }

    /// A run's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn run(&self, id: RunId) -> Result<Option<&RunRow>, Halt> {
        row!(self, &StreamId::run(id), Run)
    }

    /// The row of a request.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn request(&self, stream: &StreamId) -> Result<Option<&RequestRow>, Halt> {
        row!(self, stream, Request)
    }

    /// The row of a run definition.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn definition(&self, stream: &StreamId) -> Result<Option<&DefinitionRow>, Halt> {
        row!(self, stream, Definition)
    }

    /// A resource's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn lease(&self, stream: &StreamId) -> Result<Option<&LeaseRow>, Halt> {
        row!(self, stream, Lease)
    }

    /// A delivery's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn delivery(&self, stream: &StreamId) -> Result<Option<&DeliveryRow>, Halt> {
        row!(self, stream, Delivery)
    }

    /// A task's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn task(&self, stream: &StreamId) -> Result<Option<&TaskRow>, Halt> {
        row!(self, stream, Task)
    }

    /// The row of a run's plan.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn plan(&self, stream: &StreamId) -> Result<Option<&PlanRow>, Halt> {
        row!(self, stream, Plan)
    }

    /// A handoff's row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn handoff(&self, stream: &StreamId) -> Result<Option<&HandoffRow>, Halt> {
        row!(self, stream, Handoff)
    }

    /// The store's own row.
    ///
    /// # Errors
    /// As [`View::stored`].
    pub fn store(&self, tenant: &Tenant) -> Result<Option<&StoreRow>, Halt> {
        row!(self, &tenant.store(), Store)
    }
}
