//! Moving a run on: what its definition permits, and nothing else.

use std::borrow::Cow;

use crate::action::Principal;
use crate::case::Case;
use crate::code::Code;
use crate::id::RunId;
use crate::journal::{Body, Nothing, Refs};
use crate::json::Object;
use crate::lease::{self, Lease, Resource};
use crate::limits;
use crate::reply::{Refusal, Reply};
use crate::run::event::{Answered, AskedBy, Moved};
use crate::run::request::{self, Request};
use crate::run::row::{RunRow, Standing};
use crate::run::{Definition, name};
use crate::stream::{StreamId, Tenant};
use crate::task;
use crate::view::{Halt, Read};

/// Why a run stands where it does when whoever worked on it is gone.
pub(crate) const INTERRUPTED: &str = "operation-interrupted";

/// Move a run on.
#[derive(Debug, Clone)]
pub struct Transition {
    /// The run.
    pub run: RunId,
    /// Where to.
    pub to: Towards,
    /// Why, in a word; it stays on the run until the next move.
    pub code: Option<String>,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
    /// The lease on the run under which it is asked.
    pub under: Option<Lease>,
}

/// Where a run is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Towards {
    /// To this state.
    State(String),
    /// Wherever what an operator may ask for leads from the state it is in.
    Command(String),
}

pub(crate) fn transition(case: &mut Case<'_>, transition: &Transition) -> Result<Reply, Halt> {
    let Transition { run, to, code, request, principal, under } = transition;
    let mut arguments = Object::new();
    let (kind, target) = match to {
        Towards::State(state) => ("transition", state),
        Towards::Command(command) => ("command", command),
    };
    arguments.insert("code", code.clone());
    arguments.insert("to", target.as_str());
    let request = Request::new(case, request, kind, &run.to_string(), principal, arguments);
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    if request::run(case, *run)?.is_none() {
        return Ok(Code::RunUnknown.into());
    }
    let unfit = [
        ("principal", !principal.is_fit()),
        ("code", code.as_ref().is_some_and(|code| !limits::is_name(code))),
        ("to", !name::is_plain(target)),
    ];
    if let Some((field, _)) = unfit.into_iter().find(|(_, unfit)| *unfit) {
        return Ok(Refusal { field: Some(field), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    if let Some(lease) = under
        && !lease::is_of_run(case, lease, *run)?
    {
        return Ok(Code::LeaseFenced.into());
    }
    let Some((sequence, row)) = met(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    let definition = case.pinned.definition(row.definition)?;
    let to = match next(definition, &row, to) {
        Ok(to) => to.to_owned(),
        Err(code) => {
            let detail = Some(format!("{} > {target}", row.state));
            return Ok(Refusal { detail, ..Refusal::new(code) }.into());
        }
    };
    let terminal = definition.is_terminal(&to);
    let data = Moved { code: code.clone(), from: row.state.clone(), terminal, to: to.clone() };
    let by = AskedBy { agent: Some(principal.agent.clone()), user: principal.user.clone() };
    case.record(StreamId::run(*run), Refs::NONE, Body::RunMoved(data, by));
    if terminal {
        close(case, *run, under.as_ref())?;
    }
    let now = Standing { sequence: sequence + 1, state: to.clone(), code: code.clone(), terminal };
    Ok(request.answer(case, Answered { joined: false, run: *run, sequence: sequence + 1, state: to }, now))
}

/// What is read to move a run on.
pub(crate) fn reads(tenant: &Tenant, run: RunId, request: &str) -> Vec<Read> {
    let lease = tenant.lease(&Resource::Run(run).to_string());
    let streams = [tenant.request(&run.to_string(), request), StreamId::run(run), lease];
    streams.into_iter().map(Read::Stream).collect()
}

/// A run as it stands, and its newest sequence, once it is recorded that whoever
/// worked on it is gone, if so.
pub(crate) fn met<'a>(case: &mut Case<'a>, run: RunId) -> Result<Option<(u64, Cow<'a, RunRow>)>, Halt> {
    let Some((sequence, row)) = request::run(case, run)? else { return Ok(None) };
    let resource = Resource::Run(run);
    let moved = match lease::is_abandoned(case, &resource)? {
        true => interruption(case, row)?,
        false => None,
    };
    lease::record_lapses_on(case, &resource)?;
    Ok(Some(match moved {
        None => (sequence, Cow::Borrowed(row)),
        Some(Moved { code, terminal, to, .. }) => {
            (sequence + 1, Cow::Owned(RunRow { code, terminal, state: to, ..row.clone() }))
        }
    }))
}

/// Why nothing is begun under a run, if so: there is none, or it has ended; also
/// where it ends by that whoever worked on it is gone, which is recorded then.
pub(crate) fn unliving(case: &mut Case<'_>, run: RunId) -> Result<Option<Code>, Halt> {
    let Some((_, row)) = request::run(case, run)? else { return Ok(Some(Code::RunUnknown)) };
    let ends = lease::is_abandoned(case, &Resource::Run(run))?
        && interruption(case, row)?.is_some_and(|moved| moved.terminal);
    if ends {
        met(case, run)?;
    }
    Ok((ends || row.terminal).then_some(Code::RunEnded))
}

/// Records that nobody works on a run any more, if it lives.
pub(crate) fn interrupt(case: &mut Case<'_>, run: RunId) -> Result<(), Halt> {
    let Some((_, row)) = request::run(case, run)? else { return Ok(()) };
    let Some(data) = interruption(case, row)? else { return Ok(()) };
    let terminal = data.terminal;
    case.record(StreamId::run(run), Refs::NONE, Body::RunInterrupted(data, Nothing {}));
    if terminal { close(case, run, None) } else { Ok(()) }
}

/// Where a run goes that nobody works on any more.
fn interruption(case: &Case<'_>, row: &RunRow) -> Result<Option<Moved>, Halt> {
    let definition = case.pinned.definition(row.definition)?;
    let to = definition.interrupted(&row.state).filter(|_| !row.terminal);
    Ok(to.map(|to| Moved {
        code: Some(INTERRUPTED.to_owned()),
        from: row.state.clone(),
        terminal: definition.is_terminal(to),
        to: to.to_owned(),
    }))
}

/// Whoever works on a run that has ended, or on its tasks, is told so by the end of
/// the lease. The one that ended it has its own until it gives it up.
fn close(case: &mut Case<'_>, run: RunId, under: Option<&Lease>) -> Result<(), Halt> {
    lease::end_others(case, &Resource::Run(run), under.map(|lease| lease.fence))?;
    task::stop_all(case, run)
}

/// The state that follows, if the definition permits it.
fn next<'a>(definition: &'a Definition, row: &RunRow, to: &'a Towards) -> Result<&'a str, Code> {
    if row.terminal {
        return Err(Code::RunEnded);
    }
    let to = match to {
        Towards::State(state) => state,
        Towards::Command(name) => {
            let mut commands = definition.commands(&row.state);
            let found = commands.find(|(command, _)| command == name).ok_or(Code::CommandForbidden)?;
            found.1.ok_or(Code::CommandElsewhere)?
        }
    };
    match () {
        () if !definition.has(to) => Err(Code::StateUnknown),
        () if !definition.permits(&row.state, to) => Err(Code::TransitionForbidden),
        () => Ok(to),
    }
}
