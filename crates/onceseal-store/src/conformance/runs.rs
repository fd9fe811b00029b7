//! Runs: one lives under a lookup key, and a request is answered once.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::{RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::reply::{Reply, RunNow};
use onceseal_core::run::{Definition, RunRow, StartRun, Subject as About, Towards, Transition};
use onceseal_core::stream::StreamId;

use super::contention::at_once;
use super::world::{World, code};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "runs":
    a_start_joins_the_run_that_lives_and_follows_the_one_that_ended
    a_batch_of_starts_makes_one_run
    of_many_starts_at_once_one_makes_the_run
    the_same_request_is_answered_as_the_first_time_and_another_is_refused
    nothing_follows_that_the_definition_does_not_permit
    ; durable:
    a_run_goes_on_by_its_definition_across_openings
}

pub(super) fn start(change: &str, request: &str) -> Result<Command, Failure> {
    let found = Definition::built_in().into_iter().find(|definition| definition.kind() == "simple");
    let definition = Arc::new(found.ok_or_else(|| Failure::new("`simple` is built in"))?);
    let (subject, principal) = (About::Change(change.to_owned()), Principal::agent("bot"));
    let (root, request) = (RootId([1; 16]), request.to_owned());
    Ok(Command::StartRun(Box::new(StartRun { root, definition, subject, request, principal })))
}

pub(super) fn step(run: RunId, state: &str, request: &str) -> Command {
    let (to, principal) = (Towards::State(state.to_owned()), Principal::agent("bot"));
    Command::Transition(Transition {
        run,
        to,
        code: None,
        request: request.to_owned(),
        principal,
        under: None,
    })
}

pub(super) fn run(reply: Reply) -> Result<RunNow, Failure> {
    Ok(take!(reply, Reply::Run(now) => *now, "a run"))
}

pub(super) fn row(world: &World<'_>, id: RunId) -> Result<RunRow, Failure> {
    Ok(take!(world.stored(&StreamId::run(id))?.row, Row::Run(row) => row, "its row"))
}

fn a_start_joins_the_run_that_lives_and_follows_the_one_that_ended(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = run(world.command(start("c", "s1")?)?)?;
    ensure!(!first.answered.joined, "nothing was there");
    let joined = run(world.command(start("c", "s2")?)?)?;
    ensure_eq!((joined.answered.run, joined.answered.joined), (first.answered.run, true), "it lives");
    let other = run(world.command(start("d", "s3")?)?)?;
    ensure!(other.answered.run != first.answered.run, "another change is another run");
    run(world.command(step(first.answered.run, "cancelled", "t1"))?)?;
    let next = run(world.command(start("c", "s4")?)?)?;
    ensure!(next.answered.run != first.answered.run, "what ended is not joined");
    ensure_eq!(row(&world, next.answered.run)?.previous, Some(first.answered.run), "it names the last one");
    Ok(())
}

fn a_batch_of_starts_makes_one_run(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let starts: Result<Vec<_>, _> = (0..4).map(|n| start("c", &format!("s{n}"))).collect();
    let replies = world.together(starts?)?;
    let mut runs = Vec::new();
    for reply in replies {
        runs.push(run(reply.map_err(Failure::new)?)?.answered.run);
    }
    runs.dedup();
    ensure_eq!(runs.len(), 1, "one of a batch sees the others");
    Ok(())
}

fn of_many_starts_at_once_one_makes_the_run(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for round in 0..4 {
        let change = format!("c{round}");
        let replies = at_once(|n| world.command(start(&change, &format!("s{n}-{round}"))?))?;
        let runs: Result<Vec<RunNow>, Failure> = replies.into_iter().map(run).collect();
        let runs = runs?;
        let made = runs.iter().filter(|now| !now.answered.joined).count();
        ensure_eq!(made, 1, "exactly one of them in round {round}");
        ensure!(runs.iter().all(|now| now.answered.run == runs[0].answered.run), "the others join it");
    }
    Ok(())
}

fn the_same_request_is_answered_as_the_first_time_and_another_is_refused(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = run(world.command(start("c", "r1")?)?)?;
    let id = first.answered.run;
    let moved = run(world.command(step(id, "running", "r1"))?)?;
    run(world.command(step(id, "completed", "r2"))?)?;
    let log = world.log()?.len();
    let again = run(world.command(step(id, "running", "r1"))?)?;
    ensure_eq!((again.replayed, &again.answered), (true, &moved.answered), "as the first time");
    ensure_eq!((again.now.sequence, again.now.terminal), (3, true), "with where it stands now");
    let started = run(world.command(start("c", "r1")?)?)?;
    ensure_eq!((started.replayed, started.answered.run), (true, id), "a start too");
    let other = world.command(step(id, "cancelled", "r1"))?;
    ensure_eq!(code(&other), Some(Code::RequestIdConflict), "it is of one request");
    ensure_eq!(world.log()?.len(), log, "nothing is recorded of it");
    Ok(())
}

fn nothing_follows_that_the_definition_does_not_permit(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let id = run(world.command(start("c", "s1")?)?)?.answered.run;
    let log = world.log()?.len();
    let forbidden = world.command(step(id, "completed", "t1"))?;
    ensure_eq!(code(&forbidden), Some(Code::TransitionForbidden), "it has not run");
    ensure_eq!(world.log()?.len(), log, "nothing is recorded of it");
    run(world.command(step(id, "cancelled", "t1"))?)?;
    let late = world.command(step(id, "running", "t2"))?;
    ensure_eq!(code(&late), Some(Code::RunEnded), "terminal is final");
    ensure_eq!(row(&world, id)?.state, "cancelled", "it stays there");
    Ok(())
}

fn a_run_goes_on_by_its_definition_across_openings(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let id = run(world.command(start("c", "s1")?)?)?.answered.run;
    let world = world.reopened()?;
    ensure_eq!(run(world.command(start("c", "s2")?)?)?.answered.run, id, "it is found");
    ensure_eq!(run(world.command(step(id, "running", "t1"))?)?.now.state, "running", "and goes on");
    ensure!(run(world.command(start("c", "s1")?)?)?.replayed, "what was answered is known");
    Ok(())
}
