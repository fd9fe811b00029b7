//! Setting a plan, and what is asked about tasks by those who do not work on them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onceseal::Control;
use onceseal::core::code::Code;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::policy::Document;
use onceseal::runs::{DocumentError, RunNow, TaskState};

use super::One;
use crate::command::refused::{integer, remarks};
use crate::command::runs::{Asking, Which, drawn, earlier, find, find_asked, under, unknown};
use crate::context::{Context, wait};
use crate::error::{CliError, UNUSABLE};
use crate::files::{self, named};
use crate::text::{counted, shell, shown};

/// As large as a configuration may be.
const MOST: usize = 1 << 20;

/// A plan to set.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    which: Which,
    /// The delivery revision that it is for, from 1
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    revision: u64,
    /// The plan, JSON or YAML: `tasks`, each with `id` and perhaps `depends_on`, `phases`, `conflicts`, `resources`,
    /// `reads`, `writes`, `attempts`, `input`, and perhaps `capacity`; - for stdin
    file: PathBuf,
    /// Only while this lease on the run holds: a file with what `lease acquire` wrote, - for stdin [default: what
    /// ONCESEAL_LEASE says, if it is about this run]
    #[arg(long, value_name = "FILE")]
    lease: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

/// A task to attempt again.
#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    asking: Asking,
}

/// A task to give its attempts back.
#[derive(Debug, Args)]
pub(crate) struct Grant {
    #[command(flatten)]
    one: One,
    /// Why; kept with the task
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

fn invalid(file: &Path, what: impl Into<String>) -> CliError {
    CliError::new("plan_invalid", format!("the plan {} is malformed", named(file)), UNUSABLE)
        .because(what)
        .about("file", file.display().to_string())
}

/// JSON is YAML, read by the same strict rules; what says that it is JSON is told of
/// as that.
fn document(file: &Path) -> Result<Object, CliError> {
    let content = files::read(file, MOST)?;
    if file.extension().is_some_and(|extension| extension == "json")
        && let Err(error) = json::read(&content, &Limits::DATA)
        && !matches!(Document::read(&content), Ok(document) if document.value().as_object().is_some())
    {
        return Err(invalid(file, format!("it is not valid JSON: {error}")));
    }
    let document = Document::read(&content).map_err(|error| invalid(file, error.to_string()))?;
    match document.value() {
        Value::Object(object) => Ok(object.clone()),
        _ => Err(invalid(file, "it is no mapping with `tasks`")),
    }
}

pub(super) fn plan(context: &Context, plan: &Plan) -> Result<ExitCode, CliError> {
    let document = document(&plan.file)?;
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find_asked(context, &control, &plan.which, &plan.asking)?;
    let wrong = |error: DocumentError| invalid(&plan.file, error.to_string()).about("path", error.path);
    let request = plan.asking.request()?;
    let mut planning = run.plan(plan.revision, &document).map_err(wrong)?.request(&request);
    if let Some(lease) = under(plan.lease.as_deref(), run.id())? {
        planning = planning.under_lease(lease);
    }
    let before = control.plan(run.id())?.map(|stood| stood.revision);
    let RunNow { answered, replayed, .. } = match wait(planning.send())? {
        Ok(now) => now,
        Err(error) => {
            let error = CliError::from(error).about("run", run.id().to_string());
            let error = match (error.is(Code::DeliveryUnbound), before) {
                (true, _) => error.next(format!(
                    "onceseal runs deliver {} GATE {} --receipt-file FILE --ask",
                    run.id(),
                    plan.revision
                )),
                // Said of deliveries, and also where there are none.
                (_, Some(planned)) if error.is(Code::DeliveryOld) => error
                    .in_words(format!("revision {planned} is planned, and revisions of a plan only grow"))
                    .next(format!("onceseal tasks plan {} {} FILE", run.id(), planned + 1)),
                _ => error,
            };
            return Err(earlier(&run, &request, error));
        }
    };
    let stands = control.plan(run.id())?;
    let tasks = stands.as_ref().map_or(0, |stands| stands.tasks);
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("run", answered.run.to_string());
        object.insert("request", request);
        object.insert("replayed", replayed);
        object.insert("plan", stands.map_or(Value::Null, |stands| onceseal::render::plan(&stands)));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let how = match replayed {
        true => " (asked before)",
        false if before == Some(plan.revision) => " (as before)",
        false => "",
    };
    let tasks = counted(usize::try_from(tasks).unwrap_or(usize::MAX), "task");
    context.out.text(&format!(
        "{} revision {}: {tasks}{how}\n",
        answered.run,
        stands.map_or(0, |it| it.revision)
    ))?;
    drawn(context, &request);
    context.out.note(&format!("next: onceseal tasks list {}", shell(&plan.which.run)));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn queue(context: &Context, queue: &Queue) -> Result<ExitCode, CliError> {
    let One { which, task } = &queue.one;
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find_asked(context, &control, which, &queue.asking)?;
    let request = queue.asking.request()?;
    match wait(run.queue(task).request(&request).send())? {
        Ok(now) => super::told(context, task, &now, &request),
        Err(error) => {
            let (id, error) = (run.id(), about(error.into(), &run.id().to_string(), task));
            // One that is in line already may have none left either. A store that
            // cannot say leaves it out.
            let is_spent =
                || control.task(id, task).ok().flatten().is_some_and(|it| it.row.attempts_left() == 0);
            let grant = || format!("onceseal tasks grant {id} {} --reason '…'", shell(task));
            let error = match () {
                () if error.is(Code::AttemptsSpent) => error.next(grant()),
                () if error.is(Code::TransitionForbidden) && is_spent() => {
                    error.because("its attempts are spent").next(grant())
                }
                () => error,
            };
            Err(earlier(&run, &request, error))
        }
    }
}

pub(super) fn grant(context: &Context, grant: &Grant) -> Result<ExitCode, CliError> {
    let One { which, task } = &grant.one;
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find(&control.runs(), which)?;
    let granted = wait(run.grant(task, Control::account(), &grant.reason))?.map_err(|error| {
        let error = about(error.into(), &run.id().to_string(), task);
        remarks(error, &[("--reason", Some(grant.reason.as_str()))])
    })?;
    let view = control.task(run.id(), task)?.ok_or_else(|| super::unknown(&run.id().to_string()))?;
    let left = view.row.attempts_left();
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("run", run.id().to_string());
        object.insert("task", task.as_str());
        object.insert("granted", granted);
        object.insert("attempts_left", integer(left.into()));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let how = if granted { "" } else { ", as before: its attempts were not spent" };
    let left = counted(usize::try_from(left).unwrap_or(usize::MAX), "attempt");
    context.out.text(&format!("{} has {left} left{how}\n", shown(task)))?;
    if view.row.state.is_stop() {
        context.out.note(&format!("next: onceseal tasks queue {} {}", run.id(), shell(task)));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a refusal is about, and what to look at.
fn about(error: CliError, run: &str, task: &str) -> CliError {
    let error = match () {
        () if error.is(Code::TaskUnknown) => error.next(format!("onceseal tasks list {run}")),
        () if error.is(Code::TransitionForbidden) => {
            let again = TaskState::ALL.iter().filter(|state| state.next().contains(&TaskState::Queued));
            let again: Vec<&str> =
                again.filter(|state| state.is_stop()).map(|state| state.as_str()).collect();
            error
                .in_words(format!("a task is attempted again that is {}", again.join(", ")))
                .next(format!("onceseal tasks show {run} {}", shell(task)))
        }
        () => error,
    };
    error.about("run", run).about("task", task)
}
