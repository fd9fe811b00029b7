//! `execute_trace`: what is recorded when an action runs.
//!
//! The reference writes one event after another; here one command commits all
//! that belongs together. So the events of a command are read as these of the
//! reference, in its order:
//!
//! | here | there |
//! |---|---|
//! | an action's first event | ACTION_PROPOSED, POLICY_EVALUATED (not if a template has no value) |
//! | `approval.requested` | APPROVAL_REQUESTED |
//! | `approval.consumed` | APPROVAL_CONSUMED |
//! | `effect.acquired` of a key of the policy | EFFECT_RESERVED |
//! | `action.started` | EXECUTION_STARTED |
//! | `action.ended` committed, failed, ambiguous | EXECUTION_COMMITTED, _FAILED, _AMBIGUOUS |
//! | `action.ended` denied | ACTION_DENIED; before it APPROVAL_DENIED if a person did |
//! | `action.ended` blocked by the effect | EFFECT_RESERVATION_REFUSED |
//! | `action.ended` blocked by an approval | APPROVAL_INVALIDATED |
//! | `approval.expired` | APPROVAL_EXPIRED |
//! | `approval.answered`, `effect.settled`, `.lapsed`, `.resolved` | none: a state that is compared |
//! | the end of an action that waited, by another's command | none: its proposals end without a trace |
//!
//! `action.ended` is a receipt on both sides. How a language's exceptions
//! become an outcome is the work of an engine: the scripts settle with it.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Recorded, Row};
use onceseal_core::stream::StreamKind;
use serde_json::Value as Json;

use crate::scripts::{Stage, script};
use crate::world::World;
use crate::{run, text, word};

const OWN_WAIT: &str =
    "a recorded action goes on by its id: it is not proposed again, and a no ends it at once";
const LAPSE: &str =
    "whoever meets a lapse records it for the holder's action too; its late report answers it";
const ASK: &str = "nobody is asked about a key that would be refused";
const ESCAPED: &str = "templates escape";

/// Case and the design's reason; what comes out here is in the snapshot.
const ADAPTED: &[(&str, &str)] = &[
    ("ex-04", "a resolution answers for the action too, with a receipt of its own"),
    ("ex-16", "an approval expires once, and a repeated refusal is recorded once"),
    ("ex-18", ASK),
    ("ex-19", ASK),
    ("ex-23", LAPSE),
    ("ex-24", LAPSE),
    ("ex-25", LAPSE),
    ("ex-31", "identical proposals share one request"),
    ("pr-02", ESCAPED),
    ("pr-04", "a template without a value refuses the action, with a receipt"),
    ("pr-07", OWN_WAIT),
    ("pr-08", OWN_WAIT),
];

fn name(actions: &mut Vec<ActionId>, id: ActionId) -> String {
    let at = actions.iter().position(|known| *known == id).unwrap_or_else(|| {
        actions.push(id);
        actions.len() - 1
    });
    format!("#{}", at + 1)
}

/// Blocked by the effect: as the reference says it.
fn refused_effect(code: Code) -> Option<String> {
    match code {
        Code::Duplicate | Code::InProgress => Some(format!("duplicate {}", word(code))),
        Code::Ambiguous => Some("ambiguous".to_owned()),
        Code::EffectKeyConflict => Some("conflict".to_owned()),
        _ => None,
    }
}

fn ended(result: Answer, code: Option<Code>, reason: &str) -> Vec<(u8, String)> {
    match (result, code) {
        (Answer::Denied, Some(Code::ApprovalDenied)) => {
            vec![(8, "APPROVAL_DENIED".to_owned()), (9, "ACTION_DENIED approval_denied".to_owned())]
        }
        (Answer::Denied, _) => vec![(9, format!("ACTION_DENIED {reason}"))],
        (Answer::Blocked, Some(code)) => match refused_effect(code) {
            Some(why) => vec![(5, format!("EFFECT_RESERVATION_REFUSED {why}"))],
            None => vec![(9, format!("APPROVAL_INVALIDATED {}", word(code)))],
        },
        (result, _) => vec![(7, format!("EXECUTION_{}", result.as_str().to_uppercase()))],
    }
}

/// The reference's events for one recorded event, with their order in a command.
fn read(world: &World<'_>, recorded: &Recorded) -> Vec<(u8, String)> {
    let reason = match world.row(&recorded.stamp.stream) {
        Some(Row::Action(row)) => row.decided.reason.clone(),
        _ => String::new(),
    };
    match &recorded.event.body {
        Body::ActionStarted(..) => vec![(6, "EXECUTION_STARTED".to_owned())],
        Body::ActionEnded(data, _) => ended(data.result, data.code, &reason),
        Body::ActionAnswered(data, _) => vec![(7, format!("(answered {})", data.result))],
        Body::ApprovalRequested(..) => vec![(2, "APPROVAL_REQUESTED".to_owned())],
        Body::ApprovalExpired(..) => vec![(3, "APPROVAL_EXPIRED".to_owned())],
        Body::ApprovalConsumed(..) => vec![(4, "APPROVAL_CONSUMED".to_owned())],
        Body::EffectAcquired(data, _) => vec![(5, format!("EFFECT_RESERVED {}", data.fence))],
        Body::EffectLate(data, _) => vec![(7, format!("(late {})", data.outcome))],
        _ => vec![],
    }
}

/// Whose event it is, for the events that the reference gives to an action.
fn whose(recorded: &Recorded) -> Option<ActionId> {
    match recorded.stamp.stream.kind {
        StreamKind::Action => Some(ActionId(recorded.stamp.stream.name)),
        _ => recorded.event.refs.action,
    }
}

/// One step as it comes out here.
fn step(stage: &mut Stage, from: usize) -> String {
    let mut out = Vec::new();
    let mut receipts = Vec::new();
    let recorded = stage.world.events[from..].to_vec();
    for command in recorded.chunk_by(|a, b| a.stamp.command == b.stamp.command) {
        let mut lines = Vec::new();
        let caller =
            command.iter().filter(|r| r.stamp.stream.kind == StreamKind::Action).find(|r| !waited(stage, r));
        let caller = caller.map(|r| ActionId(r.stamp.stream.name));
        for r in command {
            let own_key = matches!(&r.event.body, Body::EffectAcquired(_, sealed)
                if sealed.key.as_ref().is_some_and(|key| key.starts_with("act:")));
            if own_key || (waited(stage, r) && caller.is_some_and(|caller| whose(r) != Some(caller))) {
                continue;
            }
            let Some(action) = whose(r).or(caller) else { continue };
            let label = name(&mut stage.actions, action);
            if r.stamp.stream.kind == StreamKind::Action && r.stamp.sequence == 1 {
                let Some(Row::Action(row)) = stage.world.row(&r.stamp.stream) else {
                    unreachable!("an action")
                };
                let decided = &row.decided;
                lines.push((0, format!("ACTION_PROPOSED {label}")));
                if !decided.reason.ends_with("_error") {
                    lines.push((
                        1,
                        format!("POLICY_EVALUATED {} {} {label}", decided.decision, decided.reason),
                    ));
                }
            }
            lines.extend(
                read(&stage.world, r).into_iter().map(|(rank, line)| (rank, format!("{line} {label}"))),
            );
            receipts.extend(receipt(&stage.world, r, &label));
        }
        lines.sort_by_key(|(rank, _)| *rank);
        out.extend(lines.into_iter().map(|(_, line)| line));
    }
    out.extend(receipts);
    out.extend(effects(stage));
    out.join("\n")
}

/// Whether this is the end of an action that only waited.
fn waited(stage: &Stage, recorded: &Recorded) -> bool {
    matches!(recorded.event.body, Body::ActionEnded(..)) && recorded.stamp.sequence > 1 && {
        let row = stage.world.row(&recorded.stamp.stream);
        matches!(row, Some(Row::Action(row)) if row.held.is_none())
    }
}

fn receipt(world: &World<'_>, recorded: &Recorded, label: &str) -> Option<String> {
    let Body::ActionEnded(data, _) = &recorded.event.body else { return None };
    let Some(Row::Action(row)) = world.row(&recorded.stamp.stream) else { unreachable!("an action") };
    assert!(matches!(row.state, ActionState::Ended { .. } | ActionState::Answered { .. }));
    let decided = &row.decided;
    let attempt = row.held.map_or(String::new(), |(_, fence)| format!(" attempt {fence}"));
    let approval = if row.approval.is_some() { " under an approval" } else { "" };
    let decision = format!("{} {}", decided.decision, decided.reason);
    Some(format!("receipt {label} {decision}: {}{attempt}{approval}", data.result))
}

fn effects(stage: &mut Stage) -> Vec<String> {
    let mut effects: Vec<_> = stage
        .world
        .rows
        .values()
        .filter_map(|stored| match &stored.row {
            Row::Effect(row) => Some((row.private.key.clone()?, row.state, row.holder, row.fence)),
            _ => None,
        })
        .filter(|(key, ..)| !key.starts_with("act:"))
        .collect();
    effects.sort_by(|a, b| a.0.cmp(&b.0));
    let line = |(key, state, holder, fence)| {
        format!("effect {key} {state} {fence} {}", name(&mut stage.actions, holder))
    };
    effects.into_iter().map(line).collect()
}

fn outcome(case: &Json) -> String {
    let mut stage = Stage::new();
    let mut steps = Vec::new();
    for act in script(text(case, "id")) {
        let from = stage.world.events.len();
        act(&mut stage);
        steps.push(step(&mut stage, from));
    }
    stage.world.check();
    steps.join("\n--\n")
}

fn label(json: &Json, member: &str) -> String {
    text(json, member).trim_start_matches("<act").trim_end_matches('>').to_owned()
}

fn their_event(event: &Json) -> String {
    let data = &event["data"];
    let word = |member: &str| data[member].as_str().map_or(String::new(), |word| format!(" {word}"));
    let more = match text(event, "type") {
        "POLICY_EVALUATED" => word("decision") + &word("reason"),
        "EFFECT_RESERVED" => format!(" {}", data["attempt"]),
        "EFFECT_RESERVATION_REFUSED" => word("reason") + &word("state"),
        "ACTION_DENIED" | "APPROVAL_INVALIDATED" => word("reason"),
        _ => String::new(),
    };
    format!("{}{more} {}", text(event, "type"), label(event, "action_id"))
}

fn their_receipt(receipt: &Json) -> String {
    let mut decision = format!("{} {}", text(receipt, "decision"), text(receipt, "decision_reason"));
    let result = text(receipt, "result");
    let ran = matches!(result, "committed" | "failed" | "ambiguous");
    let attempt = if ran { format!(" attempt {}", receipt["attempt"]) } else { String::new() };
    let approval = if receipt["approval_id"].is_null() { "" } else { " under an approval" };
    decision += &format!(": {result}{attempt}{approval}");
    format!("receipt {} {decision}", label(receipt, "action_id"))
}

fn expected(case: &Json) -> String {
    let empty = Vec::new();
    let list = |step: &Json, member: &str| step[member].as_array().unwrap_or(&empty).clone();
    let mut steps = Vec::new();
    for step in list(case, "steps") {
        let mut out: Vec<_> = list(&step, "events").iter().map(their_event).collect();
        out.extend(list(&step, "receipts").iter().map(their_receipt));
        let mut effects: Vec<_> = list(&step, "effects")
            .iter()
            .map(|effect| {
                let (key, state) = (text(effect, "effect_key"), text(effect, "state"));
                format!("effect {key} {state} {} {}", effect["attempt"], label(effect, "action_id"))
            })
            .collect();
        effects.sort();
        out.extend(effects);
        steps.push(out.join("\n"));
    }
    steps.join("\n--\n")
}

#[test]
fn the_execute_trace_cases_of_the_reference() {
    let here: Vec<_> = crate::cases("execute_trace")
        .iter()
        .filter_map(|case| {
            let id = text(case, "id").to_owned();
            let (id, why) = ADAPTED.iter().find(|(adapted, _)| *adapted == id)?;
            Some((*id, outcome(case), *why))
        })
        .collect();
    let adapted: Vec<_> = here.iter().map(|(id, here, why)| (*id, &**here, *why)).collect();
    let mut snapshot = String::new();
    for (id, here, why) in &adapted {
        snapshot += &format!("{id}: {why}\n{here}\n\n");
    }
    insta::assert_snapshot!(snapshot);
    let (passed, adapted) = run("execute_trace", &adapted, outcome, expected);
    assert_eq!((passed, adapted), (22, 12));
}
