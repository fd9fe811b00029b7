//! What has to be done and nobody waits for: outcomes of attempts whose caller
//! has gone, leases to be given back, and the mark.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onceseal_core::command::Command;
use onceseal_core::effect::Settle;
use onceseal_core::lease::Lease;
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;
use onceseal_store::{Store, StoreError, Ticket};

use super::PAUSES;
use super::timed::Timed;
use crate::attempt::dropped;
use crate::fault::{self, point};
use crate::marking::Marking;
use crate::runs::given_up;
use crate::watch::Waiters;

/// The mark moves at most so often.
const MARK_EVERY: Duration = Duration::from_secs(1);

/// For so long it is tried to give back a lease that nobody waits for any more.
const GIVE_BACK_FOR: Duration = Duration::from_secs(60);

/// An outcome to record that nobody waits for.
pub(super) struct Orphan {
    pub(super) settle: Settle,
    /// From here on the lease's lapse is left to speak for it.
    pub(super) until: Instant,
}

/// What there is to do.
pub(super) enum Chore {
    Settle(Orphan),
    /// Until then.
    Command(Box<Command>, Instant),
    /// An answer that may hand out an attempt or a lease.
    Answer(Ticket),
    Mark,
}

/// A chore on its way.
enum Begun {
    Settle(Orphan, Result<Ticket, StoreError>),
    Command(Box<Command>, Instant, Result<Ticket, StoreError>),
    Answer(Ticket),
    Mark,
}

#[derive(Default)]
pub(super) struct Chores {
    tasks: Timed<Chore>,
    /// Whether the mark is going to move.
    marking: AtomicBool,
    /// When it moved last, or was to.
    marked: Mutex<Option<Instant>>,
}

/// What the thread works with.
pub(super) struct Tools {
    pub(super) store: Arc<Store>,
    pub(super) mark: Option<Arc<Marking>>,
    pub(super) waiters: Arc<Waiters>,
}

impl Chores {
    pub(super) fn add(&self, chore: Chore) {
        self.tasks.add(Instant::now(), chore);
    }

    /// The mark moves: at once if it has stood for a while, since whoever is about to
    /// act may not live to see the next time.
    pub(super) fn mark(&self) {
        if !self.marking.swap(true, Ordering::AcqRel) {
            let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let at = marked.map_or(now, |marked| now.max(marked + MARK_EVERY));
            *marked = Some(at);
            self.tasks.add(at, Chore::Mark);
        }
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
    }

    /// Does what is due until it is stopped, and then everything once more.
    pub(super) fn work(&self, tools: &Tools) {
        loop {
            let (due, stopped) = self.tasks.due();
            if due.is_empty() {
                return;
            }
            let begin = |number| {
                let (pause, chore) = self.tasks.take(number)?;
                Some((pause, tools.begin(chore)))
            };
            // All are submitted before any is waited for: they share a batch. The
            // mark is last, since it waits for more than the store.
            let mut begun: Vec<_> = due.into_iter().filter_map(begin).collect();
            begun.sort_by_key(|(_, begun)| matches!(begun, Begun::Mark));
            for (pause, begun) in begun {
                if let Some(chore) = self.finish(tools, begun).filter(|_| !stopped) {
                    self.tasks.add_with((Instant::now() + pause, (pause * 2).min(PAUSES.1)), chore);
                }
            }
        }
    }

    /// Gives up a lease that nobody waits for any more.
    fn give_up(&self, lease: Lease) -> Option<Chore> {
        self.add(Chore::Command(Box::new(given_up(lease)), Instant::now() + GIVE_BACK_FOR));
        None
    }

    /// Waits for what was begun; what is left to do comes back.
    fn finish(&self, tools: &Tools, begun: Begun) -> Option<Chore> {
        match begun {
            Begun::Settle(orphan, ticket) => {
                let answer = ticket.and_then(Ticket::wait);
                tools.waiters.wake(&orphan.settle.attempt.effect);
                match answer {
                    Err(error) if error.may_pass() && Instant::now() < orphan.until => {
                        Some(Chore::Settle(orphan))
                    }
                    _ => None,
                }
            }
            Begun::Command(command, until, ticket) => match ticket.and_then(Ticket::wait) {
                Err(error) if error.may_pass() && Instant::now() < until => {
                    Some(Chore::Command(command, until))
                }
                _ => None,
            },
            Begun::Answer(ticket) => {
                let (attempt, again) = match ticket.wait() {
                    Ok(Reply::Attempt(attempt)) => (attempt, None),
                    // A worker that has gone leaves it to the others.
                    Ok(Reply::Claimed(attempt, _)) => (*attempt, Some(Span::ZERO)),
                    Ok(Reply::Lease(now)) => return self.give_up(now.lease),
                    Ok(Reply::Task(now)) => return self.give_up(now.lease.lease),
                    _ => return None,
                };
                let until = Instant::now() + attempt.lease.to_std();
                let settle = Settle { again, ..dropped(&attempt) };
                self.add(Chore::Settle(Orphan { settle, until }));
                None
            }
            Begun::Mark => {
                self.marking.store(false, Ordering::Release);
                let moved = tools.mark.as_ref().map_or(Ok(()), |mark| mark.advance(&tools.store));
                // Tried again, unless it is going to move for something newer.
                (moved.is_err() && !self.marking.swap(true, Ordering::AcqRel)).then_some(Chore::Mark)
            }
        }
    }
}

impl Tools {
    fn begin(&self, chore: Chore) -> Begun {
        match chore {
            Chore::Settle(orphan) => {
                let settle = Command::Settle(orphan.settle.clone());
                let ticket = fault::reach(point::BEFORE_SETTLE).and_then(|()| self.store.submit(settle));
                Begun::Settle(orphan, ticket)
            }
            Chore::Command(command, until) => {
                let ticket = self.store.submit((*command).clone());
                Begun::Command(command, until, ticket)
            }
            Chore::Answer(ticket) => Begun::Answer(ticket),
            Chore::Mark => Begun::Mark,
        }
    }
}
