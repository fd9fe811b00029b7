//! Many threads at once.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::store::Note;
use onceseal_core::stream::StreamId;

use super::journal::chained;
use super::world::{World, big, call, code, pay, to_begin, to_reserve, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite};
use crate::read::StoredEvent;

suite! { "contention":
    one_of_many_threads_gets_the_key
    one_of_many_threads_uses_the_approval
    one_of_many_answers_decides
    ua_143_sixteen_writers_make_one_chain_a_stream
    ua_095_a_reader_that_follows_positions_misses_nothing
}

const WRITERS: u8 = 16;
/// Who comes first differs from round to round.
const ROUNDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Runs the same on many threads, which start together.
pub(super) fn at_once<T: Send>(each: impl Fn(u8) -> Result<T, Failure> + Sync) -> Result<Vec<T>, Failure> {
    let barrier = Barrier::new(usize::from(WRITERS));
    thread::scope(|scope| {
        let (each, barrier) = (&each, &barrier);
        let threads: Vec<_> = (0..WRITERS)
            .map(|n| {
                scope.spawn(move || {
                    barrier.wait();
                    each(n)
                })
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|done| done.unwrap_or_else(|_| Err(Failure::new("a thread failed")))).collect()
    })
}

fn attempts(replies: Vec<Reply>) -> (Vec<Attempt>, BTreeMap<Option<Code>, usize>) {
    let (mut taken, mut others) = (Vec::new(), BTreeMap::new());
    for reply in replies {
        match reply {
            Reply::Attempt(attempt) => taken.push(attempt),
            other => *others.entry(code(&other)).or_default() += 1,
        }
    }
    (taken, others)
}

fn one_of_many_threads_gets_the_key(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for fence in (1..).take(ROUNDS.len()) {
        let (taken, others) = attempts(at_once(|_| world.run(&pay("k")))?);
        ensure_eq!(taken.len(), 1, "exactly one attempt in round {fence}: {others:?}");
        ensure_eq!(taken[0].fence, fence, "with the next fence");
        let expected = BTreeMap::from([(Some(Code::InProgress), usize::from(WRITERS) - 1)]);
        ensure_eq!(others, expected, "the others are told that it is under way");
        world.settle(&taken[0], Outcome::Failed)?;
    }
    Ok(())
}

fn one_of_many_threads_uses_the_approval(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for id in ROUNDS {
        // Each call of it is an effect of its own: nothing but the approval is in the way.
        let mut presented = call("sign", id, 1);
        let (_, approval) = world.granted(&presented)?;
        presented.approval = Some(approval);
        let (taken, others) = attempts(at_once(|_| world.run(&presented))?);
        ensure_eq!(taken.len(), 1, "exactly one attempt in round {id}: {others:?}");
        ensure_eq!(world.approval(approval)?.consumed_by, Some(taken[0].action), "it used the approval");
    }
    Ok(())
}

fn one_of_many_answers_decides(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for id in ROUNDS {
        let (_, approval) = world.asked(&big(id))?;
        let people = ["ann", "bob", "cy"];
        let answers = at_once(|n| {
            let person = people[usize::from(n) % people.len()];
            world.answer(approval, person, if n % 2 == 0 { Said::Yes } else { Said::No })
        })?;
        let counted = |reply: &&Reply| matches!(reply, Reply::Approval { repeated: false, .. });
        // A yes may be taken back by a no that comes later; nothing follows on a no.
        ensure!(
            (1..=2).contains(&answers.iter().filter(counted).count()),
            "one answer decides, and a no may follow on a yes: {answers:?}"
        );
        let events = world.events(&StreamId::approval(approval))?.len();
        ensure!((2..=3).contains(&events), "and no more is recorded");
    }
    Ok(())
}

/// Takes, reports, notes: some keys are everybody's.
fn write(world: &World<'_>, n: u8) -> Result<usize, Failure> {
    let mut taken = 0;
    for round in 0..12 {
        let key = if round % 3 == 0 { format!("own {n} {round}") } else { format!("shared {}", round % 4) };
        if let Reply::Attempt(attempt) = world.command(to_reserve(&key, unknown_action(n)))? {
            let holding = Holding::from(&attempt);
            world.command(to_begin(holding))?;
            world.settle(holding, Outcome::Failed)?;
            taken += 1;
        }
        world.command(Command::Note(Note { body: format!("{round}"), source: format!("writer {n}") }))?;
    }
    Ok(taken)
}

fn ua_143_sixteen_writers_make_one_chain_a_stream(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let before = world.log()?.len();
    let taken: usize = at_once(|n| write(&world, n))?.into_iter().sum();
    chained(&world.store)?;
    let written = world.log()?.len() - before;
    ensure_eq!(written, 3 * taken + 12 * usize::from(WRITERS), "every acknowledged event is there, once");
    Ok(())
}

fn ua_095_a_reader_that_follows_positions_misses_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let done = AtomicBool::new(false);
    let followed = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&world, &done));
        let written = at_once(|n| write(&world, n));
        done.store(true, Ordering::SeqCst);
        let followed = follower.join().unwrap_or_else(|_| Err(Failure::new("the reader failed")))?;
        written.map(|_| followed)
    })?;
    ensure_eq!(followed.len(), world.log()?.len(), "it has seen every event");
    ensure!(followed == world.log()?, "in the order of the log");
    Ok(())
}

/// Reads on from the last position seen, until the writers are done and no more comes.
fn follow(world: &World<'_>, done: &AtomicBool) -> Result<Vec<StoredEvent>, Failure> {
    let mut seen: Vec<StoredEvent> = Vec::new();
    loop {
        let last_look = done.load(Ordering::SeqCst);
        let after = seen.last().map_or(0, |event| event.position);
        let page = world.store.read(|snapshot| snapshot.log(after, 7))?;
        if page.is_empty() && last_look {
            return Ok(seen);
        }
        seen.extend(page);
    }
}
