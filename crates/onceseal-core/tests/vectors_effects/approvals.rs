//! `approval_verdict` and `consume_and_reserve`.

use onceseal_core::action::Reach;
use onceseal_core::approval::{Said, Status};
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::hash::Hash;
use onceseal_core::id::ApprovalId;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use serde_json::Value as Json;

use crate::calls::{Call, call};
use crate::doing::{asked, attempt};
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{Adapted, action, moment, refusal, run, text, word};

const VERDICT_ADAPTED: &[Adapted] = &[];

const CONSUME_ADAPTED: &[Adapted] = &[(
    "cr-041",
    "consumed; approval consumed; effect failed(1) by h",
    "an approval is consumed with the effect it permits, never without",
)];

/// `content` stands for the content that the hash of a case is of.
const POLICY: &str = r#"
schema: onceseal.policy/v1
actions:
  pay: { effect: "pay:{id}", approval: { ttl: 15m }, lease: 5m, decision: approve }
  hold: { effect: "pay:{id}", lease: 5m, decision: allow }
"#;

const NOBODY: ApprovalId = ApprovalId([0; 16]);

fn pay(content: &str) -> Call {
    call("pay", &format!(r#"{{"content":"{content}","id":1}}"#))
}

/// An approval of this content, brought to a status where the clock stands.
fn approval(world: &mut World<'_>, content: &str, status: &str) -> ApprovalId {
    let id = asked(world.call(pay(content))).1;
    match status {
        "granted" | "consumed" => drop(world.answer(id, "host:ada", Said::Yes)),
        "denied" => drop(world.answer(id, "host:ada", Said::No)),
        _ => {}
    }
    if status == "expired" {
        let now = world.now;
        world.now = now + Span::hours(1);
        world.run(Command::Lapse(StreamId::approval(id)));
        world.now = now;
    }
    id
}

fn verdict_outcome(case: &Json) -> String {
    let mut world = World::new(&Real, POLICY);
    let mut id = NOBODY;
    if case["record"].is_object() {
        world.now = moment(&case["record"], "created_at");
        let status = text(&case["record"], "status");
        id = approval(&mut world, text(&case["record"], "action_hash"), status);
        assert_eq!(world.approval(id).expires_at, moment(&case["record"], "expires_at"));
        if status == "consumed" {
            attempt(world.call(Call { approval: Some(id), ..pay(text(&case["record"], "action_hash")) }));
        }
    }
    world.now = moment(case, "now");
    let status = |world: &World<'_>| (id != NOBODY).then(|| world.approval(id).status);
    let before = status(&world);
    let reply = match text(case, "op") {
        "consume" => world.call(Call { approval: Some(id), ..pay(text(case, "presented_action_hash")) }),
        _ if id == NOBODY => world.answer_shown(id, "host:bob", Said::Yes, Hash([0; 32])),
        _ => world.answer(id, "host:bob", Said::Yes),
    };
    match reply {
        Reply::Refused(refusal) => {
            let after = status(&world);
            let moved = after.filter(|_| after != before).map_or("-", Status::as_str);
            let decided = refusal.code == onceseal_core::code::Code::ApprovalDecided;
            let reason = refusal.status.filter(|_| decided).map_or(word(refusal.code), Status::as_str);
            format!("{reason} moves {moved}")
        }
        Reply::Attempt(_) | Reply::Approval { .. } => "ok".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn verdict_expected(case: &Json) -> String {
    let expect = &case["expect"];
    match text(expect, "outcome") {
        "ok" => "ok".to_owned(),
        _ => format!("{} moves {}", refusal(expect), expect["record_moves_to"].as_str().unwrap_or("-")),
    }
}

#[test]
fn the_approval_verdict_cases_of_the_reference() {
    let (passed, adapted) = run("approval_verdict", VERDICT_ADAPTED, verdict_outcome, verdict_expected);
    assert_eq!((passed, adapted), (29, 0));
}

/// Takes the key as `act_h` did, so long ago that its lease is live or not.
fn hold(world: &mut World<'_>, effect: &str, consumed: Option<ApprovalId>) {
    let (state, lease) = effect.split_once('/').unwrap_or((effect, "live"));
    if state == "none" && consumed.is_none() {
        return;
    }
    world.now = noon() - Span::seconds(if lease == "live" { 5 } else { 301 });
    let reach = if state == "reserved" { Reach::Reserved } else { Reach::Executing };
    let by = if consumed.is_some() { pay("aa") } else { call("hold", r#"{"id":1}"#) };
    let held = attempt(world.call(Call { action: action("act_h"), approval: consumed, reach, ..by }));
    match state {
        "committed" => drop(world.settle(&held, Outcome::Committed)),
        "ambiguous" => drop(world.settle(&held, Outcome::Ambiguous)),
        "failed" | "none" => drop(world.settle(&held, Outcome::Failed)),
        _ => {}
    }
}

fn consume_outcome(case: &Json) -> String {
    let mut world = World::new(&Real, POLICY);
    let status = text(case, "approval");
    // Asked before the key is taken: nobody is asked about a taken one.
    let late = if status == "granted-lapsed" { 1 } else { 0 };
    let exact = status.starts_with("granted-");
    world.now = noon() - Span::seconds(if exact { 900 } else { 800 }) - Span::micros(late);
    let id = match status {
        "unknown" => NOBODY,
        "mismatch" | "granted-at-expiry" | "granted-lapsed" => approval(&mut world, "aa", "granted"),
        status => approval(&mut world, "aa", status),
    };
    hold(&mut world, text(case, "effect"), (status == "consumed").then_some(id));
    world.now = noon();
    let content = if status == "mismatch" { "bb" } else { "aa" };
    let new = Call { action: action("act_new"), approval: Some(id), reach: Reach::Reserved, ..pay(content) };
    let word = match world.call(new) {
        Reply::Attempt(_) => "ok",
        Reply::Refused(refusal) => match refusal.effect.filter(|effect| effect.same_intent == Some(false)) {
            Some(effect) => match effect.state.as_str() {
                "committed" => "committed",
                "ambiguous" => "ambiguous",
                _ => "in_progress",
            },
            None => word(refusal.code),
        },
        other => panic!("{other:?}"),
    };
    world.check();
    let approval = if id == NOBODY { "-" } else { world.approval(id).status.as_str() };
    let effect = world.effect("pay:1").map_or("none".to_owned(), |row| {
        format!("{}({}) by {}", row.state, row.fence, char::from(row.holder.0[0]))
    });
    format!("{word}; approval {approval}; effect {effect}")
}

fn consume_expected(case: &Json) -> String {
    let expect = &case["expect"];
    let word = if text(expect, "outcome") == "ok" { "ok".to_owned() } else { refusal(expect) };
    let approval = expect["approval_after"].as_str().unwrap_or("-");
    let after = &expect["effect_after"];
    let effect = if after.is_null() {
        "none".to_owned()
    } else {
        let holder = text(after, "action_id").chars().last().expect("a name");
        format!("{}({}) by {holder}", text(after, "state"), after["attempt"])
    };
    format!("{word}; approval {approval}; effect {effect}")
}

#[test]
fn the_consume_and_reserve_cases_of_the_reference() {
    let (passed, adapted) = run("consume_and_reserve", CONSUME_ADAPTED, consume_outcome, consume_expected);
    assert_eq!((passed, adapted), (43, 1));
}
