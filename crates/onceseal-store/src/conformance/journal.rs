//! The journal: one chain a stream, one log, and rows that are its fold.

use onceseal_core::action::Reach;
use onceseal_core::approval::Said;
use onceseal_core::command::Command;
use onceseal_core::decide::evolve;
use onceseal_core::effect::{Holding, Outcome};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Event, Row, chain_hash, open_text, seal_hash, sealed_text};
use onceseal_core::store::Note;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::Loaded;

use super::world::{POLICY, World, big, call, pay, to_renew};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite};
use crate::read::StoredEvent;
use crate::store::Store;

suite! { "journal":
    every_stream_is_one_chain_from_its_genesis
    every_private_part_has_the_seal_of_its_salt_and_text
    every_row_is_the_fold_of_its_stream
    every_text_is_the_one_its_event_names
    the_log_is_every_event_once_in_the_order_of_recording
    the_events_of_a_command_stand_together
    the_log_reads_the_same_in_pages_of_any_size
    a_stream_reads_from_any_of_its_events_on
}

/// A store in which most of what can happen has happened.
pub(super) fn eventful(subject: &dyn Subject) -> Result<World<'_>, Failure> {
    let mut world = World::open(subject)?;
    for (id, outcome) in [("a", Outcome::Committed), ("b", Outcome::Failed), ("c", Outcome::Ambiguous)] {
        let taken = world.attempt(&pay(id))?;
        world.pass(Span::seconds(1));
        world.command(to_renew(Holding::from(&taken)))?;
        world.settle(&taken, outcome)?;
    }
    let unknown = world.effect_of("pay:c");
    world.resolve(unknown, 1, true)?;
    let again = world.attempt(&pay("b"))?;
    world.pass(Span::minutes(4));
    world.command(Command::Lapse(again.effect))?;
    world.resolve(again.effect, 2, false)?;
    world.settle(&again, Outcome::Committed)?;
    let failed = world.attempt(&pay("c2"))?;
    world.settle(&failed, Outcome::Failed)?;
    world.attempt(&pay("c2"))?;
    let (_, denied) = world.asked(&big("d"))?;
    world.answer(denied, "ann", Said::No)?;
    let mut reserved = big("e");
    reserved.reach = Reach::Reserved;
    world.granted(&reserved)?;
    world.attempt(&reserved)?;
    let mut ready = pay("f");
    ready.reach = Reach::Ready;
    world.run(&ready)?;
    world.refusal(&call("burn", "g", 1))?;
    world.activate(&POLICY.replace("\"host:bob\", ", ""))?;
    world.command(Command::Note(Note {
        body: "{\"seen\":true}".to_owned(),
        source: "elsewhere".to_owned(),
    }))?;
    Ok(world)
}

/// Every stream with its events.
fn streams(store: &Store) -> Result<Vec<(StreamId, Vec<StoredEvent>)>, Failure> {
    Ok(store.read(|snapshot| {
        let all = snapshot.streams(None, usize::MAX)?;
        all.into_iter().map(|stream| Ok((stream, snapshot.events(&stream, 1, usize::MAX)?))).collect()
    })?)
}

fn decoded(event: &StoredEvent) -> Result<&Event, Failure> {
    event.event.as_ref().ok_or_else(|| Failure::new("every event decodes"))
}

/// Every stream is one chain: numbered from 1, each event with the hash of the
/// one before in it, the last one its head.
pub(super) fn chained(store: &Store) -> Verdict {
    let all = streams(store)?;
    ensure!(!all.is_empty(), "there are streams");
    for (stream, events) in all {
        let mut prior = store.tenant().genesis(&stream);
        for (sequence, event) in (1..).zip(&events) {
            ensure_eq!(
                (event.stamp.stream, event.stamp.sequence),
                (stream, sequence),
                "numbered without gap"
            );
            let text = open_text(&event.stamp, decoded(event)?, prior, event.seal);
            ensure_eq!(chain_hash(&text), event.hash, "event {sequence} of {stream} is what was hashed");
            prior = event.hash;
        }
        let head = match store.read(|snapshot| snapshot.stream(&stream))? {
            Loaded::Row(stored) => (stored.head.sequence, stored.head.hash),
            other => return Err(Failure::new(format_args!("{stream} has a row, not {other:?}"))),
        };
        ensure_eq!(head, (events.len() as u64, prior), "the head of {stream} is its last event");
    }
    Ok(())
}

fn every_stream_is_one_chain_from_its_genesis(subject: &dyn Subject) -> Verdict {
    chained(&eventful(subject)?.store)
}

fn every_private_part_has_the_seal_of_its_salt_and_text(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let mut salts = Vec::new();
    for event in world.log()? {
        let sealed = sealed_text(decoded(&event)?);
        let seal = event.salt.zip(sealed.as_ref()).map(|(salt, text)| seal_hash(&salt, text));
        ensure_eq!(
            (event.seal, event.salt.is_some()),
            (seal, sealed.is_some()),
            "sealed if and as it is private"
        );
        salts.extend(event.salt);
    }
    let n = salts.len();
    ensure!(n > 10, "much is private");
    salts.sort_unstable();
    salts.dedup();
    ensure_eq!(salts.len(), n, "no salt serves twice");
    Ok(())
}

fn every_row_is_the_fold_of_its_stream(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    for (stream, events) in streams(&world.store)? {
        let mut row = None;
        for event in &events {
            let stamp = &event.stamp;
            let next = evolve(&stream, row, stamp.sequence, stamp.at, decoded(event)?);
            row = Some(next.map_err(Failure::new)?);
        }
        let mut stored = world.stored(&stream)?.row;
        if let (Some(Row::Effect(folded)), Row::Effect(stored)) = (&row, &mut stored) {
            // A renewal is outside the fold.
            ensure!(
                (folded.lease_until..=Some(folded.deadline)).contains(&stored.lease_until),
                "a lease ends between what its event says and its deadline"
            );
            stored.lease_until = folded.lease_until;
        }
        ensure_eq!(Some(stored), row, "the row of {stream} follows from its events");
    }
    Ok(())
}

fn every_text_is_the_one_its_event_names(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let mut texts = 0;
    for event in world.log()? {
        let (stream, sequence) = (event.stamp.stream, event.stamp.sequence);
        let payload = world.store.read(|snapshot| snapshot.payload(&stream, sequence))?;
        let named: Option<Hash> = match &decoded(&event)?.body {
            Body::ActionStarted(_, sealed)
            | Body::ActionWaiting(_, sealed)
            | Body::ActionReady(_, sealed)
            | Body::ActionEnded(_, sealed) => sealed.proposal.as_ref().map(|proposal| proposal.arguments),
            Body::EffectSettled(_, sealed) | Body::EffectLate(_, sealed) => sealed.result,
            Body::PolicyActivated(_, sealed) => sealed.text,
            Body::NoteAppended(_, sealed) => sealed.body,
            _ => None,
        };
        texts += usize::from(named.is_some());
        ensure_eq!(payload.map(|payload| payload.hash()), named, "event {sequence} of {stream} has its text");
    }
    ensure!(texts > 8, "many events have a text");
    Ok(())
}

fn the_log_is_every_event_once_in_the_order_of_recording(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let log = world.log()?;
    let positions: Vec<u64> = log.iter().map(|event| event.position).collect();
    ensure!(positions.first() > Some(&0), "positions count from 1");
    ensure!(positions.is_sorted_by(|a, b| a < b), "positions grow");
    ensure!(log.is_sorted_by(|a, b| a.stamp.at <= b.stamp.at), "and time with them");
    let newest = world.store.read(|snapshot| snapshot.newest())?;
    ensure_eq!(Some(newest), positions.last().copied(), "the newest position is the last one's");
    let mut by_stream = log;
    by_stream.sort_by_key(|event| (event.stamp.stream, event.stamp.sequence));
    let mut all: Vec<_> = streams(&world.store)?.into_iter().flat_map(|(_, events)| events).collect();
    all.sort_by_key(|event| (event.stamp.stream, event.stamp.sequence));
    ensure_eq!(by_stream, all, "the log is what the streams are");
    Ok(())
}

fn the_events_of_a_command_stand_together(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let log = world.log()?;
    let mut at = 0;
    while let Some(first) = log.get(at) {
        let of = first.stamp.of as usize;
        let parts = log.get(at..at + of).unwrap_or_default();
        let found: Vec<_> = parts.iter().map(|event| (event.stamp.command, event.stamp.part)).collect();
        let expected: Vec<_> = (1..=first.stamp.of).map(|part| (first.stamp.command, part)).collect();
        ensure_eq!(found, expected, "all parts of a command, in order");
        ensure!(parts.iter().all(|event| event.stamp.at == first.stamp.at), "at one moment");
        at += of;
    }
    Ok(())
}

fn the_log_reads_the_same_in_pages_of_any_size(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let log = world.log()?;
    for limit in [1, 2, 7, log.len()] {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = world.store.read(|snapshot| snapshot.log(after, limit))?;
            ensure!(page.len() <= limit, "a page is as long as asked for at most");
            let Some(last) = page.last() else { break };
            after = last.position;
            found.extend(page);
        }
        ensure_eq!(found, log, "in pages of {limit}");
    }
    Ok(())
}

fn a_stream_reads_from_any_of_its_events_on(subject: &dyn Subject) -> Verdict {
    let world = eventful(subject)?;
    let effect = world.effect_of("pay:b");
    let events = world.events(&effect)?;
    ensure!(events.len() > 4, "much happened to it");
    for from in 1..=events.len() + 1 {
        for limit in [1, 2, events.len()] {
            let found = world.store.read(|snapshot| snapshot.events(&effect, from as u64, limit))?;
            let expected: Vec<_> = events.iter().skip(from - 1).take(limit).cloned().collect();
            ensure_eq!(found, expected, "{limit} events from {from} on");
        }
    }
    Ok(())
}
