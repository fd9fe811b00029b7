//! Whether a destination answers: circuits delay, and decide nothing.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome, Settle};
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Row};
use onceseal_core::operation::{GiveBack, Next};
use onceseal_core::reply::{Attempt, Reply, Standing};
use onceseal_core::route::{CloseRoute, Health, OPENS_AFTER, RouteState};
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};

use crate::calls::{call, identity, settle};
use crate::damaged::Damaged;
use crate::executor::{Real, Rules};
use crate::operating::standing;
use crate::world::World;
use crate::{PAY, refused, send};

const BANK: &str = "https://bank.example";
const TOOL: &str = r#"{"name":"send","destination":"https://bank.example"}"#;
const SAME_KEY: &str = r#"{"name":"send","destination":"https://bank.example","recovery":"same_key",
    "key_ttl":"2m","lease":"30s"}"#;
/// Spreads nothing: four fifths and half of two fifths, nearly.
const EVENLY: u8 = 127;

fn world(rules: &dyn Rules) -> World<'_> {
    World::new(rules, PAY)
}

/// So many accepted operations.
fn accepted(world: &mut World<'_>, contract: &str, ids: std::ops::Range<u32>) -> Vec<ActionId> {
    let contract = world.declare(contract);
    ids.map(|id| {
        let order = world.order(send(id), contract, &format!("key-{id}"));
        world.accepted(&order)
    })
    .collect()
}

fn route(world: &World<'_>) -> StreamId {
    world.pinned.tenant.route(BANK)
}

fn state(world: &World<'_>) -> Option<RouteState> {
    world.row(&route(world)).map(|row| match row {
        Row::Route(row) => row.state.clone(),
        other => panic!("no route: {other:?}"),
    })
}

#[track_caller]
fn until(world: &World<'_>) -> Timestamp {
    match state(world) {
        Some(RouteState::Open { until, .. }) => until,
        other => panic!("not open: {other:?}"),
    }
}

fn ill(spread: u8) -> Option<Health> {
    Some(Health::Ill { spread })
}

fn report(world: &mut World<'_>, attempt: &Attempt, outcome: Outcome, health: Option<Health>) -> Reply {
    let again = Some(Span::ZERO);
    world.run(Command::Settle(Settle { health, again, ..settle(attempt.into(), outcome) }))
}

/// An attempt that could not reach its destination.
fn fails(world: &mut World<'_>, action: ActionId, spread: u8) {
    let (attempt, _) = world.begun(action);
    report(world, &attempt, Outcome::Failed, ill(spread));
}

/// The circuit is open.
fn opened(world: &mut World<'_>, action: ActionId) -> Timestamp {
    for _ in 0..OPENS_AFTER {
        fails(world, action, EVENLY);
    }
    until(world)
}

/// The claim is refused for the circuit alone: what it puts off until then.
#[track_caller]
fn put_off(world: &mut World<'_>, action: ActionId) -> Timestamp {
    let before = world.action(action).clone();
    let refusal = refused(world.claim(action, true));
    assert_eq!((refusal.code, refusal.action, refusal.receipt), (Code::RouteOpen, Some(action), None));
    let now = world.action(action).clone();
    assert_eq!(now.held, before.held, "no attempt was made");
    match now.state {
        ActionState::Queued { due, code: Some(Code::RouteOpen) } => due,
        other => panic!("not put off: {other:?}"),
    }
}

#[test]
fn so_many_failures_in_a_row_open_a_circuit_and_a_success_while_it_is_closed_writes_nothing() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..3);
    let (attempt, _) = world.begun(all[0]);
    report(&mut world, &attempt, Outcome::Committed, None);
    assert_eq!(state(&world), None, "nothing is recorded of what goes well");
    for _ in 1..OPENS_AFTER {
        fails(&mut world, all[1], EVENLY);
    }
    let (attempt, _) = world.begun(all[1]);
    report(&mut world, &attempt, Outcome::Failed, None);
    assert_eq!(state(&world), Some(RouteState::Closed { failures: OPENS_AFTER - 1 }), "it said nothing");
    let (attempt, _) = world.begun(all[1]);
    report(&mut world, &attempt, Outcome::Failed, Some(Health::Well));
    assert_eq!(state(&world), Some(RouteState::Closed { failures: 0 }), "a no is an answer");
    let recorded = world.rows[&route(&world)].head;
    let (attempt, _) = world.begun(all[2]);
    report(&mut world, &attempt, Outcome::Committed, None);
    assert_eq!(world.rows[&route(&world)].head, recorded);
    opened(&mut world, all[1]);
    world.check();
}

#[test]
fn an_open_circuit_puts_off_what_goes_there_counts_no_attempt_and_touches_nothing_else() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..2);
    let other = world.declare(r#"{"name":"read","destination":"https://elsewhere.example"}"#);
    let order = world.order(call("read", "{}"), other, "key");
    let elsewhere = world.accepted(&order);
    let open_until = opened(&mut world, all[0]);
    assert_eq!(put_off(&mut world, all[1]), open_until);
    let effect = world.effect("send:1").expect("an effect");
    assert_eq!((effect.state, effect.fence), (EffectState::Queued, 0));
    world.begun(elsewhere);
    world.now = open_until - Span::micros(1);
    let early = standing(world.claim(all[1], true));
    assert!(matches!(early, Standing::Queued { .. }), "not due yet: {early:?}");
    world.now = open_until;
    assert_eq!(world.begun(all[1]).0.fence, 1);
    world.check();
}

#[test]
fn one_probe_at_a_time_and_its_success_closes() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..3);
    world.now = opened(&mut world, all[0]);
    let (probe, _) = world.begun(all[1]);
    assert_eq!(put_off(&mut world, all[2]), world.now + Span::seconds(5), "another is looked at soon");
    report(&mut world, &probe, Outcome::Committed, None);
    assert_eq!(state(&world), Some(RouteState::Closed { failures: 0 }));
    world.now = world.now + Span::seconds(5);
    for action in [all[0], all[2]] {
        world.begun(action);
    }
    world.check();
}

#[test]
fn a_probe_that_fails_opens_for_twice_as_long_up_to_five_minutes_and_spread_from_outside() {
    let mut world = world(&Real);
    let action = accepted(&mut world, TOOL, 0..1)[0];
    let mut pauses = vec![opened(&mut world, action).since(world.now)];
    for spread in [EVENLY, 0, 255, EVENLY, EVENLY, EVENLY] {
        world.now = until(&world);
        fails(&mut world, action, spread);
        pauses.push(until(&world).since(world.now));
    }
    let even = |seconds: u32| {
        let fifth = Span::seconds(seconds).divided_by(5);
        fifth.times(4).as_micros() + fifth.times(2 * u32::from(EVENLY)).divided_by(255).as_micros()
    };
    let pauses: Vec<_> = pauses.into_iter().map(Span::as_micros).collect();
    let seconds = |seconds| Span::seconds(seconds).as_micros();
    assert_eq!(
        pauses,
        [even(10), even(20), seconds(32), seconds(96), even(160), even(300), even(300)],
        "a fifth less, a fifth more"
    );
    let since = world.events.iter().find(|event| matches!(event.event.body, Body::RouteOpened(..)));
    let since = since.expect("it was opened").stamp.at;
    assert!(matches!(state(&world), Some(RouteState::Open { since: at, times: 7, .. }) if at == since));
    world.check();
}

#[test]
fn a_probe_that_dies_without_a_word_is_over_when_its_lease_is() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..4);
    world.now = opened(&mut world, all[0]);
    let (dead, _) = world.begun(all[1]);
    let open = state(&world);
    world.now = dead.lease_until;
    put_off(&mut world, all[2]);
    world.now = dead.lease_until + Span::micros(1);
    let (second, _) = world.begun(all[3]);
    // What the first was, it no longer is.
    report(&mut world, &dead, Outcome::Failed, ill(0));
    world.now = world.now + Span::seconds(5);
    put_off(&mut world, all[2]);
    assert_ne!(state(&world), open, "the second is the probe");
    world.now = second.lease_until + Span::micros(1);
    world.run(Command::Lapse(second.effect));
    let (third, _) = world.begun(all[2]);
    report(&mut world, &third, Outcome::Failed, ill(0));
    assert!(matches!(state(&world), Some(RouteState::Open { times: 2, .. })), "once, for the third alone");
    world.check();
}

#[test]
fn a_probe_that_is_given_back_or_says_nothing_makes_way_for_the_next() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..2);
    world.now = opened(&mut world, all[0]);
    let Reply::Claimed(attempt, _) = world.claim(all[1], false) else { panic!("the probe") };
    let next = Next::Later { after: Span::ZERO, code: Code::CannotTell };
    world.run(Command::GiveBack(GiveBack { attempt: Holding::from(&*attempt), next }));
    let (second, _) = world.begun(all[0]);
    report(&mut world, &second, Outcome::Ambiguous, None);
    world.begun(all[1]);
    world.check();
}

#[test]
fn while_it_is_open_only_the_probes_word_counts() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..4);
    let early: Vec<_> = all[1..3].iter().map(|action| world.begun(*action).0).collect();
    let open_until = opened(&mut world, all[0]);
    report(&mut world, &early[0], Outcome::Ambiguous, ill(255));
    report(&mut world, &early[1], Outcome::Committed, None);
    assert_eq!(until(&world), open_until);
    world.now = open_until;
    let (probe, _) = world.begun(all[3]);
    report(&mut world, &probe, Outcome::Failed, Some(Health::Well));
    assert_eq!(state(&world), Some(RouteState::Closed { failures: 0 }), "a definite no is an answer");
    world.check();
}

#[test]
fn an_attempt_whose_lease_lapsed_counts_against_nothing() {
    let mut world = world(&Real);
    for action in accepted(&mut world, TOOL, 0..OPENS_AFTER) {
        let (attempt, _) = world.begun(action);
        world.now = attempt.lease_until + Span::micros(1);
        world.run(Command::Lapse(attempt.effect));
        report(&mut world, &attempt, Outcome::Failed, ill(0));
    }
    assert_eq!(state(&world), None);
    world.check();
}

#[test]
fn p14_what_is_put_off_beyond_its_time_is_too_late_as_ever() {
    let mut world = world(&Real);
    let all = accepted(
        &mut world,
        r#"{"name":"send","destination":"https://bank.example","deliver_within":"5s"}"#,
        0..2,
    );
    opened(&mut world, all[0]);
    put_off(&mut world, all[1]);
    world.now = world.now + Span::seconds(6);
    world.run(Command::Lapse(StreamId::action(all[1])));
    assert_eq!(world.action(all[1]).state, ActionState::Parked { code: Code::TooLate });
    world.check();
}

#[test]
fn p06_what_may_have_happened_loses_no_time_in_which_it_may_be_made_again() {
    let mut world = world(&Real);
    let all = accepted(&mut world, SAME_KEY, 0..2);
    let (lost, _) = world.begun(all[1]);
    world.now = world.now + Span::seconds(80);
    world.run(Command::Lapse(lost.effect));
    let open_until = opened(&mut world, all[0]);
    // The key is known for 30 s more, and so the last attempt begins within 10 s.
    world.now = open_until - Span::micros(1);
    let last = lost.taken_at + Span::seconds(90);
    assert!(open_until <= last && put_off(&mut world, all[1]) == open_until, "there is time enough");
    world.now = open_until;
    let (probe, _) = world.begun(all[0]);
    world.now = last - Span::micros(1);
    assert!(probe.lease_until > world.now, "the probe is under way");
    let (again, _) = world.begun(all[1]);
    report(&mut world, &again, Outcome::Committed, None);
    assert!(matches!(world.action(all[1]).state, ActionState::Ended { result: Answer::Committed, .. }));
    world.check();
}

#[test]
fn a_person_may_say_that_a_destination_answers_and_is_recorded() {
    let mut world = world(&Real);
    let all = accepted(&mut world, TOOL, 0..2);
    let close = |world: &mut World<'_>, person: &str, reason: &str| {
        let (person, reason) = (identity(person), reason.to_owned());
        world.run(Command::CloseRoute(CloseRoute { destination: BANK.to_owned(), person, reason }))
    };
    assert_eq!(refused(close(&mut world, "os:owner", "it is up")).code, Code::RouteUnknown);
    opened(&mut world, all[0]);
    assert_eq!(refused(close(&mut world, "os:owner", " ")).code, Code::OutOfBounds);
    assert_eq!(refused(close(&mut world, "os:eve", "it is up")).code, Code::NotOperator);
    assert_eq!(close(&mut world, "os:owner", "it is up"), Reply::Done { changed: true });
    assert_eq!(close(&mut world, "os:owner", "it is up"), Reply::Done { changed: false });
    let Some(Body::RouteClosed(data, said)) = world.events.last().map(|event| event.event.body.clone())
    else {
        panic!("it is recorded")
    };
    assert!(data.proof.is_some());
    assert_eq!((said.person.as_deref(), said.reason.as_deref()), (Some("os:owner"), Some("it is up")));
    world.begun(all[1]);
    world.check();
}

#[test]
fn p08_what_cannot_be_read_stops_attempts_and_no_report() {
    let damaged = Damaged::default();
    let mut world = world(&damaged);
    damaged.one(world.pinned.tenant.route(BANK));
    let all = accepted(&mut world, r#"{"name":"send"}"#, 0..1);
    world.begun(all[0]);
    let guarded = accepted(&mut world, TOOL, 1..2)[0];
    assert_eq!(refused(world.claim(guarded, true)).code, Code::Corrupt);
    assert!(matches!(world.action(guarded).state, ActionState::Queued { code: None, .. }), "it waits");

    let mut sound = World::new(&Real, PAY);
    let guarded = accepted(&mut sound, TOOL, 1..2)[0];
    let (attempt, _) = sound.begun(guarded);
    sound.rules = &damaged;
    let settled = report(&mut sound, &attempt, Outcome::Ambiguous, ill(0));
    assert!(matches!(settled, Reply::Settled { state: EffectState::Ambiguous, .. }), "{settled:?}");
    assert_eq!(state(&sound), None);
    sound.check();
}
