//! Runs as the design tells of them, as plainly as it can be said: no streams, no
//! events, no hashes, everything looked at every time.

#[path = "naive/handoffs.rs"]
pub(crate) mod handoffs;

use std::collections::BTreeMap;

use onceseal_core::code::Code;
use serde_json::Value;

use super::steps::{Bound, Taking};
use handoffs::Handoff;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Say {
    Run { replayed: bool, answer: Answer, sequence: u64, state: String, code: Option<String> },
    Lease { run: usize, fence: u64, holder: u8, shared: bool, until: i64 },
    Done(bool),
    No(Code),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) joined: bool,
    pub(crate) run: usize,
    pub(crate) sequence: u64,
    pub(crate) state: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) root: u8,
    pub(crate) kind: usize,
    pub(crate) key: String,
    /// What it was found under before it had a name.
    pub(crate) begun: Option<String>,
    pub(crate) state: String,
    pub(crate) code: Option<String>,
    pub(crate) sequence: u64,
    pub(crate) previous: Option<usize>,
    /// What is bound, by gate and revision.
    pub(crate) bound: BTreeMap<(u8, u64), Bound>,
}

impl Run {
    fn is_under(&self, key: &str) -> bool {
        self.key == key || self.begun.as_deref() == Some(key)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) fence: u64,
    pub(crate) holder: u8,
    pub(crate) shared: bool,
    /// Its last second.
    pub(crate) until: i64,
}

/// What is held of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) fence: u64,
    pub(crate) held: Vec<Held>,
    pub(crate) outcomes: BTreeMap<u64, u8>,
}

/// One thing that is asked under a request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Start { key: String },
    Name { change: u8 },
    Move { to: String, code: Option<String> },
    Command { name: String },
    Bind { all: Vec<Bound> },
}

/// A wish, as somebody asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) wish: Wish,
    pub(crate) agent: u8,
}

pub(crate) const CHANGES: [&str; 4] = ["one", "two", "three", "No Name"];
pub(crate) const GATES: [&str; 4] = ["gate-a", "gate-b", "gate-c", "free"];

pub(crate) struct Naive {
    definitions: Vec<Value>,
    pub(crate) now: i64,
    pub(crate) runs: Vec<Run>,
    pub(crate) leases: BTreeMap<usize, Lease>,
    /// By receipt.
    pub(crate) handoffs: BTreeMap<u8, Handoff>,
    /// Those that ended, in this order.
    ended: Vec<usize>,
    answered: BTreeMap<(String, u8), (Asked, Answer)>,
}

type Said = Result<Say, Code>;

impl Naive {
    pub(crate) fn new(texts: &[String]) -> Naive {
        let definitions = texts.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
        Naive {
            definitions,
            now: 0,
            runs: Vec::new(),
            leases: BTreeMap::new(),
            handoffs: BTreeMap::new(),
            ended: Vec::new(),
            answered: BTreeMap::new(),
        }
    }

    fn state<'a>(&'a self, kind: usize, name: &str) -> &'a Value {
        &self.definitions[kind]["states"][name]
    }

    pub(crate) fn is_over(&self, run: &Run) -> bool {
        self.state(run.kind, &run.state)["terminal"] == true
    }

    fn follows(&self, run: &Run, to: &str) -> bool {
        let to_list = self.state(run.kind, &run.state)["to"].as_array();
        to_list.is_some_and(|list| list.iter().any(|name| name == to))
    }

    fn living(&self, root: u8, kind: usize, key: &str) -> Option<usize> {
        self.runs
            .iter()
            .position(|run| run.root == root && run.kind == kind && run.is_under(key) && !self.is_over(run))
    }

    /// The newest that ended under this key.
    fn last(&self, root: u8, kind: usize, key: &str) -> Option<usize> {
        let is_it = |at: &&usize| {
            let run = &self.runs[**at];
            run.root == root && run.kind == kind && run.key == key
        };
        self.ended.iter().rfind(is_it).copied()
    }

    fn says(&self, replayed: bool, answer: Answer) -> Say {
        let Run { sequence, state, code, .. } = self.runs[answer.run].clone();
        Say::Run { replayed, answer, sequence, state, code }
    }

    /// Answers a request as the first time, or lets it happen.
    pub(crate) fn ask(
        &mut self,
        scope: String,
        request: u8,
        asked: Asked,
        happen: impl FnOnce(&mut Naive) -> Result<(usize, bool), Code>,
    ) -> Said {
        if request == 60 {
            return Err(Code::RequestIdInvalid);
        }
        if let Some((first, answer)) = self.answered.get(&(scope.clone(), request)) {
            return match *first == asked {
                true => Ok(self.says(true, answer.clone())),
                false => Err(Code::RequestIdConflict),
            };
        }
        let (run, joined) = happen(self)?;
        let Run { sequence, state, .. } = self.runs[run].clone();
        let answer = Answer { joined, run, sequence, state };
        self.answered.insert((scope, request), (asked, answer.clone()));
        Ok(self.says(false, answer))
    }

    pub(crate) fn start(
        &mut self,
        root: u8,
        kind: usize,
        change: Result<u8, u8>,
        key: &str,
    ) -> Result<(usize, bool), Code> {
        if change == Ok(3) {
            return Err(Code::ChangeInvalid);
        }
        if change.is_err() && self.definitions[kind]["provisional"] != true {
            return Err(Code::ProvisionalForbidden);
        }
        if let Some(living) = self.living(root, kind, key) {
            self.sweep(living);
            if !self.is_over(&self.runs[living]) {
                return Ok((living, true));
            }
        }
        let state = self.definitions[kind]["initial"].as_str().expect("a state").to_owned();
        let (key, previous) = (key.to_owned(), self.last(root, kind, key));
        let bound = BTreeMap::new();
        self.runs.push(Run { root, kind, key, begun: None, state, code: None, sequence: 1, previous, bound });
        Ok((self.runs.len() - 1, false))
    }

    pub(crate) fn name(&mut self, run: usize, change: u8) -> Result<(usize, bool), Code> {
        let Run { root, kind, key, .. } = self.runs.get(run).ok_or(Code::RunUnknown)?.clone();
        self.sweep(run);
        if self.is_over(&self.runs[run]) {
            return Err(Code::RunEnded);
        }
        if !key.starts_with("provisional:") {
            return Err(Code::ChangeBound);
        }
        if change == 3 {
            return Err(Code::ChangeInvalid);
        }
        let key = format!("change:{}", CHANGES[usize::from(change)]);
        if self.living(root, kind, &key).is_some() {
            return Err(Code::ChangeTaken);
        }
        let previous = self.last(root, kind, &key);
        let run_row = &mut self.runs[run];
        run_row.begun = Some(std::mem::replace(&mut run_row.key, key));
        run_row.previous = previous;
        run_row.sequence += 1;
        Ok((run, false))
    }

    fn go(&mut self, run: usize, to: String, code: Option<String>) {
        let row = &mut self.runs[run];
        (row.state, row.code) = (to, code);
        row.sequence += 1;
        if self.is_over(&self.runs[run]) {
            self.ended.push(run);
        }
    }

    /// The names of the states of a kind.
    pub(crate) fn states(&self, kind: usize) -> Vec<String> {
        self.definitions[kind]["states"].as_object().expect("states").keys().cloned().collect()
    }

    pub(crate) fn step(
        &mut self,
        run: usize,
        wish: &Wish,
        under: Option<(usize, u64)>,
    ) -> Result<(usize, bool), Code> {
        if run >= self.runs.len() {
            return Err(Code::RunUnknown);
        }
        let code = match wish {
            Wish::Move { code, .. } => code.clone(),
            _ => None,
        };
        if code.as_deref() == Some("") {
            return Err(Code::OutOfBounds);
        }
        self.may(run, under)?;
        self.sweep(run);
        let row = &self.runs[run].clone();
        if self.is_over(row) {
            return Err(Code::RunEnded);
        }
        let to = match wish {
            Wish::Command { name } => match self.state(row.kind, &row.state)["commands"].get(name) {
                None => return Err(Code::CommandForbidden),
                Some(to) => to.as_str().ok_or(Code::CommandElsewhere)?.to_owned(),
            },
            Wish::Move { to, .. } => to.clone(),
            other => panic!("{other:?} is no step"),
        };
        if self.state(row.kind, &to).is_null() {
            return Err(Code::StateUnknown);
        }
        if !self.follows(row, &to) {
            return Err(Code::TransitionForbidden);
        }
        self.go(run, to, code);
        if let (true, Some(lease)) = (self.is_over(&self.runs[run]), self.leases.get_mut(&run)) {
            lease.held.retain(|held| Some((run, held.fence)) == under);
        }
        Ok((run, false))
    }

    pub(crate) fn bind(
        &mut self,
        run: usize,
        all: &[Bound],
        under: Option<(usize, u64)>,
    ) -> Result<(usize, bool), Code> {
        if all.is_empty() {
            return Err(Code::DeliveriesEmpty);
        }
        let row = &self.runs.get(run).ok_or(Code::RunUnknown)?.clone();
        if self.is_over(row) {
            return Err(Code::RunEnded);
        }
        self.may(run, under)?;
        self.sweep(run);
        if self.is_over(&self.runs[run]) {
            return Err(Code::RunEnded);
        }
        let gates = &self.definitions[row.kind]["gates"];
        let (mut bound, mut new) = (row.bound.clone(), 0);
        for one in all {
            let gate = &gates[GATES[usize::from(one.gate)]];
            match () {
                () if gate.is_null() => return Err(Code::GateUnknown),
                () if one.revision == 0 => return Err(Code::OutOfBounds),
                () if gate["proof"] == "required" => return Err(Code::ProofRequired),
                () => {}
            }
            match bound.get(&(one.gate, one.revision)) {
                Some(same) if same == one => continue,
                Some(_) => return Err(Code::DeliveryConflict),
                None => {}
            }
            if bound.keys().any(|(gate, revision)| *gate == one.gate && *revision > one.revision) {
                return Err(Code::DeliveryOld);
            }
            bound.insert((one.gate, one.revision), *one);
            new += 1;
        }
        self.runs[run].bound = bound;
        self.runs[run].sequence += new;
        Ok((run, false))
    }

    fn live(&self, run: usize) -> Vec<Held> {
        let held = self.leases.get(&run).map(|lease| lease.held.clone()).unwrap_or_default();
        held.into_iter().filter(|held| self.now <= held.until).collect()
    }

    /// Whether this lease is live; if not, whoever is gone is let go.
    fn holds(&mut self, of: usize, fence: u64) -> bool {
        let holds = self.live(of).iter().any(|held| held.fence == fence);
        if !holds {
            self.sweep(of);
        }
        holds
    }

    /// Whether something may be done to a run under a lease on another, or on it.
    fn may(&mut self, run: usize, under: Option<(usize, u64)>) -> Result<(), Code> {
        match under {
            Some((of, fence)) if of != run || !self.holds(of, fence) => Err(Code::LeaseFenced),
            _ => Ok(()),
        }
    }

    /// Whoever is gone is let go; the run is interrupted if nobody is left.
    pub(crate) fn sweep(&mut self, run: usize) -> bool {
        let live = self.live(run);
        let Some(lease) = self.leases.get_mut(&run) else { return false };
        let some = lease.held.len() > live.len();
        let nobody = live.is_empty();
        lease.held = live;
        if some && nobody && !self.is_over(&self.runs[run]) {
            let Run { kind, state, .. } = &self.runs[run];
            let to = self.state(*kind, state)["interrupted"].as_str().expect("a state").to_owned();
            self.go(run, to, Some("operation-interrupted".to_owned()));
        }
        some
    }

    /// Whether it has ended, or ends now that whoever worked on it is gone.
    pub(crate) fn ends(&mut self, run: usize) -> bool {
        let Run { kind, state, .. } = &self.runs[run];
        let held = self.leases.get(&run).is_some_and(|lease| !lease.held.is_empty());
        let to = self.state(*kind, state)["interrupted"].as_str();
        let last = to.is_some_and(|to| self.state(*kind, to)["terminal"] == true);
        if held && self.live(run).is_empty() && last {
            self.sweep(run);
        }
        self.is_over(&self.runs[run])
    }

    pub(crate) fn take(&mut self, run: usize, taking: Taking) -> Said {
        let Taking { holder, seconds, shared, preempt } = taking;
        match () {
            () if seconds == 0 => return Err(Code::OutOfBounds),
            () if preempt == Some(false) => return Err(Code::NotOperator),
            () if run >= self.runs.len() => return Err(Code::RunUnknown),
            () if self.ends(run) => return Err(Code::RunEnded),
            () => {}
        }
        let live = self.live(run);
        let says = |held: &Held| {
            let Held { fence, holder, shared, until } = *held;
            Say::Lease { run, fence, holder, shared, until }
        };
        if preempt.is_none() {
            // What it shares is less than to have it alone.
            let is_own = |held: &&Held| held.holder == holder && (shared || !held.shared);
            if let Some(own) = live.iter().find(is_own) {
                return Ok(says(own));
            }
            if live.iter().any(|held| !(held.shared && shared)) {
                return Err(Code::LeaseHeld);
            }
        }
        self.sweep(run);
        let until = self.now + i64::from(seconds);
        let lease = self.leases.entry(run).or_default();
        if preempt.is_some() {
            lease.held.clear();
        }
        lease.fence += 1;
        lease.held.push(Held { fence: lease.fence, holder, shared, until });
        Ok(says(&lease.held[lease.held.len() - 1]))
    }

    pub(crate) fn renew(&mut self, run: usize, fence: u64, seconds: u32) -> Said {
        if seconds == 0 {
            return Err(Code::OutOfBounds);
        }
        if !self.holds(run, fence) {
            return Err(Code::LeaseFenced);
        }
        let until = self.now + i64::from(seconds);
        let lease = self.leases.get_mut(&run).expect("it is held");
        let held = lease.held.iter_mut().find(|held| held.fence == fence).expect("it is held");
        held.until = until;
        Ok(Say::Lease { run, fence, holder: held.holder, shared: held.shared, until })
    }

    pub(crate) fn commit(&mut self, run: usize, fence: u64, outcome: u8) -> Said {
        if outcome == 2 {
            return Err(Code::OutcomeInvalid);
        }
        if !self.holds(run, fence) {
            return match self.leases.get(&run).and_then(|lease| lease.outcomes.get(&fence)) {
                Some(kept) if *kept == outcome => Ok(Say::Done(false)),
                Some(_) => Err(Code::OutcomeFinal),
                None => Err(Code::LeaseFenced),
            };
        }
        let lease = self.leases.get_mut(&run).expect("it is held");
        lease.held.retain(|held| held.fence != fence);
        lease.outcomes.insert(fence, outcome);
        Ok(Say::Done(true))
    }

    pub(crate) fn give_up(&mut self, run: usize, fence: u64) -> Said {
        if !self.holds(run, fence) {
            return Err(Code::LeaseFenced);
        }
        let lease = self.leases.get_mut(&run).expect("it is held");
        lease.held.retain(|held| held.fence != fence);
        Ok(Say::Done(true))
    }
}
