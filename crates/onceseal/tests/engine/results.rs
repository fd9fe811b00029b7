//! What is kept of a result: what JSON keeps exactly, or what stands in for it.
//! A committed effect never becomes an error because of what was returned.

use onceseal::Failure;
use onceseal::core::effect::EffectState;
use onceseal::core::json::{self, Limits, Object, Value};

use crate::support::{World, never};

/// What the caller gets, and what an identical call gets afterwards.
async fn kept(world: &World, order: &str, value: Value) -> (Option<Value>, Option<Value>) {
    let first = world.pay(order, 5).execute(|_| async { Ok::<_, Failure>(value) });
    let first = first.await.expect("committed");
    assert_eq!(world.state(&format!("pay:{order}")), Some(EffectState::Committed));
    let again = world.pay(order, 5).replay().execute(never).await.expect("replayed");
    assert!(again.replayed && !first.replayed);
    (first.value, again.value)
}

fn read(text: &str) -> Value {
    json::read(text.as_bytes(), &Limits::DATA).expect("JSON")
}

#[tokio::test]
async fn a_result_is_kept_as_it_is() {
    for world in World::both().await {
        for (at, text) in [
            r#"{"id":"ch_1","lines":[1,2,{"n":null}],"ok":true}"#,
            // What programs measure has fractions.
            r#"[0.5,-1e-7,1e+21,9007199254740993.5]"#,
            // An identifier of 64 bits is kept as text, as remotes send it.
            r#""18446744073709551615""#,
            r#"{"é":"\u0001\u2028"}"#,
        ]
        .into_iter()
        .enumerate()
        {
            let value = read(text);
            let (first, again) = kept(&world, &format!("o{at}"), value.clone()).await;
            assert_eq!((first, again), (Some(value.clone()), Some(value)), "{text}");
        }
    }
}

#[tokio::test]
async fn nothing_is_kept_of_null_and_the_receipt_says_so() {
    for world in World::both().await {
        assert_eq!(kept(&world, "o", Value::Null).await, (None, None));
        let receipt = world.pay("o", 5).replay().execute(never).await.expect("replayed");
        let document = world.receipt(&receipt);
        assert_eq!(document.as_object().and_then(|o| o.get("value")), Some(&Value::Null));
    }
}

#[tokio::test]
async fn what_json_cannot_keep_exactly_is_named_not_rounded() {
    for world in World::both().await {
        let mut deep = Value::Null;
        for _ in 0..40 {
            deep = Value::List(vec![deep]);
        }
        let cases = [
            // 2^63 − 1 is no double: rounded it would be another identifier.
            (Value::Integer(i64::MAX), r#"{"bytes":19,"unstorable":"integer"}"#),
            (Value::Float(f64::NAN), r#"{"bytes":3,"unstorable":"number"}"#),
            (Value::from("a\0b"), r#"{"bytes":10,"unstorable":"text"}"#),
            (deep, r#"{"bytes":84,"unstorable":"list"}"#),
        ];
        for (at, (value, stand_in)) in cases.into_iter().enumerate() {
            let (first, again) = kept(&world, &format!("o{at}"), value.clone()).await;
            // The caller has what was returned, whatever of it could be kept.
            assert_eq!(format!("{first:?}"), format!("{:?}", Some(value)));
            assert_eq!(again, Some(read(stand_in)), "{stand_in}");
        }
    }
}

#[tokio::test]
async fn a_result_of_16_mib_is_named_too_large_and_the_effect_is_committed() {
    for world in World::both().await {
        let value = Value::from("x".repeat(16 << 20));
        let (first, again) = kept(&world, "o", value.clone()).await;
        assert!(first == Some(value), "the caller has it");
        assert_eq!(again, Some(read(r#"{"bytes":16777218,"unstorable":"too_large"}"#)));
    }
}

#[tokio::test]
async fn the_limit_of_64_kib_is_inclusive() {
    for world in World::both().await {
        let fits = Value::from("x".repeat((64 << 10) - 2));
        assert_eq!(kept(&world, "fits", fits.clone()).await, (Some(fits.clone()), Some(fits)));
        let (_, again) = kept(&world, "over", Value::from("x".repeat((64 << 10) - 1))).await;
        assert_eq!(again, Some(read(r#"{"bytes":65537,"unstorable":"too_large"}"#)));
    }
}

#[tokio::test]
async fn error_texts_and_codes_are_kept_within_their_bounds() {
    for world in World::both().await {
        let executor = |_| async {
            let code = Some(format!("bad code\n{}", "y".repeat(100)));
            Err::<(), _>(Failure::Unknown { code, message: format!("a\0b{}", "z".repeat(5_000)) })
        };
        let result = world.pay("o", 5).execute(executor).await;
        assert_eq!(result.expect_err("unknown").code(), "outcome_unknown");
        let row = world.control.effect("pay:o").expect("readable").expect("there");
        let error = row.private.error.expect("kept");
        assert_eq!((error.chars().count(), &error[..5]), (1_024, "a\u{fffd}b"));
        assert_eq!(row.code, Some(format!("bad_code_{}", "y".repeat(55))));
    }
}

#[tokio::test]
async fn arguments_with_fractions_need_the_entry_to_say_so() {
    for world in World::both().await {
        let mut arguments = Object::new();
        arguments.insert("price", Value::Float(0.5));
        let call = |name: &str| world.control.action(name).args(arguments.clone()).by(crate::support::bot());
        let receipt = call("measure").execute(|call| async move {
            Ok::<_, Failure>(call.args().get("price").cloned().unwrap_or(Value::Null))
        });
        assert_eq!(receipt.await.expect("committed").value, Some(Value::Float(0.5)));
        assert_eq!(call("read").execute(never).await.expect_err("refused").code(), "invalid_argument");
    }
}
