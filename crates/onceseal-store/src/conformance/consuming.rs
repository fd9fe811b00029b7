//! Using an approval: once, for what it binds, in time, and together with the
//! effect it permits.

use onceseal_core::action::{ActionState, Reach};
use onceseal_core::approval::{Revoke, Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Outcome};
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::Kind;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::Loaded;

use super::world::{POLICY, World, big, call, code, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "consuming":
    an_approval_is_used_in_the_transaction_that_takes_the_effect
    an_approval_is_still_granted_if_the_effect_is_refused
    an_approval_permits_the_action_it_binds_and_no_other
    an_approval_permits_nothing_after_its_end
    an_expiry_met_on_use_is_kept_although_the_use_is_refused
    an_approval_is_used_once
    an_unanswered_or_unknown_approval_permits_nothing
    approvers_are_counted_again_when_the_approval_is_used
    a_changed_rule_voids_what_was_granted_under_it
    asking_whether_one_may_uses_nothing
}

fn status(world: &World<'_>, id: ApprovalId) -> Result<Status, Failure> {
    Ok(world.approval(id)?.status)
}

fn an_approval_is_used_in_the_transaction_that_takes_the_effect(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.granted(&big("k"))?;
    let taken = world.attempt(&big("k"))?;
    ensure_eq!((taken.action, taken.approval, taken.fence), (action, Some(approval), 1), "the action runs");
    let row = world.approval(approval)?;
    ensure_eq!((row.status, row.consumed_by), (Status::Consumed, Some(action)), "its approval is used");
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Executing, "its effect is taken");
    let mut commands = Vec::new();
    for event in world.log()? {
        let kind = event.event.as_ref().map(|event| event.body.kind());
        if matches!(kind, Some(Kind::ApprovalConsumed | Kind::EffectAcquired | Kind::ActionStarted)) {
            commands.push((event.stamp.command, event.stamp.of));
        }
    }
    ensure_eq!(commands.len(), 3, "used, taken, started");
    ensure!(commands.iter().all(|command| *command == (commands[0].0, 3)), "by one command: {commands:?}");
    Ok(())
}

fn an_approval_is_still_granted_if_the_effect_is_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, approval) = world.granted(&big("k"))?;
    let holding = take!(world.reserve("pay:k", unknown_action(9))?, Reply::Attempt(taken) => taken, "free");
    let mut presented = big("k");
    presented.approval = Some(approval);
    ensure_eq!(code(&world.run(&presented)?), Some(Code::InProgress), "somebody else has the key");
    ensure_eq!(status(&world, approval)?, Status::Granted, "the approval is still there");
    world.settle(&holding, Outcome::Ambiguous)?;
    ensure_eq!(code(&world.run(&presented)?), Some(Code::Ambiguous), "nobody knows");
    ensure_eq!(status(&world, approval)?, Status::Granted, "the approval is still there");
    world.resolve(holding.effect, 1, false)?;
    ensure_eq!(world.attempt(&presented)?.fence, 2, "and permits the attempt once the key is free");
    Ok(())
}

fn an_approval_permits_the_action_it_binds_and_no_other(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, approval) = world.granted(&big("k"))?;
    let mut right = big("k");
    right.approval = Some(approval);
    let mut wrong = [right; 4];
    wrong[0].amount = 501;
    wrong[1].agent = "other";
    wrong[2].note = Some("incidental is bound all the same");
    wrong[3] = call("wire", "k", 500);
    wrong[3].approval = Some(approval);
    for (presented, field) in wrong.iter().zip(["arguments", "principal", "arguments", "name"]) {
        let refusal = world.refusal(presented)?;
        ensure_eq!(
            (refusal.code, refusal.field),
            (Code::ApprovalMismatch, Some(field)),
            "it differs in {field}"
        );
        ensure_eq!(status(&world, approval)?, Status::Granted, "and nothing is used");
    }
    for key in ["pay:k", "wire:k"] {
        let found = world.store.read(|snapshot| snapshot.stream(&world.effect_of(key)))?;
        ensure_eq!(found, Loaded::Absent, "nor taken");
    }
    world.pass(Span::minutes(16));
    ensure_eq!(code(&world.run(&wrong[0])?), Some(Code::ApprovalMismatch), "a mismatch beats the expiry");
    ensure_eq!(status(&world, approval)?, Status::Granted, "and records nothing of it");
    Ok(())
}

fn an_approval_permits_nothing_after_its_end(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.granted(&big("in time"))?;
    let (_, late) = world.granted(&big("late"))?;
    world.pass(Span::minutes(15));
    world.attempt(&big("in time"))?;
    world.pass(Span::micros(1));
    let mut presented = big("late");
    presented.approval = Some(late);
    ensure_eq!(code(&world.run(&presented)?), Some(Code::ApprovalExpired), "a microsecond later it is over");
    let found = world.store.read(|snapshot| snapshot.stream(&world.effect_of("pay:late")))?;
    ensure_eq!(found, Loaded::Absent, "no attempt was made");
    Ok(())
}

fn an_expiry_met_on_use_is_kept_although_the_use_is_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.granted(&big("k"))?;
    world.pass(Span::minutes(16));
    let mut presented = big("k");
    presented.approval = Some(approval);
    ensure_eq!(world.refusal(&presented)?.code, Code::ApprovalExpired, "its time is over");
    ensure_eq!(status(&world, approval)?, Status::Expired, "that is a fact from now on");
    take!(world.action(action)?.state, ActionState::Ended { code: Some(Code::ApprovalExpired), .. } => (),
        "the action that waited for it has ended");
    Ok(())
}

fn an_approval_is_used_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, approval) = world.granted(&big("k"))?;
    let mut presented = big("k");
    presented.approval = Some(approval);
    let taken = world.attempt(&presented)?;
    world.settle(&taken, Outcome::Failed)?;
    ensure_eq!(code(&world.run(&presented)?), Some(Code::ApprovalUsed), "the key is free, the approval used");
    let (_, second) = world.asked(&big("k"))?;
    ensure!(second != approval, "a person is asked anew");
    Ok(())
}

fn an_unanswered_or_unknown_approval_permits_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, pending) = world.asked(&big("a"))?;
    let (_, denied) = world.asked(&big("b"))?;
    world.answer(denied, "ann", Said::No)?;
    for (id, approval, expected) in [
        ("a", pending, Code::ApprovalPending),
        ("b", denied, Code::ApprovalDenied),
        ("c", ApprovalId([7; 16]), Code::ApprovalUnknown),
    ] {
        let mut presented = big(id);
        presented.approval = Some(approval);
        ensure_eq!(code(&world.run(&presented)?), Some(expected), "presented as it is");
        let found = world.store.read(|snapshot| snapshot.stream(&world.effect_of(&format!("pay:{id}"))))?;
        ensure_eq!(found, Loaded::Absent, "no attempt was made");
    }
    Ok(())
}

fn approvers_are_counted_again_when_the_approval_is_used(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let wire = call("wire", "k", 1);
    let (_, approval) = world.asked(&wire)?;
    world.answer(approval, "ann", Said::Yes)?;
    world.answer(approval, "bob", Said::Yes)?;
    world.activate(&POLICY.replace("\"host:bob\", ", ""))?;
    let (_, second) = world.asked(&wire)?;
    ensure!(second != approval, "one of two is no longer entitled, so people are asked anew");
    let row = world.approval(approval)?;
    ensure_eq!(
        (row.status, row.revoked),
        (Status::Revoked, Some(Revoke::ApproverRemoved)),
        "it is taken back"
    );
    Ok(())
}

fn a_changed_rule_voids_what_was_granted_under_it(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let mut calls = [big("a"), big("b"), big("c")];
    let mut voided = Vec::new();
    for call in &mut calls {
        let (action, approval) = world.granted(call)?;
        call.action = Some(action);
        voided.push(approval);
    }
    world.activate(&POLICY.replace("\"amount_lte\": 1000", "\"amount_lte\": 900"))?;
    let (action, second) = world.asked(&calls[0])?;
    ensure!(second != voided[0], "still approve: a new request in the same command");
    ensure_eq!(Some(action), calls[0].action, "for the same action");
    world.activate(&POLICY.replace("\"amount_lte\": 1000", "\"amount_lte\": 400"))?;
    ensure_eq!(code(&world.run(&calls[1])?), Some(Code::PolicyDenied), "denied now: the grant does not help");
    world.activate(&POLICY.replace("\"amount_lte\": 100}", "\"amount_lte\": 600}"))?;
    ensure_eq!(world.attempt(&calls[2])?.approval, None, "allowed now: it runs without");
    for approval in voided {
        let row = world.approval(approval)?;
        ensure_eq!((row.status, row.revoked), (Status::Revoked, Some(Revoke::PolicyChanged)), "it is void");
    }
    Ok(())
}

fn asking_whether_one_may_uses_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = world.granted(&big("k"))?;
    let mut ready = big("k");
    ready.action = Some(action);
    ready.reach = Reach::Ready;
    let events = world.log()?.len();
    take!(world.run(&ready)?, Reply::Ready { action: id, .. } if id == action => (), "it may start");
    ensure_eq!(status(&world, approval)?, Status::Granted, "nothing is used");
    ensure_eq!(world.log()?.len(), events, "nothing is recorded");
    let lapse = world.command(Command::Lapse(StreamId::approval(approval)))?;
    ensure_eq!(lapse, Reply::Done { changed: false }, "nor over");
    world.attempt(&big("k"))?;
    Ok(())
}
