//! What is hashed: the whole action, the wish, and what is kept out of both.

use onceseal_core::action::ProposalError;
use onceseal_core::journal::sealed_text;

use crate::calls::call;
use crate::doing::{asked, attempt};
use crate::executor::Real;
use crate::world::World;
use crate::{pay, pay_world};

const CARD: &str = r#"
schema: onceseal.policy/v1
actions:
  charge:
    effect: "charge:{id}"
    redact: [card.number, pin]
    incidental: [note]
    decision: allow
  book:
    resource: "seat:{seat}"
    decision: allow
"#;

#[test]
fn ua_040_absent_null_and_empty_are_three_different_actions() {
    let world = pay_world();
    let texts = ["{}", r#"{"to":null}"#, r#"{"to":{}}"#, r#"{"to":[]}"#, r#"{"to":""}"#];
    let mut hashes: Vec<_> = texts
        .iter()
        .map(|text| world.prepare(&call("read", text)).expect("a proposal"))
        .flat_map(|proposal| [proposal.action_hash(), proposal.intent_hash()])
        .collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 2 * texts.len());
}

#[test]
fn order_of_members_and_way_of_writing_do_not_change_an_action() {
    let world = pay_world();
    let hash = |text: &str| world.prepare(&call("read", text)).expect("a proposal").action_hash();
    assert_eq!(
        hash(r#"{"a":{"x":1,"y":"é"},"b":-0}"#),
        hash("{ \"b\":0, \"a\":{\"y\":\"\\u00e9\",\"x\":1} }")
    );
    assert_ne!(hash(r#"{"a":[1,2]}"#), hash(r#"{"a":[2,1]}"#));
    assert_ne!(hash("{\"a\":\"\u{e9}\"}"), hash("{\"a\":\"e\u{301}\"}"), "nothing is normalised");
}

#[test]
fn the_wish_leaves_out_the_principal_and_what_is_incidental_and_nothing_else() {
    let world = World::new(&Real, CARD);
    let first = call("charge", r#"{"amount":1,"id":1,"note":"a"}"#);
    let of = |call| world.prepare(&call).expect("a proposal");
    let base = of(first.clone());
    let other_note =
        of(crate::Call { arguments: r#"{"amount":1,"id":1,"note":"b"}"#.into(), ..first.clone() });
    let other_agent = of(crate::Call { agent: "cron", user: Some("ada"), ..first.clone() });
    for same in [&other_note, &other_agent] {
        assert_eq!(same.intent_hash(), base.intent_hash());
        assert_ne!(same.action_hash(), base.action_hash());
    }
    let arguments = r#"{"amount":2,"id":1,"note":"a"}"#.to_owned();
    for other in [
        crate::Call { arguments, ..first.clone() },
        crate::Call { environment: "staging", ..first.clone() },
        crate::Call { resource: Some("payment:1"), ..first.clone() },
        crate::Call { name: "read", ..first },
    ] {
        assert_ne!(of(other).intent_hash(), base.intent_hash());
    }
}

#[test]
fn p13_a_redacted_value_is_hashed_blinded_and_stands_in_the_payload_alone() {
    let mut world = World::new(&Real, CARD);
    let secret =
        |number: &str| call("charge", &format!(r#"{{"card":{{"name":"A","number":"{number}"}},"id":1}}"#));
    let one = world.prepare(&secret("4111")).expect("a proposal");
    let two = world.prepare(&secret("4222")).expect("a proposal");
    assert_ne!(one.action_hash(), two.action_hash(), "the value still counts");
    assert_ne!(one.intent_hash(), two.intent_hash());
    assert!(one.text().contains("4111"), "the executor gets it");

    let started = attempt(world.call(secret("4111")));
    assert!(!started.effect.to_string().contains("4111"));
    let mut kept = 0;
    for recorded in &world.events {
        let mut open = String::new();
        recorded.event.body.write_data(&mut open);
        let sealed = sealed_text(&recorded.event).unwrap_or_default();
        assert!(!open.contains("4111") && !sealed.contains("4111"), "{open} {sealed}");
        kept += usize::from(recorded.payload.as_ref().is_some_and(|p| p.text.contains("4111")));
    }
    assert_eq!(kept, 1);
}

#[test]
fn p13_what_is_private_stands_in_sealed_parts_alone() {
    let mut world = pay_world();
    asked(world.call(crate::Call { agent: "secretive-agent", user: Some("secret-user"), ..pay(77_777) }));
    for recorded in &world.events {
        let mut open = String::new();
        recorded.event.body.write_data(&mut open);
        for private in ["secretive-agent", "secret-user", "77777", "pay:1"] {
            assert!(!open.contains(private), "{open}");
        }
    }
}

#[test]
fn a_resource_is_named_by_the_template_or_the_caller_and_not_by_both() {
    let world = World::new(&Real, CARD);
    let booked = world.prepare(&call("book", r#"{"seat":7}"#)).expect("a proposal");
    assert_eq!(booked.resource(), Some("seat:7"));
    let both = crate::Call { resource: Some("seat:8"), ..call("book", r#"{"seat":7}"#) };
    assert_eq!(world.prepare(&both).expect_err("twice"), ProposalError::ResourceTwice);
}

#[test]
fn p14_names_and_arguments_have_limits() {
    let world = pay_world();
    let ok = call("read", "{}");
    let long: &'static str = Box::leak("x".repeat(256).into_boxed_str());
    for (field, bad) in [
        ("name", crate::Call { name: "", ..ok.clone() }),
        ("name", crate::Call { name: long, ..ok.clone() }),
        ("agent", crate::Call { agent: "a\nb", ..ok.clone() }),
        ("user", crate::Call { user: Some(""), ..ok.clone() }),
        ("environment", crate::Call { environment: "", ..ok.clone() }),
        ("resource", crate::Call { resource: Some(""), ..ok.clone() }),
    ] {
        assert_eq!(world.prepare(&bad).expect_err("a limit"), ProposalError::Text { field });
    }
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    for text in
        [&format!(r#"{{"a":{deep}}}"#), r#"{"a":1.5}"#, &format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000))]
    {
        let refused = world.prepare(&call("read", text)).expect_err("a limit");
        assert!(matches!(refused, ProposalError::Arguments(_)), "{refused}");
    }
}

#[test]
fn p13_errors_name_places_and_no_values() {
    let world = pay_world();
    let refused = world.prepare(&call("read", r#"{"account":{"iban":1.5}}"#)).expect_err("a fraction");
    let text = refused.to_string();
    assert!(!text.contains("1.5") && !text.contains("iban"), "{text}");
}
