//! `reservation`: the retry table, by the command that has no policy.

use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, EffectState, Outcome, Reserve};
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;
use onceseal_core::reply::Reply;
use onceseal_core::time::{Span, Timestamp};
use serde_json::Value as Json;

use crate::doing::attempt;
use crate::executor::Real;
use crate::world::World;
use crate::{Adapted, action, moment, refusal, run, seconds, text, word};

const ADAPTED: &[Adapted] = &[(
    "rt-023-lease-1us",
    "invalid",
    "a lease is 1 s to 24 h: a shorter one ends before a slow disk answers",
)];

const KEY: &str = "refund:1";
const LEASE: Span = Span::minutes(5);

fn reserve(action: ActionId, lease: Span) -> Command {
    Command::Reserve(Reserve { key: KEY.to_owned(), action, lease })
}

/// Brings the key to where the case begins, by what brings it there.
fn start(world: &mut World<'_>, record: &Json) {
    let holder = action(text(record, "action_id")).expect("an id");
    let state = text(record, "state");
    if state == "new" {
        return;
    }
    let lease_until = record["lease_expires_at"].as_str().map(|at| Timestamp::parse(at).expect("a moment"));
    world.now = lease_until.unwrap_or(world.now - Span::hours(1)) - LEASE;
    for fence in 1..=record["attempt"].as_u64().expect("a number") {
        let held = attempt(world.run(reserve(holder, LEASE)));
        assert_eq!(held.fence, fence);
        if state == "reserved" {
            return;
        }
        world.run(Command::Begin(Begin { attempt: (&held).into(), lease: LEASE }));
        let last = Some(fence) == record["attempt"].as_u64();
        match state {
            "executing" if last => {}
            "committed" if last => drop(world.settle(&held, Outcome::Committed)),
            "ambiguous" if last => drop(world.settle(&held, Outcome::Ambiguous)),
            _ => drop(world.settle(&held, Outcome::Failed)),
        }
    }
    if state == "executing" && lease_until.is_none() {
        forget_lease(world);
    }
}

/// A record from where leases had no time: no command makes one.
fn forget_lease(world: &mut World<'_>) {
    let mut row = world.effect(KEY).expect("an effect").clone();
    row.lease_until = None;
    let stream = world.pinned.tenant.effect(KEY);
    world.rows.get_mut(&stream).expect("an effect").row = Row::Effect(row);
}

fn outcome(case: &Json) -> String {
    let mut world = World::empty(&Real);
    let now = moment(case, "now");
    world.now = now;
    if case["record"].is_object() {
        start(&mut world, &case["record"]);
    }
    world.now = now;
    let before = world.effect(KEY).map(|row| row.state);
    let request = &case["request"];
    let Some(by) = action(text(request, "action_id")) else { return "invalid".to_owned() };
    let command = Command::Reserve(Reserve {
        key: text(request, "effect_key").to_owned(),
        action: by,
        lease: seconds(&request["lease_seconds"]),
    });
    match world.run(command) {
        Reply::Attempt(held) => {
            format!("reserved {} until {} again {}", held.fence, held.lease_until, before.is_some())
        }
        Reply::Refused(refusal) => {
            let after = world.effect(KEY).map(|row| row.state);
            let moved = after.filter(|_| after != before).map_or("-", EffectState::as_str);
            match word(refusal.code) {
                "invalid" => "invalid".to_owned(),
                word => format!("{word} moves {moved}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

fn expected(case: &Json) -> String {
    let expect = &case["expect"];
    match text(expect, "outcome") {
        "reserved" => {
            let until = moment(expect, "lease_expires_at");
            format!("reserved {} until {until} again {}", expect["attempt"], expect["renews_existing_record"])
        }
        "refused" => {
            format!("{} moves {}", refusal(expect), expect["record_moves_to"].as_str().unwrap_or("-"))
        }
        _ => refusal(expect),
    }
}

#[test]
fn the_reservation_cases_of_the_reference() {
    let (passed, adapted) = run("reservation", ADAPTED, outcome, expected);
    assert_eq!((passed, adapted), (18, 1));
}
