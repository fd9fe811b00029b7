//! Taking a lease, from nobody, beside others, or from whoever has it.

use crate::approval::{Identity, unheard};
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::{HolderId, HolderKey};
use crate::journal::{Body, Refs};
use crate::lease::Resource;
use crate::lease::event::{Preempted, Taken, TakenSealed};
use crate::lease::hold::{self, Lease};
use crate::lease::row::{Holder, LeaseRow, below_key};
use crate::limits;
use crate::operation::event::PersonSaid;
use crate::reply::{Held, LeaseNow, Refusal, Reply};
use crate::run;
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::{Halt, Pinned, Range, Read};

/// Take a resource.
#[derive(Debug, Clone)]
pub struct AcquireLease {
    /// What is taken.
    pub resource: Resource,
    /// Who takes it: random for each process, so that none is taken for another.
    pub holder: HolderKey,
    /// For how long, unless it is renewed.
    pub length: Span,
    /// Whether others may hold it too who take it so.
    pub shared: bool,
    /// Take it from whoever has it, a part of it, or what it is a part of.
    pub preempt: Option<Preempt>,
}

/// An operator's word that a resource is taken from whoever has it.
#[derive(Debug, Clone)]
pub struct Preempt {
    /// Who says so.
    pub person: Identity,
    /// Why; not empty.
    pub reason: String,
}

pub(crate) fn acquire(case: &mut Case<'_>, acquire: &AcquireLease) -> Result<Reply, Halt> {
    let AcquireLease { resource, holder, length, shared, preempt } = acquire;
    if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(length) {
        return Ok(Code::OutOfBounds.into());
    }
    if let Some(Preempt { person, reason }) = preempt
        && let Some(code) = unheard(case, person, reason)?
    {
        return Ok(code.into());
    }
    if let Some(run) = resource.of_run()
        && let Some(code) = run::unliving(case, run)?
    {
        return Ok(code.into());
    }
    let holder = case.pinned.tenant.holder(*holder);
    let stream = stream(case.pinned, resource);
    let row = case.view.lease(&stream)?;
    // Whoever holds it already gets what it has, if that is not less than is asked.
    let is_own = |live: &&Holder| live.holder == holder && (*shared || !live.shared);
    let own = row.and_then(|row| row.live(case.now).find(is_own));
    if let (Some(own), None) = (own, preempt) {
        return Ok(Reply::Lease(Box::new(now(case, resource, own))));
    }
    if is_left(case, resource)? || (matches!(resource, Resource::Task(..)) && preempt.is_none()) {
        return Ok(Code::TaskNotTaken.into());
    }
    let fence = row.map_or(0, |row| row.fence) + 1;
    let met = met(case, resource)?;
    let blocks = |live: &&Holder| !(live.shared && *shared);
    if preempt.is_none()
        && let Some(held) = met.iter().find_map(|(_, row)| held(row, row.live(case.now).find(blocks)))
    {
        return Ok(held.into());
    }
    // What is taken from somebody is recorded as over: no clock that goes back
    // makes it live beside this one.
    for (met, row) in &met {
        hold::record_lapses(case, met, row)?;
        if let (Some(Preempt { person, reason }), true) = (preempt, row.live(case.now).next().is_some()) {
            let said = PersonSaid { person: Some(person.to_string()), reason: Some(reason.clone()) };
            case.record(*met, Refs::NONE, Body::LeasePreempted(Preempted { proof: person.proof }, said));
        }
    }
    let taken = Holder { fence, holder, shared: *shared, until: case.now + *length };
    Ok(Reply::Lease(Box::new(give(case, resource, &taken))))
}

/// Records that a holder takes a resource on which no lease is left.
fn give(case: &mut Case<'_>, resource: &Resource, taken: &Holder) -> LeaseNow {
    let Holder { fence, holder, shared, until } = *taken;
    let data = Taken {
        above: resource.above().map(|above| blinded(case.pinned, &above)).collect(),
        fence,
        holder,
        interrupts: resource.interrupts(&case.pinned.tenant),
        shared,
        until,
    };
    let sealed = TakenSealed { resource: Some(resource.to_string()) };
    case.record(stream(case.pinned, resource), Refs::NONE, Body::LeaseTaken(data, sealed));
    now(case, resource, taken)
}

/// Gives a resource to a holder, alone: whoever has it has it no more. Whoever has
/// something above or below it is in the way.
pub(crate) fn hand_over(
    case: &mut Case<'_>,
    resource: &Resource,
    holder: HolderId,
    length: Span,
) -> Result<Result<LeaseNow, Refusal>, Halt> {
    let own = stream(case.pinned, resource);
    let met = met(case, resource)?;
    let mut others = met.iter().filter(|(met, _)| *met != own);
    if let Some(held) = others.find_map(|(_, row)| held(row, row.live(case.now).next())) {
        return Ok(Err(held));
    }
    let mut fence = 1;
    for (met, row) in &met {
        hold::record_lapses(case, met, row)?;
        if *met == own {
            fence = row.fence + 1;
            let live: Vec<u64> = row.live(case.now).map(|live| live.fence).collect();
            hold::end(case, resource, &live);
        }
    }
    Ok(Ok(give(case, resource, &Holder { fence, holder, shared: false, until: case.now + length })))
}

/// The refusal of what somebody holds.
fn held(row: &LeaseRow, by: Option<&Holder>) -> Option<Refusal> {
    let held = Held { resource: row.private.resource.clone(), by: by?.clone() };
    Some(Refusal { held: Some(Box::new(held)), ..Refusal::new(Code::LeaseHeld) })
}

/// Whether it is a task that nobody is at. A lease on it would keep it from whoever
/// takes tasks, and would move nothing on.
pub(crate) fn is_left(case: &Case<'_>, resource: &Resource) -> Result<bool, Halt> {
    if !matches!(resource, Resource::Task(..)) {
        return Ok(false);
    }
    let row = case.view.lease(&stream(case.pinned, resource))?;
    Ok(row.is_none_or(|row| row.live(case.now).next().is_none()))
}

/// The lease that a holder has on a resource.
pub(crate) fn live_of(
    case: &Case<'_>,
    resource: &Resource,
    holder: HolderId,
) -> Result<Option<LeaseNow>, Halt> {
    let row = case.view.lease(&stream(case.pinned, resource))?;
    let own = row.and_then(|row| row.live(case.now).find(|live| live.holder == holder));
    Ok(own.map(|own| now(case, resource, own)))
}

/// What is read of a resource.
pub(crate) fn read(pinned: &Pinned, resource: &Resource) -> Read {
    Read::Stream(stream(pinned, resource))
}

/// A lease, as its holder gets it.
fn now(case: &Case<'_>, resource: &Resource, of: &Holder) -> LeaseNow {
    let lease = Lease::of(case.pinned, resource, of.fence, of.holder);
    LeaseNow { lease, shared: of.shared, until: of.until }
}

/// What is held of the resource, of what is above it and of what is below it.
/// All of it is asked for at once, however much is below.
fn met(case: &Case<'_>, resource: &Resource) -> Result<Vec<(StreamId, LeaseRow)>, Halt> {
    let mut streams = vec![stream(case.pinned, resource)];
    streams.extend(resource.above().map(|above| stream(case.pinned, &above)));
    streams.extend(case.view.range(&below(case.pinned, resource))?);
    case.view.all(streams.iter().copied().map(Read::Stream))?;
    let mut met = Vec::new();
    for stream in streams {
        met.extend(case.view.lease(&stream)?.map(|row| (stream, row.clone())));
    }
    Ok(met)
}

/// The stream of a resource.
pub(super) fn stream(pinned: &Pinned, resource: &Resource) -> StreamId {
    pinned.tenant.lease(&resource.to_string())
}

/// A resource by which things are found that concern it.
pub(crate) fn blinded(pinned: &Pinned, resource: &Resource) -> Hash {
    pinned.tenant.lookup(&resource.to_string())
}

/// What is held of the parts of a resource.
fn below(pinned: &Pinned, resource: &Resource) -> Range {
    Range { limit: usize::MAX, ..Range::equal(below_key(blinded(pinned, resource))) }
}

/// What is read to take a resource.
pub(crate) fn reads(pinned: &Pinned, acquire: &AcquireLease) -> Vec<Read> {
    let resource = &acquire.resource;
    let mut reads = vec![Read::Stream(stream(pinned, resource)), Read::Range(below(pinned, resource))];
    reads.extend(resource.above().map(|above| Read::Stream(stream(pinned, &above))));
    reads.extend(run_reads(pinned, resource));
    reads
}

/// What is read of the run of a resource, to see that it lives.
pub(crate) fn run_reads(pinned: &Pinned, resource: &Resource) -> impl Iterator<Item = Read> {
    let of_run = |run| [Read::Stream(StreamId::run(run)), read(pinned, &Resource::Run(run))];
    resource.of_run().map(of_run).into_iter().flatten()
}
