//! Setting a run's plan: what is unchanged goes on, what changed begins anew,
//! what is gone is closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::action::Principal;
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::{Body, Nothing, Refs};
use crate::json::{self, Object};
use crate::lease::{self, Lease, Resource};
use crate::limits;
use crate::reply::{Refusal, Reply};
use crate::run::event::{Answered, AskedBy};
use crate::run::{self, Proving, Request, RunRow, Standing, known_run};
use crate::stream::{StreamId, Tenant};
use crate::task::event::{Added, AddedSealed, Dropped, Planned, Renumbered};
use crate::task::row::number_key;
use crate::task::{Plan, Spec, TaskRow, TaskState, claims, moving, queue};
use crate::view::{Halt, Pinned, Range, Read};

/// Set a run's plan.
#[derive(Debug, Clone)]
pub struct PlanTasks {
    /// The run.
    pub run: RunId,
    /// The delivery revision that it is for.
    pub revision: u64,
    /// The plan.
    pub plan: Arc<Plan>,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
    /// The lease on the run under which it is asked.
    pub under: Option<Lease>,
}

pub(crate) fn plan(case: &mut Case<'_>, set: &PlanTasks) -> Result<Reply, Halt> {
    let PlanTasks { run, revision, plan, request, principal, under } = set;
    let mut arguments = Object::new();
    arguments.insert("plan", plan.digest().to_string());
    arguments.insert("revision", revision.to_string());
    let request = Request::new(case, request, "plan_tasks", &run.to_string(), principal, arguments);
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    let Some((_, row)) = known_run(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    if !principal.is_fit() {
        return Ok(Refusal { field: Some("principal"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    if let Some(lease) = under
        && !lease::is_of_run(case, lease, *run)?
    {
        return Ok(Code::LeaseFenced.into());
    }
    let Some((sequence, row)) = run::met(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    let now = Standing::of(sequence, &row);
    let answered = Answered { joined: false, run: *run, sequence, state: row.state.clone() };
    let digest = case.pinned.tenant.lookup(&plan.digest().to_string());
    match place(case, *run, &row, *revision, digest)? {
        Place::Taken => return Ok(request.answer(case, answered, now)),
        Place::None(code) => return Ok(code.into()),
        Place::Free => {}
    }
    replan(case, *run, &row, plan)?;
    let (capacity, tasks) = (plan.capacity(), u32::try_from(plan.tasks().len()).unwrap_or(u32::MAX));
    let data = Planned { capacity, plan: digest, revision: *revision, run: *run, tasks };
    let by = AskedBy { agent: Some(principal.agent.clone()), user: principal.user.clone() };
    case.record(case.pinned.tenant.plan(*run), Refs::NONE, Body::PlanSet(data, by));
    Ok(request.answer(case, answered, now))
}

/// Whether a plan may be set for this revision.
enum Place {
    Free,
    /// The same one is.
    Taken,
    None(Code),
}

/// A run with gates is planned for its newest delivery, once that is bound at every
/// gate that asks for proof. Revisions only grow.
fn place(case: &Case<'_>, run: RunId, row: &RunRow, revision: u64, digest: Hash) -> Result<Place, Halt> {
    let gates = case.pinned.definition(row.definition)?.gates();
    let mut proving = gates.iter().filter(|(_, gate)| gate.proof == Proving::Required);
    let is_bound = row.delivery_revision() == Some(revision)
        && proving.all(|(name, _)| row.revision_of(name) == Some(revision));
    let stored = case.view.plan(&case.pinned.tenant.plan(run))?;
    Ok(match stored.map(|stored| (stored.revision, stored.plan)) {
        _ if revision == 0 || revision > json::SAFE_INTEGER.unsigned_abs() => Place::None(Code::OutOfBounds),
        Some((set, plan)) if set == revision && plan == digest => Place::Taken,
        Some((set, _)) if set == revision => Place::None(Code::PlanConflict),
        Some((set, _)) if set > revision => Place::None(Code::DeliveryOld),
        _ if !gates.is_empty() && !is_bound => Place::None(Code::DeliveryUnbound),
        // Of those that were bound each followed on the one before.
        _ if !gates.is_empty() => Place::Free,
        set => limits::misses(revision, set.map(|(set, _)| set)).map_or(Place::Free, Place::None),
    })
}

fn replan(case: &mut Case<'_>, run: RunId, row: &RunRow, plan: &Plan) -> Result<(), Halt> {
    let tenant = &case.pinned.tenant;
    let streams: Vec<_> = plan.tasks().iter().map(|spec| tenant.task(run, &spec.id)).collect();
    let before = case.view.range(&of_run(run))?;
    let all = streams.iter().chain(&before).map(|stream| Read::Stream(*stream));
    case.view.all(all)?;
    // Each after what it depends on: whatever rests on something that changed
    // begins anew too.
    let mut kept = vec![false; streams.len()];
    for number in plan.order().iter().copied() {
        let (spec, stream) = (&plan.tasks()[number], streams[number]);
        let old = case.view.task(&stream)?;
        let on = plan.dependencies(number);
        let is_same = |old: &&TaskRow| old.state != TaskState::Closed && old.spec == blinded(tenant, spec);
        kept[number] = old.filter(is_same).is_some() && on.iter().all(|on| kept[*on]);
    }
    let planned: BTreeSet<_> = streams.iter().copied().collect();
    let gone: Vec<_> = before.into_iter().filter(|stream| !planned.contains(stream)).collect();
    let changed = (0..streams.len()).filter(|number| !kept[*number]).map(|number| streams[number]);
    let stopped: Vec<_> = gone.iter().copied().chain(changed).collect();
    stop(case, run, &stopped)?;
    for (number, spec) in plan.tasks().iter().enumerate() {
        let stream = streams[number];
        let old = case.view.task(&stream)?;
        let place = u32::try_from(number).unwrap_or(u32::MAX);
        if kept[number] {
            if old.is_some_and(|old| old.number != place) {
                let body = Body::TaskRenumbered(Renumbered { number: place }, Nothing {});
                case.record(stream, Refs::NONE, body);
            }
            continue;
        }
        let mut may_begin = true;
        for on in plan.dependencies(number) {
            let verified = case.view.task(&streams[*on])?.is_some_and(|on| on.state == TaskState::Verified);
            may_begin &= kept[*on] && verified;
        }
        let payload = case.payload(spec.text());
        let data = Added {
            attempts: spec.attempts,
            claims: claims::of(tenant, run, row.root, spec),
            depends_on: plan.dependencies(number).iter().map(|on| streams[*on]).collect(),
            number: place,
            phases: spec.phases.clone(),
            run,
            spec: blinded(tenant, spec),
            state: if may_begin { TaskState::Queued } else { TaskState::Pending },
        };
        let sealed = AddedSealed { id: Some(spec.id.clone()), text: Some(payload.hash()) };
        case.record_with(stream, Refs::NONE, Body::TaskAdded(data, sealed), Some(payload));
    }
    for stream in gone {
        if case.view.task(&stream)?.is_some_and(|task| task.state != TaskState::Closed) {
            case.record(stream, Refs::NONE, Body::TaskDropped(Dropped {}, Nothing {}));
        }
    }
    Ok(())
}

/// Ends the leases of those that are worked on: whatever their workers still
/// report is of a plan that is over.
fn stop(case: &mut Case<'_>, run: RunId, tasks: &[StreamId]) -> Result<(), Halt> {
    let mut held = Vec::new();
    for stream in tasks {
        let Some(task) = case.view.task(stream)?.filter(|task| task.state.is_worked_on()) else { continue };
        let Some(id) = task.private.id.clone() else { continue };
        held.push(Resource::Task(run, id));
    }
    let reads: Vec<_> = held.iter().map(|resource| lease::read(case.pinned, resource)).collect();
    case.view.all(reads)?;
    held.iter().try_for_each(|resource| lease::end_all(case, resource))
}

/// Ends the work on every task of a run, which has ended: none is in line any more.
pub(crate) fn stop_all(case: &mut Case<'_>, run: RunId) -> Result<(), Halt> {
    let tasks = case.view.range(&queue::at_work(run))?;
    case.view.all(tasks.iter().map(|stream| Read::Stream(*stream)))?;
    stop(case, run, &tasks)?;
    tasks.into_iter().try_for_each(|stream| moving::left(case, stream).map(drop))
}

fn blinded(tenant: &Tenant, spec: &Spec) -> Hash {
    tenant.lookup(&spec.digest().to_string())
}

/// Every task that was ever in a plan of the run, by its number.
#[must_use]
pub fn of_run(run: RunId) -> Range {
    let key = |number| number_key(run, number);
    Range { index: key(0).index, from: key(0).bytes, to: key(u32::MAX).bytes, limit: usize::MAX }
}

/// What is read to set a plan.
pub(crate) fn reads(pinned: &Pinned, set: &PlanTasks) -> Vec<Read> {
    let tenant = &pinned.tenant;
    let mut reads = vec![
        Read::Stream(tenant.request(&set.run.to_string(), &set.request)),
        Read::Stream(StreamId::run(set.run)),
        lease::read(pinned, &Resource::Run(set.run)),
        Read::Stream(tenant.plan(set.run)),
        Read::Range(of_run(set.run)),
    ];
    reads.extend(set.plan.tasks().iter().map(|spec| Read::Stream(tenant.task(set.run, &spec.id))));
    reads
}
