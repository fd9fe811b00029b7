//! What changes a run: starting it, moving it on, naming its change.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::RunId;
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::nearest;
use onceseal::runs::{Lease, Moving, Resource, Run, RunNow, Subject, TaskFilter, TaskState};
use onceseal::{Control, Error};

use super::next::{commands, steps};
use super::parts::Parts;
use super::{Asking, Which, drawn, find_asked, kind_unknown, unknown};
use crate::command::lease::{fenced, proof};
use crate::command::refused::integer;
use crate::context::{Context, wait};
use crate::error::CliError;
use crate::table::state_style;
use crate::text::{counted, shell, shown};

/// A run to start.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Its kind: a definition, see `runs definitions`
    kind: String,
    /// The change, by its name
    #[arg(required_unless_present = "provisional", conflicts_with = "provisional")]
    change: Option<String>,
    /// The digest of what is known of a change that has no name yet, `sha256:…`
    #[arg(long, value_name = "HASH", value_parser = digest)]
    provisional: Option<Hash>,
    #[command(flatten)]
    asking: Asking,
}

/// A run to move, and why.
#[derive(Debug, Args)]
pub(crate) struct Moved {
    #[command(flatten)]
    which: Which,
    /// Why, in a word; it stays on the run until the next move
    #[arg(long, value_name = "WORD")]
    code: Option<String>,
    /// Only while this lease on the run holds: a file with what `lease acquire` wrote, - for stdin [default: what
    /// ONCESEAL_LEASE says, if it is about this run]
    #[arg(long, value_name = "FILE")]
    lease: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

/// A run to move to a state.
#[derive(Debug, Args)]
pub(crate) struct Transition {
    #[command(flatten)]
    moved: Moved,
    /// The state
    state: String,
}

/// What to ask for.
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(flatten)]
    pub(super) moved: Moved,
    /// What is asked for, as `runs show` lists it
    pub(super) name: String,
}

/// A change to name.
#[derive(Debug, Args)]
pub(crate) struct Bind {
    #[command(flatten)]
    which: Which,
    /// The name
    change: String,
    #[command(flatten)]
    asking: Asking,
}

pub(crate) fn digest(text: &str) -> Result<Hash, String> {
    Hash::parse(text).ok_or_else(|| "a digest is sha256: and 64 hex digits".to_owned())
}

pub(super) fn start(context: &Context, start: &Start) -> Result<ExitCode, CliError> {
    let subject = match (&start.change, start.provisional) {
        (_, Some(digest)) => Subject::Provisional(digest),
        (Some(change), None) => Subject::Change(change.clone()),
        (None, None) => return Err(CliError::usage("a change or --provisional is needed")),
    };
    let definitions = context.definitions()?;
    let (control, request) = (context.work(false)?, start.asking.request()?);
    let runs = control.runs().with(definitions).by(start.asking.principal());
    let started = wait(runs.start(&start.kind).subject(subject).request(&request).send())?;
    match started {
        Ok(started) => {
            let code = told(context, &started.answer, &request)?;
            go_on(context, &control, started.run.id())?;
            Ok(code)
        }
        Err(Error::KindUnknown { kind, known }) => Err(kind_unknown(kind, known)),
        Err(error) => Err(CliError::from(error).about("request", request)),
    }
}

/// Says what a person would type next about a run.
pub(super) fn go_on(context: &Context, control: &Control, run: RunId) -> Result<(), CliError> {
    if context.out.is_json() {
        return Ok(());
    }
    let Some(view) = control.run(run)? else { return Ok(()) };
    if let Some(step) = steps(&view, &Parts::read(control, &view)?).first() {
        context.out.note(&format!("next: {step}"));
    }
    context.out.note(&format!("      onceseal runs show {run} tells what else"));
    Ok(())
}

pub(super) fn transition(context: &Context, transition: &Transition) -> Result<ExitCode, CliError> {
    let state = &transition.state;
    moved(context, &transition.moved, state, |run| run.transition(state))
}

pub(super) fn command(context: &Context, name: &str, of: &Moved) -> Result<ExitCode, CliError> {
    moved(context, of, name, |run| run.command(name))
}

fn moved(
    context: &Context,
    moved: &Moved,
    word: &str,
    begin: impl FnOnce(&Run) -> Moving,
) -> Result<ExitCode, CliError> {
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find_asked(context, &control, &moved.which, &moved.asking)?;
    let request = moved.asking.request()?;
    let mut moving = begin(&run).request(&request);
    if let Some(code) = &moved.code {
        moving = moving.code(code);
    }
    if let Some(lease) = under(moved.lease.as_deref(), run.id())? {
        moving = moving.under_lease(lease);
    }
    match wait(moving.send())? {
        Ok(now) => {
            let code = told(context, &now, &request)?;
            if now.now.terminal && !context.out.is_json() {
                unfinished(context, &control, run.id())?;
            }
            Ok(code)
        }
        Err(error) => {
            let error = offered(&control, run.id(), word, error.into());
            Err(earlier(&run, &request, error))
        }
    }
}

/// Says what a run that has ended leaves undone.
fn unfinished(context: &Context, control: &Control, run: RunId) -> Result<(), CliError> {
    let tasks = control.list_tasks(run, &TaskFilter::default(), usize::MAX)?.items;
    let left = tasks.iter().filter(|task| task.row.state != TaskState::Verified).count();
    if left > 0 {
        let all = counted(tasks.len(), "task");
        context.out.note(&format!("note: {left} of {all} not verified, and no more is done for them"));
    }
    Ok(())
}

/// The lease on a run under which it is asked: that of a file, or else the one that
/// this program runs under, if it is about the run.
pub(crate) fn under(file: Option<&Path>, run: RunId) -> Result<Option<Lease>, CliError> {
    match file {
        Some(file) => {
            let lease = proof::read(file)?;
            if lease.resource != Resource::Run(run) {
                let on = shown(&lease.resource.to_string());
                return Err(CliError::usage(format!("the lease is on {on}, and not on this run"))
                    .about("run", run.to_string())
                    .next(format!("onceseal lease acquire {run} --to FILE")));
            }
            Ok(Some(lease))
        }
        None => Ok(proof::told()?.filter(|lease| lease.resource == Resource::Run(run))),
    }
}

/// Why a request was refused, with what its id was used for before.
pub(crate) fn earlier(run: &Run, request: &str, error: CliError) -> CliError {
    let error = error.about("request", request);
    if !error.is(Code::RequestIdConflict) {
        return error;
    }
    // A store that cannot say leaves it out.
    let Some(answered) = wait(run.answered(request)).ok().and_then(Result::ok).flatten() else {
        return error;
    };
    let (sequence, state) = (answered.sequence, answered.state);
    error
        .about("sequence", integer(sequence))
        .because(format!("event {sequence} of the run answered it, and left the run {state}"))
        .next(format!("onceseal runs events {}", run.id()))
}

pub(super) fn bind(context: &Context, bind: &Bind) -> Result<ExitCode, CliError> {
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find_asked(context, &control, &bind.which, &bind.asking)?;
    let request = bind.asking.request()?;
    match wait(run.bind_change(&bind.change).request(&request).send())? {
        Ok(now) => {
            let code = told(context, &now, &request)?;
            if !context.out.is_json() {
                let kind = control.run(run.id())?.map_or("KIND".to_owned(), |view| view.row.kind);
                context.out.note(&format!("it is {}/{} now", kind, shown(&bind.change)));
            }
            Ok(code)
        }
        Err(error) => Err(earlier(&run, &request, CliError::from(error).about("run", run.id().to_string()))),
    }
}

/// Why a run was not moved, with what could be asked for instead.
fn offered(control: &Control, id: RunId, word: &str, error: CliError) -> CliError {
    let error = error.about("run", id.to_string());
    // A store that cannot say leaves it out.
    let Some(view) = control.run(id).ok().flatten() else { return error };
    let is = |codes: &[Code]| codes.iter().any(|code| error.is(*code));
    if is(&[Code::TransitionForbidden, Code::StateUnknown]) {
        let next: Vec<&str> = view.next().collect();
        let error = match nearest(word, next.iter().copied()) {
            Some(meant) if error.is(Code::StateUnknown) => {
                let meant = shell(&meant);
                error.next(format!("did you mean {meant}? onceseal runs transition {id} {meant}"))
            }
            _ => error,
        };
        return error.because(format!("what may follow on {}: {}", view.row.state, next.join(", ")));
    }
    if is(&[Code::CommandForbidden, Code::CommandElsewhere]) {
        let offered = commands(&view).into_iter().filter(|(_, to)| to.is_some()).map(|(name, _)| name);
        let (meant, others): (Vec<_>, Vec<_>) = {
            let meant = nearest(word, offered.clone());
            offered.partition(|name| meant.as_deref() == Some(*name))
        };
        let line = |name: &&str| format!("onceseal runs command {id} {name}");
        let error = meant
            .iter()
            .fold(error, |error, name| error.next(format!("did you mean {name}? {}", line(name))));
        return others.iter().fold(error, |error, name| error.next(line(name)));
    }
    if is(&[Code::LeaseFenced]) {
        return fenced(error, &id.to_string());
    }
    if is(&[Code::RunEnded]) {
        return error.next(format!("onceseal runs show {id}"));
    }
    error
}

/// What was answered to a request, with where the run stands now under this name.
pub(crate) fn document(answer: &RunNow, request: &str, stands_as: &str) -> Object {
    let RunNow { answered, replayed, now } = answer;
    let mut object = Object::new();
    object.insert("run", answered.run.to_string());
    object.insert("request", request);
    object.insert("replayed", *replayed);
    object.insert("sequence", integer(answered.sequence));
    object.insert("state", answered.state.as_str());
    let mut stands = Object::new();
    stands.insert("sequence", integer(now.sequence));
    stands.insert("state", now.state.as_str());
    stands.insert("code", now.code.clone().map_or(Value::Null, Value::Text));
    stands.insert("terminal", now.terminal);
    object.insert(stands_as, stands);
    object
}

/// Says what was answered, and where the run stands.
pub(super) fn told(context: &Context, answer: &RunNow, request: &str) -> Result<ExitCode, CliError> {
    let RunNow { answered, replayed, now } = answer;
    if context.out.is_json() {
        let mut object = document(answer, request, "now");
        object.insert("joined", answered.joined);
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = state_style(&answered.state);
    let how = match (replayed, answered.joined) {
        (true, _) => " (asked before)",
        (false, true) => " (joined)",
        (false, false) => "",
    };
    context.out.text(&format!("{} {style}{}{style:#}{how}\n", answered.run, answered.state))?;
    if *replayed && now.sequence != answered.sequence {
        context.out.note(&format!("it stands in {} now, after {} events", now.state, now.sequence));
    }
    drawn(context, request);
    Ok(ExitCode::SUCCESS)
}
