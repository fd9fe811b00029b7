//! One stream: its chain, its seals, its texts, and what its events come to.
//!
//! Each event is held against the stored hash before it, so one changed event
//! is named once and those after it are judged on.

use std::collections::BTreeMap;

use onceseal_core::decide::evolve;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{
    Body, Event, Head, Key, Payload, Row, chain_hash, open_text, seal_hash, sealed_text,
};
use onceseal_core::json::{self, Limits};
use onceseal_core::run::Definition;
use onceseal_core::stream::{StreamId, Tenant};
use onceseal_core::view::Loaded;
use onceseal_store::raw::{Misshapen, RawEvent};
use onceseal_store::read::{StoredEvent, UNPLACED};

use super::Tally;
use super::finding::{self as code, Finding};

/// Where a run went from where, whether that was its end, and the first event that
/// says so.
pub(super) type Moves = BTreeMap<(String, String, bool), u64>;

/// What became of a stream that was followed to its end.
pub(super) struct Followed<'r> {
    /// Its row, if there is one to judge further.
    pub(super) row: Option<&'r Row>,
    /// All keys of the stream.
    pub(super) keys: BTreeMap<Key, i64>,
    /// If it is a run.
    pub(super) moves: Moves,
}

/// A stream being followed from its first event.
pub(super) struct Check {
    stream: StreamId,
    /// The event last seen; before the first what stands in its place.
    head: Head,
    /// Whether the hash in `head` is the one that the next event follows on.
    chained: bool,
    position: u64,
    /// What the events come to.
    row: Option<Row>,
    /// Whether that cannot be said, since an event is missing or wrong.
    lost: bool,
    keys: BTreeMap<Key, i64>,
    moves: Moves,
}

impl Check {
    pub(super) fn new(tenant: &Tenant, stream: StreamId) -> Check {
        let head = Head { sequence: 0, hash: tenant.genesis(&stream) };
        let (keys, moves) = (BTreeMap::new(), Moves::new());
        Check { stream, head, chained: true, position: 0, row: None, lost: false, keys, moves }
    }

    /// The next event of the stream.
    pub(super) fn event(&mut self, raw: &RawEvent, tally: &mut Tally) {
        tally.events += 1;
        let stored = match &raw.event {
            Ok(stored) => stored,
            Err(Misshapen(column)) => {
                let sentence = format!(
                    "{column} of event {} of {} does not hold what is written there",
                    raw.sequence, self.stream
                );
                let position = u64::try_from(raw.position).ok();
                let sequence = u64::try_from(raw.sequence).ok();
                let finding = Finding::of_stream(code::EVENT_MISSHAPEN, self.stream, sentence);
                tally.findings.push(Finding { position, sequence, ..finding });
                self.head.sequence = sequence.unwrap_or(self.head.sequence);
                (self.chained, self.lost) = (false, true);
                return;
            }
        };
        self.follow(stored, tally);
        match &stored.event {
            None => {
                self.find(stored, code::EVENT_UNREADABLE, "does not decode", tally);
                self.lost = true;
            }
            Some(event) => {
                self.prove(stored, event, tally);
                self.text(raw, stored, event.payload(), tally);
                self.fold(stored, event, tally);
                self.remember(stored, event, tally);
            }
        }
        self.head = Head { sequence: stored.stamp.sequence, hash: stored.hash };
        (self.chained, self.position) = (true, stored.position);
    }

    /// Numbers without gap, in the order of the log.
    fn follow(&mut self, stored: &StoredEvent, tally: &mut Tally) {
        let (next, sequence) = (self.head.sequence + 1, stored.stamp.sequence);
        if sequence != next {
            let sentence = format!("event {next} of {} is missing: {sequence} comes next", self.stream);
            let finding = Finding::of_stream(code::EVENT_MISSING, self.stream, sentence);
            tally.findings.push(Finding { sequence: Some(next), ..finding });
            (self.chained, self.lost) = (false, true);
        }
        if stored.position <= self.position && stored.position != UNPLACED {
            self.find(stored, code::EVENT_ORDER, "stands in the log before the one it follows on", tally);
        }
    }

    /// The seal over the private part, and the hash over the open part.
    fn prove(&self, stored: &StoredEvent, event: &Event, tally: &mut Tally) {
        let wrong = match (sealed_text(event), &stored.salt, stored.seal) {
            (None, None, None) => None,
            (Some(text), Some(salt), Some(seal)) if seal_hash(salt, &text) == seal => None,
            (Some(_), Some(_), Some(_)) => Some("has a private part that is not the one sealed"),
            (Some(_), None, Some(_)) => Some("has lost the salt of its private part, and was not erased"),
            (None, ..) => Some("has a seal and no private part"),
            (Some(_), _, None) => Some("has a private part without a seal"),
        };
        if let Some(wrong) = wrong {
            self.find(stored, code::SEAL_DIFFERS, wrong, tally);
        }
        if self.chained {
            let open = open_text(&stored.stamp, event, self.head.hash, stored.seal);
            if chain_hash(&open) != stored.hash {
                let wrong = "is not what its hash says: it, its hash or the hash before it was changed";
                self.find(stored, code::HASH_DIFFERS, wrong, tally);
            }
        }
    }

    /// The text beside the event is the one it names, in its one form.
    fn text(&self, raw: &RawEvent, stored: &StoredEvent, named: Option<Hash>, tally: &mut Tally) {
        let (code, wrong) = match (named, &raw.payload) {
            (None, Ok(None)) => return,
            (Some(_), Ok(None)) => (code::PAYLOAD_MISSING, "has lost the text that it names"),
            (None, Ok(Some(_))) => (code::PAYLOAD_EXTRA, "has a text that it does not name"),
            (_, Err(_)) => (code::PAYLOAD_UNREADABLE, "has a text or a salt that is not one"),
            (Some(named), Ok(Some(payload))) => match self.judge(named, payload, stored) {
                None => return,
                Some(wrong) => (code::PAYLOAD_DIFFERS, wrong),
            },
        };
        self.find(stored, code, wrong, tally);
    }

    fn judge(&self, named: Hash, payload: &Payload, stored: &StoredEvent) -> Option<&'static str> {
        if payload.hash() != named {
            return Some("has another text than the one that it names");
        }
        if json::read_canonical(&payload.text, &Limits::DATA).is_err() {
            return Some("has a text that is not in its one form");
        }
        match stored.event.as_ref().map(|event| &event.body) {
            Some(Body::PolicyActivated(data, _))
                if Hash::of("onceseal.policy.v1\n", &[payload.text.as_bytes()]) != data.policy =>
            {
                Some("has another policy than the one that its hash says")
            }
            Some(Body::DefinitionAdded(data, _))
                if Definition::restore(&payload.text).map(|it| it.digest()) != Ok(data.definition) =>
            {
                Some("has another definition than the one that its digest says")
            }
            _ => None,
        }
    }

    fn fold(&mut self, stored: &StoredEvent, event: &Event, tally: &mut Tally) {
        if event.body.kind().stream() != self.stream.kind {
            let wrong = format!("is a {} in a stream of another kind", event.body.kind());
            self.find(stored, code::EVENT_FOREIGN, &wrong, tally);
            self.lost = true;
        }
        if self.lost {
            return;
        }
        let stamp = &stored.stamp;
        match evolve(&self.stream, self.row.take(), stamp.sequence, stamp.at, event) {
            Ok(row) => self.row = Some(row),
            Err(_) => {
                self.find(stored, code::EVENT_REFUSED, "cannot follow on those before it", tally);
                self.lost = true;
            }
        }
    }

    /// The keys it is found under, its receipt, and what it contradicts.
    fn remember(&mut self, stored: &StoredEvent, event: &Event, tally: &mut Tally) {
        match (event.is_answer(), event.refs.receipt) {
            (true, None) => {
                self.find(stored, code::RECEIPT_DIFFERS, "is an answer without a receipt", tally);
            }
            (false, Some(_)) => {
                self.find(stored, code::RECEIPT_DIFFERS, "has a receipt and is no answer", tally);
            }
            _ => {}
        }
        if let Body::RunMoved(data, _) | Body::RunInterrupted(data, _) = &event.body {
            let way = (data.from.clone(), data.to.clone(), data.terminal);
            self.moves.entry(way).or_insert(stored.stamp.sequence);
        }
        if let Body::EffectLate(data, _) = &event.body
            && data.contradicts
        {
            let sentence = format!(
                "the holder of attempt {} reported {} late, against what is recorded in {}",
                data.fence, data.outcome, self.stream
            );
            tally.notes.push(self.at(stored, code::LATE_CONTRADICTS, sentence));
        }
        // A key that two events of a stream have leads to the later one.
        let sequence = i64::try_from(stored.stamp.sequence).unwrap_or(i64::MAX);
        self.keys.extend(event.keys().into_iter().map(|key| (key, sequence)));
    }

    /// The stream ends here: its row must be what its events come to.
    pub(super) fn finish<'r>(mut self, loaded: &'r Loaded, tally: &mut Tally) -> Followed<'r> {
        let row = self.row_at_end(loaded, tally);
        Followed { row, keys: self.keys, moves: self.moves }
    }

    fn row_at_end<'r>(&mut self, loaded: &'r Loaded, tally: &mut Tally) -> Option<&'r Row> {
        tally.streams += 1;
        let stream = self.stream;
        let mut find = |code, sentence| tally.findings.push(Finding::of_stream(code, stream, sentence));
        let stored = match loaded {
            Loaded::Row(stored) => stored,
            Loaded::Absent | Loaded::Unreadable => {
                find(code::ROW_UNREADABLE, format!("the row of {stream} does not decode"));
                return None;
            }
        };
        self.keys.extend(stored.row.keys().into_iter().map(|key| (key, 0)));
        if self.head.sequence == 0 {
            find(code::STREAM_EMPTY, format!("{stream} has a row and no event"));
            return None;
        }
        if stored.head.sequence > self.head.sequence {
            let (from, to) = (self.head.sequence + 1, stored.head.sequence);
            find(code::EVENT_MISSING, format!("events {from} to {to} of {stream} are missing at its end"));
        } else if stored.head != self.head && (self.chained || stored.head.sequence < self.head.sequence) {
            find(code::HEAD_DIFFERS, format!("the head of {stream} is not its last event"));
        } else if let (Some(row), false) = (self.row.take(), self.lost) {
            compare(stream, row, &stored.row, &mut find);
        }
        Some(&stored.row)
    }

    fn at(&self, stored: &StoredEvent, code: &'static str, sentence: String) -> Finding {
        let finding = Finding::of_stream(code, self.stream, sentence);
        Finding { position: Some(stored.position), sequence: Some(stored.stamp.sequence), ..finding }
    }

    fn find(&self, stored: &StoredEvent, code: &'static str, wrong: &str, tally: &mut Tally) {
        let sentence = format!("event {} of {} {wrong}", stored.stamp.sequence, self.stream);
        tally.findings.push(self.at(stored, code, sentence));
    }
}

/// The end of a lease is the one thing in a row that moves without an event: of
/// an attempt never back, and never past the deadline.
fn compare(stream: StreamId, folded: Row, stored: &Row, find: &mut dyn FnMut(&'static str, String)) {
    if let (Row::Effect(folded), Row::Effect(stored)) = (&folded, stored)
        && let (Some(given), Some(until)) = (folded.lease_until, stored.lease_until)
        && (until < given || until > given.max(folded.deadline))
    {
        let wrong = "ends before it was given to, or after its deadline";
        find(code::LEASE_DIFFERS, format!("the lease of {stream} {wrong}"));
    }
    let folded = folded.renewed_as(stored);
    if folded != *stored {
        let half = if folded.packed().0 == stored.packed().0 { "private half" } else { "state" };
        find(code::ROW_DIFFERS, format!("the {half} of {stream} is not what its events come to"));
    }
}
