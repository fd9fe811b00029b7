//! Moving a task on: by facts, not by claims.

use crate::action::Principal;
use crate::approval::{Identity, unheard};
use crate::case::Case;
use crate::code::Code;
use crate::hash::{Hash, write_hex};
use crate::id::RunId;
use crate::journal::{Body, Nothing, Refs};
use crate::json::Object;
use crate::lease::{self, Lease, Resource};
use crate::limits;
use crate::operation::event::PersonSaid;
use crate::reply::{Refusal, Reply};
use crate::run::event::Answered;
use crate::run::{INTERRUPTED, Request, Standing, known_run, name};
use crate::stream::{StreamId, Tenant};
use crate::task::event::{Granted, Queued, TaskMoved, TaskMovedSealed};
use crate::task::row::dependent_key;
use crate::task::{TaskRow, TaskState};
use crate::view::{Halt, Range, Read};

/// Different obligations of one task that are counted.
const OBLIGATIONS: usize = 128;

/// What was found out, and who stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is of, as `tests-passed`: a name.
    pub kind: String,
    /// Digest of the evidence.
    pub hash: Hash,
    /// In which environment it was found.
    pub environment: String,
    /// Who stands for it. Of what passed it is not who did it.
    pub produced_by: String,
}

/// Where a task is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskTo {
    /// It was done, as this fact says, and is to be looked at.
    Validating(Fact),
    /// It was looked at and is right, as this fact says: on to its next phase, or
    /// verified. Where no attempt of that phase is left, it waits there for a person.
    Passed(Fact),
    /// It stopped.
    Stopped {
        /// Repairable, retryable, paused, approval needed or failed.
        state: TaskState,
        /// Why, in a word; what is attempted next is attempted for it.
        code: String,
        /// What shows it.
        fact: Option<Fact>,
    },
}

/// Move a task on, under the lease on it.
#[derive(Debug, Clone)]
pub struct MoveTask {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: String,
    /// Where to.
    pub to: TaskTo,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who records it.
    pub principal: Principal,
    /// The lease on the task.
    pub under: Lease,
}

/// Have a task that stopped attempted again.
#[derive(Debug, Clone)]
pub struct QueueTask {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: String,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
}

/// A person's word that a task may be attempted again though its attempts are
/// spent.
#[derive(Debug, Clone)]
pub struct GrantAttempts {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: String,
    /// Who says so.
    pub person: Identity,
    /// Why; not empty.
    pub reason: String,
}

impl Fact {
    fn is_fit(&self) -> bool {
        name::is_plain(&self.kind) && limits::is_name(&self.environment) && limits::is_name(&self.produced_by)
    }

    fn arguments(&self) -> Object {
        let mut hash = String::new();
        write_hex(&self.hash.0, &mut hash);
        let mut arguments = Object::new();
        arguments.insert("environment", self.environment.as_str());
        arguments.insert("hash", hash);
        arguments.insert("kind", self.kind.as_str());
        arguments.insert("produced_by", self.produced_by.as_str());
        arguments
    }
}

impl TaskTo {
    const fn fact(&self) -> Option<&Fact> {
        match self {
            TaskTo::Validating(fact) | TaskTo::Passed(fact) => Some(fact),
            TaskTo::Stopped { fact, .. } => fact.as_ref(),
        }
    }

    fn code(&self) -> Option<&str> {
        match self {
            TaskTo::Stopped { code, .. } => Some(code),
            TaskTo::Validating(_) | TaskTo::Passed(_) => None,
        }
    }

    /// The state that follows for a task, and its phase.
    fn follows(&self, task: &TaskRow) -> (TaskState, u32) {
        match self {
            TaskTo::Validating(_) => (TaskState::Validating, task.phase),
            TaskTo::Passed(_) if task.is_last_phase() => (TaskState::Verified, task.phase),
            // Where no attempt of the next phase is left, a person is asked first.
            TaskTo::Passed(_) if task.may_go_on() => (TaskState::Running, task.phase + 1),
            TaskTo::Passed(_) => (TaskState::Retryable, task.phase + 1),
            TaskTo::Stopped { state, .. } => (*state, task.phase),
        }
    }
}

/// What a command about a task finds.
struct Found<'a> {
    now: Standing,
    stream: StreamId,
    sequence: u64,
    task: &'a TaskRow,
}

fn find<'a>(case: &Case<'a>, run: RunId, task: &str) -> Result<Result<Found<'a>, Code>, Halt> {
    let Some((sequence, row)) = known_run(case, run)? else { return Ok(Err(Code::RunUnknown)) };
    let now = Standing::of(sequence, row);
    let stream = case.pinned.tenant.task(run, task);
    let (Some(stored), Some(found)) = (case.view.stored(&stream)?, case.view.task(&stream)?) else {
        return Ok(Err(Code::TaskUnknown));
    };
    Ok(match () {
        () if row.terminal => Err(Code::RunEnded),
        () if found.state == TaskState::Closed => Err(Code::TaskClosed),
        () => Ok(Found { now, stream, sequence: stored.head.sequence, task: found }),
    })
}

impl Found<'_> {
    /// What is answered: where the task stands after so many events more.
    fn answered(&self, run: RunId, events: u64, state: TaskState) -> Answered {
        let (sequence, state) = (self.sequence + events, state.as_str().to_owned());
        Answered { joined: false, run, sequence, state }
    }
}

pub(crate) fn move_on(case: &mut Case<'_>, go: &MoveTask) -> Result<Reply, Halt> {
    let MoveTask { run, task: id, to, request, principal, under } = go;
    let request = Request::new(case, request, "move_task", &run.to_string(), principal, arguments(go));
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    let found = match find(case, *run, id)? {
        Ok(found) => found,
        Err(code) => return Ok(code.into()),
    };
    if let Some(field) = unfit(go, found.task) {
        return Ok(Refusal { field: Some(field), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let resource = Resource::Task(*run, id.clone());
    if under.resource != resource || lease::holds(case, under)?.is_err() {
        return Ok(Code::LeaseFenced.into());
    }
    let task = found.task;
    let (state, phase) = to.follows(task);
    let is_stop = matches!(to, TaskTo::Stopped { .. });
    let is_passed = matches!(to, TaskTo::Passed(_));
    let is_legal = task.state.next().contains(&state)
        && (!is_stop || state.is_stop())
        && (!is_passed || task.state == TaskState::Validating);
    if !is_legal {
        let detail = Some(format!("{} > {}", task.state, state));
        return Ok(Refusal { detail, ..Refusal::new(Code::TransitionForbidden) }.into());
    }
    if let TaskTo::Passed(fact) = to
        && task.private.has_worked(&fact.produced_by)
    {
        return Ok(Refusal { field: Some("produced_by"), ..Refusal::new(Code::FactClaimed) }.into());
    }
    let fact = to.fact().cloned();
    let data = TaskMoved {
        code: to.code().map(str::to_owned),
        fact: fact.as_ref().map(|fact| fact.kind.clone()),
        from: task.state,
        phase,
        to: state,
    };
    let sealed = TaskMovedSealed {
        agent: Some(principal.agent.clone()),
        environment: fact.as_ref().map(|fact| fact.environment.clone()),
        hash: fact.as_ref().map(|fact| fact.hash),
        produced_by: fact.map(|fact| fact.produced_by),
        user: principal.user.clone(),
    };
    case.record(found.stream, Refs::NONE, Body::TaskMoved(data, sealed));
    if !state.is_worked_on() {
        lease::end_all(case, &resource)?;
    }
    if state == TaskState::Verified {
        queue_dependents(case, &found.stream)?;
    }
    let answered = found.answered(*run, 1, state);
    Ok(request.answer(case, answered, found.now))
}

/// The member that cannot be, if one cannot.
fn unfit(go: &MoveTask, task: &TaskRow) -> Option<&'static str> {
    let code = go.to.code();
    let is_new = |code: &str| task.spent.iter().all(|spent| spent.cause != code);
    match () {
        () if !go.principal.is_fit() => Some("principal"),
        () if code.is_some_and(|code| !limits::is_name(code)) => Some("code"),
        () if code.is_some_and(is_new) && task.spent.len() >= OBLIGATIONS => Some("code"),
        () if go.to.fact().is_some_and(|fact| !fact.is_fit()) => Some("fact"),
        () => None,
    }
}

/// Everything that waited for this task alone gets in line.
fn queue_dependents(case: &mut Case<'_>, verified: &StreamId) -> Result<(), Halt> {
    let range = Range { limit: usize::MAX, ..Range::equal(dependent_key(verified)) };
    let waiting = case.view.range(&range)?;
    case.view.all(waiting.iter().map(|stream| Read::Stream(*stream)))?;
    let mut on = Vec::new();
    for stream in &waiting {
        on.extend(case.view.task(stream)?.into_iter().flat_map(|task| &task.depends_on).copied());
    }
    case.view.all(on.into_iter().map(Read::Stream))?;
    for stream in waiting {
        let Some(task) = case.view.task(&stream)? else { continue };
        let mut may_begin = true;
        for on in task.depends_on.iter().filter(|on| *on != verified) {
            may_begin &= case.view.task(on)?.is_some_and(|on| on.state == TaskState::Verified);
        }
        if may_begin {
            queued(case, stream, TaskState::Queued);
        }
    }
    Ok(())
}

fn queued(case: &mut Case<'_>, stream: StreamId, state: TaskState) {
    case.record(stream, Refs::NONE, Body::TaskQueued(Queued { state }, Nothing {}));
}

fn arguments(go: &MoveTask) -> Object {
    let (to, state) = match &go.to {
        TaskTo::Validating(_) => ("validating", None),
        TaskTo::Passed(_) => ("passed", None),
        TaskTo::Stopped { state, .. } => ("stopped", Some(state.as_str())),
    };
    let mut arguments = Object::new();
    arguments.insert("code", go.to.code().map(str::to_owned));
    arguments.insert("fact", go.to.fact().map(Fact::arguments));
    arguments.insert("state", state.map(str::to_owned));
    arguments.insert("task", go.task.as_str());
    arguments.insert("to", to);
    arguments
}

pub(crate) fn queue(case: &mut Case<'_>, queue: &QueueTask) -> Result<Reply, Halt> {
    let QueueTask { run, task: id, request, principal } = queue;
    let mut arguments = Object::new();
    arguments.insert("task", id.as_str());
    let request = Request::new(case, request, "queue_task", &run.to_string(), principal, arguments);
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    let found = match find(case, *run, id)? {
        Ok(found) => found,
        Err(code) => return Ok(code.into()),
    };
    let task = found.task;
    if !principal.is_fit() {
        return Ok(Refusal { field: Some("principal"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    // One that was never stopped gets in line by itself.
    if !task.state.is_stop() || !task.state.next().contains(&TaskState::Queued) {
        let detail = Some(format!("{} > {}", task.state, TaskState::Queued));
        return Ok(Refusal { detail, ..Refusal::new(Code::TransitionForbidden) }.into());
    }
    if task.attempts_left() == 0 {
        let detail = Some(format!("{} {}", task.phase_name(), task.cause()));
        return Ok(Refusal { detail, ..Refusal::new(Code::AttemptsSpent) }.into());
    }
    queued(case, found.stream, TaskState::Queued);
    let answered = found.answered(*run, 1, TaskState::Queued);
    Ok(request.answer(case, answered, found.now))
}

pub(crate) fn grant(case: &mut Case<'_>, grant: &GrantAttempts) -> Result<Reply, Halt> {
    let GrantAttempts { run, task: id, person, reason } = grant;
    if let Some(code) = unheard(case, person, reason)? {
        return Ok(code.into());
    }
    let found = match find(case, *run, id)? {
        Ok(found) => found,
        Err(code) => return Ok(code.into()),
    };
    if found.task.attempts_left() > 0 {
        return Ok(Reply::Done { changed: false });
    }
    let said = PersonSaid { person: Some(person.to_string()), reason: Some(reason.clone()) };
    let body = Body::TaskGranted(Granted { proof: person.proof }, said);
    case.record(found.stream, Refs::NONE, body);
    Ok(Reply::Done { changed: true })
}

/// Records that nobody works on a task any more. It is next, before all that are
/// in line, as often as its attempts allow.
pub(crate) fn interrupt(case: &mut Case<'_>, stream: StreamId) -> Result<(), Halt> {
    if left(case, stream)?.is_some_and(|after| after.attempts_left() > 0) {
        queued(case, stream, TaskState::Ready);
    }
    Ok(())
}

/// Records that nobody works on a task any more. How it stands then, if anybody did.
pub(super) fn left(case: &mut Case<'_>, stream: StreamId) -> Result<Option<TaskRow>, Halt> {
    let Some(task) = case.view.task(&stream)?.filter(|task| task.state.is_worked_on()) else {
        return Ok(None);
    };
    let code = Some(INTERRUPTED.to_owned());
    let data = TaskMoved {
        code: code.clone(),
        fact: None,
        from: task.state,
        phase: task.phase,
        to: TaskState::Retryable,
    };
    let sealed =
        TaskMovedSealed { agent: None, environment: None, hash: None, produced_by: None, user: None };
    case.record(stream, Refs::NONE, Body::TaskMoved(data, sealed));
    Ok(Some(TaskRow { code, ..task.clone() }))
}

/// What is read of what is asked about a task.
pub(crate) fn reads(tenant: &Tenant, run: RunId, task: &str, request: Option<&str>) -> Vec<Read> {
    let mut reads = vec![Read::Stream(StreamId::run(run)), Read::Stream(tenant.task(run, task))];
    reads.extend(request.map(|request| Read::Stream(tenant.request(&run.to_string(), request))));
    reads
}
