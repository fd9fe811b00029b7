//! Waiting for the program, and ending it at the deadline.
//!
//! Invariant: before time is said to be up, it is looked once more whether the
//! program has ended by itself.

use std::future::Future;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use super::group::{Group, State};
use super::signals::{Heard, Signals};
use super::terminal::Terminal;
use super::{Ended, Event, GRACE_MAX, Process, SpawnErrorKind};

/// A program that runs, with what is needed to follow it.
pub(super) struct Watch {
    // Dropped in this order: the terminal is taken from a group that is dead.
    group: Group,
    terminal: Option<Terminal>,
    signals: Signals,
    /// Whether signals are passed on.
    forwards: bool,
    deadline: Instant,
}

impl Watch {
    pub(super) fn start(process: &Process, deadline: Instant) -> Result<Self, SpawnErrorKind> {
        let signals = Signals::listen(process.passes_all_on).map_err(|error| SpawnErrorKind::of(&error))?;
        if deadline <= Instant::now() {
            return Err(SpawnErrorKind::DeadlinePassed);
        }
        let forwards = !process.beside_others;
        let mut terminal = Terminal::open().filter(|_| forwards);
        let group = Group::spawn(process)?;
        if let Some(terminal) = terminal.as_mut().filter(|_| Terminal::is_for_the_program()) {
            terminal.lend(group.pid());
        }
        Ok(Self { group, terminal, signals, forwards, deadline })
    }

    pub(super) async fn finish(self, grace: Duration, events: &mut impl FnMut(Event)) -> Ended {
        self.finish_or(std::future::pending(), grace, events).await
    }

    /// As [`finish`](Self::finish); time is up as well when `stop` is ready.
    pub(super) async fn finish_or(
        mut self,
        stop: impl Future<Output = ()>,
        grace: Duration,
        events: &mut impl FnMut(Event),
    ) -> Ended {
        events(Event::Started { pid: self.group.pid().as_raw_nonzero().get().unsigned_abs() });
        let deadline = self.deadline;
        let state = tokio::select! {
            biased;
            state = self.ended_by(deadline, events) => state,
            () = stop => self.group.state(),
        };
        match state {
            State::Ended => {
                let ended = self.group.reap();
                if let (Ended::Exit(_), Some(terminal)) = (ended, &mut self.terminal) {
                    terminal.keep_modes();
                }
                ended
            }
            State::Lost => Ended::Lost,
            State::Running | State::Stopped => {
                if self.end(grace, events).await == State::Ended {
                    // How it ended by then says nothing any more.
                    self.group.reap();
                }
                Ended::TimedOut
            }
        }
    }

    /// Ends the group. The time to kill it is bounded too: some programs
    /// cannot be killed.
    async fn end(&mut self, grace: Duration, events: &mut impl FnMut(Event)) -> State {
        events(Event::Deadline);
        self.group.signal(Signal::TERM);
        // A stopped program does not hear SIGTERM.
        self.group.signal(Signal::CONT);
        self.ended_by(Instant::now() + grace, events).await;
        if self.group.signal(Signal::KILL) {
            events(Event::Killed);
        }
        let state = self.ended_by(Instant::now() + GRACE_MAX, events).await;
        if matches!(state, State::Running | State::Stopped) {
            events(Event::LeftBehind);
        }
        state
    }

    /// Follows the program until it has ended, or to `until`.
    async fn ended_by(&mut self, until: Instant, events: &mut impl FnMut(Event)) -> State {
        loop {
            match self.group.state() {
                state @ (State::Ended | State::Lost) => return state,
                State::Stopped => self.resume(),
                State::Running => {}
            }
            tokio::select! {
                biased;
                () = sleep_until(until) => return self.group.state(),
                heard = self.signals.next() => if let Heard::Forward(signal) = heard
                    && self.forwards
                    && self.group.signal(signal)
                {
                    events(Event::Forwarded { signal: signal.as_raw() });
                },
            }
        }
    }

    /// Lets a program go on that stopped because it needs the terminal, or was
    /// told to suspend. Without the terminal it would stop again at once.
    fn resume(&mut self) {
        if self.terminal.as_mut().is_some_and(|terminal| terminal.lend(self.group.pid())) {
            self.group.signal(Signal::CONT);
        }
    }
}
