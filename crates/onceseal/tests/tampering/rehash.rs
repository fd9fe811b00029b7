//! Whoever hashes anew what they changed: how far it gets them, and where only
//! a signature held elsewhere can tell.

use onceseal::Control;
use onceseal::core::decide::evolve;
use onceseal::core::effect::Outcome;
use onceseal::core::journal::{
    Body, Event, Head, Kind, Payload, Row, Stored, chain_hash, open_text, seal_hash, sealed_text,
};
use onceseal::core::pack::Pack;
use onceseal::core::stream::StreamId;
use onceseal::store::read::{StoredEvent, row_of};
use rusqlite::Connection;

use crate::ground::{Ground, audited, codes};
use crate::sample::sample;

/// Somebody with the file, the program and its tenant's constants.
struct Forger {
    control: Control,
    intruder: Connection,
    stream: StreamId,
    events: Vec<StoredEvent>,
}

impl Forger {
    /// Takes up the first stream with an event of this kind.
    fn new(ground: &Ground, kind: Kind) -> Forger {
        let control = ground.open().expect("opens");
        let log = control.log(0, 1_000).expect("the log");
        let first = log.iter().find(|event| event.event.as_ref().is_some_and(|e| e.body.kind() == kind));
        let stream = first.expect("such an event").stamp.stream;
        let events = control.events(&stream, 1, 1_000).expect("events");
        Forger { intruder: ground.intruder(), control, stream, events }
    }

    /// Changes an event of this kind.
    fn edit(&mut self, kind: Kind, change: impl FnOnce(&mut Event)) -> usize {
        let of_kind = |event: &StoredEvent| event.event.as_ref().is_some_and(|e| e.body.kind() == kind);
        let place = self.events.iter().position(of_kind).expect("such an event");
        change(self.events[place].event.as_mut().expect("decodes"));
        place
    }

    /// Puts another text beside an event, under the salt it has.
    fn replace_text(&mut self, place: usize, text: &str) -> onceseal::core::hash::Hash {
        let position = self.events[place].position as i64;
        let sql = "SELECT salt FROM payloads WHERE event = ?1";
        let salt = self.intruder.query_row(sql, [position], |row| row.get(0)).expect("a text");
        let sql = "UPDATE payloads SET text = ?2 WHERE event = ?1";
        self.intruder.execute(sql, (position, text)).expect("replaced");
        Payload { salt, text: text.to_owned() }.hash()
    }

    /// Seals, hashes and saves the events from `from` up to before `to`.
    fn rehash(&mut self, from: usize, to: usize) {
        let genesis = self.control.store().tenant().genesis(&self.stream);
        for place in from..to {
            let prior = place.checked_sub(1).map_or(genesis, |before| self.events[before].hash);
            let stored = &mut self.events[place];
            let event = stored.event.as_ref().expect("decodes");
            if let (Some(text), Some(salt)) = (sealed_text(event), &stored.salt) {
                stored.seal = Some(seal_hash(salt, &text));
            }
            stored.hash = chain_hash(&open_text(&stored.stamp, event, prior, stored.seal));
            let (mut data, mut sealed) = (Vec::new(), Vec::new());
            event.body.pack_data(&mut data);
            event.body.pack_sealed(&mut sealed);
            let sql = "UPDATE events SET refs = ?2, data = ?3, sealed = ?4, seal = ?5, hash = ?6 WHERE position = ?1";
            let seal = stored.seal.map(|seal| seal.0);
            let values = (stored.position as i64, event.refs.packed(), data, sealed, seal, stored.hash.0);
            assert_eq!(self.intruder.execute(sql, values), Ok(1));
        }
    }

    /// Makes the stream's head its last event.
    fn rehead(&self) {
        let head = self.events.last().expect("events").hash;
        self.update_stream("head", &head.0);
    }

    /// Makes the stream's row what its events come to.
    fn refold(&self) {
        let mut row = None;
        for stored in &self.events {
            let (stamp, event) = (&stored.stamp, stored.event.as_ref().expect("decodes"));
            row = Some(evolve(&self.stream, row, stamp.sequence, stamp.at, event).expect("follows"));
        }
        let (open, private) = row.expect("events").packed();
        self.update_stream("open", &open);
        self.update_stream("private", &private);
    }

    fn update_stream(&self, column: &str, value: &[u8]) {
        let sql = format!("UPDATE streams SET {column} = ?1 WHERE kind = ?2 AND name = ?3");
        let stream = (value, self.stream.kind.number(), self.stream.name);
        assert_eq!(self.intruder.execute(&sql, stream), Ok(1));
    }

    fn stored(&self) -> Stored {
        let loaded = self.control.store().read(|snapshot| snapshot.stream(&self.stream));
        row_of(loaded.expect("readable")).expect("a row")
    }

    fn codes(&self) -> Vec<&'static str> {
        codes(&audited(&self.control))
    }
}

/// Gives a report an error text that nobody wrote.
fn reword(event: &mut Event) {
    if let Body::EffectSettled(_, sealed) = &mut event.body {
        sealed.error = Some("somebody else did it".to_owned());
    }
}

#[test]
fn ua_145_each_step_of_hashing_anew_leaves_the_next_one_to_be_found() {
    let ground = sample();
    let mut forger = Forger::new(&ground, Kind::EffectReconciled);
    let place = forger.edit(Kind::EffectReconciled, |event| {
        let Body::EffectReconciled(data, _) = &mut event.body else { panic!("reconciled") };
        data.outcome = Outcome::Failed;
    });
    let last = forger.events.len();
    assert!(place + 1 < last, "an event follows on it");
    let position = forger.events[place].position;
    // Saved as it is, under its old hash.
    let mut data = Vec::new();
    forger.events[place].event.as_ref().expect("decodes").body.pack_data(&mut data);
    forger
        .intruder
        .execute("UPDATE events SET data = ?2 WHERE position = ?1", (position as i64, data))
        .expect("edits");
    assert_eq!(forger.codes(), ["row_differs", "hash_differs"]);
    // Its hash made to fit: the next event followed on the old one.
    forger.rehash(place, place + 1);
    let report = audited(&forger.control);
    let broken: Vec<_> =
        report.findings.iter().filter(|f| f.code == "hash_differs").map(|f| f.sequence).collect();
    assert_eq!(broken, [Some(place as u64 + 2)], "{report:#?}");
    // All hashes made to fit: the head is the old one.
    forger.rehash(place + 1, last);
    assert_eq!(forger.codes(), ["head_differs"]);
    // The head made to fit: the row is not what the events come to.
    forger.rehead();
    assert_eq!(forger.codes(), ["row_differs"]);
    // The row made to fit: it is found under the keys of the old one.
    forger.refold();
    assert!(forger.codes().contains(&"key_missing") && forger.codes().contains(&"key_extra"));
}

#[test]
fn ua_146_the_version_of_the_format_is_hashed() {
    let ground = sample();
    let control = ground.open().expect("opens");
    for stored in control.log(0, 1_000).expect("the log") {
        let event = stored.event.as_ref().expect("decodes");
        let prior = control.prior(&stored.stamp.stream, stored.stamp.sequence).expect("a hash");
        let open = open_text(&stored.stamp, event, prior, stored.seal);
        assert_eq!(chain_hash(&open), stored.hash);
        let other = open.strip_suffix("\"v\":1}").map(|rest| format!("{rest}\"v\":2}}"));
        assert_ne!(chain_hash(&other.expect("a version at the end")), stored.hash);
    }
    // The version of the whole file decides who may read it at all.
    control.close();
    drop(control);
    ground.intruder().execute_batch("PRAGMA user_version = 99").expect("another version");
    assert_eq!(ground.open().err().expect("refused").code(), "store_foreign");
}

/// What is done, what would show it, and how it is done.
type Case = (&'static str, &'static str, fn(&Ground));

/// What a forger with the file, this program and time can do unseen, and what
/// would show it. An audit says of all of these that nothing is wrong; this
/// list keeps us from promising more.
#[test]
fn needs_signatures() {
    let cases: [Case; 4] = [
        (
            "an error text reworded, sealed and hashed anew, head and row made to fit",
            "the hash differs from the one under a signed checkpoint, or in a receipt somebody holds",
            |ground| forge(ground, Kind::EffectSettled, reword),
        ),
        (
            "a person's name replaced in an answer that was used",
            "as above: the approver is in the receipt of the action",
            |ground| {
                forge(ground, Kind::ApprovalAnswered, |event| {
                    let Body::ApprovalAnswered(_, sealed) = &mut event.body else { panic!("an answer") };
                    sealed.person = Some("host:eve".to_owned());
                });
            },
        ),
        (
            "the arguments of an action replaced with the text beside it, its action hash kept",
            "as above; the action hash alone would have shown it, and could have been replaced too",
            |ground| {
                let mut forger = Forger::new(ground, Kind::ActionStarted);
                let reference = forger.replace_text(0, "{\"id\":\"other\"}");
                forger.edit(Kind::ActionStarted, |event| {
                    let Body::ActionStarted(_, sealed) = &mut event.body else { panic!("started") };
                    sealed.proposal.as_mut().expect("a proposal").arguments = reference;
                });
                forger.finish();
            },
        ),
        ("when the tenant was made", "nothing is derived from it: it is outside the fold", |ground| {
            ground.intruder().execute("UPDATE tenants SET created_at = 0", []).expect("edits");
        }),
    ];
    for (what, shown_by, forge) in cases {
        let ground = sample();
        forge(&ground);
        let report = audited(&ground.open().expect("opens"));
        assert_eq!(report.findings, [], "{what}: was found after all, take it off this list ({shown_by})");
        let says = "whoever can write the file can cut its end or rewrite it consistently";
        assert!(report.notes.iter().any(|note| note.sentence.starts_with(says)), "{what}: and it says so");
    }
}

fn forge(ground: &Ground, kind: Kind, change: impl FnOnce(&mut Event)) {
    let mut forger = Forger::new(ground, kind);
    forger.edit(kind, change);
    forger.finish();
}

impl Forger {
    /// Makes everything fit to the changed events, and sees that it did change.
    fn finish(mut self) {
        let before = self.stored();
        self.rehash(0, self.events.len());
        self.rehead();
        self.refold();
        let after = self.stored();
        assert_ne!(before.head, after.head);
        assert_eq!(after.head, Head { hash: self.events.last().expect("events").hash, ..before.head });
        assert!(matches!(after.row, Row::Action(_) | Row::Effect(_) | Row::Approval(_)));
    }
}
