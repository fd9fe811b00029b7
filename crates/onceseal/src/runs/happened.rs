//! Everything that happened to a run, in the order in which it was recorded: to the
//! run itself and at its gates, to its plan and tasks, to the leases on them, and
//! where they were handed over. Nothing here changes anything.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::handoff::HandoffState;
use onceseal_core::id::RunId;
use onceseal_core::journal::{Body, Index, Key, Row};
use onceseal_core::lease::Resource;
use onceseal_core::run::DeliveryRow;
use onceseal_core::stream::{StreamId, StreamKind, Tenant};
use onceseal_store::StoreError;
use onceseal_store::read::{Page, Snapshot, StoredEvent, row_of};

use super::attribution::told;
use super::reading::run_row;
use super::tasks::of_run;
use crate::control::Control;
use crate::error::Error;

/// Events of one stream read at once.
const BUFFER: usize = 64;
/// Keys read at once.
const PAGE: usize = 256;

/// What of a run an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run itself.
    Run,
    /// Its plan.
    Plan,
    /// One of its tasks.
    Task,
    /// Who holds it, or one of its tasks.
    Lease,
    /// It, or one of its tasks, that passes from one holder to another.
    Handoff,
}

impl Part {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Part::Run => "run",
            Part::Plan => "plan",
            Part::Task => "task",
            Part::Lease => "lease",
            Part::Handoff => "handoff",
        }
    }
}

/// What a plan did to the tasks of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replanned {
    /// Tasks that no plan before had.
    pub added: u64,
    /// Tasks that changed, or rest on one that did: they begin anew.
    pub restarted: u64,
    /// Tasks that are what they were, and keep what was done.
    pub kept: u64,
    /// Tasks that the plan has no more.
    pub closed: u64,
}

/// An event of a run, with who asked for it and by which request.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// The event.
    pub stored: StoredEvent,
    /// What of the run it is about.
    pub part: Part,
    /// The id of the task that it is about; `None` if it is about none, or if that
    /// is erased.
    pub task: Option<String>,
    /// Who asked; `None` if nobody did, as where a lease lapsed, if a person's word
    /// did it (`person`), or if that is erased.
    pub by: Option<Principal>,
    /// The person on whose word it was done.
    pub person: Option<String>,
    /// Why, in that person's words.
    pub reason: Option<String>,
    /// The id of the request that it answers.
    pub request: Option<String>,
    /// What was bound, where something was.
    pub delivery: Option<DeliveryRow>,
    /// What became of the tasks, where a plan was set.
    pub replanned: Option<Replanned>,
}

impl Control {
    /// The run's own events, oldest first, from this sequence on. What happened to
    /// its tasks and leases is in [`Control::run_history`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn run_events(&self, id: RunId, from: u64, limit: usize) -> Result<Vec<RunEvent>, Error> {
        let events = self.store().read(|snapshot| {
            let events = snapshot.events(&StreamId::run(id), from, limit)?;
            events.into_iter().map(|stored| told(self, snapshot, id, (Part::Run, None), stored)).collect()
        });
        Ok(events?)
    }

    /// An event of the log with the run that it is of; `None` if it is of none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn run_event(&self, stored: &StoredEvent) -> Result<Option<(RunId, RunEvent)>, Error> {
        let event = self.store().read(|snapshot| {
            let Some((run, part, task)) = whose(snapshot, &stored.stamp.stream)? else { return Ok(None) };
            if !is_told(part, task.is_some(), stored) {
                return Ok(None);
            }
            Ok(Some((run, told(self, snapshot, run, (part, task), stored.clone())?)))
        });
        Ok(event?)
    }

    /// Everything that happened to a run, from its start: nothing is read yet, see
    /// [`RunHistory::more`].
    #[must_use]
    pub fn run_history(&self, run: RunId) -> RunHistory {
        RunHistory { control: self.clone(), run, after: 0, known: BTreeMap::new(), told_to: None }
    }
}

/// Everything that happened to a run, oldest first: of all that it is made of, in
/// the order of the log. What is recorded meanwhile comes at its end.
pub struct RunHistory {
    control: Control,
    run: RunId,
    after: u64,
    /// What was recorded up to `told_to`, by the streams it is in.
    known: BTreeMap<StreamId, Reading>,
    /// A position of the log: what follows on it is read from the log itself.
    told_to: Option<u64>,
}

/// How far a stream was read.
struct Reading {
    part: Part,
    task: Option<String>,
    next: u64,
    ready: VecDeque<StoredEvent>,
}

impl RunHistory {
    /// Only what was recorded after this position of the log.
    #[must_use]
    pub fn after(self, position: u64) -> RunHistory {
        RunHistory { after: position, ..self }
    }

    /// The next events, at most so many; none if there are none yet, or if there is
    /// no such run.
    ///
    /// # Errors
    /// The store cannot be read, or what it is about does not decode.
    pub fn more(&mut self, limit: usize) -> Result<Vec<RunEvent>, Error> {
        let control = self.control.clone();
        Ok(control.store().read(|snapshot| self.read(snapshot, limit))?)
    }

    fn read(&mut self, snapshot: &dyn Snapshot, limit: usize) -> Result<Vec<RunEvent>, StoreError> {
        let told_to = match self.told_to {
            Some(told_to) => told_to,
            None => {
                let newest = snapshot.newest()?;
                self.discover(snapshot)?;
                for (stream, reading) in &mut self.known {
                    reading.fill(snapshot, stream, newest)?;
                }
                *self.told_to.insert(newest)
            }
        };
        let mut events = self.merged(snapshot, limit, told_to)?;
        while events.len() < limit {
            let Some(next) = self.followed(snapshot, limit - events.len())? else { break };
            events.extend(next);
        }
        Ok(events)
    }

    /// The next of what was recorded up to there.
    fn merged(
        &mut self,
        snapshot: &dyn Snapshot,
        limit: usize,
        told_to: u64,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let first = |(stream, reading): (&StreamId, &Reading)| {
            reading.ready.front().map(|first| Reverse((first.position, *stream)))
        };
        let mut heap: BinaryHeap<_> = self.known.iter().filter_map(first).collect();
        let mut events = Vec::new();
        while events.len() < limit {
            let Some(Reverse((position, stream))) = heap.pop() else { break };
            let Some(reading) = self.known.get_mut(&stream) else { break };
            let Some(stored) = reading.ready.pop_front() else { break };
            reading.fill(snapshot, &stream, told_to)?;
            heap.extend(reading.ready.front().map(|first| Reverse((first.position, stream))));
            let (part, task) = (reading.part, reading.task.clone());
            if position > self.after && is_told(part, task.is_some(), &stored) {
                events.push(told(&self.control, snapshot, self.run, (part, task), stored)?);
            }
        }
        Ok(events)
    }

    /// The next page of the log, as far as it is of the run; `None` at its end.
    fn followed(
        &mut self,
        snapshot: &dyn Snapshot,
        limit: usize,
    ) -> Result<Option<Vec<RunEvent>>, StoreError> {
        let page = snapshot.log(self.told_to.unwrap_or_default(), limit.min(PAGE))?;
        let Some(last) = page.last() else { return Ok(None) };
        self.told_to = Some(last.position);
        let mut events = Vec::new();
        for stored in page {
            let Some((run, part, task)) = whose(snapshot, &stored.stamp.stream)? else { continue };
            if run == self.run && stored.position > self.after && is_told(part, task.is_some(), &stored) {
                events.push(told(&self.control, snapshot, run, (part, task), stored)?);
            }
        }
        Ok(Some(events))
    }

    /// Finds the streams of what the run is made of.
    fn discover(&mut self, snapshot: &dyn Snapshot) -> Result<(), StoreError> {
        let tenant = self.control.store().tenant().clone();
        let Some((_, row)) = run_row(snapshot, self.run)? else { return Ok(()) };
        self.know(StreamId::run(self.run), Part::Run, None);
        self.know(tenant.plan(self.run), Part::Plan, None);
        self.know(tenant.lease(&Resource::Run(self.run).to_string()), Part::Lease, None);
        each_key(snapshot, of_run(self.run), |stream| {
            let id = match row_of(snapshot.stream(stream)?).map(|stored| stored.row) {
                Some(Row::Task(row)) => row.private.id,
                _ => return Err(StoreError::new(Code::Corrupt)),
            };
            self.know(*stream, Part::Task, id.clone());
            if let Some(id) = id {
                self.know(lease_of(&tenant, self.run, &id), Part::Lease, Some(id));
            }
            Ok(())
        })?;
        for state in HandoffState::ALL {
            let from = Key::state(StreamKind::Handoff, state.number(), row.created_at);
            let kind = [StreamKind::Handoff.number(), state.number()];
            let to = Key::of(from.index, &[&kind, &[0xff; 8]]).bytes;
            let (index, from) = (Index::State, from.bytes);
            let page = Page { index, from, to, after: None, newest_first: false, limit: PAGE };
            each_key(snapshot, page, |stream| {
                if let Some((run, part, task)) = whose(snapshot, stream)?
                    && run == self.run
                {
                    self.know(*stream, part, task);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn know(&mut self, stream: StreamId, part: Part, task: Option<String>) {
        if let Entry::Vacant(new) = self.known.entry(stream) {
            new.insert(Reading { part, task, next: 1, ready: VecDeque::new() });
        }
    }
}

impl Reading {
    /// Reads on, up to this position of the log.
    fn fill(&mut self, snapshot: &dyn Snapshot, stream: &StreamId, to: u64) -> Result<(), StoreError> {
        if self.ready.is_empty() {
            let events = snapshot.events(stream, self.next, BUFFER)?;
            self.ready.extend(events.into_iter().take_while(|event| event.position <= to));
            self.next = self.ready.back().map_or(self.next, |last| last.stamp.sequence + 1);
        }
        Ok(())
    }
}

fn each_key(
    snapshot: &dyn Snapshot,
    mut page: Page,
    mut take: impl FnMut(&StreamId) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        let hits = snapshot.keys(&page)?;
        hits.iter().try_for_each(|hit| take(&hit.stream))?;
        match hits.into_iter().last() {
            Some(last) => page.after = Some((last.key, last.stream)),
            None => return Ok(()),
        }
    }
}

fn lease_of(tenant: &Tenant, run: RunId, task: &str) -> StreamId {
    tenant.lease(&Resource::Task(run, task.to_owned()).to_string())
}

/// The run that a stream is about, with what of it, and with which task.
fn whose(
    snapshot: &dyn Snapshot,
    stream: &StreamId,
) -> Result<Option<(RunId, Part, Option<String>)>, StoreError> {
    if stream.kind == StreamKind::Run {
        return Ok(Some((RunId(stream.name), Part::Run, None)));
    }
    let is_read =
        matches!(stream.kind, StreamKind::Plan | StreamKind::Task | StreamKind::Lease | StreamKind::Handoff);
    if !is_read {
        return Ok(None);
    }
    let of = |part, resource: Option<String>| match resource.as_deref().and_then(Resource::parse) {
        Some(Resource::Run(run)) => Some((run, part, None)),
        Some(Resource::Task(run, task)) => Some((run, part, Some(task))),
        _ => None,
    };
    Ok(match row_of(snapshot.stream(stream)?).map(|stored| stored.row) {
        Some(Row::Plan(row)) => Some((row.run, Part::Plan, None)),
        Some(Row::Task(row)) => Some((row.run, Part::Task, row.private.id)),
        Some(Row::Lease(row)) => of(Part::Lease, row.private.resource),
        Some(Row::Handoff(row)) => of(Part::Handoff, row.private.resource),
        _ => None,
    })
}

/// Whether an event says what no other one does: of the lease on a task, all but
/// its preemption is in the events of the task.
fn is_told(part: Part, of_task: bool, stored: &StoredEvent) -> bool {
    let preempts = || matches!(stored.event.as_ref().map(|it| &it.body), Some(Body::LeasePreempted(..)));
    part != Part::Lease || !of_task || preempts()
}
