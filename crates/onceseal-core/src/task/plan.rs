//! A plan: the tasks of a run, and what they mean together.

use std::collections::BTreeMap;

use crate::hash::Hash;
use crate::json::{self, Object, Value};
use crate::policy::nearest;
use crate::run::DocumentError;
use crate::run::document::{Read, known};
use crate::task::Spec;

/// Tasks of one plan: all of them are read when it changes.
const TASKS: usize = 16_384;
/// Tasks of one run that are worked on at once: all of them are looked at when
/// another is taken.
const CAPACITY: u32 = 256;
/// Where nothing is said, as many as a person can follow.
const DEFAULT_CAPACITY: u32 = 4;

/// Tasks of a cycle that are named: whoever mends one needs no more of it.
const NAMED: usize = 8;

/// The tasks of a run for one delivery revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    capacity: u32,
    tasks: Vec<Spec>,
    /// The tasks that each depends on, by their numbers.
    dependencies: Vec<Vec<usize>>,
    /// Numbers of the tasks, each after all that it depends on.
    order: Vec<usize>,
    text: String,
}

impl Plan {
    /// Reads a document: `tasks`, and perhaps `capacity`.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn compile(document: &Object) -> Result<Plan, DocumentError> {
        known(document, "", &["capacity", "tasks"])?;
        let capacity = match document.get("capacity") {
            None => DEFAULT_CAPACITY,
            Some(Value::Integer(n)) if (1..=i64::from(CAPACITY)).contains(n) => {
                u32::try_from(*n).unwrap_or(CAPACITY)
            }
            Some(_) => {
                let problem = format!("must be a number from 1 to {CAPACITY}");
                return Err(DocumentError::new("capacity", problem));
            }
        };
        let tasks = match document.get("tasks") {
            Some(Value::List(tasks)) if tasks.is_empty() => {
                return Err(DocumentError::new(
                    "tasks",
                    "must have a task: a plan is final for its revision",
                ));
            }
            Some(Value::List(tasks)) if tasks.len() <= TASKS => tasks,
            Some(Value::List(_)) => {
                return Err(DocumentError::new("tasks", format!("has more than {TASKS} tasks")));
            }
            _ => return Err(DocumentError::new("tasks", "must be a list of tasks")),
        };
        let tasks = tasks.iter().enumerate().map(|(at, task)| Spec::read(&format!("tasks[{at}]"), task));
        let tasks = tasks.collect::<Read<Vec<_>>>()?;
        let mut numbers = BTreeMap::new();
        for (at, task) in tasks.iter().enumerate() {
            if let Some(first) = numbers.insert(task.id.as_str(), at) {
                let problem = format!("`{}` is the id of tasks[{first}] too", task.id);
                return Err(DocumentError::new(format!("tasks[{at}].id"), problem));
            }
        }
        let mut dependencies = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            for (member, names) in [("depends_on", &task.depends_on), ("conflicts", &task.conflicts)] {
                for name in names {
                    exists(&numbers, &format!("tasks[{at}].{member}"), name)?;
                }
            }
            let of_it = task.depends_on.iter().filter_map(|name| numbers.get(name.as_str()).copied());
            dependencies.push(of_it.collect());
        }
        let order = ordered(&tasks, &dependencies)?;
        let text = json::canonical(&Value::Object(document.clone()));
        Ok(Plan { capacity, tasks, dependencies, order, text })
    }

    /// How many of its tasks may be worked on at once.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Its tasks, in the order in which they stand.
    #[must_use]
    pub fn tasks(&self) -> &[Spec] {
        &self.tasks
    }

    /// Numbers of the tasks that a task depends on.
    pub(super) fn dependencies(&self, number: usize) -> &[usize] {
        self.dependencies.get(number).map_or(&[], Vec::as_slice)
    }

    /// Numbers of the tasks, each after all that it depends on.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// SHA-256(`onceseal.plan.v1\n` ‖ canonical text).
    #[must_use]
    pub fn digest(&self) -> Hash {
        Hash::of("onceseal.plan.v1\n", &[self.text.as_bytes()])
    }
}

/// Kahn's order (1962), the earliest in the plan first; a cycle is named.
fn ordered(tasks: &[Spec], dependencies: &[Vec<usize>]) -> Read<Vec<usize>> {
    let mut dependents = vec![Vec::new(); tasks.len()];
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    for (at, on) in dependencies.iter().enumerate() {
        on.iter().for_each(|on| dependents[*on].push(at));
    }
    let mut order: Vec<usize> = (0..tasks.len()).filter(|at| missing[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for dependent in &dependents[at] {
            missing[*dependent] -= 1;
            if missing[*dependent] == 0 {
                order.push(*dependent);
            }
        }
    }
    match (0..tasks.len()).find(|at| missing[*at] > 0) {
        None => Ok(order),
        Some(start) => {
            let cycle = cycle(start, dependencies, &missing);
            let mut names: Vec<_> = cycle.iter().map(|at| tasks[*at].id.as_str()).collect();
            let more = names.len().saturating_sub(NAMED);
            let left_out = format!("… {more} more …");
            if more > 0 {
                names.splice(NAMED - 1..names.len() - 1, [left_out.as_str()]);
            }
            let problem = format!("depends on itself: {}", names.join(" > "));
            Err(DocumentError::new(format!("tasks[{}].depends_on", cycle[0]), problem))
        }
    }
}

/// A way from a task back to itself, among those that could not be ordered:
/// each of them depends on another of them.
fn cycle(start: usize, dependencies: &[Vec<usize>], missing: &[usize]) -> Vec<usize> {
    let mut way = vec![start];
    loop {
        let last = way[way.len() - 1];
        let Some(next) = dependencies[last].iter().copied().find(|on| missing[*on] > 0) else { return way };
        if let Some(met) = way.iter().position(|at| *at == next) {
            way.drain(..met);
            way.push(next);
            return way;
        }
        way.push(next);
    }
}

fn exists(numbers: &BTreeMap<&str, usize>, path: &str, name: &str) -> Read<()> {
    if numbers.contains_key(name) {
        return Ok(());
    }
    let hint = nearest(name, numbers.keys().copied());
    let hint = hint.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    Err(DocumentError::new(path, format!("`{name}` is no task of this plan{hint}")))
}

#[cfg(test)]
mod tests;
