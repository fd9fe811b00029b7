//! Accepting an operation: once for each key, for whom it was approved.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};
use onceseal_core::hash::Hash;
use onceseal_core::operation::CallIdentity;
use onceseal_core::reply::{Question, Reply, Standing};
use onceseal_core::time::Span;

use crate::calls::{Call, call};
use crate::doing::asked;
use crate::operating::{Order, model_call, operation, standing};
use crate::world::World;
use crate::{pay, pay_world, refused, send};

const SEND: &str = r#"{"name":"send"}"#;
const PAY: &str = r#"{"name":"pay"}"#;
const READ: &str = r#"{"name":"read"}"#;

fn sending() -> (World<'static>, Order) {
    let mut world = pay_world();
    let contract = world.declare(SEND);
    let order = world.order(send(1), contract, "key-1");
    (world, order)
}

#[test]
fn p07_the_intent_its_call_and_its_place_in_the_outbox_are_stored_at_once() {
    let (mut world, order) = sending();
    let before = world.events.len();
    let now = operation(world.dispatch(&order));
    let commands: Vec<_> = world.events[before..].iter().map(|event| event.stamp.command).collect();
    assert_eq!(commands.len(), 3, "the call, the effect and the action");
    assert!(commands.iter().all(|command| *command == commands[0]), "in one command");
    assert!(!now.repeated);
    let effect = world.effect("send:1").expect("its effect");
    assert_eq!((effect.state, effect.fence, effect.holder), (EffectState::Queued, 0, now.action));
    world.check();
}

#[test]
fn ua_001_the_same_wish_is_the_same_operation_whatever_its_call_is_called() {
    let (mut world, order) = sending();
    let first = operation(world.dispatch(&order));
    let again = Order { by: model_call("another call", "key-1"), ..order.clone() };
    for order in [&order, &again] {
        let now = operation(world.dispatch(order));
        assert_eq!((now.action, &now.status_ref, now.repeated), (first.action, &first.status_ref, true));
    }
    let attempts = world.events.iter().filter(|event| event.event.body.kind().as_str() == "effect.queued");
    assert_eq!(attempts.count(), 1);
    world.check();
}

#[test]
fn ua_017_another_wish_under_the_same_key_is_a_conflict() {
    let (mut world, order) = sending();
    world.accepted(&order);
    let other = Order { call: send(2), by: model_call("other", "key-1"), ..order.clone() };
    assert_eq!(refused(world.dispatch(&other)).code, Code::IdempotencyConflict);
    let elsewhere = CallIdentity {
        provider: "anthropic".to_owned(),
        api_family: "messages".to_owned(),
        adapter_revision: "anthropic-messages-v1".to_owned(),
        ..order.by.clone()
    };
    let other = Order { by: elsewhere, ..order.clone() };
    assert_eq!(refused(world.dispatch(&other)).code, Code::IdempotencyConflict, "another provider profile");
    world.check();
}

#[test]
fn another_environment_is_another_wish_and_an_agent_is_no_user() {
    let (mut world, order) = sending();
    world.accepted(&order);
    let staging = Call { environment: "staging", ..send(1) };
    let staging = Order { call: staging, by: model_call("other", "key-1"), ..order.clone() };
    assert_eq!(refused(world.dispatch(&staging)).code, Code::IdempotencyConflict);
    let user = Call { agent: "other", user: Some("bot"), ..send(1) };
    let user = Order { call: user, by: model_call("third", "key-1"), ..order };
    assert_eq!(
        refused(world.dispatch(&user)).code,
        Code::InProgress,
        "the effect is one, the operation is not"
    );
    world.check();
}

#[test]
fn p13_a_result_is_told_to_whoever_it_was_made_for() {
    let (mut world, order) = sending();
    let for_ann = |agent| Order { call: Call { agent, user: Some("ann"), ..send(1) }, ..order.clone() };
    let action = world.accepted(&for_ann("bot"));
    let (attempt, _) = world.begun(action);
    let result = Some("{}".to_owned());
    world.run(onceseal_core::command::Command::Settle(onceseal_core::effect::Settle {
        result,
        ..crate::calls::settle((&attempt).into(), Outcome::Committed)
    }));
    for (agent, told) in [("bot", true), ("eve", false)] {
        let order = Order { by: model_call(agent, "key-1"), ..for_ann(agent) };
        let Standing::Ended { stored, .. } = standing(world.dispatch(&order)) else { panic!("it is done") };
        assert_eq!(stored.is_some(), told, "{agent}");
    }
    world.check();
}

#[test]
fn the_same_wish_under_another_key_is_another_operation_unless_its_effect_is_named() {
    let (mut world, order) = sending();
    world.accepted(&order);
    let other = Order { by: model_call("other", "key-2"), ..order.clone() };
    let refusal = refused(world.dispatch(&other));
    assert_eq!(refusal.code, Code::InProgress, "the policy names the effect, whose key is taken");
    let contract = world.declare(READ);
    let read = |world: &World<'_>, key| world.order(call("read", "{}"), contract, key);
    let (one, two) = (read(&world, "a"), read(&world, "b"));
    assert_ne!(world.accepted(&one), world.accepted(&two));
    world.check();
}

#[test]
fn a_call_identity_counts_once_and_a_refused_dispatch_keeps_it() {
    let (mut world, order) = sending();
    let unknown = Order { call: Call { name: "nothing", ..send(1) }, ..order.clone() };
    assert_eq!(refused(world.dispatch(&unknown)).code, Code::ToolUnknown, "bound only by a known tool");
    let contract = world.declare(r#"{"name":"pay","business_rule":"in stock"}"#);
    let denied = Order { call: pay(1), contract, permitted: Some(false), ..order.clone() };
    assert_eq!(refused(world.dispatch(&denied)).code, Code::BusinessRuleViolation);
    let refusal = refused(world.dispatch(&Order { by: order.by.clone(), ..order.clone() }));
    assert_eq!(refusal.code, Code::CallIdConflict, "first use wins");
    world.accepted(&Order { by: model_call("call-2", "key-1"), ..order });
    world.check();
}

#[test]
fn malformed_calls_are_refused_and_nothing_is_recorded() {
    let (mut world, order) = sending();
    let before = world.events.len();
    let with = |change: fn(&mut CallIdentity)| {
        let mut by = order.by.clone();
        change(&mut by);
        Order { by, ..order.clone() }
    };
    for (order, code) in [
        (with(|by| by.call_id = " ".to_owned()), Code::CallInvalid),
        (with(|by| by.provider = "nobody".to_owned()), Code::CallInvalid),
        (with(|by| by.idempotency_key = Some(String::new())), Code::CallInvalid),
        (with(|by| by.idempotency_key = None), Code::IdempotencyKeyRequired),
        (Order { contract: Hash([1; 32]), ..order.clone() }, Code::ToolUnknown),
    ] {
        assert_eq!(refused(world.dispatch(&order)).code, code);
    }
    assert_eq!(world.events.len(), before);
}

#[test]
fn a_business_rule_is_asked_outside_and_the_question_leaves_no_trace() {
    let mut world = pay_world();
    let contract = world.declare(r#"{"name":"send","business_rule":"in stock"}"#);
    let order = world.order(send(1), contract, "key-1");
    let before = world.events.len();
    assert_eq!(world.dispatch(&order), Reply::Ask(Question::BusinessRule));
    assert_eq!(world.events.len(), before);
    let refusal = refused(world.dispatch(&Order { permitted: Some(false), ..order.clone() }));
    assert_eq!(refusal.code, Code::BusinessRuleViolation);
    assert!(refusal.receipt.is_some(), "a refusal has its receipt");
    let action = world.accepted(&Order { permitted: Some(true), ..order.clone() });
    let again = operation(world.dispatch(&order));
    assert_eq!(again.action, action, "what was accepted is not asked about again");
    world.check();
}

#[test]
fn p01_p02_an_approval_counts_for_one_contract_and_is_used_when_the_intent_is_stored() {
    let mut world = pay_world();
    let (contract, other) = (world.declare(PAY), world.declare(r#"{"name":"pay","lease":"1m"}"#));
    let order = world.order(pay(1), contract, "key-1");
    let (action, approval) = asked(world.dispatch(&order));
    world.answer(approval, "os:owner", Said::Yes);
    let elsewhere = Order { contract: other, approvals: vec![approval], ..order.clone() };
    let refusal = refused(world.dispatch(&elsewhere));
    assert_eq!((refusal.code, refusal.field), (Code::ApprovalMismatch, Some("contract")));
    let inline = refused(world.call(Call { approval: Some(approval), ..pay(1) }));
    assert_eq!((inline.code, inline.field), (Code::ApprovalMismatch, Some("contract")));
    assert_eq!(world.approval(approval).status, Status::Granted, "it is still there");
    assert_eq!(world.accepted(&order), action);
    assert_eq!(world.approval(approval).status, Status::Consumed);
    world.check();
}

#[test]
fn p01_an_approval_counts_for_one_idempotency_key_where_the_policy_names_no_effect() {
    let policy = "schema: onceseal.policy/v1\nactions: { pay: { decision: approve } }\n";
    let mut world = World::new(&crate::executor::Real, policy);
    let contract = world.declare(PAY);
    let (one, two) = (world.order(pay(1), contract, "key-1"), world.order(pay(1), contract, "key-2"));
    let (action, approval) = asked(world.dispatch(&one));
    world.answer(approval, "os:owner", Said::Yes);
    let refusal = refused(world.dispatch(&Order { approvals: vec![approval], ..two.clone() }));
    assert_eq!((refusal.code, refusal.field), (Code::ApprovalMismatch, Some("effect_key")));
    let (_, second) = asked(world.dispatch(&two));
    assert_ne!(second, approval, "each wish is asked for");
    assert_eq!(world.accepted(&Order { approvals: vec![approval], ..one }), action);
    world.check();
}

#[test]
fn several_approvals_may_be_given_and_the_smallest_that_counts_is_used() {
    let mut world = pay_world();
    let contract = world.declare(PAY);
    let ask = |world: &mut World<'_>, id: u32| {
        let order = world.order(pay(id), contract, &format!("key-{id}"));
        let (_, approval) = asked(world.dispatch(&order));
        world.answer(approval, "os:owner", Said::Yes);
        (order, approval)
    };
    let (_, other) = ask(&mut world, 1);
    let (order, own) = ask(&mut world, 2);
    let action = world.accepted(&Order { approvals: vec![own, other], ..order });
    assert_eq!(world.action(action).approval, Some(own));
    let third = world.order(pay(3), contract, "key-3");
    let refusal = refused(world.dispatch(&Order { approvals: vec![own, other], ..third }));
    assert_eq!((refusal.code, refusal.approval), (Code::ApprovalMismatch, Some(own.min(other))));
    world.check();
}

#[test]
fn an_approval_that_expired_before_the_intent_does_not_count_and_after_it_is_not_asked() {
    let mut world = pay_world();
    let contract = world.declare(PAY);
    let order = world.order(pay(1), contract, "key-1");
    let (_, approval) = asked(world.dispatch(&order));
    world.answer(approval, "os:owner", Said::Yes);
    let action = world.accepted(&order);
    world.now = world.now + Span::hours(1);
    world.begun(action);
    let other = call("pay", r#"{"amount":1,"id":2}"#);
    let order = world.order(other, contract, "key-2");
    let (_, approval) = asked(world.dispatch(&order));
    world.answer(approval, "os:owner", Said::Yes);
    world.now = world.now + Span::hours(1);
    let refusal = refused(world.dispatch(&Order { approvals: vec![approval], ..order }));
    assert_eq!(refusal.code, Code::ApprovalExpired);
    world.check();
}

#[test]
fn p08_what_the_policy_denies_is_neither_accepted_nor_carried_out() {
    let (mut world, order) = sending();
    let contract = world.declare(r#"{"name":"unlisted"}"#);
    let unlisted = Order { call: Call { name: "unlisted", ..send(1) }, contract, ..order.clone() };
    assert_eq!(refused(world.dispatch(&unlisted)).code, Code::PolicyDenied);
    let action = world.accepted(&Order { by: model_call("next", "key-1"), ..order });
    world.activate(
        "schema: onceseal.policy/v1\nactions:\n  send: { effect: \"send:{id}\", decision: deny }\n",
    );
    assert_eq!(refused(world.claim(action, true)).code, Code::PolicyDenied);
    assert_eq!(world.action(action).state, ActionState::Parked { code: Code::PolicyDenied });
    world.check();
}

#[test]
fn a_finished_operation_is_replayed_under_the_contract_it_was_accepted_under() {
    let (mut world, order) = sending();
    let action = world.accepted(&order);
    let (attempt, _) = world.begun(action);
    world.settle(&attempt, Outcome::Committed);
    let newer = world.declare(r#"{"name":"send","lease":"1m"}"#);
    for contract in [order.contract, newer] {
        let now = standing(world.dispatch(&Order { contract, ..order.clone() }));
        assert!(matches!(now, Standing::Ended { result: Answer::Committed, .. }), "{now:?}");
    }
    let changed = world.declare(r#"{"name":"send","revisions":{"effect":"v2"}}"#);
    let refusal =
        refused(world.dispatch(&Order { contract: changed, by: model_call("x", "key-1"), ..order }));
    assert_eq!(refusal.code, Code::IdempotencyConflict, "what it does is another thing");
    world.check();
}
