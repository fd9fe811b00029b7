//! Handoffs: a resource passes from one holder to another, once.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{
    AcceptHandoff, Giver, HandoffRow, HandoffState, PrepareHandoff, WithdrawHandoff,
};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::journal::Row;
use onceseal_core::lease::{AcquireLease, Lease, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::time::Span;

use super::contention::at_once;
use super::world::{World, code, host};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "handoffs":
    one_of_many_threads_accepts_a_handoff
    one_of_many_threads_prepares_a_handoff
    whoever_accepts_fences_the_old_holder_at_once
    a_handoff_is_of_the_resource_as_it_was
    whoever_is_too_late_to_withdraw_is_told
    ; durable:
    a_handoff_is_accepted_after_reopening_and_its_answer_given_again
}

const MINUTE: Span = Span::minutes(1);
const R1: Hash = Hash([1; 32]);
const R2: Hash = Hash([2; 32]);
const DONE: Reply = Reply::Done { changed: true };
const NOTHING: Reply = Reply::Done { changed: false };

fn resource() -> Resource {
    Resource::Name("selector".to_owned())
}

fn taking(n: u8) -> Command {
    let (resource, holder) = (resource(), HolderKey([n; 16]));
    Command::AcquireLease(Box::new(AcquireLease {
        resource,
        holder,
        length: MINUTE,
        shared: false,
        preempt: None,
    }))
}

fn renewing(lease: &Lease) -> Command {
    Command::RenewLease(RenewLease { lease: lease.clone(), length: MINUTE })
}

fn preparing(receipt: Hash, facts: &str, by: Giver) -> Command {
    let (facts, principal) = (facts.to_owned(), Principal::agent("bot"));
    let prepare = PrepareHandoff { resource: resource(), receipt, facts, by, principal };
    Command::PrepareHandoff(Box::new(prepare))
}

fn accepting(receipt: Hash, n: u8) -> Command {
    let (holder, principal) = (HolderKey([n; 16]), Principal::agent("next"));
    Command::AcceptHandoff(AcceptHandoff { resource: resource(), receipt, holder, length: MINUTE, principal })
}

fn withdrawing(receipt: Hash) -> Command {
    Command::WithdrawHandoff(WithdrawHandoff { resource: resource(), receipt, by: operator() })
}

fn operator() -> Giver {
    Giver::Operator { person: host("olga"), reason: "the old one is gone".to_owned() }
}

fn lease(reply: Reply) -> Result<LeaseNow, Failure> {
    Ok(take!(reply, Reply::Lease(now) => *now, "a lease"))
}

fn row(world: &World<'_>, receipt: Hash) -> Result<HandoffRow, Failure> {
    let stream = world.store.tenant().handoff(receipt);
    Ok(take!(world.stored(&stream)?.row, Row::Handoff(row) => row, "its row"))
}

fn one_of_many_threads_accepts_a_handoff(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut held = lease(world.command(taking(200))?)?.lease;
    for round in 1..=6u8 {
        let receipt = Hash([round; 32]);
        let prepared = world.command(preparing(receipt, "{}", Giver::Holder(held.clone())))?;
        ensure_eq!(prepared, DONE, "its holder hands it over");
        let replies = at_once(|n| world.command(accepting(receipt, n)))?;
        let over = replies.iter().filter(|reply| code(reply) == Some(Code::HandoffOver)).count();
        let taken = replies.into_iter().filter(|reply| matches!(reply, Reply::Lease(_)));
        let taken: Vec<_> = taken.map(lease).collect::<Result<_, _>>()?;
        ensure_eq!((taken.len(), over), (1, 15), "one of them accepts in round {round}");
        let late = world.command(renewing(&held))?;
        ensure_eq!(code(&late), Some(Code::LeaseFenced), "whoever had it has it no more");
        held = lease(world.command(renewing(&taken[0].lease))?)?.lease;
        let row = row(&world, receipt)?;
        ensure_eq!((row.state, row.holder), (HandoffState::Accepted, Some(held.holder)), "it is kept");
    }
    Ok(())
}

fn one_of_many_threads_prepares_a_handoff(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for round in 1..=6u8 {
        let receipt = Hash([round; 32]);
        // Every thread knows something else, under one receipt.
        let facts = |n: u8| format!("{{\"n\":{n}}}");
        let replies = at_once(|n| Ok((n, world.command(preparing(receipt, &facts(n), operator()))?)))?;
        let conflicts =
            replies.iter().filter(|(_, reply)| code(reply) == Some(Code::HandoffConflict)).count();
        let done: Vec<_> = replies.iter().filter(|(_, reply)| *reply == DONE).map(|(n, _)| *n).collect();
        ensure_eq!((done.len(), conflicts), (1, 15), "a receipt is of one handoff in round {round}");
        let again = world.command(preparing(receipt, &facts(done[0]), operator()))?;
        ensure_eq!(again, NOTHING, "the same is as it was");
        let kept = world.text(&world.store.tenant().handoff(receipt), 1)?;
        ensure_eq!(kept, Some(facts(done[0])), "what the next holder goes on from is kept");
        // And of one resource one is prepared.
        let others = at_once(|n| world.command(preparing(Hash([100 + n; 32]), "{}", operator())))?;
        let prepared = others.iter().filter(|reply| code(reply) == Some(Code::HandoffPrepared)).count();
        ensure_eq!(prepared, 16, "another waits to be accepted");
        ensure_eq!(world.command(withdrawing(receipt))?, DONE, "until it is withdrawn");
    }
    Ok(())
}

fn whoever_accepts_fences_the_old_holder_at_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(1))?)?.lease;
    let commands = vec![
        renewing(&first),
        preparing(R1, "{}", Giver::Holder(first.clone())),
        accepting(R1, 2),
        renewing(&first),
        accepting(R1, 3),
        accepting(R1, 2),
    ];
    let replies: Vec<_> = world.together(commands)?.into_iter().collect::<Result<_, _>>()?;
    let codes: Vec<_> = replies.iter().map(code).collect();
    let (fenced, over) = (Some(Code::LeaseFenced), Some(Code::HandoffOver));
    ensure_eq!(codes, [None, None, None, fenced, over, None], "one after another");
    let given: Vec<_> = [2, 5].into_iter().map(|at| lease(replies[at].clone())).collect::<Result<_, _>>()?;
    ensure_eq!(given[0], given[1], "an answer that was lost is given again");
    ensure_eq!(given[0].lease.fence, 2, "with the next fence");
    Ok(())
}

fn a_handoff_is_of_the_resource_as_it_was(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(1))?)?.lease;
    ensure_eq!(world.command(preparing(R1, "{}", Giver::Holder(first)))?, DONE, "it is prepared");
    world.pass(Span::minutes(2));
    let second = lease(world.command(taking(2))?)?.lease;
    let stale = world.command(accepting(R1, 3))?;
    ensure_eq!(code(&stale), Some(Code::HandoffStale), "somebody else has had it since");
    lease(world.command(renewing(&second))?)?;
    // It is out of the way of the next one.
    ensure_eq!(world.command(preparing(R2, "{}", Giver::Holder(second)))?, DONE, "another is prepared");
    ensure_eq!(row(&world, R1)?.state, HandoffState::Withdrawn, "nobody can accept the first");
    lease(world.command(accepting(R2, 3))?)?;
    Ok(())
}

fn whoever_is_too_late_to_withdraw_is_told(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for round in 1..=6u8 {
        let receipt = Hash([round; 32]);
        ensure_eq!(world.command(preparing(receipt, "{}", operator()))?, DONE, "it is prepared");
        // Every other thread withdraws what the others accept.
        let each = |n: u8| {
            let withdraws = n.is_multiple_of(2);
            world.command(if withdraws { withdrawing(receipt) } else { accepting(receipt, n) })
        };
        let replies = at_once(each)?;
        let taken = replies.iter().filter(|reply| matches!(reply, Reply::Lease(_))).count();
        let withdrawn = replies.iter().filter(|reply| **reply == DONE).count();
        ensure_eq!(taken + withdrawn, 1, "it is accepted or withdrawn in round {round}");
        let state = if taken == 1 { HandoffState::Accepted } else { HandoffState::Withdrawn };
        ensure_eq!(row(&world, receipt)?.state, state, "for good");
        world.pass(Span::minutes(2));
    }
    ensure_eq!(world.command(preparing(Hash([9; 32]), "{}", operator()))?, DONE, "another is prepared");
    lease(world.command(accepting(Hash([9; 32]), 1))?)?;
    let late = world.command(withdrawing(Hash([9; 32])))?;
    ensure_eq!(code(&late), Some(Code::HandoffOver), "whoever accepted it has it");
    Ok(())
}

fn a_handoff_is_accepted_after_reopening_and_its_answer_given_again(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(1))?)?.lease;
    ensure_eq!(world.command(preparing(R1, "{}", Giver::Holder(first.clone())))?, DONE, "it is prepared");
    let world = world.reopened()?;
    let other = world.command(preparing(R2, "{}", Giver::Holder(first.clone())))?;
    ensure_eq!(code(&other), Some(Code::HandoffPrepared), "one at a time");
    let taken = lease(world.command(accepting(R1, 2))?)?;
    let world = world.reopened()?;
    ensure_eq!(code(&world.command(renewing(&first))?), Some(Code::LeaseFenced), "the first one is fenced");
    ensure_eq!(lease(world.command(accepting(R1, 2))?)?, taken, "the same answer");
    ensure!(matches!(world.command(renewing(&taken.lease))?, Reply::Lease(_)), "whoever accepted has it");
    Ok(())
}
