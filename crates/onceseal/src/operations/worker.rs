//! A worker: finds what is due, and carries out so much of it at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::action::outbox_key;
use onceseal_core::id::ActionId;
use onceseal_core::time::Timestamp;
use onceseal_store::read::Page;
use tokio::task::JoinSet;

use super::carrying::carry_out;
use super::{Operations, Tool};
use crate::error::Error;

/// Operations that are looked for at once.
const PAGE: usize = 512;
/// How long an operation that could not be looked at is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// A worker of a program's tools.
///
/// Any number of workers may run, in any number of processes: each operation is
/// carried out by one of them.
#[derive(Clone)]
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    operations: Operations,
    at_once: usize,
    look_every: Duration,
    drain_for: Duration,
    tell: Tell,
}

/// Whom a worker tells what it could not do.
type Tell = Arc<dyn Fn(ActionId, &Error) + Send + Sync>;

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Operations that could not be looked at or whose outcome could not be
    /// recorded: they are looked at again, and told apart by
    /// [`Worker::tell`].
    pub failed: usize,
    /// Operations that it was still carrying out when its time was over: their
    /// outcome is recorded by their lease's end.
    pub left: usize,
}

impl Worker {
    pub(super) fn new(operations: Operations) -> Worker {
        let (look_every, drain_for) = (Duration::from_millis(500), Duration::from_secs(30));
        Worker { operations, at_once: 64, look_every, drain_for, tell: Arc::new(|_, _| {}) }
    }

    /// Carries so many operations out at once: 64 unless said, 1 at least.
    pub fn at_once(mut self, at_once: usize) -> Worker {
        self.at_once = at_once.max(1);
        self
    }

    /// Looks so often for what other processes have dispatched: every 500 ms
    /// unless said.
    pub fn look_every(mut self, pause: Duration) -> Worker {
        self.look_every = pause;
        self
    }

    /// Waits so long at the end for what is under way: 30 s unless said.
    pub fn drain_for(mut self, time: Duration) -> Worker {
        self.drain_for = time;
        self
    }

    /// Tells of each operation that could not be looked at, or whose outcome
    /// could not be recorded.
    pub fn tell(mut self, tell: impl Fn(ActionId, &Error) + Send + Sync + 'static) -> Worker {
        self.tell = Arc::new(tell);
        self
    }

    /// Works until `stop` is there, then claims nothing more and waits for what
    /// is under way.
    ///
    /// # Errors
    /// The store was closed, or can no longer be read.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Drained, Error> {
        self.work(stop, false).await
    }

    /// Works until nothing is due or under way, or as [`Worker::run`] until `stop`.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_dry(self, stop: impl Future<Output = ()>) -> Result<Drained, Error> {
        self.work(stop, true).await
    }

    async fn work(&self, stop: impl Future<Output = ()>, until_dry: bool) -> Result<Drained, Error> {
        let mut stop = pin!(stop);
        let mut shift = Shift::new(self);
        let mut running = JoinSet::new();
        let control = self.operations.control();
        loop {
            if running.len() < self.at_once && shift.ahead.is_empty() {
                shift.look().await?;
            }
            while running.len() < self.at_once
                && let Some((tool, action)) = shift.ahead.pop_front()
            {
                let operations = self.operations.clone();
                running.spawn(async move { (action, carry_out(&operations, &tool, action).await) });
            }
            if until_dry && running.is_empty() {
                break;
            }
            let room = running.len() < self.at_once;
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(done) = running.join_next(), if !running.is_empty() => {
                    shift.done(done);
                    while let Some(done) = running.try_join_next() {
                        shift.done(done);
                    }
                }
                () = control.inner.outbox.notified(), if room => {}
                () = tokio::time::sleep(self.look_every), if room => {}
            }
        }
        let until = tokio::time::Instant::now() + self.drain_for;
        while let Ok(Some(done)) = tokio::time::timeout_at(until, running.join_next()).await {
            shift.done(done);
        }
        Ok(Drained { failed: shift.failed, left: running.len() })
    }
}

/// What a running worker knows of what is to be done.
struct Shift<'a> {
    worker: &'a Worker,
    /// Found, and not begun.
    ahead: VecDeque<(Tool, ActionId)>,
    /// Found or begun.
    busy: BTreeSet<ActionId>,
    /// Could not be looked at, and since when.
    poison: BTreeMap<ActionId, Instant>,
    /// Whose turn it is to be first.
    turn: usize,
    failed: usize,
}

impl Shift<'_> {
    fn new(worker: &Worker) -> Shift<'_> {
        let (ahead, busy, poison) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        Shift { worker, ahead, busy, poison, turn: 0, failed: 0 }
    }

    /// Looks for what is due: the oldest of each contract, taken in turn.
    async fn look(&mut self) -> Result<(), Error> {
        self.poison.retain(|_, since| since.elapsed() < LEFT_ALONE);
        let operations = &self.worker.operations;
        let known = self.busy.len() + self.poison.len();
        let tools: Vec<Tool> = operations.tools.values().cloned().collect();
        let contracts: Vec<_> = tools.iter().map(Tool::digest).collect();
        let limit = PAGE / tools.len().max(1) + known + 1;
        let control = operations.control();
        let now = control.store().now();
        let found = control
            .aside(move |control| {
                let page = |contract| {
                    let (from, to) = (outbox_key(contract, Timestamp::MIN), outbox_key(contract, now));
                    let (index, after, newest_first) = (from.index, None, false);
                    Page { index, from: from.bytes, to: to.bytes, after, newest_first, limit }
                };
                let found = control.store().read(|snapshot| {
                    contracts
                        .iter()
                        .map(|contract| snapshot.keys(&page(*contract)))
                        .collect::<Result<Vec<_>, _>>()
                });
                Ok(found?)
            })
            .await?;
        self.turn = self.turn.wrapping_add(1);
        let mut lines: Vec<_> = tools
            .into_iter()
            .zip(found)
            .map(|(tool, hits)| {
                let new = |id: &ActionId| !self.busy.contains(id) && !self.poison.contains_key(id);
                let ids: VecDeque<_> =
                    hits.into_iter().map(|hit| ActionId(hit.stream.name)).filter(new).collect();
                (tool, ids)
            })
            .collect();
        let first = self.turn.checked_rem(lines.len()).unwrap_or(0);
        lines.rotate_left(first);
        while lines.iter().any(|(_, ids)| !ids.is_empty()) {
            for (tool, ids) in &mut lines {
                if let Some(id) = ids.pop_front() {
                    self.busy.insert(id);
                    self.ahead.push_back((tool.clone(), id));
                }
            }
        }
        Ok(())
    }

    /// An operation that could not be looked at is left alone for a while, and
    /// delays no other.
    fn done(&mut self, done: Result<(ActionId, Result<(), Error>), tokio::task::JoinError>) {
        match done {
            Ok((action, result)) => {
                self.busy.remove(&action);
                if let Err(error) = result {
                    (self.worker.tell)(action, &error);
                    self.failed += 1;
                    self.poison.insert(action, Instant::now());
                }
            }
            // Its executor panicked: recorded as unknown. Its id is not told, so
            // everything is looked at anew.
            Err(_) => {
                self.busy = self.ahead.iter().map(|(_, action)| *action).collect();
            }
        }
    }
}
