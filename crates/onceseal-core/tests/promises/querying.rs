//! Asking what became of an operation.

use onceseal_core::action::Answer;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::hash::Hash;
use onceseal_core::operation::{CallIdentity, Query, Revisions, Scope};
use onceseal_core::reply::{OperationNow, Standing};

use crate::operating::{Order, model_call, operation};
use crate::world::World;
use crate::{pay_world, refused, send};

/// A world with a dispatched operation, its order, and the query for it.
fn dispatched() -> (World<'static>, Order, OperationNow, Query) {
    let mut world = pay_world();
    let contract = world.declare(r#"{"name":"send"}"#);
    let order = world.order(send(1), contract, "key-1");
    let now = operation(world.dispatch(&order));
    let scope = Scope { tenant: "default", subject: "agent:bot", tool: "send", key: "key-1" };
    let revisions = Revisions { input: "v1", output: "v1", effect: "v1" };
    let query = Query {
        subject: "agent:bot".to_owned(),
        tool: "send".to_owned(),
        call: order.by.status_query(&now.status_ref),
        status_ref: now.status_ref.clone(),
        request: scope.request(r#"{"id":1}"#, revisions),
        expected: scope.request(r#"{"id":1}"#, revisions),
    };
    (world, order, now, query)
}

fn ask(world: &mut World<'_>, query: &Query) -> onceseal_core::reply::Reply {
    world.run(Command::Query(Box::new(query.clone())))
}

#[test]
fn a_query_tells_where_it_stands_and_may_be_repeated() {
    let (mut world, _, first, query) = dispatched();
    for _ in 0..2 {
        let now = operation(ask(&mut world, &query));
        assert_eq!((now.action, now.status_ref), (first.action, first.status_ref.clone()));
        assert!(matches!(now.standing, Standing::Queued { .. }));
    }
    let (attempt, _) = world.begun(first.action);
    assert!(matches!(operation(ask(&mut world, &query)).standing, Standing::Running { .. }));
    world.settle(&attempt, Outcome::Ambiguous);
    assert_eq!(operation(ask(&mut world, &query)).standing, Standing::Unknown);
    world.check();
}

#[test]
fn a_query_never_carries_anything_out() {
    let (mut world, _, first, query) = dispatched();
    ask(&mut world, &query);
    let effect = world.effect("send:1").expect("an effect");
    assert_eq!((effect.fence, effect.holder), (0, first.action));
}

#[test]
fn the_call_that_dispatched_cannot_ask_and_the_one_that_asks_cannot_dispatch() {
    let (mut world, order, _, query) = dispatched();
    let same = Query { call: order.by.clone(), ..query.clone() };
    assert_eq!(refused(ask(&mut world, &same)).code, Code::CallIdConflict);
    ask(&mut world, &query);
    let by = query.call.clone();
    assert_eq!(refused(world.dispatch(&Order { by, ..order })).code, Code::CallIdConflict);
    world.check();
}

#[test]
fn p13_a_reference_of_somebody_else_is_as_unknown_as_one_that_is_not_there() {
    let (mut world, _, _, query) = dispatched();
    let before = world.events.len();
    for query in [
        Query { subject: "eve".to_owned(), ..query.clone() },
        Query { status_ref: format!("status_{}", "0".repeat(32)), ..query.clone() },
        Query { status_ref: "no reference".to_owned(), ..query.clone() },
        Query { status_ref: "x".repeat(10_000), ..query },
    ] {
        let refusal = refused(ask(&mut world, &query));
        assert_eq!((refusal.code, refusal.action), (Code::OperationUnknown, None));
    }
    assert_eq!(world.events.len(), before, "and nothing is written");
}

#[test]
fn a_query_must_ask_for_what_was_dispatched() {
    let (mut world, _, _, query) = dispatched();
    let call = |change: fn(&mut CallIdentity)| {
        let mut call = model_call("another", "key-1");
        change(&mut call);
        call
    };
    let others = [
        Query { expected: Hash([0; 32]), call: call(|call| call.call_id = "c".to_owned()), ..query.clone() },
        Query { request: Hash([0; 32]), call: call(|call| call.call_id = "a".to_owned()), ..query.clone() },
        Query { tool: "pay".to_owned(), call: call(|call| call.call_id = "b".to_owned()), ..query.clone() },
        Query { call: call(|call| call.idempotency_key = Some("key-2".to_owned())), ..query.clone() },
        Query {
            call: call(|call| {
                call.provider = "anthropic".to_owned();
                call.api_family = "messages".to_owned();
                call.adapter_revision = "anthropic-messages-v1".to_owned();
            }),
            ..query.clone()
        },
    ];
    for other in others {
        assert_eq!(refused(ask(&mut world, &other)).code, Code::StatusConflict, "{other:?}");
    }
    let none = Query { call: call(|call| call.idempotency_key = None), ..query };
    assert_eq!(refused(ask(&mut world, &none)).code, Code::IdempotencyKeyRequired);
    world.check();
}

#[test]
fn what_is_finished_is_told_with_its_result_and_receipt() {
    let (mut world, _, first, query) = dispatched();
    let (attempt, _) = world.begun(first.action);
    world.settle(&attempt, Outcome::Committed);
    let Standing::Ended { result, receipt, .. } = operation(ask(&mut world, &query)).standing else {
        panic!("it is finished")
    };
    assert_eq!((result, Some(receipt)), (Answer::Committed, world.action(first.action).receipt()));
    world.check();
}

/// Against Python's hashlib and base64.
#[test]
fn a_provider_key_is_the_base32_of_the_hash_of_tenant_key_and_generation() {
    let (mut world, _, first, _) = dispatched();
    let (_, job) = world.begun(first.action);
    assert_eq!(job.provider_key, "osl_jaljabv2ihbidodxe3c36tcv2kadiukbbokssob763lwtf2wlomq");
}
