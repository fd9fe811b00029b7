//! A real process that is really killed between the call and its record.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use onceseal::core::code::Code;
use onceseal::core::json::Value;
use onceseal::store::StoreError;
use onceseal::store::clock::SystemClock;
use onceseal::{Call, Error, Failure};

use super::Outcome;
use super::scenes::{code_of, judged};
use super::stage::{SMALL, Stage, open, refund};
use crate::context::wait;
use crate::error::CliError;

/// Where the provider of this scene writes a line per call.
const CALLS: &str = "provider";
/// What the child says when the provider has done its work.
const CALLED: &str = "called";

pub(super) fn crash_in_the_middle(stage: &Stage) -> Result<Outcome, CliError> {
    let failed = |error: io::Error| CliError::from(StoreError::from(error));
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(["demo", "--crash-in"])
        .arg(&stage.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    let said = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).read_line(&mut line).map(|_| line.trim() == CALLED),
        None => Ok(false),
    };
    // SIGKILL: nothing of the child runs any more.
    child.kill().and_then(|()| child.wait()).map_err(failed)?;
    if !said.map_err(failed)? {
        return Err(Error::Unexpected.into());
    }
    stage.lease_ends();
    let again = wait(refund(&stage.control, "second-agent", "txn_6", SMALL).execute(|_: Call| async {
        called(&stage.directory)?;
        Ok::<Value, Failure>(Value::Null)
    }))?;
    let calls = fs::read_to_string(stage.directory.join(CALLS)).map_err(failed)?.lines().count();
    Ok(judged(code_of(&again), Code::Ambiguous, u32::try_from(calls).unwrap_or(u32::MAX), 1))
}

/// The process that is killed: it calls the provider, says so, and waits for
/// its end.
pub(super) fn child(directory: &Path) -> Result<ExitCode, CliError> {
    let control = open(directory, Arc::new(SystemClock))?;
    let outcome = wait(refund(&control, "first-agent", "txn_6", SMALL).execute(|_: Call| async {
        called(directory)?;
        let mut stdout = io::stdout();
        writeln!(stdout, "{CALLED}").and_then(|()| stdout.flush())?;
        // Ends only if whoever should kill this process is gone itself.
        io::stdin().read_to_end(&mut Vec::new())?;
        Err::<Value, Failure>(Failure::unknown("it was not killed"))
    }))?;
    outcome.map(|_| ExitCode::SUCCESS).map_err(CliError::from)
}

/// The provider does what it is asked.
fn called(directory: &Path) -> io::Result<()> {
    let mut calls = OpenOptions::new().create(true).append(true).open(directory.join(CALLS))?;
    writeln!(calls, "txn_6")
}
