//! The commands that the cadence control plane takes, by their shape.

use std::collections::BTreeMap;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_core::run::{Towards, Transition};
use serde_json::{Value as Vector, json};

use crate::executor::Real;
use crate::playing::{POLICY, Play, delivery};
use crate::vectors;
use crate::world::World;

const TAKEN: &str = "taken";
const INVALID: &str = "invalid-control-command";
/// There is no value that says so.
const NO_VALUE: &str = "no such value";

const MEMBERS: &str = "what is asked is a value with these members and no others: nothing is left to refuse";

/// Case, what comes out here, and the design's reason.
const ADAPTED: &[(usize, &str, &str)] = &[
    (1, TAKEN, "a design is a run as any other"),
    (4, NO_VALUE, MEMBERS),
    (6, TAKEN, "a route is what a contract says, not what is asked of a run"),
    (9, NO_VALUE, MEMBERS),
    (11, NO_VALUE, MEMBERS),
    (15, NO_VALUE, MEMBERS),
];

/// What a refusal says of the shape of what was asked.
fn shape(reply: &Reply) -> &'static str {
    match reply {
        Reply::Refused(refusal) => match refusal.code {
            Code::RequestIdInvalid | Code::ChangeInvalid | Code::OutOfBounds | Code::CommandForbidden => {
                INVALID
            }
            // Sound, but nothing for this moment or this program.
            Code::CommandElsewhere => TAKEN,
            other => panic!("{other} is no matter of shape"),
        },
        Reply::Run(_) => TAKEN,
        other => panic!("{other:?}"),
    }
}

fn asked(input: &Vector) -> &'static str {
    let Some(of) = input.as_object() else { return NO_VALUE };
    let name = of["command"].as_str().expect("a command");
    let mut may_have = vec!["command", "stage", "change"];
    may_have.extend((name != "status").then_some("operationId"));
    may_have.extend((name == "rebind").then_some("routeId"));
    may_have.extend((name == "resume").then_some(["deliveryRevision", "receiptHash"]).into_iter().flatten());
    if of.keys().any(|member| !may_have.contains(&member.as_str())) {
        return NO_VALUE;
    }
    let mut play = Play { world: World::new(&Real, POLICY), runs: BTreeMap::new() };
    if name == "start" {
        let command = play.command("startRun", input);
        return shape(&play.world.run(command));
    }
    let start = json!({"stage": "abel-implement", "change": of["change"], "operationId": "start"});
    assert_eq!(play.heard_of("startRun", &start), "R1 created 1");
    if name == "status" {
        return TAKEN;
    }
    let mut of = input.clone();
    of["runId"] = "R1".into();
    if ["resume", "rebind"].contains(&name) {
        let pause = json!({"runId": "R1", "to": "paused", "operationId": "pause"});
        assert_eq!(play.heard_of("transition", &pause), "R1 paused 2");
    }
    if of.get("receiptHash").is_some() || of.get("deliveryRevision").is_some() {
        // To bind a delivery is a request of its own.
        (of["gate"], of["revision"]) = ("gate-a".into(), of["deliveryRevision"].clone());
        let Some(delivery) = delivery(&of) else { return NO_VALUE };
        let bind = json!({"runId": "R1", "operationId": "bind"});
        let bind = Command::BindDeliveries(Box::new(play.binding(&bind, vec![delivery])));
        let bound = play.world.run(bind);
        if shape(&bound) != TAKEN {
            return shape(&bound);
        }
    }
    of["to"] = name.into();
    let Command::Transition(step) = play.command("transition", &of) else { panic!("a move") };
    let to = Towards::Command(name.to_owned());
    shape(&play.world.run(Command::Transition(Transition { to, ..step })))
}

#[test]
fn the_commands_of_the_reference() {
    let vectors = vectors();
    let cases = vectors["controlCommands"]["cases"].as_array().expect("cases");
    for (at, case) in cases.iter().enumerate() {
        let (found, told) = (asked(&case["input"]), case["expect"]["code"].as_str().unwrap_or(TAKEN));
        match ADAPTED.iter().find(|(number, ..)| *number == at) {
            Some((_, here, reason)) => {
                assert_eq!(found, *here, "case {at}: {reason}");
                assert_ne!(found, told, "case {at} needs no adapting");
            }
            None => assert_eq!(found, told, "case {at}: {case}"),
        }
    }
    println!("controlCommands: {} passed, {} adapted", cases.len() - ADAPTED.len(), ADAPTED.len());
    assert_eq!(cases.len(), 16);
}
