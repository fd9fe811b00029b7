//! What whoever holds a lease may do with it, and how it ends.

use crate::case::{Case, Renewal};
use crate::code::Code;
use crate::id::{HolderId, RunId};
use crate::journal::{Body, Nothing, Refs};
use crate::json::{self, Limits, Value};
use crate::lease::Resource;
use crate::lease::event::{Committed, CommittedSealed, Ended};
use crate::lease::row::LeaseRow;
use crate::lease::taking::stream;
use crate::limits;
use crate::reply::{LeaseNow, Reply};
use crate::run;
use crate::stream::{StreamId, StreamKind};
use crate::task;
use crate::time::Span;
use crate::view::{Halt, Pinned};

/// What proves a lease: only its holder and the store can name it.
#[derive(Clone, PartialEq, Eq)]
pub struct Lease {
    /// What is held.
    pub resource: Resource,
    /// The lease's number.
    pub fence: u64,
    /// Whose it is.
    pub holder: HolderId,
    token: [u8; 16],
}

/// Without the token.
impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Lease { resource, fence, holder, .. } = self;
        f.debug_struct("Lease")
            .field("resource", resource)
            .field("fence", fence)
            .field("holder", holder)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// The token is HMAC-SHA-256 of the tenant's key over the stream, the fence
    /// and the holder: it need not be stored to be looked at.
    pub(super) fn of(pinned: &Pinned, resource: &Resource, fence: u64, holder: HolderId) -> Lease {
        let name = stream(pinned, resource).name;
        let parts: [&[u8]; 4] = [b"lease\0", &name, &fence.to_be_bytes(), &holder.0];
        let mut token = [0; 16];
        token.copy_from_slice(&pinned.tenant.key.mac(&parts)[..16]);
        Lease { resource: resource.clone(), fence, holder, token }
    }

    /// One that was handed on as text.
    #[must_use]
    pub const fn handed_on(resource: Resource, fence: u64, holder: HolderId, token: [u8; 16]) -> Lease {
        Lease { resource, fence, holder, token }
    }

    /// What to hand on.
    #[must_use]
    pub const fn token(&self) -> [u8; 16] {
        self.token
    }
}

/// Move the end of a lease, to a later or an earlier moment.
#[derive(Debug, Clone)]
pub struct RenewLease {
    /// The lease.
    pub lease: Lease,
    /// So long from now.
    pub length: Span,
}

/// Give a lease up with an outcome, which is final.
#[derive(Debug, Clone)]
pub struct CommitLease {
    /// The lease.
    pub lease: Lease,
    /// The outcome: an object, as canonical JSON.
    pub outcome: String,
}

/// Give a lease up without an outcome.
#[derive(Debug, Clone)]
pub struct InterruptLease {
    /// The lease.
    pub lease: Lease,
}

/// The resource's row, if the lease is live. Whoever cannot name the token holds
/// nothing. A lapse that is met is recorded, whatever follows: no clock that goes
/// back makes the lease live again.
pub(crate) fn holds(case: &mut Case<'_>, lease: &Lease) -> Result<Result<LeaseRow, Code>, Halt> {
    if Lease::of(case.pinned, &lease.resource, lease.fence, lease.holder).token != lease.token {
        return Ok(Err(Code::LeaseFenced));
    }
    let stream = stream(case.pinned, &lease.resource);
    let Some(row) = case.view.lease(&stream)?.cloned() else { return Ok(Err(Code::LeaseFenced)) };
    if row.live(case.now).any(|live| (live.fence, live.holder) == (lease.fence, lease.holder)) {
        return Ok(Ok(row));
    }
    record_lapses(case, &stream, &row)?;
    Ok(Err(Code::LeaseFenced))
}

/// Whether it is a live lease on this run.
pub(crate) fn is_of_run(case: &mut Case<'_>, lease: &Lease, run: RunId) -> Result<bool, Halt> {
    Ok(lease.resource == Resource::Run(run) && holds(case, lease)?.is_ok())
}

pub(crate) fn renew(case: &mut Case<'_>, renew: &RenewLease) -> Result<Reply, Halt> {
    let RenewLease { lease, length } = renew;
    if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(length) {
        return Ok(Code::OutOfBounds.into());
    }
    let row = match holds(case, lease)? {
        Ok(row) => row,
        Err(code) => return Ok(code.into()),
    };
    let until = case.now + *length;
    let shared = row.lease(lease.fence).is_some_and(|holder| holder.shared);
    let stream = stream(case.pinned, &lease.resource);
    case.renewals.push(Renewal { stream, fence: lease.fence, lease_until: until });
    Ok(Reply::Lease(Box::new(LeaseNow { lease: lease.clone(), shared, until })))
}

pub(crate) fn commit(case: &mut Case<'_>, commit: &CommitLease) -> Result<Reply, Halt> {
    let CommitLease { lease, outcome } = commit;
    let is_object = matches!(json::read_canonical(outcome, &Limits::DATA), Ok(Value::Object(_)));
    if !is_object || outcome.len() > limits::RESULT_BYTES {
        return Ok(Code::OutcomeInvalid.into());
    }
    let stream = stream(case.pinned, &lease.resource);
    let row = match holds(case, lease)? {
        Ok(row) => row,
        Err(code) => return repeated(case, &stream, lease, outcome, code),
    };
    let payload = case.payload(outcome);
    let sealed = CommittedSealed { outcome: Some(payload.hash()) };
    let body = Body::LeaseCommitted(Committed { fence: lease.fence }, sealed);
    case.record_with(stream, Refs::NONE, body, Some(payload));
    leave(case, &row, lease.fence)?;
    Ok(Reply::Done { changed: true })
}

/// A task whose last worker gave it up without moving it on is interrupted, as if
/// the lease had lapsed: it would be at work for ever. A run is not: its holder may
/// have moved it to where it is to stay.
fn leave(case: &mut Case<'_>, row: &LeaseRow, fence: u64) -> Result<(), Halt> {
    let is_last = row.live(case.now).all(|live| live.fence == fence);
    match row.interrupts {
        Some(stream) if stream.kind == StreamKind::Task && is_last => task::interrupt(case, stream),
        _ => Ok(()),
    }
}

/// A commit of a lease that is over: the same outcome is answered as the first
/// time.
fn repeated(
    case: &Case<'_>,
    stream: &StreamId,
    lease: &Lease,
    outcome: &str,
    code: Code,
) -> Result<Reply, Halt> {
    let proven = Lease::of(case.pinned, &lease.resource, lease.fence, lease.holder) == *lease;
    let kept =
        case.view.lease(stream)?.and_then(|row| row.outcomes.iter().find(|it| it.fence == lease.fence));
    let Some(kept) = kept.filter(|_| proven) else { return Ok(code.into()) };
    Ok(match case.view.payload(*stream, kept.sequence)? {
        None => Code::Erased.into(),
        Some(payload) if payload.text == outcome => Reply::Done { changed: false },
        Some(_) => Code::OutcomeFinal.into(),
    })
}

pub(crate) fn interrupt(case: &mut Case<'_>, interrupt: &InterruptLease) -> Result<Reply, Halt> {
    let lease = &interrupt.lease;
    let row = match holds(case, lease)? {
        Ok(row) => row,
        Err(code) => return Ok(code.into()),
    };
    let body = Body::LeaseInterrupted(Ended { fence: lease.fence }, Nothing {});
    case.record(stream(case.pinned, &lease.resource), Refs::NONE, body);
    leave(case, &row, lease.fence)?;
    Ok(Reply::Done { changed: true })
}

/// Ends every lease on a resource: what was done under them is done.
pub(crate) fn end_all(case: &mut Case<'_>, resource: &Resource) -> Result<(), Halt> {
    let row = case.view.lease(&stream(case.pinned, resource))?;
    let fences: Vec<u64> = row.into_iter().flat_map(|row| &row.holders).map(|it| it.fence).collect();
    end(case, resource, &fences);
    Ok(())
}

/// Records that these leases on a resource are over.
pub(super) fn end(case: &mut Case<'_>, resource: &Resource, fences: &[u64]) {
    let stream = stream(case.pinned, resource);
    for fence in fences {
        case.record(stream, Refs::NONE, Body::LeaseInterrupted(Ended { fence: *fence }, Nothing {}));
    }
}

/// Records what leases of a resource are over, as somebody who swept or met it
/// has seen.
pub(crate) fn lapse(case: &mut Case<'_>, stream: &StreamId) -> Result<Reply, Halt> {
    let Some(row) = case.view.lease(stream)?.cloned() else { return Ok(Reply::Done { changed: false }) };
    Ok(Reply::Done { changed: record_lapses(case, stream, &row)? })
}

/// Whether whoever had a resource is gone, and nobody has recorded that.
pub(crate) fn is_abandoned(case: &Case<'_>, resource: &Resource) -> Result<bool, Halt> {
    let row = case.view.lease(&stream(case.pinned, resource))?;
    Ok(row.is_some_and(|row| row.is_abandoned(case.now)))
}

/// Records which leases on a resource are over.
pub(crate) fn record_lapses_on(case: &mut Case<'_>, resource: &Resource) -> Result<(), Halt> {
    lapse(case, &stream(case.pinned, resource)).map(drop)
}

/// Ends the live leases on a resource, but for one.
pub(crate) fn end_others(case: &mut Case<'_>, resource: &Resource, own: Option<u64>) -> Result<(), Halt> {
    let row = case.view.lease(&stream(case.pinned, resource))?;
    let live = row.into_iter().flat_map(|row| row.live(case.now)).map(|live| live.fence);
    let others: Vec<u64> = live.filter(|fence| Some(*fence) != own).collect();
    end(case, resource, &others);
    Ok(())
}

/// Records which leases are over. The run or task that the resource is, if it is
/// one, is interrupted if nobody is left. `false`: none is over.
pub(super) fn record_lapses(case: &mut Case<'_>, stream: &StreamId, row: &LeaseRow) -> Result<bool, Halt> {
    let over: Vec<u64> = row.lapsed(case.now).map(|holder| holder.fence).collect();
    if let Some(stream) = row.interrupts.filter(|_| row.is_abandoned(case.now)) {
        match stream.kind {
            StreamKind::Task => task::interrupt(case, stream)?,
            _ => run::interrupt(case, RunId(stream.name))?,
        }
    }
    for fence in &over {
        case.record(*stream, Refs::NONE, Body::LeaseLapsed(Ended { fence: *fence }, Nothing {}));
    }
    Ok(!over.is_empty())
}
