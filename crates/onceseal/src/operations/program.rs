//! Tools that are programs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onceseal_core::json::{self, Object, Value};

use super::carrying::pause;
use super::filling::{Filling, Given, plainly};
use super::tool::{Answering, Handler, Job};
use crate::executed::{Executed, Failure};
use crate::process::{GRACE_MAX, Process};

/// Linux takes no longer text in an environment.
const ENVIRONMENT_BYTES: usize = 128 * 1024 - 64;

/// A program as a contract names it. No shell is involved: placeholders are
/// whole arguments, and stand after `--`, so that no value is taken for an
/// option.
#[derive(Debug, Clone)]
pub(super) struct Program {
    program: String,
    args: Vec<Filling>,
    not_executed_on: BTreeSet<i32>,
    /// Where it runs: beside the file that declares it, wherever the worker is.
    directory: PathBuf,
}

impl Program {
    /// Reads `{run: [program, args…], not_executed_on?: [code…]}`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(document: &Object, directory: &Path) -> Result<Program, String> {
        for (name, _) in document.iter() {
            if !["run", "not_executed_on"].contains(&name) {
                return Err(format!("command: `{name}` is not known; known are run and not_executed_on"));
            }
        }
        let texts = document.get("run").and_then(Value::as_list).ok_or("command: run is a list of texts")?;
        let texts =
            texts.iter().map(|text| text.as_text().ok_or("command: run is a list of texts".to_owned()));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let (program, rest) = texts.split_first().ok_or("command: run names a program")?;
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
        let not_executed_on = codes(document, "command", 1..=255)?;
        let directory = directory.to_owned();
        Ok(Program { program: (*program).to_owned(), args, not_executed_on, directory })
    }

    /// What it depends on, where the contract does not say.
    pub(super) fn destination(&self) -> &str {
        &self.program
    }

    fn process(&self, job: &Job) -> Result<Process, String> {
        let given = Given { arguments: job.args(), provider_key: job.provider_key() };
        let args = self.args.iter().map(|arg| arg.fill(&given, plainly).map(OsString::from));
        let args = args.collect::<Result<Vec<_>, _>>().map_err(|missing| missing.to_string())?;
        let call = job.call();
        let mut env: Vec<(OsString, OsString)> = vec![
            ("ONCESEAL_ACTION".into(), call.action().to_string().into()),
            ("ONCESEAL_ATTEMPT".into(), call.fence().to_string().into()),
            ("ONCESEAL_PROVIDER_KEY".into(), job.provider_key().into()),
        ];
        env.extend(call.effect_key().map(|key| ("ONCESEAL_EFFECT_KEY".into(), key.into())));
        let arguments = json::canonical(&job.args().clone().into());
        if arguments.len() <= ENVIRONMENT_BYTES {
            env.push(("ONCESEAL_ARGUMENTS".into(), arguments.into()));
        }
        let cwd = Some(self.directory.clone());
        Ok(Process { args, env, cwd, beside_others: true, ..Process::new(self.program.as_str()) })
    }
}

impl Handler for Program {
    fn perform(&self, job: Job) -> Answering<'_, Executed> {
        Box::pin(async move {
            let process = match self.process(&job) {
                Ok(process) => process,
                Err(missing) => {
                    return Err(Failure::NotExecuted {
                        code: Some("not_filled".to_owned()),
                        message: missing,
                    });
                }
            };
            // It ends by itself before the attempt does, so that its end is known.
            let deadline = job.call().deadline() - GRACE_MAX * 2;
            process.run(deadline, |_| {}).await.executed(&self.not_executed_on)
        })
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        match failure {
            Failure::NotExecuted { code: Some(code), .. } if code.starts_with("exit_") => None,
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

/// The numbers by which a remote says that it did nothing.
pub(super) fn codes<N: Ord + Copy + TryFrom<i64>>(
    document: &Object,
    what: &str,
    within: std::ops::RangeInclusive<i64>,
) -> Result<BTreeSet<N>, String> {
    let wrong = || {
        format!("{what}: not_executed_on is a list of numbers from {} to {}", within.start(), within.end())
    };
    match document.get("not_executed_on") {
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
