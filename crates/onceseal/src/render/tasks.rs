//! Deliveries, tasks, what stands in the way, and handoffs as JSON.

use onceseal_core::json::Value;
use onceseal_core::run::DeliveryRow;
use onceseal_core::task::PlanRow;

use super::{holder, number, object, optional, text};
use crate::runs::{HandoffView, InTheWay, TaskView};

/// A delivery.
#[must_use]
pub fn delivery(row: &DeliveryRow) -> Value {
    object(vec![
        ("gate", text(&row.gate)),
        ("revision", number(row.revision)),
        ("receipt", optional(row.private.receipt)),
        ("contract", optional(row.private.contract)),
        ("record", optional(row.private.record)),
        ("approval", optional(row.approval)),
        ("action", optional(row.action)),
        ("created_at", text(row.created_at)),
    ])
}

/// A plan.
#[must_use]
pub fn plan(row: &PlanRow) -> Value {
    object(vec![
        ("revision", number(row.revision)),
        ("tasks", number(row.tasks.into())),
        ("capacity", number(row.capacity.into())),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// A task with all that is known of it.
#[must_use]
pub fn task(view: &TaskView) -> Value {
    let TaskView { row, waits_for, blocker, .. } = view;
    let spent = row.spent.iter().map(|spent| {
        object(vec![
            ("phase", text(&spent.phase)),
            ("cause", text(&spent.cause)),
            ("times", number(spent.times.into())),
        ])
    });
    object(vec![
        ("task", optional(view.id())),
        ("number", number(row.number.into())),
        ("state", text(row.state)),
        ("phase", text(row.phase_name())),
        ("phases", Value::List(row.phases.iter().map(text).collect())),
        ("code", optional(row.code.as_ref())),
        ("attempts", number(row.attempts.into())),
        ("attempts_left", number(row.attempts_left().into())),
        ("spent", Value::List(spent.collect())),
        ("waits_for", Value::List(waits_for.iter().map(text).collect())),
        ("blocking", optional(blocker.as_ref().map(|blocker| blocker.blocking))),
        ("blocker", optional(blocker.as_ref().map(|blocker| &blocker.code))),
        ("worker", optional(row.private.workers.first())),
        ("holder", view.holder.as_ref().map_or(Value::Null, holder)),
        ("lapsed", view.lapsed.as_ref().map_or(Value::Null, holder)),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// Something that stands in the way of a run.
#[must_use]
pub fn blocker(found: &InTheWay) -> Value {
    object(vec![
        ("blocking", text(found.blocker.blocking)),
        ("task", optional(found.task.as_ref())),
        ("code", text(&found.blocker.code)),
    ])
}

/// A handoff.
#[must_use]
pub fn handoff(view: &HandoffView) -> Value {
    let HandoffView { row, facts } = view;
    object(vec![
        ("state", text(row.state)),
        ("resource", optional(row.private.resource.as_ref())),
        ("fence", number(row.fence)),
        ("agent", optional(row.private.agent.as_ref())),
        ("user", optional(row.private.user.as_ref())),
        ("holder", optional(row.holder)),
        ("facts", facts.clone().map_or(Value::Null, Value::Object)),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}
