//! The lease on a task: whoever takes the task has it, and nobody else.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, PrepareHandoff};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::lease::{AcquireLease, InterruptLease, Preempt, Resource};
use onceseal_core::reply::Reply;
use onceseal_core::task::{TakeTask, TaskState, TaskTo};
use onceseal_core::time::Span;

use crate::calls::identity;
use crate::refused;
use crate::tasks::{CHAIN, Job, MINUTE, fact, now};

#[test]
fn whoever_asks_again_under_its_name_gets_the_task_that_it_is_at() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#);
    let again = |job: &mut Job<'_>, holder: u8| {
        let (holder, principal) = (HolderKey([holder; 16]), Principal::agent("worker"));
        let take = TakeTask { run: job.run, holder, again: true, length: MINUTE, principal };
        match job.world.run(Command::TakeTask(take)) {
            Reply::Task(task) => *task,
            other => panic!("no task: {other:?}"),
        }
    };
    let first = again(&mut job, 1);
    assert_eq!(again(&mut job, 1), first);
    let other = again(&mut job, 2);
    assert_eq!((first.task.as_str(), other.task.as_str()), ("a", "b"));
    // Also where nothing more is taken, and once it has moved.
    now(job.to("a", TaskTo::Validating(fact("worker")), &first.lease.lease));
    job.go("paused");
    let validating = again(&mut job, 1);
    assert_eq!((validating.state, &validating.lease.lease), (TaskState::Validating, &first.lease.lease));
    job.go("running");
    job.world.now = job.world.now + MINUTE + Span::micros(1);
    let Reply::Refused(refusal) = job.try_take(3) else { panic!("both are still somebody's") };
    assert_eq!(refusal.code, Code::NoTask);
    job.world.check();
}

#[test]
fn the_lease_on_a_task_is_had_by_whoever_takes_the_task_and_by_nobody_else() {
    let mut job = Job::with(CHAIN);
    let (mine, other) = (HolderKey([1; 16]), HolderKey([9; 16]));
    let take = |job: &Job, task: &str, holder, preempt| {
        let resource = Resource::Task(job.run, task.to_owned());
        AcquireLease { resource, holder, length: MINUTE, shared: false, preempt }
    };
    let operator = || Some(Preempt { person: identity("os:owner"), reason: "it hangs".to_owned() });
    for task in ["a", "b", "nowhere"] {
        for preempt in [None, operator()] {
            let take = take(&job, task, other, preempt);
            let reply = job.world.run(Command::AcquireLease(Box::new(take)));
            assert_eq!(refused(reply).code, Code::TaskNotTaken, "nobody is at {task}");
        }
    }
    let taken = job.take();
    let again = take(&job, "a", mine, None);
    let Reply::Lease(again) = job.world.run(Command::AcquireLease(Box::new(again))) else {
        panic!("it is the holder's own")
    };
    assert_eq!(again.lease, taken.lease.lease);
    let by_hand = take(&job, "a", other, None);
    let reply = job.world.run(Command::AcquireLease(Box::new(by_hand)));
    assert_eq!(refused(reply).code, Code::TaskNotTaken, "nor once its worker is gone");
    let preempt = take(&job, "a", other, operator());
    let Reply::Lease(preempted) = job.world.run(Command::AcquireLease(Box::new(preempt))) else {
        panic!("an operator takes it from whoever has it")
    };
    assert_eq!(preempted.lease.fence, taken.lease.lease.fence + 1);
    job.world.check();
}

#[test]
fn a_task_is_handed_over_only_while_somebody_is_at_it() {
    let mut job = Job::with(CHAIN);
    let resource = |job: &Job<'_>| Resource::Task(job.run, "a".to_owned());
    let prepare = |job: &Job<'_>, receipt, by| {
        let (facts, principal) = ("{}".to_owned(), Principal::agent("bot"));
        let prepare = PrepareHandoff { resource: resource(job), receipt, facts, by, principal };
        Command::PrepareHandoff(Box::new(prepare))
    };
    let accept = |job: &Job<'_>, receipt| {
        let (holder, length, principal) = (HolderKey([7; 16]), MINUTE, Principal::agent("next"));
        Command::AcceptHandoff(AcceptHandoff { resource: resource(job), receipt, holder, length, principal })
    };
    let operator = Giver::Operator { person: identity("os:owner"), reason: "it hangs".to_owned() };
    let early = prepare(&job, Hash([1; 32]), operator);
    assert_eq!(refused(job.world.run(early)).code, Code::TaskNotTaken);
    let lease = job.take().lease.lease;
    let over = prepare(&job, Hash([2; 32]), Giver::Holder(lease.clone()));
    assert_eq!(job.world.run(over), Reply::Done { changed: true });
    job.world.run(Command::InterruptLease(InterruptLease { lease }));
    let late = accept(&job, Hash([2; 32]));
    assert_eq!(refused(job.world.run(late)).code, Code::TaskNotTaken, "nobody is at it any more");
    job.world.check();
}
