//! The second opinion.

use std::collections::BTreeMap;

/// A task as it is planned; others by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) depends_on: Vec<usize>,
    pub(crate) conflicts: Vec<usize>,
    pub(crate) resources: Vec<String>,
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
    pub(crate) phases: u8,
    pub(crate) attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    Pending,
    /// Since this moment; those that were interrupted go first.
    InLine {
        interrupted: bool,
        since: u64,
    },
    AtWork,
    Stopped {
        may_return: bool,
    },
    Done,
}

pub(crate) struct Naive {
    pub(crate) tasks: Vec<Task>,
    pub(crate) capacity: usize,
    pub(crate) stands: Vec<Stands>,
    pub(crate) phase: Vec<u8>,
    pub(crate) cause: Vec<String>,
    spent: BTreeMap<(usize, u8, String), u32>,
}

fn overlap(one: &str, other: &str) -> bool {
    let (one, other) = (format!("{one}/"), format!("{other}/"));
    one.starts_with(&other) || other.starts_with(&one)
}

impl Naive {
    pub(crate) fn new(tasks: &[Task], capacity: u32, now: u64) -> Naive {
        let begin = |task: &Task| match task.depends_on.is_empty() {
            true => Stands::InLine { interrupted: false, since: now },
            false => Stands::Pending,
        };
        Naive {
            stands: tasks.iter().map(begin).collect(),
            phase: vec![0; tasks.len()],
            cause: vec!["first".to_owned(); tasks.len()],
            tasks: tasks.to_vec(),
            capacity: capacity as usize,
            spent: BTreeMap::new(),
        }
    }

    fn clash(&self, one: usize, other: usize) -> bool {
        let (a, b) = (&self.tasks[one], &self.tasks[other]);
        let met = |left: &[String], right: &[String]| {
            left.iter().any(|left| right.iter().any(|right| overlap(left, right)))
        };
        a.conflicts.contains(&other)
            || b.conflicts.contains(&one)
            || a.resources.iter().any(|it| b.resources.contains(it))
            || met(&a.writes, &b.writes)
            || met(&a.writes, &b.reads)
            || met(&a.reads, &b.writes)
    }

    pub(crate) fn attempts_left(&self, task: usize) -> u32 {
        let key = (task, self.phase[task], self.cause[task].clone());
        self.tasks[task].attempts.saturating_sub(self.spent.get(&key).copied().unwrap_or(0))
    }

    fn spend(&mut self, task: usize) {
        *self.spent.entry((task, self.phase[task], self.cause[task].clone())).or_default() += 1;
    }

    pub(crate) fn at_work(&self) -> Vec<usize> {
        (0..self.tasks.len()).filter(|at| self.stands[*at] == Stands::AtWork).collect()
    }

    pub(crate) fn next(&self) -> Option<usize> {
        let mut before = self.at_work();
        if before.len() >= self.capacity {
            return None;
        }
        let mut line: Vec<(bool, u64, usize)> = Vec::new();
        for (at, stands) in self.stands.iter().enumerate() {
            if let Stands::InLine { interrupted, since } = *stands {
                line.push((!interrupted, since, at));
            }
        }
        line.sort_unstable();
        for (_, _, task) in line {
            if self.attempts_left(task) == 0 {
                continue;
            }
            if before.iter().all(|other| !self.clash(task, *other)) {
                return Some(task);
            }
            before.push(task);
        }
        None
    }

    pub(crate) fn take(&mut self, task: usize) {
        self.stands[task] = Stands::AtWork;
        self.spend(task);
    }

    /// Its phase passed: `true` if it is done.
    pub(crate) fn pass(&mut self, task: usize, now: u64) -> bool {
        self.cause[task] = "first".to_owned();
        if self.phase[task] + 1 < self.tasks[task].phases {
            self.phase[task] += 1;
            self.spend(task);
            return false;
        }
        self.stands[task] = Stands::Done;
        for other in 0..self.tasks.len() {
            let done = |on: &usize| self.stands[*on] == Stands::Done;
            if self.stands[other] == Stands::Pending && self.tasks[other].depends_on.iter().all(done) {
                self.stands[other] = Stands::InLine { interrupted: false, since: now };
            }
        }
        true
    }

    pub(crate) fn stop(&mut self, task: usize, code: &str, may_return: bool) {
        self.cause[task] = code.to_owned();
        self.stands[task] = Stands::Stopped { may_return };
    }

    pub(crate) fn interrupt(&mut self, task: usize, now: u64) {
        self.stop(task, "operation-interrupted", true);
        if self.attempts_left(task) > 0 {
            self.stands[task] = Stands::InLine { interrupted: true, since: now };
        }
    }

    /// Whether it may get in line again.
    pub(crate) fn queue(&mut self, task: usize, now: u64) -> bool {
        let may = self.stands[task] == Stands::Stopped { may_return: true } && self.attempts_left(task) > 0;
        if may {
            self.stands[task] = Stands::InLine { interrupted: false, since: now };
        }
        may
    }

    pub(crate) fn grant(&mut self, task: usize) {
        if self.attempts_left(task) == 0 {
            self.spent.remove(&(task, self.phase[task], self.cause[task].clone()));
        }
    }
}
