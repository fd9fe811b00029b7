//! What a run is made of, as it is shown with the run: deliveries, tasks, and what
//! stands in the way.

use std::collections::BTreeMap;

use onceseal::core::hash::Hash;
use onceseal::core::id::RunId;
use onceseal::core::json::{Object, Value};
use onceseal::runs::{
    Blocking, DeliveryPrivate, DeliveryRow, InTheWay, PlanRow, RunView, TaskFilter, TaskState,
};
use onceseal::{Control, render};

use crate::command::refused::integer;
use crate::error::CliError;
use crate::table::Cell;
use crate::text::shown;

/// So many of what stands in the way are told in one line; `runs blockers` has all.
const MOST: usize = 5;

/// What a run is made of.
pub(super) struct Parts {
    deliveries: Vec<DeliveryRow>,
    plan: Option<PlanRow>,
    /// How many tasks stand so.
    tasks: BTreeMap<&'static str, u64>,
    /// `None` if its definition is erased.
    blockers: Option<Vec<InTheWay>>,
}

impl Parts {
    pub(super) fn read(control: &Control, view: &RunView) -> Result<Parts, CliError> {
        let blockers = match view.definition {
            Some(_) => control.blockers(view.id)?,
            None => None,
        };
        let deliveries = control.deliveries(view.id)?;
        Ok(Parts { deliveries, plan: control.plan(view.id)?, tasks: counted(control, view.id)?, blockers })
    }

    /// The gates at which a delivery is still to be bound.
    pub(super) fn unbound(&self) -> impl Iterator<Item = &str> {
        let codes = self.blockers.iter().flatten().map(|found| found.blocker.code.as_str());
        codes.filter_map(|code| code.strip_prefix("unbound:"))
    }

    /// The revision that is planned.
    pub(super) fn planned(&self) -> Option<u64> {
        self.plan.as_ref().map(|plan| plan.revision)
    }

    /// Whether a worker would find something to do.
    pub(super) fn has_tasks_in_line(&self) -> bool {
        [TaskState::Queued, TaskState::Ready].iter().any(|state| self.tasks.contains_key(state.as_str()))
    }

    /// Whether a task waits for somebody.
    pub(super) fn is_blocked(&self) -> bool {
        let mut blockers = self.blockers.iter().flatten();
        blockers.any(|found| found.task.is_some() && found.blocker.blocking != Blocking::Waiting)
    }

    /// Adds them to a run as JSON has it.
    pub(super) fn render(&self, object: &mut Object) {
        object.insert("deliveries", Value::List(self.deliveries.iter().map(render::delivery).collect()));
        object.insert("plan", self.plan.as_ref().map_or(Value::Null, render::plan));
        let mut tasks = Object::new();
        for (state, count) in &self.tasks {
            tasks.insert(*state, integer(*count));
        }
        object.insert("tasks", tasks);
        let blockers = |all: &Vec<InTheWay>| Value::List(all.iter().map(render::blocker).collect());
        object.insert("blockers", self.blockers.as_ref().map_or(Value::Null, blockers));
    }

    /// The same for people, where there is any.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for row in &self.deliveries {
            let hash = |name: &str, hash: Option<Hash>| hash.map(|hash| format!("{name}{hash}"));
            let by = row.approval.map(|id| format!("by {id}"));
            let DeliveryPrivate { contract, receipt, record } = row.private;
            let what =
                [hash("", receipt), hash("contract ", contract), hash("record ", record), by].into_iter();
            let what = what.flatten().collect::<Vec<_>>().join(", ");
            rows.push(("bound", format!("{} {}: {what}", shown(&row.gate), row.revision)));
        }
        if let Some(plan) = &self.plan {
            let states = self.tasks.iter().map(|(state, count)| format!("{count} {state}"));
            let states = states.collect::<Vec<_>>().join(", ");
            rows.push(("tasks", format!("{states} (revision {}, {} at once)", plan.revision, plan.capacity)));
        }
        // Whose turn it is not is in nobody's way.
        let all = self.blockers.iter().flatten().filter(|it| it.blocker.blocking != Blocking::Waiting);
        let all: Vec<_> = all.map(word).collect();
        if !all.is_empty() {
            let more = all.len().saturating_sub(MOST);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            rows.push(("blocked", format!("{}{more}", all[..all.len().min(MOST)].join(", "))));
        }
        rows
    }
}

fn word(found: &InTheWay) -> String {
    let code = shown(&found.blocker.code);
    match found.task.as_deref() {
        Some(task) => format!("{}: {code}", shown(task)),
        None => code,
    }
}

fn counted(control: &Control, id: RunId) -> Result<BTreeMap<&'static str, u64>, CliError> {
    let mut counts = BTreeMap::new();
    for task in control.list_tasks(id, &TaskFilter::default(), usize::MAX)?.items {
        *counts.entry(task.row.state.as_str()).or_insert(0) += 1;
    }
    Ok(counts)
}

/// How many tasks of a run are verified, and how much waits for somebody.
pub(super) fn cells(control: &Control, id: RunId) -> Result<[Cell; 2], CliError> {
    let counts = counted(control, id)?;
    let verified = counts.get(TaskState::Verified.as_str()).copied().unwrap_or_default();
    let tasks = match counts.values().sum::<u64>() {
        0 => "-".to_owned(),
        all => format!("{verified}/{all}"),
    };
    let blockers = control.blockers(id)?.unwrap_or_default();
    let blocked = blockers.iter().filter(|it| it.blocker.blocking != Blocking::Waiting).count();
    let blocked = if blocked == 0 { "-".to_owned() } else { blocked.to_string() };
    Ok([tasks.into(), blocked.into()])
}
