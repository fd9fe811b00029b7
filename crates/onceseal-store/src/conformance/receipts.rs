//! Every end has a receipt, and every receipt its end.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::id::{ActionId, ReceiptId};
use onceseal_core::journal::{Body, Index};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use super::lists::hits;
use super::world::{World, big, call, code, pay};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};
use crate::read::StoredEvent;

suite! { "receipts":
    every_end_has_a_receipt_and_every_receipt_its_end
    a_later_answer_has_a_receipt_of_its_own_and_names_the_first
    a_late_word_has_a_receipt_of_its_own
    the_same_refusal_within_a_minute_shares_its_receipt
    an_ended_action_gives_its_first_answer_again
}

/// The event that a receipt is rendered from, found by the receipt's id.
fn by_receipt(world: &World<'_>, id: ReceiptId) -> Result<StoredEvent, Failure> {
    let found = hits(world, Index::Receipt, &id.0, 16)?;
    ensure_eq!(found.len(), 1, "{id} leads to one event");
    let (stream, sequence) = (found[0].stream, found[0].sequence);
    let events = world.store.read(|snapshot| snapshot.events(&stream, sequence, 1))?;
    let event = events.into_iter().next().ok_or_else(|| Failure::new("the event is there"))?;
    let named = event.event.as_ref().and_then(|event| event.refs.receipt);
    ensure_eq!(named, Some(id), "the event names its receipt");
    Ok(event)
}

/// The receipt of an ended action leads back to its end.
fn linked(world: &World<'_>, id: ActionId, answer: Answer) -> Verdict {
    let receipt = world.action(id)?.receipt().ok_or_else(|| Failure::new("an end has a receipt"))?;
    let event = by_receipt(world, receipt)?;
    ensure_eq!(event.stamp.stream, StreamId::action(id), "{answer}: the receipt is of this action");
    take!(event.event.map(|event| event.body), Some(Body::ActionEnded(data, _)) if data.result == answer => (),
        "it is rendered from the end");
    Ok(())
}

fn every_end_has_a_receipt_and_every_receipt_its_end(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for (id, outcome) in [("a", Outcome::Committed), ("b", Outcome::Failed), ("c", Outcome::Ambiguous)] {
        let taken = world.attempt(&pay(id))?;
        world.settle(&taken, outcome)?;
        linked(&world, taken.action, outcome.into())?;
    }
    let lapsed = world.attempt(&pay("d"))?;
    world.pass(Span::minutes(3));
    world.command(Command::Lapse(lapsed.effect))?;
    linked(&world, lapsed.action, Answer::Ambiguous)?;
    let (denied, approval) = world.asked(&big("e"))?;
    world.answer(approval, "ann", Said::No)?;
    linked(&world, denied, Answer::Denied)?;
    let (expired, approval) = world.asked(&big("f"))?;
    world.pass(Span::minutes(16));
    world.command(Command::Lapse(StreamId::approval(approval)))?;
    linked(&world, expired, Answer::Blocked)?;
    for (refused, answer) in [(call("burn", "g", 1), Answer::Denied), (pay("a"), Answer::Blocked)] {
        let refusal = world.refusal(&refused)?;
        let id = refusal.action.ok_or_else(|| Failure::new("a refusal is recorded"))?;
        ensure_eq!(refusal.receipt, world.action(id)?.receipt(), "the answer names the receipt");
        linked(&world, id, answer)?;
    }
    Ok(())
}

fn a_later_answer_has_a_receipt_of_its_own_and_names_the_first(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.settle(&taken, Outcome::Ambiguous)?;
    linked(&world, taken.action, Answer::Ambiguous)?;
    let unknown = world.action(taken.action)?.receipt();
    world.resolve(taken.effect, 1, true)?;
    let (later, first) = take!(world.action(taken.action)?.state,
        ActionState::Answered { receipt, first, result: Answer::Committed } => (receipt, first),
        "the action has its answer");
    ensure_eq!(Some(first), unknown, "the answer names the first receipt");
    ensure!(later != first, "and has one of its own");
    for (receipt, answered) in [(first, false), (later, true)] {
        let event = by_receipt(&world, receipt)?;
        let is_answer = matches!(event.event.map(|event| event.body), Some(Body::ActionAnswered(..)));
        ensure_eq!(is_answer, answered, "both lead to their events");
    }
    Ok(())
}

fn a_late_word_has_a_receipt_of_its_own(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.settle(&taken, Outcome::Ambiguous)?;
    world.resolve(taken.effect, 1, false)?;
    let known = world.action(taken.action)?;
    let refusal = super::world::refusal(world.settle(&taken, Outcome::Committed)?)?;
    let receipt = refusal.receipt.ok_or_else(|| Failure::new("a late word has a receipt"))?;
    let event = by_receipt(&world, receipt)?;
    ensure_eq!(event.stamp.stream, taken.effect, "it is kept with the effect");
    take!(event.event.map(|event| event.body), Some(Body::EffectLate(..)) => (), "as what it is");
    ensure_eq!(world.action(taken.action)?, known, "the action keeps its answer");
    Ok(())
}

fn the_same_refusal_within_a_minute_shares_its_receipt(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let denied = call("pay", "k", 1001);
    let first = world.refusal(&denied)?;
    ensure!(!first.repeated, "the first is recorded");
    world.pass(Span::seconds(60));
    let events = world.log()?.len();
    let second = world.refusal(&denied)?;
    ensure_eq!(
        (second.repeated, second.action, second.receipt),
        (true, first.action, first.receipt),
        "the same within a minute is answered with the first receipt"
    );
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    let other = world.refusal(&call("pay", "k", 1002))?;
    ensure!(!other.repeated, "another action is another refusal");
    world.pass(Span::micros(1));
    let third = world.refusal(&denied)?;
    ensure!(!third.repeated && third.receipt != first.receipt, "after a minute it is recorded again");
    Ok(())
}

fn an_ended_action_gives_its_first_answer_again(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let mut again = pay("k");
    again.action = Some(taken.action);
    ensure_eq!(code(&world.run(&again)?), Some(Code::InProgress), "an attempt is handed out once");
    world.settle(&taken, Outcome::Committed)?;
    let receipt = world.action(taken.action)?.receipt();
    let events = world.log()?.len();
    take!(world.run(&again)?,
        onceseal_core::reply::Reply::Ended { action, result: Answer::Committed, receipt: found, .. }
            if action == taken.action && Some(found) == receipt => (),
        "the first answer again");
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    again.amount = 51;
    ensure_eq!(code(&world.run(&again)?), Some(Code::IdReused), "other content under the same id");
    Ok(())
}
