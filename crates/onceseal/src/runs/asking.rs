//! Asking for what changes a run: starting it, moving it on, naming its change.
//!
//! Every request has an id, drawn at random where none is given. With the same id
//! the same request is answered as it was the first time, so one whose answer was
//! lost on the way is repeated here.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::lease::Lease;
use onceseal_core::reply::{Reply, RunNow};
use onceseal_core::run::{BindChange, StartRun, Subject, Towards, Transition};
use onceseal_store::{OwnRows, StoreError};

use super::writing::{WriteError, asked_with};
use super::{LeaseGuard, Run, Runs, draw_request};
use crate::control::{Control, accepted};
use crate::error::Error;

/// How often a request is made again whose answer was lost.
pub(super) const REPEATS: usize = 3;

/// A run that was started or joined.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Started {
    /// The run.
    pub run: Run,
    /// What was answered: whether it was joined, whether the request was made
    /// before, and where the run stands now.
    pub answer: RunNow,
}

/// A start being put together; see [`Runs::start`].
#[must_use = "nothing is started until it is sent"]
pub struct Starting {
    runs: Runs,
    kind: String,
    subject: Option<Subject>,
    request: Option<String>,
}

impl Starting {
    pub(super) fn new(runs: Runs, kind: String) -> Starting {
        Starting { runs, kind, subject: None, request: None }
    }

    /// What is run: a change, by its name.
    pub fn change(self, name: impl Into<String>) -> Starting {
        self.subject(Subject::Change(name.into()))
    }

    /// What is run: something that has no name yet, by the digest of what is known
    /// of it.
    pub fn provisional(self, digest: Hash) -> Starting {
        self.subject(Subject::Provisional(digest))
    }

    /// What is run.
    pub fn subject(self, subject: Subject) -> Starting {
        Starting { subject: Some(subject), ..self }
    }

    /// What makes two starts of this project and kind the same request.
    pub fn request(self, id: impl Into<String>) -> Starting {
        Starting { request: Some(id.into()), ..self }
    }

    /// Starts the run, or joins the one that lives.
    ///
    /// # Errors
    /// `kind_unknown`, `change_invalid`, `provisional_forbidden`, or what the store
    /// fails with.
    pub async fn send(self) -> Result<Started, Error> {
        let Starting { runs, kind, subject, request } = self;
        let Some(definition) = runs.definitions.get(&kind).cloned() else {
            let known = runs.definitions.keys().cloned().collect();
            return Err(Error::KindUnknown { kind, known });
        };
        let start = StartRun {
            root: runs.root,
            definition,
            // No name is no name that a change may have.
            subject: subject.unwrap_or(Subject::Change(String::new())),
            request: named(request)?,
            principal: runs.principal.clone(),
        };
        let answer = asked(&runs.control, Command::StartRun(Box::new(start))).await?;
        Ok(Started { run: runs.run(answer.answered.run), answer })
    }
}

/// A move being put together; see [`Run::transition`] and [`Run::command`].
#[must_use = "nothing moves until it is sent"]
pub struct Moving {
    run: Run,
    to: Towards,
    code: Option<String>,
    request: Option<String>,
    under: Option<Lease>,
}

impl Moving {
    fn new(run: Run, to: Towards) -> Moving {
        Moving { run, to, code: None, request: None, under: None }
    }

    pub(super) fn to_state(run: Run, state: String) -> Moving {
        Moving::new(run, Towards::State(state))
    }

    pub(super) fn by_command(run: Run, name: String) -> Moving {
        Moving::new(run, Towards::Command(name))
    }

    /// Why, in a word; it stays on the run until the next move.
    pub fn code(self, code: impl Into<String>) -> Moving {
        Moving { code: Some(code.into()), ..self }
    }

    /// What makes two requests of this run the same.
    pub fn request(self, id: impl Into<String>) -> Moving {
        Moving { request: Some(id.into()), ..self }
    }

    /// Only while this lease on the run holds.
    pub fn under(self, lease: &LeaseGuard) -> Moving {
        self.under_lease(lease.lease().clone())
    }

    /// The same with a lease that was handed on.
    pub fn under_lease(self, lease: Lease) -> Moving {
        Moving { under: Some(lease), ..self }
    }

    /// Moves the run on.
    ///
    /// # Errors
    /// `run_unknown`, `run_ended`, `state_unknown`, `transition_forbidden`,
    /// `command_forbidden`, `command_elsewhere`, `lease_fenced`,
    /// `request_id_conflict`, or what the store fails with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let (control, command) = self.command()?;
        asked(&control, command).await
    }

    /// Moves it on, with rows of the caller's own as [`Binding::send_with`] writes them.
    ///
    /// # Errors
    /// As [`Moving::send`] and [`Binding::send_with`].
    ///
    /// # Panics
    /// If `write` does; nothing was recorded then.
    ///
    /// [`Binding::send_with`]: super::Binding::send_with
    pub async fn send_with<E, W>(self, write: W) -> Result<RunNow, WriteError<E>>
    where
        E: From<StoreError> + Send + 'static,
        W: FnMut(&RunNow, &mut OwnRows<'_>) -> Result<(), E> + Send + 'static,
    {
        let (control, command) = self.command()?;
        asked_with(&control, command, write).await
    }

    fn command(self) -> Result<(Control, Command), Error> {
        let Moving { run: Run { control, principal, id: run }, to, code, request, under } = self;
        let request = named(request)?;
        Ok((control, Command::Transition(Transition { run, to, code, request, principal, under })))
    }
}

/// A name for a change being put together; see [`Run::bind_change`].
#[must_use = "nothing is named until it is sent"]
pub struct Naming {
    run: Run,
    change: String,
    request: Option<String>,
}

impl Naming {
    pub(super) fn new(run: Run, change: String) -> Naming {
        Naming { run, change, request: None }
    }

    /// As [`Moving::request`].
    pub fn request(self, id: impl Into<String>) -> Naming {
        Naming { request: Some(id.into()), ..self }
    }

    /// Names the change.
    ///
    /// # Errors
    /// `run_unknown`, `run_ended`, `change_bound`, `change_invalid`,
    /// `change_taken`, `request_id_conflict`, or what the store fails with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let Naming { run: Run { control, principal, id: run }, change, request } = self;
        let request = named(request)?;
        asked(&control, Command::BindChange(BindChange { run, change, request, principal })).await
    }
}

pub(super) fn named(request: Option<String>) -> Result<String, Error> {
    request.map_or_else(draw_request, Ok)
}

/// Submits a request that has an id.
pub(super) async fn asked(control: &Control, command: Command) -> Result<RunNow, Error> {
    let mut repeats = 0..REPEATS;
    loop {
        match control.submit(command.clone()).await {
            Err(Error::Store(error)) if error.code() == Code::CommitUnknown && repeats.next().is_some() => {}
            answer => {
                return match accepted(answer?)? {
                    Reply::Run(now) => Ok(*now),
                    _ => Err(Error::Unexpected),
                };
            }
        }
    }
}
