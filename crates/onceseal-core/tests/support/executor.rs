//! The way from a command to a verdict, as a store goes it: decide, look for
//! what is missing, decide again. Rules are a value, so that a test can break
//! them on purpose; no build of the library has such a switch.

use std::sync::Arc;

use onceseal_core::command::Stamped;
use onceseal_core::decide::{Verdict, decide, evolve, reads};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Event, Payload, Row};
use onceseal_core::pack::Corrupt;
use onceseal_core::policy::ActivePolicy;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Halt, Loaded, Pinned, Range, Read, View};

/// The two functions that every rule is in.
pub(crate) trait Rules: Sync {
    /// As [`decide`].
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        decide(pinned, view, command, now)
    }

    /// As [`evolve`].
    fn evolve(
        &self,
        stream: &StreamId,
        row: Option<Row>,
        sequence: u64,
        at: Timestamp,
        event: &Event,
    ) -> Result<Row, Corrupt> {
        evolve(stream, row, sequence, at, event)
    }
}

/// The rules as they are.
pub(crate) struct Real;

impl Rules for Real {}

/// Where rows and texts are.
pub(crate) trait Shelf {
    /// A stream as it is stored.
    fn loaded(&self, stream: &StreamId) -> Loaded;
    /// The streams in a range, in key order.
    fn found(&self, range: &Range) -> Vec<(Vec<u8>, StreamId)>;
    /// The text beside an event.
    fn payload(&self, stream: &StreamId, sequence: u64) -> Option<Payload>;
    /// A policy that was active at some time.
    fn policy(&self, hash: Hash) -> Option<Arc<ActivePolicy>>;
    /// A contract that was active at some time.
    fn tool(&self, digest: Hash) -> Option<Arc<Tool>>;
    /// A definition that a run went by.
    fn definition(&self, digest: Hash) -> Option<Arc<Definition>>;
}

/// A verdict, and how often something had to be looked for after the first reads.
pub(crate) struct Decided {
    pub(crate) verdict: Verdict,
    pub(crate) rounds: usize,
}

/// Decides a command on what is on the shelf.
pub(crate) fn settle_on(
    rules: &dyn Rules,
    pinned: &mut Pinned,
    shelf: &impl Shelf,
    command: &Stamped,
    now: Timestamp,
) -> Decided {
    let mut view = View::default();
    let mut missing = reads(pinned, command);
    for rounds in 0..100 {
        for read in missing.drain(..) {
            fetch(pinned, &mut view, shelf, read);
        }
        match rules.decide(pinned, &view, command, now) {
            Ok(verdict) => return Decided { verdict, rounds },
            Err(Halt::Need(reads)) => missing = reads,
            Err(Halt::Unreadable) => panic!("a row is unreadable for {:?}", command.command),
        }
    }
    panic!("no verdict after a hundred rounds for {:?}", command.command)
}

fn fetch(pinned: &mut Pinned, view: &mut View, shelf: &impl Shelf, read: Read) {
    match read {
        Read::Stream(stream) => view.load(stream, shelf.loaded(&stream)),
        Read::Range(range) => {
            let found = shelf.found(&range);
            view.load_range(range, found);
        }
        Read::Policy(hash) => pinned.know(hash, shelf.policy(hash)),
        Read::Tool(digest) => pinned.know_tool(digest, shelf.tool(digest)),
        Read::Definition(digest) => pinned.know_definition(digest, shelf.definition(digest)),
        Read::Payload(stream, sequence) => {
            view.load_payload(stream, sequence, shelf.payload(&stream, sequence));
        }
    }
}
