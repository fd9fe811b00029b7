//! One live attempt per key, its lease, and its end.

use onceseal_core::action::{ActionState, Answer, Reach};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, EffectState, Holding, Outcome, Renew, Reserve};
use onceseal_core::id::ActionId;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;

use crate::calls::{Call, call, settle};
use crate::doing::attempt;
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{pay_world, refused, send};

fn begin(world: &mut World<'_>, attempt: &Attempt) -> Reply {
    world.run(Command::Begin(Begin { attempt: attempt.into(), lease: attempt.lease }))
}

fn renew(world: &mut World<'_>, attempt: &Attempt, lease: Span) -> Reply {
    world.run(Command::Renew(Renew { attempt: attempt.into(), lease }))
}

fn reserve(key: &str, lease: Span) -> Command {
    Command::Reserve(Reserve { key: key.to_owned(), action: ActionId([8; 16]), lease })
}

fn state(world: &World<'_>, key: &str) -> EffectState {
    world.effect(key).expect("an effect").state
}

#[test]
fn p03_no_second_attempt_starts_while_one_is_live_to_its_last_microsecond() {
    let mut world = pay_world();
    let first = attempt(world.call(send(1)));
    assert_eq!(first.lease_until, noon() + Span::minutes(2));
    for now in [noon(), first.lease_until] {
        world.now = now;
        let refusal = refused(world.call(Call { agent: "other", ..send(1) }));
        assert_eq!(refusal.code, Code::InProgress);
        let effect = refusal.effect.expect("the effect as it is");
        assert_eq!(
            (effect.state, effect.fence, effect.lease_until),
            (EffectState::Executing, 1, Some(first.lease_until))
        );
    }
    world.check();
}

#[test]
fn p06_ua_023_a_lapsed_lease_is_unknown_and_is_never_handed_over() {
    for reach in [Reach::Reserved, Reach::Executing] {
        let mut world = pay_world();
        let first = attempt(world.call(Call { reach, ..send(1) }));
        world.now = first.lease_until + Span::micros(1);
        let refusal = refused(world.call(Call { agent: "other", ..send(1) }));
        assert_eq!(refusal.code, Code::Ambiguous);
        assert_eq!(refusal.effect.map(|effect| effect.state), Some(EffectState::Ambiguous));
        assert_eq!(state(&world, "send:1"), EffectState::Ambiguous, "kept although the command is refused");
        let ActionState::Ended { result, code, .. } = world.action(first.action).state else { panic!() };
        assert_eq!((result, code), (Answer::Ambiguous, Some(Code::LeaseLapsed)));
        world.now = world.now + Span::hours(48);
        assert_eq!(refused(world.call(send(1))).code, Code::Ambiguous, "however long ago");
        world.check();
    }
}

#[test]
fn p03_the_holders_own_id_opens_no_door() {
    let mut world = pay_world();
    let id = ActionId([8; 16]);
    let first = attempt(world.run(reserve("k", Span::minutes(2))));
    assert_eq!(first.action, id);
    assert_eq!(refused(world.run(reserve("k", Span::minutes(2)))).code, Code::InProgress);
    world.now = first.lease_until + Span::micros(1);
    assert_eq!(refused(world.run(reserve("k", Span::minutes(2)))).code, Code::Ambiguous);
}

#[test]
fn a_running_action_that_is_met_after_its_lease_is_ended_unknown() {
    let mut world = pay_world();
    let id = ActionId([8; 16]);
    let first = attempt(world.call(Call { action: Some(id), ..send(1) }));
    world.now = first.lease_until + Span::micros(1);
    let reply = world.call(Call { action: Some(id), ..send(1) });
    assert!(
        matches!(reply, Reply::Ended { result: Answer::Ambiguous, code: Some(Code::LeaseLapsed), .. }),
        "{reply:?}"
    );
    assert_eq!(state(&world, "send:1"), EffectState::Ambiguous);
    assert_eq!(world.call(Call { action: Some(id), ..send(1) }), reply);
    world.check();
}

#[test]
fn p03_after_an_explicit_failure_the_next_attempt_has_the_next_fence() {
    let mut world = pay_world();
    let created = noon();
    for fence in 1..=3 {
        let held = attempt(world.call(send(1)));
        assert_eq!(held.fence, fence);
        world.settle(&held, Outcome::Failed);
        world.now = world.now + Span::seconds(1);
    }
    assert_eq!(world.effect("send:1").map(|row| (row.fence, row.created_at)), Some((3, created)));
    world.check();
}

#[test]
fn a_new_attempt_forgets_error_and_result_of_the_last() {
    let mut world = pay_world();
    let first = attempt(world.call(send(1)));
    let mut report = settle((&first).into(), Outcome::Failed);
    (report.code, report.error) = (Some("422".into()), Some("no such account".into()));
    world.run(Command::Settle(report));
    let row = world.effect("send:1").expect("an effect");
    assert_eq!((row.code.as_deref(), row.private.error.as_deref()), (Some("422"), Some("no such account")));
    attempt(world.call(send(1)));
    let row = world.effect("send:1").expect("an effect");
    assert_eq!((row.code.as_deref(), row.private.error.as_deref(), row.private.result), (None, None, None));
}

#[test]
fn the_attempt_limit_counts_attempts_and_is_told() {
    let policy = crate::PAY.replace("send: { effect", "send: { max_attempts: 2, effect");
    let mut world = World::new(&Real, &policy);
    for _ in 0..2 {
        let held = attempt(world.call(send(1)));
        world.settle(&held, Outcome::Failed);
    }
    let refusal = refused(world.call(send(1)));
    assert_eq!((refusal.code, refusal.effect.map(|effect| effect.fence)), (Code::AttemptLimit, Some(2)));
    attempt(world.call(send(2)));
}

#[test]
fn begin_takes_a_reserved_attempt_once_and_a_late_begin_makes_it_unknown() {
    let mut world = pay_world();
    let held = attempt(world.call(Call { reach: Reach::Reserved, ..send(1) }));
    assert!(!held.begun);
    assert_eq!(state(&world, "send:1"), EffectState::Reserved);
    world.now = held.lease_until;
    let begun = attempt(begin(&mut world, &held));
    assert_eq!(begun, Attempt { begun: true, taken_at: world.now, ..held.clone() });
    assert_eq!(refused(begin(&mut world, &held)).code, Code::InvalidTransition, "once");

    let late = attempt(world.call(Call { reach: Reach::Reserved, ..send(2) }));
    world.now = late.lease_until + Span::micros(1);
    assert_eq!(refused(begin(&mut world, &late)).code, Code::LeaseLapsed);
    assert_eq!(state(&world, "send:2"), EffectState::Ambiguous);
    assert!(matches!(world.action(late.action).state, ActionState::Ended { result: Answer::Ambiguous, .. }));
    world.check();
}

#[test]
fn a_renewal_moves_a_live_lease_forward_and_never_past_the_deadline() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    world.now = noon() + Span::minutes(1);
    let next = noon() + Span::minutes(3);
    assert_eq!(renew(&mut world, &held, Span::minutes(2)), Reply::Renewed { lease_until: next });
    assert_eq!(
        renew(&mut world, &held, Span::seconds(1)),
        Reply::Renewed { lease_until: next },
        "no time is taken"
    );
    world.now = next;
    assert_eq!(renew(&mut world, &held, Span::hours(24)), Reply::Renewed { lease_until: held.deadline });
    assert_eq!(world.effect("send:1").and_then(|row| row.lease_until), Some(held.deadline));
    world.now = held.deadline + Span::micros(1);
    assert_eq!(refused(renew(&mut world, &held, Span::minutes(2))).code, Code::LeaseLapsed);
    assert_eq!(state(&world, "send:1"), EffectState::Ambiguous);
    assert_eq!(refused(renew(&mut world, &held, Span::minutes(2))).code, Code::Ambiguous);
    world.check();
}

#[test]
fn p14_leases_and_deadlines_have_bounds_and_a_call_may_only_shorten() {
    let mut world = pay_world();
    let recorded = world.events.len();
    for (lease, deadline) in [
        (Some(Span::micros(120_000_001)), None),
        (Some(Span::millis(999)), None),
        (Some(Span::ZERO), None),
        (None, Some(Span::micros(600_000_001))),
    ] {
        let refusal = refused(world.call(Call { lease, deadline, ..send(1) }));
        assert_eq!(refusal.code, Code::OutOfBounds);
    }
    for (key, lease) in [
        ("", Span::minutes(1)),
        ("k\0", Span::minutes(1)),
        (&*"k".repeat(1025), Span::minutes(1)),
        ("k", Span::ZERO),
        ("k", Span::hours(25)),
    ] {
        assert_eq!(refused(world.run(reserve(key, lease))).code, Code::OutOfBounds);
    }
    assert_eq!(world.events.len(), recorded);
    let shorter = attempt(world.call(Call { lease: Some(Span::seconds(1)), ..send(1) }));
    assert_eq!(shorter.lease_until, noon() + Span::seconds(1));
    for lease in [Span::millis(999), Span::hours(25)] {
        assert_eq!(refused(renew(&mut world, &shorter, lease)).code, Code::OutOfBounds);
    }
}

#[test]
fn ua_025_a_deadline_already_past_is_refused_and_leaves_no_reservation() {
    let mut world = pay_world();
    let refusal = refused(world.call(Call { deadline: Some(Span::ZERO), ..send(1) }));
    assert_eq!(refusal.code, Code::OutOfBounds);
    assert!(world.effect("send:1").is_none());
    let short = attempt(world.call(Call { deadline: Some(Span::seconds(3)), ..send(1) }));
    assert_eq!((short.lease_until, short.deadline), (noon() + Span::seconds(3), noon() + Span::seconds(3)));
}

#[test]
fn an_action_without_an_effect_key_has_one_of_its_own() {
    let mut world = pay_world();
    let first = attempt(world.call(call("read", "{}")));
    let second = attempt(world.call(call("read", "{}")));
    assert_ne!(first.effect, second.effect);
    assert_eq!((first.key.as_deref(), first.fence), (None, 1));
    let key = format!("act:{}", first.action);
    world.now = first.lease_until + Span::micros(1);
    world.run(Command::Lapse(first.effect));
    assert_eq!(state(&world, &key), EffectState::Ambiguous);
    world.check();
}

#[test]
fn the_keys_of_actions_cannot_be_taken_by_hand() {
    let mut world = pay_world();
    for key in ["act:act_00000000000000000000000000000001", "op:x"] {
        assert_eq!(refused(world.run(reserve(key, Span::minutes(1)))).code, Code::OutOfBounds);
    }
}

#[test]
fn a_ready_action_ends_by_itself_after_a_quarter_of_an_hour() {
    let ready = |world: &mut World<'_>| match world.call(Call { reach: Reach::Ready, ..send(1) }) {
        Reply::Ready { action, until } => (action, until),
        other => panic!("{other:?}"),
    };
    for met in [true, false] {
        let mut world = pay_world();
        let (action, until) = ready(&mut world);
        assert_eq!(until, noon() + Span::minutes(15));
        let again = world.call(Call { action: Some(action), reach: Reach::Ready, ..send(1) });
        assert_eq!(again, Reply::Ready { action, until }, "asking again prolongs nothing");
        let lapse = Command::Lapse(onceseal_core::stream::StreamId::action(action));
        world.now = until;
        assert_eq!(world.run(lapse.clone()), Reply::Done { changed: false });
        world.now = until + Span::micros(1);
        if met {
            assert_eq!(refused(world.acquire(action, None)).code, Code::NotStarted);
        } else {
            assert_eq!(world.run(lapse), Reply::Done { changed: true });
        }
        let ActionState::Ended { result, code, .. } = world.action(action).state else { panic!() };
        assert_eq!((result, code), (Answer::Blocked, Some(Code::NotStarted)));
        assert!(world.effect("send:1").is_none());
        world.check();
    }
    let mut world = pay_world();
    let (action, until) = ready(&mut world);
    world.now = until;
    assert_eq!(attempt(world.acquire(action, None)).action, action);
    world.check();
}

#[test]
fn wrong_holders_are_told_what_the_record_is_and_change_nothing() {
    let mut world = pay_world();
    let held = attempt(world.call(send(1)));
    let wrong = [
        Holding { action: ActionId([1; 16]), ..Holding::from(&held) },
        Holding { fence: 2, ..Holding::from(&held) },
        Holding { fence: 0, ..Holding::from(&held) },
    ];
    let commands = |attempt| {
        let lease = Span::minutes(1);
        [
            Command::Begin(Begin { attempt, lease }),
            Command::Renew(Renew { attempt, lease }),
            Command::Settle(settle(attempt, Outcome::Committed)),
            Command::Settle(settle(attempt, Outcome::Failed)),
            Command::Settle(settle(attempt, Outcome::Ambiguous)),
        ]
    };
    let recorded = world.events.len();
    for holding in wrong {
        for command in commands(holding) {
            assert_eq!(refused(world.run(command)).code, Code::InProgress);
        }
    }
    let nowhere = Holding { effect: world.pinned.tenant.effect("nowhere"), ..Holding::from(&held) };
    for command in commands(nowhere) {
        assert_eq!(refused(world.run(command)).code, Code::EffectUnknown);
    }
    assert_eq!(world.events.len(), recorded);
    world.settle(&held, Outcome::Committed);
    for command in commands(wrong[0]) {
        assert_eq!(refused(world.run(command)).code, Code::Duplicate);
    }
}
