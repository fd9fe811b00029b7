//! Tasks of a run: planned, taken by one worker at a time, moved on by facts, and
//! gone on with when a worker is gone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onceseal::core::hash::Hash;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::lease::Resource;
use onceseal::core::time::Span;
use onceseal::runs::{Blocking, Fact, Run, TaskFilter, TaskGuard, TaskState};
use onceseal::store::clock::SystemClock;
use onceseal::{AuditOptions, Control, Error, audit, blocking};

use crate::processes::{PLACE, Process, open, wait_for_go};
use crate::support::{Home, POLICY, World, bot, code, policy, poll_once, stranger};

pub(crate) fn plan(text: &str) -> Object {
    match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn fact(kind: &str, by: &str) -> Fact {
    let hash = Hash::of("test.evidence.v1\n", &[kind.as_bytes()]);
    Fact { kind: kind.to_owned(), hash, environment: "ci".to_owned(), produced_by: by.to_owned() }
}

async fn running(control: &Control, change: &str) -> Run {
    let run = control.runs().by(bot()).start("simple").change(change).send().await.expect("started").run;
    run.transition("running").send().await.expect("moved");
    run
}

async fn planned(control: &Control, tasks: &str) -> Run {
    let run = running(control, "c").await;
    run.plan(1, &plan(tasks)).expect("a plan").send().await.expect("planned");
    run
}

async fn states(run: &Run) -> Vec<(String, TaskState)> {
    let tasks = run.tasks().await.expect("readable");
    tasks.iter().map(|task| (task.id().expect("an id").to_owned(), task.row.state)).collect()
}

async fn done(task: &mut TaskGuard) {
    task.produced(fact("work-done", "bot")).await.expect("produced");
    task.passed(fact("tests-passed", "ci")).await.expect("passed");
}

async fn is_clean(control: &Control) {
    let control = control.clone();
    let report = tokio::task::spawn_blocking(move || audit(&control, &AuditOptions::default()));
    let report = report.await.expect("no panic").expect("audited");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test]
async fn a_task_moves_on_by_facts_and_the_next_one_waits_for_it() {
    for world in World::both().await {
        let run = planned(&world.control, r#"{"tasks":[{"id":"a","phases":["build","ship"],"input":{"n":1}},{"id":"b","depends_on":["a"]}]}"#).await;
        let mut task = run.take().take().await.expect("taken");
        assert_eq!((task.id(), task.phase(), task.fence()), ("a", "build", 1));
        assert_eq!(
            task.spec().get("input").and_then(Value::as_object).and_then(|o| o.get("n")),
            Some(&1.into())
        );
        assert_eq!(code(run.take().take().await), "no_task");
        let listed = run.tasks().await.expect("readable");
        assert_eq!(listed[0].holder.as_ref().map(|held| held.fence), Some(1));
        assert_eq!(listed[1].waits_for, ["a"]);
        assert_eq!(code(task.passed(fact("tests-passed", "ci")).await), "transition_forbidden");
        task.produced(fact("work-done", "bot")).await.expect("produced");
        assert_eq!(code(task.passed(fact("tests-passed", "bot")).await), "fact_claimed");
        assert_eq!(task.passed(fact("tests-passed", "ci")).await.expect("passed"), TaskState::Running);
        assert_eq!((task.phase(), task.is_lost()), ("ship", false));
        done(&mut task).await;
        assert_eq!(task.state(), TaskState::Verified);
        let mut next = run.take().take().await.expect("it waited for that");
        assert_eq!(next.id(), "b");
        done(&mut next).await;
        assert!(run.blockers().await.expect("readable").is_empty());
        assert!(states(&run).await.iter().all(|(_, state)| *state == TaskState::Verified));
        is_clean(&world.control).await;
    }
}

#[tokio::test]
async fn a_task_that_stopped_waits_until_it_is_queued_and_its_attempts_are_counted() {
    let world = World::memory(POLICY).await;
    let run = planned(&world.control, r#"{"tasks":[{"id":"a","attempts":1}]}"#).await;
    for attempt in 0..2 {
        let mut task = run.take().take().await.expect("taken");
        let why = fact("log", "bot");
        task.stopped(TaskState::Retryable, "flaky", Some(why)).await.expect("stopped");
        let in_the_way = run.blockers().await.expect("readable");
        assert_eq!((in_the_way.len(), in_the_way[0].task.as_deref()), (1, Some("a")));
        if attempt == 0 {
            assert_eq!(in_the_way[0].blocker.blocking, Blocking::Capability);
            run.queue("a").send().await.expect("queued");
        }
    }
    let in_the_way = run.blockers().await.expect("readable");
    assert_eq!(
        (in_the_way[0].blocker.blocking, in_the_way[0].blocker.code.as_str()),
        (Blocking::Decision, "attempts_spent")
    );
    assert_eq!(code(run.queue("a").send().await), "attempts_spent");
    assert_eq!(code(run.grant("a", stranger(), "again").await), "not_operator");
    let owner = Control::account();
    assert!(run.grant("a", owner.clone(), "the network is back").await.expect("granted"));
    assert!(!run.grant("a", owner, "once more").await.expect("it had some"));
    run.queue("a").request("again-1").send().await.expect("queued");
    assert!(run.queue("a").request("again-1").send().await.expect("as the first time").replayed);
    assert_eq!(code(run.queue("b").send().await), "task_unknown");
    run.take().take().await.expect("taken again");
}

#[tokio::test]
async fn whoever_waits_gets_the_task_when_its_turn_comes() {
    let world = World::memory(POLICY).await;
    let run = planned(&world.control, r#"{"capacity":1,"tasks":[{"id":"a"},{"id":"b"}]}"#).await;
    let mut first = run.take().take().await.expect("taken");
    let waiting = run.clone();
    let waiting = tokio::spawn(async move { waiting.take().wait(Duration::from_secs(20)).take().await });
    done(&mut first).await;
    assert_eq!(waiting.await.expect("no panic").expect("its turn").id(), "b");
}

#[tokio::test]
async fn the_task_of_a_worker_that_is_gone_is_next_without_anybody_sweeping() {
    for world in World::both().await {
        // There is room for the other one, which would be next.
        let run = planned(&world.control, r#"{"tasks":[{"id":"a"},{"id":"b"}],"capacity":2}"#).await;
        let gone = run.take().length(Span::seconds(1)).once().await.expect("taken");
        world.clock.advance(1_000_001);
        assert_eq!(run.tasks().await.expect("readable")[0].lapsed.as_ref().map(|over| over.fence), Some(1));
        let task = run.take().take().await.expect("it goes before all others");
        assert_eq!((task.id(), task.fence()), ("a", 2));
        let late =
            run.move_task("a", onceseal::runs::TaskTo::Validating(fact("done", "bot")), gone.lease.lease);
        assert_eq!(code(late.send().await), "lease_fenced");
        is_clean(&world.control).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_dropped_leaves_the_task_to_the_next_worker() {
    let world = World::memory(POLICY).await;
    let run = planned(&world.control, r#"{"tasks":[{"id":"a"}]}"#).await;
    drop(run.take().length(Span::hours(1)).take().await.expect("taken"));
    let control = world.control.clone();
    crate::run_leases::until("the lease is shortened", || {
        let held = control.task(run.id(), "a").expect("readable").expect("there");
        held.holder.is_some_and(|held| held.until.since(control.store().now()) <= Span::seconds(1))
    })
    .await;
    world.clock.advance(1_000_001);
    assert_eq!(run.take().take().await.expect("taken").fence(), 2);
    is_clean(&world.control).await;
}

#[tokio::test]
async fn a_take_that_is_given_up_hands_out_nothing() {
    let world = World::sqlite(POLICY).await;
    let run = planned(&world.control, r#"{"tasks":[{"id":"a"}]}"#).await;
    {
        let mut take = std::pin::pin!(run.take().length(Span::hours(1)).take());
        assert!(poll_once(take.as_mut()).is_pending());
    }
    // Whether it was still taken is the store's to say: nobody keeps it for the hour.
    for _ in 0..600 {
        match run.take().take().await {
            Ok(_) => return,
            Err(error) => assert_eq!(error.code(), "no_task"),
        }
        world.clock.advance(1_000_001);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("somebody keeps it");
}

#[tokio::test]
async fn a_lease_that_is_lost_is_told_and_changes_nothing() {
    let world = World::memory(POLICY).await;
    let run = planned(&world.control, r#"{"tasks":[{"id":"a"}]}"#).await;
    let mut task = run.take().length(Span::seconds(1)).take().await.expect("taken");
    world.clock.advance(1_000_001);
    task.lost().await;
    assert!(task.is_lost());
    assert_eq!(code(task.produced(fact("work-done", "bot")).await), "lease_fenced");
    assert_eq!(states(&run).await[0].1, TaskState::Ready, "the lapse that was met is recorded");
}

/// Sooner than any renewal of a lease of an hour.
async fn told(task: &TaskGuard) {
    let told = tokio::time::timeout(Duration::from_secs(60), task.lost()).await;
    told.expect("at once");
    assert!(task.is_lost());
}

#[tokio::test]
async fn whoever_works_is_told_at_once_that_a_new_plan_or_the_end_of_the_run_stops_it() {
    let home = Home::new();
    let control = home.control(Arc::new(SystemClock)).await.expect("a store");
    let run = planned(&control, r#"{"tasks":[{"id":"a"}]}"#).await;
    let first = run.take().length(Span::hours(1)).take().await.expect("taken");
    // Another process plans anew, and ends the run.
    let other = home.control(Arc::new(SystemClock)).await.expect("the store");
    let theirs = other.runs().by(bot()).run(run.id());
    theirs
        .plan(2, &plan(r#"{"tasks":[{"id":"a","input":{"n":2}}]}"#))
        .expect("a plan")
        .send()
        .await
        .expect("planned");
    told(&first).await;
    let second = run.take().length(Span::hours(1)).take().await.expect("it begins anew");
    let on_run = control.lease(Resource::Run(run.id())).length(Span::hours(1)).take().await.expect("held");
    theirs.transition("cancelled").send().await.expect("ended");
    told(&second).await;
    tokio::time::timeout(Duration::from_secs(60), on_run.lost()).await.expect("at once");
    drop((first, second, on_run));
    is_clean(&control).await;
}

#[tokio::test]
async fn a_new_plan_keeps_what_is_unchanged_and_stops_what_changed() {
    let world = World::memory(POLICY).await;
    let run = planned(&world.control, r#"{"tasks":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#).await;
    let mut first = run.take().take().await.expect("taken");
    done(&mut first).await;
    let mut second = run.take().take().await.expect("taken");
    let new = plan(r#"{"tasks":[{"id":"b","input":{"changed":true}},{"id":"a"}]}"#);
    assert_eq!(code(run.plan(1, &new).expect("a plan").send().await), "plan_conflict");
    run.plan(2, &new).expect("a plan").request("plan-2").send().await.expect("planned");
    assert!(run.plan(2, &new).expect("a plan").request("plan-2").send().await.expect("so before").replayed);
    assert_eq!(code(second.produced(fact("work-done", "bot")).await), "lease_fenced");
    assert_eq!(
        states(&run).await,
        [("b".to_owned(), TaskState::Queued), ("a".to_owned(), TaskState::Verified)]
    );
    let closed = TaskFilter { state: Some(TaskState::Closed), after: None };
    let closed = world.control.list_tasks(run.id(), &closed, 10).expect("readable").items;
    assert_eq!(closed.iter().filter_map(|task| task.id()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(
        world.control.plan(run.id()).expect("readable").map(|plan| (plan.revision, plan.tasks)),
        Some((2, 2))
    );
}

#[tokio::test]
async fn tasks_are_listed_in_pages_that_leave_none_out() {
    let world = World::memory(POLICY).await;
    let mut text = r#"{"tasks":["#.to_owned();
    for n in 0..700 {
        write!(text, "{}{{\"id\":\"t{n}\"}}", if n == 0 { "" } else { "," }).expect("text");
    }
    let run = planned(&world.control, &(text + "]}")).await;
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let filter = TaskFilter { state: None, after };
        let page = world.control.list_tasks(run.id(), &filter, 300).expect("readable");
        assert!(page.items.len() <= 300 && page.unreadable.is_empty());
        found.extend(page.items.iter().filter_map(|task| task.id()).map(str::to_owned));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..700).map(|n| format!("t{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_cannot_be_a_plan_or_a_fact_is_refused_with_its_place() {
    let world = World::memory(POLICY).await;
    let run = running(&world.control, "c").await;
    for (text, place) in [
        (r#"{"tasks":[{"id":"a","depends_on":["a"]}]}"#, "tasks[0].depends_on"),
        (r#"{"tasks":[{"id":"a"},{"id":"a"}]}"#, "tasks[1].id"),
        (r#"{"tasks":[{"id":"../a"}]}"#, "tasks[0].id"),
        (r#"{"tasks":[{"id":"a","writes":["../etc"]}]}"#, "tasks[0].writes[0]"),
        (r#"{"tasks":[],"Capacity":1}"#, "Capacity"),
    ] {
        assert_eq!(run.plan(1, &plan(text)).err().map(|error| error.path), Some(place.to_owned()));
    }
    run.plan(1, &plan(r#"{"tasks":[{"id":"a"}]}"#)).expect("a plan").send().await.expect("planned");
    let mut task = run.take().take().await.expect("taken");
    let bad = [
        Fact { kind: "Not A Name".to_owned(), ..fact("x", "bot") },
        Fact { environment: "a\nb".to_owned(), ..fact("x", "bot") },
        Fact { produced_by: String::new(), ..fact("x", "bot") },
    ];
    for bad in bad {
        assert_eq!(code(task.produced(bad).await), "out_of_bounds");
    }
    assert_eq!(code(task.stopped(TaskState::Verified, "x", None).await), "transition_forbidden");
    assert_eq!(code(task.stopped(TaskState::Paused, "x\u{7}", None).await), "out_of_bounds");
    assert_eq!(code(run.take().length(Span::millis(1)).take().await), "out_of_bounds");
    task.produced(fact("work-done", "bot")).await.expect("it is still held");
}

#[test]
fn code_that_blocks_works_on_tasks_too() {
    let control = blocking::Control::memory(policy(POLICY), Arc::new(SystemClock)).expect("a store");
    let runs = control.runs().by(bot());
    let run = control.wait(runs.start("simple").change("c").send()).expect("started").run;
    control.wait(run.transition("running").send()).expect("moved");
    let planning = run.plan(1, &plan(r#"{"tasks":[{"id":"a"}]}"#)).expect("a plan");
    control.wait(planning.send()).expect("planned");
    let mut task = control.wait(run.take().take()).expect("taken");
    control.wait(task.produced(fact("work-done", "bot"))).expect("produced");
    control.wait(task.passed(fact("tests-passed", "ci"))).expect("passed");
    assert!(control.wait(run.blockers()).expect("readable").is_empty());
}

/// Takes tasks until none is left, and says of each that it was done.
async fn work(run: &Run, base: &Path) {
    loop {
        match run.take().take().await {
            Ok(mut task) => {
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(base.join("done"));
                writeln!(file.as_mut().expect("a file"), "{}", task.id()).expect("written");
                done(&mut task).await;
            }
            Err(Error::Refused(refusal)) if refusal.code.as_str() == "no_task" => {
                let left = states(run).await;
                if left.iter().all(|(_, state)| *state == TaskState::Verified) {
                    return;
                }
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_works_on_tasks() {
    let base = PathBuf::from(std::env::var_os(PLACE).expect("a place"));
    let control = open(&base).await;
    let subject = onceseal::runs::Subject::Change("c".to_owned());
    let run = control.runs().by(bot()).find("simple", &subject).await.expect("readable").expect("there");
    wait_for_go();
    work(&run, &base).await;
}

#[tokio::test]
async fn two_processes_do_each_of_many_tasks_once() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    let mut text = r#"{"capacity":8,"tasks":["#.to_owned();
    for n in 0..60 {
        let waits = if n % 3 == 2 { format!(",\"depends_on\":[\"t{}\"]", n - 1) } else { String::new() };
        write!(text, "{}{{\"id\":\"t{n}\"{waits}}}", if n == 0 { "" } else { "," }).expect("text");
    }
    let run = planned(&control, &(text + "]}")).await;
    let child = || Process::start("tasks::child_that_works_on_tasks", home.dir.path(), &[]);
    let mut children = [child(), child()];
    children.iter_mut().for_each(Process::ready);
    children.iter_mut().for_each(Process::go);
    assert!(children.map(Process::success).iter().all(|ended| *ended));
    let mut times = BTreeMap::new();
    for line in std::fs::read_to_string(home.dir.path().join("done")).expect("text").lines() {
        *times.entry(line.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(times.len(), 60);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert!(states(&run).await.iter().all(|(_, state)| *state == TaskState::Verified));
    is_clean(&control).await;
}
