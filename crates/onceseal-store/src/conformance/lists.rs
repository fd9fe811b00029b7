//! Lists: complete, oldest first, page by page without loss or repeat.

use std::collections::BTreeSet;

use onceseal_core::action::{ActionState, Answer, Reach, ended_number, state_number};
use onceseal_core::approval::{Said, Status};
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome};
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::{Index, moment};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::{Span, Timestamp};

use super::world::{World, attempt, big, call, pay, refusal, to_begin, unknown_action};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};
use crate::read::{Hit, Page};

suite! { "lists":
    a_list_is_oldest_first_and_then_as_it_came_to_be
    a_list_reads_the_same_from_its_other_end
    pages_lose_and_repeat_nothing
    pages_lose_and_repeat_nothing_while_others_write
    a_page_ends_where_its_range_ends
    effects_are_listed_by_state
    approvals_are_listed_by_state
    actions_are_listed_by_state_and_by_name
    what_ends_by_itself_is_listed_when_it_is_due
    every_stream_is_visited_once
}

/// Keys of an index that begin so, in pages of this size.
pub(super) fn hits(
    world: &World<'_>,
    index: Index,
    prefix: &[u8],
    limit: usize,
) -> Result<Vec<Hit>, Failure> {
    walk(world, &page_of(index, prefix, limit))
}

fn page_of(index: Index, prefix: &[u8], limit: usize) -> Page {
    let to = [prefix, &[0xff; 80]].concat();
    Page { index, from: prefix.to_vec(), to, after: None, newest_first: false, limit }
}

/// All pages from this one on.
fn walk(world: &World<'_>, first: &Page) -> Result<Vec<Hit>, Failure> {
    let (mut page, mut all) = (first.clone(), Vec::new());
    loop {
        let hits = world.store.read(|snapshot| snapshot.keys(&page))?;
        ensure!(hits.len() <= page.limit, "a page is as long as asked for at most");
        ensure!(all.len() < 100_000, "a list ends");
        let Some(last) = hits.last() else { return Ok(all) };
        page.after = Some((last.key.clone(), last.stream));
        all.extend(hits);
    }
}

fn streams(world: &World<'_>, kind: StreamKind, state: u8) -> Result<Vec<StreamId>, Failure> {
    let hits = hits(world, Index::State, &[kind.number(), state], 3)?;
    Ok(hits.into_iter().map(|hit| hit.stream).collect())
}

/// Takes so many effects, some of them at the same moment and in one batch.
fn many(world: &World<'_>, n: usize) -> Result<Vec<StreamId>, Failure> {
    let mut made = Vec::new();
    for chunk in (0..n).collect::<Vec<_>>().chunks(4) {
        let command = |n: &usize| super::world::to_reserve(&format!("key {n}"), unknown_action(1));
        let answers = world.together(chunk.iter().map(command).collect())?;
        for answer in answers {
            made.push(attempt(answer?)?.effect);
        }
        if made.len() % 8 == 0 {
            world.pass(Span::millis(1));
        }
    }
    Ok(made)
}

fn a_list_is_oldest_first_and_then_as_it_came_to_be(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let made = many(&world, 30)?;
    ensure_eq!(streams(&world, StreamKind::Effect, EffectState::Reserved.number())?, made, "in order");
    Ok(())
}

fn a_list_reads_the_same_from_its_other_end(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut made = many(&world, 30)?;
    made.reverse();
    for limit in [1, 4, 7, 100] {
        let mut page = page_of(Index::State, &[StreamKind::Effect.number()], limit);
        page.newest_first = true;
        let found: Vec<_> = walk(&world, &page)?.into_iter().map(|hit| hit.stream).collect();
        ensure_eq!(found, made, "newest first, in pages of {limit}");
    }
    Ok(())
}

fn pages_lose_and_repeat_nothing(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let made = many(&world, 30)?;
    for limit in [1, 4, 7, 29, 30, 31] {
        let found = hits(&world, Index::State, &[StreamKind::Effect.number()], limit)?;
        let found: Vec<_> = found.into_iter().map(|hit| hit.stream).collect();
        ensure_eq!(found, made, "in pages of {limit}");
    }
    let after = Page {
        after: Some((vec![StreamKind::Effect.number()], world.effect_of("nobody's"))),
        ..page_of(Index::State, &[StreamKind::Effect.number()], 100)
    };
    ensure_eq!(
        walk(&world, &after)?.len(),
        30,
        "after a stream that is not there comes what comes after its key"
    );
    Ok(())
}

fn pages_lose_and_repeat_nothing_while_others_write(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let made = many(&world, 24)?;
    world.pass(Span::millis(1));
    let mut page = page_of(Index::State, &[StreamKind::Effect.number()], 5);
    let mut seen = Vec::new();
    loop {
        let hits = world.store.read(|snapshot| snapshot.keys(&page))?;
        let Some(last) = hits.last() else { break };
        page.after = Some((last.key.clone(), last.stream));
        seen.extend(hits.into_iter().map(|hit| hit.stream));
        // Ten more come at the end, two for each page.
        if seen.len() < 24 {
            for n in 0..2 {
                attempt(world.reserve(&format!("new {} {n}", seen.len()), unknown_action(1))?)?;
            }
        }
    }
    let distinct: BTreeSet<_> = seen.iter().copied().collect();
    ensure_eq!(distinct.len(), seen.len(), "nothing is repeated");
    ensure_eq!(seen.get(..24), Some(&made[..]), "nothing is lost of what was there, and in order");
    ensure_eq!(seen.len(), 32, "nor of what came to be behind it");
    Ok(())
}

fn a_page_ends_where_its_range_ends(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let start = world.now();
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(attempt(world.reserve(&format!("key {n}"), unknown_action(1))?)?.effect);
        world.pass(Span::seconds(1));
    }
    let key =
        |second| [&[StreamKind::Effect.number(), 1][..], &moment(start + Span::seconds(second))].concat();
    let range = |from, to| Page { from: key(from), to: key(to), ..page_of(Index::State, &[], 2) };
    let found = |page: &Page| -> Result<Vec<_>, Failure> {
        Ok(walk(&world, page)?.into_iter().map(|hit| hit.stream).collect())
    };
    ensure_eq!(found(&range(1, 3))?, &made[1..=3], "both ends are inclusive");
    let beyond = Page { after: Some((key(0), made[0])), ..range(2, 3) };
    ensure_eq!(found(&beyond)?, &made[2..=3], "a page that begins before its range begins with it");
    let newest_first = Page { newest_first: true, after: Some((key(4), made[4])), ..range(1, 2) };
    ensure_eq!(found(&newest_first)?, [made[2], made[1]], "from the other end too");
    let past = Page { after: Some((key(4), made[4])), ..range(1, 3) };
    ensure_eq!(found(&past)?, [], "behind its range there is nothing");
    Ok(())
}

fn effects_are_listed_by_state(subject: &dyn Subject) -> Verdict {
    use EffectState as S;
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let mut expected: Vec<(S, Vec<StreamId>)> = Vec::new();
    for state in S::ALL {
        let mut streams = Vec::new();
        for n in 0..2 {
            if matches!(state, S::Queued | S::Released) {
                let id = format!("{state} {n}");
                let action = world.dispatch(&pay(&id), tool)?.action;
                if *state == S::Released {
                    world.cancel(action)?;
                }
                streams.push(world.effect_of(&format!("pay:{state}%20{n}")));
                continue;
            }
            let taken = attempt(world.reserve(&format!("{state} {n}"), unknown_action(1))?)?;
            let holding = Holding::from(&taken);
            if *state != S::Reserved {
                attempt(world.command(to_begin(holding))?)?;
            }
            match state {
                S::Committed => drop(world.settle(holding, Outcome::Committed)?),
                S::Failed => drop(world.settle(holding, Outcome::Failed)?),
                S::Ambiguous => drop(world.settle(holding, Outcome::Ambiguous)?),
                S::Reserved | S::Executing | S::Queued | S::Released => {}
            }
            streams.push(taken.effect);
        }
        expected.push((*state, streams));
    }
    for (state, expected) in expected {
        ensure_eq!(streams(&world, StreamKind::Effect, state.number())?, expected, "{state}, and only these");
    }
    Ok(())
}

fn approvals_are_listed_by_state(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let over = world.asked(&big("expired"))?.1;
    world.pass(Span::minutes(16));
    world.command(Command::Lapse(StreamId::approval(over)))?;
    let pending = world.asked(&big("pending"))?.1;
    let granted = world.granted(&big("granted"))?.1;
    let denied = world.asked(&big("denied"))?.1;
    world.answer(denied, "ann", Said::No)?;
    let revoked = world.granted(&big("revoked"))?.1;
    world.answer(revoked, "ann", Said::No)?;
    let used = world.granted(&big("used"))?.1;
    world.attempt(&big("used"))?;
    for (status, id) in [
        (Status::Pending, pending),
        (Status::Granted, granted),
        (Status::Denied, denied),
        (Status::Expired, over),
        (Status::Revoked, revoked),
        (Status::Consumed, used),
    ] {
        let found = streams(&world, StreamKind::Approval, status.number())?;
        ensure_eq!(found, [StreamId::approval(id)], "{status}, and only this");
    }
    Ok(())
}

fn actions_are_listed_by_state_and_by_name(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut ready = pay("ready");
    ready.reach = Reach::Ready;
    let ready = take!(world.run(&ready)?, Reply::Ready { action, .. } => action, "permitted");
    let (waiting, approval) = world.asked(&big("waiting"))?;
    let running = world.attempt(&pay("running"))?.action;
    let mut ended = Vec::new();
    for outcome in [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous] {
        let taken = world.attempt(&pay(outcome.as_str()))?;
        world.settle(&taken, outcome)?;
        ended.push((ended_number(outcome.into()), taken.action));
    }
    let refused = |call| -> Result<ActionId, Failure> {
        refusal(world.run(&call)?)?.action.ok_or_else(|| Failure::new("a refusal is recorded"))
    };
    ended.push((ended_number(Answer::Denied), refused(call("burn", "denied", 1))?));
    ended.push((ended_number(Answer::Blocked), refused(pay("running"))?));
    let now = ActionState::Ready { until: Timestamp::MIN };
    let ask = ActionState::Waiting { approval: ApprovalId([0; 16]) };
    let run = ActionState::Running { fence: 1 };
    let live = [(state_number(&now), ready), (state_number(&ask), waiting), (state_number(&run), running)];
    for (state, id) in live.iter().chain(&ended) {
        let found = streams(&world, StreamKind::Action, *state)?;
        ensure_eq!(found, [StreamId::action(*id)], "state {state}, and only this");
    }
    let named = hits(&world, Index::Name, b"burn\0", 2)?;
    let named: Vec<_> = named.into_iter().map(|hit| hit.stream).collect();
    ensure_eq!(named, [StreamId::action(ended[3].1)], "by its name, and only this");
    let named: Vec<_> = hits(&world, Index::Name, b"pay\0", 2)?.into_iter().map(|hit| hit.stream).collect();
    let mut expected = vec![ready, waiting, running];
    expected
        .extend(ended.iter().filter(|(state, _)| *state != ended_number(Answer::Denied)).map(|(_, id)| *id));
    let expected: Vec<_> = expected.into_iter().map(StreamId::action).collect();
    ensure_eq!(named, expected, "all of a name, oldest first");
    world.answer(approval, "ann", Said::No)?;
    ensure_eq!(streams(&world, StreamKind::Action, state_number(&ask))?, [], "it waits no longer");
    Ok(())
}

/// What is due by then, the next first.
pub(super) fn due(world: &World<'_>, until: Timestamp) -> Result<Vec<StreamId>, Failure> {
    let page = Page { to: moment(until).to_vec(), ..page_of(Index::Due, &[], 2) };
    Ok(walk(world, &page)?.into_iter().map(|hit| hit.stream).collect())
}

fn what_ends_by_itself_is_listed_when_it_is_due(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (_, approval) = world.asked(&big("a"))?;
    let taken = world.attempt(&pay("b"))?;
    let mut ready = pay("c");
    ready.reach = Reach::Ready;
    world.pass(Span::seconds(30));
    let ready = take!(world.run(&ready)?, Reply::Ready { action, .. } => action, "permitted");
    let all = [taken.effect, StreamId::approval(approval), StreamId::action(ready)];
    ensure_eq!(due(&world, Timestamp::MAX)?, all, "lease, request and proposal, the next first");
    ensure_eq!(due(&world, taken.lease_until)?, [taken.effect], "those that are due by then");
    world.settle(&taken, Outcome::Ambiguous)?;
    world.answer(approval, "ann", Said::Yes)?;
    ensure_eq!(
        due(&world, Timestamp::MAX)?,
        &all[1..],
        "what has ended is not due, what is granted still is"
    );
    world.pass(Span::minutes(20));
    for stream in &all[1..] {
        let reply = world.command(Command::Lapse(*stream))?;
        ensure_eq!(reply, Reply::Done { changed: true }, "{stream} has ended");
    }
    ensure_eq!(due(&world, Timestamp::MAX)?, [], "nothing is left");
    Ok(())
}

fn every_stream_is_visited_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let made = many(&world, 10)?;
    let (action, approval) = world.asked(&big("k"))?;
    let tenant = world.store.tenant();
    let mut expected: BTreeSet<_> = made.into_iter().collect();
    expected.extend([
        StreamId::action(action),
        StreamId::approval(approval),
        tenant.policy(),
        tenant.store(),
    ]);
    for limit in [1, 3, 100] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let streams = world.store.read(|snapshot| snapshot.streams(after.as_ref(), limit))?;
            let Some(last) = streams.last() else { break };
            after = Some(*last);
            found.extend(streams);
        }
        let visited: BTreeSet<_> = found.iter().copied().collect();
        ensure_eq!((found.len(), &visited), (expected.len(), &expected), "in pages of {limit}");
    }
    Ok(())
}
