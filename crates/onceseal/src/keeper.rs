//! A thread that keeps leases alive, settles what nobody else will, and moves
//! the mark.
//!
//! Leases are renewed from here and not from the executor's runtime, so that
//! an executor that blocks its thread does not lose its lease. Nothing that
//! fails here holds up anything else: each task has its own time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Renew, Settle};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;
use onceseal_store::mark::MarkFile;
use onceseal_store::{Store, StoreError, Ticket};

use crate::attempt::{again, dropped};
use crate::fault::{self, point};
use crate::seen::newest;
use crate::watch::Waiters;

/// The pauses before something that failed is tried again: the first and the
/// longest.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// A wait without anything to do; a change ends it.
const IDLE: Duration = Duration::from_secs(3_600);
/// The mark moves at most so often.
const MARK_EVERY: Duration = Duration::from_secs(1);

/// A lease that is kept.
struct Lease {
    holding: Holding,
    lease: Span,
    /// When it ends unless renewed.
    until: Instant,
    lost: Arc<AtomicBool>,
}

/// An outcome to record that nobody waits for.
struct Orphan {
    settle: Settle,
    /// From here on the lease's lapse is left to speak for it.
    until: Instant,
}

/// What there is to do.
enum Task {
    Renew(Lease),
    Settle(Orphan),
    /// An answer that may hand out an attempt.
    Answer(Ticket),
    Mark,
}

#[derive(Default)]
struct Work {
    /// Each with its time and the pause before it is tried again.
    tasks: BTreeMap<u64, (Instant, Duration, Task)>,
    due: BTreeSet<(Instant, u64)>,
    next: u64,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
    /// Whether the mark is going to move.
    marking: AtomicBool,
}

/// The thread's handle.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread works with.
struct Tools {
    store: Arc<Store>,
    mark: Option<Arc<MarkFile>>,
    waiters: Arc<Waiters>,
}

impl Keeper {
    /// No thread: for stores that take no commands.
    pub(crate) fn none() -> Keeper {
        Keeper { shared: Arc::default(), thread: Mutex::new(None) }
    }

    pub(crate) fn start(
        store: Arc<Store>,
        mark: Option<Arc<MarkFile>>,
        waiters: Arc<Waiters>,
    ) -> Result<Keeper, StoreError> {
        let shared = Arc::new(Shared::default());
        let (own, tools) = (shared.clone(), Tools { store, mark, waiters });
        let thread = std::thread::Builder::new()
            .name("onceseal-keeper".to_owned())
            .spawn(move || keep(&own, &tools))?;
        Ok(Keeper { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Renews this attempt's lease at each third of it until the guard is
    /// dropped, a renewal is refused, or the deadline has come. `asked` is
    /// before the lease was given.
    pub(crate) fn keep(&self, attempt: &Attempt, asked: Instant, lost: Arc<AtomicBool>) -> Kept<'_> {
        let until = asked + attempt.lease_until.since(attempt.taken_at).to_std();
        let lease = Lease { holding: attempt.into(), lease: attempt.lease, until, lost };
        let number = self.shared.add(asked + attempt.lease.to_std() / 3, Task::Renew(lease));
        Kept { keeper: self, number }
    }

    /// Records an outcome that nobody waits for, by `until` if it can.
    pub(crate) fn settle(&self, settle: Settle, until: Instant) {
        self.shared.add(Instant::now(), Task::Settle(Orphan { settle, until }));
    }

    /// Settles as not executed what this answer may hand out.
    pub(crate) fn adopt(&self, ticket: Ticket) {
        self.shared.add(Instant::now(), Task::Answer(ticket));
    }

    /// Something was recorded: the mark moves before long.
    pub(crate) fn recorded(&self) {
        if !self.shared.marking.swap(true, Ordering::AcqRel) {
            self.shared.add(Instant::now() + MARK_EVERY, Task::Mark);
        }
    }

    /// Stops after what is to be settled has been tried once more.
    pub(crate) fn stop(&self) {
        self.shared.work().stopped = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic there has nothing to tell here: leases lapse by themselves.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, at: Instant, task: Task) -> u64 {
        let mut work = self.work();
        let number = work.next;
        work.next += 1;
        work.put(number, at, PAUSES.0, task);
        let first = work.due.first() == Some(&(at, number));
        drop(work);
        if first {
            self.changed.notify_one();
        }
        number
    }
}

impl Work {
    fn put(&mut self, number: u64, at: Instant, pause: Duration, task: Task) {
        self.tasks.insert(number, (at, pause, task));
        self.due.insert((at, number));
    }

    fn take(&mut self, number: u64) -> Option<(Duration, Task)> {
        let (at, pause, task) = self.tasks.remove(&number)?;
        self.due.remove(&(at, number));
        Some((pause, task))
    }
}

/// A lease being kept.
pub(crate) struct Kept<'a> {
    keeper: &'a Keeper,
    number: u64,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.keeper.shared.work().take(self.number);
    }
}

fn keep(shared: &Shared, tools: &Tools) {
    let mut work = shared.work();
    loop {
        let now = Instant::now();
        let due: Vec<u64> = match work.stopped {
            true => work.tasks.keys().copied().collect(),
            false => work.due.iter().take_while(|(at, _)| *at <= now).map(|(_, number)| *number).collect(),
        };
        if work.stopped && due.is_empty() {
            return;
        }
        if due.is_empty() {
            let wait = work.due.first().map_or(IDLE, |(at, _)| *at - now);
            work = shared.changed.wait_timeout(work, wait).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let stopped = work.stopped;
        let (renewals, others) = sort(&mut work, due);
        drop(work);
        let renewed = renew(tools, renewals);
        let left = others.into_iter().filter_map(|other| take_care(shared, tools, other)).collect::<Vec<_>>();
        work = shared.work();
        for (number, answer, asked) in renewed {
            // Gone meanwhile: the executor has ended.
            if let Some((pause, Task::Renew(lease))) = work.take(number) {
                renewal(&mut work, number, pause, lease, answer, asked);
            }
        }
        for (number, pause, task) in left.into_iter().filter(|_| !stopped) {
            let longer = (pause * 2).min(PAUSES.1);
            work.put(number, Instant::now() + pause, longer, task);
        }
    }
}

type Other = (u64, Duration, Task);

/// Takes what is due; leases stay, so that whoever lets go of one finds it.
fn sort(work: &mut Work, due: Vec<u64>) -> (Vec<(u64, Renew)>, Vec<Other>) {
    let (mut renewals, mut others) = (Vec::new(), Vec::new());
    for number in due {
        match work.tasks.get(&number) {
            Some((_, _, Task::Renew(lease))) if !work.stopped => {
                renewals.push((number, Renew { attempt: lease.holding, lease: lease.lease }));
            }
            _ => others.extend(work.take(number).map(|(pause, task)| (number, pause, task))),
        }
    }
    (renewals, others)
}

type Renewed = (u64, Result<Reply, StoreError>, Instant);

/// Renews all of these; they share a batch.
fn renew(tools: &Tools, renewals: Vec<(u64, Renew)>) -> Vec<Renewed> {
    let submitted = renewals.into_iter().map(|(number, renew)| {
        let asked = Instant::now();
        let ticket =
            fault::reach(point::BEFORE_RENEW).and_then(|()| tools.store.submit(Command::Renew(renew)));
        (number, ticket, asked)
    });
    let submitted: Vec<_> = submitted.collect();
    let answered = |(number, ticket, asked): (u64, Result<Ticket, StoreError>, Instant)| {
        (number, ticket.and_then(Ticket::wait), asked)
    };
    submitted.into_iter().map(answered).collect()
}

/// What a renewal's answer means: the next one at a third of the lease, an
/// earlier one if the store could not be asked, or that the lease is lost.
fn renewal(
    work: &mut Work,
    number: u64,
    pause: Duration,
    mut lease: Lease,
    answer: Result<Reply, StoreError>,
    asked: Instant,
) {
    match answer {
        Ok(Reply::Renewed { .. }) => {
            lease.until = asked + lease.lease.to_std();
            let next = asked + lease.lease.to_std() / 3;
            work.put(number, next, PAUSES.0, Task::Renew(lease));
        }
        Err(error) if again(&error) && Instant::now() < lease.until => {
            let next = (Instant::now() + pause).min(lease.until);
            work.put(number, next, (pause * 2).min(PAUSES.1), Task::Renew(lease));
        }
        Ok(_) | Err(_) => lease.lost.store(true, Ordering::Release),
    }
}

/// Deals with something nobody waits for; what is left to do comes back.
fn take_care(shared: &Shared, tools: &Tools, (number, pause, task): Other) -> Option<Other> {
    let task = match task {
        // Whoever closes the store lets its leases go.
        Task::Renew(lease) => {
            lease.lost.store(true, Ordering::Release);
            None
        }
        Task::Mark => {
            shared.marking.store(false, Ordering::Release);
            // A mark that cannot be moved makes the next open know less, nothing else.
            let _ = advance(&tools.store, tools.mark.as_deref());
            None
        }
        // Begun already, so its answer is under way.
        Task::Answer(ticket) => match ticket.wait() {
            Ok(Reply::Attempt(attempt)) => {
                let orphan =
                    Orphan { settle: dropped(&attempt), until: Instant::now() + attempt.lease.to_std() };
                settle(tools, orphan)
            }
            _ => None,
        },
        Task::Settle(orphan) => settle(tools, orphan),
    };
    task.map(|task| (number, pause, task))
}

fn settle(tools: &Tools, orphan: Orphan) -> Option<Task> {
    let answer = fault::reach(point::BEFORE_SETTLE)
        .and_then(|()| tools.store.run(Command::Settle(orphan.settle.clone())));
    tools.waiters.wake(&orphan.settle.attempt.effect);
    match answer {
        Err(error) if again(&error) && Instant::now() < orphan.until => Some(Task::Settle(orphan)),
        _ => None,
    }
}

/// Moves the mark to the newest entry of the log.
pub(crate) fn advance(store: &Store, mark: Option<&MarkFile>) -> Result<(), crate::error::Error> {
    if let (Some(file), Some(mark)) = (mark, newest(store)?) {
        file.advance(&mark)?;
    }
    Ok(())
}
