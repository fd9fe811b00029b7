//! `action_hash` and `timestamp`. The values of the hashes differ on purpose
//! (RFC 8785 order, a purpose before the text); what is equal, what differs
//! and what is refused does not.

use std::collections::BTreeMap;

use onceseal_core::action::{Action, Principal, Proposal};
use onceseal_core::hash::Hash;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::time::Timestamp;
use serde_json::Value as Json;

use crate::executor::Real;
use crate::world::World;
use crate::{Adapted, cases, run, text};

const BOUNDED: &str = "integers are within 2^53-1, so that no reader changes them";
const NUL: &str = "U+0000 is refused: PostgreSQL cannot store it, so no backend may";
const TWICE: &str = "a name twice in one object is refused";
const TYPED: &str = "fields are type-checked";

const ADAPTED: &[Adapted] = &[
    ("ah-025-int-2e53", "refused", BOUNDED),
    ("ah-026-int64-max", "refused", BOUNDED),
    ("ah-027-int64-overflow", "refused", BOUNDED),
    ("ah-028-uint64-overflow", "refused", BOUNDED),
    ("ah-030-big-negative", "refused", BOUNDED),
    ("ah-063-control-chars", "refused", NUL),
    ("ah-072-duplicate-json-key", "refused", TWICE),
    ("ah-090-name-not-str", "refused", TYPED),
];

/// What Python values of the cases are as JSON. All others are none: a binding
/// has nothing to pass, and refuses them.
const AS_JSON: &[(&str, &str)] = &[
    ("ah-057-unicode-nfd", "{\"note\":\"cafe\u{301}\"}"),
    ("ah-091-ordered-dict", r#"{"b":1,"a":2}"#),
    ("ah-093-str-enum", r#"{"a":"x"}"#),
    ("ah-094-int-enum", r#"{"a":7}"#),
];

/// Both hashes of a call, as an engine reads it; `None` if it is refused.
fn hashes(input: &Json, arguments: &str) -> Option<[Hash; 2]> {
    let world = World::new(&Real, "{ schema: onceseal.policy/v1, actions: {} }");
    let Value::Object(arguments) = json::read(arguments.as_bytes(), &Limits::ACTION).ok()? else {
        return None;
    };
    let word = |json: &Json| json.as_str().map(str::to_owned);
    let optional = |json: &Json| if json.is_null() { Some(None) } else { word(json).map(Some) };
    let action = Action {
        name: word(&input["name"])?,
        arguments,
        principal: Principal {
            agent: word(&input["principal"]["agent"])?,
            user: optional(&input["principal"]["user"])?,
        },
        environment: word(&input["environment"])?,
        resource: optional(&input["resource"])?,
    };
    let proposal = Proposal::prepare(&world.pinned.tenant, &world.policy(), action).ok()?;
    Some([proposal.action_hash(), proposal.intent_hash()])
}

fn arguments(case: &Json) -> Option<&str> {
    let python = AS_JSON.iter().find(|(id, _)| *id == text(case, "id")).map(|(_, json)| *json);
    python.or(case["input"]["arguments_json"].as_str())
}

fn found(case: &Json) -> Option<[Hash; 2]> {
    hashes(&case["input"], arguments(case)?)
}

fn outcome(case: &Json) -> String {
    if found(case).is_some() { "accepted" } else { "refused" }.to_owned()
}

fn expected(case: &Json) -> String {
    if case["expect"]["hash"].is_string() { "accepted" } else { "refused" }.to_owned()
}

#[test]
fn the_action_hash_cases_of_the_reference() {
    let (passed, adapted) = run("action_hash", ADAPTED, outcome, expected);
    assert_eq!((passed, adapted), (58, 8));
}

#[test]
fn two_cases_have_one_hash_here_exactly_if_they_have_one_there() {
    let mut theirs: BTreeMap<Hash, String> = BTreeMap::new();
    let mut compared = 0;
    for case in cases("action_hash") {
        let (Some([hash, _]), Some(reference)) = (found(&case), case["expect"]["hash"].as_str()) else {
            continue;
        };
        let before = theirs.insert(hash, reference.to_owned());
        assert!(before.is_none_or(|before| before == reference), "{}", case["id"]);
        compared += 1;
    }
    let mut references: Vec<_> = theirs.values().collect();
    references.sort();
    references.dedup();
    assert_eq!(references.len(), theirs.len(), "one hash there, two here");
    assert_eq!((compared, theirs.len()), (34, 33), "ah-001 and ah-002 are the same action");
}

/// The reference's canonical text names the same action as the case's own.
#[test]
fn an_action_read_from_its_canonical_text_has_the_same_hash() {
    let mut compared = 0;
    for case in cases("action_hash") {
        let Some(canonical) = case["expect"]["canonical"].as_str() else { continue };
        let Some(hash) = found(&case) else { continue };
        let whole: Json = serde_json::from_str(canonical).expect("canonical text");
        let again = hashes(&case["input"], &whole["arguments"].to_string());
        assert_eq!(again, Some(hash), "{}", case["id"]);
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

const DIGITS: &str = "stamps have six digits, so nothing is cut off";

const TIMES_ADAPTED: &[Adapted] = &[
    ("ts-001", "2026-01-01T12:00:00.000000Z", DIGITS),
    ("ts-002", "2026-01-01T12:00:00.999999Z", DIGITS),
    ("ts-003", "2026-01-01T12:00:00.001000Z", DIGITS),
    ("ts-004", "2026-01-01T12:00:00.000500Z", DIGITS),
    ("ts-005", "2026-01-01T06:30:00.000000Z", DIGITS),
    ("ts-006", "2026-01-01T00:30:00.000000Z", DIGITS),
    ("ts-007", "refused", "a moment is in 1970..9999"),
];

fn stamp(case: &Json) -> String {
    Timestamp::parse(text(case, "moment")).map_or("refused".to_owned(), |at| at.to_string())
}

#[test]
fn the_timestamp_cases_of_the_reference() {
    let theirs = |case: &Json| text(&case["expect"], "evidence_form").to_owned();
    let (passed, adapted) = run("timestamp", TIMES_ADAPTED, stamp, theirs);
    assert_eq!((passed, adapted), (0, 7));
    for case in cases("timestamp") {
        let ours = stamp(&case);
        let cut = ours.replace("000Z", "Z").replace("999Z", "Z").replace("500Z", "Z");
        assert!(ours == "refused" || cut == theirs(&case), "{ours}: only the last digits differ");
    }
}
