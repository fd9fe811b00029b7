//! Preparing a handoff, accepting it, withdrawing it.

use crate::action::Principal;
use crate::approval::{Identity, unheard};
use crate::case::Case;
use crate::code::Code;
use crate::handoff::event::{Accepted, HandoffState, Prepared, PreparedSealed, Withdrawn};
use crate::handoff::row::{HandoffRow, prepared_key};
use crate::hash::Hash;
use crate::id::HolderKey;
use crate::journal::{Body, Refs};
use crate::json::{self, Limits, Value};
use crate::lease::{self, Lease, LeaseRow, Resource};
use crate::limits;
use crate::operation::event::PersonSaid;
use crate::reply::{Refusal, Reply};
use crate::run::{self, event::AskedBy};
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::{Halt, Pinned, Range, Read};

/// Prepare a handoff.
#[derive(Debug, Clone)]
pub struct PrepareHandoff {
    /// What is handed over.
    pub resource: Resource,
    /// Digest of the receipt that names it, once and for ever.
    pub receipt: Hash,
    /// What the next holder goes on from: an object, as canonical JSON.
    pub facts: String,
    /// On whose word.
    pub by: Giver,
    /// Who asks.
    pub principal: Principal,
}

/// On whose word a resource is handed over.
#[derive(Debug, Clone)]
pub enum Giver {
    /// Of whoever has it.
    Holder(Lease),
    /// Of an operator, where whoever has it cannot say so.
    Operator {
        /// The person.
        person: Identity,
        /// Why; not empty.
        reason: String,
    },
}

/// Accept a handoff: the resource is held by this holder from then on.
#[derive(Debug, Clone)]
pub struct AcceptHandoff {
    /// What is handed over.
    pub resource: Resource,
    /// The receipt's digest.
    pub receipt: Hash,
    /// Who accepts it: random for each process.
    pub holder: HolderKey,
    /// The new lease, unless it is renewed.
    pub length: Span,
    /// Who asks.
    pub principal: Principal,
}

/// Let nobody accept a handoff any more.
#[derive(Debug, Clone)]
pub struct WithdrawHandoff {
    /// What would be handed over.
    pub resource: Resource,
    /// The receipt's digest.
    pub receipt: Hash,
    /// On whose word.
    pub by: Giver,
}

pub(crate) fn prepare(case: &mut Case<'_>, prepare: &PrepareHandoff) -> Result<Reply, Halt> {
    let PrepareHandoff { resource, receipt, facts, by, principal } = prepare;
    let is_object = matches!(json::read_canonical(facts, &Limits::DATA), Ok(Value::Object(_)));
    if !is_object || facts.len() > limits::RESULT_BYTES {
        return Ok(Code::FactsInvalid.into());
    }
    if !principal.is_fit() {
        return Ok(Refusal { field: Some("principal"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let stream = case.pinned.tenant.handoff(*receipt);
    let blinded = lease::blinded(case.pinned, resource);
    if let Some(row) = case.view.handoff(&stream)? {
        return repeated(case, row, stream, prepare);
    }
    let giver = match heard(case, resource, by)? {
        Ok(said) => said,
        Err(code) => return Ok(code.into()),
    };
    if let Some(run) = resource.of_run()
        && let Some(code) = run::unliving(case, run)?
    {
        return Ok(code.into());
    }
    if lease::is_left(case, resource)? {
        return Ok(Code::TaskNotTaken.into());
    }
    let fence = match leases(case, resource)? {
        // Others hold it too, and none of them alone hands it over.
        Some(row) if row.live(case.now).count() > 1 => return Ok(Code::LeaseHeld.into()),
        Some(row) => row.fence,
        None => 0,
    };
    for other in case.view.range(&prepared(blinded))? {
        let is_stale = case.view.handoff(&other)?.is_some_and(|other| other.fence != fence);
        if !is_stale {
            return Ok(Code::HandoffPrepared.into());
        }
        // The resource went to somebody else since: nobody could accept it.
        let nobody = PersonSaid { person: None, reason: None };
        case.record(other, Refs::NONE, Body::HandoffWithdrawn(Withdrawn { proof: None }, nobody));
    }
    let payload = case.payload(facts);
    let sealed = PreparedSealed {
        agent: Some(principal.agent.clone()),
        facts: Some(payload.hash()),
        person: giver.as_ref().map(|(person, _)| person.to_string()),
        reason: giver.as_ref().map(|(_, reason)| reason.clone()),
        receipt: Some(*receipt),
        resource: Some(resource.to_string()),
        user: principal.user.clone(),
    };
    let proof = giver.map(|(person, _)| person.proof);
    let body = Body::HandoffPrepared(Prepared { fence, proof, resource: blinded }, sealed);
    case.record_with(stream, Refs::NONE, body, Some(payload));
    Ok(Reply::Done { changed: true })
}

/// A receipt that was used before: the same is as it was, while it can be accepted.
fn repeated(
    case: &Case<'_>,
    row: &HandoffRow,
    stream: StreamId,
    prepare: &PrepareHandoff,
) -> Result<Reply, Halt> {
    let PrepareHandoff { resource, facts, .. } = prepare;
    let blinded = lease::blinded(case.pinned, resource);
    let fence = leases(case, resource)?.map_or(0, |lease| lease.fence);
    Ok(match case.view.payload(stream, 1)? {
        None => Code::Erased.into(),
        Some(payload) if row.resource == blinded && payload.text == *facts => match row.state {
            HandoffState::Prepared if row.fence != fence => Code::HandoffStale.into(),
            HandoffState::Prepared => Reply::Done { changed: false },
            HandoffState::Accepted | HandoffState::Withdrawn => Code::HandoffOver.into(),
        },
        Some(_) => Code::HandoffConflict.into(),
    })
}

pub(crate) fn accept(case: &mut Case<'_>, accept: &AcceptHandoff) -> Result<Reply, Halt> {
    let AcceptHandoff { resource, receipt, holder, length, principal } = accept;
    let field = match () {
        () if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(length) => Some("length"),
        () if !principal.is_fit() => Some("principal"),
        () => None,
    };
    if field.is_some() {
        return Ok(Refusal { field, ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let stream = case.pinned.tenant.handoff(*receipt);
    let row = match find(case, &stream, resource)? {
        Ok(row) => row,
        Err(code) => return Ok(code.into()),
    };
    let lease = leases(case, resource)?;
    let holder = case.pinned.tenant.holder(*holder);
    match row.state {
        HandoffState::Prepared => {}
        // An answer that was lost is given again: the lease that followed on the one
        // it was prepared of, and none that its holder took since.
        HandoffState::Accepted if row.holder == Some(holder) => {
            let own = lease::live_of(case, resource, holder)?.filter(|own| own.lease.fence == row.fence + 1);
            return Ok(own.map_or(Code::HandoffOver.into(), |own| Reply::Lease(Box::new(own))));
        }
        HandoffState::Accepted | HandoffState::Withdrawn => return Ok(Code::HandoffOver.into()),
    }
    if lease.as_ref().map_or(0, |lease| lease.fence) != row.fence {
        return Ok(Code::HandoffStale.into());
    }
    if let Some(run) = resource.of_run()
        && let Some(code) = run::unliving(case, run)?
    {
        return Ok(code.into());
    }
    if lease::is_left(case, resource)? {
        return Ok(Code::TaskNotTaken.into());
    }
    let given = match lease::hand_over(case, resource, holder, *length)? {
        Ok(given) => given,
        Err(held) => return Ok(held.into()),
    };
    let by = AskedBy { agent: Some(principal.agent.clone()), user: principal.user.clone() };
    let data = Accepted { fence: given.lease.fence, holder };
    case.record(stream, Refs::NONE, Body::HandoffAccepted(data, by));
    Ok(Reply::Lease(Box::new(given)))
}

pub(crate) fn withdraw(case: &mut Case<'_>, withdraw: &WithdrawHandoff) -> Result<Reply, Halt> {
    let WithdrawHandoff { resource, receipt, by } = withdraw;
    let stream = case.pinned.tenant.handoff(*receipt);
    let row = match find(case, &stream, resource)? {
        Ok(row) => row,
        Err(code) => return Ok(code.into()),
    };
    match row.state {
        HandoffState::Prepared => {}
        HandoffState::Withdrawn => return Ok(Reply::Done { changed: false }),
        HandoffState::Accepted => return Ok(Code::HandoffOver.into()),
    }
    let giver = match heard(case, resource, by)? {
        Ok(giver) => giver,
        Err(code) => return Ok(code.into()),
    };
    let proof = giver.as_ref().map(|(person, _)| person.proof);
    let (person, reason) = giver.map(|(person, reason)| (person.to_string(), reason)).unzip();
    let body = Body::HandoffWithdrawn(Withdrawn { proof }, PersonSaid { person, reason });
    case.record(stream, Refs::NONE, body);
    Ok(Reply::Done { changed: true })
}

/// A handoff of this resource.
fn find<'a>(
    case: &Case<'a>,
    stream: &StreamId,
    resource: &Resource,
) -> Result<Result<&'a HandoffRow, Code>, Halt> {
    let row = case.view.handoff(stream)?;
    let of_it = row.filter(|row| row.resource == lease::blinded(case.pinned, resource));
    Ok(of_it.ok_or(Code::HandoffUnknown))
}

/// Whether this word counts for the resource: who said it, if a person did.
fn heard(
    case: &mut Case<'_>,
    resource: &Resource,
    by: &Giver,
) -> Result<Result<Option<(Identity, String)>, Code>, Halt> {
    Ok(match by {
        Giver::Holder(lease) if lease.resource != *resource => Err(Code::LeaseFenced),
        Giver::Holder(lease) => lease::holds(case, lease)?.map(|_| None),
        Giver::Operator { person, reason } => match unheard(case, person, reason)? {
            Some(code) => Err(code),
            None => Ok(Some((person.clone(), reason.clone()))),
        },
    })
}

fn leases<'a>(case: &Case<'a>, resource: &Resource) -> Result<Option<&'a LeaseRow>, Halt> {
    case.view.lease(&case.pinned.tenant.lease(&resource.to_string()))
}

/// The handoff that is prepared of a resource, named blinded; one at most.
#[must_use]
pub fn prepared(resource: Hash) -> Range {
    Range::equal(prepared_key(resource))
}

/// What is read to prepare or withdraw a handoff.
pub(crate) fn prepare_reads(pinned: &Pinned, resource: &Resource, receipt: Hash) -> Vec<Read> {
    let mut reads = vec![
        Read::Stream(pinned.tenant.handoff(receipt)),
        Read::Range(prepared(lease::blinded(pinned, resource))),
        lease::read(pinned, resource),
    ];
    reads.extend(lease::run_reads(pinned, resource));
    reads
}

/// What is read to accept one.
pub(crate) fn accept_reads(pinned: &Pinned, accept: &AcceptHandoff) -> Vec<Read> {
    let mut reads =
        vec![Read::Stream(pinned.tenant.handoff(accept.receipt)), lease::read(pinned, &accept.resource)];
    reads.extend(lease::run_reads(pinned, &accept.resource));
    reads
}
