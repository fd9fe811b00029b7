//! Taking a task by hand, and moving it on by facts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use onceseal::Control;
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::HolderKey;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::time::Span;
use onceseal::runs::{Fact, Lease, Resource, Run, TaskNow, TaskState, TaskTo};

use crate::command::lease::{Kept, Length, Place, Proven, drawn, fenced, holder, proof, refused};
use crate::command::list;
use crate::command::runs::{Asking, Which, Who, digest, earlier, find, unknown};
use crate::context::{Context, wait};
use crate::error::CliError;
use crate::files;
use crate::table::fields;
use crate::text::{literal, shell, shown};

/// The environment of a fact where nothing is said.
pub(super) const ENVIRONMENT: &str = "local";
/// Evidence is read whole, to be hashed.
const EVIDENCE: usize = 64 * 1024 * 1024;

/// A task to take.
#[derive(Debug, Args)]
pub(crate) struct Take {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    length: Length,
    /// Wait so long until there is one to take
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    wait: Option<Span>,
    /// Who takes it: whoever is at a task of the run and names the key under which it was taken gets that one again, so keep it to yourself [default: drawn at random]
    #[arg(long, value_name = "KEY", value_parser = holder)]
    holder: Option<HolderKey>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    who: Who,
}

/// What was found out.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("found").required(true).args(["evidence", "evidence_file"])))]
pub(crate) struct Found {
    /// What the fact is of: a name, as in work-done or tests-passed
    #[arg(value_name = "FACT")]
    kind: String,
    /// The digest of what shows it, `sha256:…`
    #[arg(long, value_name = "HASH", value_parser = digest)]
    evidence: Option<Hash>,
    /// What shows it itself: its SHA-256 is taken
    #[arg(long, value_name = "FILE")]
    evidence_file: Option<PathBuf>,
    /// In which environment it was found
    #[arg(long, value_name = "NAME", default_value = ENVIRONMENT)]
    environment: String,
}

/// What was done.
#[derive(Debug, Args)]
pub(crate) struct Produced {
    #[command(flatten)]
    found: Found,
    /// Who stands for it [default: who asks]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    proven: Proven,
    #[command(flatten)]
    asking: Asking,
}

/// What was found right.
#[derive(Debug, Args)]
pub(crate) struct Passed {
    #[command(flatten)]
    found: Found,
    /// Who stands for it: what checked it, and not who did it
    #[arg(long, value_name = "NAME")]
    by: String,
    #[command(flatten)]
    proven: Proven,
    #[command(flatten)]
    asking: Asking,
}

/// Where a task stopped.
#[derive(Debug, Args)]
pub(crate) struct Stopped {
    /// What follows: it is mended first, attempted again as it is, waits for somebody, for an approval, or cannot be done
    #[arg(value_parser = PossibleValuesParser::new(stops()))]
    state: String,
    /// Why, in a word: what is attempted next is attempted for it
    code: String,
    #[command(flatten)]
    proven: Proven,
    #[command(flatten)]
    asking: Asking,
}

fn stops() -> Vec<&'static str> {
    TaskState::ALL.iter().filter(|state| state.is_stop()).map(|state| state.as_str()).collect()
}

impl Found {
    fn fact(&self, by: String) -> Result<Fact, CliError> {
        let hash = match (self.evidence, &self.evidence_file) {
            (Some(hash), _) => hash,
            // Without a purpose before it: it is what `sha256sum` prints.
            (None, Some(file)) => Hash::of("", &[&files::read(file, EVIDENCE)?]),
            (None, None) => return Err(CliError::usage("--evidence or --evidence-file is needed")),
        };
        let (kind, environment) = (self.kind.clone(), self.environment.clone());
        Ok(Fact { kind, hash, environment, produced_by: by })
    }
}

pub(super) fn take(context: &Context, take: &Take) -> Result<ExitCode, CliError> {
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find(&control.runs().by(take.who.principal()), &take.which)?;
    let of_run = |lease: &Lease| matches!(lease.resource, Resource::Task(of, _) if of == run.id());
    let key = drawn(take.holder)?;
    let own = control.store().tenant().holder(key);
    let place = take.kept.look(|lease| of_run(lease) && lease.holder == own)?;
    let mut taking = run.take().length(take.length.length);
    if let Some(patience) = take.wait {
        taking = taking.wait(patience.to_std());
    }
    taking = taking.holder(key);
    let now = wait(taking.once())?.map_err(|error| {
        let error = refused(error, None, &take.length).about("run", run.id().to_string());
        match error.is(Code::NoTask) {
            true => error
                .next(format!("onceseal runs blockers {}", run.id()))
                .next("the same command with --wait 10m waits for one"),
            false => error,
        }
    })?;
    let again = format!("onceseal tasks take {} --holder {key}", run.id());
    taken(context, &run, &now, &place, &again)
}

/// Hands over a task, and what proves the lease on it.
fn taken(
    context: &Context,
    run: &Run,
    now: &TaskNow,
    place: &Place<'_>,
    again: &str,
) -> Result<ExitCode, CliError> {
    let TaskNow { lease, task, state, phase, spec } = now;
    place.write(lease, again)?;
    let mut proven = proof::object(lease);
    if place.file().is_some() {
        proven.remove("token");
    }
    let spec = json::read_canonical(spec, &Limits::DATA).map_err(|_| list::corrupt())?;
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("run", run.id().to_string());
        object.insert("task", task.as_str());
        object.insert("state", state.as_str());
        object.insert("phase", phase.as_str());
        object.insert("spec", spec);
        object.insert("lease", proven);
        place.printed(context.out.document(object), again)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![
        ("state", state.to_string()),
        ("phase", phase.clone()),
        ("fence", lease.lease.fence.to_string()),
        ("until", lease.until.to_string()),
        ("holder", lease.lease.holder.to_string()),
    ];
    let token = proven.get("token").and_then(Value::as_text).map(str::to_owned);
    rows.extend(token.map(|token| ("token", token)));
    rows.push(("is", literal(&spec)));
    place.printed(context.out.text(&format!("{}\n{}", shown(task), fields(&rows))), again)?;
    context.out.note(&match place.file() {
        Some(file) => {
            let file = context.path(file);
            match state {
                TaskState::Validating => {
                    format!("next: onceseal tasks passed FACT --by NAME --evidence-file FILE --lease {file}")
                }
                _ => format!("next: onceseal tasks produced work-done --evidence-file FILE --lease {file}"),
            }
        }
        None => {
            "note: with --to FILE what proves the lease is written as `tasks produced` reads it".to_owned()
        }
    });
    Ok(ExitCode::SUCCESS)
}

pub(super) fn produced(context: &Context, produced: &Produced) -> Result<ExitCode, CliError> {
    let by = produced.by.clone().unwrap_or_else(|| produced.asking.principal().agent);
    let to = TaskTo::Validating(produced.found.fact(by)?);
    moved(context, &produced.proven, &produced.asking, to)
}

pub(super) fn passed(context: &Context, passed: &Passed) -> Result<ExitCode, CliError> {
    let to = TaskTo::Passed(passed.found.fact(passed.by.clone())?);
    moved(context, &passed.proven, &passed.asking, to)
}

pub(super) fn stopped(context: &Context, stopped: &Stopped) -> Result<ExitCode, CliError> {
    let state = TaskState::ALL.iter().copied().find(|state| state.as_str() == stopped.state);
    let state = state.ok_or_else(|| CliError::usage("no task stops so"))?;
    let to = TaskTo::Stopped { state, code: stopped.code.clone(), fact: None };
    moved(context, &stopped.proven, &stopped.asking, to)
}

/// Moves the task on that a lease is on.
fn moved(context: &Context, proven: &Proven, asking: &Asking, to: TaskTo) -> Result<ExitCode, CliError> {
    let lease: Lease = proven.read()?;
    let Resource::Task(run, task) = lease.resource.clone() else {
        let what = format!("the lease is on {}, and not on a task", shown(&lease.resource.to_string()));
        return Err(CliError::usage(what).next("onceseal tasks take RUN --to lease.json"));
    };
    let resource = lease.resource.to_string();
    let control: Control = context.answer()?.ok_or_else(unknown)?;
    let run = control.runs().by(asking.principal()).run(run);
    let request = asking.request()?;
    match wait(run.move_task(&task, to, lease).request(&request).send())? {
        Ok(now) => super::told(context, &task, &now, &request),
        Err(error) => {
            let error = CliError::from(error).about("run", run.id().to_string()).about("task", task.as_str());
            let error = match error.is(Code::TransitionForbidden) {
                true => error.in_words("a task does not go on so from where it stands").next(format!(
                    "onceseal tasks show {} {}",
                    run.id(),
                    shell(&task)
                )),
                false => error,
            };
            Err(earlier(&run, &request, fenced(error, &resource)))
        }
    }
}
