//! The effect and approval cases of the reference, all of them.
//!
//! A case passes when it comes out as the reference says, in the words below.
//! A case that the design changes stands in a table with what comes out here
//! and why; one that stands there although nothing changes fails the test.

#[path = "../support/calls.rs"]
mod calls;
#[path = "../support/doing.rs"]
mod doing;
#[path = "../support/executor.rs"]
mod executor;
#[path = "../support/world.rs"]
mod world;

mod approvals;
mod hashes;
mod reservation;
mod results;
mod scripts;
mod traces;
mod transitions;

use onceseal_core::code::Code;
use onceseal_core::id::ActionId;
use onceseal_core::time::{Span, Timestamp};
use serde_json::Value as Json;

/// Case, what comes out here, and the design's reason.
type Adapted = (&'static str, &'static str, &'static str);

fn cases(section: &str) -> Vec<Json> {
    let vectors: Json =
        serde_json::from_str(include_str!("../../../../vectors/approvals-effects.json")).expect("JSON");
    vectors[section].as_array().expect("a section").clone()
}

fn text<'a>(json: &'a Json, member: &str) -> &'a str {
    json[member].as_str().unwrap_or_else(|| panic!("no {member} in {json}"))
}

fn moment(json: &Json, member: &str) -> Timestamp {
    Timestamp::parse(text(json, member)).expect("a moment")
}

fn seconds(json: &Json) -> Span {
    // Nothing here can be a negative length; zero is refused like one.
    std::time::Duration::try_from_secs_f64(json.as_f64().expect("a length"))
        .map_or(Span::ZERO, Span::from_std)
}

/// The names of actions in the cases; an empty one is no id.
fn action(name: &str) -> Option<ActionId> {
    let byte = *name.as_bytes().last()?;
    Some(ActionId([byte; 16]))
}

/// What the reference calls a refusal.
fn refusal(expect: &Json) -> String {
    match text(expect, "error") {
        "InvalidArgument" => "invalid".to_owned(),
        "AmbiguousEffect" => "ambiguous".to_owned(),
        "DuplicateEffect" | "ActionDenied" => {
            let member = if expect["state"].is_null() { "reason" } else { "state" };
            text(expect, member).to_owned()
        }
        "ApprovalMismatch" => text(expect, "reason").to_owned(),
        other => other.to_owned(),
    }
}

/// The same word for a refusal of ours.
fn word(code: Code) -> &'static str {
    match code {
        Code::Duplicate => "committed",
        Code::InProgress => "in_progress",
        Code::OutOfBounds
        | Code::EffectUnknown
        | Code::InvalidTransition
        | Code::NotAmbiguous
        | Code::PersonInvalid => "invalid",
        Code::ApprovalUnknown => "unknown",
        Code::ApprovalMismatch => "mismatch",
        Code::ApprovalPending => "pending",
        Code::ApprovalExpired => "expired",
        Code::ApprovalUsed => "consumed",
        other => other.as_str(),
    }
}

/// Runs a section and prints how many cases passed and how many are adapted.
fn run(
    section: &str,
    adapted: &[(&str, &str, &str)],
    outcome: impl Fn(&Json) -> String,
    expected: impl Fn(&Json) -> String,
) -> (usize, usize) {
    let cases = cases(section);
    let mut passed = 0;
    for case in &cases {
        let id = text(case, "id");
        let (ours, theirs) = (outcome(case), expected(case));
        match adapted.iter().find(|(adapted, ..)| *adapted == id) {
            None => {
                assert_eq!(ours, theirs, "{id}");
                passed += 1;
            }
            Some((_, here, why)) => {
                assert_eq!(ours, *here, "{id}: {why}");
                assert_ne!(ours, theirs, "{id} comes out as in the reference; take it from the table");
            }
        }
    }
    let known = |id: &str| cases.iter().any(|case| text(case, "id") == id);
    assert!(adapted.iter().all(|(id, ..)| known(id)), "the table names a case that is not there");
    println!("{section}: {} cases, {passed} passed, {} adapted, 0 skipped", cases.len(), adapted.len());
    for (id, here, why) in adapted {
        println!("  adapted {id}: {here} ({why})");
    }
    (passed, adapted.len())
}
