//! What a remote calls what it did proves one operation.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Finding, Outcome, Reconcile, RemoteReceipt, Settle};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;

use crate::calls::settle;
use crate::world::World;
use crate::{pay_world, refused, send};

fn receipt(id: &str) -> Option<RemoteReceipt> {
    Some(RemoteReceipt { receipt_id: Some(id.to_owned()), ..RemoteReceipt::NONE })
}

/// An attempt at sending this, under way.
fn attempt(world: &mut World<'_>, tool: &str, id: u32) -> Attempt {
    let contract = world.declare(tool);
    let order = world.order(send(id), contract, &format!("key-{id}"));
    let action = world.accepted(&order);
    world.begun(action).0
}

fn committed(world: &mut World<'_>, attempt: &Attempt, remote: Option<RemoteReceipt>) -> Reply {
    world.run(Command::Settle(Settle {
        remote: remote.map(Box::new),
        ..settle(attempt.into(), Outcome::Committed)
    }))
}

const SEND: &str = r#"{"name":"send"}"#;

#[test]
fn p03_one_receipt_of_a_remote_proves_one_operation() {
    let mut world = pay_world();
    let (one, two) = (attempt(&mut world, SEND, 1), attempt(&mut world, SEND, 2));
    committed(&mut world, &one, receipt("re_1"));
    let effect = world.effect("send:1").expect("an effect");
    assert_eq!(effect.private.remote, receipt("re_1"));
    // The remote answers for something else: nobody knows about this one.
    let reply = committed(&mut world, &two, receipt("re_1"));
    assert!(matches!(reply, Reply::Settled { state: EffectState::Ambiguous, .. }), "{reply:?}");
    let effect = world.effect("send:2").expect("an effect");
    assert_eq!(effect.code.as_deref(), Some("remote_receipt_reused"));
    assert_eq!(effect.remote, [None; 2], "it proves nothing");
    let state = &world.action(two.action).state;
    assert!(matches!(state, ActionState::Ended { result: Answer::Ambiguous, .. }), "{state:?}");
    let found = |remote| Reconcile {
        effect: two.effect,
        fence: 1,
        finding: Finding::Committed(None),
        evidence: None,
        remote,
        settle: Span::ZERO,
    };
    let again = refused(world.run(Command::Reconcile(found(receipt("re_1")))));
    assert_eq!(again.code, Code::RemoteReceiptReused);
    world.run(Command::Reconcile(found(receipt("re_2"))));
    assert_eq!(world.effect("send:2").expect("an effect").state, EffectState::Committed);
    world.check();
}

#[test]
fn an_attempt_whose_receipt_proves_another_operation_is_not_made_again_by_itself() {
    for tool in [
        r#"{"name":"send","recovery":"same_key","key_ttl":"1h"}"#,
        r#"{"name":"send","recovery":"ask","settle":"2m"}"#,
    ] {
        let mut world = pay_world();
        let (one, two) = (attempt(&mut world, tool, 1), attempt(&mut world, tool, 2));
        committed(&mut world, &one, receipt("re_1"));
        committed(&mut world, &two, receipt("re_1"));
        let state = &world.action(two.action).state;
        let looks = Some(Code::RemoteReceiptReused);
        assert!(
            matches!(state, ActionState::Ended { result: Answer::Ambiguous, code, .. } if *code == looks),
            "{tool}: {state:?}"
        );
        world.check();
    }
}

#[test]
fn a_receipt_counts_for_its_tool_and_a_request_is_no_receipt() {
    let mut world = pay_world();
    let one = attempt(&mut world, SEND, 1);
    committed(&mut world, &one, receipt("42"));
    let two = attempt(&mut world, SEND, 2);
    let request = RemoteReceipt { request_id: Some("42".to_owned()), ..RemoteReceipt::NONE };
    committed(&mut world, &two, Some(request.clone()));
    assert_eq!(world.effect("send:2").expect("an effect").state, EffectState::Committed);
    let three = attempt(&mut world, SEND, 3);
    committed(&mut world, &three, Some(request));
    assert_eq!(world.effect("send:3").expect("an effect").state, EffectState::Ambiguous);
    let contract = world.declare(r#"{"name":"read"}"#);
    let order = world.order(crate::call("read", "{}"), contract, "key-read");
    let action = world.accepted(&order);
    let (other, _) = world.begun(action);
    let reply = committed(&mut world, &other, receipt("42"));
    assert!(matches!(reply, Reply::Settled { state: EffectState::Committed, .. }), "another tool: {reply:?}");
    world.check();
}

#[test]
fn an_attempt_made_again_may_be_answered_with_the_receipt_of_the_first() {
    let mut world = pay_world();
    let first = attempt(&mut world, r#"{"name":"send","recovery":"same_key","key_ttl":"10m"}"#, 1);
    world.now = first.lease_until + Span::micros(1);
    world.run(Command::Lapse(first.effect));
    let (again, _) = world.begun(first.action);
    committed(&mut world, &again, receipt("re_1"));
    assert_eq!(world.effect("send:1").expect("an effect").state, EffectState::Committed);
    // The first one's word comes late, with the same receipt.
    committed(&mut world, &first, receipt("re_1"));
    assert_eq!(world.effect("send:1").expect("an effect").state, EffectState::Committed);
    world.check();
}

#[test]
fn p14_names_of_a_remote_have_limits() {
    let mut world = pay_world();
    let one = attempt(&mut world, SEND, 1);
    for wrong in ["", "a\nb", &"x".repeat(256)] {
        assert_eq!(refused(committed(&mut world, &one, receipt(wrong))).code, Code::OutOfBounds, "{wrong:?}");
    }
    world.check();
}
