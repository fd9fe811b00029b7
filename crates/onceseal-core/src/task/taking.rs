//! Taking the task that is next.

use crate::action::Principal;
use crate::case::Case;
use crate::code::Code;
use crate::id::{HolderKey, RunId};
use crate::journal::{Body, Refs};
use crate::lease::{self, Resource};
use crate::limits;
use crate::reply::{LeaseNow, Refusal, Reply, TaskNow};
use crate::run::{self, event::AskedBy};
use crate::stream::StreamId;
use crate::task::claims::Claimed;
use crate::task::event::TaskTaken;
use crate::task::queue::{FURTHEST, NEAREST, at_work, in_line};
use crate::task::{TaskRow, TaskState};
use crate::time::Span;
use crate::view::{Halt, Pinned, Range, Read};

/// Take the task of a run that is next: with the lease on it.
#[derive(Debug, Clone)]
pub struct TakeTask {
    /// The run.
    pub run: RunId,
    /// Who takes it: random for each process.
    pub holder: HolderKey,
    /// Whether a task that this holder is at is given again, and no other: the answer
    /// may have been lost. A holder that was just drawn is at none.
    pub again: bool,
    /// The lease on it, unless it is renewed.
    pub length: Span,
    /// Who works on it.
    pub principal: Principal,
}

pub(crate) fn take(case: &mut Case<'_>, take: &TakeTask) -> Result<Reply, Halt> {
    let TakeTask { run, length, principal, .. } = take;
    let field = match () {
        () if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(length) => Some("length"),
        () if !principal.is_fit() => Some("principal"),
        () => None,
    };
    if field.is_some() {
        return Ok(Refusal { field, ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let Some((_, row)) = run::met(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    let working = tasks(case, &at_work(*run))?;
    if take.again
        && let Some((stream, task, lease)) = own(case, take, &working)?
    {
        return given(case, stream, task, lease);
    }
    let none = |why: &str| Ok(Refusal { detail: Some(why.to_owned()), ..Refusal::new(Code::NoTask) }.into());
    if case.pinned.definition(row.definition)?.is_idle(&row.state) {
        return none("the run is idle");
    }
    let Some(plan) = case.view.plan(&case.pinned.tenant.plan(*run))? else { return none("no plan") };
    if working.len() as u64 >= u64::from(plan.capacity) {
        return none("capacity");
    }
    for most in [NEAREST, FURTHEST] {
        let line = tasks(case, &in_line(*run, most))?;
        let is_all = line.len() < most;
        match first(&working, &line) {
            Some((stream, task, id)) => return begin(case, take, stream, &task, id),
            None if is_all => return none(if line.is_empty() { "nothing is queued" } else { "conflicts" }),
            None => {}
        }
    }
    none("conflicts")
}

/// The first in line that has room beside those at work. Whoever is before it in
/// line and has none keeps its place: nobody who would be in its way overtakes.
fn first(
    working: &[(StreamId, TaskRow)],
    line: &[(StreamId, TaskRow)],
) -> Option<(StreamId, TaskRow, String)> {
    let mut claimed = Claimed::default();
    working.iter().for_each(|(_, task)| claimed.add(&task.claims));
    for (stream, task) in line {
        // One whose attempts are spent waits for a person, and nobody for it.
        let Some(id) = task.private.id.clone().filter(|_| task.attempts_left() > 0) else { continue };
        if claimed.has_room_for(&task.claims) {
            return Some((*stream, task.clone(), id));
        }
        claimed.add(&task.claims);
    }
    None
}

fn begin(
    case: &mut Case<'_>,
    take: &TakeTask,
    stream: StreamId,
    task: &TaskRow,
    id: String,
) -> Result<Reply, Halt> {
    let TakeTask { run, holder, length, principal, again: _ } = take;
    if case.view.payload(stream, task.spec_at)?.is_none() {
        return Ok(Code::Erased.into());
    }
    let holder = case.pinned.tenant.holder(*holder);
    let lease = match lease::hand_over(case, &Resource::Task(*run, id.clone()), holder, *length)? {
        Ok(lease) => lease,
        Err(held) => return Ok(held.into()),
    };
    let by = AskedBy { agent: Some(principal.agent.clone()), user: principal.user.clone() };
    let data = TaskTaken { fence: lease.lease.fence, holder };
    case.record(stream, Refs::NONE, Body::TaskTaken(data, by));
    given(case, stream, task, lease)
}

/// A task that its worker gets, as it stood before or has just been taken.
fn given(case: &Case<'_>, stream: StreamId, task: &TaskRow, lease: LeaseNow) -> Result<Reply, Halt> {
    let payload = case.view.payload(stream, task.spec_at)?;
    let (Some(payload), Some(id)) = (payload, task.private.id.clone()) else {
        return Ok(Code::Erased.into());
    };
    // What has just been taken is run.
    let state = if task.state == TaskState::Validating { task.state } else { TaskState::Running };
    let (phase, spec) = (task.phase_name().to_owned(), payload.text.clone());
    Ok(Reply::Task(Box::new(TaskNow { lease, task: id, state, phase, spec })))
}

/// The task that this holder is at, with the lease that it has.
fn own<'a>(
    case: &Case<'_>,
    take: &TakeTask,
    working: &'a [(StreamId, TaskRow)],
) -> Result<Option<(StreamId, &'a TaskRow, LeaseNow)>, Halt> {
    let named = working.iter().filter_map(|(stream, task)| {
        let resource = Resource::Task(take.run, task.private.id.clone()?);
        Some((*stream, task, resource))
    });
    let named: Vec<_> = named.collect();
    case.view.all(named.iter().map(|(.., resource)| lease::read(case.pinned, resource)))?;
    let holder = case.pinned.tenant.holder(take.holder);
    for (stream, task, resource) in named {
        if let Some(lease) = lease::live_of(case, &resource, holder)? {
            return Ok(Some((stream, task, lease)));
        }
    }
    Ok(None)
}

/// The tasks of a range.
fn tasks(case: &Case<'_>, range: &Range) -> Result<Vec<(StreamId, TaskRow)>, Halt> {
    let found = case.view.range(range)?;
    case.view.all(found.iter().map(|stream| Read::Stream(*stream)))?;
    let mut tasks = Vec::with_capacity(found.len());
    for stream in found {
        if let Some(task) = case.view.task(&stream)? {
            tasks.push((stream, task.clone()));
        }
    }
    Ok(tasks)
}

/// What is read to take a task.
pub(crate) fn reads(pinned: &Pinned, take: &TakeTask) -> Vec<Read> {
    vec![
        Read::Stream(StreamId::run(take.run)),
        lease::read(pinned, &Resource::Run(take.run)),
        Read::Stream(pinned.tenant.plan(take.run)),
        Read::Range(at_work(take.run)),
        Read::Range(in_line(take.run, NEAREST)),
    ]
}
