//! The rows of a task and of a plan, and their folds.

use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::{Body, Event, Index, Key, moment};
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::stream::StreamId;
use crate::task::event::{Added, TaskMoved};
use crate::task::{Claim, TaskState};
use crate::time::Timestamp;

/// What first makes a phase be attempted.
const FIRST: &str = "first";

record! {
    /// How often an obligation was attempted: a phase, for a cause.
    pub struct Spent {
        /// Why: `first`, or the code that the attempt before it ended with.
        cause: String,
        /// In which phase.
        phase: String,
        /// So often.
        times: u32,
    }
}

/// A task's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskRow {
    /// The run.
    pub run: RunId,
    /// Its number in the plan.
    pub number: u32,
    /// Where it stands.
    pub state: TaskState,
    /// What it goes through.
    pub phases: Vec<String>,
    /// The phase that it is in.
    pub phase: u32,
    /// Why it stopped, in a word.
    pub code: Option<String>,
    /// Since when it has waited for its turn.
    pub queued_at: Option<Timestamp>,
    /// The tasks that it depends on.
    pub depends_on: Vec<StreamId>,
    /// What it has while it is worked on.
    pub claims: Vec<Claim>,
    /// How often each obligation may be attempted.
    pub attempts: u32,
    /// How often each was.
    pub spent: Vec<Spent>,
    /// The digest of what it is, blinded.
    pub spec: Hash,
    /// The event that says what it is.
    pub spec_at: u64,
    /// When it was first planned.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: TaskPrivate,
}

record! {
    /// The private half of a task's row.
    pub struct TaskPrivate {
        /// Its id.
        id: Option<String>,
        /// Who was the last to take it, and who did it as was said since: none of
        /// them stands for it.
        workers: Vec<String>,
    }
}

record! {
    /// The row of a plan.
    pub struct PlanRow {
        /// How many tasks may be worked on at once.
        capacity: u32,
        /// When it was first set.
        created_at: Timestamp,
        /// Its digest, blinded.
        plan: Hash,
        /// The delivery revision that it is for.
        revision: u64,
        /// The run.
        run: RunId,
        /// How many tasks it has.
        tasks: u32,
        /// When it was last set.
        updated_at: Timestamp,
    }
}

impl Pack for TaskRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.run.pack(out);
        self.number.pack(out);
        self.state.pack(out);
        self.phases.pack(out);
        self.phase.pack(out);
        self.code.pack(out);
        self.queued_at.pack(out);
        self.depends_on.pack(out);
        self.claims.pack(out);
        self.attempts.pack(out);
        self.spent.pack(out);
        self.spec.pack(out);
        self.spec_at.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<TaskRow, Corrupt> {
        Ok(TaskRow {
            run: Pack::unpack(input)?,
            number: Pack::unpack(input)?,
            state: Pack::unpack(input)?,
            phases: Pack::unpack(input)?,
            phase: Pack::unpack(input)?,
            code: Pack::unpack(input)?,
            queued_at: Pack::unpack(input)?,
            depends_on: Pack::unpack(input)?,
            claims: Pack::unpack(input)?,
            attempts: Pack::unpack(input)?,
            spent: Pack::unpack(input)?,
            spec: Pack::unpack(input)?,
            spec_at: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: TaskPrivate { id: None, workers: Vec::new() },
        })
    }
}

impl TaskPrivate {
    fn did(&mut self, name: &str) {
        if !self.has_worked(name) {
            self.workers.push(name.to_owned());
        }
    }

    /// Whether whoever is named so worked on what is to be looked at; however
    /// it is written.
    pub(super) fn has_worked(&self, name: &str) -> bool {
        let plain = |name: &str| name.trim().to_lowercase();
        self.workers.iter().any(|worker| plain(worker) == plain(name))
    }
}

impl TaskRow {
    /// The name of the phase that it is in.
    #[must_use]
    pub fn phase_name(&self) -> &str {
        usize::try_from(self.phase).ok().and_then(|at| self.phases.get(at)).map_or("", String::as_str)
    }

    /// Whether it is in its last phase.
    #[must_use]
    pub fn is_last_phase(&self) -> bool {
        usize::try_from(self.phase).is_ok_and(|at| at + 1 >= self.phases.len())
    }

    /// Why its next attempt is made.
    #[must_use]
    pub fn cause(&self) -> &str {
        self.code.as_deref().unwrap_or(FIRST)
    }

    /// How many attempts are left of what would be attempted next.
    #[must_use]
    pub fn attempts_left(&self) -> u32 {
        self.left_of(self.phase_name(), self.cause())
    }

    /// Whether its next phase may be attempted.
    pub(super) fn may_go_on(&self) -> bool {
        let next = usize::try_from(self.phase).ok().and_then(|at| self.phases.get(at + 1));
        next.is_some_and(|phase| self.left_of(phase, FIRST) > 0)
    }

    fn left_of(&self, phase: &str, cause: &str) -> u32 {
        let spent = self.spent.iter().find(|spent| spent.cause == cause && spent.phase == phase);
        self.attempts.saturating_sub(spent.map_or(0, |spent| spent.times))
    }

    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = vec![number_key(self.run, self.number)];
        if let Some(rank) = rank(self.state) {
            let since = moment(self.queued_at.unwrap_or(self.updated_at));
            let parts: [&[u8]; 4] = [&self.run.0, &[rank], &since, &self.number.to_be_bytes()];
            keys.push(Key::of(Index::Queue, &parts));
        }
        if self.state == TaskState::Pending {
            keys.extend(self.depends_on.iter().map(dependent_key));
        }
        keys
    }

    fn go(&mut self, to: TaskState) -> Result<(), Corrupt> {
        if !self.state.next().contains(&to) {
            return Err(Corrupt("move of a task"));
        }
        self.state = to;
        Ok(())
    }

    /// Counts an attempt of what is attempted next.
    fn spend(&mut self) {
        let (cause, phase) = (self.cause().to_owned(), self.phase_name().to_owned());
        match self.spent.iter_mut().find(|spent| spent.cause == cause && spent.phase == phase) {
            Some(spent) => spent.times = spent.times.saturating_add(1),
            None => self.spent.push(Spent { cause, phase, times: 1 }),
        }
    }

    /// Takes it into the plan as it is said now: it begins anew, and what was
    /// attempted stays counted.
    fn begin(&mut self, sequence: u64, at: Timestamp, data: &Added) {
        (self.number, self.state, self.phase) = (data.number, data.state, 0);
        (self.phases, self.attempts) = (data.phases.clone(), data.attempts);
        (self.depends_on, self.claims) = (data.depends_on.clone(), data.claims.clone());
        (self.spec, self.spec_at, self.code) = (data.spec, sequence, None);
        self.queued_at = (data.state == TaskState::Queued).then_some(at);
    }
}

/// Where in the queue of its run a task stands: at work, before all, in line.
const fn rank(state: TaskState) -> Option<u8> {
    match state {
        TaskState::Running | TaskState::Validating => Some(AT_WORK),
        TaskState::Ready => Some(FIRST_IN_LINE),
        TaskState::Queued => Some(IN_LINE),
        _ => None,
    }
}

pub(super) const AT_WORK: u8 = 0;
pub(super) const FIRST_IN_LINE: u8 = 1;
pub(super) const IN_LINE: u8 = 2;

/// The key under which a task of a run is found by its number in the plan.
#[must_use]
pub fn number_key(run: RunId, number: u32) -> Key {
    Key::of(Index::Task, &[&run.0, &number.to_be_bytes()])
}

/// The key under which tasks that wait for this one are found.
#[must_use]
pub(super) fn dependent_key(on: &StreamId) -> Key {
    Key::of(Index::Dependent, &[&on.name])
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<TaskRow>, sequence: u64, at: Timestamp, event: &Event) -> Result<TaskRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of a task's events");
    let mut row = match (row, &event.body) {
        (Some(row), _) => row,
        (None, Body::TaskAdded(data, sealed)) => TaskRow {
            run: data.run,
            number: data.number,
            state: TaskState::Closed,
            phases: Vec::new(),
            phase: 0,
            code: None,
            queued_at: None,
            depends_on: Vec::new(),
            claims: Vec::new(),
            attempts: 0,
            spent: Vec::new(),
            spec: data.spec,
            spec_at: sequence,
            created_at: at,
            updated_at: at,
            private: TaskPrivate { id: sealed.id.clone(), workers: Vec::new() },
        },
        (None, _) => return Err(WRONG),
    };
    match &event.body {
        Body::TaskAdded(data, _) if matches!(data.state, TaskState::Pending | TaskState::Queued) => {
            row.begin(sequence, at, data);
        }
        Body::TaskRenumbered(data, _) if row.state != TaskState::Closed => row.number = data.number,
        Body::TaskQueued(data, _) if matches!(data.state, TaskState::Queued | TaskState::Ready) => {
            row.go(data.state)?;
            row.queued_at = Some(at);
        }
        Body::TaskTaken(_, sealed) => {
            row.go(TaskState::Running)?;
            row.spend();
            row.private.workers = sealed.agent.iter().cloned().collect();
        }
        Body::TaskMoved(data, sealed) if data.from == row.state => {
            moved(&mut row, data)?;
            if data.to == TaskState::Validating {
                sealed.produced_by.iter().for_each(|name| row.private.did(name));
            }
        }
        Body::TaskGranted(..) if row.attempts_left() == 0 => {
            let (cause, phase) = (row.cause().to_owned(), row.phase_name().to_owned());
            row.spent.retain(|spent| spent.cause != cause || spent.phase != phase);
        }
        Body::TaskDropped(..) if row.state != TaskState::Closed => row.state = TaskState::Closed,
        _ => return Err(WRONG),
    }
    row.updated_at = at;
    Ok(row)
}

/// A move to the next phase starts its first attempt: its worker goes on, unless
/// no attempt of it is left.
fn moved(row: &mut TaskRow, data: &TaskMoved) -> Result<(), Corrupt> {
    let is_next = data.phase == row.phase + 1 && row.state == TaskState::Validating && !row.is_last_phase();
    let starts = (row.state, data.to) == (TaskState::Validating, TaskState::Running);
    let fits = match (starts, data.to) {
        (true, _) => is_next,
        (false, TaskState::Retryable) => is_next || data.phase == row.phase,
        (false, _) => data.phase == row.phase,
    };
    if !fits {
        return Err(Corrupt("phase of a task"));
    }
    row.go(data.to)?;
    (row.phase, row.code) = (data.phase, data.code.clone());
    if starts {
        row.spend();
    }
    Ok(())
}

/// The row of a plan after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve_plan(row: Option<PlanRow>, at: Timestamp, event: &Event) -> Result<PlanRow, Corrupt> {
    match (&event.body, row) {
        (Body::PlanSet(data, _), row)
            if row.as_ref().is_none_or(|row| row.run == data.run && row.revision < data.revision) =>
        {
            Ok(PlanRow {
                run: data.run,
                revision: data.revision,
                plan: data.plan,
                capacity: data.capacity,
                tasks: data.tasks,
                created_at: row.map_or(at, |row| row.created_at),
                updated_at: at,
            })
        }
        _ => Err(Corrupt("sequence of a plan's events")),
    }
}
