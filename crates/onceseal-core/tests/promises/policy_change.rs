//! What another policy does to actions that wait and approvals that were given.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::approval::{Revoke, Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::policy::Activate;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use crate::calls::Call;
use crate::doing::{asked, attempt};
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{PAY, pay, pay_world, refused};

fn changed(decision: &str) -> String {
    PAY.replace("decision: approve", decision)
}

fn granted_then(policy: &str) -> (World<'static>, ActionId, ApprovalId) {
    let mut world = pay_world();
    let (action, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    world.activate(policy);
    (world, action, approval)
}

fn revoked_for(world: &World<'_>, approval: ApprovalId) -> Option<Revoke> {
    let row = world.approval(approval);
    (row.status == Status::Revoked).then_some(row.revoked).flatten()
}

#[test]
fn p01_a_changed_rule_that_denies_ends_the_action_and_takes_the_approval_back() {
    let (mut world, action, approval) = granted_then(&changed("decision: deny"));
    let refusal = refused(world.acquire(action, None));
    assert_eq!((refusal.code, refusal.reason.as_deref()), (Code::PolicyDenied, Some("decision")));
    assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
    let ActionState::Ended { result, .. } = world.action(action).state else { panic!() };
    assert_eq!(result, Answer::Denied);
    world.check();
}

#[test]
fn p01_a_changed_rule_that_asks_makes_a_new_request_in_the_same_command() {
    let (mut world, action, approval) =
        granted_then(&PAY.replace("lease: 2m\n    decision: approve", "lease: 1m\n    decision: approve"));
    let (same, second) = asked(world.acquire(action, None));
    assert!(same == action && second != approval);
    assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
    assert_eq!(world.action(action).state, ActionState::Waiting { approval: second });
    world.answer(second, "host:ada", Said::Yes);
    let started = attempt(world.acquire(action, None));
    assert_eq!((started.approval, started.lease), (Some(second), Span::minutes(1)));
    world.check();
}

#[test]
fn p01_a_changed_rule_that_allows_goes_on_without_the_approval() {
    let (mut world, action, approval) = granted_then(&changed("decision: allow"));
    let started = attempt(world.acquire(action, None));
    assert_eq!((started.action, started.approval), (action, None));
    assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
    world.check();
}

#[test]
fn p01_a_change_elsewhere_in_the_policy_leaves_the_approval_as_it_is() {
    let (mut world, action, approval) =
        granted_then(&PAY.replace("read: { decision: allow }", "read: { decision: deny }"));
    assert_eq!(attempt(world.acquire(action, None)).approval, Some(approval));
}

#[test]
fn no_waiting_action_is_left_without_an_open_request() {
    // The rule changes while another attempt holds the key: the old approval is
    // void, nobody is asked about a refused key, so the action ends.
    for decision in ["decision: allow", "decision: deny", "approval: { ttl: 5m }\n    decision: approve"] {
        let mut world = pay_world();
        let (_, first) = asked(world.call(Call { agent: "other", ..pay(5) }));
        let (action, approval) = asked(world.call(pay(5)));
        world.answer(first, "host:ada", Said::Yes);
        world.answer(approval, "host:ada", Said::Yes);
        attempt(world.call(Call { agent: "other", ..pay(5) }));
        let policy = changed(decision).replacen("    approval: { ttl: 15m }\n", "", 1);
        world.activate(&policy);
        let refusal = refused(world.acquire(action, None));
        assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
        assert!(refusal.receipt.is_some(), "{decision}: {refusal:?}");
        assert!(matches!(world.action(action).state, ActionState::Ended { .. }), "{decision}");
        world.check();
    }
}

#[test]
fn an_action_whose_rule_changed_joins_an_identical_question_and_does_not_wait_for_a_void_one() {
    let (mut world, action, approval) =
        granted_then(&changed("approval: { ttl: 5m }\n    decision: approve").replacen(
            "    approval: { ttl: 15m }\n",
            "",
            1,
        ));
    let (second, fresh) = asked(world.call(pay(5)));
    assert!(second != action && fresh != approval, "asked under the new rule");
    let Reply::ApprovalNeeded { action: joined, approval: on, .. } = world.acquire(action, None) else {
        panic!()
    };
    assert_eq!((joined, on), (second, fresh));
    assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
    assert!(matches!(
        world.action(action).state,
        ActionState::Ended { code: Some(Code::ApprovalRevoked), .. }
    ));
    world.check();
}

#[test]
fn presenting_an_outdated_approval_when_ones_own_request_has_expired_asks_once_more() {
    let short = PAY.replace("ttl: 15m", "ttl: 1m");
    let mut world = pay_world();
    let (_, old) = asked(world.call(pay(5)));
    world.answer(old, "host:ada", Said::Yes);
    world.activate(&short);
    let (action, own) = asked(world.call(pay(5)));
    world.now = noon() + Span::minutes(2);
    let (same, third) = asked(world.acquire(action, Some(old)));
    assert_eq!(same, action);
    assert_eq!(world.action(action).state, ActionState::Waiting { approval: third });
    assert_eq!(
        (world.approval(own).status, revoked_for(&world, old)),
        (Status::Expired, Some(Revoke::PolicyChanged))
    );
    world.check();
}

#[test]
fn approver_removed_too_few_of_those_who_said_yes_still_count() {
    let groups = |members: &str| {
        PAY.replace("ttl: 15m", "ttl: 15m, approvers: [bosses]")
            .replace("actions:", &format!("groups: {{ bosses: [{members}] }}\nactions:"))
    };
    let mut world = World::new(&Real, &groups("\"host:ada\", \"host:bob\""));
    let (action, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    world.activate(&groups("\"host:bob\""));
    let (same, second) = asked(world.acquire(action, None));
    assert_eq!(same, action);
    assert_eq!(revoked_for(&world, approval), Some(Revoke::ApproverRemoved));
    assert_eq!(refused(world.answer(second, "host:ada", Said::Yes)).code, Code::NotEntitled);
    world.answer(second, "host:bob", Said::Yes);
    assert_eq!(attempt(world.acquire(action, None)).approval, Some(second));
    world.check();
}

#[test]
fn a_pending_request_of_another_rule_is_revoked_when_met_or_swept() {
    for met in [true, false] {
        let mut world = pay_world();
        let (action, approval) = asked(world.call(pay(5)));
        world.activate(&changed("decision: deny"));
        if met {
            let refusal = refused(world.answer(approval, "host:ada", Said::Yes));
            assert_eq!((refusal.code, refusal.status), (Code::ApprovalRevoked, Some(Status::Revoked)));
        } else {
            world.run(Command::Lapse(StreamId::approval(approval)));
        }
        assert_eq!(revoked_for(&world, approval), Some(Revoke::PolicyChanged));
        assert!(matches!(
            world.action(action).state,
            ActionState::Ended { code: Some(Code::ApprovalRevoked), .. }
        ));
        world.check();
    }
}

#[test]
fn a_proposal_prepared_under_another_policy_is_prepared_again() {
    let mut world = pay_world();
    let proposal = world.prepare(&pay(5)).expect("a proposal");
    world.activate(&changed("decision: deny"));
    let active = world.policy();
    let run = onceseal_core::action::Run {
        proposal,
        action: None,
        approval: None,
        reach: onceseal_core::action::Reach::Executing,
        lease: None,
        deadline: None,
    };
    let recorded = world.events.len();
    assert_eq!(world.run(Command::Run(Box::new(run))), Reply::PolicyStale { active: active.hash });
    assert_eq!(world.events.len(), recorded);
}

#[test]
fn two_policy_files_cannot_take_turns() {
    let mut world = pay_world();
    let first = world.policy();
    world.activate(&changed("decision: deny"));
    let second = world.policy();
    let open = |policy| Command::Activate(Activate { policy, again: false, person: None });
    assert_eq!(refused(world.run(open(first.clone()))).code, Code::PolicyFileOld);
    assert_eq!(world.run(open(second.clone())), Reply::Policy { active: second.hash, changed: false });
    let apply = Command::Activate(Activate { policy: first.clone(), again: true, person: None });
    assert_eq!(world.run(apply), Reply::Policy { active: first.hash, changed: true });
    world.check();
}

#[test]
fn p08_without_an_active_policy_nothing_runs() {
    let proposal = pay_world().prepare(&pay(5)).expect("a proposal");
    let mut bare = World::empty(&Real);
    let run = onceseal_core::action::Run {
        proposal,
        action: None,
        approval: None,
        reach: onceseal_core::action::Reach::Executing,
        lease: None,
        deadline: None,
    };
    assert_eq!(refused(bare.run(Command::Run(Box::new(run)))).code, Code::PolicyMissing);
    assert!(bare.events.is_empty());
}
