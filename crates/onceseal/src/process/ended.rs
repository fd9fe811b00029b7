//! How a program ended, and what that says about the effect.
//!
//! Invariant: [`classify`] is total and pure; only a program that never
//! started, or an exit code that the caller named beforehand, is *not
//! executed*.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use crate::executed::Outcome;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It exited by itself with this status, 0 to 255.
    Exit(i32),
    /// A signal that did not come from the deadline ended it.
    Signal(i32),
    /// It was still running at the deadline, whatever it did when asked to end.
    TimedOut,
    /// Somebody else in this process collected its status, so it is lost.
    Lost,
    /// It never ran.
    NotStarted(SpawnErrorKind),
}

/// Why a program never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// There is no such program, or the interpreter it names is missing.
    ProgramNotFound,
    /// The file may not be executed.
    PermissionDenied,
    /// The working directory is not a directory.
    NoSuchDirectory,
    /// Program, argument or environment contains a NUL byte.
    NulByte,
    /// The deadline had passed before the start.
    DeadlinePassed,
    /// The system refused for another reason, with this error number if it
    /// gave one.
    System(Option<i32>),
}

/// What an end says about the effect: exit 0 is committed, a program that
/// never started and the exit codes in `not_executed_on` are not executed, and
/// everything else is unknown. A 0 in `not_executed_on` has no meaning.
#[must_use]
pub fn classify(ended: &Ended, not_executed_on: &BTreeSet<i32>) -> Outcome {
    let code = ended.code();
    match ended {
        Ended::Exit(0) => Outcome::Committed,
        Ended::Exit(status) if not_executed_on.contains(status) => Outcome::NotExecuted { code },
        Ended::NotStarted(_) => Outcome::NotExecuted { code },
        Ended::Exit(_) | Ended::Signal(_) | Ended::TimedOut | Ended::Lost => Outcome::Unknown { code },
    }
}

impl Ended {
    /// A short code for the journal, such as `exit_3`.
    #[must_use]
    pub fn code(&self) -> String {
        match self {
            Self::Exit(status) => format!("exit_{status}"),
            Self::Signal(signal) => format!("signal_{signal}"),
            Self::TimedOut => "timed_out".into(),
            Self::Lost => "status_lost".into(),
            Self::NotStarted(kind) => kind.code().into(),
        }
    }
}

impl SpawnErrorKind {
    fn code(self) -> &'static str {
        match self {
            Self::ProgramNotFound => "program_not_found",
            Self::PermissionDenied => "permission_denied",
            Self::NoSuchDirectory => "no_such_directory",
            Self::NulByte => "nul_byte",
            Self::DeadlinePassed => "deadline_passed",
            Self::System(_) => "not_started",
        }
    }

    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::ProgramNotFound,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => Self::NulByte,
            _ => Self::System(error.raw_os_error()),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "the program exited with status {status}"),
            Self::Signal(signal) => write!(f, "the program was ended by signal {signal}"),
            Self::TimedOut => f.write_str("the program was still running at the deadline and was stopped"),
            Self::Lost => f.write_str("the program ended and its status was collected by somebody else"),
            Self::NotStarted(kind) => write!(f, "the program was not started: {kind}"),
        }
    }
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProgramNotFound => f.write_str("it was not found; check its name and PATH"),
            Self::PermissionDenied => f.write_str("it may not be executed; check its permissions"),
            Self::NoSuchDirectory => f.write_str("its working directory is not a directory"),
            Self::NulByte => f.write_str("its name, an argument or a variable contains a NUL byte"),
            Self::DeadlinePassed => f.write_str("the deadline had passed; give it more time"),
            Self::System(Some(number)) => {
                write!(f, "the system refused: {}", io::Error::from_raw_os_error(*number))
            }
            Self::System(None) => f.write_str("the system refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(code: &str) -> Outcome {
        Outcome::Unknown { code: code.into() }
    }

    fn not_executed(code: &str) -> Outcome {
        Outcome::NotExecuted { code: code.into() }
    }

    #[test]
    fn p06_only_named_exit_codes_and_programs_that_never_ran_are_not_executed() {
        let named = BTreeSet::from([0, 75]);
        let table = [
            (Ended::Exit(0), Outcome::Committed),
            (Ended::Exit(75), not_executed("exit_75")),
            (Ended::Exit(1), unknown("exit_1")),
            (Ended::Exit(127), unknown("exit_127")),
            // 75 names an exit code, never a signal.
            (Ended::Signal(75), unknown("signal_75")),
            (Ended::TimedOut, unknown("timed_out")),
            (Ended::Lost, unknown("status_lost")),
            (Ended::NotStarted(SpawnErrorKind::ProgramNotFound), not_executed("program_not_found")),
            (Ended::NotStarted(SpawnErrorKind::PermissionDenied), not_executed("permission_denied")),
            (Ended::NotStarted(SpawnErrorKind::NoSuchDirectory), not_executed("no_such_directory")),
            (Ended::NotStarted(SpawnErrorKind::NulByte), not_executed("nul_byte")),
            (Ended::NotStarted(SpawnErrorKind::DeadlinePassed), not_executed("deadline_passed")),
            (Ended::NotStarted(SpawnErrorKind::System(Some(7))), not_executed("not_started")),
        ];
        for (ended, outcome) in table {
            assert_eq!(classify(&ended, &named), outcome, "{ended:?}");
        }
    }

    #[test]
    fn p06_without_named_codes_every_other_exit_is_unknown() {
        for status in 1..=255 {
            let outcome = classify(&Ended::Exit(status), &BTreeSet::new());
            assert_eq!(outcome, unknown(&format!("exit_{status}")));
        }
    }
}
