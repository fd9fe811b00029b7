//! One transaction: what has been loaded, and what has changed in it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::decide::{evolve, fresh, reads, renew};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Head, Index, Key, Kind, Payload, Recorded, Stored, seal};
use onceseal_core::lock::{self, Locks};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::Reply;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Halt, Loaded, Pinned, Read, View};

use super::{Decide, Ran, Submitted};
use crate::backend::{Changes, Loader, Needs, RowChange};
use crate::error::StoreError;

/// A command that asks for more than this many rounds of reading is a fault of
/// ours: every path through the rules needs fewer.
const ROUNDS_MAX: usize = 16;

/// One transaction: what has been loaded, and what has changed in it.
pub(super) struct Batch<'a> {
    pinned: &'a mut Pinned,
    loader: &'a mut dyn Loader,
    decide: &'a Decide,
    view: View,
    /// Streams in the order in which they first changed, each as it was before.
    changed: Vec<(StreamId, Option<Arc<Stored>>)>,
    has_changed: BTreeSet<StreamId>,
    events: Vec<Recorded>,
    /// Commands by their number, with what they need and, of that, what they must
    /// hold for what they changed; kept only where locks are.
    written: Vec<(usize, Needs, Locks)>,
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
    pub(super) fn new(pinned: &'a mut Pinned, loader: &'a mut dyn Loader, decide: &'a Decide) -> Batch<'a> {
        let (changed, has_changed, events) = (Vec::new(), BTreeSet::new(), Vec::new());
        let (view, written) = (View::default(), Vec::new());
        Batch { pinned, loader, decide, view, changed, has_changed, events, written }
    }

    pub(super) fn loader(&mut self) -> &mut dyn Loader {
        self.loader
    }

    pub(super) fn has_recorded(&self) -> bool {
        !self.events.is_empty()
    }

    /// Locks and loads what these commands look at on their usual path. Of each:
    /// what it needs, as an error where somebody else has it.
    pub(super) fn admit(&mut self, commands: &[Submitted]) -> Result<Vec<Result<Needs, Needs>>, StoreError> {
        if !self.loader.locks() {
            return Ok(vec![Ok(Needs::default()); commands.len()]);
        }
        let needs: Vec<Needs> = commands.iter().map(|command| self.usual(command)).collect();
        let admitted = self.loader.admit(&needs)?;
        Ok(needs
            .into_iter()
            .zip(admitted)
            .map(|(needs, ok)| if ok { Ok(needs) } else { Err(needs) })
            .collect())
    }

    /// A command for which this panics is refused when it is run.
    fn usual(&self, submitted: &Submitted) -> Needs {
        let Submitted { command, needs } = submitted;
        let usual = catch_unwind(AssertUnwindSafe(|| {
            let mut reads = reads(self.pinned, command);
            reads.retain(|read| !fresh(command).any(|stream| *read == Read::Stream(stream)));
            Needs { locks: lock::locks(self.pinned, command, &reads), reads }
        }));
        let mut usual = usual.unwrap_or_default();
        usual.join(needs);
        usual
    }

    /// Decides a command. An error ends the batch; what refuses this command alone
    /// is in its answer.
    pub(super) fn run(
        &mut self,
        n: usize,
        submitted: &Submitted,
        mut needs: Needs,
    ) -> Result<Ran, StoreError> {
        let command = &submitted.command;
        let refused = |error| Ok(Ran::Answered(Err(error)));
        let first = catch_unwind(AssertUnwindSafe(|| reads(self.pinned, command)));
        let Ok(mut needed) = first else { return refused(StoreError::new(Code::Internal)) };
        for stream in fresh(command) {
            // Its name was drawn for this command: there is nothing to look for.
            self.view.load(stream, Loaded::Absent);
        }
        let mut now = self.loader.now();
        for round in 0..ROUNDS_MAX {
            if round > 0 && self.loader.locks() {
                let more = self.more(command, &needed);
                needs.join(&more);
                if !self.loader.more(&more)?.is_empty() {
                    return Ok(Ran::Aside(needs));
                }
            }
            for read in &needed {
                self.load(read)?;
            }
            crate::fault::reach("after_load")?;
            let folded = catch_unwind(AssertUnwindSafe(|| self.fold(command, now)));
            crate::fault::reach("after_decide")?;
            match folded {
                Ok(Ok(folded)) => {
                    if self.loader.locks() {
                        self.remember(n, command, needs, &folded);
                    }
                    return Ok(Ran::Answered(Ok(self.merge(folded))));
                }
                Ok(Err(Stop::Need(more))) => needed = more,
                Ok(Err(Stop::Later(newest))) => {
                    needed.clear();
                    now = newest;
                }
                Ok(Err(Stop::Refused(error))) => return refused(error),
                Err(_) => return refused(StoreError::new(Code::Internal)),
            }
        }
        refused(StoreError::with(Code::Internal, "too many rounds of reading"))
    }

    /// What a later round of reading needs.
    fn more(&self, command: &Stamped, reads: &[Read]) -> Needs {
        let reads: Vec<Read> = reads.iter().filter(|read| !self.view.has(read)).cloned().collect();
        let mut locks = Locks::default();
        locks.looks_at(self.pinned, &command.command, &reads);
        Needs { locks, reads }
    }

    /// Keeps what a command must have held for what it changed.
    fn remember(&mut self, n: usize, command: &Stamped, mut needs: Needs, folded: &Folded) {
        let mut changes = Locks::default();
        for (stream, after) in &folded.rows {
            let before = self.view.shared(stream).unwrap_or_default();
            let (gone, new) = RowChange { stream: *stream, before, after: after.clone() }.keys();
            changes.changes(*stream, gone.iter().chain(&new));
        }
        fresh(command).for_each(|stream| changes.without(&stream));
        if !changes.is_empty() {
            needs.locks.join(&changes);
            self.written.push((n, needs, changes));
        }
    }

    /// Takes the locks of what was changed. Those commands for which somebody else
    /// has one, with what they need.
    pub(super) fn denied(&mut self) -> Result<Vec<(usize, Needs)>, StoreError> {
        if self.written.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = Needs::default();
        self.written.iter().for_each(|(_, _, changes)| all.locks.join(changes));
        let denied = self.loader.more(&all)?;
        let written = std::mem::take(&mut self.written).into_iter();
        Ok(written.filter(|(_, _, changes)| changes.meet(&denied)).map(|(n, needs, _)| (n, needs)).collect())
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

    pub(super) fn changes(self) -> Option<Changes> {
        let view = &self.view;
        let rows = self.changed.into_iter().filter_map(|(stream, before)| {
            let after = view.shared(&stream).ok().flatten()?;
            Some(RowChange { stream, before, after })
        });
        let rows: Vec<RowChange> = rows.collect();
        (!rows.is_empty()).then_some(Changes { events: self.events, rows, own: Vec::new() })
    }
}
