//! A lease on a resource that keeps itself alive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::json::Object;
use onceseal_core::lease::{InterruptLease, Lease, RenewLease, Resource};
use onceseal_core::limits;

use crate::control::Control;
use crate::error::Error;
use crate::keeper::Hold;

/// How long after the store could not be read it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// For so long it is tried to give a lease back that nobody waits for.
const GIVE_BACK_FOR: Duration = Duration::from_secs(60);

/// A resource that is held. The lease is renewed at each third of its length,
/// from a thread of its own, until it is committed, given back, handed on or
/// lost.
///
/// Dropped, it is given back without an outcome, as far as the store can be
/// reached, and lapses otherwise. That of a run or of a task is not given back:
/// nobody has said what became of it, so the lease is shortened to a second, and
/// its lapse interrupts the run or task as the death of this process would have.
pub struct LeaseGuard {
    control: Control,
    lease: Lease,
    shared: bool,
    /// Of the keeper; `None` once it is held no more.
    number: Option<u64>,
    hold: Arc<Hold>,
}

impl std::fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGuard").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl LeaseGuard {
    pub(super) fn new(
        control: Control,
        lease: Lease,
        shared: bool,
        number: u64,
        hold: Arc<Hold>,
    ) -> LeaseGuard {
        LeaseGuard { control, lease, shared, number: Some(number), hold }
    }

    /// What proves it.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// What is held.
    #[must_use]
    pub const fn resource(&self) -> &Resource {
        &self.lease.resource
    }

    /// The lease's number: it grows with each lease on the resource, so a remote
    /// that takes it can refuse whoever comes late.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.lease.fence
    }

    /// Whether others may hold the resource too.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether the lease has ended, as far as is known here, or could not be
    /// renewed: somebody else may hold the resource. That somebody ended it is known
    /// at the next renewal, a third of its length later at most, or within half a
    /// second where [`LeaseGuard::lost`] is waited for.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Waits until the lease is lost: it could not be renewed in time, or was ended,
    /// by an operator, a new plan or the end of the run.
    pub async fn lost(&self) {
        tokio::select! {
            () = self.hold.lost() => {}
            () = self.ended() => self.hold.lose(),
        }
    }

    async fn ended(&self) {
        let lease = self.control.store().tenant().lease(&self.lease.resource.to_string());
        while let Err(error) = self.control.inner.watch.lease_ended(lease, self.lease.fence).await {
            if error.code() == Code::StoreForeign.as_str() {
                // Another store is in its place, which knows nothing of the lease.
                return;
            }
            // The renewals tell what the store cannot.
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Gives the lease up with an outcome, which is final; `false` if it was given
    /// up with the same before. After an error it is still held, and kept, unless
    /// the error is `lease_fenced`.
    ///
    /// # Errors
    /// `lease_fenced`, `outcome_invalid`, `outcome_final`, or what the store fails
    /// with.
    pub async fn commit(&mut self, outcome: Object) -> Result<bool, Error> {
        let committed = self.control.commit_lease(self.lease.clone(), outcome).await?;
        self.let_go();
        Ok(committed)
    }

    /// Gives the lease up without an outcome. A run that it was on stays where it
    /// is: whoever gives it back has said all there is to say.
    ///
    /// # Errors
    /// `lease_fenced`, or what the store fails with.
    pub async fn give_back(&mut self) -> Result<(), Error> {
        self.control.interrupt_lease(self.lease.clone()).await?;
        self.let_go();
        Ok(())
    }

    /// Stops renewing, and leaves the lease to whoever is told of it.
    #[must_use]
    pub fn hand_on(mut self) -> Lease {
        self.let_go();
        self.lease.clone()
    }

    /// Stops renewing: the lease has ended, or is somebody else's to keep.
    pub(super) fn let_go(&mut self) -> bool {
        let number = self.number.take();
        if let Some(number) = number {
            self.control.inner.keeper.let_go(number);
        }
        number.is_some()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if !self.let_go() || self.is_lost() {
            return;
        }
        let command = match self.lease.resource {
            Resource::Run(_) => let_lapse(self.lease.clone()),
            _ => given_up(self.lease.clone()),
        };
        self.control.inner.keeper.see_to(command, Instant::now() + GIVE_BACK_FOR);
    }
}

/// What gives up a lease under which nothing was done. A task is left to the next
/// worker by its lapse: one that is worked on is somebody's.
pub(crate) fn given_up(lease: Lease) -> Command {
    match lease.resource {
        Resource::Task(..) => let_lapse(lease),
        _ => Command::InterruptLease(InterruptLease { lease }),
    }
}

fn let_lapse(lease: Lease) -> Command {
    Command::RenewLease(RenewLease { lease, length: limits::LEASE_MIN })
}
