//! Renewing leases. Nothing else is done by this thread: whatever it waited
//! for, leases would end meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use onceseal_core::command::Command;
use onceseal_core::effect::Renew;
use onceseal_core::lease::RenewLease;
use onceseal_core::reply::{Attempt, LeaseNow, Reply};
use onceseal_core::time::Span;
use onceseal_store::clock::Clock;
use onceseal_store::{Store, StoreError, Ticket};
use tokio::sync::Notify;

use super::PAUSES;
use super::timed::{Time, Timed};
use crate::fault::{self, point};
use crate::moment::Moment;

/// How often whoever waits for the loss of a lease looks at the clock.
const LOOK: Duration = Duration::from_millis(100);
/// A lease on a resource has no end but its own: it is kept as long as anybody
/// can wait.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What the holder of an attempt or a resource knows of its lease.
pub(crate) struct Hold {
    clock: Arc<dyn Clock>,
    /// Somebody said so.
    lost: AtomicBool,
    told: Notify,
    /// The lease's end by the boot clock, as far as it is known here.
    until_us: AtomicI64,
}

impl Hold {
    /// Whether somebody else may answer for the attempt: a renewal was refused,
    /// or came too late, whatever the store may say.
    pub(crate) fn is_lost(&self) -> bool {
        // The end itself still belongs to the lease.
        self.lost.load(Ordering::Acquire) || self.clock.now().boot_us > self.until_us.load(Ordering::Acquire)
    }

    /// Waits until it is lost.
    pub(crate) async fn lost(&self) {
        loop {
            // Listening before looking: a word in between is not missed.
            let told = self.told.notified();
            if self.is_lost() {
                return;
            }
            // The clock tells nobody that it moved.
            drop(tokio::time::timeout(LOOK, told).await);
        }
    }

    /// Somebody said that it is lost.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.told.notify_waiters();
    }
}

/// How a lease is renewed.
enum Renewing {
    Attempt(Renew),
    Resource(RenewLease),
}

/// A lease that is kept.
pub(super) struct Lease {
    renewing: Renewing,
    length: Span,
    /// When it ends unless renewed.
    until: Moment,
    /// However often renewed, it ends here.
    deadline: Moment,
    hold: Arc<Hold>,
}

impl Lease {
    /// That of an attempt. `asked` is before it was given.
    pub(super) fn new(clock: Arc<dyn Clock>, attempt: &Attempt, asked: Moment) -> Lease {
        let at = |end: onceseal_core::time::Timestamp| asked.after(end.since(attempt.taken_at).to_std());
        let (until, deadline) = (at(attempt.lease_until), at(attempt.deadline));
        let renewing = Renewing::Attempt(Renew { attempt: attempt.into(), lease: attempt.lease });
        Lease::ending(clock, renewing, attempt.lease, until, deadline)
    }

    /// That of a resource, renewed by this length. It ends `until` at the latest.
    pub(super) fn of_resource(clock: Arc<dyn Clock>, now: &LeaseNow, length: Span, until: Moment) -> Lease {
        let renewing = Renewing::Resource(RenewLease { lease: now.lease.clone(), length });
        let deadline = until.after(FOR_EVER);
        Lease::ending(clock, renewing, length, until, deadline)
    }

    fn ending(
        clock: Arc<dyn Clock>,
        renewing: Renewing,
        length: Span,
        until: Moment,
        deadline: Moment,
    ) -> Lease {
        let (lost, until_us) = (AtomicBool::new(false), AtomicI64::new(until.boot_us));
        let hold = Arc::new(Hold { clock, lost, told: Notify::new(), until_us });
        Lease { renewing, length, until, deadline, hold }
    }

    fn renewal(&self) -> Command {
        match &self.renewing {
            Renewing::Attempt(renew) => Command::Renew(renew.clone()),
            Renewing::Resource(renew) => Command::RenewLease(renew.clone()),
        }
    }

    pub(super) fn hold(&self) -> Arc<Hold> {
        self.hold.clone()
    }

    /// When to renew a lease that was asked for then.
    pub(super) fn next(&self, asked: Moment) -> Instant {
        asked.instant + self.length.to_std() / 3
    }

    /// What a renewal's answer means: the next one at a third of the lease, an
    /// earlier one if the store could not be asked, or that the lease is lost.
    fn renewed(&mut self, pause: Duration, answer: Result<Reply, StoreError>, asked: Moment) -> Option<Time> {
        match answer {
            Ok(Reply::Renewed { .. } | Reply::Lease(_)) => {
                self.until = asked.after(self.length.to_std()).min(self.deadline);
                self.hold.until_us.store(self.until.boot_us, Ordering::Release);
                Some((self.next(asked), PAUSES.0))
            }
            Err(error) if error.may_pass() && !self.until.is_over(self.hold.clock.as_ref()) => {
                let next = (Instant::now() + pause).min(self.until.instant);
                Some((next, (pause * 2).min(PAUSES.1)))
            }
            Ok(_) | Err(_) => {
                self.hold.lose();
                None
            }
        }
    }
}

/// Renews what is due until it is stopped.
pub(super) fn keep(leases: &Timed<Lease>, store: &Store) {
    loop {
        let (due, stopped) = leases.due();
        if stopped {
            // Whoever closes the store lets its leases go.
            due.into_iter().filter_map(|number| leases.take(number)).for_each(|(_, lease)| lease.hold.lose());
            return;
        }
        // They stay, so that whoever lets go of one finds it; all share a batch.
        let submitted: Vec<_> = due.into_iter().filter_map(|number| submit(leases, store, number)).collect();
        for (number, asked, ticket) in submitted {
            let answer = ticket.and_then(Ticket::wait);
            leases.again(number, |pause, lease| lease.renewed(pause, answer, asked));
        }
    }
}

type Submitted = (u64, Moment, Result<Ticket, StoreError>);

fn submit(leases: &Timed<Lease>, store: &Store, number: u64) -> Option<Submitted> {
    let renewal = leases.look(number, Lease::renewal)?;
    let asked = Moment::now(store.clock().as_ref());
    let ticket = fault::reach(point::BEFORE_RENEW).and_then(|()| store.submit(renewal));
    Some((number, asked, ticket))
}

#[cfg(test)]
mod tests {
    use onceseal_core::code::Code;
    use onceseal_core::id::ActionId;
    use onceseal_core::stream::{StreamId, StreamKind};
    use onceseal_core::time::Timestamp;
    use onceseal_store::clock::{ManualClock, Reading};

    use super::*;

    /// A lease of a second with a deadline half a second after it.
    fn attempt() -> Attempt {
        let taken_at = Timestamp::from_micros(1_767_225_600_000_000).expect("a time");
        Attempt {
            action: ActionId([1; 16]),
            effect: StreamId { kind: StreamKind::Effect, name: [2; 16] },
            key: None,
            fence: 1,
            taken_at,
            lease_until: taken_at + Span::seconds(1),
            deadline: taken_at + Span::millis(1_500),
            lease: Span::seconds(1),
            begun: true,
            approval: None,
        }
    }

    fn renewed() -> Result<Reply, StoreError> {
        Ok(Reply::Renewed { lease_until: Timestamp::MAX })
    }

    #[test]
    fn p04_a_renewal_moves_the_end_that_is_known_here_and_never_past_the_deadline() {
        let clock = Arc::new(ManualClock::new(Reading { wall_us: 0, boot_us: 0 }));
        let asked = || Moment::now(clock.as_ref());
        let mut lease = Lease::new(clock.clone(), &attempt(), asked());
        clock.advance(400_000);
        assert!(lease.renewed(PAUSES.0, renewed(), asked()).is_some());
        clock.advance(1_000_000);
        assert!(!lease.hold.is_lost());
        clock.advance(1);
        assert!(lease.hold.is_lost());
        // The answer was late, and it is a renewal all the same.
        assert!(lease.renewed(PAUSES.0, renewed(), asked()).is_some());
        clock.advance(99_999);
        assert!(!lease.hold.is_lost());
        clock.advance(1);
        assert!(lease.hold.is_lost());
    }

    #[test]
    fn p04_a_renewal_that_fails_is_tried_until_the_lease_has_run_out_here() {
        for code in [Code::StoreBusy, Code::StoreFailed, Code::StoreUnreachable, Code::CommitUnknown] {
            let clock = Arc::new(ManualClock::new(Reading { wall_us: 0, boot_us: 0 }));
            let asked = Moment::now(clock.as_ref());
            let mut lease = Lease::new(clock.clone(), &attempt(), asked);
            let failed = || Err(StoreError::new(code));
            clock.advance(1_000_000);
            let next = lease.renewed(PAUSES.0, failed(), asked);
            assert!(next.is_some_and(|(_, pause)| pause == PAUSES.0 * 2), "{code}");
            clock.advance(1);
            assert!(lease.renewed(PAUSES.0, failed(), asked).is_none(), "{code}");
        }
    }
}
