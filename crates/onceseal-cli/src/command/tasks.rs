//! `tasks`: the parts of a run, each done by one worker at a time.

mod moving;
mod planning;
mod program;
mod showing;
mod work;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use onceseal::core::code::Code;
use onceseal::runs::RunNow;

use super::runs::{Which, document, drawn};
use crate::context::Context;
use crate::error::CliError;
use crate::table::state_style;
use crate::text::shown;

/// What to do with the tasks of a run.
#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// Set the plan of a run for a delivery revision: its tasks, and what they wait for
    ///
    /// What is unchanged since the plan before goes on, what changed begins anew, what is gone is closed.
    #[command(after_help = "Example: onceseal tasks plan simple/add-login 1 plan.json")]
    Plan(planning::Plan),
    /// List the tasks of a run: where each stands, and what it waits for
    #[command(after_help = "Example: onceseal tasks list simple/add-login --state queued")]
    List(showing::List),
    /// Show one task: what it is, its attempts, and what happened
    #[command(after_help = "Example: onceseal tasks show simple/add-login form")]
    Show(One),
    /// Take the task that is next, and print what is needed to move it on
    ///
    /// Nothing renews the lease on it but `lease renew`: `tasks work` does, while a program runs.
    #[command(after_help = "Example: onceseal tasks take simple/add-login --for 10m --to lease.json")]
    Take(moving::Take),
    /// Record that what is to be done in a task's phase was done: it is to be looked at
    #[command(
        after_help = "Example: onceseal tasks produced work-done --lease lease.json --evidence-file build.log"
    )]
    Produced(moving::Produced),
    /// Record that what was done was found right, by somebody else than who did it: on to the next phase, or verified
    #[command(
        after_help = "Example: onceseal tasks passed tests-passed --by ci --lease lease.json --evidence-file tests.log"
    )]
    Passed(moving::Passed),
    /// Record that a task stopped, and why
    #[command(after_help = "Example: onceseal tasks stopped retryable no-network --lease lease.json")]
    Stopped(moving::Stopped),
    /// Have a task that stopped attempted again
    #[command(after_help = "Example: onceseal tasks queue simple/add-login form")]
    Queue(planning::Queue),
    /// Let a task be attempted again though its attempts are spent, by your word, which is recorded
    #[command(
        after_help = "Example: onceseal tasks grant simple/add-login form --reason 'the network is back'"
    )]
    Grant(planning::Grant),
    Work(work::Work),
}

/// One task.
#[derive(Debug, Args)]
pub(crate) struct One {
    #[command(flatten)]
    which: Which,
    /// Its id in the plan
    task: String,
}

pub(crate) fn run(context: &Context, tasks: Tasks) -> Result<ExitCode, CliError> {
    match tasks {
        Tasks::Plan(plan) => planning::plan(context, &plan),
        Tasks::List(list) => showing::list(context, &list),
        Tasks::Show(one) => showing::show(context, &one),
        Tasks::Take(take) => moving::take(context, &take),
        Tasks::Produced(produced) => moving::produced(context, &produced),
        Tasks::Passed(passed) => moving::passed(context, &passed),
        Tasks::Stopped(stopped) => moving::stopped(context, &stopped),
        Tasks::Queue(queue) => planning::queue(context, &queue),
        Tasks::Grant(grant) => planning::grant(context, &grant),
        Tasks::Work(work) => work::run(context, work),
    }
}

fn unknown(run: &str) -> CliError {
    CliError::missing(Code::TaskUnknown).next(format!("onceseal tasks list {run}"))
}

/// Says where a task stands after a request about it.
fn told(context: &Context, task: &str, answer: &RunNow, request: &str) -> Result<ExitCode, CliError> {
    let RunNow { answered, replayed, .. } = answer;
    if context.out.is_json() {
        let mut object = document(answer, request, "run_now");
        object.insert("task", task);
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = state_style(&answered.state);
    let how = if *replayed { " (asked before)" } else { "" };
    context.out.text(&format!("{} {style}{}{style:#}{how}\n", shown(task), answered.state))?;
    drawn(context, request);
    Ok(ExitCode::SUCCESS)
}
