//! How an outcome becomes unknown, and how it becomes known.

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Finding, Outcome, Reconcile, Resolve};
use onceseal_core::journal::Body;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use super::world::{World, code, host, pay, to_resolve, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "outcomes":
    a_lapse_is_recorded_when_the_lease_has_ended_and_once
    a_lapse_ends_the_action_with_a_receipt
    a_person_answers_for_an_unknown_outcome_once
    only_an_operator_resolves_and_says_why
    what_is_known_cannot_be_resolved
    a_lapse_that_nobody_recorded_can_be_resolved
    the_remote_says_committed_while_it_executes_or_is_unknown
    the_remote_says_absent_only_once_it_can_no_longer_happen
}

fn unknown(world: &World<'_>, id: &str) -> Result<Attempt, Failure> {
    let taken = world.attempt(&pay(id))?;
    world.settle(&taken, Outcome::Ambiguous)?;
    Ok(taken)
}

fn a_lapse_is_recorded_when_the_lease_has_ended_and_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.pass(Span::minutes(2));
    let lapse = || world.command(Command::Lapse(taken.effect));
    ensure_eq!(
        lapse()?,
        Reply::Done { changed: false },
        "its end is inclusive: the candidate is looked at again"
    );
    world.pass(Span::micros(1));
    ensure_eq!(lapse()?, Reply::Done { changed: true }, "the lease has ended");
    let events = world.log()?.len();
    ensure_eq!(lapse()?, Reply::Done { changed: false }, "it is a fact already");
    for other in
        [world.effect_of("nobody's"), StreamId::action(unknown_action(1)), world.store.tenant().store()]
    {
        let reply = world.command(Command::Lapse(other))?;
        ensure_eq!(reply, Reply::Done { changed: false }, "{other} has nothing to lapse");
    }
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    Ok(())
}

fn a_lapse_ends_the_action_with_a_receipt(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.pass(Span::minutes(3));
    world.command(Command::Lapse(taken.effect))?;
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Ambiguous, "the effect is unknown");
    take!(world.action(taken.action)?.state,
        ActionState::Ended { result: Answer::Ambiguous, code: Some(Code::LeaseLapsed), .. } => (),
        "and so is its action");
    Ok(())
}

fn a_person_answers_for_an_unknown_outcome_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for (id, happened, state, answer) in [
        ("a", true, EffectState::Committed, Answer::Committed),
        ("b", false, EffectState::Failed, Answer::Failed),
    ] {
        let taken = unknown(&world, id)?;
        let first = world.action(taken.action)?.receipt();
        let receipt = take!(world.resolve(taken.effect, 1, happened)?,
            Reply::Settled { state: found, receipt: Some(receipt), repeated: false } if found == state => receipt,
            "a person's answer stands");
        take!(world.action(taken.action)?.state,
            ActionState::Answered { result, receipt: second, first: known }
                if result == answer && second == receipt && Some(known) == first => (),
            "the action has its answer too");
        let row = world.effect(&taken.effect)?;
        ensure_eq!(
            (row.state, row.private.error.as_deref()),
            (state, Some("looked at the remote")),
            "the row says why"
        );
        let events = world.events(&taken.effect)?;
        let known = events.iter().find_map(|event| match &event.event.as_ref()?.body {
            Body::EffectResolved(_, sealed) => Some(sealed.clone()),
            _ => None,
        });
        let known = known.ok_or_else(|| Failure::new("a resolution is recorded"))?;
        ensure_eq!(
            (known.cause.as_deref(), known.person.as_deref()),
            (Some("error of ambiguous 1"), Some("host:olga")),
            "it keeps the earlier cause and the person"
        );
        let again = world.resolve(taken.effect, 1, !happened)?;
        ensure_eq!(code(&again), Some(Code::NotAmbiguous), "a second person says otherwise");
        ensure_eq!(world.effect(&taken.effect)?.state, state, "the first answer stands");
    }
    Ok(())
}

fn only_an_operator_resolves_and_says_why(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = unknown(&world, "k")?;
    let events = world.log()?.len();
    let resolve = Resolve {
        effect: taken.effect,
        fence: 1,
        happened: true,
        reason: "because".to_owned(),
        evidence: None,
        person: host("olga"),
    };
    for (wrong, code) in [
        (Resolve { person: host("ann"), ..resolve.clone() }, Code::NotOperator),
        (Resolve { person: host("ol\u{200b}ga"), ..resolve.clone() }, Code::PersonInvalid),
        (Resolve { reason: " ".to_owned(), ..resolve.clone() }, Code::OutOfBounds),
        (Resolve { reason: "x".repeat(1025), ..resolve.clone() }, Code::OutOfBounds),
        (Resolve { fence: 2, ..resolve.clone() }, Code::NotAmbiguous),
        (Resolve { effect: world.effect_of("nobody's"), ..resolve.clone() }, Code::EffectUnknown),
    ] {
        ensure_eq!(world.refused(Command::Resolve(wrong))?.code, code, "a resolution that does not count");
        ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Ambiguous, "it changes nothing");
    }
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    take!(world.command(Command::Resolve(resolve))?, Reply::Settled { .. } => (), "an operator's word counts");
    Ok(())
}

fn what_is_known_cannot_be_resolved(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("a"))?;
    let resolved = |happened| world.refused(to_resolve(taken.effect, 1, happened));
    ensure_eq!(resolved(false)?.code, Code::NotAmbiguous, "it still executes");
    for (id, outcome) in [("b", Outcome::Committed), ("c", Outcome::Failed)] {
        let taken = world.attempt(&pay(id))?;
        world.settle(&taken, outcome)?;
        let row = world.stored(&taken.effect)?;
        for happened in [true, false] {
            let refusal = world.refused(to_resolve(taken.effect, 1, happened))?;
            ensure_eq!(refusal.code, Code::NotAmbiguous, "its holder said {outcome}");
        }
        ensure_eq!(world.stored(&taken.effect)?, row, "the holder's word stands");
    }
    Ok(())
}

fn a_lapse_that_nobody_recorded_can_be_resolved(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.pass(Span::minutes(3));
    take!(world.resolve(taken.effect, 1, false)?,
        Reply::Settled { state: EffectState::Failed, receipt: Some(_), .. } => (), "whoever meets it records it");
    let kinds: Vec<_> = world.events(&taken.effect)?.iter().map(|event| event.stamp.sequence).collect();
    ensure_eq!(kinds, [1, 2, 3], "taken, lapsed, resolved");
    take!(world.action(taken.action)?.state, ActionState::Answered { result: Answer::Failed, .. } => (),
        "its action ended unknown and has its answer");
    ensure_eq!(world.attempt(&pay("k"))?.fence, 2, "a new attempt is permitted");
    Ok(())
}

fn remote(taken: &Attempt, finding: Finding) -> Command {
    let (effect, fence) = (taken.effect, taken.fence);
    Command::Reconcile(Reconcile {
        effect,
        fence,
        finding,
        evidence: None,
        remote: None,
        settle: Span::minutes(1),
    })
}

fn the_remote_says_committed_while_it_executes_or_is_unknown(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let result = || Finding::Committed(Some("{\"remote\":1}".to_owned()));
    for taken in [world.attempt(&pay("a"))?, unknown(&world, "b")?] {
        take!(world.command(remote(&taken, result()))?,
            Reply::Settled { state: EffectState::Committed, receipt: Some(_), repeated: false } => (),
            "the remote's word stands");
        let row = world.effect(&taken.effect)?;
        let text = row.result_at.map(|at| world.text(&taken.effect, at)).transpose()?.flatten();
        ensure_eq!(text.as_deref(), Some("{\"remote\":1}"), "its result is kept");
        let events = world.log()?.len();
        take!(world.command(remote(&taken, result()))?, Reply::Settled { repeated: true, .. } => (),
            "said again it succeeds");
        ensure_eq!(world.log()?.len(), events, "and nothing is recorded of it");
    }
    Ok(())
}

fn the_remote_says_absent_only_once_it_can_no_longer_happen(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let absent = || world.command(remote(&taken, Finding::Absent));
    ensure_eq!(code(&absent()?), Some(Code::InvalidTransition), "its holder may still carry it out");
    world.settle(&taken, Outcome::Ambiguous)?;
    world.pass(Span::minutes(2));
    ensure_eq!(code(&absent()?), Some(Code::TooEarly), "the lease ends now, the remote may still be at it");
    ensure_eq!(world.effect(&taken.effect)?.state, EffectState::Ambiguous, "nothing changes");
    world.pass(Span::minutes(1));
    take!(absent()?, Reply::Settled { state: EffectState::Failed, .. } => (), "now it did not happen");
    ensure!(world.attempt(&pay("k"))?.fence == 2, "a new attempt is permitted");
    Ok(())
}
