//! Decides a batch of commands on one view, and saves what they caused at once.
//!
//! Each command is decided on its own: one that cannot be decided is refused
//! alone, and leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::decide::{Verdict, evolve, fresh, reads, renew};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Head, Index, Key, Kind, Payload, Recorded, Stored, seal};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::Reply;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Halt, Loaded, Pinned, Read, View};

use crate::backend::{Backend, Changes, Fault, Loader, RowChange};
use crate::error::StoreError;
use crate::own::{OwnRows, Undone, Write};

/// A command that asks for more than this many rounds of reading is a fault of
/// ours: every path through the rules needs fewer.
const ROUNDS_MAX: usize = 16;
/// A transaction decides for so long at most: others wait for its lock.
const BATCH_TIME: Duration = Duration::from_millis(20);

/// What a command came to.
pub type Outcome = Result<Reply, StoreError>;

/// What decides a command.
pub type Decide = dyn Fn(&Pinned, &View, &Stamped, Timestamp) -> Result<Verdict, Halt> + Send;

/// Runs batches on a backend for one tenant.
pub struct Executor {
    backend: Box<dyn Backend>,
    pinned: Pinned,
    decide: Box<Decide>,
}

impl Executor {
    /// An executor with nothing known but the tenant's constants.
    #[must_use]
    pub fn new(backend: Box<dyn Backend>, pinned: Pinned, decide: Box<Decide>) -> Executor {
        Executor { backend, pinned, decide }
    }

    /// The backend.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// Decides the commands one after another in one transaction, as many as
    /// fit into its time and one at least; answers those. If saving them
    /// together fails, each is tried alone.
    pub fn run_some(&mut self, commands: &[Stamped]) -> Vec<Outcome> {
        let (begun, failed) = match self.attempt(commands) {
            Ok(outcomes) => return outcomes,
            Err(failed) => failed,
        };
        match failed {
            Fault::Nothing(error) if begun > 1 && !is_general(&error) => commands[..begun]
                .iter()
                .flat_map(|command| self.run_some(std::slice::from_ref(command)))
                .collect(),
            Fault::Nothing(error) | Fault::Unknown(error) => vec![Err(error); begun],
        }
    }

    /// Decides one command in a transaction of its own, and has the caller write
    /// its own rows in it. They are written only with a command that is recorded:
    /// not with a refusal, and not with an answer given again.
    pub(crate) fn run_with(&mut self, command: &Stamped, write: &mut Write<'_>) -> Result<Reply, NotRun> {
        let Executor { backend, pinned, decide } = self;
        pinned.forget_unknown();
        let mut outcome = Err(StoreError::new(Code::Internal));
        let mut undone = None;
        let saved = backend.batch(&mut |loader| {
            let mut batch = Batch::new(pinned, loader, decide);
            outcome = batch.run(command)?;
            let Ok(reply) = &outcome else { return Ok(None) };
            let is_done = !batch.events.is_empty() && !matches!(reply, Reply::Refused(_));
            let mut own = Vec::new();
            if is_done {
                let mut rows = OwnRows::new(batch.loader);
                if let Err(why) = write(reply, &mut rows) {
                    undone = Some(why);
                    return Err(StoreError::new(Code::Internal));
                }
                own = rows.changes();
            }
            Ok(batch.changes().map(|changes| Changes { own, ..changes }))
        });
        let Err(fault) = saved else { return outcome.map_err(NotRun::Failed) };
        pinned.forget_all();
        match (undone, fault) {
            (Some(why), _) => Err(NotRun::Undone(why)),
            (None, Fault::Nothing(error) | Fault::Unknown(error)) => Err(NotRun::Failed(error)),
        }
    }

    /// One transaction. If it fails, also how many commands were in it.
    fn attempt(&mut self, commands: &[Stamped]) -> Result<Vec<Outcome>, (usize, Fault)> {
        let Executor { backend, pinned, decide } = self;
        pinned.forget_unknown();
        let mut outcomes = Vec::new();
        // Where the backend fails before it begins, the commands were all in it.
        let mut begun = commands.len();
        let saved = backend.batch(&mut |loader| {
            let started = Instant::now();
            let mut batch = Batch::new(pinned, loader, decide);
            outcomes.clear();
            begun = 0;
            for command in commands {
                begun += 1;
                outcomes.push(batch.run(command)?);
                if started.elapsed() >= BATCH_TIME {
                    break;
                }
            }
            Ok(batch.changes())
        });
        saved.map_err(|fault| {
            pinned.forget_all();
            (begun, fault)
        })?;
        Ok(outcomes)
    }
}

/// Why a command with a caller's own rows was not recorded.
pub(crate) enum NotRun {
    /// The store did not take it.
    Failed(StoreError),
    /// The caller undid it.
    Undone(Undone),
}

/// Whether a failure would meet every command alike.
#[must_use]
pub const fn is_general(error: &StoreError) -> bool {
    matches!(error.code(), Code::ClockJump | Code::StoreBusy | Code::StoreForeign | Code::StoreClosed)
}

/// One transaction: what has been loaded, and what has changed in it.
struct Batch<'a> {
    pinned: &'a mut Pinned,
    loader: &'a mut dyn Loader,
    decide: &'a Decide,
    view: View,
    /// Streams in the order in which they first changed, each as it was before.
    changed: Vec<(StreamId, Option<Arc<Stored>>)>,
    has_changed: BTreeSet<StreamId>,
    events: Vec<Recorded>,
}

/// What a command has caused, complete but not yet part of the batch.
struct Folded {
    events: Vec<Recorded>,
    rows: BTreeMap<StreamId, Arc<Stored>>,
    reply: Reply,
}

/// Why a command was not folded.
enum Stop {
    Need(Vec<Read>),
    /// A stream it would write has an event of this later moment.
    Later(Timestamp),
    Refused(StoreError),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Stop {
        match halt {
            Halt::Need(reads) => Stop::Need(reads),
            Halt::Unreadable => Stop::Refused(StoreError::new(Code::Corrupt)),
        }
    }
}

impl<'a> Batch<'a> {
    fn new(pinned: &'a mut Pinned, loader: &'a mut dyn Loader, decide: &'a Decide) -> Batch<'a> {
        let (changed, has_changed, events) = (Vec::new(), BTreeSet::new(), Vec::new());
        Batch { pinned, loader, decide, view: View::default(), changed, has_changed, events }
    }

    /// Decides one command. The outer error ends the batch, the inner refuses
    /// this command alone.
    fn run(&mut self, command: &Stamped) -> Result<Outcome, StoreError> {
        let first = catch_unwind(AssertUnwindSafe(|| reads(self.pinned, command)));
        let Ok(mut needed) = first else { return Ok(Err(StoreError::new(Code::Internal))) };
        if let Some(stream) = fresh(command) {
            // Its name was drawn for this command: there is nothing to look for.
            self.view.load(stream, Loaded::Absent);
        }
        let mut now = self.loader.now();
        for _ in 0..ROUNDS_MAX {
            for read in &needed {
                self.load(read)?;
            }
            crate::fault::reach("after_load")?;
            let folded = catch_unwind(AssertUnwindSafe(|| self.fold(command, now)));
            crate::fault::reach("after_decide")?;
            match folded {
                Ok(Ok(folded)) => return Ok(Ok(self.merge(folded))),
                Ok(Err(Stop::Need(more))) => needed = more,
                Ok(Err(Stop::Later(newest))) => {
                    needed.clear();
                    now = newest;
                }
                Ok(Err(Stop::Refused(error))) => return Ok(Err(error)),
                Err(_) => return Ok(Err(StoreError::new(Code::Internal))),
            }
        }
        Ok(Err(StoreError::with(Code::Internal, "too many rounds of reading")))
    }

    /// Decides, and folds the events into rows.
    fn fold(&self, command: &Stamped, now: Timestamp) -> Result<Folded, Stop> {
        let verdict = (self.decide)(&*self.pinned, &self.view, command, now)?;
        let streams = verdict.drafts.iter().map(|draft| draft.stream);
        // A stream is never written unseen, not even one that should be new.
        let unseen: Vec<Read> = streams.map(Read::Stream).filter(|read| !self.view.has(read)).collect();
        if !unseen.is_empty() {
            return Err(Stop::Need(unseen));
        }
        let mut rows: BTreeMap<StreamId, Arc<Stored>> = BTreeMap::new();
        for draft in &verdict.drafts {
            if let Some(stored) = self.view.shared(&draft.stream)? {
                rows.insert(draft.stream, stored);
            }
        }
        // Time never goes back within a stream, whatever the clock says.
        let newest = rows.values().map(|stored| stored.row.updated_at()).max();
        if let Some(newest) = newest.filter(|newest| *newest > now) {
            return Err(Stop::Later(newest));
        }
        let head = |stream: &StreamId| -> Option<Head> { rows.get(stream).map(|stored| stored.head) };
        let events = seal(&self.pinned.tenant, command, now, verdict.drafts, head);
        for event in &events {
            let stamp = &event.stamp;
            let row = rows.remove(&stamp.stream).map(|stored| Arc::unwrap_or_clone(stored).row);
            let row = evolve(&stamp.stream, row, stamp.sequence, stamp.at, &event.event)
                .map_err(|corrupt| Stop::Refused(corrupt.into()))?;
            let head = Head { sequence: stamp.sequence, hash: event.hash };
            rows.insert(stamp.stream, Arc::new(Stored { head, row }));
        }
        for renewal in &verdict.renewals {
            let stored = match rows.get(&renewal.stream) {
                Some(stored) => Some(&**stored),
                None => self.view.stored(&renewal.stream)?,
            };
            let renewed = stored.and_then(|stored| renew(stored, renewal)).ok_or_else(|| {
                Stop::Refused(StoreError::with(Code::Internal, "renewal of a lease that is not live"))
            })?;
            rows.insert(renewal.stream, Arc::new(renewed));
        }
        Ok(Folded { events, rows, reply: verdict.reply })
    }

    /// Takes what a command has caused into the batch: from here on it cannot fail.
    fn merge(&mut self, folded: Folded) -> Reply {
        let Folded { events, mut rows, reply } = folded;
        let written: Vec<StreamId> =
            events.iter().map(|event| event.stamp.stream).chain(rows.keys().copied()).collect();
        for stream in written {
            let Some(stored) = rows.remove(&stream) else { continue };
            if self.has_changed.insert(stream) {
                let before = self.view.shared(&stream).unwrap_or_default();
                self.changed.push((stream, before));
            }
            self.view.load(stream, Loaded::Row(stored));
        }
        for Recorded { stamp, event, payload, .. } in &events {
            // Looked for before it was there.
            if self.view.has(&Read::Payload(stamp.stream, stamp.sequence)) {
                self.view.load_payload(stamp.stream, stamp.sequence, payload.clone());
            }
            if matches!(
                event.body.kind(),
                Kind::PolicyActivated | Kind::ToolActivated | Kind::DefinitionAdded
            ) {
                self.pinned.forget_unknown();
            }
        }
        self.events.extend(events);
        reply
    }

    fn load(&mut self, read: &Read) -> Result<(), StoreError> {
        if self.view.has(read) {
            return Ok(());
        }
        match read {
            Read::Stream(stream) => {
                let loaded = self.loader.stream(stream)?;
                self.view.load(*stream, loaded);
            }
            Read::Range(range) => {
                let found = self.loader.range(range)?;
                self.view.load_range(range.clone(), found);
            }
            Read::Payload(stream, sequence) => {
                let at =
                    |event: &&Recorded| (event.stamp.stream, event.stamp.sequence) == (*stream, *sequence);
                let payload = match self.events.iter().find(at) {
                    Some(own) => own.payload.clone(),
                    None => self.loader.payload(stream, *sequence)?,
                };
                self.view.load_payload(*stream, *sequence, payload);
            }
            Read::Policy(hash) => {
                if self.pinned.policy(*hash).is_err() {
                    let policy = self.policy(*hash)?;
                    self.pinned.know(*hash, policy);
                }
            }
            Read::Tool(digest) => {
                if matches!(self.pinned.tool(*digest), Err(Halt::Need(_))) {
                    let tool = self.tool(*digest)?;
                    self.pinned.know_tool(*digest, tool);
                }
            }
            Read::Definition(digest) => {
                if matches!(self.pinned.definition(*digest), Err(Halt::Need(_))) {
                    let definition = self.definition(*digest)?;
                    self.pinned.know_definition(*digest, definition);
                }
            }
        }
        Ok(())
    }

    fn policy(&mut self, hash: Hash) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        let Some(payload) = self.activated(Index::PolicyText, hash)? else { return Ok(None) };
        let policy = ActivePolicy::restore(&payload.text)?;
        if policy.hash == hash { Ok(Some(Arc::new(policy))) } else { Err(StoreError::new(Code::Corrupt)) }
    }

    fn tool(&mut self, digest: Hash) -> Result<Option<Arc<Tool>>, StoreError> {
        let Some(payload) = self.activated(Index::ToolText, digest)? else { return Ok(None) };
        let tool = Tool::restore(&payload.text)?;
        if tool.digest == digest { Ok(Some(Arc::new(tool))) } else { Err(StoreError::new(Code::Corrupt)) }
    }

    fn definition(&mut self, digest: Hash) -> Result<Option<Arc<Definition>>, StoreError> {
        let Some(payload) = self.activated(Index::DefinitionText, digest)? else { return Ok(None) };
        let definition = Definition::restore(&payload.text)?;
        let is_it = definition.digest() == digest;
        if is_it { Ok(Some(Arc::new(definition))) } else { Err(StoreError::new(Code::Corrupt)) }
    }

    /// The text of what was activated under this hash, be it in this batch.
    fn activated(&mut self, index: Index, hash: Hash) -> Result<Option<Payload>, StoreError> {
        let key = Key::of(index, &[&hash.0]);
        let own = self.events.iter().rev().find(|event| event.event.keys().contains(&key));
        let payload = match own {
            Some(event) => event.payload.clone(),
            None => match self.loader.event(&key)? {
                Some((stream, sequence)) => self.loader.payload(&stream, sequence)?,
                None => return Ok(None),
            },
        };
        payload.map(Some).ok_or_else(|| StoreError::new(Code::Erased))
    }

    fn changes(self) -> Option<Changes> {
        let view = &self.view;
        let rows = self.changed.into_iter().filter_map(|(stream, before)| {
            let after = view.shared(&stream).ok().flatten()?;
            Some(RowChange { stream, before, after })
        });
        let rows: Vec<RowChange> = rows.collect();
        (!rows.is_empty()).then_some(Changes { events: self.events, rows, own: Vec::new() })
    }
}
