//! `transition`: what a holder, somebody else and a person can do to a record.

use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, EffectRow, Holding, Outcome, Reserve, Resolve, Settle};
use onceseal_core::reply::Reply;
use onceseal_core::time::{Span, Timestamp};
use serde_json::Value as Json;

use crate::calls::{identity, settle};
use crate::doing::attempt;
use crate::executor::{Real, Shelf};
use crate::world::World;
use crate::{Adapted, action, moment, refusal, run, seconds, text, word};

const AGAIN: &str = "a report with the same fence and outcome is answered like the first";
const LATE: &str = "a holder's word against an answer is kept as late: fenced, with the state as it is";
const FIRST: &str = "an ambiguous report is idempotent and keeps the first cause";
const LIVE: &str = "begin needs a live lease; a late one makes the record ambiguous";
const BOOM: &str = "ambiguous(1) by h, 12:00:00..12:00:00 error boom";

const ADAPTED: &[Adapted] = &[
    (
        "tr-027-committed-commit-holder",
        "ok: committed(1) by h, 12:00:00..12:00:00 result {\"ok\":true}",
        AGAIN,
    ),
    (
        "tr-029-committed-fail-holder",
        "fenced: committed(1) by h, 12:00:00..12:00:01 result {\"ok\":true}",
        LATE,
    ),
    (
        "tr-031-committed-ambiguous-holder",
        "fenced: committed(1) by h, 12:00:00..12:00:01 result {\"ok\":true}",
        LATE,
    ),
    ("tr-035-failed-commit-holder", "fenced: failed(1) by h, 12:00:00..12:00:01 error nope", LATE),
    ("tr-037-failed-fail-holder", "ok: failed(1) by h, 12:00:00..12:00:00 error nope", AGAIN),
    ("tr-039-failed-ambiguous-holder", "fenced: failed(1) by h, 12:00:00..12:00:01 error nope", LATE),
    ("tr-047-ambiguous-ambiguous-holder", "ok: ambiguous(1) by h, 12:00:00..12:00:00 error boom", FIRST),
    (
        "tr-051-ambiguous-from-reserved-commit-holder",
        "ambiguous: ambiguous(1) by h, 12:00:00..12:00:01 error boom",
        LATE,
    ),
    (
        "tr-053-ambiguous-from-reserved-fail-holder",
        "ambiguous: ambiguous(1) by h, 12:00:00..12:00:01 error boom",
        LATE,
    ),
    (
        "tr-055-ambiguous-from-reserved-ambiguous-holder",
        "ok: ambiguous(1) by h, 12:00:00..12:00:00 error boom",
        FIRST,
    ),
    ("tr-057-reserved-begin-holder-after-lease", "lease_lapsed: ambiguous(1) by h, 12:00:00..12:05:01", LIVE),
];

const KEY: &str = "k";

fn start(world: &mut World<'_>, case: &Json) {
    let Some(state) = case["start_state"].as_str() else { return };
    let (action, lease) = (action(text(case, "holder")).expect("an id"), seconds(&case["lease_seconds"]));
    let held = attempt(world.run(Command::Reserve(Reserve { key: KEY.to_owned(), action, lease })));
    if !matches!(state, "reserved" | "ambiguous-from-reserved") {
        world.run(Command::Begin(Begin { attempt: (&held).into(), lease }));
    }
    let report = |outcome, error: Option<&str>, result: Option<&str>| {
        let (error, result) = (error.map(str::to_owned), result.map(str::to_owned));
        Command::Settle(Settle { error, result, ..settle((&held).into(), outcome) })
    };
    match state {
        "reserved" | "executing" => {}
        "committed" => drop(world.run(report(Outcome::Committed, None, Some("{\"ok\":true}")))),
        "failed" => drop(world.run(report(Outcome::Failed, Some("nope"), None))),
        _ => drop(world.run(report(Outcome::Ambiguous, Some("boom"), None))),
    }
}

fn command(world: &World<'_>, case: &Json) -> Option<Command> {
    let effect = world.pinned.tenant.effect(KEY);
    let lease = seconds(&case["lease_seconds"]);
    let arg = &case["arg"];
    let by = text(case, "by");
    if text(case, "op") == "resolve" {
        let happened = match arg.as_str()? {
            "committed" => true,
            "failed" => false,
            // No other word can be said.
            _ => return None,
        };
        let person = identity(&by.replace("cli:", "host:"));
        let reason = "seen".to_owned();
        return Some(Command::Resolve(Resolve {
            effect,
            fence: 1,
            happened,
            reason,
            evidence: None,
            person,
        }));
    }
    let action = action(by)?;
    let attempt = Holding { effect, action, fence: 1 };
    let report =
        |outcome, error: Option<&str>| Settle { error: error.map(str::to_owned), ..settle(attempt, outcome) };
    Some(match text(case, "op") {
        "reserve" => Command::Reserve(Reserve { key: KEY.to_owned(), action, lease }),
        "begin" => Command::Begin(Begin { attempt, lease }),
        "commit" => {
            let result = (!arg.is_null()).then(|| arg.to_string());
            Command::Settle(Settle { result, ..report(Outcome::Committed, None) })
        }
        "fail" => Command::Settle(report(Outcome::Failed, Some("err"))),
        "ambiguous" => Command::Settle(report(Outcome::Ambiguous, Some("unknown"))),
        other => panic!("unknown op {other}"),
    })
}

fn clock(at: Timestamp) -> String {
    at.to_string()[11..].trim_end_matches('Z').trim_end_matches(".000000").to_owned()
}

fn record(world: &World<'_>, resolved: bool) -> String {
    let Some(row) = world.effect(KEY) else { return "none".to_owned() };
    let EffectRow { state, fence, holder, created_at, updated_at, .. } = row;
    let holder = char::from(holder.0[0]);
    let mut record = format!("{state}({fence}) by {holder}, {}..{}", clock(*created_at), clock(*updated_at));
    if let Some(until) = row.lease_until.filter(|_| row.held()) {
        record += &format!(" until {}", clock(until));
    }
    if let Some(sequence) = row.result_at {
        let stream = world.pinned.tenant.effect(KEY);
        if let Some(payload) = world.payload(&stream, sequence) {
            record += &format!(" result {}", payload.text);
        }
    }
    if let Some(error) = row.private.error.as_ref().filter(|_| !resolved) {
        record += &format!(" error {error}");
    }
    record
}

fn outcome(case: &Json) -> String {
    let mut world = World::empty(&Real);
    world.now = moment(case, "started_at");
    start(&mut world, case);
    world.now = moment(case, "at");
    let reply = command(&world, case).map(|command| world.run(command));
    world.check();
    let word = match reply {
        None => "invalid",
        Some(Reply::Refused(refusal)) => word(refusal.code),
        Some(_) => "ok",
    };
    format!("{word}: {}", record(&world, text(case, "op") == "resolve" && word == "ok"))
}

fn expected(case: &Json) -> String {
    let expect = &case["expect"];
    let word = if text(expect, "outcome") == "ok" { "ok".to_owned() } else { refusal(expect) };
    let after = &expect["record_after"];
    if after.is_null() {
        return format!("{word}: none");
    }
    let holder = text(after, "action_id").chars().last().expect("a name");
    let (created, updated) = (clock(moment(after, "created_at")), clock(moment(after, "updated_at")));
    let mut record =
        format!("{word}: {}({}) by {holder}, {created}..{updated}", text(after, "state"), after["attempt"]);
    if !after["lease_expires_at"].is_null() {
        record += &format!(" until {}", clock(moment(after, "lease_expires_at")));
    }
    if !after["result"].is_null() {
        record += &format!(" result {}", after["result"]);
    }
    // A lapse and a resolution have no text of ours: the events say it.
    if let Some(error) = after["error"].as_str().filter(|error| !error.starts_with('<')) {
        record += &format!(" error {error}");
    }
    record
}

#[test]
fn the_transition_cases_of_the_reference() {
    let (passed, adapted) = run("transition", ADAPTED, outcome, expected);
    assert_eq!(passed + adapted, 97);
}

/// The lease that ends is kept in a record that has lapsed: only a later word
/// of the remote is measured against it.
#[test]
fn a_lease_counts_only_while_the_record_is_held() {
    let mut world = World::empty(&Real);
    let (action, lease) = (action("act_h").expect("an id"), Span::minutes(5));
    let held = attempt(world.run(Command::Reserve(Reserve { key: KEY.to_owned(), action, lease })));
    world.settle(&held, Outcome::Ambiguous);
    let row = world.effect(KEY).expect("an effect");
    assert!(row.lease_until.is_some() && !row.live(world.now));
    assert!(record(&world, false).starts_with(BOOM.split(',').next().expect("a state")));
}
