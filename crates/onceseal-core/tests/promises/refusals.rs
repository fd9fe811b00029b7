//! What a refused caller learns, and what a refusal records.

use onceseal_core::action::Answer;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;

use crate::calls::{Call, call, settle};
use crate::doing::attempt;
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{pay, pay_world, refused, send};

const LEDGER: &str = r#"
schema: onceseal.policy/v1
actions:
  transfer: { effect: "transfer:{id}", incidental: [note], decision: allow }
  closed: { effect: "closed:{id}", decision: deny }
  room: { resource: "room:{room}", decision: allow }
"#;

fn transfer(amount: u32) -> Call {
    call("transfer", &format!(r#"{{"amount":{amount},"id":1}}"#))
}

fn committed(world: &mut World<'_>, call: Call) -> onceseal_core::reply::Attempt {
    let held = attempt(world.call(call));
    let mut report = settle((&held).into(), Outcome::Committed);
    report.result = Some(r#""done""#.into());
    world.run(Command::Settle(report));
    held
}

#[test]
fn a_duplicate_of_the_same_wish_and_principal_gets_result_and_receipt() {
    let mut world = World::new(&Real, LEDGER);
    let held = committed(&mut world, transfer(5));
    let Reply::Ended { receipt, stored, .. } = world.acquire(held.action, None) else { panic!() };
    let refusal = refused(world.call(transfer(5)));
    let effect = refusal.effect.expect("the effect");
    assert_eq!((refusal.code, effect.same_intent), (Code::Duplicate, Some(true)));
    assert_eq!((effect.receipt, effect.stored), (Some(receipt), stored));
    assert!(stored.is_some());
    let note = Call { arguments: r#"{"amount":5,"id":1,"note":"x"}"#.into(), ..transfer(5) };
    assert_eq!(refused(world.call(note)).effect.expect("the effect").same_intent, Some(true));
}

#[test]
fn p13_another_principal_learns_that_it_happened_and_nothing_else() {
    let mut world = World::new(&Real, LEDGER);
    committed(&mut world, transfer(5));
    for other in [Call { agent: "other", ..transfer(5) }, Call { user: Some("ada"), ..transfer(5) }] {
        let refusal = refused(world.call(other));
        let effect = refusal.effect.expect("the effect");
        assert_eq!((refusal.code, effect.same_intent), (Code::Duplicate, Some(true)));
        assert_eq!((effect.receipt, effect.stored), (None, None));
    }
}

#[test]
fn ua_017_another_wish_under_the_same_key_is_a_conflict() {
    let mut world = World::new(&Real, LEDGER);
    let held = attempt(world.call(transfer(5)));
    for outcome in [None, Some(Outcome::Committed)] {
        if let Some(outcome) = outcome {
            world.settle(&held, outcome);
        }
        let refusal = refused(world.call(transfer(6)));
        let effect = refusal.effect.expect("the effect");
        assert_eq!((refusal.code, effect.same_intent), (Code::EffectKeyConflict, Some(false)));
        assert_eq!((effect.receipt, effect.stored), (None, None));
        assert!(refusal.receipt.is_some(), "its own");
    }
    world.check();
}

#[test]
fn an_unknown_outcome_is_told_as_such_to_every_wish() {
    let mut world = World::new(&Real, LEDGER);
    let held = attempt(world.call(transfer(5)));
    world.settle(&held, Outcome::Ambiguous);
    for amount in [5, 6] {
        let refusal = refused(world.call(transfer(amount)));
        assert_eq!(refusal.code, Code::Ambiguous);
        assert_eq!(refusal.effect.expect("the effect").same_intent, Some(amount == 5));
    }
}

#[test]
fn a_refusal_repeated_within_a_minute_is_recorded_once() {
    let mut world = World::new(&Real, LEDGER);
    let first = refused(world.call(call("closed", r#"{"id":1}"#)));
    assert!(!first.repeated);
    let recorded = world.events.len();
    world.now = noon() + Span::seconds(60);
    let again = refused(world.call(call("closed", r#"{"id":1}"#)));
    assert_eq!((again.repeated, again.action, again.receipt), (true, first.action, first.receipt));
    assert_eq!(again.code, Code::PolicyDenied);
    assert_eq!(world.events.len(), recorded);
    let other = refused(world.call(call("closed", r#"{"id":2}"#)));
    assert!(!other.repeated, "another action");
    world.now = world.now + Span::micros(1);
    let later = refused(world.call(call("closed", r#"{"id":1}"#)));
    assert!(!later.repeated && later.receipt != first.receipt, "after a minute");
    world.check();
}

#[test]
fn the_same_action_refused_for_another_reason_is_recorded() {
    let mut world = World::new(&Real, LEDGER);
    let held = attempt(world.call(transfer(5)));
    let other = || Call { agent: "other", ..transfer(5) };
    assert_eq!(refused(world.call(other())).code, Code::InProgress);
    world.settle(&held, Outcome::Ambiguous);
    let refusal = refused(world.call(other()));
    assert_eq!((refusal.code, refusal.repeated), (Code::Ambiguous, false));
    assert!(refused(world.call(other())).repeated);
    world.check();
}

#[test]
fn p08_what_is_not_listed_is_denied_with_a_reason_and_a_receipt() {
    let mut world = World::new(&Real, LEDGER);
    for (name, reason) in [("unlisted", "unknown_action"), ("closed", "decision")] {
        let refusal = refused(world.call(call(name, r#"{"id":1}"#)));
        assert_eq!((refusal.code, refusal.reason.as_deref()), (Code::PolicyDenied, Some(reason)));
        let action = refusal.action.expect("it is recorded");
        let Reply::Ended { result, code, receipt, .. } = world.acquire(action, None) else { panic!() };
        assert_eq!(
            (result, code, Some(receipt)),
            (Answer::Denied, Some(Code::PolicyDenied), refusal.receipt)
        );
    }
    world.check();
}

#[test]
fn p08_a_template_that_cannot_be_filled_refuses_before_any_rule() {
    let mut world = World::new(&Real, LEDGER);
    for (name, arguments, code) in [
        ("transfer", "{}", Code::EffectKeyError),
        ("transfer", r#"{"id":""}"#, Code::EffectKeyError),
        ("transfer", r#"{"id":[1]}"#, Code::EffectKeyError),
        ("closed", "{}", Code::EffectKeyError),
        ("room", "{}", Code::ResourceError),
    ] {
        let refusal = refused(world.call(call(name, arguments)));
        assert_eq!(refusal.code, code, "{name} {arguments}");
        assert!(refusal.receipt.is_some());
    }
    world.check();
}

#[test]
fn an_approval_refused_for_one_action_does_not_end_another_that_waits() {
    let mut world = pay_world();
    let (waiting, own) = crate::doing::asked(world.call(pay(5)));
    let (_, foreign) = crate::doing::asked(world.call(pay(6)));
    assert_eq!(refused(world.acquire(waiting, Some(foreign))).code, Code::ApprovalMismatch);
    let unknown = onceseal_core::id::ApprovalId([1; 16]);
    assert_eq!(refused(world.acquire(waiting, Some(unknown))).code, Code::ApprovalUnknown);
    world.answer(own, "host:ada", onceseal_core::approval::Said::Yes);
    assert_eq!(attempt(world.acquire(waiting, None)).approval, Some(own));
    attempt(world.call(send(1)));
    world.check();
}

#[test]
fn every_code_says_what_to_do_next_in_one_sentence() {
    for code in Code::ALL {
        let sentence = code.sentence();
        assert!(sentence.starts_with(|c: char| c.is_lowercase()), "{sentence}");
        assert!(!sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
    }
}
