//! What becomes of an attempt, and whose word counts.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::approval::Source;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Finding, Outcome, Reconcile, Resolve, Settle};
use onceseal_core::journal::{Body, Recorded};
use onceseal_core::reply::{Attempt, Refusal, Reply};
use onceseal_core::time::Span;

use crate::calls::{Call, identity, settle};
use crate::doing::attempt;
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{pay_world, refused, send};

const SETTLE: Span = Span::seconds(30);

fn resolve(world: &mut World<'_>, attempt: &Attempt, happened: bool) -> Reply {
    world.run(Command::Resolve(Resolve {
        effect: attempt.effect,
        fence: attempt.fence,
        happened,
        reason: "looked at the dashboard".into(),
        evidence: Some("https://example.test/1".into()),
        person: identity("host:ada"),
    }))
}

fn reconcile(world: &mut World<'_>, attempt: &Attempt, finding: Finding) -> Reply {
    let Attempt { effect, fence, .. } = *attempt;
    world.run(Command::Reconcile(Reconcile {
        effect,
        fence,
        finding,
        evidence: None,
        remote: None,
        settle: SETTLE,
    }))
}

fn settled(reply: Reply) -> (EffectState, bool) {
    match reply {
        Reply::Settled { state, repeated, .. } => (state, repeated),
        other => panic!("not settled: {other:?}"),
    }
}

fn state(world: &World<'_>) -> EffectState {
    world.effect("send:1").expect("an effect").state
}

fn lapsed(world: &mut World<'_>) -> Attempt {
    let held = attempt(world.call(send(1)));
    world.now = held.lease_until + Span::micros(1);
    assert_eq!(world.run(Command::Lapse(held.effect)), Reply::Done { changed: true });
    held
}

fn late(world: &World<'_>) -> Vec<(u64, Outcome, bool)> {
    let late = world.events.iter().filter_map(|recorded| match &recorded.event.body {
        Body::EffectLate(data, _) => Some((data.fence, data.outcome, data.contradicts)),
        _ => None,
    });
    late.collect()
}

#[test]
fn a_usual_action_is_four_events_and_has_one_receipt() {
    let mut world = pay_world();
    let before = world.events.len();
    let held = attempt(world.call(send(1)));
    let mut report = settle((&held).into(), Outcome::Committed);
    report.result = Some(r#"{"id":"re_1"}"#.into());
    let reply = world.run(Command::Settle(report));
    let mut kinds: Vec<_> = world.events[before..].iter().map(|e| e.event.body.kind().as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["action.ended", "action.started", "effect.acquired", "effect.settled"]);
    let ActionState::Ended { receipt, .. } = world.action(held.action).state else { panic!() };
    assert!(matches!(reply, Reply::Settled { receipt: Some(r), repeated: false, .. } if r == receipt));
    world.check();
}

#[test]
fn the_same_report_again_is_answered_like_the_first() {
    for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
        let mut world = pay_world();
        let held = attempt(world.call(send(1)));
        let Reply::Settled { receipt: first, .. } = world.settle(&held, outcome) else { panic!() };
        let recorded = world.events.len();
        let Reply::Settled { receipt, repeated, state } = world.settle(&held, outcome) else { panic!() };
        assert_eq!((receipt, repeated, state), (first, true, outcome.into()));
        assert_eq!(world.events.len(), recorded);
    }
}

#[test]
fn p06_failed_comes_from_an_explicit_word_alone() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Ambiguous);
    assert_eq!(state(&world), EffectState::Ambiguous);
    assert_eq!(refused(world.call(send(1))).code, Code::Ambiguous);
    world.now = world.now + Span::hours(720);
    assert_eq!(world.run(Command::Lapse(held.effect)), Reply::Done { changed: false });
    assert_eq!(state(&world), EffectState::Ambiguous);
    assert_eq!(settled(resolve(&mut world, &held, false)).0, EffectState::Failed);
    assert_eq!(attempt(world.call(send(1))).fence, 2);
    world.check();
}

#[test]
fn p06_a_reserved_attempt_cannot_be_called_failed_or_committed() {
    let mut world = pay_world();
    let held = attempt(world.call(Call { reach: onceseal_core::action::Reach::Reserved, ..send(1) }));
    for outcome in [Outcome::Committed, Outcome::Failed] {
        assert_eq!(refused(world.settle(&held, outcome)).code, Code::InvalidTransition);
    }
    assert_eq!(settled(world.settle(&held, Outcome::Ambiguous)).0, EffectState::Ambiguous);
}

#[test]
fn a_report_is_judged_by_fence_and_not_by_time() {
    for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
        let mut world = pay_world();
        let held = attempt(world.call(send(1)));
        world.now = held.deadline + Span::hours(5);
        assert_eq!(
            settled(world.settle(&held, outcome)),
            (outcome.into(), false),
            "nobody noticed the lapse"
        );
        world.check();
    }
}

#[test]
fn p12_a_lapse_may_be_answered_late_by_its_holder_and_both_receipts_stand() {
    for outcome in [Outcome::Committed, Outcome::Failed] {
        let mut world = pay_world();
        let held = lapsed(&mut world);
        let ActionState::Ended { receipt: first, .. } = world.action(held.action).state else { panic!() };
        assert_eq!(settled(world.settle(&held, Outcome::Ambiguous)), (EffectState::Ambiguous, true));
        let Reply::Settled { state, receipt, .. } = world.settle(&held, outcome) else { panic!() };
        assert_eq!(state, outcome.into());
        let ActionState::Answered { result, receipt: second, first: named } = world.action(held.action).state
        else {
            panic!()
        };
        assert_eq!((named, Some(second), result), (first, receipt, Answer::from(outcome)));
        assert!(late(&world).is_empty());
        world.check();
    }
}

#[test]
fn p04_once_a_person_has_answered_the_holder_changes_nothing_and_its_word_is_kept_once() {
    for happened in [true, false] {
        for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
            let mut world = pay_world();
            let held = lapsed(&mut world);
            resolve(&mut world, &held, happened);
            let before = (state(&world), world.action(held.action).clone());
            let refusal = refused(world.settle(&held, outcome));
            assert_eq!(refusal.code, Code::Fenced);
            assert!(refusal.receipt.is_some());
            assert_eq!((state(&world), world.action(held.action).clone()), before);
            let contradicts =
                matches!((happened, outcome), (true, Outcome::Failed) | (false, Outcome::Committed));
            assert_eq!(late(&world), [(1, outcome, contradicts)]);
            let refusal = refused(world.settle(&held, outcome));
            assert_eq!((refusal.code, refusal.receipt), (Code::Fenced, None), "once per fence");
            assert_eq!(late(&world).len(), 1);
            world.check();
        }
    }
}

#[test]
fn p04_a_newer_attempt_fences_the_older_one_whatever_it_returns() {
    for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
        let mut world = pay_world();
        let old = lapsed(&mut world);
        resolve(&mut world, &old, false);
        let new = attempt(world.call(send(1)));
        let before = world.effect("send:1").cloned().expect("an effect");
        assert_eq!(refused(world.settle(&old, outcome)).code, Code::Fenced);
        let after = world.effect("send:1").cloned().expect("an effect");
        assert_eq!((after.state, after.fence, after.holder), (before.state, before.fence, before.holder));
        assert_eq!(late(&world), [(1, outcome, outcome == Outcome::Committed)]);
        assert_eq!(settled(world.settle(&new, Outcome::Committed)).0, EffectState::Committed);
        world.check();
    }
}

#[test]
fn a_holder_that_said_it_does_not_know_cannot_settle_it_later_and_is_told_why() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Ambiguous);
    let refusal = refused(world.settle(&held, Outcome::Committed));
    assert_eq!(refusal.code, Code::Ambiguous, "nobody else has answered");
    assert!(refusal.receipt.is_some());
    assert_eq!(late(&world), [(1, Outcome::Committed, false)], "the word is kept, and contradicts no answer");
    assert_eq!(state(&world), EffectState::Ambiguous);
    world.check();
}

#[test]
fn only_an_unknown_outcome_is_resolved_and_only_for_its_fence() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    assert_eq!(refused(resolve(&mut world, &held, true)).code, Code::NotAmbiguous, "it is live");
    world.settle(&held, Outcome::Ambiguous);
    let other = Attempt { fence: 2, ..held.clone() };
    assert_eq!(refused(resolve(&mut world, &other, true)).code, Code::NotAmbiguous);
    assert_eq!(settled(resolve(&mut world, &held, true)).0, EffectState::Committed);
    assert_eq!(refused(resolve(&mut world, &held, false)).code, Code::NotAmbiguous, "the first word stands");
    let nowhere = Attempt { effect: world.pinned.tenant.effect("nowhere"), ..held };
    assert_eq!(refused(resolve(&mut world, &nowhere, true)).code, Code::EffectUnknown);
    assert_eq!(refused(world.call(send(1))).code, Code::Duplicate);
}

#[test]
fn a_resolution_of_a_lease_that_nobody_saw_lapse_records_the_lapse_first() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.now = held.lease_until + Span::micros(1);
    assert_eq!(settled(resolve(&mut world, &held, false)).0, EffectState::Failed);
    assert!(matches!(
        world.action(held.action).state,
        ActionState::Answered { result: Answer::Failed, receipt, first } if receipt != first
    ));
    world.check();
}

#[test]
fn p15_a_resolution_keeps_reason_evidence_cause_and_who_was_proven_how() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    let mut report = settle((&held).into(), Outcome::Ambiguous);
    report.error = Some("timeout".into());
    world.run(Command::Settle(report));
    resolve(&mut world, &held, false);
    let known = world.events.iter().find_map(|recorded| match &recorded.event.body {
        Body::EffectResolved(data, sealed) => Some((data.clone(), sealed.clone())),
        _ => None,
    });
    let (data, sealed) = known.expect("a resolution");
    assert_eq!(data.proof.map(|proof| proof.as_str()), Some("host"));
    assert_eq!(data.source, Source::Person);
    assert_eq!(sealed.cause.as_deref(), Some("timeout"));
    assert_eq!(sealed.person.as_deref(), Some("host:ada"));
    assert_eq!(sealed.reason.as_deref(), Some("looked at the dashboard"));
    assert_eq!(sealed.evidence.as_deref(), Some("https://example.test/1"));
}

#[test]
fn only_operators_resolve_and_a_reason_is_needed() {
    let policy =
        crate::PAY.replace("actions:", "groups: { ops: [\"host:opal\"] }\noperators: [ops]\nactions:");
    let mut world = World::new(&Real, &policy);
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Ambiguous);
    assert_eq!(refused(resolve(&mut world, &held, true)).code, Code::NotOperator);
    let word = |person: &str, reason: &str| {
        let (effect, fence) = (held.effect, held.fence);
        let person = identity(person);
        Command::Resolve(Resolve {
            effect,
            fence,
            happened: true,
            reason: reason.into(),
            evidence: None,
            person,
        })
    };
    assert_eq!(refused(world.run(word("host:opal", "  "))).code, Code::OutOfBounds);
    assert_eq!(refused(world.run(word("host:opal", "a\0b"))).code, Code::OutOfBounds);
    assert_eq!(refused(world.run(word("host:opal", &"x".repeat(1025)))).code, Code::OutOfBounds);
    assert_eq!(refused(world.run(word("host:\u{200b}", "seen"))).code, Code::PersonInvalid);
    assert_eq!(settled(world.run(word("host:opal", "seen"))).0, EffectState::Committed);
}

#[test]
fn the_remote_may_say_absent_only_of_an_unknown_outcome_and_not_too_early() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    assert_eq!(refused(reconcile(&mut world, &held, Finding::Absent)).code, Code::InvalidTransition);
    world.settle(&held, Outcome::Ambiguous);
    world.now = held.lease_until + Span::seconds(29);
    assert_eq!(refused(reconcile(&mut world, &held, Finding::Absent)).code, Code::TooEarly);
    world.now = held.lease_until + SETTLE;
    assert_eq!(settled(reconcile(&mut world, &held, Finding::Absent)).0, EffectState::Failed);
    assert_eq!(attempt(world.call(send(1))).fence, 2);
    world.check();
}

#[test]
fn ua_028_an_aborted_attempt_is_unknown_until_the_remote_says_it_happened() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Ambiguous);
    assert_eq!(refused(world.call(send(1))).code, Code::Ambiguous, "not shown as failed, not tried again");
    let found = Finding::Committed(Some(r#"{"id":"re_1"}"#.into()));
    assert_eq!(settled(reconcile(&mut world, &held, found.clone())), (EffectState::Committed, false));
    assert_eq!(settled(reconcile(&mut world, &held, found)), (EffectState::Committed, true));
    let row = world.effect("send:1").expect("an effect");
    assert_eq!(row.answered_by, Some(Source::Remote));
    assert!(row.result_at.is_some(), "with its result");
    assert!(matches!(
        world.action(held.action).state,
        ActionState::Answered { result: Answer::Committed, .. }
    ));
    world.check();
}

#[test]
fn what_the_remote_says_happened_counts_while_the_attempt_runs_and_for_any_fence() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    assert_eq!(settled(reconcile(&mut world, &held, Finding::Committed(None))).0, EffectState::Committed);
    assert!(matches!(world.action(held.action).state, ActionState::Ended { result: Answer::Committed, .. }));
    assert_eq!(refused(world.settle(&held, Outcome::Failed)).code, Code::Fenced);
    world.check();

    let mut world = pay_world();
    let old = lapsed(&mut world);
    resolve(&mut world, &old, false);
    let new = attempt(world.call(send(1)));
    let unborn = Attempt { fence: 3, ..new.clone() };
    assert_eq!(
        refused(reconcile(&mut world, &unborn, Finding::Committed(None))).code,
        Code::InvalidTransition
    );
    assert_eq!(settled(reconcile(&mut world, &old, Finding::Committed(None))).0, EffectState::Committed);
    assert_eq!(refused(world.settle(&new, Outcome::Failed)).code, Code::Fenced);
    assert_eq!(refused(world.call(send(1))).code, Code::Duplicate);
    world.check();
}

#[test]
fn the_remotes_word_does_not_overrule_an_answer() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.settle(&held, Outcome::Failed);
    for finding in [Finding::Committed(None), Finding::Absent] {
        assert_eq!(refused(reconcile(&mut world, &held, finding)).code, Code::InvalidTransition);
    }
    assert_eq!(state(&world), EffectState::Failed);
}

#[test]
fn p14_texts_of_reports_are_bounded_and_never_turn_a_word_into_a_refusal() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    let mut report = settle((&held).into(), Outcome::Failed);
    report.error = Some(format!("\0{}", "é".repeat(2_000)));
    assert_eq!(settled(world.run(Command::Settle(report))).0, EffectState::Failed);
    let error = world.effect("send:1").and_then(|row| row.private.error.clone()).expect("an error");
    assert_eq!(error, "é".repeat(1_024));
    world.check();

    let held = attempt(world.call(send(1)));
    let mut report = settle((&held).into(), Outcome::Committed);
    report.code = Some("c".repeat(300));
    assert_eq!(refused(world.run(Command::Settle(report.clone()))).code, Code::OutOfBounds);
    (report.code, report.result) = (None, Some(format!("\"{}\"", "x".repeat(65_535))));
    assert_eq!(refused(world.run(Command::Settle(report))).code, Code::OutOfBounds);
    let Attempt { effect, fence, .. } = held;
    let evidence = Some("x".repeat(1_025));
    let finding = Finding::Committed(None);
    let reconcile =
        Command::Reconcile(Reconcile { effect, fence, finding, evidence, remote: None, settle: SETTLE });
    assert_eq!(refused(world.run(reconcile)).code, Code::OutOfBounds);
    assert_eq!(state(&world), EffectState::Executing);
}

#[test]
fn a_lapse_is_recorded_only_when_it_is_one() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.now = held.lease_until;
    assert_eq!(world.run(Command::Lapse(held.effect)), Reply::Done { changed: false });
    world.now = noon() + Span::hours(1);
    assert_eq!(world.run(Command::Lapse(held.effect)), Reply::Done { changed: true });
    assert_eq!(world.run(Command::Lapse(held.effect)), Reply::Done { changed: false });
    let Refusal { receipt, .. } = refused(world.call(send(1)));
    assert!(receipt.is_some());
}

#[test]
fn a_remote_that_answers_for_a_lease_nobody_saw_lapse_has_the_lapse_recorded_first() {
    for (finding, state) in
        [(Finding::Committed(None), EffectState::Committed), (Finding::Absent, EffectState::Failed)]
    {
        let mut world = pay_world();
        let held = attempt(world.call(send(1)));
        world.now = held.lease_until + Span::micros(1);
        if finding == Finding::Absent {
            let refusal = refused(reconcile(&mut world, &held, Finding::Absent));
            assert_eq!(refusal.code, Code::TooEarly);
            assert_eq!(
                refusal.effect.map(|effect| effect.state),
                Some(EffectState::Ambiguous),
                "as it is now"
            );
            world.now = world.now + SETTLE;
        }
        assert_eq!(settled(reconcile(&mut world, &held, finding)).0, state);
        let lapses = |event: &&Recorded| matches!(event.event.body, Body::EffectLapsed(..));
        assert_eq!(world.events.iter().filter(lapses).count(), 1);
        world.check();
    }
}

#[test]
fn a_result_is_canonical_text_or_it_is_refused() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    for wrong in ["", "{not json", "{\"b\":1, \"a\":2}", "1.0", "\u{0}"] {
        let report = Settle { result: Some(wrong.into()), ..settle((&held).into(), Outcome::Committed) };
        assert_eq!(refused(world.run(Command::Settle(report))).code, Code::OutOfBounds, "{wrong:?}");
    }
    assert_eq!(state(&world), EffectState::Executing, "nothing is recorded of it");
}
