//! What whoever holds a lease may do with it, and how it ends.

use crate::case::{Case, Renewal};
use crate::code::Code;
use crate::id::HolderId;
use crate::journal::{Body, Nothing, Refs};
use crate::json::{self, Limits, Value};
use crate::lease::Resource;
use crate::lease::event::{Committed, CommittedSealed, Ended};
use crate::lease::row::LeaseRow;
use crate::lease::taking::stream;
use crate::limits;
use crate::reply::{LeaseNow, Reply};
use crate::run;
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::{Halt, Pinned};

/// What proves a lease: only its holder and the store can name it.
#[derive(Clone, PartialEq, Eq)]
pub struct Grip {
    /// What is held.
    pub resource: Resource,
    /// The lease's number.
    pub fence: u64,
    /// Whose it is.
    pub holder: HolderId,
    token: [u8; 16],
}

/// Without the token.
impl std::fmt::Debug for Grip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Grip { resource, fence, holder, .. } = self;
        f.debug_struct("Grip")
            .field("resource", resource)
            .field("fence", fence)
            .field("holder", holder)
            .finish_non_exhaustive()
    }
}

impl Grip {
    /// The token is HMAC-SHA-256 of the tenant's key over the stream, the fence
    /// and the holder: it need not be stored to be looked at.
    pub(super) fn of(pinned: &Pinned, resource: &Resource, fence: u64, holder: HolderId) -> Grip {
        let name = stream(pinned, resource).name;
        let parts: [&[u8]; 4] = [b"lease\0", &name, &fence.to_be_bytes(), &holder.0];
        let mut token = [0; 16];
        token.copy_from_slice(&pinned.tenant.key.mac(&parts)[..16]);
        Grip { resource: resource.clone(), fence, holder, token }
    }

    /// A grip that was handed on as text.
    #[must_use]
    pub const fn handed_on(resource: Resource, fence: u64, holder: HolderId, token: [u8; 16]) -> Grip {
        Grip { resource, fence, holder, token }
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
    pub grip: Grip,
    /// So long from now.
    pub lease: Span,
}

/// Give a lease up with an outcome, which is final.
#[derive(Debug, Clone)]
pub struct CommitLease {
    /// The lease.
    pub grip: Grip,
    /// The outcome: an object, as canonical JSON.
    pub outcome: String,
}

/// Give a lease up without an outcome.
#[derive(Debug, Clone)]
pub struct InterruptLease {
    /// The lease.
    pub grip: Grip,
}

/// The resource's row, if the lease is live. Whoever cannot name the token holds
/// nothing.
pub(crate) fn holds(case: &Case<'_>, grip: &Grip) -> Result<Result<LeaseRow, Code>, Halt> {
    if Grip::of(case.pinned, &grip.resource, grip.fence, grip.holder).token != grip.token {
        return Ok(Err(Code::LeaseFenced));
    }
    let Some(row) = case.view.lease(&stream(case.pinned, &grip.resource))? else {
        return Ok(Err(Code::LeaseFenced));
    };
    let is_live = row.live(case.now).any(|live| (live.fence, live.holder) == (grip.fence, grip.holder));
    Ok(if is_live { Ok(row.clone()) } else { Err(Code::LeaseFenced) })
}

pub(crate) fn renew(case: &mut Case<'_>, renew: &RenewLease) -> Result<Reply, Halt> {
    let RenewLease { grip, lease } = renew;
    if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(lease) {
        return Ok(Code::OutOfBounds.into());
    }
    let row = match holds(case, grip)? {
        Ok(row) => row,
        Err(code) => return Ok(code.into()),
    };
    let until = case.now + *lease;
    let shared = row.lease(grip.fence).is_some_and(|lease| lease.shared);
    let stream = stream(case.pinned, &grip.resource);
    case.renewals.push(Renewal { stream, fence: grip.fence, lease_until: until });
    Ok(Reply::Lease(Box::new(LeaseNow { grip: grip.clone(), shared, until })))
}

pub(crate) fn commit(case: &mut Case<'_>, commit: &CommitLease) -> Result<Reply, Halt> {
    let CommitLease { grip, outcome } = commit;
    let is_object = matches!(json::read_canonical(outcome, &Limits::DATA), Ok(Value::Object(_)));
    if !is_object || outcome.len() > limits::RESULT_BYTES {
        return Ok(Code::OutcomeInvalid.into());
    }
    let stream = stream(case.pinned, &grip.resource);
    match holds(case, grip)? {
        Ok(_) => {}
        Err(code) => return repeated(case, &stream, grip, outcome, code),
    }
    let payload = case.payload(outcome);
    let sealed = CommittedSealed { outcome: Some(payload.hash()) };
    let body = Body::LeaseCommitted(Committed { fence: grip.fence }, sealed);
    case.record_with(stream, Refs::NONE, body, Some(payload));
    Ok(Reply::Done { changed: true })
}

/// A commit of a lease that is over: the same outcome is answered as the first
/// time.
fn repeated(
    case: &Case<'_>,
    stream: &StreamId,
    grip: &Grip,
    outcome: &str,
    code: Code,
) -> Result<Reply, Halt> {
    let proven = Grip::of(case.pinned, &grip.resource, grip.fence, grip.holder) == *grip;
    let kept = case.view.lease(stream)?.and_then(|row| row.outcomes.iter().find(|it| it.fence == grip.fence));
    let Some(kept) = kept.filter(|_| proven) else { return Ok(code.into()) };
    Ok(match case.view.payload(*stream, kept.sequence)? {
        None => Code::Erased.into(),
        Some(payload) if payload.text == outcome => Reply::Done { changed: false },
        Some(_) => Code::OutcomeFinal.into(),
    })
}

pub(crate) fn interrupt(case: &mut Case<'_>, interrupt: &InterruptLease) -> Result<Reply, Halt> {
    let grip = &interrupt.grip;
    if let Err(code) = holds(case, grip)? {
        return Ok(code.into());
    }
    let body = Body::LeaseInterrupted(Ended { fence: grip.fence }, Nothing {});
    case.record(stream(case.pinned, &grip.resource), Refs::NONE, body);
    Ok(Reply::Done { changed: true })
}

/// Records what leases of a resource are over, as somebody who swept or met it
/// has seen.
pub(crate) fn lapse(case: &mut Case<'_>, stream: &StreamId) -> Result<Reply, Halt> {
    let Some(row) = case.view.lease(stream)?.cloned() else { return Ok(Reply::Done { changed: false }) };
    Ok(Reply::Done { changed: record_lapses(case, stream, &row)? })
}

/// Records which leases are over. The run that the resource is, if it is one, is
/// interrupted if nobody is left. `false`: none is over.
pub(super) fn record_lapses(case: &mut Case<'_>, stream: &StreamId, row: &LeaseRow) -> Result<bool, Halt> {
    let over: Vec<u64> = row.lapsed(case.now).map(|holder| holder.fence).collect();
    if let (Some(run), false, None) = (row.run, over.is_empty(), row.live(case.now).next()) {
        run::interrupt(case, run)?;
    }
    for fence in &over {
        case.record(*stream, Refs::NONE, Body::LeaseLapsed(Ended { fence: *fence }, Nothing {}));
    }
    Ok(!over.is_empty())
}
