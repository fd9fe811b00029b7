//! Deliveries, tasks, what stands in the way, handoffs, and what happened to a run,
//! as JSON.

use onceseal_core::handoff::HandoffRow;
use onceseal_core::journal::Body;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::LeaseRow;
use onceseal_core::run::DeliveryRow;
use onceseal_core::task::{PlanRow, TaskRow};

use super::{holder, number, object, optional, text};
use crate::runs::{HandoffView, InTheWay, RunEvent, TaskView};

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

/// What differs of a task between two moments of it.
pub(crate) fn task_moment(row: &TaskRow) -> Value {
    object(vec![
        ("number", number(row.number.into())),
        ("state", text(row.state)),
        ("phase", text(row.phase_name())),
        ("code", optional(row.code.as_ref())),
        ("attempts_left", number(row.attempts_left().into())),
        ("worker", optional(row.private.workers.first())),
        ("spec", text(row.spec)),
    ])
}

/// What differs of who holds a run between two moments of it.
pub(crate) fn lease_moment(row: &LeaseRow) -> Value {
    object(vec![("fence", number(row.fence)), ("held", Value::Bool(!row.holders.is_empty()))])
}

/// What differs of a handoff between two moments of it.
pub(crate) fn handoff_moment(row: &HandoffRow) -> Value {
    object(vec![
        ("state", text(row.state)),
        ("resource", optional(row.private.resource.as_ref())),
        ("fence", number(row.fence)),
    ])
}

/// An event of a run. `data` is what is open of it, `details` what else is known.
#[must_use]
pub fn run_event(event: &RunEvent) -> Value {
    let RunEvent { stored, part, task, by, person, reason, request, .. } = event;
    let body = stored.event.as_ref().map(|event| &event.body);
    let by =
        by.as_ref().map(|by| object(vec![("agent", text(&by.agent)), ("user", optional(by.user.as_ref()))]));
    object(vec![
        ("sequence", number(stored.stamp.sequence)),
        ("position", number(stored.position)),
        ("at", text(stored.stamp.at)),
        ("part", text(part.as_str())),
        ("task", optional(task.as_ref())),
        ("kind", optional(body.map(Body::kind))),
        ("by", by.unwrap_or(Value::Null)),
        ("person", optional(person.as_ref())),
        ("reason", optional(reason.as_ref())),
        ("request", optional(request.as_ref())),
        ("data", body.map_or(Value::Null, data)),
        ("details", details(event)),
    ])
}

fn data(body: &Body) -> Value {
    let mut data = String::new();
    body.write_data(&mut data);
    json::read(data.as_bytes(), &Limits::DATA).unwrap_or(Value::Null)
}

fn details(event: &RunEvent) -> Value {
    if let Some(row) = &event.delivery {
        return delivery(row);
    }
    if let Some(plan) = &event.replanned {
        return object(vec![
            ("added", number(plan.added)),
            ("restarted", number(plan.restarted)),
            ("kept", number(plan.kept)),
            ("closed", number(plan.closed)),
        ]);
    }
    match event.stored.event.as_ref().map(|event| &event.body) {
        Some(Body::RunNamed(_, sealed)) => object(vec![("key", optional(sealed.key.as_ref()))]),
        Some(Body::TaskMoved(_, sealed)) => object(vec![
            ("hash", optional(sealed.hash)),
            ("environment", optional(sealed.environment.as_ref())),
            ("produced_by", optional(sealed.produced_by.as_ref())),
        ]),
        Some(Body::HandoffPrepared(_, sealed)) => object(vec![
            ("receipt", optional(sealed.receipt)),
            ("resource", optional(sealed.resource.as_ref())),
        ]),
        _ => Value::Null,
    }
}
