//! The program and its process group.
//!
//! Invariant: the leader is reaped last. Until then its number, which is the
//! group's, cannot be given to another process, so a signal to the group never
//! reaches a stranger.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{Ended, Input, Process, SpawnErrorKind, TOLD};

/// A program that was started; dropped before [`Group::reap`], its group is
/// killed.
pub(super) struct Group {
    child: Child,
    pid: Pid,
    /// Whether the leader's number may belong to somebody else by now.
    gone: bool,
}

/// What the program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// Job control stopped it: it was told to suspend, or needs the terminal.
    Stopped,
    /// It ended and waits to be reaped.
    Ended,
    /// Its status was taken by somebody else.
    Lost,
}

impl Group {
    pub(super) fn spawn(process: &Process) -> Result<Self, SpawnErrorKind> {
        let mut command = Command::new(&process.program);
        if process.beside_others {
            command.stdin(Stdio::null()).stdout(std::io::stderr());
        }
        if let Some(input) = process.input.as_ref().and_then(Input::take) {
            command.stdin(input);
        }
        for name in TOLD {
            command.env_remove(name);
        }
        command.args(&process.args).process_group(0);
        command.envs(process.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &process.cwd {
            // Otherwise its absence would look like that of the program.
            if !cwd.is_dir() {
                return Err(SpawnErrorKind::NoSuchDirectory);
            }
            command.current_dir(cwd);
        }
        // An error here is always from before the program's first instruction.
        let child = command.spawn().map_err(|error| SpawnErrorKind::of(&error))?;
        let pid = Pid::from_child(&child);
        Ok(Self { child, pid, gone: false })
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// What the program is doing. A stop is reported once.
    pub(super) fn state(&mut self) -> State {
        if self.gone {
            return State::Lost;
        }
        let look = WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | look) {
            Ok(Some(_)) => return State::Ended,
            Err(Errno::CHILD) => {
                self.gone = true;
                return State::Lost;
            }
            // Any other answer says nothing about the program.
            Ok(None) | Err(_) => {}
        }
        let stop = waitid(WaitId::Pid(self.pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        let by = stop.ok().flatten().and_then(|status| status.stopping_signal());
        let job_control = [Signal::TSTP, Signal::TTIN, Signal::TTOU].map(Signal::as_raw);
        if by.is_some_and(|signal| job_control.contains(&signal)) { State::Stopped } else { State::Running }
    }

    /// Sends a signal to the whole group; whether somebody got it.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        !self.gone && kill_process_group(self.pid, signal).is_ok()
    }

    /// Collects how the program ended; for [`State::Ended`], when it does not
    /// block.
    pub(super) fn reap(mut self) -> Ended {
        let status = self.child.wait();
        self.gone = true;
        match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exit(code),
                (None, Some(signal)) => Ended::Signal(signal),
                (None, None) => Ended::Lost,
            },
            Err(_) => Ended::Lost,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        self.signal(Signal::KILL);
        let pid = self.pid;
        // Dropping must not block, and without a reaper a dead program only
        // keeps its number until this process ends: a failure costs no more.
        let reaper = thread::Builder::new().name("onceseal-reaper".into());
        drop(reaper.spawn(move || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).is_ok()));
    }
}
