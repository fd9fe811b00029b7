//! The retry table: whether a key may be taken, by its state alone.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome, Reserve};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;

use super::world::{World, attempt, pay, refusal, to_begin, to_reserve, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "retry table":
    a_free_key_is_taken_by_the_first_attempt
    a_failed_key_is_taken_anew_and_keeps_its_age
    a_new_attempt_starts_without_the_old_error_and_result
    a_committed_key_is_a_duplicate
    an_ambiguous_key_blocks
    a_live_key_is_in_progress_until_its_lease_ends
    a_lapsed_reservation_becomes_ambiguous_and_is_never_handed_over
    a_lapsed_execution_becomes_ambiguous_and_is_never_handed_over
    the_callers_own_action_id_never_helps
    the_same_wish_is_told_the_first_result_and_receipt
    another_wish_under_the_same_key_is_told_of_the_conflict_only
    fences_grow_and_never_restart
    a_reservation_outside_its_bounds_is_refused
}

/// Takes the key for the first action, without beginning.
fn reserved(world: &World<'_>, key: &str) -> Result<Attempt, Failure> {
    attempt(world.reserve(key, unknown_action(1))?)
}

/// Takes the key and begins.
fn executing(world: &World<'_>, key: &str) -> Result<Holding, Failure> {
    let holding = Holding::from(&reserved(world, key)?);
    attempt(world.command(to_begin(holding))?)?;
    Ok(holding)
}

fn settled(world: &World<'_>, key: &str, outcome: Outcome) -> Result<Holding, Failure> {
    let holding = executing(world, key)?;
    take!(world.settle(holding, outcome)?, Reply::Settled { .. } => (), "a holder reports");
    Ok(holding)
}

/// What somebody else is told who wants the key.
fn refused(world: &World<'_>, key: &str) -> Result<(Code, EffectState), Failure> {
    let refusal = refusal(world.reserve(key, unknown_action(2))?)?;
    let effect = refusal.effect.ok_or_else(|| Failure::new("a refusal by the key names its effect"))?;
    ensure_eq!(effect.stream, world.effect_of(key), "a refusal names the effect of its key");
    Ok((refusal.code, effect.state))
}

fn a_free_key_is_taken_by_the_first_attempt(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = reserved(&world, "k")?;
    ensure_eq!(taken.fence, 1, "the first attempt has the first fence");
    ensure!(!taken.begun, "a reservation has not begun");
    ensure_eq!(taken.lease_until, world.now() + Span::minutes(2), "the lease is as long as asked for");
    let row = world.effect(&taken.effect)?;
    ensure_eq!(
        (row.state, row.fence, row.holder, row.private.key.as_deref()),
        (EffectState::Reserved, 1, unknown_action(1), Some("k")),
        "the row says who holds the key"
    );
    Ok(())
}

fn a_failed_key_is_taken_anew_and_keeps_its_age(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = settled(&world, "k", Outcome::Failed)?;
    let before = world.effect(&holding.effect)?;
    world.pass(Span::seconds(1));
    let again = attempt(world.reserve("k", unknown_action(2))?)?;
    ensure_eq!(again.fence, 2, "after a failure the next attempt is permitted");
    let row = world.effect(&holding.effect)?;
    ensure_eq!((row.state, row.holder), (EffectState::Reserved, unknown_action(2)), "it is the new holder's");
    ensure_eq!(row.created_at, before.created_at, "the key is as old as it was");
    Ok(())
}

fn a_new_attempt_starts_without_the_old_error_and_result(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = settled(&world, "k", Outcome::Failed)?;
    let failed = world.effect(&holding.effect)?;
    ensure_eq!(failed.private.error.as_deref(), Some("error of failed 1"), "the error is kept");
    ensure_eq!(failed.code.as_deref(), Some("E1"), "the executor's code is kept");
    attempt(world.reserve("k", unknown_action(2))?)?;
    let row = world.effect(&holding.effect)?;
    ensure_eq!((&row.private.error, &row.code), (&None, &None), "the old error is cleared");
    ensure_eq!((row.private.result, row.result_at), (None, None), "there is no result yet");
    Ok(())
}

fn a_committed_key_is_a_duplicate(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    settled(&world, "k", Outcome::Committed)?;
    ensure_eq!(refused(&world, "k")?, (Code::Duplicate, EffectState::Committed), "it has happened");
    world.pass(Span::hours(24 * 365));
    ensure_eq!(refused(&world, "k")?, (Code::Duplicate, EffectState::Committed), "however long ago");
    Ok(())
}

fn an_ambiguous_key_blocks(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    settled(&world, "k", Outcome::Ambiguous)?;
    ensure_eq!(refused(&world, "k")?, (Code::Ambiguous, EffectState::Ambiguous), "nobody knows");
    world.pass(Span::hours(24 * 365));
    ensure_eq!(refused(&world, "k")?, (Code::Ambiguous, EffectState::Ambiguous), "however long ago");
    Ok(())
}

fn a_live_key_is_in_progress_until_its_lease_ends(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let until = reserved(&world, "reserved")?.lease_until;
    executing(&world, "executing")?;
    world.pass(Span::minutes(2));
    ensure_eq!(world.now(), until, "the lease ends now, inclusive");
    for (key, state) in [("reserved", EffectState::Reserved), ("executing", EffectState::Executing)] {
        ensure_eq!(refused(&world, key)?, (Code::InProgress, state), "{key}: somebody else has it");
        let refusal = refusal(world.reserve(key, unknown_action(2))?)?;
        let end = refusal.effect.and_then(|effect| effect.lease_until);
        ensure_eq!(end, Some(until), "{key}: the answer says until when");
    }
    Ok(())
}

fn a_lapsed_reservation_becomes_ambiguous_and_is_never_handed_over(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = Holding::from(&reserved(&world, "k")?);
    lapsed(&world, holding)
}

fn a_lapsed_execution_becomes_ambiguous_and_is_never_handed_over(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let holding = executing(&world, "k")?;
    lapsed(&world, holding)
}

fn lapsed(world: &World<'_>, holding: Holding) -> Verdict {
    world.pass(Span::minutes(2));
    world.pass(Span::micros(1));
    ensure_eq!(refused(world, "k")?, (Code::Ambiguous, EffectState::Ambiguous), "the lease has ended");
    let row = world.effect(&holding.effect)?;
    ensure_eq!((row.state, row.fence), (EffectState::Ambiguous, 1), "it stays so, although refused");
    ensure!(row.lapsed_unanswered(), "nobody has answered for it");
    ensure_eq!(refused(world, "k")?, (Code::Ambiguous, EffectState::Ambiguous), "and still blocks");
    Ok(())
}

fn the_callers_own_action_id_never_helps(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let own = unknown_action(1);
    reserved(&world, "reserved")?;
    executing(&world, "executing")?;
    settled(&world, "committed", Outcome::Committed)?;
    settled(&world, "ambiguous", Outcome::Ambiguous)?;
    for (key, code) in [
        ("reserved", Code::InProgress),
        ("executing", Code::InProgress),
        ("committed", Code::Duplicate),
        ("ambiguous", Code::Ambiguous),
    ] {
        ensure_eq!(refusal(world.reserve(key, own)?)?.code, code, "{key}: its holder asks again");
    }
    Ok(())
}

fn the_same_wish_is_told_the_first_result_and_receipt(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = world.attempt(&pay("k"))?;
    world.settle(&first, Outcome::Committed)?;
    let receipt = world.action(first.action)?.receipt();
    let mut again = pay("k");
    again.note = Some("incidental");
    let refusal = world.refusal(&again)?;
    ensure_eq!(refusal.code, Code::Duplicate, "it has happened");
    let effect = refusal.effect.ok_or_else(|| Failure::new("the effect is named"))?;
    ensure_eq!(effect.same_intent, Some(true), "what is incidental makes no other wish");
    ensure_eq!(effect.receipt, receipt, "the first receipt is the answer");
    let (stream, sequence) = effect.stored.ok_or_else(|| Failure::new("the first result is the answer"))?;
    let text = world.text(&stream, sequence)?;
    ensure_eq!(text.as_deref(), Some("{\"done\":true}"), "the result is the first one's");
    again.agent = "other";
    let refusal = world.refusal(&again)?;
    let effect = refusal.effect.ok_or_else(|| Failure::new("the effect is named"))?;
    ensure_eq!(
        (refusal.code, effect.same_intent, effect.receipt, effect.stored),
        (Code::Duplicate, Some(true), None, None),
        "another principal is told that it happened, and no more"
    );
    Ok(())
}

fn another_wish_under_the_same_key_is_told_of_the_conflict_only(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = world.attempt(&pay("k"))?;
    let mut other = pay("k");
    other.amount = 51;
    for state in [EffectState::Executing, EffectState::Committed] {
        let refusal = world.refusal(&other)?;
        let effect = refusal.effect.ok_or_else(|| Failure::new("the effect is named"))?;
        ensure_eq!(
            (refusal.code, effect.state, effect.same_intent, effect.receipt, effect.stored),
            (Code::EffectKeyConflict, state, Some(false), None, None),
            "the key belongs to another wish"
        );
        world.settle(&first, Outcome::Committed)?;
        world.pass(Span::minutes(2));
    }
    Ok(())
}

fn fences_grow_and_never_restart(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for fence in 1..=6 {
        let taken = attempt(world.reserve("k", unknown_action(1))?)?;
        ensure_eq!(taken.fence, fence, "every attempt has the next fence");
        let holding = Holding::from(&taken);
        if fence % 2 == 0 {
            world.settle(holding, Outcome::Ambiguous)?;
            world.resolve(taken.effect, fence, false)?;
        } else {
            attempt(world.command(to_begin(holding))?)?;
            world.settle(holding, Outcome::Failed)?;
        }
        ensure_eq!(world.effect(&taken.effect)?.fence, fence, "a failed key keeps its fence");
    }
    Ok(())
}

fn a_reservation_outside_its_bounds_is_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let action = unknown_action(1);
    let before = world.log()?.len();
    let long = "k".repeat(1025);
    for (key, lease) in [
        ("k", Span::millis(999)),
        ("k", Span::hours(25)),
        ("", Span::minutes(2)),
        ("a\0b", Span::minutes(2)),
        (long.as_str(), Span::minutes(2)),
    ] {
        let refusal = world.refused(Command::Reserve(Reserve { key: key.to_owned(), action, lease }))?;
        ensure_eq!(refusal.code, Code::OutOfBounds, "a key of {} bytes for {lease:?}", key.len());
    }
    ensure_eq!(world.log()?.len(), before, "nothing is recorded of it");
    attempt(world.command(to_reserve(&long[1..], action))?)?;
    Ok(())
}
