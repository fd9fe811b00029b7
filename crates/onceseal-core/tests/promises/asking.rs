//! When a person is asked, and when an earlier question or answer does.

use onceseal_core::action::{ActionState, Answer, Reach};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::effect::Outcome;
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;

use crate::calls::{Call, call};
use crate::doing::{asked, attempt};
use crate::executor::Real;
use crate::world::{World, noon};
use crate::{pay, pay_world, refused, send};

#[test]
fn ua_020_identical_proposals_share_one_request_and_record_nothing() {
    let mut world = pay_world();
    let (action, approval) = asked(world.call(pay(5)));
    let recorded = world.events.len();
    assert!(matches!(
        world.call(pay(5)),
        Reply::ApprovalNeeded { action: a, approval: b, joined: true, .. } if (a, b) == (action, approval)
    ));
    assert_eq!(world.events.len(), recorded);
    let (other, another) = asked(world.call(Call { agent: "other", ..pay(5) }));
    assert!(other != action && another != approval, "another principal is another question");
    world.check();
}

#[test]
fn a_joined_proposal_runs_the_action_that_waited_once_it_is_granted() {
    let mut world = pay_world();
    let (action, approval) = asked(world.call(pay(5)));
    world.call(pay(5));
    world.answer(approval, "host:ada", Said::Yes);
    let started = attempt(world.call(pay(5)));
    assert_eq!((started.action, started.approval), (action, Some(approval)));
    assert_eq!(refused(world.call(pay(5))).code, Code::InProgress, "and not twice");
    world.check();
}

#[test]
fn nobody_is_asked_about_a_key_that_would_be_refused() {
    let mut world = pay_world();
    let (_, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    let started = attempt(world.call(pay(5)));
    let other = || Call { agent: "other", ..pay(5) };
    assert_eq!(refused(world.call(other())).code, Code::InProgress);
    world.settle(&started, Outcome::Ambiguous);
    assert_eq!(refused(world.call(other())).code, Code::Ambiguous);
    let asked = |world: &World<'_>| {
        let kinds = world.events.iter().map(|e| e.event.body.kind().as_str());
        kinds.filter(|kind| *kind == "approval.requested").count()
    };
    assert_eq!(asked(&world), 1);
    world.check();
}

#[test]
fn a_no_is_remembered_for_the_same_wish_until_the_request_expires() {
    let mut world = pay_world();
    let (_, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::No);
    let note = || Call { arguments: r#"{"amount":5,"id":1,"note":"please"}"#.into(), ..pay(5) };
    let agent = || Call { agent: "other", ..pay(5) };
    for again in [pay(5), note(), agent()] {
        let refusal = refused(world.call(again));
        assert_eq!((refusal.code, refusal.approval), (Code::ApprovalDenied, Some(approval)));
    }
    asked(world.call(pay(6)));
    world.now = noon() + Span::minutes(15);
    assert_eq!(refused(world.call(agent())).code, Code::ApprovalDenied);
    world.now = world.now + Span::micros(1);
    let (_, second) = asked(world.call(agent()));
    assert_ne!(second, approval);
    world.check();
}

#[test]
fn a_request_past_its_expiry_is_recorded_as_expired_when_met_and_asked_anew() {
    let mut world = pay_world();
    let (first, approval) = asked(world.call(pay(5)));
    world.now = noon() + Span::minutes(15) + Span::micros(1);
    let (second, another) = asked(world.call(pay(5)));
    assert!(first != second && approval != another);
    assert_eq!(world.approval(approval).status, Status::Expired);
    assert!(matches!(world.action(first).state, ActionState::Ended { result: Answer::Blocked, .. }));
    world.check();
}

#[test]
fn what_nobody_could_answer_is_not_asked() {
    let ask = |terms: &str, owner: Option<&str>| {
        let policy = crate::PAY.replace("ttl: 15m", &format!("ttl: 15m, {terms}")).replace(
            "actions:",
            "groups: { bosses: [\"os:owner\"], pair: [\"os:owner\", \"host:owner\"] }\nactions:",
        );
        let mut world = World::new(&Real, &policy);
        world.pinned.owner = owner.map(str::to_owned);
        world.call(pay(5))
    };
    let owner = Some("os:owner");
    for (terms, owner) in [
        ("proof: [os], quorum: 2", owner),
        ("proof: [os]", None),
        ("proof: [os], approvers: [bosses]", Some("os:guest")),
        ("approvers: [bosses]", None),
        ("approvers: [pair], quorum: 2", owner),
    ] {
        let refusal = refused(ask(terms, owner));
        assert_eq!(refusal.code, Code::ApprovalUnanswerable, "{terms} {owner:?}");
        assert!(refusal.receipt.is_some());
    }
    for (terms, owner) in [
        ("quorum: 2", owner),
        ("quorum: 2", None),
        ("proof: [os]", owner),
        ("proof: [os], approvers: [bosses]", owner),
        ("approvers: [bosses]", owner),
        ("approvers: [pair]", None),
    ] {
        asked(ask(terms, owner));
    }
}

#[test]
fn a_caller_resumes_by_its_own_id_whatever_the_state() {
    let mut world = pay_world();
    let id = onceseal_core::id::ActionId([5; 16]);
    let mine = || Call { action: Some(id), ..pay(5) };
    let (action, approval) = asked(world.call(mine()));
    assert_eq!(action, id);
    assert!(matches!(world.call(mine()), Reply::ApprovalNeeded { joined: true, .. }));
    world.answer(approval, "host:ada", Said::Yes);
    let started = attempt(world.call(mine()));
    assert_eq!(started.action, id);
    assert_eq!(refused(world.call(mine())).code, Code::InProgress);
    world.settle(&started, Outcome::Committed);
    for _ in 0..2 {
        assert!(matches!(
            world.call(mine()),
            Reply::Ended { action, result: Answer::Committed, code: None, .. } if action == id
        ));
    }
    assert_eq!(refused(world.call(Call { action: Some(id), ..pay(6) })).code, Code::IdReused);
    assert_eq!(refused(world.call(Call { action: Some(id), ..send(1) })).code, Code::IdReused);
    world.check();
}

#[test]
fn a_known_id_means_the_same_call_also_when_the_policy_redacts_or_names_otherwise_now() {
    let id = onceseal_core::id::ActionId([5; 16]);
    let noted =
        |note: &str| Call { action: Some(id), ..call("send", &format!(r#"{{"id":1,"note":"{note}"}}"#)) };
    for now in ["redact: [note], ", r#"resource: "box:{note}", "#] {
        let mut world = pay_world();
        let started = attempt(world.call(Call { resource: Some("box:x"), ..noted("x") }));
        world.settle(&started, Outcome::Committed);
        world.activate(&crate::PAY.replace("send: { ", &format!("send: {{ {now}")));
        let resource = if now.starts_with("redact") { Some("box:x") } else { None };
        let again = world.call(Call { resource, ..noted("x") });
        assert!(matches!(again, Reply::Ended { result: Answer::Committed, .. }), "{again:?}");
        assert_eq!(refused(world.call(Call { resource, ..noted("y") })).code, Code::IdReused);
        world.check();
    }
}

#[test]
fn an_unknown_action_cannot_be_acquired() {
    let mut world = pay_world();
    let reply = world.acquire(onceseal_core::id::ActionId([5; 16]), None);
    assert_eq!(refused(reply).code, Code::ActionUnknown);
}

#[test]
fn p14_a_wait_for_a_person_takes_nothing_from_the_attempts_time() {
    let mut world = pay_world();
    let (action, approval) = asked(world.call(pay(5)));
    world.now = noon() + Span::minutes(14);
    world.answer(approval, "host:ada", Said::Yes);
    let started = attempt(world.acquire(action, None));
    assert_eq!(started.lease_until, world.now + Span::minutes(2));
    assert_eq!(started.deadline, world.now + Span::minutes(10));
}

#[test]
fn what_is_ready_by_an_approval_is_an_action_that_can_be_started() {
    for asker_waits in [true, false] {
        let mut world = pay_world();
        let (asker, approval) = asked(world.call(pay(5)));
        world.answer(approval, "host:ada", Said::Yes);
        if !asker_waits {
            // Another key of the same call: the asker goes on without its approval.
            world.activate(&crate::PAY.replace("decision: approve", "decision: allow"));
            attempt(world.acquire(asker, None));
            world.activate(crate::PAY);
        }
        let call = Call { approval: Some(approval), reach: Reach::Ready, ..pay(5) };
        let reply = world.call(call);
        if asker_waits {
            let Reply::Ready { action, .. } = reply else { panic!("{reply:?}") };
            assert_eq!(action, asker, "the one that waits for it");
            assert_eq!(attempt(world.acquire(action, None)).approval, Some(approval));
        } else {
            assert!(matches!(reply, Reply::Refused(_)), "the approval is gone: {reply:?}");
        }
        world.check();
    }
}

#[test]
fn an_action_that_has_ended_answers_first_whatever_the_policy_takes_now() {
    let id = onceseal_core::id::ActionId([5; 16]);
    let mut world = pay_world();
    let mine = || Call { action: Some(id), lease: Some(Span::minutes(2)), ..send(1) };
    let started = attempt(world.call(mine()));
    world.settle(&started, Outcome::Committed);
    for policy in [
        crate::PAY.replace(
            "send: { effect: \"send:{id}\", lease: 2m,",
            "send: { effect: \"send:{id}\", lease: 1m,",
        ),
        crate::PAY.replace("send: {", "send: { resource: \"{gone}\","),
        crate::PAY.replace("decision: allow }\n", "decision: deny }\n"),
    ] {
        world.activate(&policy);
        for reply in [world.call(mine()), world.acquire(id, None)] {
            assert!(matches!(reply, Reply::Ended { result: Answer::Committed, .. }), "{reply:?}");
        }
    }
}

#[test]
fn a_denied_action_leaves_no_request_open_whatever_it_presents() {
    let mut world = pay_world();
    let (waiting, own) = asked(world.call(pay(5)));
    let (_, other) = asked(world.call(pay(6)));
    world.answer(other, "host:ada", Said::Yes);
    world.activate(&crate::PAY.replace("decision: approve", "decision: deny"));
    assert_eq!(refused(world.acquire(waiting, Some(other))).code, Code::PolicyDenied);
    assert_eq!(world.approval(own).status, Status::Revoked);
    world.check();
}
