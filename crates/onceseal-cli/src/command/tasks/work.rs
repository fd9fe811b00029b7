//! `tasks work`: a worker that runs a program for each task.

use std::ffi::OsString;
use std::future::poll_fn;
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use clap::{Args, ValueEnum};
use onceseal::core::code::Code;
use onceseal::core::json::{Object, Value};
use onceseal::core::limits;
use onceseal::process::{Ended, is_ignored};
use onceseal::runs::{Fact, Run, TaskGuard, TaskState};
use onceseal::{Control, Error};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::moving::ENVIRONMENT;
use super::program::{self, Left};
use crate::command::lease::{Length, refused};
use crate::command::refused::integer;
use crate::command::runs::{Which, Who, find, unknown};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED, UNUSABLE};
use crate::text::{counted, shown};

/// How long a worker waits for a task before it looks around.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work on the tasks of a run: run a program for each, one after another
///
/// The program has the task as JSON on its standard input, and finds ONCESEAL_RUN, ONCESEAL_TASK, ONCESEAL_TASK_PHASE,
/// and ONCESEAL_FENCE in its environment. What it writes to the file ONCESEAL_EVIDENCE shows its work. The lease on the
/// task it does not get: it could say itself that its work is right. The lease is renewed as long as it runs; if it is lost, the program is asked to end
/// and killed 5 seconds later. If this command itself is killed, its program may go on, and another worker takes the
/// task once the lease has ended.
///
/// Exit 0 says that the work of the phase is done. The program of --check then runs with the same input, and its exit 0
/// passes the task on, to its next phase or to verified: nobody passes work of their own. Any other exit of the check is
/// what --failed-check says. Any other exit of the program makes the task retryable, unless one of the lists of exit
/// codes has it; what is retryable is queued again as often as the plan allows.
///
/// At SIGTERM, SIGINT, SIGHUP or SIGQUIT nothing more is taken; the program is told, and waited for. Exit 0 if everything in the plan is
/// verified when it ends, 1 if not, or if there is no plan.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: onceseal tasks work simple/add-login --check ./check.sh --until-empty -- ./work.sh"
)]
pub(crate) struct Work {
    #[command(flatten)]
    which: Which,
    /// The program that looks at what was done, without arguments; its name stands for the fact
    #[arg(long, value_name = "PROGRAM")]
    check: String,
    /// What a task is that its check does not pass
    #[arg(long, value_enum, value_name = "STATE", default_value_t = FailedCheck::Repairable)]
    failed_check: FailedCheck,
    /// Exit codes of the program by which a task must be mended first
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..=255))]
    repairable_on: Vec<i32>,
    /// Exit codes by which it waits until somebody lets it go on
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..=255))]
    paused_on: Vec<i32>,
    /// Exit codes by which it waits for a person's approval
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..=255))]
    approval_needed_on: Vec<i32>,
    /// Exit codes by which it cannot be done
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..=255))]
    failed_on: Vec<i32>,
    /// Stop once no task can be taken any more, now or when others have ended
    #[arg(long)]
    until_empty: bool,
    #[command(flatten)]
    length: Length,
    /// The environment in which facts are found
    #[arg(long, value_name = "NAME", default_value = ENVIRONMENT)]
    environment: String,
    #[command(flatten)]
    who: Who,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a task is that its check does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailedCheck {
    /// It must be mended first
    Repairable,
    /// It is attempted again as it is
    Retryable,
}

impl Work {
    /// What an end of the program other than exit 0 makes of its task.
    fn stop(&self, ended: &Ended) -> TaskState {
        let lists = [
            (&self.repairable_on, TaskState::Repairable),
            (&self.paused_on, TaskState::Paused),
            (&self.approval_needed_on, TaskState::ApprovalNeeded),
            (&self.failed_on, TaskState::Failed),
        ];
        let listed = |status: &i32| lists.iter().find(|(codes, _)| codes.contains(status)).map(|(_, to)| *to);
        match ended {
            Ended::Exit(status) => listed(status).unwrap_or(TaskState::Retryable),
            // Nobody but an operator can change that.
            Ended::NotStarted(_) => TaskState::Paused,
            _ => TaskState::Retryable,
        }
    }

    /// Who stands for what the check has found.
    fn checker(&self) -> String {
        format!("check:{}", self.check)
    }
}

pub(super) fn run(context: &Context, work: Work) -> Result<ExitCode, CliError> {
    if !limits::is_name(&work.checker()) || work.checker() == work.who.principal().agent {
        return Err(CliError::usage("--check is the path of a program, and no name of the worker"));
    }
    if !program::is_there(&work.check) {
        let message =
            format!("the program of --check, {}, is not there, or cannot be run", shown(&work.check));
        return Err(CliError::new("lease_unused", message, UNUSABLE)
            .because("nothing was taken")
            .next("name it with --check as it is found from here, and let it be executable")
            .about("child", "program_not_found"));
    }
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find(&control.runs().by(work.who.principal()), &work.which)?;
    control.run(run.id())?.ok_or_else(unknown)?;
    program::tidy();
    let worker = Worker { context, control: &control, run: &run, work: &work };
    wait(async {
        worker.work(Stop::listen()).await?;
        worker.ended()
    })?
}

/// Whoever may tell a worker to stop.
struct Stop(Vec<Signal>);

impl Stop {
    fn listen() -> Stop {
        let heard =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
        // What somebody had ignored, as `nohup` does, stays so.
        let wanted = |kind: &SignalKind| !is_ignored(kind.as_raw_value());
        let kinds = heard.into_iter().filter(wanted);
        // A worker does not die of what is for its program, also where none runs.
        let others = [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::alarm()];
        others.into_iter().filter(wanted).for_each(|kind| drop(signal(kind)));
        Stop(kinds.filter_map(|kind| signal(kind).ok()).collect())
    }

    /// Waits until it is told to. A system without signals stops it by force.
    async fn told(&mut self) {
        poll_fn(|context| {
            let told = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if told { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

struct Worker<'a> {
    context: &'a Context,
    control: &'a Control,
    run: &'a Run,
    work: &'a Work,
}

impl Worker<'_> {
    /// Takes tasks until there is an end of it.
    async fn work(&self, mut stop: Stop) -> Result<(), CliError> {
        let mut patience = Duration::ZERO;
        loop {
            let taking = self.run.take().length(self.work.length.length);
            let taken = tokio::select! {
                biased;
                () = stop.told() => return Ok(()),
                taken = taking.wait(patience).take() => taken,
            };
            let task = match taken {
                Ok(task) => task,
                Err(error) if error.code() == Code::RunEnded.as_str() => return Ok(()),
                Err(error) if error.code() == Code::NoTask.as_str() => {
                    if self.work.until_empty && self.is_over()? {
                        return Ok(());
                    }
                    patience = PATIENCE;
                    continue;
                }
                Err(error) => return Err(refused(error, None, &self.work.length)),
            };
            patience = Duration::ZERO;
            let mut told = false;
            {
                let mut one = std::pin::pin!(self.one(task));
                loop {
                    tokio::select! {
                        done = &mut one => break done?,
                        () = stop.told(), if !told => told = true,
                    }
                }
            }
            if told {
                return Ok(());
            }
        }
    }

    /// Whether nothing of this run as it stands is taken any more, by anybody.
    fn is_over(&self) -> Result<bool, CliError> {
        let view = self.control.run(self.run.id())?.ok_or_else(unknown)?;
        let is_idle = view.definition.is_some_and(|definition| definition.is_idle(&view.row.state));
        Ok(is_idle || !self.control.has_tasks_to_do(self.run.id())?)
    }

    /// Works on one task, phase after phase, until it stops, is verified or is lost.
    async fn one(&self, mut task: TaskGuard) -> Result<(), CliError> {
        loop {
            let Left { ended, evidence } = program::run(&self.work.command, &task).await?;
            if task.is_lost() {
                return self.lost(&task);
            }
            if ended != Ended::Exit(0) {
                return self.stop(task, self.work.stop(&ended), ended.code(), &ended).await;
            }
            let Some(evidence) = evidence else { return self.unread(task, &ended).await };
            let worker = self.work.who.principal().agent;
            let done = task.produced(self.fact("work-done", evidence, worker)).await;
            if self.is_fenced(&task, done)? {
                return Ok(());
            }
            let check = [OsString::from(&self.work.check)];
            let Left { ended, evidence } = program::run(&check, &task).await?;
            if task.is_lost() {
                return self.lost(&task);
            }
            if ended != Ended::Exit(0) {
                let state = match (ended, self.work.failed_check) {
                    (Ended::NotStarted(_), _) => TaskState::Paused,
                    (_, FailedCheck::Repairable) => TaskState::Repairable,
                    (_, FailedCheck::Retryable) => TaskState::Retryable,
                };
                return self.stop(task, state, format!("check_{}", ended.code()), &ended).await;
            }
            let Some(evidence) = evidence else { return self.unread(task, &ended).await };
            let passed = task.passed(self.fact("check-passed", evidence, self.work.checker())).await;
            if self.is_fenced(&task, passed.map(drop))? {
                return Ok(());
            }
            if task.state() != TaskState::Running {
                // Verified; or no attempt of the next phase is left, and a person is asked.
                self.tell(&task, task.state().as_str(), None);
                return Ok(());
            }
        }
    }

    fn fact(&self, kind: &str, hash: onceseal::core::hash::Hash, produced_by: String) -> Fact {
        Fact { kind: kind.to_owned(), hash, environment: self.work.environment.clone(), produced_by }
    }

    /// What shows the work cannot be read, or is too large: somebody must look.
    async fn unread(&self, task: TaskGuard, ended: &Ended) -> Result<(), CliError> {
        self.stop(task, TaskState::Paused, "evidence_unreadable".to_owned(), ended).await
    }

    /// Records that a task stopped, and has it attempted again where that is for a
    /// worker to ask.
    async fn stop(
        &self,
        mut task: TaskGuard,
        state: TaskState,
        code: String,
        ended: &Ended,
    ) -> Result<(), CliError> {
        let stopped = task.stopped(state, code.as_str(), None).await;
        if self.is_fenced(&task, stopped)? {
            return Ok(());
        }
        self.tell(&task, state.as_str(), Some(&code));
        if let Ended::NotStarted(_) = ended {
            let error = CliError::new("lease_unused", ended.to_string(), 2).about("child", code);
            return Err(error.about("task", task.id()).next(format!(
                "onceseal tasks queue {} {} once the program is there",
                self.run.id(),
                task.id()
            )));
        }
        if state == TaskState::Retryable {
            match self.run.queue(task.id()).send().await {
                Ok(_) => {}
                Err(error) if error.code() == Code::AttemptsSpent.as_str() => {
                    self.tell(&task, Code::AttemptsSpent.as_str(), None);
                }
                // A new plan has it no more, or begins it anew; or the run has ended.
                Err(Error::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether a task went to somebody else before it could be moved on, or to nobody.
    fn is_fenced(&self, task: &TaskGuard, moved: Result<(), Error>) -> Result<bool, CliError> {
        let gone = [Code::LeaseFenced, Code::RunEnded, Code::TaskClosed];
        match moved {
            Ok(()) => Ok(false),
            Err(error) if gone.iter().any(|code| code.as_str() == error.code()) => {
                self.lost(task)?;
                Ok(true)
            }
            Err(error) => Err(CliError::from(error).about("task", task.id()).ran()),
        }
    }

    fn lost(&self, task: &TaskGuard) -> Result<(), CliError> {
        self.tell(task, "lease_lost", self.lost_by(task)?);
        Ok(())
    }

    /// What a task was lost by, if not by somebody who has it now.
    fn lost_by(&self, task: &TaskGuard) -> Result<Option<&'static str>, CliError> {
        if self.control.run(self.run.id())?.is_some_and(|view| view.row.terminal) {
            return Ok(Some(Code::RunEnded.as_str()));
        }
        let Some(view) = self.control.task(self.run.id(), task.id())? else { return Ok(None) };
        if view.row.state == TaskState::Closed {
            return Ok(Some(Code::TaskClosed.as_str()));
        }
        Ok((self.control.task_spec(&view)? != *task.spec()).then_some("plan_changed"))
    }

    /// Tells what became of a task.
    fn tell(&self, task: &TaskGuard, what: &str, code: Option<&str>) {
        let out = self.context.out;
        if !out.is_json() {
            let code = code.map(|code| format!(": {code}")).unwrap_or_default();
            return out.note(&format!("{} {what}{code}", shown(task.id())));
        }
        let (mut object, mut told) = (Object::new(), Object::new());
        told.insert("task", task.id());
        told.insert("phase", task.phase());
        told.insert("fence", integer(task.fence()));
        told.insert("became", what);
        told.insert("code", code.map_or(Value::Null, Value::from));
        object.insert("task", told);
        out.json_note(object);
    }

    /// Says how the plan stands when the worker ends.
    fn ended(&self) -> Result<ExitCode, CliError> {
        let tasks = self.control.list_tasks(self.run.id(), &Default::default(), usize::MAX)?.items;
        let verified = tasks.iter().filter(|task| task.row.state == TaskState::Verified).count();
        let left = tasks.len() - verified;
        // Nothing is done where nothing was to be done yet.
        let is_planned = self.control.plan(self.run.id())?.is_some();
        if self.context.out.is_json() {
            let mut object = Object::new();
            object.insert("run", self.run.id().to_string());
            object.insert("planned", is_planned);
            object.insert("verified", integer(verified as u64));
            object.insert("left", integer(left as u64));
            self.context.out.document(object)?;
        } else if !is_planned {
            self.context.out.note("the run has no plan, so nothing was done");
            self.context.out.note(&format!("next: onceseal tasks plan {} REVISION FILE", self.run.id()));
        } else {
            self.context.out.note(&format!("{} verified, {left} left", counted(verified, "task")));
            if left > 0 {
                self.context.out.note(&format!("next: onceseal runs blockers {}", self.run.id()));
            }
        }
        Ok(ExitCode::from(if is_planned && left == 0 { 0 } else { REFUSED }))
    }
}
