//! Decides a batch of commands on one view, and saves what they caused at once.
//!
//! Each command is decided on its own: one that cannot be decided is refused
//! alone, and leaves nothing behind. So does one whose locks somebody else has:
//! it is put aside, for a batch that may wait for them.

mod batch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::decide::Verdict;
use onceseal_core::lock::{Hold, Lock};
use onceseal_core::reply::Reply;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Pinned, View};

use crate::backend::{Backend, Changes, Fault, Needs};
use crate::error::StoreError;
use crate::own::{OwnRows, Undone, Write};
use batch::Batch;

/// A transaction decides for so long at most: others wait for its lock.
const BATCH_TIME: Duration = Duration::from_millis(20);

/// What a command came to.
pub type Outcome = Result<Reply, StoreError>;

/// What decides a command.
pub type Decide = dyn Fn(&Pinned, &View, &Stamped, Timestamp) -> Result<Verdict, Halt> + Send + Sync;

/// A command on its way.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) command: Stamped,
    /// What it was found to need beside what commands like it usually do.
    pub(crate) needs: Needs,
}

impl From<Stamped> for Submitted {
    fn from(command: Stamped) -> Submitted {
        Submitted { command, needs: Needs::default() }
    }
}

/// What became of a command in a batch.
pub(crate) enum Ran {
    /// It has its answer.
    Answered(Outcome),
    /// Somebody else has a lock that it needs. It left no trace.
    Aside(Needs),
}

/// Runs batches on a backend for one tenant.
pub struct Executor {
    backend: Box<dyn Backend>,
    pinned: Pinned,
    decide: Arc<Decide>,
}

impl Executor {
    /// An executor with nothing known but the tenant's constants.
    #[must_use]
    pub fn new(backend: Box<dyn Backend>, pinned: Pinned, decide: Arc<Decide>) -> Executor {
        Executor { backend, pinned, decide }
    }

    /// The backend.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// Decides the commands one after another in one transaction, as many as
    /// fit into its time and one at least; says what became of those. If saving
    /// them together fails, each is tried alone.
    pub(crate) fn run_some(&mut self, commands: &[Submitted]) -> Vec<Ran> {
        let (begun, failed) = match self.attempt(commands) {
            Ok(ran) => return ran,
            Err(failed) => failed,
        };
        match failed {
            Fault::Nothing(error) if begun > 1 && !is_general(&error) => commands[..begun]
                .iter()
                .flat_map(|command| self.run_some(std::slice::from_ref(command)))
                .collect(),
            Fault::Nothing(error) | Fault::Unknown(error) => {
                std::iter::repeat_with(|| Ran::Answered(Err(error.clone()))).take(begun).collect()
            }
        }
    }

    /// Decides one command in a transaction of its own, and has the caller write
    /// its own rows in it. They are written only with a command that is recorded:
    /// not with a refusal, and not with an answer given again.
    pub(crate) fn run_with(
        &mut self,
        command: &mut Submitted,
        write: &mut Write<'_>,
    ) -> Result<Reply, NotRun> {
        let Executor { backend, pinned, decide } = self;
        command.needs.locks.add(Lock::Own, Hold::Exclusive);
        pinned.forget_unknown();
        let mut ran = Ran::Answered(Err(StoreError::new(Code::Internal)));
        let mut undone = None;
        let saved = backend.batch(&mut |loader| {
            // A backend may try again: what an earlier try came to is nobody's answer.
            undone = None;
            let mut batch = Batch::new(pinned, loader, decide.as_ref());
            ran = match batch.admit(std::slice::from_ref(command))?.pop() {
                Some(Ok(needs)) => batch.run(0, command, needs)?,
                Some(Err(needs)) => Ran::Aside(needs),
                None => return Ok(None),
            };
            if let Some((_, needs)) = batch.denied()?.into_iter().next() {
                ran = Ran::Aside(needs);
            }
            let Ran::Answered(Ok(reply)) = &ran else { return Ok(None) };
            let is_done = batch.has_recorded() && !matches!(reply, Reply::Refused(_));
            let mut own = Vec::new();
            if is_done {
                let mut rows = OwnRows::new(batch.loader());
                if let Err(why) = write(reply, &mut rows) {
                    undone = Some(why);
                    return Err(StoreError::new(Code::Internal));
                }
                own = rows.changes();
            }
            Ok(batch.changes().map(|changes| Changes { own, ..changes }))
        });
        let Err(fault) = saved else {
            return match ran {
                Ran::Answered(outcome) => outcome.map_err(NotRun::Failed),
                Ran::Aside(needs) => Err(NotRun::Aside(needs)),
            };
        };
        pinned.forget_all();
        match (undone, fault) {
            (Some(why), _) => Err(NotRun::Undone(why)),
            (None, Fault::Nothing(error) | Fault::Unknown(error)) => Err(NotRun::Failed(error)),
        }
    }

    /// One transaction. If it fails, also how many commands were in it.
    fn attempt(&mut self, commands: &[Submitted]) -> Result<Vec<Ran>, (usize, Fault)> {
        let Executor { backend, pinned, decide } = self;
        pinned.forget_unknown();
        let mut ran = Vec::new();
        // Where the backend fails before it begins, the commands were all in it.
        let mut begun = commands.len();
        let saved = backend.batch(&mut |loader| {
            let mut aside: BTreeMap<usize, Needs> = BTreeMap::new();
            loop {
                let mut batch = Batch::new(pinned, loader, decide.as_ref());
                let admitted = batch.admit(commands)?;
                // Locks may have been waited for, and a server may be far away.
                let started = Instant::now();
                ran.clear();
                begun = 0;
                for (n, (command, admitted)) in commands.iter().zip(admitted).enumerate() {
                    begun += 1;
                    ran.push(match (aside.remove(&n), admitted) {
                        (Some(needs), _) | (None, Err(needs)) => Ran::Aside(needs),
                        (None, Ok(needs)) => batch.run(n, command, needs)?,
                    });
                    if started.elapsed() >= BATCH_TIME {
                        break;
                    }
                }
                let denied = batch.denied()?;
                if denied.is_empty() {
                    return Ok(batch.changes());
                }
                // What the others decided may rest on what these would have changed.
                for (n, needs) in denied {
                    aside.insert(n, needs);
                }
                let earlier = ran.iter().enumerate().filter_map(|(n, ran)| match ran {
                    Ran::Aside(needs) => Some((n, needs.clone())),
                    Ran::Answered(_) => None,
                });
                aside.extend(earlier);
                pinned.forget_all();
            }
        });
        saved.map_err(|fault| {
            pinned.forget_all();
            (begun, fault)
        })?;
        Ok(ran)
    }
}

/// Why a command with a caller's own rows was not recorded.
pub(crate) enum NotRun {
    /// The store did not take it.
    Failed(StoreError),
    /// The caller undid it.
    Undone(Undone),
    /// Somebody else has a lock that it needs.
    Aside(Needs),
}

/// Whether a failure would meet every command alike.
#[must_use]
pub const fn is_general(error: &StoreError) -> bool {
    matches!(
        error.code(),
        Code::ClockJump
            | Code::StoreBusy
            | Code::StoreForeign
            | Code::StoreClosed
            | Code::StoreUnreachable
            | Code::StoreRefused
            | Code::StoreWentBack
    )
}
