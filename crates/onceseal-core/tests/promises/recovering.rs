//! What becomes of an operation whose attempt came to no known end.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{
    Begin, EffectState, Finding, Holding, Outcome, Reconcile, Renew, Resolve, Settle,
};
use onceseal_core::id::ActionId;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::operation::{Claim, GiveBack, Next, Postpone};
use onceseal_core::reply::{Attempt, Question, Reply, Standing};
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::{Declare, Tool};

use crate::calls::{identity, settle};
use crate::operating::{claimed, operation, standing};
use crate::world::World;
use crate::{pay_world, refused, send};

const NEVER: &str = r#"{"name":"send"}"#;
const SAME_KEY: &str = r#"{"name":"send","recovery":"same_key","key_ttl":"10m"}"#;
const ASK: &str = r#"{"name":"send","recovery":"ask","settle":"2m"}"#;

fn accepted(contract: &str) -> (World<'static>, ActionId) {
    let mut world = pay_world();
    let contract = world.declare(contract);
    let order = world.order(send(1), contract, "key-1");
    let action = world.accepted(&order);
    (world, action)
}

/// The lease ends without a word.
fn lapse(world: &mut World<'_>, attempt: &Attempt) {
    world.now = world.now.max(attempt.lease_until + Span::micros(1));
    world.run(Command::Lapse(attempt.effect));
}

fn state(world: &World<'_>) -> EffectState {
    world.effect("send:1").expect("an effect").state
}

fn absent(world: &mut World<'_>, action: ActionId, at: Timestamp) -> Reply {
    let contract = world.action(action).operation.as_ref().expect("an operation").contract;
    world.run(Command::Claim(Claim { action, contract, lease: None, begin: true, absent: Some(at) }))
}

#[test]
fn p06_by_default_an_attempt_that_had_begun_is_unknown_and_nothing_is_made_again() {
    let (mut world, action) = accepted(NEVER);
    let (attempt, _) = world.begun(action);
    lapse(&mut world, &attempt);
    assert_eq!(state(&world), EffectState::Ambiguous);
    assert_eq!(standing(world.claim(action, true)), Standing::Unknown);
    let resolve = Resolve {
        effect: attempt.effect,
        fence: 1,
        happened: true,
        reason: "seen at the remote".to_owned(),
        evidence: None,
        person: identity("os:owner"),
    };
    world.run(Command::Resolve(resolve));
    let now = standing(world.claim(action, true));
    assert!(matches!(now, Standing::Ended { result: Answer::Committed, .. }), "{now:?}");
    world.check();
}

#[test]
fn p03_an_attempt_is_made_again_only_with_the_same_key_and_within_the_keys_life() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, job) = world.begun(action);
    let begun_at = world.now;
    lapse(&mut world, &first);
    assert!(world.action(action).receipt().is_none(), "it goes on");
    let (second, again) = world.begun(action);
    assert_eq!((second.fence, &again.provider_key), (2, &job.provider_key));
    // The last moment at which the whole lease lies within the key's life.
    world.now = begun_at + Span::minutes(10) - second.lease;
    world.run(Command::Lapse(second.effect));
    let (third, _) = world.begun(action);
    assert_eq!(third.fence, 3);
    lapse(&mut world, &third);
    assert_eq!(standing(world.claim(action, true)), Standing::Unknown, "afterwards as `never`");
    assert!(world.action(action).receipt().is_some());
    world.check();
}

#[test]
fn p03_a_key_that_outlived_its_life_while_it_waited_is_not_used_again() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, _) = world.begun(action);
    lapse(&mut world, &first);
    world.now = world.now + Span::minutes(10);
    let refusal = refused(world.claim(action, true));
    assert_eq!((refusal.code, refusal.receipt.is_some()), (Code::Ambiguous, true));
    assert_eq!(standing(world.claim(action, true)), Standing::Unknown);
    world.check();
}

#[test]
fn p03_where_the_remote_is_asked_nothing_is_made_again_before_it_said_absent_in_time() {
    let (mut world, action) = accepted(ASK);
    let (first, job) = world.begun(action);
    lapse(&mut world, &first);
    let early = world.now;
    assert!(matches!(standing(world.claim(action, true)), Standing::Unknown), "not due before it settled");
    world.now = first.lease_until + Span::minutes(2);
    let Reply::Ask(Question::Remote { asked_at, job: asked }) = world.claim(action, true) else {
        panic!("the remote is to be asked")
    };
    assert_eq!((asked.fence, &asked.provider_key), (1, &job.provider_key));
    let too_early = absent(&mut world, action, early);
    assert!(matches!(too_early, Reply::Ask(_)), "asked too early it may still come: {too_early:?}");
    let (second, again) = claimed(absent(&mut world, action, asked_at));
    assert_eq!((second.fence, again.provider_key), (2, job.provider_key));
    world.check();
}

#[test]
fn what_the_remote_found_is_the_answer_also_while_it_waits_to_be_made_again() {
    for contract in [SAME_KEY, ASK] {
        let (mut world, action) = accepted(contract);
        let (first, _) = world.begun(action);
        lapse(&mut world, &first);
        let reconcile = Reconcile {
            effect: first.effect,
            fence: 1,
            finding: Finding::Committed(Some("{}".to_owned())),
            evidence: None,
            remote: None,
            settle: Span::ZERO,
        };
        world.run(Command::Reconcile(reconcile));
        assert_eq!(state(&world), EffectState::Committed);
        let now = standing(world.claim(action, true));
        assert!(matches!(now, Standing::Ended { result: Answer::Committed, .. }), "{now:?}");
        world.check();
    }
}

#[test]
fn an_attempt_that_was_claimed_and_never_begun_is_given_back_whatever_its_contract() {
    for contract in [NEVER, SAME_KEY, ASK] {
        let (mut world, action) = accepted(contract);
        let (attempt, _) = claimed(world.claim(action, false));
        lapse(&mut world, &attempt);
        assert_eq!(state(&world), EffectState::Queued, "nothing ran");
        let begin = Begin { attempt: (&attempt).into(), lease: attempt.lease };
        assert!(matches!(world.run(Command::Begin(begin)), Reply::Refused(_)), "it is too late to begin");
        assert_eq!(claimed(world.claim(action, true)).0.fence, 2);
        world.check();
    }
}

#[test]
fn p04_a_worker_that_lost_its_lease_changes_nothing_once_another_has_claimed() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, _) = world.begun(action);
    lapse(&mut world, &first);
    let (second, _) = world.begun(action);
    assert_eq!(refused(world.settle(&first, Outcome::Committed)).code, Code::Fenced);
    assert_eq!(refused(world.settle(&first, Outcome::Failed)).code, Code::Fenced);
    assert_eq!(state(&world), EffectState::Executing);
    let late = world.events.iter().filter(|event| event.event.body.kind().as_str() == "effect.late");
    assert_eq!(late.count(), 1, "its word is kept once");
    world.settle(&second, Outcome::Committed);
    assert_eq!(state(&world), EffectState::Committed);
    world.check();
}

#[test]
fn ua_086_ua_092_whoever_takes_over_is_not_taken_for_who_was_there_before_whatever_both_are_called() {
    let (mut world, action) = accepted(SAME_KEY);
    let (dead, _) = world.begun(action);
    lapse(&mut world, &dead);
    // The same host, account, process number and program: none of it counts.
    let (new, _) = world.begun(action);
    let renew = |attempt: &Attempt| Command::Renew(Renew { attempt: attempt.into(), lease: attempt.lease });
    assert_eq!(refused(world.run(renew(&dead))).code, Code::InProgress);
    assert!(matches!(world.run(renew(&new)), Reply::Renewed { .. }));
    assert_eq!(refused(world.settle(&dead, Outcome::Committed)).code, Code::Fenced);
    assert_eq!(state(&world), EffectState::Executing);
    world.check();
}

#[test]
fn ua_019_a_contract_whose_attempts_may_outlive_the_key_is_told_of() {
    for (contract, outlives) in [
        (r#"{"name":"send","recovery":"same_key","key_ttl":"24h"}"#, false),
        (r#"{"name":"send","recovery":"same_key","key_ttl":"24h","deliver_within":"25h"}"#, true),
        (r#"{"name":"send","recovery":"same_key","key_ttl":"10m"}"#, true),
        (r#"{"name":"send","recovery":"ask","settle":"2m"}"#, false),
        (NEVER, false),
    ] {
        let Ok(Value::Object(document)) = json::read(contract.as_bytes(), &Limits::DATA) else { panic!() };
        let tool = Tool::compile(&document).expect("a contract");
        assert_eq!(tool.contract.outlives_its_key(), outlives, "{contract}");
    }
}

#[test]
fn p04_a_word_that_comes_after_the_lease_counts_until_somebody_else_has_answered() {
    for (outcome, state_then) in [(Outcome::Committed, "committed"), (Outcome::Failed, "queued")] {
        let (mut world, action) = accepted(SAME_KEY);
        let (first, _) = world.begun(action);
        lapse(&mut world, &first);
        assert!(matches!(world.settle(&first, outcome), Reply::Settled { .. }));
        assert_eq!(state(&world).as_str(), state_then);
        assert!(!matches!(world.action(action).state, ActionState::Running { .. }));
        world.check();
    }
}

#[test]
fn a_definite_no_is_parked_visible_retryable_and_cancellable() {
    let (mut world, action) = accepted(NEVER);
    let (attempt, job) = world.begun(action);
    for repeated in [false, true] {
        let reply = world.settle(&attempt, Outcome::Failed);
        assert_eq!(reply, Reply::Settled { state: EffectState::Failed, receipt: None, repeated });
    }
    assert_eq!(world.action(action).state, ActionState::Parked { code: Code::NotExecuted });
    assert_eq!(standing(world.claim(action, true)), Standing::Parked { code: Code::NotExecuted });
    assert_eq!(refused(world.call(send(1))).code, Code::InProgress, "its key waits with it");
    assert_eq!(world.retry(action, "os:owner"), Reply::Done { changed: true });
    let (again, anew) = world.begun(action);
    assert_ne!(anew.provider_key, job.provider_key, "another wish for the remote");
    world.settle(&again, Outcome::Failed);
    assert_eq!(world.cancel(action, "os:owner"), Reply::Done { changed: true });
    let now = standing(world.claim(action, true));
    assert!(matches!(now, Standing::Ended { result: Answer::Cancelled, .. }), "{now:?}");
    assert!(world.action(action).receipt().is_some());
    crate::doing::attempt(world.call(send(1)));
    world.check();
}

#[test]
fn p06_a_repeated_attempt_that_was_not_executed_says_nothing_of_the_one_before() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, job) = world.begun(action);
    world.settle(&first, Outcome::Ambiguous);
    let (second, _) = world.begun(action);
    for repeated in [false, true] {
        let reply = world.settle(&second, Outcome::Failed);
        assert_eq!(reply, Reply::Settled { state: EffectState::Ambiguous, receipt: None, repeated });
    }
    assert_eq!(refused(world.cancel(action, "os:owner")).code, Code::Ambiguous, "it may have happened");
    let (third, again) = world.begun(action);
    assert_eq!((third.fence, again.provider_key), (3, job.provider_key), "it is still the same wish");
    world.check();
}

#[test]
fn p03_a_repeated_attempt_is_renewed_no_longer_than_the_key_lives() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, _) = world.begun(action);
    let forgotten = world.now + Span::minutes(10);
    lapse(&mut world, &first);
    world.now = forgotten - Span::minutes(1);
    let (second, _) = world.begun(action);
    let attempt = Holding::from(&second);
    let renew = Renew { attempt, lease: Span::hours(1) };
    assert_eq!(world.run(Command::Renew(renew)), Reply::Renewed { lease_until: forgotten });
    world.check();
}

#[test]
fn what_is_unknown_is_not_made_again_at_once_if_its_worker_says_when() {
    let (mut world, action) = accepted(SAME_KEY);
    let (first, _) = world.begun(action);
    let again = Some(Span::seconds(7));
    world.run(Command::Settle(Settle { again, ..settle((&first).into(), Outcome::Ambiguous) }));
    assert_eq!(
        world.action(action).state,
        ActionState::Queued { due: world.now + Span::seconds(7), code: Some(Code::Ambiguous) }
    );
    world.check();
}

#[test]
fn p14_what_nobody_carries_out_is_given_up_though_no_worker_has_its_contract() {
    let (mut world, action) = accepted(r#"{"name":"send","deliver_within":"1h"}"#);
    let stream = onceseal_core::stream::StreamId::action(action);
    assert_eq!(world.run(Command::Lapse(stream)), Reply::Done { changed: false });
    world.now = world.now + Span::hours(1) + Span::micros(1);
    assert_eq!(world.run(Command::Lapse(stream)), Reply::Done { changed: true });
    assert_eq!(world.action(action).state, ActionState::Parked { code: Code::TooLate });
    assert_eq!(state(&world), EffectState::Released);
    world.check();
}

#[test]
fn the_policys_limit_of_attempts_holds_for_workers() {
    let (mut world, action) = accepted(NEVER);
    let (first, _) = world.begun(action);
    world.settle(&first, Outcome::Failed);
    world.activate("schema: onceseal.policy/v1\nactions:\n  send: { effect: \"send:{id}\", max_attempts: 1, decision: allow }\n");
    world.retry(action, "os:owner");
    assert_eq!(refused(world.claim(action, true)).code, Code::AttemptLimit);
    world.check();
}

#[test]
fn why_an_attempt_did_not_happen_is_told_until_there_is_another() {
    let (mut world, action) = accepted(NEVER);
    let (first, _) = world.begun(action);
    let code = Some("status_402".to_owned());
    world.run(Command::Settle(Settle { code, ..settle((&first).into(), Outcome::Failed) }));
    assert_eq!(world.effect("send:1").expect("an effect").code.as_deref(), Some("status_402"));
    world.retry(action, "os:owner");
    world.begun(action);
    assert_eq!(world.effect("send:1").expect("an effect").code, None);
    world.check();
}

#[test]
fn what_was_not_executed_may_be_put_off_instead() {
    let (mut world, action) = accepted(NEVER);
    let (attempt, _) = world.begun(action);
    let again = Some(Span::minutes(1));
    world.run(Command::Settle(Settle { again, ..settle((&attempt).into(), Outcome::Failed) }));
    assert_eq!(
        world.action(action).state,
        ActionState::Queued { due: world.now + Span::minutes(1), code: Some(Code::NotExecuted) }
    );
    assert!(matches!(standing(world.claim(action, true)), Standing::Queued { .. }));
    world.now = world.now + Span::minutes(1);
    world.begun(action);
    world.check();
}

#[test]
fn ua_028_what_may_have_happened_is_not_called_off_and_a_retry_only_hastens_what_its_contract_lets_be() {
    for contract in [SAME_KEY, ASK, NEVER] {
        let (mut world, action) = accepted(contract);
        let (attempt, job) = world.begun(action);
        for reply in [world.cancel(action, "os:owner"), world.retry(action, "os:owner")] {
            assert!(matches!(standing(reply), Standing::Running { .. }));
        }
        lapse(&mut world, &attempt);
        if contract == NEVER {
            for reply in [world.cancel(action, "os:owner"), world.retry(action, "os:owner")] {
                assert!(matches!(standing(reply), Standing::Ended { .. } | Standing::Unknown));
            }
            continue;
        }
        assert_eq!(refused(world.cancel(action, "os:owner")).code, Code::Ambiguous);
        let postpone = Postpone { action, after: Span::minutes(5), code: Code::RouteOpen };
        world.run(Command::Postpone(postpone));
        assert!(matches!(standing(world.claim(action, true)), Standing::Unknown), "not due");
        let until = world.action(action).operation.as_ref().expect("an operation").until;
        assert_eq!(world.retry(action, "os:owner"), Reply::Done { changed: true });
        assert_eq!(world.action(action).operation.as_ref().expect("an operation").until, until);
        match contract {
            SAME_KEY => assert_eq!(world.begun(action).1.provider_key, job.provider_key),
            _ => {
                assert_eq!(refused(world.claim(action, true)).code, Code::TooEarly, "nobody is asked sooner")
            }
        }
        world.check();
    }
}

#[test]
fn p15_who_retries_or_cancels_must_be_proven_and_is_recorded() {
    let (mut world, action) = accepted(NEVER);
    for (person, code) in [("os:mallory", Code::NotOperator), ("host:bot", Code::AgentCannotAnswer)] {
        assert_eq!(refused(world.cancel(action, person)).code, code);
        assert_eq!(refused(world.retry(action, person)).code, code);
    }
    world.cancel(action, "os:owner");
    let said = world.events.last().expect("an event");
    let mut sealed = String::new();
    said.event.body.write_sealed(&mut sealed);
    assert_eq!(sealed, r#"{"person":"os:owner","reason":"not wanted"}"#);
    world.check();
}

#[test]
fn p14_what_was_not_carried_out_in_time_is_parked_and_its_key_is_free() {
    let (mut world, action) = accepted(r#"{"name":"send","deliver_within":"1h"}"#);
    world.now = world.now + Span::hours(1);
    let (attempt, _) = claimed(world.claim(action, false));
    let next = Next::Later { after: Span::micros(1), code: Code::AuthorizationDenied };
    world.run(Command::GiveBack(GiveBack { attempt: Holding::from(&attempt), next }));
    world.now = world.now + Span::micros(1);
    assert_eq!(refused(world.claim(action, true)).code, Code::TooLate);
    assert_eq!(state(&world), EffectState::Released);
    let other = crate::doing::attempt(world.call(send(1)));
    assert_eq!(refused(world.retry(action, "os:owner")).code, Code::InProgress, "somebody else has it");
    world.settle(&other, Outcome::Failed);
    assert_eq!(world.retry(action, "os:owner"), Reply::Done { changed: true });
    world.begun(action);
    world.check();
}

#[test]
fn work_of_a_contract_that_was_retired_is_parked_and_goes_on_when_it_is_active_again() {
    let (mut world, action) = accepted(NEVER);
    let contract = world.action(action).operation.as_ref().expect("an operation").contract;
    world.run(Command::Declare(Declare::Retire { name: "send".to_owned(), contract }));
    assert_eq!(refused(world.claim(action, true)).code, Code::ContractRetired);
    assert_eq!(standing(world.claim(action, true)), Standing::Parked { code: Code::ContractRetired });
    world.declare(NEVER);
    world.retry(action, "os:owner");
    world.begun(action);
    world.check();
}

#[test]
fn a_worker_carries_out_only_what_it_has_the_contract_of() {
    let (mut world, action) = accepted(NEVER);
    let contract = world.declare(SAME_KEY);
    let claim = Claim { action, contract, lease: None, begin: true, absent: None };
    assert_eq!(refused(world.run(Command::Claim(claim))).code, Code::ToolUnknown);
    world.check();
}

#[test]
fn what_is_due_and_held_by_nobody_may_be_put_off() {
    let (mut world, action) = accepted(NEVER);
    let postpone = Postpone { action, after: Span::minutes(1), code: Code::TooEarly };
    assert_eq!(world.run(Command::Postpone(postpone.clone())), Reply::Done { changed: true });
    assert_eq!(world.run(Command::Postpone(postpone)), Reply::Done { changed: false }, "it is not due");
    world.now = world.now + Span::minutes(1);
    let (attempt, _) = world.begun(action);
    let postpone = Postpone { action: attempt.action, after: Span::minutes(1), code: Code::TooEarly };
    assert_eq!(world.run(Command::Postpone(postpone)), Reply::Done { changed: false }, "it runs");
    world.check();
}

#[test]
fn an_unknown_operation_is_told_as_such_to_whoever_dispatches_it_again() {
    let (mut world, action) = accepted(SAME_KEY);
    let contract = world.action(action).operation.as_ref().expect("an operation").contract;
    let order = world.order(send(1), contract, "key-1");
    let (attempt, _) = world.begun(action);
    let live = operation(world.dispatch(&order));
    assert_eq!(live.standing, Standing::Running { lease_until: Some(attempt.lease_until) });
    world.now = attempt.lease_until + Span::micros(1);
    let now = operation(world.dispatch(&order));
    assert_eq!((now.standing, now.status_ref), (Standing::Unknown, live.status_ref));
    assert_eq!(state(&world), EffectState::Ambiguous, "whoever meets a lapse records it");
    world.check();
}
