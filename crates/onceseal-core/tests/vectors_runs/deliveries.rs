//! Deliveries of the cadence run store: what is bound at a gate of a run stays.

use std::collections::BTreeMap;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::RunId;
use onceseal_core::journal::Row;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use serde_json::Value as Vector;

use crate::executor::Real;
use crate::playing::{Adapted, POLICY, Play, delivery, expected};
use crate::vectors;
use crate::world::World;

/// What stands for a call that nobody can make.
const NO_VALUE: &str = "no such value";
const NEITHER: &str =
    "a revision is a whole number and a digest a digest: there is no value for anything else";
const WRITES: &str = "rules call nobody: a caller's own writes are the store's `with_transaction`, \
    which makes them after the bind, not on a replay, and undoes both together";
const ONE_RUN: &str = "what is bound together is one request about one run under one lease";
const PROOF: &str = "which revision of a proof it is, the digest of its record tells";

const ADAPTED: &[Adapted] = &[
    ("conflicts", 4, "R1 created 2, newest 1, 1 bound", PROOF),
    ("revisions may go down", 2, "delivery_revision_old", "revisions of a gate only grow"),
    ("after a terminal state", 2, "run_ended", "terminal is final: no event follows"),
    ("argument errors", 3, NO_VALUE, NEITHER),
    ("argument errors", 4, NO_VALUE, NEITHER),
    ("argument errors", 5, "R1 created 2, newest 1, 1 bound", PROOF),
    ("argument errors", 6, NO_VALUE, NEITHER),
    ("writer failure rolls everything back", 1, "nothing is asked", WRITES),
    ("multi-bind", 1, "R1 created 3, newest 1, 2 bound", WRITES),
    ("multi-bind is all or nothing", 2, "delivery-revision-conflict", WRITES),
    ("multi-bind replay calls the writer again", 1, "R1 created 2, newest 1, 1 bound", WRITES),
    ("multi-bind replay calls the writer again", 2, "R1 created 2, newest 1, 1 bound", WRITES),
    ("multi-bind argument errors", 1, "delivery-binding-empty", WRITES),
    ("multi-bind argument errors", 2, NO_VALUE, ONE_RUN),
    ("multi-bind argument errors", 3, NO_VALUE, ONE_RUN),
    ("multi-bind argument errors", 4, "R1 created 2, newest 1, 1 bound", WRITES),
    (
        "multi-bind argument errors",
        5,
        "request_id_conflict",
        "a request id is of one request: the step before was carried out under it",
    ),
];

/// The reference's name of a refusal; where it has none, ours.
fn named(code: Code) -> String {
    let name = match code {
        Code::DeliveryConflict => "delivery-revision-conflict",
        Code::DeliveriesEmpty => "delivery-binding-empty",
        Code::GateUnknown | Code::OutOfBounds => "invalid-delivery-binding",
        Code::RequestIdInvalid => "invalid-operation-id",
        Code::RunUnknown => "run-not-found",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// What is bound to a run.
fn bound(play: &Play<'_>, run: RunId) -> String {
    let rows =
        play.world.rows.values().filter(|stored| matches!(&stored.row, Row::Delivery(row) if row.run == run));
    let Some(Row::Run(row)) = play.world.row(&StreamId::run(run)) else { return String::new() };
    let newest = row.delivery_revision().map(|newest| format!(", newest {newest}")).unwrap_or_default();
    format!("{newest}, {} bound", rows.count())
}

fn said(play: &mut Play<'_>, command: Command) -> String {
    match play.world.run(command) {
        Reply::Refused(refusal) => named(refusal.code),
        Reply::Run(now) => {
            let run = now.answered.run;
            play.heard(Reply::Run(now)) + &bound(play, run)
        }
        other => panic!("{other:?}"),
    }
}

fn take(play: &mut Play<'_>, step: &Vector) -> String {
    let (call, first) = (step["call"].as_str().expect("a call"), &step["args"][0]);
    let inputs = match call {
        "bindDelivery" | "bindDeliveryAtomically" => std::slice::from_ref(first),
        "bindDeliveriesAtomically" => first.as_array().expect("inputs").as_slice(),
        "status" => {
            let run = play.run_of(first);
            return play.standing(run) + &bound(play, run);
        }
        _ => {
            let command = play.command(call, first);
            return said(play, command);
        }
    };
    if step["args"][1] == "<write-throws>" {
        return "nothing is asked".to_owned();
    }
    let of =
        inputs.first().cloned().unwrap_or_else(|| serde_json::json!({"runId": "R1", "operationId": "b1"}));
    if inputs.iter().any(|input| input["runId"] != of["runId"] || input.get("lease") != of.get("lease")) {
        return NO_VALUE.to_owned();
    }
    let Some(deliveries) = inputs.iter().map(delivery).collect() else { return NO_VALUE.to_owned() };
    let bind = play.binding(&of, deliveries);
    said(play, Command::BindDeliveries(Box::new(bind)))
}

/// What the reference says of a step.
fn told(step: &Vector) -> String {
    let expect = &step["expect"];
    let writes = expect["writerCalls"].as_u64().map(|calls| format!(", written {calls} times"));
    let ok = &expect["ok"];
    let bound = ok["bindings"].as_u64().map(|bound| format!(", {bound} bound")).unwrap_or_default();
    let newest = ok["deliveryRevision"].as_u64().map(|it| format!(", newest {it}")).unwrap_or_default();
    expected(step) + &newest + &bound + &writes.unwrap_or_default()
}

#[test]
fn the_deliveries_of_the_reference() {
    let vectors = vectors();
    let scenarios = vectors["deliveryBindings"]["scenarios"].as_array().expect("scenarios");
    let (mut passed, mut adapted) = (0, 0);
    for scenario in scenarios {
        let name = scenario["name"].as_str().expect("a name");
        let mut play = Play { world: World::new(&Real, POLICY), runs: BTreeMap::new() };
        for (at, step) in scenario["steps"].as_array().expect("steps").iter().enumerate() {
            let (found, told) = (take(&mut play, step), told(step));
            match ADAPTED.iter().find(|(of, number, ..)| (*of, *number) == (name, at)) {
                Some((.., here, reason)) => {
                    assert_eq!(found, *here, "{name}, step {at}: {reason}");
                    assert_ne!(found, told, "{name}, step {at} needs no adapting");
                    adapted += 1;
                }
                None => {
                    assert_eq!(found, told, "{name}, step {at}: {step}");
                    passed += 1;
                }
            }
        }
        play.world.check();
    }
    println!("deliveryBindings: {} scenarios, {passed} steps passed, {adapted} adapted", scenarios.len());
    assert_eq!((scenarios.len(), adapted), (11, ADAPTED.len()), "every adaptation is needed");
}
