//! A worker: finds what is due, and carries out so much of it at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use onceseal_core::action::outbox_key;
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::time::Timestamp;
use onceseal_store::read::Page;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::carried::Carried;
use super::carrying::carry_out;
use super::running;
use super::{Operations, Tool};
use crate::control::Control;
use crate::error::Error;

/// How often so many as are carried out at once are looked for at once: what
/// comes later waits for these.
const ROUNDS: usize = 4;
/// Operations that are looked for at once, at least.
const PAGE: usize = 64;
/// How long an operation that could not be looked at is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// The longest pause before a store is read again that could not be.
const MISSED_MOST: Duration = Duration::from_secs(5);

/// A worker of a program's tools.
///
/// Any number of workers may run, in any number of processes: each operation is
/// carried out by one of them.
#[derive(Clone)]
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    operations: Arc<RwLock<Operations>>,
    at_once: usize,
    look_every: Duration,
    drain_for: Duration,
    tell: Tell,
    tell_each: Option<TellEach>,
    tell_store: TellStore,
    /// Nothing more is waited for.
    enough: Arc<Notify>,
}

/// Whom a worker tells what it could not do.
type Tell = Arc<dyn Fn(ActionId, &Error) + Send + Sync>;
/// Whom a worker tells what became of what it did.
type TellEach = Arc<dyn Fn(&Carried) + Send + Sync>;

/// Whom a worker tells that the store cannot be read, and that it can be again.
type TellStore = Arc<dyn Fn(Option<&Error>) + Send + Sync>;

/// How long a worker works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until it is told to stop.
    Stopped,
    /// Until nothing is due.
    Dry,
    /// Until nothing waits.
    Empty,
}

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
        let (operations, enough) = (Arc::new(RwLock::new(operations)), Arc::new(Notify::new()));
        let (tell, tell_store): (Tell, TellStore) = (Arc::new(|_, _| {}), Arc::new(|_| {}));
        Worker { operations, at_once: 64, look_every, drain_for, tell, tell_each: None, tell_store, enough }
    }

    /// Carries so many operations out at once: 64 unless said, 1 at least.
    pub fn at_once(mut self, at_once: usize) -> Worker {
        self.at_once = at_once.max(1);
        self
    }

    /// Looks so often for what other processes have dispatched: every 500 ms
    /// unless said, and sooner where a server tells of commits.
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

    /// Tells of each operation that it has ended, put off or parked.
    pub fn tell_each(mut self, tell: impl Fn(&Carried) + Send + Sync + 'static) -> Worker {
        self.tell_each = Some(Arc::new(tell));
        self
    }

    /// Tells once why the store cannot be read, when that begins, and of nothing once
    /// it can be again. Meanwhile [`Worker::run`] asks again and again.
    pub fn tell_store(mut self, tell: impl Fn(Option<&Error>) + Send + Sync + 'static) -> Worker {
        self.tell_store = Arc::new(tell);
        self
    }

    /// Has this worker and its clones work on other tools from their next look
    /// on. What they have found they carry out as they found it.
    pub fn replace(&self, operations: Operations) {
        let control = operations.control().clone();
        *self.operations.write().unwrap_or_else(PoisonError::into_inner) = operations;
        control.inner.outbox.notify_one();
    }

    /// Has this worker, or that of its clones which is waiting for what is under
    /// way, wait no more.
    pub fn leave(&self) {
        self.enough.notify_one();
    }

    /// Works until `stop` is there, then claims nothing more and waits for what
    /// is under way. A store that cannot be read for now is asked again, after pauses
    /// of up to five seconds.
    ///
    /// # Errors
    /// The store was closed, or will not be read again by itself.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Drained, Error> {
        self.work(stop, Until::Stopped).await
    }

    /// Works until nothing is due or under way, or as [`Worker::run`] until `stop`.
    ///
    /// # Errors
    /// As [`Worker::run`], and that the store cannot be read for now.
    pub async fn run_dry(self, stop: impl Future<Output = ()>) -> Result<Drained, Error> {
        self.work(stop, Until::Dry).await
    }

    /// Works until nothing waits under its contracts, be it due or later, or as
    /// [`Worker::run`] until `stop`. What is parked or could not be looked at
    /// does not count.
    ///
    /// # Errors
    /// As [`Worker::run_dry`].
    pub async fn run_empty(self, stop: impl Future<Output = ()>) -> Result<Drained, Error> {
        self.work(stop, Until::Empty).await
    }

    async fn work(&self, stop: impl Future<Output = ()>, until: Until) -> Result<Drained, Error> {
        let mut stop = pin!(stop);
        let mut shift = Shift::new(self);
        let mut running = JoinSet::new();
        let control = &self.operations().control;
        let tidy = |control: &Control| {
            // Elsewhere other programs may keep theirs.
            if let Some(directory) = &control.inner.directory {
                running::tidy(directory);
            }
            Ok(())
        };
        control.aside(tidy).await?;
        let hints = control.store().hints();
        let mut heard = 0;
        loop {
            if running.len() < self.at_once && shift.ahead.is_empty() {
                heard = hints.count();
                match shift.look().await {
                    Err(Error::Store(error)) if until == Until::Stopped && error.may_pass() => {
                        shift.missed(error.into());
                    }
                    looked => {
                        looked?;
                        shift.seen();
                    }
                }
            }
            while running.len() < self.at_once
                && let Some((tool, action)) = shift.ahead.pop_front()
            {
                let (operations, tell) = (self.operations(), self.tell_each.clone());
                running.spawn(async move { (action, carried(&operations, &tool, action, tell).await) });
            }
            if running.is_empty()
                && match until {
                    Until::Stopped => false,
                    Until::Dry => true,
                    Until::Empty => !shift.waits().await?,
                }
            {
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
                () = hints.beyond(heard), if room => {}
                () = tokio::time::sleep(shift.pause), if room => {}
            }
        }
        let until = tokio::time::Instant::now() + self.drain_for;
        while !running.is_empty() {
            tokio::select! {
                biased;
                Some(done) = running.join_next() => shift.done(done),
                () = self.enough.notified() => break,
                () = tokio::time::sleep_until(until) => break,
            }
        }
        Ok(Drained { failed: shift.failed, left: running.len() })
    }

    /// What it works on now.
    fn operations(&self) -> Operations {
        self.operations.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Carries an operation out, and tells what became of it.
async fn carried(
    operations: &Operations,
    tool: &Tool,
    action: ActionId,
    tell: Option<TellEach>,
) -> Result<(), Error> {
    let control = operations.control();
    let did = carry_out(operations, tool, action).await?;
    if let (true, Some(tell)) = (did, tell)
        && let Some(carried) = control.aside(move |control| Carried::now(control, action)).await?
    {
        tell(&carried);
    }
    Ok(())
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
    /// Before the next look.
    pause: Duration,
    /// Whether the store could not be read the last time.
    is_missed: bool,
}

impl Shift<'_> {
    fn new(worker: &Worker) -> Shift<'_> {
        let (ahead, busy, poison) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        let pause = worker.look_every;
        Shift { worker, ahead, busy, poison, turn: 0, failed: 0, pause, is_missed: false }
    }

    /// The store could not be read: it is left alone for longer each time.
    fn missed(&mut self, error: Error) {
        if !std::mem::replace(&mut self.is_missed, true) {
            (self.worker.tell_store)(Some(&error));
        }
        self.pause = (self.pause * 2).min(MISSED_MOST.max(self.worker.look_every));
    }

    /// The store could be read.
    fn seen(&mut self) {
        if std::mem::replace(&mut self.is_missed, false) {
            (self.worker.tell_store)(None);
        }
        self.pause = self.worker.look_every;
    }

    /// Looks for what is due: the oldest of each contract, taken in turn.
    async fn look(&mut self) -> Result<(), Error> {
        self.poison.retain(|_, since| since.elapsed() < LEFT_ALONE);
        let operations = self.worker.operations();
        let (known, most) = (self.busy.len() + self.poison.len(), PAGE.max(ROUNDS * self.worker.at_once));
        let control = operations.control().clone();
        let now = control.store().now();
        let found: Vec<(Tool, Vec<ActionId>)> = control
            .aside(move |control| {
                let contracts = operations.contracts()?;
                let limit = most / contracts.len().max(1) + known + 1;
                let page = |contract: Hash| {
                    let (from, to) = (outbox_key(contract, Timestamp::MIN), outbox_key(contract, now));
                    let (index, after, newest_first) = (from.index, None, false);
                    Page { index, from: from.bytes, to: to.bytes, after, newest_first, limit }
                };
                let due = control.store().read_rows(|snapshot| {
                    let due = |contract: Hash| Ok((contract, snapshot.keys(&page(contract))?));
                    contracts.into_iter().map(due).collect::<Result<Vec<_>, _>>()
                })?;
                let mut found = Vec::new();
                for (contract, hits) in due.into_iter().filter(|(_, hits)| !hits.is_empty()) {
                    if let Some(tool) = operations.under(contract)? {
                        found.push((tool, hits.into_iter().map(|hit| ActionId(hit.stream.name)).collect()));
                    }
                }
                Ok(found)
            })
            .await?;
        self.turn = self.turn.wrapping_add(1);
        let new = |id: &ActionId| !self.busy.contains(id) && !self.poison.contains_key(id);
        let mut lines: Vec<(Tool, VecDeque<ActionId>)> =
            found.into_iter().map(|(tool, due)| (tool, due.into_iter().filter(new).collect())).collect();
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

    /// Whether anything waits that it has the contract of and can look at.
    async fn waits(&self) -> Result<bool, Error> {
        let (operations, poison) =
            (self.worker.operations(), self.poison.keys().copied().collect::<Vec<_>>());
        let control = operations.control().clone();
        control
            .aside(move |control| {
                for contract in operations.contracts()? {
                    if operations.under(contract)?.is_none() {
                        continue;
                    }
                    let (from, to) =
                        (outbox_key(contract, Timestamp::MIN), outbox_key(contract, Timestamp::MAX));
                    let (index, limit) = (from.index, poison.len() + 1);
                    let (after, newest_first) = (None, false);
                    let page = Page { index, from: from.bytes, to: to.bytes, after, newest_first, limit };
                    let found = control.store().read_rows(|snapshot| snapshot.keys(&page))?;
                    if found.iter().any(|hit| !poison.contains(&ActionId(hit.stream.name))) {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await
    }

    /// An operation that could not be looked at is left alone for a while, and
    /// delays no other.
    fn done(&mut self, done: Result<(ActionId, Result<(), Error>), tokio::task::JoinError>) {
        match done {
            Ok((action, result)) => {
                self.busy.remove(&action);
                if let Err(error) = result {
                    // What was found would meet the same: whether it passes is looked at.
                    if matches!(&error, Error::Store(error) if error.may_pass()) {
                        for (_, action) in self.ahead.drain(..) {
                            self.busy.remove(&action);
                        }
                    }
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
