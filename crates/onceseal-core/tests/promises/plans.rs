//! Plans: what a new one leaves of the tasks, and for which delivery it is set.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::RootId;
use onceseal_core::run::{Definition, StartRun, Subject};
use onceseal_core::task::{Blocking, TaskState, TaskTo, blockers};

use crate::tasks::{CHAIN, Job, fact, now};
use crate::{pay_world, refused};

#[test]
fn what_a_new_plan_leaves_unchanged_goes_on_and_what_rests_on_a_change_begins_anew() {
    let mut job = Job::with(
        r#"{"tasks":[{"id":"a"},{"id":"b","depends_on":["a"]},{"id":"x"},{"id":"y"},{"id":"gone"}]}"#,
    );
    for id in ["a", "x"] {
        let task = job.take();
        assert_eq!(task.task, id);
        job.pass(&task);
    }
    let (y, gone, b) = (job.take(), job.take(), job.take());
    assert_eq!((y.task.as_str(), gone.task.as_str(), b.task.as_str()), ("y", "gone", "b"));
    job.pass(&b);
    let next = r#"{"tasks":[{"id":"x"},{"id":"a","attempts":5},{"id":"b","depends_on":["a"]},{"id":"y"},{"id":"new"}]}"#;
    now(job.plan(2, next));
    let state = |id| job.state(id);
    assert_eq!([state("x"), state("y")], [TaskState::Verified, TaskState::Running], "unchanged");
    assert_eq!([state("a"), state("b")], [TaskState::Queued, TaskState::Pending], "b rests on a");
    assert_eq!([state("gone"), state("new")], [TaskState::Closed, TaskState::Queued]);
    let late = job.to("gone", TaskTo::Validating(fact("worker")), &gone.lease.lease);
    assert_eq!(refused(late).code, Code::TaskClosed);
    assert_eq!(job.pass(&y), "verified", "whoever works on what is unchanged goes on");
    assert_eq!([job.take().task, job.take().task], ["a", "new"]);
    job.world.check();
}

#[test]
fn whoever_works_on_a_task_that_changed_is_fenced() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"}]}"#);
    let old = job.take();
    now(job.plan(2, r#"{"tasks":[{"id":"a","input":{"more":true}}]}"#));
    let late = job.to("a", TaskTo::Validating(fact("worker")), &old.lease.lease);
    assert_eq!(refused(late).code, Code::LeaseFenced);
    let new = job.take();
    assert_eq!(job.pass(&new), "verified");
    job.world.check();
}

#[test]
fn attempts_are_counted_over_new_revisions_and_rollbacks() {
    let document = |n: u32| format!(r#"{{"tasks":[{{"id":"a","attempts":2,"input":{{"n":{n}}}}}]}}"#);
    let mut job = Job::with(&document(0));
    for revision in 2..4_u64 {
        let task = job.take();
        job.stop(&task, TaskState::Repairable, "broken");
        // Forth, and back to what it was first.
        now(job.plan(revision, &document(u32::from(revision == 2))));
    }
    assert_eq!(job.none(), "conflicts", "no attempt is left, whatever the plan");
    let blockers = blockers(
        &job.run_row(),
        &Definition::built_in().into_iter().find(|found| found.kind() == "simple").expect("built in"),
        &[job.task("a")],
    );
    let found: Vec<_> = blockers.iter().map(|it| (it.blocking, it.task, it.code.as_str())).collect();
    assert_eq!(found, [(Blocking::Decision, Some(0), "attempts_spent")]);
    job.world.check();
}

#[test]
fn a_plan_is_set_once_for_a_revision_and_revisions_only_grow() {
    let mut job = Job::begin();
    assert_eq!(job.none(), "no plan");
    now(job.plan(3, CHAIN));
    let events = job.world.events.len();
    now(job.plan(3, CHAIN));
    assert_eq!(job.world.events.len(), events + 1, "nothing but the request");
    assert_eq!(refused(job.plan(3, r#"{"tasks":[{"id":"z"}]}"#)).code, Code::PlanConflict);
    assert_eq!(refused(job.plan(2, CHAIN)).code, Code::DeliveryOld);
    for revision in [0, 1 << 53, (1 << 53) - 1, 10_000_000_000_004] {
        assert_eq!(refused(job.plan(revision, CHAIN)).code, Code::OutOfBounds);
    }
    now(job.plan(10_000_000_000_003, CHAIN));
    job.world.check();
}

#[test]
fn a_run_with_gates_is_planned_for_its_newest_delivery() {
    let mut world = pay_world();
    let definition = Definition::built_in().into_iter().find(|found| found.kind() == "delivery");
    let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
    let (root, request) = (RootId([1; 16]), "start".to_owned());
    let start =
        StartRun { root, definition: Arc::new(definition.expect("built in")), subject, request, principal };
    let run = now(world.run(Command::StartRun(Box::new(start)))).answered.run;
    let mut job = Job { world, run, requests: 0 };
    assert_eq!(refused(job.plan(1, CHAIN)).code, Code::DeliveryUnbound);
}
