//! What everybody knows together: every answer, also those that were lost.

use std::collections::{BTreeMap, BTreeSet};

use onceseal_core::task::{TaskRow, TaskTo};
use onceseal_core::time::Timestamp;

use super::plan::{ATTEMPTS, Tasks};

type Holds = Result<(), String>;

/// The newest lease on something.
#[derive(Clone, Copy)]
struct Held {
    fence: u64,
    until: Timestamp,
    /// Given up, or ended by whoever may.
    is_over: bool,
}

pub(super) struct Ghost {
    /// The latest moment that anybody has seen.
    pub(super) latest: Timestamp,
    pub(super) verified: BTreeSet<usize>,
    /// By task; the run's is under none.
    held: BTreeMap<Option<usize>, Held>,
    attempts: BTreeMap<(usize, u32, String), u32>,
}

impl Ghost {
    pub(super) fn new(now: Timestamp) -> Ghost {
        let (verified, held, attempts) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Ghost { latest: now, verified, held, attempts }
    }

    /// Somebody has it now; nobody whose lease is not over had it.
    fn handed_out(&mut self, what: Option<usize>, fence: u64, until: Timestamp) -> Holds {
        if let Some(before) = self.held.get(&what) {
            if !before.is_over && before.until >= self.latest && before.fence != fence {
                return Err(format!("two have {what:?} at once: {} and {fence}", before.fence));
            }
            if fence < before.fence {
                return Err(format!("{what:?} counts from {fence} after {}", before.fence));
            }
        }
        self.held.insert(what, Held { fence, until, is_over: false });
        Ok(())
    }

    /// Something was done under this lease: it was the newest, and not over.
    fn used(&self, what: Option<usize>, fence: u64, now: Timestamp) -> Holds {
        match self.held.get(&what) {
            Some(held) if held.fence == fence && !held.is_over && now <= held.until => Ok(()),
            _ => Err(format!("{what:?} goes on under lease {fence}, which is over")),
        }
    }

    /// Nothing was done under this lease: it was not the newest, or it was over at
    /// some moment.
    pub(super) fn fenced(&self, what: Option<usize>, fence: u64) -> Holds {
        match self.held.get(&what) {
            Some(held) if held.fence == fence && !held.is_over && self.latest <= held.until => {
                Err(format!("whoever has {what:?} is told that it has not"))
            }
            _ => Ok(()),
        }
    }

    fn over(&mut self, what: Option<usize>) {
        if let Some(held) = self.held.get_mut(&what) {
            held.is_over = true;
        }
    }

    pub(super) fn taken(&mut self, task: usize, before: &TaskRow, fence: u64, until: Timestamp) -> Holds {
        self.handed_out(Some(task), fence, until)?;
        self.attempt(task, before.phase, before.cause())
    }

    fn attempt(&mut self, task: usize, phase: u32, cause: &str) -> Holds {
        let attempts = self.attempts.entry((task, phase, cause.to_owned())).or_default();
        *attempts += 1;
        match *attempts <= ATTEMPTS {
            true => Ok(()),
            false => Err(format!("t{task} is attempted {attempts} times for {cause} in phase {phase}")),
        }
    }

    pub(super) fn granted(&mut self, task: usize, row: &TaskRow) {
        self.attempts.remove(&(task, row.phase, row.cause().to_owned()));
    }

    /// Whether what it depends on is done.
    pub(super) fn fits(&self, task: usize, tasks: &Tasks) -> Holds {
        match tasks.depends_on(task).iter().find(|on| !self.verified.contains(on)) {
            None => Ok(()),
            Some(on) => Err(format!("t{task} is taken before t{on} is verified")),
        }
    }

    pub(super) fn moved(
        &mut self,
        task: usize,
        fence: u64,
        now: Timestamp,
        to: &TaskTo,
        worker: &str,
        state: &str,
    ) -> Holds {
        self.used(Some(task), fence, now)?;
        match to {
            TaskTo::Passed(fact) if fact.produced_by == worker => {
                return Err(format!("t{task} passed because its worker says so"));
            }
            TaskTo::Passed(_) if state == "verified" && !self.verified.insert(task) => {
                return Err(format!("t{task} is verified twice"));
            }
            // The next phase is attempted at once.
            TaskTo::Passed(_) if state == "running" => self.attempt(task, 1, "first")?,
            _ => {}
        }
        if !["running", "validating"].contains(&state) {
            self.over(Some(task));
        }
        Ok(())
    }

    pub(super) fn renewed(
        &mut self,
        what: Option<usize>,
        fence: u64,
        now: Timestamp,
        until: Timestamp,
    ) -> Holds {
        self.used(what, fence, now)?;
        self.held.insert(what, Held { fence, until, is_over: false });
        Ok(())
    }

    pub(super) fn replanned(&mut self, changed: &BTreeSet<usize>) {
        for task in changed {
            self.verified.remove(task);
            self.over(Some(*task));
        }
    }

    pub(super) fn controlled(&mut self, fence: u64, until: Timestamp) -> Holds {
        self.handed_out(None, fence, until)
    }

    pub(super) fn controls(&self, fence: u64, now: Timestamp) -> Holds {
        self.used(None, fence, now)
    }

    pub(super) fn given_up(&mut self, fence: u64, now: Timestamp) -> Holds {
        self.used(None, fence, now)?;
        self.over(None);
        Ok(())
    }
}
