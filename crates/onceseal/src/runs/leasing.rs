//! Taking a resource, and what is done with a lease that was handed on.

use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::HolderKey;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::lease::{AcquireLease, CommitLease, InterruptLease, Lease, Preempt, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::time::Span;

use super::guard::LeaseGuard;
use crate::chance::holder_key;
use crate::claim::Unclaimed;
use crate::control::{Control, accepted};
use crate::error::Error;
use crate::moment::Moment;
use crate::watch::from_now;

/// How often whoever waits for a resource asks again: its holder may give it back
/// before its lease ends.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Long enough for a process that is held up, short enough to wait for.
pub(super) const LENGTH: Span = Span::seconds(30);

/// A resource about to be taken; see [`Control::lease`].
#[must_use = "nothing is held until it is taken"]
#[derive(Clone)]
pub struct Leasing {
    control: Control,
    resource: Resource,
    holder: Option<HolderKey>,
    length: Span,
    shared: bool,
    preempt: Option<Preempt>,
    wait: Duration,
}

impl Leasing {
    pub(super) fn new(control: Control, resource: Resource) -> Leasing {
        Leasing {
            control,
            resource,
            holder: None,
            length: LENGTH,
            shared: false,
            preempt: None,
            wait: Duration::ZERO,
        }
    }

    /// Waits so long for whoever holds it now.
    pub fn wait(self, wait: Duration) -> Leasing {
        Leasing { wait, ..self }
    }

    /// How long the lease lasts unless it is renewed: 1 s to 24 h, 30 s if nothing
    /// is said. For so long the others wait for a holder that has died.
    pub fn length(self, length: Span) -> Leasing {
        Leasing { length, ..self }
    }

    /// Beside others who take it so.
    pub fn shared(self) -> Leasing {
        Leasing { shared: true, ..self }
    }

    /// Who takes it, instead of a key drawn at random ([`holder_key`]). Whoever names
    /// the key under which the resource was taken gets the lease again: it is told
    /// to nobody, and two parts of a program that share one do not exclude each
    /// other.
    pub fn holder(self, holder: HolderKey) -> Leasing {
        Leasing { holder: Some(holder), ..self }
    }

    /// From whoever has it, by an operator's word, which is recorded.
    pub fn preempt(self, preempt: Preempt) -> Leasing {
        Leasing { preempt: Some(preempt), ..self }
    }

    /// Takes it, and keeps the lease alive until the guard is given up.
    ///
    /// # Errors
    /// `lease_held` with who holds it and until when, `run_unknown`, `run_ended`,
    /// `task_not_taken`, `out_of_bounds` for a length, or what the store fails with.
    pub async fn take(self) -> Result<LeaseGuard, Error> {
        let (control, length, again) = (self.control.clone(), self.length, self.holder.is_some());
        let until = from_now(self.wait);
        let (asked, now) = loop {
            let asked = Moment::now(control.store().clock().as_ref());
            match self.clone().once().await {
                Err(Error::Refused(refusal)) if refusal.code == Code::LeaseHeld && Instant::now() < until => {
                    tokio::time::sleep_until(until.min(Instant::now() + ASK_AGAIN).into()).await;
                }
                now => break (asked, now?),
            }
        };
        Ok(keep(control, now, length, asked, again))
    }

    /// Takes it now or not at all, and renews nothing: for whoever hands the lease
    /// on.
    ///
    /// # Errors
    /// As [`Leasing::take`].
    pub async fn once(self) -> Result<LeaseNow, Error> {
        let Leasing { control, resource, holder, length, shared, preempt, wait: _ } = self;
        let acquire = |holder| {
            Command::AcquireLease(Box::new(AcquireLease { resource, holder, length, shared, preempt }))
        };
        held(handed_out(&control, holder, acquire).await?)
    }
}

/// The answer to a command that may hand out a lease, to this holder or one drawn
/// at random.
pub(super) async fn handed_out(
    control: &Control,
    holder: Option<HolderKey>,
    command: impl FnOnce(HolderKey) -> Command,
) -> Result<Reply, Error> {
    if let Some(holder) = holder {
        // What it had before is not given back because this wait was given up.
        return control.submit(command(holder)).await;
    }
    let command = command(holder_key()?);
    let reply = Unclaimed::new(&control.inner.keeper, control.ticket(command)?).await?;
    control.inner.keeper.recorded();
    Ok(reply)
}

/// Keeps a lease alive that was `asked` for then. Whether it may be one that its
/// holder had: that may end sooner than one that is new.
pub(super) fn keep(control: Control, now: LeaseNow, length: Span, asked: Moment, again: bool) -> LeaseGuard {
    let left = now.until.since(control.store().now()).to_std().min(length.to_std());
    let (until, first) = match again {
        true => (asked.after(left), Instant::now()),
        false => (asked.after(length.to_std()), asked.instant + length.to_std() / 3),
    };
    let (number, hold) = control.inner.keeper.keep_resource(control.store(), &now, length, until, first);
    LeaseGuard::new(control, now.lease, now.shared, number, hold)
}

impl Control {
    /// Moves the end of a lease to so long from now, later or earlier.
    ///
    /// # Errors
    /// `lease_fenced`, `out_of_bounds`, or what the store fails with.
    pub async fn renew_lease(&self, lease: Lease, length: Span) -> Result<LeaseNow, Error> {
        held(self.submit(Command::RenewLease(RenewLease { lease, length })).await?)
    }

    /// Gives a lease up with an outcome, which is final. `false`: it was given up
    /// with the same before.
    ///
    /// # Errors
    /// `lease_fenced`, `outcome_invalid`, `outcome_final`, or what the store fails
    /// with.
    pub async fn commit_lease(&self, lease: Lease, outcome: Object) -> Result<bool, Error> {
        let outcome = json::canonical(&Value::Object(outcome));
        done(self.submit(Command::CommitLease(CommitLease { lease, outcome })).await?)
    }

    /// Gives a lease up without an outcome. A run that it was on stays where it is.
    ///
    /// # Errors
    /// `lease_fenced`, or what the store fails with.
    pub async fn interrupt_lease(&self, lease: Lease) -> Result<(), Error> {
        done(self.submit(Command::InterruptLease(InterruptLease { lease })).await?).map(drop)
    }
}

pub(super) fn held(reply: Reply) -> Result<LeaseNow, Error> {
    match accepted(reply)? {
        Reply::Lease(now) => Ok(*now),
        _ => Err(Error::Unexpected),
    }
}

pub(super) fn done(reply: Reply) -> Result<bool, Error> {
    match accepted(reply)? {
        Reply::Done { changed } => Ok(changed),
        _ => Err(Error::Unexpected),
    }
}
