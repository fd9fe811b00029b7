//! A thread that keeps leases alive and settles what nobody else will.
//!
//! Leases are renewed from here and not from the executor's runtime, so that
//! an executor that blocks its thread does not lose its lease.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Renew, Settle};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;
use onceseal_store::{Store, StoreError, Ticket};

use crate::attempt::again;

/// The pause before a renewal or a settlement that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// A settlement nobody waits for is tried this often before its lease's lapse
/// is left to speak for it.
const TRIES: u32 = 50;

/// A lease that is kept.
struct Lease {
    holding: Holding,
    lease: Span,
    until: Instant,
    lost: Arc<AtomicBool>,
}

/// Something that nobody waits for any more.
enum Orphan {
    /// An answer that may hand out an attempt.
    Answer(Ticket),
    /// An outcome to record.
    Settle(Settle, u32),
}

#[derive(Default)]
struct Work {
    leases: BTreeMap<(Instant, u64), Lease>,
    /// When each kept lease is renewed next, by its number.
    due: BTreeMap<u64, Instant>,
    orphans: VecDeque<Orphan>,
    next: u64,
    stopped: bool,
}

impl Work {
    /// Plans the next renewal of a lease. Says whether it is now the first one,
    /// for which alone the thread has to be woken.
    fn plan(&mut self, at: Instant, number: u64, lease: Lease) -> bool {
        self.due.insert(number, at);
        self.leases.insert((at, number), lease);
        self.leases.first_key_value().is_some_and(|(first, _)| *first == (at, number))
    }

    /// Takes a lease out, if it is still kept.
    fn release(&mut self, number: u64) -> Option<Lease> {
        let at = self.due.remove(&number)?;
        self.leases.remove(&(at, number))
    }
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

/// The thread's handle.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// No thread: for stores that take no commands.
    pub(crate) fn none() -> Keeper {
        Keeper { shared: Arc::default(), thread: Mutex::new(None) }
    }

    pub(crate) fn start(store: Arc<Store>) -> Result<Keeper, StoreError> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("onceseal-keeper".to_owned())
            .spawn(move || keep(&own, &store))?;
        Ok(Keeper { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Renews this attempt's lease at each third of it until the guard is
    /// dropped, a renewal is refused, or the deadline has come. `asked` is
    /// before the lease was given.
    pub(crate) fn keep(&self, attempt: &Attempt, asked: Instant, lost: Arc<AtomicBool>) -> Kept<'_> {
        let until = asked + attempt.lease_until.since(attempt.taken_at).to_std();
        let lease = Lease { holding: attempt.into(), lease: attempt.lease, until, lost };
        let mut work = self.shared.work();
        let number = work.next;
        work.next += 1;
        let first = work.plan(asked + attempt.lease.to_std() / 3, number, lease);
        drop(work);
        if first {
            self.shared.changed.notify_one();
        }
        Kept { keeper: self, number }
    }

    /// Records an outcome that nobody waits for.
    pub(crate) fn settle(&self, settle: Settle) {
        self.adopt(Orphan::Settle(settle, 0));
    }

    /// Waits for an answer; if the wait is given up, an attempt that the answer
    /// hands out is settled as not executed.
    pub(crate) fn claim(&self, ticket: Ticket) -> Unclaimed<'_> {
        let patience = tokio::time::sleep_until(ticket.patience_ends().into());
        Unclaimed { keeper: self, ticket: Some(ticket), patience: Box::pin(patience), patient: true }
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

    fn adopt(&self, orphan: Orphan) {
        self.shared.work().orphans.push_back(orphan);
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease being kept.
pub(crate) struct Kept<'a> {
    keeper: &'a Keeper,
    number: u64,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.keeper.shared.work().release(self.number);
    }
}

/// An answer being waited for.
pub(crate) struct Unclaimed<'a> {
    keeper: &'a Keeper,
    ticket: Option<Ticket>,
    patience: Pin<Box<tokio::time::Sleep>>,
    patient: bool,
}

impl Future for Unclaimed<'_> {
    type Output = Result<Reply, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ticket) = &mut this.ticket else { return Poll::Ready(Err(StoreError::new(Code::Internal))) };
        if let Poll::Ready(outcome) = Pin::new(&mut *ticket).poll(context) {
            this.ticket = None;
            return Poll::Ready(outcome);
        }
        if this.patient && this.patience.as_mut().poll(context).is_ready() {
            this.patient = false;
            if ticket.withdraw() {
                this.ticket = None;
                return Poll::Ready(Err(StoreError::new(Code::StoreBusy)));
            }
        }
        Poll::Pending
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        // Not begun: nothing will come of it.
        if let Some(ticket) = self.ticket.take().filter(|ticket| !ticket.withdraw()) {
            self.keeper.adopt(Orphan::Answer(ticket));
        }
    }
}

fn keep(shared: &Shared, store: &Store) {
    let mut work = shared.work();
    loop {
        if let Some(orphan) = work.orphans.pop_front() {
            drop(work);
            let left = take_care(store, orphan);
            work = shared.work();
            if let Some(left) = left.filter(|_| !work.stopped) {
                work.orphans.push_back(left);
                work = shared.changed.wait_timeout(work, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
            }
            continue;
        }
        if work.stopped {
            return;
        }
        let now = Instant::now();
        let first = work.leases.first_key_value().map(|(key, _)| *key);
        match first {
            None => work = shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner),
            Some((at, _)) if at > now => {
                work = shared.changed.wait_timeout(work, at - now).unwrap_or_else(PoisonError::into_inner).0;
            }
            Some(key) => {
                let Some((holding, lease)) = work.leases.get(&key).map(|kept| (kept.holding, kept.lease))
                else {
                    continue;
                };
                drop(work);
                let asked = Instant::now();
                let renewed = store.run(Command::Renew(Renew { attempt: holding, lease }));
                work = shared.work();
                // Gone meanwhile: the executor has ended.
                if let Some(kept) = work.release(key.1) {
                    renewal(&mut work, key.1, kept, renewed, asked);
                }
            }
        }
    }
}

/// What a renewal's answer means: the next one at a third of the lease, an
/// earlier one if the store could not be asked, or that the lease is lost.
fn renewal(work: &mut Work, number: u64, mut kept: Lease, answer: Result<Reply, StoreError>, asked: Instant) {
    match answer {
        Ok(Reply::Renewed { .. }) => {
            kept.until = asked + kept.lease.to_std();
            work.plan(asked + kept.lease.to_std() / 3, number, kept);
        }
        Err(error) if again(&error) && Instant::now() < kept.until => {
            work.plan(Instant::now() + PAUSE, number, kept);
        }
        Ok(_) | Err(_) => kept.lost.store(true, Ordering::Release),
    }
}

/// Deals with something nobody waits for; what is left to do comes back.
fn take_care(store: &Store, orphan: Orphan) -> Option<Orphan> {
    match orphan {
        Orphan::Answer(ticket) => match ticket.wait() {
            Ok(Reply::Attempt(attempt)) => Some(Orphan::Settle(
                Settle {
                    attempt: Holding::from(&attempt),
                    outcome: Outcome::Failed,
                    code: Some("dropped".to_owned()),
                    error: Some("the call was dropped before its executor started".to_owned()),
                    result: None,
                },
                0,
            )),
            _ => None,
        },
        Orphan::Settle(settle, tries) => match store.run(Command::Settle(settle.clone())) {
            Err(error) if again(&error) && tries < TRIES => Some(Orphan::Settle(settle, tries + 1)),
            _ => None,
        },
    }
}
