//! What a model is told, and what is kept of what remotes say.

use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::operations::{Operations, Package, Tool};
use onceseal::{Done, Performed};

use crate::support::{POLICY, World, bot};

fn contract(text: &str) -> Object {
    match json::read(text.as_bytes(), &Limits::DATA).expect("it reads") {
        Value::Object(object) => object,
        other => panic!("no contract: {other:?}"),
    }
}

fn read(text: &str) -> Value {
    json::read(text.as_bytes(), &Limits::DATA).expect("JSON")
}

/// A tool under this contract that returns what its argument `card` says as its
/// result and its receipt.
async fn echoing(world: &World, text: &str) -> Operations {
    let tool = Tool::function(&contract(text), |job| async move {
        let card = job.args().get("card").cloned().unwrap_or(Value::Null);
        let done = Done::from(card.clone());
        Performed::Ok(match card.as_text() {
            Some(text) => done.receipt(text),
            None => done,
        })
    });
    Operations::of(&world.control, [tool.expect("a contract")]).await.expect("declared")
}

async fn told(operations: &Operations, order: &str, card: Value) -> Package {
    let dispatch = operations.dispatch("pay").arg("order", order).arg("amount", Value::Integer(1));
    dispatch.arg("card", card).by(bot()).key(order).at_once().tell().await.expect("told")
}

#[tokio::test]
async fn a_result_that_is_no_object_holds_against_its_own_contract() {
    for (n, (output, returned)) in [
        (r#"{"type":"array"}"#, "[1,2]"),
        (r#"{"type":"null"}"#, "null"),
        (r#"{"type":"integer"}"#, "7"),
        (r#"{"type":"object","required":["a"]}"#, r#"{"a":1}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::memory(POLICY).await;
        let text = format!(r#"{{"name":"pay","output":{output},"output_bytes":7}}"#);
        let operations = echoing(&world, &text).await;
        let package = told(&operations, &format!("o{n}"), read(returned)).await;
        assert_eq!((package.code(), package.problems()), (None, Vec::new()), "{returned}");
        let fails = told(&operations, &format!("p{n}"), read(r#""another""#)).await;
        assert_eq!(fails.code().map(|code| code.as_str()), Some("OUTPUT_CONTRACT_VIOLATION"), "{returned}");
    }
}

#[tokio::test]
async fn p13_a_receipt_with_a_secret_in_it_proves_nothing_and_two_of_them_are_not_one() {
    let world = World::memory(POLICY).await;
    let text = r#"{"name":"pay","output":{"type":"string","pattern":"^4000"},"output_equals":{}}"#;
    let operations = echoing(&world, text).await;
    for (order, card) in [("a", "4000111122223333"), ("b", "4000111122224444")] {
        let package = told(&operations, order, card.into()).await;
        assert_eq!((package.code(), package.problems()), (None, Vec::new()), "{order}");
        let document = json::canonical(package.document());
        assert!(!document.contains(card) && document.contains("[redacted]"), "{document}");
        let effect = world.control.effect(&format!("pay:{order}")).expect("readable").expect("there");
        assert_eq!(effect.private.remote, None);
    }
}
