//! What the events of a run come to: at a moment of it, between two, and now.

use std::collections::{BTreeMap, BTreeSet};

use onceseal_core::code::Code;
use onceseal_core::decide::evolve;
use onceseal_core::id::RunId;
use onceseal_core::journal::Row;
use onceseal_core::json::Value;
use onceseal_core::run::RunRow;
use onceseal_core::stream::StreamId;
use onceseal_store::StoreError;
use onceseal_store::read::Snapshot;

use super::happened::{Part, RunEvent};
use super::reading::run_row;
use crate::audit::{self, AuditReport};
use crate::control::Control;
use crate::error::Error;
use crate::render;

/// Events read at once.
const PAGE: usize = 256;

/// One member of a run that differs between two moments of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, as [`render::run`] has it; of what the run is made of with what it
    /// belongs to before it, as in `tasks.form.state` or `deliveries.gate-a.1`.
    pub member: String,
    /// What it was.
    pub before: Value,
    /// What it became.
    pub after: Value,
}

/// A run rebuilt from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// What the events come to.
    pub row: RunRow,
    /// How many there are.
    pub sequence: u64,
    /// Whether it is what is stored.
    pub same: bool,
}

impl Control {
    /// The run as it was after its event of this number; `None` if it has none of
    /// that number.
    ///
    /// # Errors
    /// The store cannot be read, or `corrupt` if its events do not come to a run.
    pub fn run_at(&self, id: RunId, sequence: u64) -> Result<Option<RunRow>, Error> {
        let folded = self.store().read(|snapshot| fold(snapshot, id, sequence))?;
        Ok(folded.filter(|(last, _)| *last == sequence).map(|(_, row)| row))
    }

    /// What changed of a run, its deliveries, plan, tasks, lease and handoffs between
    /// two of the run's own events, in the order of the members' names; without a
    /// second one, up to now. `None` if it has no event of one of these numbers.
    ///
    /// # Errors
    /// As [`Control::run_at`].
    pub fn run_changes(&self, id: RunId, from: u64, to: Option<u64>) -> Result<Option<Vec<Change>>, Error> {
        let (mut history, mut now) = (self.run_history(id), Moment::default());
        let (mut before, mut after) = (None, None);
        loop {
            let page = history.more(PAGE)?;
            for event in &page {
                now.take(event)?;
                let is = |wanted| event.part == Part::Run && event.stored.stamp.sequence == wanted;
                if is(from) {
                    before = Some(now.members());
                }
                if to.is_some_and(is) {
                    after = Some(now.members());
                }
            }
            if page.is_empty() {
                break;
            }
        }
        let after = if to.is_none() { Some(now.members()) } else { after };
        let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |of: &BTreeMap<String, Value>, name| of.get(name).cloned().unwrap_or(Value::Null);
        let changes = names.into_iter().filter_map(|name| {
            let (before, after) = (value(&before, name), value(&after, name));
            (before != after).then(|| Change { member: name.clone(), before, after })
        });
        Ok(Some(changes.collect()))
    }

    /// Folds a run's events anew, and compares with what is stored. Nothing is
    /// written. `None` if there is no such run.
    ///
    /// # Errors
    /// As [`Control::run_at`].
    pub fn rebuild_run(&self, id: RunId) -> Result<Option<Rebuilt>, Error> {
        let rebuilt = self.store().read(|snapshot| {
            let folded = fold(snapshot, id, u64::MAX)?;
            let stored = match run_row(snapshot, id) {
                Err(error) if error.code() == Code::Corrupt => None,
                stored => stored?,
            };
            let same = folded == stored;
            Ok(folded.map(|(sequence, row)| Rebuilt { row, sequence, same }))
        });
        Ok(rebuilt?)
    }

    /// Audits one run: its chain, seals and texts, what its events come to, and
    /// its keys.
    ///
    /// # Errors
    /// The store cannot be read at all: nothing is said of it.
    pub fn verify_run(&self, id: RunId) -> Result<AuditReport, Error> {
        audit::stream_alone(self, &StreamId::run(id))
    }
}

/// What a run's events come to, up to one of this number, and the last one's.
fn fold(snapshot: &dyn Snapshot, id: RunId, to: u64) -> Result<Option<(u64, RunRow)>, StoreError> {
    const WRONG: Code = Code::Corrupt;
    let stream = StreamId::run(id);
    let (mut last, mut row) = (0, None);
    loop {
        let page = snapshot.events(&stream, last + 1, PAGE)?;
        if page.is_empty() || last >= to {
            break;
        }
        for stored in page.into_iter().take_while(|stored| stored.stamp.sequence <= to) {
            let event = stored.event.ok_or_else(|| StoreError::new(WRONG))?;
            let (sequence, at) = (stored.stamp.sequence, stored.stamp.at);
            row = Some(evolve(&stream, row, sequence, at, &event)?);
            last = sequence;
        }
        if last == 0 {
            break;
        }
    }
    match row {
        None => Ok(None),
        Some(Row::Run(row)) => Ok(Some((last, row))),
        Some(_) => Err(StoreError::new(WRONG)),
    }
}

/// A run with all that it is made of, at a moment.
#[derive(Default)]
struct Moment {
    rows: BTreeMap<StreamId, (Option<String>, Row)>,
    deliveries: BTreeMap<String, Value>,
}

impl Moment {
    /// Goes on to the moment after an event.
    fn take(&mut self, event: &RunEvent) -> Result<(), StoreError> {
        if let Some(row) = &event.delivery {
            self.deliveries
                .insert(format!("deliveries.{}.{}", row.gate, row.revision), render::delivery(row));
        }
        let of_task = event.part == Part::Lease && event.task.is_some();
        if of_task {
            // Only a part of its events is told; the task says what became of it.
            return Ok(());
        }
        let stamp = &event.stored.stamp;
        let body = event.stored.event.as_ref().ok_or_else(|| StoreError::new(Code::Corrupt))?;
        let before = self.rows.remove(&stamp.stream).map(|(_, row)| row);
        let row = evolve(&stamp.stream, before, stamp.sequence, stamp.at, body)?;
        self.rows.insert(stamp.stream, (event.task.clone(), row));
        Ok(())
    }

    /// Its members by name.
    fn members(&self) -> BTreeMap<String, Value> {
        let mut members = self.deliveries.clone();
        let mut add = |of: &str, names: &[&str], of_it: Value| {
            let Value::Object(object) = of_it else { return };
            for (name, value) in object.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
                members.insert(format!("{of}{name}"), value.clone());
            }
        };
        for (stream, (task, row)) in &self.rows {
            let named = task.clone().unwrap_or_else(|| stream.to_string());
            match row {
                Row::Run(row) => add("", &[], render::run(RunId(stream.name), row)),
                Row::Plan(row) => add("plan.", &["revision", "tasks", "capacity"], render::plan(row)),
                Row::Task(row) => add(&format!("tasks.{named}."), &[], render::task_moment(row)),
                Row::Lease(row) => add("lease.", &[], render::lease_moment(row)),
                Row::Handoff(row) => {
                    let receipt = row.private.receipt.map_or(named, |receipt| receipt.to_string());
                    add(&format!("handoffs.{receipt}."), &[], render::handoff_moment(row));
                }
                _ => {}
            }
        }
        members
    }
}
