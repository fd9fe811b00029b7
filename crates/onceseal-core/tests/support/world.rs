//! A whole store in one thread and in maps: commands in, replies out, every
//! recorded event kept. [`World::check`] folds all of them again and holds the
//! result against the rows, as an audit does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::decide::{evolve, renew};
use onceseal_core::hash::{BlindingKey, Hash};
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::{
    Body, Event, Head, Index, KINDS, Key, Payload, Recorded, Row, Stored, chain_hash, open_text, seal,
    seal_hash, sealed_text,
};
use onceseal_core::json::{self, Limits};
use onceseal_core::policy::{Activate, ActivePolicy, Policy};
use onceseal_core::reply::Reply;
use onceseal_core::run::Definition;
use onceseal_core::stream::{StreamId, StreamKind, Tenant};
use onceseal_core::time::Timestamp;
use onceseal_core::tool::Tool;
use onceseal_core::view::{Loaded, Pinned, Range};

use crate::executor::{Rules, Shelf, settle_on};

/// Most rounds of reads any command has needed so far: a store must bound it.
const ROUNDS: usize = 8;

pub(crate) struct World<'r> {
    /// The clock.
    pub(crate) now: Timestamp,
    /// The tenant's constants.
    pub(crate) pinned: Pinned,
    /// Everything recorded, in order.
    pub(crate) events: Vec<Recorded>,
    pub(crate) rules: &'r dyn Rules,
    /// What everything recorded folds to.
    pub(crate) rows: BTreeMap<StreamId, Stored>,
    keys: BTreeSet<(Key, StreamId)>,
    commands: u64,
}

/// 2026-01-01T12:00:00Z, where every world begins.
pub(crate) fn noon() -> Timestamp {
    Timestamp::parse("2026-01-01T12:00:00Z").expect("a moment")
}

impl<'r> World<'r> {
    /// A store in which this policy is active.
    pub(crate) fn new(rules: &'r dyn Rules, policy: &str) -> World<'r> {
        let mut world = World::empty(rules);
        world.run(Command::Create);
        world.activate(policy);
        world
    }

    /// A store in which nothing is recorded.
    pub(crate) fn empty(rules: &'r dyn Rules) -> World<'r> {
        let tenant = Tenant { name: "default".to_owned(), id: [7; 16], key: BlindingKey([9; 32]) };
        World {
            now: noon(),
            pinned: Pinned::new(tenant, Some("os:owner".to_owned())),
            events: Vec::new(),
            rules,
            rows: BTreeMap::new(),
            keys: BTreeSet::new(),
            commands: 0,
        }
    }

    /// Makes a policy the active one, even if it was so before.
    pub(crate) fn activate(&mut self, yaml: &str) {
        self.run(World::activation(yaml));
    }

    /// The command that does so.
    pub(crate) fn activation(yaml: &str) -> Command {
        let policy = Policy::from_yaml(yaml.as_bytes()).expect("a sound policy");
        let policy = Arc::new(ActivePolicy::compile(policy.document()).expect("a sound policy"));
        Command::Activate(Activate { policy, again: true, person: None })
    }

    /// The active policy.
    pub(crate) fn policy(&self) -> Arc<ActivePolicy> {
        match self.row(&self.pinned.tenant.policy()) {
            Some(Row::Policy(row)) => Shelf::policy(self, row.active).expect("its text is kept"),
            _ => panic!("no policy is active"),
        }
    }

    /// Decides a command, records what it causes, and gives its reply.
    pub(crate) fn run(&mut self, command: Command) -> Reply {
        self.commands += 1;
        let mut nonce = [0; 16];
        nonce[8..].copy_from_slice(&self.commands.to_be_bytes());
        let made_at = self.now.micros().unsigned_abs() / 1_000;
        let command = Stamped { command, made_at, nonce: Nonce(nonce) };
        let mut pinned = self.pinned.clone();
        let decided = settle_on(self.rules, &mut pinned, self, &command, self.now);
        let again = settle_on(self.rules, &mut pinned, self, &command, self.now);
        assert_eq!(decided.verdict, again.verdict, "the same gives the same: {:?}", command.command);
        assert!(decided.rounds <= ROUNDS, "{} rounds for {:?}", decided.rounds, command.command);
        self.pinned = pinned;
        let verdict = decided.verdict;
        let heads = &self.rows;
        let recorded = seal(&self.pinned.tenant, &command, self.now, verdict.drafts, |stream| {
            heads.get(stream).map(|stored| stored.head)
        });
        for event in recorded {
            self.keep(event);
        }
        for renewal in verdict.renewals {
            let stored = renew(&self.rows[&renewal.stream], &renewal).expect("the lease that was live");
            self.put(renewal.stream, stored);
        }
        verdict.reply
    }

    fn keep(&mut self, recorded: Recorded) {
        let stamp = recorded.stamp;
        let row = self.rows.get(&stamp.stream).map(|stored| stored.row.clone());
        let row = self
            .rules
            .evolve(&stamp.stream, row, stamp.sequence, stamp.at, &recorded.event)
            .unwrap_or_else(|error| panic!("{error}: {:?}", recorded.event.body));
        let head = Head { sequence: stamp.sequence, hash: recorded.hash };
        self.put(stamp.stream, Stored { head, row });
        if matches!(recorded.event.body, Body::PolicyActivated(..) | Body::ToolActivated(..)) {
            self.pinned.forget_unknown();
        }
        self.events.push(recorded);
    }

    fn put(&mut self, stream: StreamId, stored: Stored) {
        if let Some(before) = self.rows.get(&stream) {
            for key in before.row.keys() {
                self.keys.remove(&(key, stream));
            }
        }
        self.keys.extend(stored.row.keys().into_iter().map(|key| (key, stream)));
        self.rows.insert(stream, stored);
    }

    /// A stream's row.
    pub(crate) fn row(&self, stream: &StreamId) -> Option<&Row> {
        self.rows.get(stream).map(|stored| &stored.row)
    }

    /// An approval's row.
    pub(crate) fn approval(&self, id: ApprovalId) -> &onceseal_core::approval::ApprovalRow {
        match self.row(&StreamId::approval(id)) {
            Some(Row::Approval(row)) => row,
            other => panic!("no approval {id}: {other:?}"),
        }
    }

    /// Everything an audit finds out: the events chain and seal, each stream
    /// folds to its row, each row reads back from its packed form, every
    /// terminal answer has a receipt of its own.
    pub(crate) fn check(&self) {
        self.check_chains();
        self.check_rows();
        self.check_receipts();
        self.check_commands();
    }

    fn check_chains(&self) {
        let mut heads: BTreeMap<StreamId, Head> = BTreeMap::new();
        for Recorded { stamp, event, sealed, hash, payload } in &self.events {
            let before = heads.get(&stamp.stream);
            assert_eq!(stamp.sequence, before.map_or(1, |head| head.sequence + 1), "{}", stamp.stream);
            let prior = before.map_or_else(|| self.pinned.tenant.genesis(&stamp.stream), |head| head.hash);
            let private = sealed_text(event);
            assert_eq!(private.is_some(), sealed.is_some());
            for (text, (salt, hash)) in private.iter().zip(sealed) {
                assert_eq!(seal_hash(salt, text), *hash, "seal of {text}");
                json::read_canonical(text, &Limits::DATA).expect("a sealed part is canonical");
            }
            let open = open_text(stamp, event, prior, sealed.map(|(_, seal)| seal));
            json::read_canonical(&open, &Limits::DATA).expect("an open part is canonical");
            assert_eq!(chain_hash(&open), *hash, "chain at {} {}", stamp.stream, stamp.sequence);
            if let Some(payload) = payload {
                let named = private.as_ref().expect("a payload is named in a sealed part");
                assert!(named.contains(&payload.hash().to_string()), "{named} names its payload");
            }
            heads.insert(stamp.stream, Head { sequence: stamp.sequence, hash: *hash });
        }
        let stored: BTreeMap<_, _> = self.rows.iter().map(|(stream, s)| (*stream, s.head)).collect();
        assert_eq!(heads, stored, "heads");
    }

    fn check_rows(&self) {
        let mut folded: BTreeMap<StreamId, Row> = BTreeMap::new();
        for Recorded { stamp, event, .. } in &self.events {
            let row = folded.remove(&stamp.stream);
            let row = evolve(&stamp.stream, row, stamp.sequence, stamp.at, event).expect("it folds");
            folded.insert(stamp.stream, row);
        }
        let mut open_halves = self.fold_erased();
        let mut keys = BTreeSet::new();
        for (stream, stored) in &self.rows {
            let mut row = folded.remove(stream).expect("a row has events");
            if let (Row::Effect(again), Row::Effect(now)) = (&row, &stored.row) {
                // A renewal is the one change without an event.
                assert!(now.lease_until >= again.lease_until && now.lease_until <= Some(now.deadline));
            }
            row = row.renewed_as(&stored.row);
            assert_eq!(row, stored.row, "fold of {stream}");
            assert_eq!(open_halves.remove(stream), Some(row.packed().0), "state half of {stream}");
            let (open, private) = row.packed();
            assert_eq!(Row::unpack(stream.kind, &open, &private).as_ref(), Ok(&row), "packed form");
            keys.extend(row.keys().into_iter().map(|key| (key, *stream)));
        }
        assert_eq!(keys, self.keys, "index");
        assert!(folded.is_empty(), "events without a row");
    }

    /// The state halves of all rows when nothing private is left: no open
    /// part, and so no permission, depends on a sealed one.
    fn fold_erased(&self) -> BTreeMap<StreamId, Vec<u8>> {
        let mut folded: BTreeMap<StreamId, Row> = BTreeMap::new();
        for Recorded { stamp, event: Event { refs, body }, .. } in &self.events {
            let kind = body.kind();
            let fields = KINDS.iter().find(|info| info.kind == kind).expect("a known kind").sealed.len();
            let mut data = Vec::new();
            body.pack_data(&mut data);
            let body =
                Body::unpack(kind, &data, &vec![0; fields]).expect("every private field may be absent");
            let event = Event { refs: refs.clone(), body };
            let row = folded.remove(&stamp.stream);
            let row = evolve(&stamp.stream, row, stamp.sequence, stamp.at, &event).expect("it folds");
            folded.insert(stamp.stream, row);
        }
        let mut halves = BTreeMap::new();
        for (stream, row) in folded {
            halves.insert(stream, row.renewed_as(&self.rows[&stream].row).packed().0);
        }
        halves
    }

    fn check_receipts(&self) {
        let mut receipts = BTreeSet::new();
        for Recorded { event, .. } in &self.events {
            let Event { refs, body } = event;
            // A late word is kept once, and then has none of its own.
            let terminal = event.is_answer() && !matches!(body, Body::EffectLate(..));
            assert!(!terminal || refs.receipt.is_some(), "no receipt for {body:?}");
            assert!(event.is_answer() || refs.receipt.is_none(), "a receipt for {body:?}");
            assert!(refs.receipt.is_none_or(|id| receipts.insert(id)), "one receipt twice");
        }
    }

    fn check_commands(&self) {
        let mut parts: BTreeMap<[u8; 16], Vec<(u32, u32)>> = BTreeMap::new();
        for Recorded { stamp, .. } in &self.events {
            parts.entry(stamp.command).or_default().push((stamp.part, stamp.of));
        }
        for parts in parts.into_values() {
            let of = u32::try_from(parts.len()).expect("few");
            assert!(parts.into_iter().eq((1..=of).map(|part| (part, of))), "parts of a command");
        }
    }
}

impl Shelf for World<'_> {
    fn loaded(&self, stream: &StreamId) -> Loaded {
        self.rows.get(stream).map_or(Loaded::Absent, |stored| Loaded::Row(Arc::new(stored.clone())))
    }

    fn found(&self, range: &Range) -> Vec<(Vec<u8>, StreamId)> {
        let lowest = StreamId { kind: StreamKind::Action, name: [0; 16] };
        let first = (Key { index: range.index, bytes: range.from.clone() }, lowest);
        self.keys
            .range(first..)
            .take_while(|(key, _)| key.index == range.index && key.bytes <= range.to)
            .take(range.limit)
            .map(|(key, stream)| (key.bytes.clone(), *stream))
            .collect()
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Option<Payload> {
        let at = |r: &&Recorded| r.stamp.stream == *stream && r.stamp.sequence == sequence;
        self.events.iter().find(at)?.payload.clone()
    }

    fn policy(&self, hash: Hash) -> Option<Arc<ActivePolicy>> {
        let key = Key::of(Index::PolicyText, &[&hash.0]);
        let event = self.events.iter().find(|recorded| recorded.event.keys().contains(&key))?;
        let text = &event.payload.as_ref().expect("its text").text;
        Some(Arc::new(ActivePolicy::restore(text).expect("a stored policy compiles")))
    }

    fn definition(&self, digest: Hash) -> Option<Arc<Definition>> {
        let key = Key::of(Index::DefinitionText, &[&digest.0]);
        let event = self.events.iter().find(|recorded| recorded.event.keys().contains(&key))?;
        let text = &event.payload.as_ref().expect("its text").text;
        Some(Arc::new(Definition::restore(text).expect("a stored definition compiles")))
    }

    fn tool(&self, digest: Hash) -> Option<Arc<Tool>> {
        let key = Key::of(Index::ToolText, &[&digest.0]);
        let event = self.events.iter().find(|recorded| recorded.event.keys().contains(&key))?;
        let text = &event.payload.as_ref().expect("its text").text;
        Some(Arc::new(Tool::restore(text).expect("a stored contract compiles")))
    }
}
