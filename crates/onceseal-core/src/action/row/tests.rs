//! The whole state machine of an action, as a table.

use super::*;
use crate::action::event::{ActionSealed, Answered, Ended, Readied, Started, Waiting};
use crate::approval::{Proof, Source};
use crate::hash::Hash;
use crate::journal::{Nothing, Refs};
use crate::operation::event::{Cancelled, Delayed, Parked, PersonSaid, QueuedSealed, Retried};
use crate::policy::Verdict;

const RECEIPT: ReceiptId = ReceiptId([1; 16]);
const FIRST: ReceiptId = ReceiptId([2; 16]);
const APPROVAL: ApprovalId = ApprovalId([3; 16]);
const EFFECT: StreamId = StreamId { kind: StreamKind::Effect, name: [4; 16] };
const AT: Timestamp = Timestamp::MIN;

fn row(state: ActionState) -> ActionRow {
    ActionRow {
        state,
        decided: Decided { decision: Verdict::Allow, policy: Hash([0; 32]), reason: "decision".into() },
        held: None,
        approval: None,
        operation: Some(Operation {
            contract: Hash([5; 32]),
            effect: EFFECT,
            scope: Hash([6; 32]),
            until: AT,
        }),
        created_at: AT,
        updated_at: AT,
        private: ActionPrivate { intent: None, proposal: None },
    }
}

fn states() -> Vec<ActionState> {
    let mut states = vec![
        ActionState::Ready { until: AT },
        ActionState::Waiting { approval: APPROVAL },
        ActionState::Running { fence: 1 },
        ActionState::Queued { due: AT, code: None },
        ActionState::Parked { code: Code::NotExecuted },
    ];
    let ended = |&result: &Answer| ActionState::Ended { result, code: None, receipt: FIRST };
    states.extend(Answer::ALL.iter().map(ended));
    states.push(ActionState::Answered { result: Answer::Committed, receipt: RECEIPT, first: FIRST });
    states
}

fn events() -> Vec<Event> {
    let decided = || Some(row(ActionState::Ready { until: AT }).decided);
    let sealed = || ActionSealed { proposal: None };
    let mut bodies = vec![
        Body::ActionStarted(Started { decided: decided(), effect: EFFECT, fence: 2 }, sealed()),
        Body::ActionWaiting(Waiting { decided: decided() }, sealed()),
        Body::ActionReady(Readied { decided: decided(), until: AT }, sealed()),
    ];
    for &result in Answer::ALL {
        bodies.push(Body::ActionEnded(Ended { code: None, decided: decided(), result }, sealed()));
    }
    for &result in Answer::ALL {
        bodies.push(Body::ActionAnswered(Answered { result, source: Source::Person }, Nothing {}));
    }
    let (code, proof) = (Code::NotExecuted, Proof::Host);
    let person = || PersonSaid { person: None, reason: None };
    let queued = Queued {
        contract: Hash([5; 32]),
        decided: decided(),
        due: AT,
        effect: EFFECT,
        scope: Hash([6; 32]),
        until: AT,
    };
    bodies.extend([
        Body::ActionQueued(queued, QueuedSealed { intent: None, proposal: None }),
        Body::ActionDelayed(Delayed { code, due: AT }, Nothing {}),
        Body::ActionParked(Parked { code }, Nothing {}),
        Body::ActionRetried(Retried { due: AT, proof, until: AT }, person()),
        Body::ActionCancelled(Cancelled { proof }, person()),
    ]);
    let refs = Refs { action: None, approval: Some(APPROVAL), receipt: Some(RECEIPT) };
    bodies.into_iter().map(|body| Event { refs: refs.clone(), body }).collect()
}

fn name(state: &ActionState) -> String {
    match state {
        ActionState::Ready { .. } => "ready".into(),
        ActionState::Waiting { .. } => "waiting".into(),
        ActionState::Running { fence } => format!("running({fence})"),
        ActionState::Queued { .. } => "queued".into(),
        ActionState::Parked { .. } => "parked".into(),
        ActionState::Ended { result, .. } => format!("ended({result})"),
        ActionState::Answered { result, first, .. } => {
            assert_eq!(*first, FIRST, "it names the receipt before");
            format!("answered({result})")
        }
    }
}

fn event_name(event: &Event) -> String {
    let kind = event.body.kind();
    match &event.body {
        Body::ActionEnded(data, _) => format!("{kind} {}", data.result),
        Body::ActionAnswered(data, _) => format!("{kind} {}", data.result),
        _ => kind.to_string(),
    }
}

#[test]
fn every_state_answers_every_event() {
    let mut table = String::new();
    for before in std::iter::once(None).chain(states().into_iter().map(Some)) {
        table += &before.as_ref().map_or_else(|| "none".into(), name);
        table.push('\n');
        for event in events() {
            let after = evolve(before.clone().map(row), AT, &event);
            let after = after.map_or_else(|_| "-".into(), |row| name(&row.state));
            table += &format!("    {:<26} {after}\n", event_name(&event));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_first_event_without_its_decision_is_refused() {
    let mut event = events().swap_remove(0);
    let Body::ActionStarted(data, _) = &mut event.body else { unreachable!("the first event") };
    data.decided = None;
    assert!(evolve(None, AT, &event).is_err());
    assert!(evolve(Some(row(ActionState::Ready { until: AT })), AT, &event).is_ok());
}

#[test]
fn a_terminal_answer_without_a_receipt_is_refused() {
    for state in states() {
        for mut event in events() {
            event.refs.receipt = None;
            if let Ok(row) = evolve(Some(row(state.clone())), AT, &event) {
                assert!(row.receipt().is_none(), "{}", event_name(&event));
            }
        }
    }
}
