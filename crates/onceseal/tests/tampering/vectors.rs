//! Chains of the cadence run store that are none: what was done to each, done to
//! the events of a run here, is a finding of this kind.

use std::sync::Arc;

use onceseal::Principal;
use onceseal::core::command::Command;
use onceseal::core::id::RootId;
use onceseal::core::reply::Reply;
use onceseal::core::run::{Definition, StartRun, Subject, Towards, Transition};
use serde_json::Value as Vector;

use crate::ground::{Ground, audited, codes};

/// The number of the run's stream.
const RUN: &str = "(SELECT stream FROM events WHERE kind = 100)";

/// Case, what is done to the chain, and what is found of it.
const DAMAGE: &[(&str, &str, &str)] = &[
    (
        "wrong hash on the first event",
        "UPDATE events SET hash = randomblob(32) WHERE stream = RUN AND sequence = 1",
        "hash_differs",
    ),
    (
        "payload changed, hash kept",
        "UPDATE events SET data = (SELECT data FROM events WHERE stream = RUN AND sequence = 3)
         WHERE stream = RUN AND sequence = 2",
        "hash_differs",
    ),
    ("middle event removed", "DELETE FROM events WHERE stream = RUN AND sequence = 2", "event_missing"),
    (
        "two events swapped",
        "UPDATE events SET sequence = -2 WHERE stream = RUN AND sequence = 2;
         UPDATE events SET sequence = 2 WHERE stream = RUN AND sequence = 3;
         UPDATE events SET sequence = 3 WHERE stream = RUN AND sequence = -2;",
        "event_order",
    ),
    // A hash has no case: it is bytes.
    (
        "hash in upper case",
        "UPDATE events SET hash = CAST(upper(hex(hash)) AS BLOB) WHERE stream = RUN AND sequence = 2",
        "event_misshapen",
    ),
    (
        "sequence starts at 0",
        "UPDATE events SET sequence = 0 WHERE stream = RUN AND sequence = 1",
        "event_missing",
    ),
    // The hash before an event is the one that is stored there.
    (
        "prior hash zeroed",
        "UPDATE events SET hash = zeroblob(32) WHERE stream = RUN AND sequence = 1",
        "hash_differs",
    ),
    (
        "unknown kind last (quirk: whole projection lost)",
        "UPDATE events SET kind = 255 WHERE position = (SELECT max(position) FROM events WHERE stream = RUN)",
        "event_unreadable",
    ),
    (
        "unknown kind then run-created at sequence 3",
        "UPDATE events SET kind = 255 WHERE stream = RUN AND sequence = 2",
        "event_unreadable",
    ),
    // Whoever cuts the log does not cut the rows that know more.
    (
        "TRUNCATED: last five events dropped (not detected by design)",
        "DELETE FROM events WHERE stream = RUN AND sequence > 1",
        "event_missing",
    ),
];

/// A store with a run that went through some states.
fn gone_on() -> Ground {
    let ground = Ground::new();
    let control = ground.open().expect("opens");
    let simple = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
    let (definition, principal) = (Arc::new(simple.expect("built in")), Principal::agent("bot"));
    let (root, subject, request) = (RootId([1; 16]), Subject::Change("c".to_owned()), "start".to_owned());
    let start = StartRun { root, definition, subject, request, principal: principal.clone() };
    let run = match control.store().run(Command::StartRun(Box::new(start))).expect("an answer") {
        Reply::Run(now) => now.answered.run,
        other => panic!("no run: {other:?}"),
    };
    for (at, state) in ["running", "paused", "running"].into_iter().enumerate() {
        let (to, request, principal) =
            (Towards::State(state.to_owned()), format!("r{at}"), principal.clone());
        let go = Transition { run, to, code: None, request, principal, under: None };
        assert!(matches!(control.store().run(Command::Transition(go)), Ok(Reply::Run(_))));
    }
    control.close();
    ground
}

#[test]
fn what_breaks_a_chain_of_the_reference_is_found_here() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/runs.json");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let vectors: Vector = serde_json::from_str(&text).expect("JSON");
    let cases = vectors["chainVerification"]["cases"].as_array().expect("cases");
    let ground = gone_on();
    let clean = audited(&ground.open().expect("opens"));
    assert!(clean.is_clean(), "{clean:#?}");
    for (name, sql, code) in DAMAGE {
        assert!(cases.iter().any(|case| case["name"] == *name), "{name}");
        let copy = ground.copy();
        copy.intruder().execute_batch(&sql.replace("RUN", RUN)).expect(name);
        let found = codes(&audited(&copy.open().expect("opens")));
        assert!(found.contains(code), "{name}: {found:?}");
    }
    let broken = |case: &&Vector| case["error"] == "event-integrity-hash-chain";
    let chains =
        cases.iter().filter(broken).all(|case| DAMAGE.iter().any(|(name, ..)| case["name"] == *name));
    assert!(chains, "each broken chain is among them");
    println!("chainVerification: {} found by the audit", DAMAGE.len());
}
