//! Decides a batch of commands on one view, and saves what they caused at once.
//!
//! Each command is decided on its own: one that cannot be decided is refused
//! alone, and leaves nothing behind.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::command::Stamped;
use onceseal_core::decide::{Verdict, decide, evolve, reads, renew};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Head, Index, Key, Kind, Recorded, Stored, seal};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Loaded, Pinned, Read, View};

use crate::backend::{Backend, Changes, Fault, Loader, RowChange};
use crate::error::StoreError;

/// A command that asks for more than this many rounds of reading is a fault of
/// ours: every path through the rules needs fewer.
const ROUNDS_MAX: usize = 16;

/// What a command came to.
pub type Outcome = Result<Reply, StoreError>;

/// Runs batches on a backend for one tenant.
pub struct Executor {
    backend: Box<dyn Backend>,
    pinned: Pinned,
}

impl Executor {
    /// An executor with nothing known but the tenant's constants.
    #[must_use]
    pub fn new(backend: Box<dyn Backend>, pinned: Pinned) -> Executor {
        Executor { backend, pinned }
    }

    /// The backend.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// Decides the commands one after another in one transaction. If saving
    /// them together fails, each is tried alone.
    pub fn run(&mut self, commands: &[Stamped]) -> Vec<Outcome> {
        match self.attempt(commands) {
            Ok(outcomes) => outcomes,
            Err(Fault::Unknown(error)) => commands.iter().map(|_| Err(error.clone())).collect(),
            Err(Fault::Nothing(error)) if commands.len() == 1 => vec![Err(error)],
            Err(Fault::Nothing(error)) if is_general(&error) => {
                commands.iter().map(|_| Err(error.clone())).collect()
            }
            Err(Fault::Nothing(_)) => {
                commands.iter().flat_map(|command| self.run(std::slice::from_ref(command))).collect()
            }
        }
    }

    fn attempt(&mut self, commands: &[Stamped]) -> Result<Vec<Outcome>, Fault> {
        let Executor { backend, pinned } = self;
        pinned.forget_unknown();
        let mut outcomes = Vec::new();
        let saved = backend.batch(&mut |loader| {
            let mut batch = Batch::new(pinned, loader);
            outcomes.clear();
            for command in commands {
                outcomes.push(batch.run(command)?);
            }
            Ok(batch.changes())
        });
        if saved.is_err() {
            pinned.forget_policies();
        }
        saved.map(|()| outcomes)
    }
}

/// Whether a failure would meet every command alike.
const fn is_general(error: &StoreError) -> bool {
    matches!(error.code(), Code::ClockJump | Code::StoreBusy | Code::StoreForeign | Code::StoreClosed)
}

/// One transaction: what has been loaded, and what has changed in it.
struct Batch<'a> {
    pinned: &'a mut Pinned,
    loader: &'a mut dyn Loader,
    view: View,
    before: BTreeMap<StreamId, Option<Stored>>,
    after: BTreeMap<StreamId, Stored>,
    events: Vec<Recorded>,
}

impl<'a> Batch<'a> {
    fn new(pinned: &'a mut Pinned, loader: &'a mut dyn Loader) -> Batch<'a> {
        let (before, after) = (BTreeMap::new(), BTreeMap::new());
        Batch { pinned, loader, view: View::default(), before, after, events: Vec::new() }
    }

    /// Decides one command. The outer error ends the batch, the inner refuses
    /// this command alone.
    fn run(&mut self, command: &Stamped) -> Result<Outcome, StoreError> {
        let mut needed = reads(self.pinned, command);
        let mut touched: Vec<StreamId> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            for read in &needed {
                self.load(read)?;
            }
            touched.extend(needed.iter().filter_map(|read| match read {
                Read::Stream(stream) => Some(*stream),
                _ => None,
            }));
            crate::fault::reach("after_load")?;
            let now = self.now(&touched);
            let (pinned, view) = (&*self.pinned, &self.view);
            let decided = catch_unwind(AssertUnwindSafe(|| decide(pinned, view, command, now)));
            crate::fault::reach("after_decide")?;
            match decided {
                Ok(Ok(verdict)) => return Ok(self.apply(command, verdict, now)),
                Ok(Err(Halt::Need(more))) => needed = more,
                Ok(Err(Halt::Unreadable)) => return Ok(Err(StoreError::new(Code::Corrupt))),
                Err(_) => return Ok(Err(StoreError::new(Code::Internal))),
            }
        }
        Ok(Err(StoreError::with(Code::Internal, "too many rounds of reading")))
    }

    /// The batch's time, but never before the newest event of a stream that the
    /// command may write.
    fn now(&self, touched: &[StreamId]) -> Timestamp {
        let newest = touched.iter().filter_map(|stream| self.view.stored(stream).ok().flatten());
        newest.map(|stored| stored.row.updated_at()).fold(self.loader.now(), Timestamp::max)
    }

    /// Folds a verdict's events into rows. Only a whole verdict reaches the
    /// view: a row that cannot take an event refuses the command.
    fn apply(&mut self, command: &Stamped, verdict: Verdict, now: Timestamp) -> Outcome {
        let mut rows: BTreeMap<StreamId, Stored> = BTreeMap::new();
        let view = &self.view;
        let head = |stream: &StreamId| -> Option<Head> { view.stored(stream).ok().flatten().map(|s| s.head) };
        let events = seal(&self.pinned.tenant, command, now, verdict.drafts, head);
        for event in &events {
            let stamp = &event.stamp;
            let row = match rows.remove(&stamp.stream) {
                Some(stored) => Some(stored.row),
                None => view.stored(&stamp.stream).ok().flatten().map(|stored| stored.row.clone()),
            };
            let row = evolve(&stamp.stream, row, stamp.sequence, stamp.at, &event.event)?;
            let head = Head { sequence: stamp.sequence, hash: event.hash };
            rows.insert(stamp.stream, Stored { head, row });
        }
        for renewal in &verdict.renewals {
            let stored = view.stored(&renewal.stream).ok().flatten();
            let Some(renewed) = stored.and_then(|stored| renew(stored, renewal)) else {
                return Err(StoreError::with(Code::Internal, "renewal of a lease that is not live"));
            };
            rows.insert(renewal.stream, renewed);
        }
        for (stream, stored) in rows {
            self.view.load(stream, Loaded::Row(Box::new(stored.clone())));
            self.after.insert(stream, stored);
        }
        if events.iter().any(|event| event.event.body.kind() == Kind::PolicyActivated) {
            self.pinned.forget_unknown();
        }
        self.events.extend(events);
        Ok(verdict.reply)
    }

    fn load(&mut self, read: &Read) -> Result<(), StoreError> {
        if self.view.has(read) {
            return Ok(());
        }
        match read {
            Read::Stream(stream) => {
                let loaded = self.loader.stream(stream)?;
                let stored = match &loaded {
                    Loaded::Row(stored) => Some((**stored).clone()),
                    _ => None,
                };
                self.before.insert(*stream, stored);
                self.view.load(*stream, loaded);
            }
            Read::Range(range) => {
                let found = self.loader.range(range)?;
                self.view.load_range(range.clone(), found);
            }
            Read::Payload(stream, sequence) => {
                let payload = self.loader.payload(stream, *sequence)?;
                self.view.load_payload(*stream, *sequence, payload);
            }
            Read::Policy(hash) => {
                if self.pinned.policy(*hash).is_err() {
                    let policy = self.policy(*hash)?;
                    self.pinned.know(*hash, policy);
                }
            }
        }
        Ok(())
    }

    /// A policy's text, found by the event that activated it. Not one of this
    /// batch's own: an activation is known by its hash only once committed.
    fn policy(&mut self, hash: Hash) -> Result<Option<Arc<ActivePolicy>>, StoreError> {
        let key = Key::of(Index::PolicyText, &[&hash.0]);
        let own = self.events.iter().rev().find(|event| event.event.keys().contains(&key));
        let payload = match own {
            Some(event) => event.payload.clone(),
            None => match self.loader.event(&key)? {
                Some((stream, sequence)) => self.loader.payload(&stream, sequence)?,
                None => return Ok(None),
            },
        };
        let Some(payload) = payload else { return Err(StoreError::new(Code::Erased)) };
        let policy = ActivePolicy::restore(&payload.text)?;
        if policy.hash == hash { Ok(Some(Arc::new(policy))) } else { Err(StoreError::new(Code::Corrupt)) }
    }

    fn changes(mut self) -> Option<Changes> {
        if self.after.is_empty() {
            return None;
        }
        let rows = std::mem::take(&mut self.after).into_iter().map(|(stream, after)| RowChange {
            stream,
            before: self.before.remove(&stream).flatten(),
            after,
        });
        Some(Changes { events: self.events, rows: rows.collect() })
    }
}
