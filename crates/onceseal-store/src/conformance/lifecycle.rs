//! Opening, closing and opening again; clocks; tenants side by side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::Loaded;

use super::journal::{chained, eventful};
use super::world::{POLICY, World, big, code, pay, to_reserve, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};
use crate::clock::{Clock, ManualClock};
use crate::error::StoreError;
use crate::parts::Options;
use crate::read::StoredEvent;

suite! { "lifecycle":
    a_closed_store_runs_what_waits_and_takes_no_more
    time_never_goes_backwards
    a_clock_that_jumped_is_refused_until_it_is_accepted
    a_tenant_has_a_name_of_its_grammar
    tenants_do_not_see_each_other
    ; durable:
    what_was_acknowledged_is_there_after_reopening
    what_was_renewed_is_renewed_after_reopening
    a_key_stays_blocked_after_reopening
    time_goes_on_where_a_stream_has_been
    two_openings_share_one_truth
    a_fast_clock_sets_the_time_of_what_it_wrote_and_of_nothing_else
}

fn a_closed_store_runs_what_waits_and_takes_no_more(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.gate.shut();
    let tickets = ["a", "b"].map(|key| world.store.submit(to_reserve(key, unknown_action(1))));
    let closed = std::thread::scope(|scope| {
        world.gate.await_writer();
        let closing = scope.spawn(|| world.store.close());
        let begun = Instant::now();
        while world.store.read(|_| Ok(())).is_ok() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        world.gate.open();
        closing.join().is_ok()
    });
    ensure!(closed, "it closes");
    for ticket in tickets {
        take!(ticket?.wait(), Ok(Reply::Attempt(_)) => (), "what waited is run");
    }
    let later = world.store.run(to_reserve("c", unknown_action(1)));
    take!(later, Err(error) if error.code() == Code::StoreClosed => (), "what comes later is not");
    let read = world.store.read(|snapshot| snapshot.newest());
    take!(read, Err(error) if error.code() == Code::StoreClosed => (), "nor is anything read");
    world.store.close();
    if subject.is_durable() {
        let world = world.reopened()?;
        for key in ["a", "b"] {
            ensure_eq!(
                world.effect(&world.effect_of(key))?.fence,
                1,
                "{key} is there when it is opened again"
            );
        }
    }
    Ok(())
}

fn time_never_goes_backwards(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.pass(Span::minutes(1));
    let first = world.attempt(&pay("a"))?;
    world.clock.step_wall(-Span::minutes(30).as_micros());
    let second = world.attempt(&pay("b"))?;
    ensure_eq!(second.lease_until, first.lease_until, "the last reading is the earliest time there is");
    world.settle(&first, Outcome::Committed)?;
    world.pass(Span::minutes(31));
    let third = world.attempt(&pay("c"))?;
    ensure!(third.lease_until > first.lease_until, "time goes on once the clock has caught up");
    let log = world.log()?;
    ensure!(log.is_sorted_by(|a, b| a.stamp.at <= b.stamp.at), "the log never goes back in time");
    Ok(())
}

fn a_clock_that_jumped_is_refused_until_it_is_accepted(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.attempt(&pay("a"))?;
    let log = world.log()?;
    for step in [61, -61] {
        world.clock.step_wall(step * 60_000_000);
        let keys = ["b", "c", "d"].map(|key| to_reserve(key, unknown_action(1)));
        for answer in world.together(keys.to_vec())? {
            take!(answer, Err(error) if error.code() == Code::ClockJump => (), "a clock that jumped decides nothing");
        }
    }
    ensure_eq!(world.log()?, log, "nothing is recorded of it");
    world.store.accept_clock();
    world.attempt(&pay("b"))?;
    Ok(())
}

fn a_tenant_has_a_name_of_its_grammar(subject: &dyn Subject) -> Verdict {
    let long = "a".repeat(64);
    for wrong in ["", "A", "-a", "_a", "a b", "a/b", "ä", long.as_str()] {
        let options = Options { tenant: wrong.to_owned(), ..Options::default() };
        let code = subject.parts(&options).err().map(|error| error.code());
        ensure_eq!(code, Some(Code::OutOfBounds), "{wrong:?} is no name of a tenant");
    }
    let options = Options { tenant: long[1..].to_owned(), ..Options::default() };
    ensure_eq!(subject.parts(&options)?.tenant.name, &long[1..], "63 characters are one");
    Ok(())
}

fn tenants_do_not_see_each_other(subject: &dyn Subject) -> Verdict {
    let one = World::with(subject, "one", |parts| parts)?;
    let alone = (one.store.read(|snapshot| snapshot.counts())?, one.log()?, one.store.read(|s| s.newest())?);
    let two = World::with(subject, "two", |parts| parts)?;
    ensure!(one.store.tenant().id != two.store.tenant().id, "each has an id of its own");
    ensure!(one.effect_of("pay:k") != two.effect_of("pay:k"), "and names of its own for the same key");
    let mut same = pay("k");
    same.action = Some(unknown_action(7));
    let taken = two.attempt(&same)?;
    two.settle(&taken, Outcome::Committed)?;
    let (_, approval) = two.granted(&big("l"))?;
    let seen = (one.store.read(|snapshot| snapshot.counts())?, one.log()?, one.store.read(|s| s.newest())?);
    ensure_eq!(seen, alone, "what one does the other cannot see, not even that it does something");
    for stream in [taken.effect, StreamId::action(taken.action), StreamId::approval(approval)] {
        let found =
            one.store.read(|snapshot| Ok((snapshot.stream(&stream)?, snapshot.events(&stream, 1, 1)?)))?;
        ensure_eq!(found, (Loaded::Absent, vec![]), "{stream} is the other's");
    }
    let mut stolen = big("l");
    stolen.approval = Some(approval);
    ensure_eq!(code(&one.run(&stolen)?), Some(Code::ApprovalUnknown), "another tenant's approval is unknown");
    ensure_eq!(code(&one.settle(&taken, Outcome::Failed)?), Some(Code::EffectUnknown), "so is its effect");
    let own = one.attempt(&same)?;
    ensure_eq!((own.fence, own.action), (1, taken.action), "the same key and the same id are free");
    ensure_eq!(two.effect(&taken.effect)?.state, EffectState::Committed, "and the other's are not touched");
    chained(&one.store)?;
    chained(&two.store)
}

/// All that a store says of itself.
#[derive(PartialEq)]
struct Told {
    rows: Vec<(StreamId, Loaded)>,
    log: Vec<StoredEvent>,
}

fn told(world: &World<'_>) -> Result<Told, Failure> {
    Ok(world.store.read(|snapshot| {
        let streams = snapshot.streams(None, usize::MAX)?;
        let rows = streams.into_iter().map(|stream| Ok((stream, snapshot.stream(&stream)?)));
        let rows = rows.collect::<Result<_, StoreError>>()?;
        Ok(Told { rows, log: snapshot.log(0, usize::MAX)? })
    })?)
}

fn what_was_acknowledged_is_there_after_reopening(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let (before, tenant) = (told(&world)?, world.store.tenant().clone());
    let world = world.reopened()?;
    ensure_eq!(world.store.tenant(), &tenant, "the tenant is who it was");
    ensure!(told(&world)? == before, "every row and event is as it was");
    let active = world.store.active_policy()?.map(|policy| policy.hash);
    ensure_eq!(active, Some(world.policy.hash), "the active policy too");
    let texts = world.store.read(|snapshot| snapshot.counts())?.payloads;
    ensure!(texts > 8, "and the texts");
    chained(&world.store)
}

fn what_was_renewed_is_renewed_after_reopening(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    world.pass(Span::minutes(1));
    world.command(super::world::to_renew((&taken).into()))?;
    let world = world.reopened()?;
    let until = world.effect(&taken.effect)?.lease_until;
    ensure_eq!(until, Some(taken.lease_until + Span::minutes(1)), "the lease ends when it was said to");
    Ok(())
}

fn a_key_stays_blocked_after_reopening(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let committed = world.attempt(&pay("a"))?;
    world.settle(&committed, Outcome::Committed)?;
    world.attempt(&pay("b"))?;
    let world = world.reopened()?;
    ensure_eq!(code(&world.run(&pay("a"))?), Some(Code::Duplicate), "it has happened");
    ensure_eq!(code(&world.run(&pay("b"))?), Some(Code::InProgress), "somebody has it");
    world.pass(Span::minutes(3));
    let world = world.reopened()?;
    ensure_eq!(code(&world.run(&pay("b"))?), Some(Code::Ambiguous), "its holder is gone and nobody knows");
    Ok(())
}

fn time_goes_on_where_a_stream_has_been(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.pass(Span::hours(3));
    let taken = world.attempt(&pay("k"))?;
    // Set back while nobody looked: no jump for whoever opens now.
    world.clock.step_wall(-Span::hours(2).as_micros());
    let world = world.reopened()?;
    world.settle(&taken, Outcome::Committed)?;
    let events = world.events(&taken.effect)?;
    ensure!(events.is_sorted_by(|a, b| a.stamp.at <= b.stamp.at), "a stream never goes back in time");
    let other = world.attempt(&pay("l"))?;
    ensure!(other.lease_until < taken.lease_until, "but sets the time of no other stream");
    Ok(())
}

fn two_openings_share_one_truth(subject: &dyn Subject) -> Verdict {
    let mut one = World::open(subject)?;
    let mut two = World::bare(subject, "default", one.clock.clone(), |parts| parts)?;
    ensure_eq!(two.store.tenant(), one.store.tenant(), "both are the same tenant's");
    for round in 0..4 {
        let (first, second) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let id = round.to_string();
        let taken = first.attempt(&pay(&id))?;
        ensure_eq!(code(&second.run(&pay(&id))?), Some(Code::InProgress), "the other sees it at once");
        first.settle(&taken, Outcome::Committed)?;
        ensure_eq!(code(&second.run(&pay(&id))?), Some(Code::Duplicate), "and its outcome");
    }
    one.activate(&POLICY.replace("\"amount_lte\": 100}", "\"amount_lte\": 10}"))?;
    take!(two.run(&pay("x"))?, Reply::PolicyStale { active } if active == one.policy.hash => (),
        "a policy that one activates decides for both");
    two.policy = two.store.active_policy()?.ok_or_else(|| Failure::new("a policy is active"))?;
    two.asked(&pay("x"))?;
    chained(&two.store)?;
    ensure_eq!(two.log()?, one.log()?, "both read one log");
    Ok(())
}

fn a_fast_clock_sets_the_time_of_what_it_wrote_and_of_nothing_else(subject: &dyn Subject) -> Verdict {
    let mut slow = World::open(subject)?;
    let ahead = Arc::new(ManualClock::new(slow.clock.now()));
    ahead.advance(Span::minutes(30).as_micros());
    let mut fast = World::bare(subject, "default", ahead, |parts| parts)?;
    fast.activate(&POLICY.replace("\"amount_lte\": 1000", "\"amount_lte\": 900"))?;
    let taken = fast.attempt(&pay("fast"))?;
    slow.policy = fast.policy.clone();
    let own = slow.attempt(&pay("slow"))?;
    ensure_eq!(own.lease_until, slow.now() + Span::minutes(2), "the policy's time is not the action's");
    slow.settle(&taken, Outcome::Committed)?;
    let settled = slow.effect(&taken.effect)?.updated_at;
    ensure_eq!(settled, fast.now(), "an event is never before the one it follows");
    let next = slow.attempt(&pay("slow too"))?;
    ensure_eq!(next.lease_until, slow.now() + Span::minutes(2), "and is not remembered for what comes next");
    Ok(())
}
