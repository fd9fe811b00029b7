//! An approval counts once, and only together with the effect it permits.

use onceseal_core::action::{ActionState, Answer, Reach};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;

use crate::calls::Call;
use crate::doing::{asked, attempt};
use crate::world::{World, noon};
use crate::{pay, pay_world, refused};

fn granted(
    world: &mut World<'_>,
    call: Call,
) -> (onceseal_core::id::ActionId, onceseal_core::id::ApprovalId) {
    let (action, approval) = asked(world.call(call));
    world.answer(approval, "host:ada", Said::Yes);
    (action, approval)
}

#[test]
fn p02_ua_044_an_approval_permits_one_attempt_and_its_second_use_is_refused() {
    let mut world = pay_world();
    let (action, approval) = granted(&mut world, pay(5));
    let started = attempt(world.acquire(action, None));
    assert_eq!((started.action, started.approval, started.fence), (action, Some(approval), 1));
    let row = world.approval(approval);
    assert_eq!((row.status, row.consumed_by), (Status::Consumed, Some(action)));

    world.settle(&started, Outcome::Failed);
    let refusal = refused(world.call(Call { approval: Some(approval), ..pay(5) }));
    assert_eq!((refusal.code, refusal.status), (Code::ApprovalUsed, Some(Status::Consumed)));
    assert_eq!(world.effect("pay:1").map(|row| row.fence), Some(1));
    world.check();
}

#[test]
fn p02_a_refused_effect_leaves_the_approval_granted() {
    let mut world = pay_world();
    let (_, other) = granted(&mut world, Call { agent: "other", ..pay(5) });
    let (action, approval) = granted(&mut world, pay(5));
    let first = attempt(world.call(Call { agent: "other", approval: Some(other), ..pay(5) }));
    assert_eq!(refused(world.acquire(action, None)).code, Code::InProgress);
    assert_eq!(world.approval(approval).status, Status::Granted);
    world.settle(&first, Outcome::Ambiguous);
    assert_eq!(refused(world.acquire(action, None)).code, Code::Ambiguous);
    assert_eq!(world.approval(approval).status, Status::Granted);
    assert_eq!(world.action(action).state, ActionState::Waiting { approval }, "it may be tried again");
    world.check();
}

#[test]
fn p02_a_lapsed_lease_is_recorded_and_the_approval_stays_granted() {
    let mut world = pay_world();
    let (_, other) = granted(&mut world, Call { agent: "other", ..pay(5) });
    let (action, approval) = granted(&mut world, pay(5));
    attempt(world.call(Call { agent: "other", approval: Some(other), ..pay(5) }));
    world.now = noon() + Span::minutes(2) + Span::micros(1);
    assert_eq!(refused(world.acquire(action, None)).code, Code::Ambiguous);
    assert_eq!(world.effect("pay:1").map(|row| row.state), Some(EffectState::Ambiguous));
    assert_eq!(world.approval(approval).status, Status::Granted);
    world.check();
}

#[test]
fn p02_a_refused_approval_leaves_the_effect_untouched() {
    let mut world = pay_world();
    let (_, other) = granted(&mut world, Call { agent: "other", ..pay(5) });
    let (_, approval) = granted(&mut world, pay(5));
    attempt(world.call(Call { agent: "other", approval: Some(other), ..pay(5) }));
    world.now = noon() + Span::minutes(20);
    let before = world.effect("pay:1").cloned();
    let refusal = refused(world.call(Call { agent: "third", approval: Some(approval), ..pay(5) }));
    assert_eq!(refusal.code, Code::ApprovalMismatch);
    let refusal = refused(world.call(Call { approval: Some(approval), ..pay(5) }));
    assert_eq!(refusal.code, Code::ApprovalExpired);
    assert_eq!(world.effect("pay:1").cloned(), before, "not even the lapse is recorded");
    assert_eq!(world.approval(approval).status, Status::Expired, "that is");
}

#[test]
fn ua_047_an_approval_that_expired_after_it_was_granted_is_refused() {
    for late in [false, true] {
        let mut world = pay_world();
        let (action, approval) = granted(&mut world, pay(5));
        world.now = noon() + Span::minutes(15);
        if !late {
            attempt(world.acquire(action, None));
            continue;
        }
        world.now = world.now + Span::micros(1);
        let refusal = refused(world.acquire(action, None));
        assert_eq!((refusal.code, refusal.status), (Code::ApprovalExpired, Some(Status::Expired)));
        assert_eq!(world.approval(approval).status, Status::Expired);
        let ActionState::Ended { result, code, receipt } = world.action(action).state else { panic!() };
        assert_eq!(
            (result, code, Some(receipt)),
            (Answer::Blocked, Some(Code::ApprovalExpired), refusal.receipt)
        );
        world.check();
    }
}

#[test]
fn p02_an_action_that_has_no_effect_of_its_own_uses_its_approval_when_it_starts() {
    let policy = crate::PAY.replace("read: { decision: allow }", "read: { decision: approve }");
    let mut world = World::new(&crate::Real, &policy);
    let (action, approval) = granted(&mut world, crate::call("read", "{}"));
    let started = attempt(world.acquire(action, None));
    assert_eq!(started.key, None);
    assert_eq!(world.approval(approval).status, Status::Consumed);
    assert!(world.effect(&format!("act:{action}")).is_some(), "it has a lease and an outcome all the same");
}

#[test]
fn looking_whether_an_action_may_start_does_not_use_its_approval() {
    let mut world = pay_world();
    let (action, approval) = granted(&mut world, pay(5));
    let ready = world.call(Call { action: Some(action), reach: Reach::Ready, ..pay(5) });
    assert_eq!(ready, Reply::Ready { action, until: noon() + Span::minutes(15) });
    assert_eq!(world.approval(approval).status, Status::Granted);
}

#[test]
fn an_identical_proposal_may_use_the_approval_and_ends_the_action_that_waited_for_it() {
    let mut world = pay_world();
    let (waiting, approval) = granted(&mut world, pay(5));
    let started = attempt(world.call(Call { approval: Some(approval), ..pay(5) }));
    assert_ne!(started.action, waiting);
    let ActionState::Ended { result, code, .. } = world.action(waiting).state else { panic!() };
    assert_eq!((result, code), (Answer::Blocked, Some(Code::ApprovalUsed)));
    world.check();
}
