//! Running one program as an executor.
//!
//! Invariant: what is said to be not executed never ran an instruction of the
//! program, and the program's process group is signalled only while its number
//! cannot belong to anybody else (its leader is not reaped before the last
//! signal).
//!
//! The program leads a process group of its own, its streams are the caller's,
//! and whatever is left of the group at the deadline is killed. A program that
//! ends before leaves its background children alone: they are its own business.
//!
//! # Signals
//! SIGINT and SIGTERM to the calling process are passed on to the group, and
//! the program is still waited for, so that how it really ended is known.
//! SIGTSTP is dropped: an attempt holds a lease and cannot be suspended.
//! SIGHUP and other signals that end a process keep their meaning, unless
//! [`Process::passes_all_on`] says that they are passed on as well; what was ignored
//! when the process began stays so, and `nohup` works. The handlers stay for the
//! rest of the process's life, after which these signals do nothing unless somebody
//! else listens.
//!
//! # Terminal
//! A program in a group of its own cannot read the terminal unless the group
//! is the terminal's foreground group. Where standard input and output are
//! both a terminal, the group becomes it at once; in a pipeline, whose other
//! programs may need the terminal too, when the program first stops for it.
//! Afterwards the terminal is taken back, with its modes as they were if the
//! program did not end by itself. A caller in the background has no terminal
//! to lend: a program that reads it then stays stopped until the deadline.
//!
//! # As an executor
//! The executor is dropped at the attempt's deadline, and the program killed
//! with it. It is stopped before, so that it may end by itself and its end is
//! known:
//!
//! ```no_run
//! use std::collections::BTreeSet;
//!
//! use onceseal::process::{GRACE_MAX, Process};
//! use onceseal::{Control, Principal};
//!
//! # async fn example(control: Control) -> Result<(), onceseal::Error> {
//! let deploy = Process::new("./deploy").arg("web");
//! // By which it says that it did nothing.
//! let not_executed_on = BTreeSet::from([75]);
//! control
//!     .action("deploy")
//!     .arg("service", "web")
//!     .by(Principal::agent("release-bot"))
//!     .execute(|call| async move {
//!         deploy.run(call.deadline() - GRACE_MAX * 2, |_| {}).await.executed(&not_executed_on)
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onceseal_core::json::{self, Object};

pub use self::ended::{Ended, SpawnErrorKind, classify};
pub use self::signals::is_ignored;
use self::watch::Watch;
use crate::attempt::Call;
use crate::executed::{Executed, Failure};

mod ended;
mod group;
mod signals;
mod terminal;
mod watch;

/// The longest time between asking a program to end and killing it.
pub const GRACE_MAX: Duration = Duration::from_secs(5);

/// As good as none.
const NO_DEADLINE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How often a program that runs is looked whether its lease still holds.
const LOOK: Duration = Duration::from_millis(100);

/// Linux takes no longer text in an environment, with its name.
const VARIABLE_BYTES: usize = 128 * 1024 - 64;

/// What a program is told of its attempt: never what the caller was told of
/// another.
const TOLD: [&str; 6] = [
    "ONCESEAL_ACTION",
    "ONCESEAL_ARGUMENTS",
    "ONCESEAL_ATTEMPT",
    "ONCESEAL_EFFECT_KEY",
    "ONCESEAL_PROVIDER_KEY",
    "ONCESEAL_RESULT",
];

/// One program to run.
///
/// Its `Debug` form shows neither arguments nor values of the environment:
/// they may be secrets.
#[derive(Clone)]
pub struct Process {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub program: OsString,
    /// Its arguments, passed as they are; no shell is involved.
    pub args: Vec<OsString>,
    /// Variables set in addition to the caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads, handed over when it is started; `None` is the caller's
    /// standard input, or nothing for one of several.
    pub input: Option<Input>,
    /// Where it runs; `None` is the caller's working directory.
    pub cwd: Option<PathBuf>,
    /// Time between SIGTERM at the deadline and SIGKILL; at most
    /// [`GRACE_MAX`], which is the default. It ends early if the program does.
    pub grace: Duration,
    /// Whether it is one of several, as a worker's programs are: no signal to
    /// the caller is passed on to it, it gets no terminal and no input, and what
    /// it prints goes to the caller's standard error.
    pub beside_others: bool,
    /// Whether SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGALRM to the caller are passed on
    /// too, so that it does not die without its program: for a caller that has nothing
    /// else to do.
    pub passes_all_on: bool,
}

/// A file that a program reads: it belongs to the program once that runs, and
/// whoever started it has it no more.
#[derive(Debug, Clone)]
pub struct Input(Arc<Mutex<Option<File>>>);

impl Input {
    /// This file, from where it stands.
    #[must_use]
    pub fn new(file: File) -> Input {
        Input(Arc::new(Mutex::new(Some(file))))
    }

    fn take(&self) -> Option<File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What happens while a program runs, for whoever shows or records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The program runs. From here on it can no longer be said that nothing
    /// happened, unless its exit code does.
    Started {
        /// The number of the process, and of its group.
        pid: u32,
    },
    /// A signal to the caller was passed on to the group.
    Forwarded {
        /// The signal's number.
        signal: i32,
    },
    /// The deadline passed; the group was asked to end with SIGTERM.
    Deadline,
    /// What was left of the group, if anything, was killed with SIGKILL.
    Killed,
    /// The program could not be killed (it runs as another user, or hangs in
    /// the kernel) and was left behind.
    LeftBehind,
}

/// A run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// How long it took, from before the start.
    pub took: Duration,
}

impl Ran {
    /// As an executor returns it, by [`classify`]: `{"exit":0}`, or how the
    /// program ended.
    ///
    /// # Errors
    /// [`Failure`](crate::Failure), unless the program exited with 0.
    pub fn executed(&self, not_executed_on: &BTreeSet<i32>) -> Executed {
        let mut exited = Object::new();
        exited.insert("exit", 0);
        classify(&self.ended, not_executed_on).executed(exited, self.ended.to_string())
    }
}

impl Process {
    /// A program without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            input: None,
            cwd: None,
            grace: GRACE_MAX,
            beside_others: false,
            passes_all_on: false,
        }
    }

    /// Tells the program which attempt it runs for, in its environment:
    /// `ONCESEAL_ACTION`, `ONCESEAL_ATTEMPT`, `ONCESEAL_EFFECT_KEY` if the action
    /// has one, and `ONCESEAL_ARGUMENTS` where these are not longer than a
    /// variable may be.
    #[must_use]
    pub fn for_attempt(mut self, call: &Call) -> Self {
        self.tell("ACTION", call.action().to_string());
        self.tell("ATTEMPT", call.fence().to_string());
        if let Some(key) = call.effect_key() {
            self.tell("EFFECT_KEY", key);
        }
        self.tell_arguments(call.args());
        self
    }

    pub(crate) fn tell(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((format!("ONCESEAL_{name}").into(), value.into()));
    }

    pub(crate) fn tell_arguments(&mut self, arguments: &Object) {
        let arguments = json::canonical(&arguments.clone().into());
        if arguments.len() <= VARIABLE_BYTES {
            self.tell("ARGUMENTS", arguments);
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Runs the program to its end, at the latest to `deadline` and the grace
    /// after it. `events` is called as things happen, and should not block.
    ///
    /// Dropping the future kills the group with SIGKILL, and nobody knows what
    /// the program had done by then: after [`Event::Started`] a dropped run is
    /// unknown, before it nothing ran.
    ///
    /// # Panics
    /// Outside a Tokio runtime, or inside one without I/O or time enabled.
    pub async fn run(&self, deadline: Instant, mut events: impl FnMut(Event)) -> Ran {
        let begun = Instant::now();
        let ended = match Watch::start(self, deadline.into()) {
            Ok(watch) => watch.finish(self.grace.min(GRACE_MAX), &mut events).await,
            Err(kind) => Ended::NotStarted(kind),
        };
        Ran { ended, took: begun.elapsed() }
    }

    /// Runs the program to its end, or until `stop` is ready: then it is asked to end,
    /// as at a deadline, and killed after the grace. [`Ended::TimedOut`] says that it
    /// was.
    ///
    /// Dropping the future kills the group, as that of [`run`](Self::run) does.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_until(&self, stop: impl Future<Output = ()>, mut events: impl FnMut(Event)) -> Ran {
        let begun = Instant::now();
        let ended = match Watch::start(self, (begun + NO_DEADLINE).into()) {
            Ok(watch) => watch.finish_or(stop, self.grace.min(GRACE_MAX), &mut events).await,
            Err(kind) => Ended::NotStarted(kind),
        };
        Ran { ended, took: begun.elapsed() }
    }

    /// Runs the program for an attempt: it is killed when the attempt's lease is
    /// lost, since whatever it would still do comes too late.
    ///
    /// # Errors
    /// With the code `lease_lost`, [`Failure::NotExecuted`] if it was not started
    /// and [`Failure::Unknown`] if it was stopped.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub async fn run_for(&self, call: &Call, deadline: Instant) -> Result<Ran, Failure> {
        // What came between the claim and here may have taken any time.
        if call.is_lost() {
            let message = "the lease had ended before the command was started".to_owned();
            return Err(Failure::NotExecuted { code: Some("lease_lost".to_owned()), message });
        }
        let lost = async {
            while !call.is_lost() {
                tokio::time::sleep(LOOK).await;
            }
            // One that has ended meanwhile is heard first.
            tokio::time::sleep(LOOK).await;
        };
        tokio::select! {
            biased;
            ran = self.run(deadline, |_| {}) => Ok(ran),
            // Its group is killed with it.
            () = lost => {
                let message = "the lease ended while the command ran, and it was stopped".to_owned();
                Err(Failure::Unknown { code: Some("lease_lost".to_owned()), message })
            }
        }
    }

    /// [`run`](Self::run) for callers that are not async.
    ///
    /// # Panics
    /// Inside a Tokio runtime.
    pub fn run_blocking(&self, deadline: Instant, events: impl FnMut(Event)) -> Ran {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(self.run(deadline, events)),
            Err(error) => Ran { ended: Ended::NotStarted(SpawnErrorKind::of(&error)), took: Duration::ZERO },
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Process")
            .field("program", &self.program)
            .field("args", &format_args!("[{} redacted]", self.args.len()))
            .field("env", &names)
            .field("cwd", &self.cwd)
            .field("grace", &self.grace)
            .field("beside_others", &self.beside_others)
            .field("passes_all_on", &self.passes_all_on)
            .finish()
    }
}
