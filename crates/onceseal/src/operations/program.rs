//! Tools that are programs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onceseal_core::json::{self, Object, Value};

use super::carrying::pause;
use super::filling::{Filling, Given, Missing, plainly};
use super::returned::{Pointer, named};
use super::running::Running;
use super::tool::{Answering, Handler, Job, Question, Word};
use super::undone::Undone;
use crate::executed::{Done, Failure, Performed};
use crate::outcome::stand_in;
use crate::process::{Ended, GRACE_MAX, Input, Process};

/// A program as a contract names it.
#[derive(Debug, Clone)]
pub(super) struct Program {
    run: Line,
    undone: Undone<i32>,
    /// Where in what it writes down its result is, the remote's receipt, and the
    /// remote's name of the request.
    result: Option<Pointer>,
    receipt: Option<Pointer>,
    request: Option<Pointer>,
    status: Option<Status>,
    /// Where it runs: beside the file that declares it, wherever the worker is.
    directory: PathBuf,
}

/// How it is asked what became of an attempt.
#[derive(Debug, Clone)]
struct Status {
    run: Line,
    absent_on: BTreeSet<i32>,
}

/// A program with its arguments. No shell is involved: placeholders are whole
/// arguments, and stand after `--`, so that no value is taken for an option.
#[derive(Debug, Clone)]
struct Line {
    program: String,
    args: Vec<Filling>,
}

impl Line {
    fn parse(document: &Object) -> Result<Line, String> {
        let texts = document.get("run").and_then(Value::as_list).ok_or("command: run is a list of texts")?;
        let texts =
            texts.iter().map(|text| text.as_text().ok_or("command: run is a list of texts".to_owned()));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let (program, rest) = texts.split_first().ok_or("command: run names a program")?;
        if Filling::parse(program)?.plain().is_none() {
            return Err("command: run names a program, which no placeholder stands for".to_owned());
        }
        let mut args = Vec::new();
        let mut behind = false;
        for text in rest {
            let filling = Filling::parse(text)?;
            match filling.plain() {
                Some(plain) => behind |= plain == "--",
                None if !filling.is_one() => {
                    return Err("command: a placeholder is a whole argument".to_owned());
                }
                None if filling.has_secrets() => {
                    return Err(
                        "command: everybody sees its arguments; its environment has the secret".to_owned()
                    );
                }
                None if !behind => return Err("command: a placeholder stands after `--`".to_owned()),
                None => {}
            }
            args.push(filling);
        }
        Ok(Line { program: (*program).to_owned(), args })
    }

    fn process(&self, given: &Given<'_>) -> Result<Process, Missing> {
        let args = self.args.iter().map(|arg| arg.fill(given, plainly).map(OsString::from));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let mut process = Process { args, beside_others: true, ..Process::new(self.program.as_str()) };
        process.tell("PROVIDER_KEY", given.provider_key);
        Ok(process)
    }
}

impl Program {
    /// Reads `{run: [program, args…], not_executed_on?, retry_on?: [code…], result?,
    /// receipt?, request?: pointer, status?: {run, absent_on?}}`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(document: &Object, directory: &Path) -> Result<Program, String> {
        known(document, &["run", "not_executed_on", "retry_on", "result", "receipt", "request", "status"])?;
        let pointer = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => {
                Pointer::parse(text).map(Some).map_err(|what| format!("command: {name}: {what}"))
            }
            Some(_) => Err(format!("command: {name} is a JSON pointer")),
        };
        let status = match document.get("status") {
            None => None,
            Some(Value::Object(status)) => {
                known(status, &["run", "absent_on"])?;
                let absent_on = codes(status, "absent_on", "command: status", 1..=255)?;
                if absent_on.is_empty() {
                    return Err(
                        "command: status: absent_on says by which exit codes it knows of none".to_owned()
                    );
                }
                Some(Status { run: Line::parse(status)?, absent_on })
            }
            Some(_) => return Err("command: status is a mapping".to_owned()),
        };
        Ok(Program {
            run: Line::parse(document)?,
            undone: Undone::parse(document, "command", 1..=255)?,
            result: pointer("result")?,
            receipt: pointer("receipt")?,
            request: pointer("request")?,
            status,
            directory: directory.to_owned(),
        })
    }

    /// What it depends on, where the contract does not say.
    pub(super) fn destination(&self) -> &str {
        &self.run.program
    }

    /// Whether it can be asked what it knows of an attempt.
    pub(super) const fn can_be_asked(&self) -> bool {
        self.status.is_some()
    }

    /// The process, where it runs and with a place to write its result down.
    fn placed(&self, process: Process, running: &Running) -> Process {
        let mut process = Process { cwd: Some(self.directory.clone()), ..process };
        process.tell("RESULT", running.result());
        process
    }

    /// What was done, by what the program wrote down or else by how it ended.
    fn done(&self, ended: Value, written: Option<Value>) -> Done {
        let Some(written) = written else { return Done::from(ended) };
        let found = |pointer: &Option<Pointer>| pointer.as_ref().and_then(|pointer| pointer.find(&written));
        let name = |pointer| found(pointer).and_then(named);
        let (receipt, request) = (name(&self.receipt), name(&self.request));
        let value = match &self.result {
            // What it wrote is not lost without a word.
            Some(pointer) => pointer
                .find(&written)
                .cloned()
                .unwrap_or_else(|| stand_in("no_result", json::canonical(&written).len())),
            None => written,
        };
        let mut done = Done::from(value);
        (done.remote.receipt_id, done.remote.request_id) = (receipt, request);
        done
    }
}

impl Handler for Program {
    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        Box::pin(async move {
            let given = Given { arguments: job.args(), provider_key: job.provider_key() };
            let process = match self.run.process(&given) {
                Ok(process) => process,
                Err(missing) => return Err(not_executed("not_filled", missing.to_string())),
            };
            let arguments = json::canonical(&job.args().clone().into());
            let call = job.call();
            let effect = call.attempt().effect;
            let (running, input) = match Running::begin(&place(&job.directory), effect, &arguments) {
                Ok(Some(begun)) => begun,
                Ok(None) => return Err(not_executed("still_running", STILL_RUNNING)),
                Err(error) => {
                    return Err(not_executed("no_place", format!("{NO_PLACE}: {}", error.kind())));
                }
            };
            let mut process = self.placed(process.for_attempt(call), &running);
            process.input = Some(Input::new(input));
            let mut deadline = call.deadline() - GRACE_MAX * 2;
            if self.can_be_asked() {
                // Whoever asks counts on it that it has ended.
                process.grace = Duration::ZERO;
                deadline = deadline.min(Instant::now() + job.patience);
            }
            let ran = process.run_for(call, deadline).await;
            let performed = ran
                .and_then(|ran| ran.executed(&self.undone.all))
                .map(|ended| self.done(ended, running.read()));
            running.end();
            performed
        })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        Box::pin(async move {
            let status = self.status.as_ref()?;
            let given = Given { arguments: &question.arguments, provider_key: &question.provider_key };
            let running = Running::ask(&place(&question.directory), question.effect).ok()??;
            let mut process = self.placed(status.run.process(&given).ok()?, &running);
            process.tell_arguments(&question.arguments);
            let ran = process.run(Instant::now() + question.patience, |_| {}).await;
            let written = running.read();
            running.end();
            match ran.ended {
                Ended::Exit(0) => Some(Word::Committed(self.done(Value::Null, written))),
                Ended::Exit(code) if status.absent_on.contains(&code) => Some(Word::Absent),
                _ => None,
            }
        })
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        match failure {
            Failure::NotExecuted { code: Some(code), .. }
                if code.starts_with("exit_") && !self.undone.is_again(code) =>
            {
                None
            }
            Failure::NotExecuted { code: Some(code), .. } if code == "not_filled" => None,
            _ => Some(pause(attempts)),
        }
    }

    /// A code that the contract does not list may mean anything.
    fn reached(&self, failure: &Failure) -> Option<bool> {
        let (Failure::NotExecuted { code, .. } | Failure::Unknown { code, .. }) = failure;
        match (code.as_deref()?, failure) {
            (code, Failure::NotExecuted { .. }) if code.starts_with("exit_") => Some(true),
            ("program_not_found" | "permission_denied" | "no_such_directory" | "not_started", _)
            | ("timed_out" | "deadline", _) => Some(false),
            _ => None,
        }
    }
}

const STILL_RUNNING: &str = "the program of an earlier attempt at this effect still runs on this machine";
const NO_PLACE: &str = "there is no place for what the program reads and writes";

fn not_executed(code: &str, message: impl Into<String>) -> Failure {
    Failure::NotExecuted { code: Some(code.to_owned()), message: message.into() }
}

/// Where programs' files are: beside the store, or for one in memory where
/// temporary files are.
fn place(directory: &Option<PathBuf>) -> PathBuf {
    let elsewhere = || std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| std::env::temp_dir());
    directory.clone().unwrap_or_else(elsewhere)
}

fn known(document: &Object, keys: &[&str]) -> Result<(), String> {
    match document.iter().find(|(name, _)| !keys.contains(name)) {
        Some((name, _)) => Err(format!("command: `{name}` is not known; known are {}", keys.join(", "))),
        None => Ok(()),
    }
}

/// The numbers by which a remote says that it did nothing.
pub(super) fn codes<N: Ord + Copy + TryFrom<i64>>(
    document: &Object,
    name: &str,
    what: &str,
    within: std::ops::RangeInclusive<i64>,
) -> Result<BTreeSet<N>, String> {
    let wrong = || format!("{what}: {name} is a list of numbers from {} to {}", within.start(), within.end());
    match document.get(name) {
        None => Ok(BTreeSet::new()),
        Some(Value::List(numbers)) => numbers
            .iter()
            .map(|number| {
                let number = number.as_integer().filter(|number| within.contains(number));
                number.and_then(|number| N::try_from(number).ok()).ok_or_else(wrong)
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Ended, SpawnErrorKind, classify};

    #[test]
    fn a_program_that_cannot_run_or_does_not_end_counts_and_no_definite_no_does() {
        let mut document = Object::new();
        document.insert("run", Value::List(vec!["refund".into()]));
        let program = Program::parse(&document, Path::new("/")).expect("a program");
        assert_eq!(program.destination(), "refund");
        for (ended, expected) in [
            (Ended::NotStarted(SpawnErrorKind::ProgramNotFound), Some(false)),
            (Ended::NotStarted(SpawnErrorKind::PermissionDenied), Some(false)),
            (Ended::NotStarted(SpawnErrorKind::NoSuchDirectory), Some(false)),
            (Ended::NotStarted(SpawnErrorKind::System(None)), Some(false)),
            (Ended::TimedOut, Some(false)),
            (Ended::Exit(75), Some(true)),
            (Ended::Exit(1), None),
            (Ended::Signal(9), None),
            (Ended::Lost, None),
            (Ended::NotStarted(SpawnErrorKind::NulByte), None),
            (Ended::NotStarted(SpawnErrorKind::DeadlinePassed), None),
        ] {
            let outcome = classify(&ended, &BTreeSet::from([75]));
            let failure = outcome.executed(Value::Null, "").expect_err("it failed");
            assert_eq!(program.reached(&failure), expected, "{ended:?}");
        }
    }
}
