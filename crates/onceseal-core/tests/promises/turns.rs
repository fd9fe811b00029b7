//! Whose turn it is: which task is next, and which run together.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_core::task::{GrantAttempts, TaskState, TaskTo};

use crate::calls::identity;
use crate::refused;
use crate::tasks::{CHAIN, Job, fact, now};

#[test]
fn a_task_waits_for_all_that_it_depends_on() {
    let mut job = Job::with(CHAIN);
    assert_eq!([job.state("a"), job.state("b")], [TaskState::Queued, TaskState::Pending]);
    for id in ["a", "b", "c"] {
        let task = job.take();
        assert_eq!(task.task, id);
        assert_eq!(job.none(), "nothing is queued");
        assert_eq!(job.pass(&task), "verified");
    }
    assert_eq!(job.none(), "nothing is queued");
    job.world.check();
}

#[test]
fn one_worker_at_a_time_has_a_task() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"}]}"#);
    let first = job.take();
    assert_eq!(refused(job.try_take(2)).code, Code::NoTask);
    job.outlast();
    // Its lease is over, and nobody said so yet: what it reports is refused.
    let late = job.to("a", TaskTo::Validating(fact("worker")), &first.lease.lease);
    assert_eq!(refused(late).code, Code::LeaseFenced);
    job.sweep("a");
    assert_eq!(job.state("a"), TaskState::Ready);
    let second = job.take();
    assert!(second.lease.lease.fence > first.lease.lease.fence);
    assert_eq!(job.pass(&second), "verified");
    job.world.check();
}

#[test]
fn an_interrupted_task_goes_before_all_in_line_as_often_as_its_attempts_allow() {
    let mut job = Job::with(r#"{"capacity":1,"tasks":[{"id":"a","attempts":2},{"id":"b"}]}"#);
    for _ in 0..3 {
        assert_eq!(job.take().task, "a");
        job.outlast();
        job.sweep("a");
    }
    assert_eq!((job.state("a"), job.task("a").attempts_left()), (TaskState::Retryable, 0));
    let spent = refused(job.queue("a"));
    assert_eq!(
        (spent.code, spent.detail.as_deref()),
        (Code::AttemptsSpent, Some("work operation-interrupted"))
    );
    assert_eq!(job.take().task, "b", "the others go on");
    let run = job.run;
    let grant = |person: &str| {
        let (person, reason) = (identity(person), "the host is mended".to_owned());
        Command::GrantAttempts(GrantAttempts { run, task: "a".to_owned(), person, reason })
    };
    assert_eq!(refused(job.world.run(grant("os:somebody"))).code, Code::NotOperator);
    assert_eq!(job.world.run(grant("os:owner")), Reply::Done { changed: true });
    assert_eq!(job.world.run(grant("os:owner")), Reply::Done { changed: false });
    assert_eq!(now(job.queue("a")).answered.state, "queued");
    job.world.check();
}

#[test]
fn tasks_that_are_in_each_others_way_do_not_run_together_and_keep_their_order() {
    let mut job = Job::with(
        r#"{"capacity":9,"tasks":[
        {"id":"writes","writes":["src/a"]},
        {"id":"below","writes":["src/a/b"]},
        {"id":"reads-below","reads":["src/a/b/c"]},
        {"id":"beside","writes":["src/ab"]},
        {"id":"reader","reads":["docs"]},
        {"id":"other-reader","reads":["docs/x"]},
        {"id":"writer","writes":["docs/x/y"]},
        {"id":"late-reader","reads":["docs/x/y"]},
        {"id":"db","resources":["db"]},
        {"id":"db-too","resources":["db"]},
        {"id":"apart","conflicts":["db-too"]}]}"#,
    );
    let mut taken = Vec::new();
    while let Reply::Task(task) = job.try_take(1) {
        taken.push(*task);
    }
    let ids: Vec<_> = taken.iter().map(|task| task.task.as_str()).collect();
    // `late-reader` does not overtake `writer`, nor `apart` the one it must not run beside.
    assert_eq!(ids, ["writes", "beside", "reader", "other-reader", "db"]);
    assert_eq!(job.none(), "conflicts");
    job.pass(&taken[0]);
    assert_eq!(job.take().task, "below");
    for reader in [2, 3] {
        job.pass(&taken[reader]);
    }
    assert_eq!(job.take().task, "writer");
    job.pass(&taken[4]);
    let next = job.take();
    assert_eq!(next.task, "db-too");
    job.pass(&next);
    assert_eq!(job.take().task, "apart");
    job.world.check();
}

#[test]
fn no_more_run_together_than_the_plan_says() {
    let mut job = Job::with(r#"{"capacity":2,"tasks":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#);
    let (first, _) = (job.take(), job.take());
    assert_eq!(job.none(), "capacity");
    job.pass(&first);
    assert_eq!(job.take().task, "c");
    job.world.check();
}

#[test]
fn no_task_is_taken_while_its_run_is_idle_and_none_moves_once_it_has_ended() {
    let mut job = Job::with(CHAIN);
    job.go("paused");
    assert_eq!(job.none(), "the run is idle");
    job.go("running");
    let task = job.take();
    job.go("cancelled");
    assert_eq!(refused(job.try_take(1)).code, Code::RunEnded);
    let late = job.to("a", TaskTo::Validating(fact("worker")), &task.lease.lease);
    assert_eq!(refused(late).code, Code::RunEnded);
    assert_eq!(refused(job.plan(2, CHAIN)).code, Code::RunEnded);
    job.world.check();
}
