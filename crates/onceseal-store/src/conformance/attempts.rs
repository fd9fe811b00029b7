//! What the holder of an attempt may do, and nobody else.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome, Settle};
use onceseal_core::journal::{Body, Index};
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::Loaded;

use super::lists::hits;
use super::world::{World, attempt, code, pay, refusal, to_begin, to_renew, to_settle, unknown_action};
use super::{Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "attempts":
    only_the_holder_may_begin
    only_the_holder_may_report
    nothing_is_committed_straight_from_reserved
    a_begin_after_the_lease_is_refused_and_makes_it_ambiguous
    a_renewal_moves_a_live_lease_and_never_past_the_deadline
    a_renewal_is_kept_without_an_event
    a_report_is_judged_by_its_fence_and_not_by_time
    a_report_after_an_unanswered_lapse_is_the_answer
    marking_ambiguous_twice_keeps_the_first_cause
    a_repeated_report_is_answered_like_the_first
    a_late_report_is_kept_once_and_changes_nothing
    a_report_for_an_older_fence_changes_nothing
    a_result_is_stored_with_its_report
    an_error_text_is_cut_and_a_result_over_the_limit_refused
    what_nobody_has_taken_cannot_be_begun_renewed_or_reported
}

fn only_the_holder_may_begin(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = Holding::from(&attempt(world.reserve("k", unknown_action(1))?)?);
    let before = world.log()?.len();
    for (who, wrong) in [
        ("another action", Holding { action: unknown_action(2), ..holding }),
        ("another fence", Holding { fence: 2, ..holding }),
        ("an older fence", Holding { fence: 0, ..holding }),
    ] {
        let refusal = world.refused(to_begin(wrong))?;
        ensure_eq!(refusal.code, Code::InProgress, "{who} begins what is not its own");
        ensure_eq!(world.effect(&holding.effect)?.state, EffectState::Reserved, "{who} changes nothing");
    }
    ensure_eq!(world.log()?.len(), before, "nothing is recorded of it");
    let begun = attempt(world.command(to_begin(holding))?)?;
    ensure!(begun.begun && begun.fence == 1, "its holder begins");
    ensure_eq!(world.effect(&holding.effect)?.state, EffectState::Executing, "and it executes");
    ensure_eq!(world.refused(to_begin(holding))?.code, Code::InvalidTransition, "but begins only once");
    Ok(())
}

fn only_the_holder_may_report(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = Holding::from(&attempt(world.reserve("k", unknown_action(1))?)?);
    attempt(world.command(to_begin(holding))?)?;
    let before = world.log()?.len();
    for wrong in [
        Holding { action: unknown_action(2), ..holding },
        Holding { fence: 2, ..holding },
        Holding { fence: 0, ..holding },
    ] {
        for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
            let reply = world.settle(wrong, outcome)?;
            ensure_eq!(code(&reply), Some(Code::InProgress), "somebody else reports {outcome}: {reply:?}");
            ensure_eq!(world.effect(&holding.effect)?.state, EffectState::Executing, "it changes nothing");
        }
    }
    ensure_eq!(world.log()?.len(), before, "nothing is recorded of it");
    take!(world.settle(holding, Outcome::Committed)?,
        Reply::Settled { state: EffectState::Committed, repeated: false, .. } => (), "its holder reports");
    Ok(())
}

fn nothing_is_committed_straight_from_reserved(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = Holding::from(&attempt(world.reserve("k", unknown_action(1))?)?);
    for outcome in [Outcome::Committed, Outcome::Failed] {
        let refusal = world.refused(to_settle(holding, outcome))?;
        ensure_eq!(refusal.code, Code::InvalidTransition, "{outcome} before it began");
        ensure_eq!(world.effect(&holding.effect)?.state, EffectState::Reserved, "{outcome} changes nothing");
    }
    take!(world.settle(holding, Outcome::Ambiguous)?,
        Reply::Settled { state: EffectState::Ambiguous, .. } => (), "a holder may always say it does not know");
    Ok(())
}

fn a_begin_after_the_lease_is_refused_and_makes_it_ambiguous(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let in_time = Holding::from(&attempt(world.reserve("a", unknown_action(1))?)?);
    let late = Holding::from(&attempt(world.reserve("b", unknown_action(1))?)?);
    world.pass(Span::minutes(2));
    ensure!(attempt(world.command(to_begin(in_time))?)?.begun, "the end of a lease is inclusive");
    world.pass(Span::micros(1));
    ensure_eq!(world.refused(to_begin(late))?.code, Code::LeaseLapsed, "a microsecond later it is over");
    let row = world.effect(&late.effect)?;
    ensure_eq!(row.state, EffectState::Ambiguous, "the lapse is kept although the begin is refused");
    Ok(())
}

fn a_renewal_moves_a_live_lease_and_never_past_the_deadline(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let (holding, start) = (Holding::from(&taken), world.now());
    ensure_eq!(taken.deadline, start + Span::minutes(10), "the deadline is the policy's");
    for minute in 1..=10 {
        world.pass(Span::minutes(1));
        let until = (world.now() + Span::minutes(2)).min(taken.deadline);
        ensure_eq!(
            world.command(to_renew(holding))?,
            Reply::Renewed { lease_until: until },
            "renewed after {minute} minutes"
        );
        ensure_eq!(world.effect(&taken.effect)?.lease_until, Some(until), "the row says so");
    }
    world.pass(Span::micros(1));
    ensure_eq!(world.refused(to_renew(holding))?.code, Code::LeaseLapsed, "the deadline ends it");
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Ambiguous, "and that is kept");
    Ok(())
}

fn a_renewal_is_kept_without_an_event(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let (before, head) = (world.log()?.len(), world.stored(&taken.effect)?.head);
    world.pass(Span::minutes(1));
    take!(world.command(to_renew(Holding::from(&taken)))?, Reply::Renewed { .. } => (), "renewed");
    ensure_eq!(world.log()?.len(), before, "a renewal is no event");
    ensure_eq!(world.stored(&taken.effect)?.head, head, "nor does it move the head");
    let due = hits(&world, Index::Due, &[], 16)?;
    let due: Vec<_> = due.iter().filter(|hit| hit.stream == taken.effect).map(|hit| &hit.key).collect();
    let until = (world.now() + Span::minutes(2)).micros().to_be_bytes().to_vec();
    ensure_eq!(due, [&until], "it is due when its new lease ends, and only then");
    world.pass(Span::minutes(2));
    ensure_eq!(
        code(&world.run(&pay("k"))?),
        Some(Code::InProgress),
        "others see the new lease: it would have ended a minute ago"
    );
    Ok(())
}

fn a_report_is_judged_by_its_fence_and_not_by_time(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.pass(Span::hours(24));
    take!(world.settle(&taken, Outcome::Committed)?,
        Reply::Settled { state: EffectState::Committed, repeated: false, receipt: Some(_) } => (),
        "nobody else has answered, however late it is");
    Ok(())
}

fn a_report_after_an_unanswered_lapse_is_the_answer(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for (id, outcome, state) in
        [("a", Outcome::Committed, EffectState::Committed), ("b", Outcome::Failed, EffectState::Failed)]
    {
        let taken = world.attempt(&pay(id))?;
        world.pass(Span::minutes(3));
        ensure_eq!(
            world.command(Command::Lapse(taken.effect))?,
            Reply::Done { changed: true },
            "the lease has ended"
        );
        let first = world.action(taken.action)?.receipt();
        let receipt = take!(world.settle(&taken, outcome)?,
            Reply::Settled { state: found, receipt: Some(receipt), .. } if found == state => receipt,
            "its holder answers for it");
        let ended = world.action(taken.action)?.state;
        take!(ended, ActionState::Answered { result, receipt: second, first: known }
            if result == Answer::from(outcome) && second == receipt && Some(known) == first => (),
            "the action has its answer too");
    }
    Ok(())
}

fn marking_ambiguous_twice_keeps_the_first_cause(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.settle(&taken, Outcome::Ambiguous)?;
    let (row, events) = (world.stored(&taken.effect)?, world.log()?.len());
    let mut again = to_settle(Holding::from(&taken), Outcome::Ambiguous);
    if let Command::Settle(settle) = &mut again {
        settle.error = Some("another error".to_owned());
    }
    take!(world.command(again)?, Reply::Settled { state: EffectState::Ambiguous, repeated: true, .. } => (),
        "saying so again changes nothing and succeeds");
    ensure_eq!(world.stored(&taken.effect)?, row, "the first cause is kept");
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    Ok(())
}

fn a_repeated_report_is_answered_like_the_first(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for (id, outcome) in [("a", Outcome::Committed), ("b", Outcome::Failed), ("c", Outcome::Ambiguous)] {
        let taken = world.attempt(&pay(id))?;
        let first = world.settle(&taken, outcome)?;
        let events = world.log()?.len();
        let (state, receipt) = take!(first,
            Reply::Settled { state, receipt: Some(receipt), repeated: false } => (state, receipt),
            "a report has a receipt");
        ensure_eq!(
            world.settle(&taken, outcome)?,
            Reply::Settled { state, receipt: Some(receipt), repeated: true },
            "{outcome} again"
        );
        ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    }
    Ok(())
}

fn a_late_report_is_kept_once_and_changes_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.settle(&taken, Outcome::Ambiguous)?;
    world.resolve(taken.effect, 1, false)?;
    let refusal = refusal(world.settle(&taken, Outcome::Committed)?)?;
    ensure_eq!(refusal.code, Code::Fenced, "a person has answered for it");
    ensure!(refusal.receipt.is_some(), "the late word has a receipt");
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Failed, "the answer stands");
    let events = world.events(&taken.effect)?;
    let last = events.last().and_then(|event| event.event.as_ref()).map(|event| &event.body);
    take!(last, Some(Body::EffectLate(late, _)) if late.contradicts && late.fence == 1 => (),
        "it is kept, and that it contradicts");
    let again = world.refused(to_settle(Holding::from(&taken), Outcome::Committed))?;
    ensure_eq!((again.code, again.receipt), (Code::Fenced, None), "said again");
    ensure_eq!(world.events(&taken.effect)?.len(), events.len(), "it is kept once");
    Ok(())
}

fn a_report_for_an_older_fence_changes_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = world.attempt(&pay("k"))?;
    world.settle(&first, Outcome::Ambiguous)?;
    world.resolve(first.effect, 1, false)?;
    let second = world.attempt(&pay("k"))?;
    ensure_eq!(second.fence, 2, "a new attempt is permitted");
    for outcome in [Outcome::Failed, Outcome::Committed, Outcome::Ambiguous] {
        ensure_eq!(code(&world.settle(&first, outcome)?), Some(Code::Fenced), "the first reports {outcome}");
        let row = world.effect(&first.effect)?;
        ensure_eq!((row.state, row.fence), (EffectState::Executing, 2), "the second executes");
    }
    take!(world.settle(&second, Outcome::Committed)?,
        Reply::Settled { state: EffectState::Committed, repeated: false, .. } => (), "and reports");
    Ok(())
}

fn a_result_is_stored_with_its_report(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.settle(&taken, Outcome::Committed)?;
    let mut call = pay("k");
    call.action = Some(taken.action);
    let (stream, sequence) = take!(world.run(&call)?,
        Reply::Ended { result: Answer::Committed, stored: Some(stored), .. } => stored,
        "the action's answer names its result");
    ensure_eq!(
        (stream, Some(sequence)),
        (taken.effect, world.effect(&taken.effect)?.result_at),
        "the row names it too"
    );
    ensure_eq!(world.text(&stream, sequence)?.as_deref(), Some("{\"done\":true}"), "the result is kept");
    let payload = world.store.read(|snapshot| snapshot.payload(&stream, sequence))?;
    ensure_eq!(
        payload.map(|payload| payload.hash()),
        world.effect(&taken.effect)?.private.result,
        "it is what the row's reference says"
    );
    Ok(())
}

fn an_error_text_is_cut_and_a_result_over_the_limit_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let settle = |result: usize, error: usize| {
        Command::Settle(Settle {
            error: Some("é".repeat(error)),
            result: Some(format!("\"{}\"", "x".repeat(result - 2))),
            ..Settle::new(Holding::from(&taken), Outcome::Committed)
        })
    };
    ensure_eq!(world.refused(settle(65_537, 0))?.code, Code::OutOfBounds, "a result over 64 KiB");
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Executing, "it changes nothing");
    take!(world.command(settle(65_536, 1_025))?, Reply::Settled { .. } => (), "one of 64 KiB is taken");
    let row = world.effect(&taken.effect)?;
    ensure_eq!(row.private.error.map(|error| error.chars().count()), Some(1_024), "an error text is cut");
    let text = row.result_at.map(|at| world.text(&taken.effect, at)).transpose()?.flatten();
    ensure_eq!(text.map(|text| text.len()), Some(65_536), "the whole result is kept");
    Ok(())
}

fn what_nobody_has_taken_cannot_be_begun_renewed_or_reported(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let effect = world.effect_of("nobody's");
    let holding = Holding { effect, action: unknown_action(1), fence: 1 };
    for command in [to_begin(holding), to_renew(holding), to_settle(holding, Outcome::Committed)] {
        ensure_eq!(world.refused(command)?.code, Code::EffectUnknown, "there is no such effect");
    }
    let found = world.store.read(|snapshot| snapshot.stream(&effect))?;
    ensure_eq!(found, Loaded::Absent, "and there is none afterwards");
    let own = StreamId::action(unknown_action(1));
    ensure_eq!(world.store.read(|snapshot| snapshot.stream(&own))?, Loaded::Absent, "nor such an action");
    Ok(())
}
