//! Why a run does not go on: everything at once.

use crate::record::word;
use crate::run::{Definition, Proving, RunRow};
use crate::task::{TaskRow, TaskState};

word! {
    /// What would let something go on.
    pub enum Blocking {
        /// Somebody must decide.
        Decision = 1 => "decision",
        /// Something must be mended or come back.
        Capability = 2 => "capability",
        /// Its turn must come.
        Waiting = 3 => "waiting",
    }
}

/// One reason why a run, or a task of it, does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// What would let it go on.
    pub blocking: Blocking,
    /// The task's number in the plan; `None` for the run itself.
    pub task: Option<u32>,
    /// Why, in a word: what it stopped with, or what it waits for.
    pub code: String,
}

/// What stands in the way of a run and of its tasks, the run first. Whatever is
/// worked on is not in the way.
#[must_use]
pub fn blockers(run: &RunRow, definition: &Definition, tasks: &[TaskRow]) -> Vec<Blocker> {
    if run.terminal {
        return Vec::new();
    }
    let of_run = |code: String| Blocker { blocking: Blocking::Decision, task: None, code };
    let mut blockers = Vec::new();
    if definition.is_idle(&run.state) {
        // Its code says why, in whatever words somebody chose.
        blockers.push(of_run(format!("idle:{}", run.state)));
    }
    let unproven = definition.gates().iter().filter(|(name, gate)| {
        let bound = run.revision_of(name);
        gate.proof == Proving::Required && (bound.is_none() || bound != run.delivery_revision())
    });
    blockers.extend(unproven.map(|(name, _)| of_run(format!("unbound:{name}"))));
    blockers.extend(tasks.iter().filter_map(of_task));
    blockers
}

fn of_task(task: &TaskRow) -> Option<Blocker> {
    use TaskState as S;
    let stopped = || task.code.clone().unwrap_or_else(|| task.state.as_str().to_owned());
    let is_spent = task.attempts_left() == 0;
    let (blocking, code) = match task.state {
        S::Verified | S::Closed | S::Running | S::Validating => return None,
        S::Failed | S::Paused | S::ApprovalNeeded => (Blocking::Decision, stopped()),
        S::Pending | S::Queued | S::Ready | S::Repairable | S::Retryable if is_spent => {
            (Blocking::Decision, "attempts_spent".to_owned())
        }
        S::Repairable | S::Retryable => (Blocking::Capability, stopped()),
        S::Pending => (Blocking::Waiting, "dependencies".to_owned()),
        S::Queued | S::Ready => (Blocking::Waiting, "turn".to_owned()),
    };
    Some(Blocker { blocking, task: Some(task.number), code })
}
