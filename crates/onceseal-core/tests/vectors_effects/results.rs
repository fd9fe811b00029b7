//! `result_storage`. Making JSON of a language's values is the work of an
//! engine or binding; the rules keep the canonical text they are given, and
//! whatever that is, a committed effect stays committed.

use onceseal_core::command::Command;
use onceseal_core::effect::{Outcome, Settle};
use onceseal_core::journal::Payload;
use onceseal_core::json::{self, Limits};
use serde_json::Value as Json;

use crate::calls::{call, settle};
use crate::doing::attempt;
use crate::executor::{Real, Shelf};
use crate::world::World;
use crate::{Adapted, run, text};

const POLICY: &str = "{ schema: onceseal.policy/v1, actions: { do: { decision: allow } } }";

const UNSTORABLE: &str =
    "what is not JSON is stored as unstorable by the engine or binding, with its type and size";

const ADAPTED: &[Adapted] = &[
    ("rs-008", r#"committed {"bytes":8,"unstorable":"dict"}"#, UNSTORABLE),
    ("rs-009", r#"committed {"bytes":12,"unstorable":"dict"}"#, UNSTORABLE),
    ("rs-010", r#"committed {"bytes":4,"unstorable":"bytes"}"#, UNSTORABLE),
    ("rs-013", r#"committed {"bytes":8,"unstorable":"str"}"#, UNSTORABLE),
    ("rs-014", r#"committed {"bytes":15,"unstorable":"Decimal"}"#, UNSTORABLE),
];

/// The text that an engine hands over for what a function returned.
fn handed_over(case: &Json) -> String {
    let python = text(case, "returned_python");
    let unstorable = match text(case, "id") {
        "rs-008" | "rs-009" => "dict",
        "rs-010" => "bytes",
        "rs-013" => "str",
        "rs-014" => "Decimal",
        _ => {
            let stored = text(&case["expect"], "stored_json");
            let value = json::read(stored.as_bytes(), &Limits::RESULT).expect("JSON");
            return json::canonical(&value);
        }
    };
    format!(r#"{{"bytes":{},"unstorable":"{unstorable}"}}"#, python.len())
}

fn outcome(case: &Json) -> String {
    let mut world = World::new(&Real, POLICY);
    let held = attempt(world.call(call("do", "{}")));
    let result = Some(handed_over(case));
    world.run(Command::Settle(Settle { result, ..settle((&held).into(), Outcome::Committed) }));
    world.check();
    let row = world.effect(&format!("act:{}", held.action)).expect("an effect");
    let stored = row.result_at.and_then(|at| world.payload(&held.effect, at));
    let Payload { text, .. } = stored.expect("a stored result");
    let value = json::read_canonical(&text, &Limits::RESULT).expect("canonical text");
    format!("{} {}", row.state, json::canonical(&value))
}

fn expected(case: &Json) -> String {
    let expect = &case["expect"];
    let stored: Json = match expect["stored_json"].as_str() {
        Some(stored) => serde_json::from_str(stored).expect("JSON"),
        None => return format!("{} {}", text(expect, "state"), text(expect, "error")),
    };
    format!("{} {stored}", text(expect, "state"))
}

#[test]
fn the_result_storage_cases_of_the_reference() {
    let (passed, adapted) = run("result_storage", ADAPTED, outcome, expected);
    assert_eq!((passed, adapted), (6, 5));
}
