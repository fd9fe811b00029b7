//! A canary in a redacted argument, in what executors say, and in a panic: it
//! is where the approver and the executor look, and nowhere else. Section L.

use onceseal::core::effect::Finding;
use onceseal::core::json::{self, Object, Value};
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::render;
use onceseal::views::Filter;
use onceseal::{Call, Control, Error, Failure, Proposing};

use crate::support::{World, bot, code, needed, never, unheld};

const CANARY: &str = "4242-canary-4242";
/// A number is hidden as well.
const NUMBER: i64 = 987_654_321;

fn card() -> Object {
    let mut card = Object::new();
    card.insert("number", CANARY);
    card.insert("code", Value::Integer(NUMBER));
    card
}

fn call(world: &World, order: &str, amount: i64) -> Proposing {
    world.pay(order, amount).arg("card", card())
}

fn assert_hidden(what: &str, text: &str) {
    for secret in [CANARY, &NUMBER.to_string()] {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

/// Everything that can be printed of an error.
fn assert_error_hidden(what: &str, error: &Error) {
    assert_hidden(what, &format!("{error} {error:?} {}", error.code()));
}

/// Every document that the engine renders of a store, but what is revealed.
fn assert_store_hidden(control: &Control) {
    for (id, listed) in control.receipts(None, false, 100).expect("readable") {
        assert_hidden("listed receipt", &json::canonical(&listed));
        let document = control.receipt(id).expect("readable").expect("there");
        assert_hidden("receipt", &json::canonical(&document));
    }
    for kind in [StreamKind::Action, StreamKind::Approval, StreamKind::Effect] {
        for (stream, row) in control.list(kind, &Filter::default(), 100).expect("readable").items {
            assert_hidden("row", &format!("{row:?}"));
            if kind == StreamKind::Action {
                let id = onceseal::core::id::ActionId(stream.name);
                let shown = control.shown_arguments(id, false).expect("readable");
                assert_hidden("shown arguments", &json::canonical(&shown.into()));
            }
        }
    }
    let mut prior = std::collections::BTreeMap::new();
    for event in control.log(0, 1_000).expect("readable") {
        let stream = event.stamp.stream;
        let before = prior.remove(&stream).unwrap_or_else(|| control.store().tenant().genesis(&stream));
        let rendered = render::event(&event, before).expect("it decodes");
        assert_hidden("event", &json::canonical(&rendered));
        assert_hidden("event", &format!("{event:?}"));
        prior.insert(stream, event.hash);
    }
}

#[tokio::test]
async fn ua_154_what_an_executor_says_of_a_secret_is_written_down_without_it() {
    for world in World::both().await {
        let echo = |call: Call| async move {
            assert_hidden("the call's debug output", &format!("{call:?}"));
            let mut result = card();
            result.insert("said", format!("charged {CANARY}"));
            Ok::<_, Failure>(result)
        };
        let receipt = call(&world, "echo", 5).execute(echo).await.expect("committed");
        assert!(json::canonical(&receipt.value.expect("a value")).contains(CANARY), "the caller's own");
        let replayed = call(&world, "echo", 5).replay().execute(never).await.expect("replayed");
        assert_hidden("a replayed result", &format!("{replayed:?}"));

        let unknown = |_| async { Err::<(), _>(std::io::Error::other(format!("{CANARY} timed out"))) };
        let error = call(&world, "unknown", 5).execute(unknown).await.expect_err("unknown");
        assert_error_hidden("an unknown outcome", &error);
        assert!(error.to_string().contains("[redacted] timed out"), "{error}");

        let refused = |_| async {
            let (code, message) = (Some(CANARY.to_owned()), format!("{NUMBER} is no code"));
            Err::<(), _>(Failure::NotExecuted { code, message })
        };
        let error = call(&world, "refused", 5).execute(refused).await.expect_err("not executed");
        assert_error_hidden("a refusal of the executor", &error);

        let panicking = |_: Call| async {
            std::panic::resume_unwind(Box::new(format!("{CANARY} in a panic")));
            #[expect(unreachable_code, reason = "the type of the executor")]
            Ok::<_, Failure>(())
        };
        let task = tokio::spawn(call(&world, "panic", 5).execute(panicking));
        assert!(task.await.expect_err("the panic").is_panic());
        assert_eq!(code(unheld(call(&world, "panic", 5)).await), "ambiguous");

        let (_, approval) = needed(call(&world, "asked", 2_000).execute(never).await);
        world.answer(approval, "ann", onceseal::core::approval::Said::No).await.expect("counted");
        let error = call(&world, "asked", 2_000).execute(never).await.expect_err("denied");
        assert_error_hidden("a denial", &error);
        assert_store_hidden(&world.control);
    }
}

/// A fraction, where the policy takes them.
const FRACTIONS: &str = "
schema: onceseal.policy/v1
actions:
  measure: { floats: allow, redact: [reading], effect: 'measure:{order}', decision: allow }
";

#[tokio::test]
async fn p13_a_redacted_fraction_is_stored_nowhere_in_clear() {
    let secret = "1234.5678";
    let mut echoed = Object::new();
    echoed.insert("reading", Value::Float(1234.5678));
    echoed.insert(secret, Value::List(vec![Value::Float(1234.5678)]));
    for world in [World::memory(FRACTIONS).await, World::sqlite(FRACTIONS).await] {
        let measure =
            || world.control.action("measure").arg("order", "o").arg("reading", Value::Float(1234.5678));
        let result = echoed.clone();
        let receipt = measure().by(bot()).execute(|_| async { Ok::<_, Failure>(result) }).await;
        let document = json::canonical(&world.receipt(&receipt.expect("committed")));
        assert!(!document.contains(secret), "{document}");
        let replayed = measure().by(bot()).replay().execute(never).await.expect("replayed");
        assert!(!format!("{replayed:?}").contains(secret), "{replayed:?}");
    }
}

#[tokio::test]
async fn p13_an_error_that_quotes_what_was_sent_is_written_down_without_it() {
    let secret = "Zoë \"Zed\" 4242";
    let sent = json::canonical(&secret.into());
    let quoted = [
        format!("400 {{\"field\":{sent}}}"),
        format!("{:?}", std::io::Error::other(sent.clone())),
        r#"no such holder Zo\u00eb \"Zed\" 4242"#.to_owned(),
        "GET /holders/Zo%C3%AB%20%22Zed%22%204242 timed out".to_owned(),
        "POST name=Zo%c3%ab+%22Zed%22+4242 timed out".to_owned(),
    ];
    for world in World::both().await {
        for (at, text) in quoted.iter().enumerate() {
            let call = world.pay(&format!("o{at}"), 5).arg("card", secret);
            let lost = call.execute(|_| async { Err::<(), _>(Failure::unknown(text)) }).await;
            let error = lost.expect_err("unknown");
            let row = world.control.effect(&format!("pay:o{at}")).expect("readable").expect("there");
            for text in [error.to_string(), row.private.error.expect("a text")] {
                assert!(text.contains("[redacted]") && !text.contains("Zed"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn p13_the_approver_and_the_executor_see_what_nobody_else_does() {
    for world in World::both().await {
        let (action, approval) = needed(call(&world, "o", 2_000).execute(never).await);
        let revealed = world.control.shown_arguments(action, true).expect("readable");
        assert!(json::canonical(&revealed.into()).contains(CANARY));
        world.answer(approval, "ann", onceseal::core::approval::Said::Yes).await.expect("counted");
        let receipt = world.control.resume(action).execute(|call| async move {
            let card = call.args().get("card").cloned();
            assert_eq!(card, Some(card_value()));
            // Said again by whoever runs it later: hidden as well.
            Err::<(), _>(Failure::unknown(format!("lost with {CANARY}")))
        });
        assert_error_hidden("a resumed call", &receipt.await.expect_err("unknown"));
        assert_store_hidden(&world.control);
    }
}

#[tokio::test]
async fn p13_what_the_remote_says_of_a_secret_is_written_down_without_it() {
    for world in World::both().await {
        let lost = call(&world, "o", 5).execute(|_| async { Err::<(), _>(Failure::unknown("lost")) }).await;
        assert!(lost.is_err());
        let found = Finding::Committed(Some(json::canonical(&card_value())));
        let asked = async |_, _| Some((found, Some(format!("charge of {CANARY}"))));
        world.control.reconcile("pay:o", Span::seconds(1), asked).await.expect("recorded");
        assert_store_hidden(&world.control);
        let replayed = call(&world, "o", 5).replay().execute(never).await.expect("replayed");
        let value = replayed.value.expect("a result");
        assert_hidden("what was reconciled", &json::canonical(&value));
        assert_eq!(value.as_object().and_then(|card| card.get("number")), Some(&"[redacted]".into()));
    }
}

fn card_value() -> Value {
    card().into()
}

#[tokio::test]
async fn p13_a_receipt_that_withholds_an_argument_withholds_the_hashes_over_it() {
    for world in World::both().await {
        let receipt = call(&world, "o", 5).execute(|_| async { Ok::<_, Failure>(()) }).await;
        let document = world.receipt(&receipt.expect("committed"));
        let object = document.as_object().expect("an object");
        for withheld in ["action_hash", "intent_hash"] {
            assert_eq!(object.get(withheld), Some(&Value::Null), "{withheld}");
        }
        let events = object.get("events").and_then(Value::as_list).expect("events");
        for event in events {
            let event = event.as_object().expect("an object");
            assert_eq!((event.get("sealed"), event.get("salt")), (Some(&Value::Null), Some(&Value::Null)));
        }
        // Of an approval too.
        let (action, approval) = needed(call(&world, "p", 2_000).execute(never).await);
        world.answer(approval, "ann", onceseal::core::approval::Said::No).await.expect("counted");
        let row = world.control.action_row(action).expect("readable").expect("there");
        let document = world.control.receipt(row.receipt().expect("a receipt")).expect("readable");
        let document = document.expect("there");
        let asked = document.as_object().and_then(|o| o.get("approval")).and_then(Value::as_object);
        let asked = asked.expect("the approval");
        for withheld in ["action_hash", "binding"] {
            assert_eq!(asked.get(withheld), Some(&Value::Null), "{withheld}");
        }
        // Where nothing is withheld, nothing is.
        let receipt = world.pay("q", 5).execute(|_| async { Ok::<_, Failure>(()) }).await;
        let document = world.receipt(&receipt.expect("committed"));
        assert!(document.as_object().and_then(|o| o.get("action_hash")).and_then(Value::as_text).is_some());
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_taken_are_named_without_their_values() {
    for world in World::both().await {
        let mut arguments = Object::new();
        arguments.insert(CANARY, Value::Float(0.5));
        let call = world.control.action("pay").args(arguments).by(bot());
        assert_hidden("a call's debug output", &format!("{call:?}"));
        assert_error_hidden("a malformed call", &call.execute(never).await.expect_err("malformed"));
    }
}

#[tokio::test]
async fn a_command_and_what_it_causes_print_no_arguments() {
    use onceseal::core::action::{Action, Proposal, Reach, Run};
    use onceseal::core::command::Command;

    let world = World::memory(crate::support::POLICY).await;
    let mut arguments = Object::new();
    arguments.insert("order", "o");
    arguments.insert("amount", 5);
    arguments.insert("card", card());
    let (name, environment) = ("pay".to_owned(), "production".to_owned());
    let action = Action { name, arguments, principal: bot(), environment, resource: None };
    assert_hidden("an action", &format!("{action:?}"));
    let policy = world.control.policy().expect("one");
    let proposal = Proposal::prepare(world.control.store().tenant(), &policy, action).expect("prepared");
    let run =
        Run { proposal, action: None, approval: None, reach: Reach::Ready, lease: None, deadline: None };
    assert_hidden("a command", &format!("{:?}", Command::Run(Box::new(run))));
    call(&world, "o", 5).execute(|_| async { Ok::<_, Failure>(()) }).await.expect("committed");
    let action = world.control.log(0, 100).expect("readable").into_iter().find_map(|event| {
        let stream = event.stamp.stream;
        (stream.kind == StreamKind::Action).then_some(stream)
    });
    let payload = world.control.store().read(|snapshot| snapshot.payload(&action.expect("one"), 1));
    assert_hidden("a payload", &format!("{:?}", payload.expect("readable").expect("there")));
}

#[tokio::test]
async fn p13_the_arguments_of_an_action_that_no_entry_lists_are_shown_to_nobody() {
    for world in World::both().await {
        let typo = world.control.action("pya").arg("card", "4111111111111111").by(bot());
        assert_eq!(code(typo.execute(never).await), "policy_denied");
        let receipts = world.control.receipts(None, false, 10).expect("readable");
        let document = json::canonical(&receipts[0].1);
        assert!(document.contains("\"card\":\"[unlisted]\""), "{document}");
        assert!(!document.contains("4111"), "{document}");
    }
}
