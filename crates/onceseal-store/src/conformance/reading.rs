//! Looking things up: what is not there is empty, never a failure.

use onceseal_core::action::{Acquire, Reach};
use onceseal_core::approval::{Answer, Revocation, Said};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::hash::Hash;
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::Index;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;

use super::world::{World, big, host, pay, unknown_action};
use super::{Subject, Verdict, ensure, ensure_eq, suite};
use crate::read::Page;

suite! { "reading":
    what_is_not_there_reads_as_empty
    a_command_about_what_is_not_there_is_refused_by_name
    reading_changes_nothing
    a_snapshot_stays_as_it_was_while_others_write
    counts_are_of_what_is_there
}

fn what_is_not_there_reads_as_empty(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let newest = world.store.read(|snapshot| snapshot.newest())?;
    for stream in [
        world.effect_of("nobody's"),
        StreamId::action(unknown_action(1)),
        StreamId::approval(ApprovalId([7; 16])),
    ] {
        world
            .store
            .read(|snapshot| {
                let found = (snapshot.stream(&stream)?, snapshot.events(&stream, 1, 10)?);
                Ok((found, snapshot.payload(&stream, 1)?))
            })
            .map_err(super::Failure::from)
            .and_then(|((row, events), text)| {
                ensure_eq!((row, events.len(), text), (Loaded::Absent, 0, None), "{stream} is not there");
                Ok(())
            })?;
    }
    for index in Index::ALL {
        let (from, to) = (vec![0xee; 8], vec![0xef; 8]);
        for newest_first in [false, true] {
            let (from, to) = (from.clone(), to.clone());
            let page = Page { index: *index, from, to, after: None, newest_first, limit: 10 };
            let found = world.store.read(|snapshot| snapshot.keys(&page))?;
            ensure_eq!(found, [], "nothing has such a key of {index}");
            let page = Page { from: page.to, to: page.from, ..page };
            let found = world.store.read(|snapshot| snapshot.keys(&page))?;
            ensure_eq!(found, [], "a range that ends before it begins is empty");
        }
    }
    let store = world.store.tenant().store();
    for (stream, from) in [(store, 2), (store, u64::MAX)] {
        let found = world.store.read(|snapshot| snapshot.events(&stream, from, 10))?;
        ensure_eq!(found.len(), 0, "there is no event {from}");
        let text = world.store.read(|snapshot| snapshot.payload(&stream, from))?;
        ensure_eq!(text, None, "nor its text");
    }
    for after in [newest, u64::MAX] {
        let found = world.store.read(|snapshot| snapshot.log(after, 10))?;
        ensure_eq!(found.len(), 0, "there is nothing after {after}");
    }
    let policy = world.store.policy(Hash([7; 32]))?.map(|policy| policy.hash);
    ensure_eq!(policy, None, "there is no such policy");
    Ok(())
}

fn a_command_about_what_is_not_there_is_refused_by_name(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (action, approval) = (unknown_action(1), ApprovalId([7; 16]));
    let (reach, lease, deadline) = (Reach::Executing, None, None);
    let shown = Hash([0; 32]);
    let events = world.log()?.len();
    for (command, code) in [
        (Command::Acquire(Acquire { action, approval: None, reach, lease, deadline }), Code::ActionUnknown),
        (
            Command::Answer(Answer { approval, person: host("ann"), said: Said::Yes, shown, reason: None }),
            Code::ApprovalUnknown,
        ),
        (Command::Revoke(Revocation { approval, person: host("olga") }), Code::ApprovalUnknown),
    ] {
        ensure_eq!(world.refused(command)?.code, code, "it names what is not there");
    }
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    Ok(())
}

fn reading_changes_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    world.attempt(&pay("a"))?;
    world.asked(&big("b"))?;
    let look = || -> Result<_, super::Failure> {
        Ok(world.store.read(|snapshot| {
            let streams = snapshot.streams(None, 100)?;
            let rows = streams.iter().map(|stream| snapshot.stream(stream)).collect::<Result<Vec<_>, _>>()?;
            Ok((streams, rows, snapshot.log(0, 100)?, snapshot.counts()?))
        })?)
    };
    let before = look()?;
    world.store.active_policy()?;
    world.store.unsafe_settings()?;
    let faults = world.store.read(|snapshot| snapshot.integrity())?;
    ensure_eq!(faults, Vec::<String>::new(), "what was written is sound");
    ensure_eq!(look()?, before, "it is as before");
    Ok(())
}

fn a_snapshot_stays_as_it_was_while_others_write(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let taken = world.attempt(&pay("k"))?;
    let (before, during) = world.store.read(|snapshot| {
        let before = (snapshot.stream(&taken.effect)?, snapshot.log(0, 100)?);
        world.store.run(super::world::to_settle((&taken).into(), Outcome::Committed))?;
        Ok((before, (snapshot.stream(&taken.effect)?, snapshot.log(0, 100)?)))
    })?;
    ensure_eq!(during, before, "one picture, whatever is written meanwhile");
    let after = world.store.read(|snapshot| Ok((snapshot.stream(&taken.effect)?, snapshot.log(0, 100)?)))?;
    ensure!(after != before, "the next one shows it");
    Ok(())
}

fn counts_are_of_what_is_there(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let before = world.store.read(|snapshot| snapshot.counts())?;
    world.attempt(&pay("k"))?;
    let after = world.store.read(|snapshot| snapshot.counts())?;
    ensure_eq!(
        (after.streams - before.streams, after.events - before.events, after.payloads - before.payloads),
        (2, 2, 1),
        "an attempt is two streams with an event each, and the arguments"
    );
    ensure_eq!(after.keys - before.keys, 4, "found by state twice, by name and by its lease");
    ensure_eq!(after.events as usize, world.log()?.len(), "every event is in the log");
    Ok(())
}
