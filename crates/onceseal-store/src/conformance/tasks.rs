//! Tasks: one worker at a time has each, by a plan, until it is verified.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RunId};
use onceseal_core::journal::{Kind, Row};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::Lease;
use onceseal_core::reply::{Reply, TaskNow};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{Fact, MoveTask, Plan, PlanTasks, TakeTask, TaskRow, TaskState, TaskTo};
use onceseal_core::time::{Span, Timestamp};

use super::contention::at_once;
use super::lists::due;
use super::runs::{run, start, step};
use super::world::{World, code};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "tasks":
    many_threads_take_each_task_once_and_all_are_verified
    one_of_a_batch_sees_what_the_others_took
    what_waited_is_queued_in_the_transaction_that_verifies
    a_task_that_lapsed_is_found_when_it_is_due_and_is_next
    a_new_plan_stops_what_changed_and_keeps_what_did_not
    ; durable:
    a_plan_goes_on_across_openings
}

const MINUTE: Span = Span::minutes(1);

/// A run that goes on, with this plan.
fn planned<'a>(subject: &'a dyn Subject, document: &str) -> Result<(World<'a>, RunId), Failure> {
    let world = World::open(subject)?;
    let id = run(world.command(start("c", "s1")?)?)?.answered.run;
    run(world.command(step(id, "running", "t1"))?)?;
    run(world.command(planning(id, 1, document)?)?)?;
    Ok((world, id))
}

fn planning(run: RunId, revision: u64, document: &str) -> Result<Command, Failure> {
    let document = json::read(document.as_bytes(), &Limits::DATA).map_err(Failure::new)?;
    let document = take!(document, Value::Object(document) => document, "a document");
    let plan = Arc::new(Plan::compile(&document).map_err(Failure::new)?);
    let (request, principal) = (format!("plan-{revision}"), Principal::agent("bot"));
    Ok(Command::PlanTasks(Box::new(PlanTasks { run, revision, plan, request, principal, under: None })))
}

fn taking(run: RunId, n: u8) -> Command {
    let (holder, principal) = (HolderKey([n; 16]), Principal::agent("worker"));
    Command::TakeTask(TakeTask { run, holder, length: MINUTE, again: false, principal })
}

/// Moves a task on; each move of it is a request of its own.
fn moving(run: RunId, task: &str, lease: &Lease, to: TaskTo) -> Command {
    let word = match &to {
        TaskTo::Validating(_) => "done",
        TaskTo::Passed(_) => "passed",
        TaskTo::Stopped { .. } => "stopped",
    };
    let (request, principal) = (format!("{word}-{task}-{}", lease.fence), Principal::agent("controller"));
    let (task, under) = (task.to_owned(), lease.clone());
    Command::MoveTask(Box::new(MoveTask { run, task, to, request, principal, under }))
}

fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

fn done(run: RunId, task: &TaskNow) -> Command {
    moving(run, &task.task, &task.lease.lease, TaskTo::Validating(fact("worker")))
}

fn passed(run: RunId, task: &TaskNow) -> Command {
    moving(run, &task.task, &task.lease.lease, TaskTo::Passed(fact("ci")))
}

fn finish(world: &World<'_>, id: RunId, task: &TaskNow) -> Result<String, Failure> {
    run(world.command(done(id, task))?)?;
    Ok(run(world.command(passed(id, task))?)?.answered.state)
}

/// What was taken; nothing if there is nothing to take.
fn task(reply: Reply) -> Result<Option<TaskNow>, Failure> {
    match reply {
        Reply::Task(task) => Ok(Some(*task)),
        Reply::Refused(refusal) if refusal.code == Code::NoTask => Ok(None),
        other => Err(Failure::new(format_args!("neither a task nor none: {other:?}"))),
    }
}

fn taken(world: &World<'_>, id: RunId, n: u8) -> Result<TaskNow, Failure> {
    task(world.command(taking(id, n))?)?.ok_or_else(|| Failure::new("there is a task to take"))
}

fn stream(world: &World<'_>, run: RunId, task: &str) -> StreamId {
    world.store.tenant().task(run, task)
}

fn row(world: &World<'_>, run: RunId, task: &str) -> Result<TaskRow, Failure> {
    Ok(take!(world.stored(&stream(world, run, task))?.row, Row::Task(row) => row, "its row"))
}

/// A plan of which each task but the first ones waits for two others.
fn wide(tasks: usize, capacity: u32) -> Result<String, Failure> {
    let mut out = format!("{{\"capacity\":{capacity},\"tasks\":[");
    for at in 0..tasks {
        let comma = if at > 0 { "," } else { "" };
        let on = if at < 24 { String::new() } else { format!("\"t{}\",\"t{}\"", at - 24, at - 20) };
        let shared = if at % 5 == 0 { "\"resources\":[\"db\"]," } else { "" };
        write!(out, r#"{comma}{{"depends_on":[{on}],{shared}"id":"t{at}"}}"#).map_err(Failure::new)?;
    }
    Ok(out + "]}")
}

fn many_threads_take_each_task_once_and_all_are_verified(subject: &dyn Subject) -> Verdict {
    const TASKS: usize = 240;
    let (world, id) = planned(subject, &wide(TASKS, 16)?)?;
    // Whoever finishes one takes another, until there is none: what is queued by
    // then is taken by whoever queued it.
    let all = at_once(|n| {
        let mut mine = Vec::new();
        while let Some(task) = task(world.command(taking(id, n))?)? {
            ensure_eq!(finish(&world, id, &task)?, "verified", "{} is done", task.task);
            mine.push((task.task, task.lease.lease.fence));
            ensure!(mine.len() <= TASKS, "there are no more tasks than that");
        }
        Ok(mine)
    })?;
    let all: Vec<_> = all.into_iter().flatten().collect();
    let names: BTreeSet<_> = all.iter().map(|(task, _)| task.as_str()).collect();
    ensure_eq!((all.len(), names.len()), (TASKS, TASKS), "each was taken once");
    ensure!(all.iter().all(|(_, fence)| *fence == 1), "by one lease");
    let mut stands: BTreeMap<TaskState, usize> = BTreeMap::new();
    for at in 0..TASKS {
        *stands.entry(row(&world, id, &format!("t{at}"))?.state).or_default() += 1;
    }
    ensure_eq!(stands, BTreeMap::from([(TaskState::Verified, TASKS)]), "all of them are verified");
    Ok(())
}

fn one_of_a_batch_sees_what_the_others_took(subject: &dyn Subject) -> Verdict {
    let plan = r#"{"capacity":2,"tasks":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#;
    let (world, id) = planned(subject, plan)?;
    let mut found = Vec::new();
    for reply in world.together((1..=4).map(|n| taking(id, n)).collect())? {
        found.push(task(reply?)?.map(|task| task.task));
    }
    let expected = [Some("a".to_owned()), Some("b".to_owned()), None, None];
    ensure_eq!(found, expected, "each is another, and no more than the plan allows");
    // More than are looked at at first: what the first ones left is seen by the last.
    const MANY: u8 = 40;
    let tasks: Vec<_> = (0..MANY).map(|at| format!(r#"{{"id":"t{at}"}}"#)).collect();
    world.command(planning(id, 2, &format!(r#"{{"capacity":64,"tasks":[{}]}}"#, tasks.join(",")))?)?;
    let mut found = Vec::new();
    for reply in world.together((1..=MANY).map(|n| taking(id, n)).collect())? {
        found.extend(task(reply?)?.map(|task| task.task));
    }
    let expected: Vec<_> = (0..MANY).map(|at| format!("t{at}")).collect();
    ensure_eq!(found, expected, "one for each, in the order of the line");
    Ok(())
}

fn what_waited_is_queued_in_the_transaction_that_verifies(subject: &dyn Subject) -> Verdict {
    let plan = r#"{"tasks":[{"id":"a"},{"id":"b"},{"depends_on":["a","b"],"id":"c"},{"depends_on":["a"],"id":"d"}]}"#;
    let (world, id) = planned(subject, plan)?;
    let (a, b) = (taken(&world, id, 1)?, taken(&world, id, 2)?);
    run(world.command(done(id, &a))?)?;
    run(world.command(done(id, &b))?)?;
    // Whoever comes next in the batch takes what was queued before it.
    let replies =
        world.together(vec![passed(id, &a), taking(id, 3), taking(id, 4), passed(id, &b), taking(id, 5)])?;
    let mut found = Vec::new();
    for reply in replies {
        found.push(match reply? {
            Reply::Run(now) => Some(now.answered.state),
            reply => task(reply)?.map(|task| task.task),
        });
    }
    let text = |text: &str| Some(text.to_owned());
    let expected = [text("verified"), text("d"), None, text("verified"), text("c")];
    ensure_eq!(found, expected, "one after another");
    let log = world.log()?;
    for (waited, last) in [("d", "a"), ("c", "b")] {
        let command = |task: &str, kind: Kind| {
            let stream = stream(&world, id, task);
            let mut of = log.iter().filter(|it| it.stamp.stream == stream);
            of.rfind(|it| it.event.as_ref().is_some_and(|event| event.body.kind() == kind))
                .map(|it| it.stamp.command)
        };
        let queued = command(waited, Kind::TaskQueued);
        ensure!(queued.is_some(), "{waited} was queued");
        ensure_eq!(queued, command(last, Kind::TaskMoved), "by the command that verified {last}");
    }
    Ok(())
}

fn a_task_that_lapsed_is_found_when_it_is_due_and_is_next(subject: &dyn Subject) -> Verdict {
    let plan = r#"{"capacity":3,"tasks":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#;
    let (world, id) = planned(subject, plan)?;
    let a = taken(&world, id, 1)?;
    world.pass(Span::seconds(30));
    let b = taken(&world, id, 2)?;
    let leases = |task: &TaskNow| world.store.tenant().lease(&task.lease.lease.resource.to_string());
    ensure_eq!(due(&world, Timestamp::MAX)?, [leases(&a), leases(&b)], "each when its lease is over");
    ensure_eq!(due(&world, world.now())?, [], "none is over yet");
    world.pass(Span::seconds(31));
    let over = due(&world, world.now())?;
    ensure_eq!(over, [leases(&a)], "the first is over");
    // Many may sweep; one of them finds it so.
    let swept = at_once(|_| world.command(Command::Lapse(over[0])))?;
    let changed = swept.iter().filter(|reply| **reply == Reply::Done { changed: true }).count();
    ensure_eq!(changed, 1, "one of them finds it so");
    ensure_eq!(row(&world, id, "a")?.state, TaskState::Ready, "it is ready again");
    ensure_eq!(code(&world.command(done(id, &a))?), Some(Code::LeaseFenced), "for another");
    let again = taken(&world, id, 3)?;
    ensure_eq!((again.task.as_str(), again.lease.lease.fence), ("a", 2), "it goes before what is queued");
    ensure_eq!(finish(&world, id, &b)?, "verified", "the other goes on");
    Ok(())
}

fn a_new_plan_stops_what_changed_and_keeps_what_did_not(subject: &dyn Subject) -> Verdict {
    let (world, id) = planned(subject, &wide(60, 60)?)?;
    let mut at_work = BTreeMap::new();
    while let Some(task) = task(world.command(taking(id, 1))?)? {
        at_work.insert(task.task.clone(), task);
    }
    let named = |name: &str| at_work.get(name).ok_or_else(|| Failure::new(format_args!("{name} is at work")));
    let (first, kept, changed) = (named("t1")?, named("t2")?, named("t3")?);
    ensure_eq!(finish(&world, id, first)?, "verified", "one is done");
    let other = wide(60, 60)?.replace(r#""id":"t3""#, r#""attempts":7,"id":"t3""#);
    run(world.command(planning(id, 2, &other)?)?)?;
    let late = world.command(done(id, changed))?;
    ensure_eq!(code(&late), Some(Code::LeaseFenced), "what changed begins anew");
    ensure_eq!(row(&world, id, "t3")?.state, TaskState::Queued, "it waits for its turn");
    ensure_eq!(row(&world, id, "t1")?.state, TaskState::Verified, "what is done stays done");
    ensure_eq!(finish(&world, id, kept)?, "verified", "what did not change goes on");
    run(world.command(planning(id, 3, r#"{"tasks":[{"id":"new"}]}"#)?)?)?;
    ensure_eq!(row(&world, id, "t59")?.state, TaskState::Closed, "what is gone is closed");
    ensure_eq!(taken(&world, id, 2)?.task, "new", "what is there is taken");
    ensure_eq!(task(world.command(taking(id, 2))?)?, None, "nobody takes what is gone");
    Ok(())
}

fn a_plan_goes_on_across_openings(subject: &dyn Subject) -> Verdict {
    let (mut world, id) = planned(subject, &wide(32, 3)?)?;
    let mut taken_once = BTreeSet::new();
    let held = taken(&world, id, 100)?;
    for round in 0..40 {
        if let Some(task) = task(world.command(taking(id, round))?)? {
            ensure!(task.task != held.task, "somebody has {}", held.task);
            ensure!(taken_once.insert(task.task.clone()), "{} was taken before", task.task);
            run(world.command(done(id, &task))?)?;
            // Its lease is known after opening, and what was done.
            if round % 4 == 0 {
                world = world.reopened()?;
            }
            ensure_eq!(run(world.command(passed(id, &task))?)?.answered.state, "verified", "it is done");
        }
        if round == 20 {
            ensure_eq!(finish(&world, id, &held)?, "verified", "whoever had it goes on");
            taken_once.insert(held.task.clone());
        }
    }
    ensure_eq!(taken_once.len(), 32, "all of them are done");
    Ok(())
}
