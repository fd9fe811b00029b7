//! A plan that a seed decides, and what may be done at once by it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use onceseal_core::json::{self, Limits, Value};
use onceseal_core::run::Definition;
use onceseal_core::task::Plan;

use crate::chance::Chance;

#[derive(Clone)]
struct Task {
    depends_on: Vec<usize>,
    resource: Option<usize>,
    phases: usize,
    /// It is another task with another number.
    version: u64,
}

#[derive(Clone)]
pub(super) struct Tasks {
    pub(super) revision: u64,
    capacity: usize,
    tasks: Vec<Task>,
}

/// Attempts of each obligation.
pub(super) const ATTEMPTS: u32 = 1;

pub(super) fn definition() -> Arc<Definition> {
    let simple = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
    Arc::new(simple.expect("built in"))
}

impl Tasks {
    pub(super) fn drawn(chance: &mut Chance) -> Tasks {
        let count = 4 + chance.below(5);
        let tasks = (0..count).map(|at| Task {
            depends_on: (0..at).filter(|_| chance.one_in(3)).collect(),
            resource: chance.one_in(2).then(|| chance.below(2)),
            phases: 1 + chance.below(2),
            version: 0,
        });
        let tasks = tasks.collect();
        Tasks { revision: 1, capacity: 2 + chance.below(2), tasks }
    }

    pub(super) fn count(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn depends_on(&self, task: usize) -> &[usize] {
        &self.tasks[task].depends_on
    }

    /// Makes one of them another: all that is another now.
    pub(super) fn change(&mut self, chance: &mut Chance) -> BTreeSet<usize> {
        self.revision += 1;
        let first = chance.below(self.tasks.len());
        self.tasks[first].version += 1;
        let mut changed = BTreeSet::from([first]);
        for (at, task) in self.tasks.iter().enumerate() {
            // Each depends on those before it alone.
            if task.depends_on.iter().any(|on| changed.contains(on)) {
                changed.insert(at);
            }
        }
        changed
    }

    /// Whether these may be worked on at once.
    pub(super) fn fit(&self, at_work: &[usize]) -> Result<(), String> {
        if at_work.len() > self.capacity {
            return Err(format!("{at_work:?} are worked on, more than {}", self.capacity));
        }
        let mut seen = BTreeSet::new();
        match at_work.iter().filter_map(|at| self.tasks[*at].resource).all(|resource| seen.insert(resource)) {
            true => Ok(()),
            false => Err(format!("{at_work:?} are worked on, and two of them have one resource")),
        }
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        let mut text = format!("{{\"capacity\":{},\"tasks\":[", self.capacity);
        for (at, Task { depends_on, resource, phases, version }) in self.tasks.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let list = |items: Vec<String>| {
                items.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(",")
            };
            let on = list(depends_on.iter().map(|on| format!("t{on}")).collect());
            let resources = list(resource.iter().map(|it| format!("r{it}")).collect());
            let phases = list((0..*phases).map(|phase| format!("p{phase}")).collect());
            write!(
                text,
                r#"{comma}{{"attempts":{ATTEMPTS},"depends_on":[{on}],"id":"t{at}","input":{{"version":{version}}},"phases":[{phases}],"resources":[{resources}]}}"#
            )
            .expect("a text");
        }
        text += "]}";
        let Ok(Value::Object(document)) = json::read(text.as_bytes(), &Limits::DATA) else {
            panic!("no document: {text}")
        };
        Arc::new(Plan::compile(&document).expect("a plan"))
    }
}
