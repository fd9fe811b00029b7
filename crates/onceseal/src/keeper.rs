//! Threads that keep leases alive, settle what nobody else will, and move the
//! mark.
//!
//! Leases are renewed from here and not from the executor's runtime, so that
//! an executor that blocks its thread does not lose its lease. They have a
//! thread to themselves, so that no chore makes a renewal late.

mod chores;
mod leases;
mod timed;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onceseal_core::command::Command;
use onceseal_core::effect::Settle;
use onceseal_core::reply::{Attempt, LeaseNow};
use onceseal_core::time::Span;
use onceseal_store::{Store, StoreError, Ticket};

use crate::marking::Marking;
use crate::moment::Moment;
use crate::watch::Waiters;
use chores::{Chore, Chores, Orphan, Tools};
pub(crate) use leases::Hold;
use leases::Lease;
use timed::Timed;

/// The pauses before something that failed is tried again: the first and the
/// longest.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// The threads' handle.
pub(crate) struct Keeper {
    leases: Arc<Timed<Lease>>,
    chores: Arc<Chores>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Keeper {
    /// No thread: for stores that take no commands.
    pub(crate) fn none() -> Keeper {
        Keeper { leases: Arc::default(), chores: Arc::default(), threads: Mutex::default() }
    }

    pub(crate) fn start(
        store: Arc<Store>,
        mark: Option<Arc<Marking>>,
        waiters: Arc<Waiters>,
    ) -> Result<Keeper, StoreError> {
        let keeper = Keeper::none();
        let (leases, own) = (keeper.leases.clone(), store.clone());
        let (chores, tools) = (keeper.chores.clone(), Tools { store, mark, waiters });
        let started = keeper
            .spawn("onceseal-keeper", move || leases::keep(&leases, &own))
            .and_then(|()| keeper.spawn("onceseal-chores", move || chores.work(&tools)));
        // One without the other would hold the store open.
        started.inspect_err(|_| keeper.stop())?;
        Ok(keeper)
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Renews this attempt's lease at each third of it until the guard is
    /// dropped, a renewal is refused, or the deadline has come. `asked` is
    /// before the lease was given.
    pub(crate) fn keep(&self, store: &Store, attempt: &Attempt, asked: Moment) -> Kept<'_> {
        let lease = Lease::new(store.clock().clone(), attempt, asked);
        let hold = lease.hold();
        let number = self.leases.add(lease.next(asked), lease);
        Kept { keeper: self, number, hold }
    }

    /// Renews the lease on a resource by this length, the first time at `first`,
    /// until it is let go of by its number. It ends `until` at the latest.
    pub(crate) fn keep_resource(
        &self,
        store: &Store,
        now: &LeaseNow,
        length: Span,
        until: Moment,
        first: Instant,
    ) -> (u64, Arc<Hold>) {
        let lease = Lease::of_resource(store.clock().clone(), now, length, until);
        let hold = lease.hold();
        (self.leases.add(first, lease), hold)
    }

    /// Renews the lease of this number no more.
    pub(crate) fn let_go(&self, number: u64) {
        self.leases.take(number);
    }

    /// Submits what nobody waits for, by `until` if it can.
    pub(crate) fn see_to(&self, command: Command, until: Instant) {
        self.chores.add(Chore::Command(Box::new(command), until));
    }

    /// Records an outcome that nobody waits for, by `until` if it can.
    pub(crate) fn settle(&self, settle: Settle, until: Instant) {
        self.chores.add(Chore::Settle(Orphan { settle, until }));
    }

    /// Settles as not executed, or gives back, what this answer may hand out.
    pub(crate) fn adopt(&self, ticket: Ticket) {
        self.chores.add(Chore::Answer(ticket));
    }

    /// Something was recorded: the mark moves before long.
    pub(crate) fn recorded(&self) {
        self.chores.mark();
    }

    /// Stops after what is to be settled has been tried once more.
    pub(crate) fn stop(&self) {
        self.leases.stop();
        self.chores.stop();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                // A panic there has nothing to tell here: leases lapse by themselves.
                drop(thread.join());
            }
        }
    }
}

/// A lease being kept.
pub(crate) struct Kept<'a> {
    keeper: &'a Keeper,
    number: u64,
    hold: Arc<Hold>,
}

impl Kept<'_> {
    /// What its holder may know of it.
    pub(crate) fn hold(&self) -> Arc<Hold> {
        self.hold.clone()
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.keeper.leases.take(self.number);
    }
}
