//! Whoever works on a run when it ends, and whoever is gone when it moves on.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, PrepareHandoff};
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::{AcquireLease, CommitLease, Lease, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply, RunNow};
use onceseal_core::run::{Definition, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::task::TaskState;
use onceseal_core::time::Span;

use crate::calls::identity;
use crate::tasks::{CHAIN, Job, now};
use crate::world::World;
use crate::{pay_world, refused};

impl Job<'_> {
    fn hold(&mut self, resource: Resource, holder: u8, shared: bool) -> LeaseNow {
        let (holder, length) = (HolderKey([holder; 16]), Span::minutes(1));
        let acquire = AcquireLease { resource, holder, length, shared, preempt: None };
        match self.world.run(Command::AcquireLease(Box::new(acquire))) {
            Reply::Lease(now) => *now,
            other => panic!("no lease: {other:?}"),
        }
    }

    fn hold_run(&mut self, holder: u8, shared: bool) -> LeaseNow {
        self.hold(Resource::Run(self.run), holder, shared)
    }

    fn move_to(&mut self, state: &str, under: Option<&Lease>) -> Reply {
        let (request, principal) = (self.request(), Principal::agent("bot"));
        let (to, under) = (Towards::State(state.to_owned()), under.cloned());
        let go = Transition { run: self.run, to, code: None, request, principal, under };
        self.world.run(Command::Transition(go))
    }

    fn renew(&mut self, lease: &Lease) -> Reply {
        self.world.run(Command::RenewLease(RenewLease { lease: lease.clone(), length: Span::minutes(1) }))
    }

    fn holders(&self, resource: &Resource) -> usize {
        match self.world.row(&self.world.pinned.tenant.lease(&resource.to_string())) {
            Some(Row::Lease(row)) => row.holders.len(),
            other => panic!("no lease: {other:?}"),
        }
    }

    /// Joins the run by starting it again.
    fn join(&mut self) -> RunNow {
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let definition = definition.expect("built in").into();
        let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
        let (root, request) = (RootId([1; 16]), self.request());
        let start = StartRun { root, definition, subject, request, principal };
        now(self.world.run(Command::StartRun(Box::new(start))))
    }
}

#[test]
fn whoever_works_on_a_task_of_a_run_that_is_ended_is_told_by_the_end_of_the_lease() {
    let mut job = Job::with(CHAIN);
    let task = job.take();
    let by_hand = job.hold_run(9, false);
    now(job.move_to("cancelled", None));
    for lease in [&task.lease.lease, &by_hand.lease] {
        assert_eq!(refused(job.renew(lease)).code, Code::LeaseFenced);
        assert_eq!(job.holders(&lease.resource), 0);
    }
    assert_eq!(job.state("a"), TaskState::Retryable, "nobody is at work in a run that has ended");
    job.world.check();
}

#[test]
fn whoever_ends_a_run_under_its_lease_gives_the_lease_up_in_its_own_time() {
    let mut job = Job::with(CHAIN);
    let (own, other) = (job.hold_run(1, true), job.hold_run(2, true));
    now(job.move_to("completed", Some(&own.lease)));
    assert_eq!(refused(job.renew(&other.lease)).code, Code::LeaseFenced);
    let commit = CommitLease { lease: own.lease.clone(), outcome: r#"{"ok":true}"#.to_owned() };
    assert_eq!(job.world.run(Command::CommitLease(commit)), Reply::Done { changed: true });
    assert_eq!(job.holders(&own.lease.resource), 0);
    job.world.check();
}

#[test]
fn whoever_moves_a_run_on_or_joins_it_records_that_the_last_one_is_gone() {
    let mut job = Job::begin();
    let before = job.world.now;
    let gone = job.hold_run(1, false);
    job.outlast();
    let joined = job.join();
    assert_eq!((joined.answered.joined, joined.answered.state.as_str()), (true, "paused"));
    assert_eq!(job.run_row().code.as_deref(), Some("operation-interrupted"));
    now(job.move_to("running", None));
    let again = job.hold_run(2, false);
    job.outlast();
    let moved = now(job.move_to("paused", None));
    assert_eq!(moved.answered.sequence, moved.now.sequence);
    assert_eq!(job.holders(&again.lease.resource), 0);
    job.world.now = before;
    for lease in [&gone.lease, &again.lease] {
        assert_eq!(refused(job.renew(lease)).code, Code::LeaseFenced, "no clock that goes back revives it");
    }
    let last = job.hold_run(3, false);
    job.outlast();
    // It is recorded although the move is refused.
    assert_eq!(refused(job.move_to("created", None)).code, Code::TransitionForbidden);
    assert_eq!(job.holders(&last.lease.resource), 0);
    job.world.check();
}

#[test]
fn a_request_made_under_a_lease_is_answered_again_though_the_lease_is_over() {
    let mut job = Job::begin();
    let lease = job.hold_run(1, false).lease;
    let (to, principal) = (Towards::State("paused".to_owned()), Principal::agent("bot"));
    let (request, under) = ("pause".to_owned(), Some(lease.clone()));
    let go = Transition { run: job.run, to, code: None, request, principal, under };
    let first = now(job.world.run(Command::Transition(go.clone())));
    job.outlast();
    job.hold_run(2, false);
    assert_eq!(refused(job.renew(&lease)).code, Code::LeaseFenced);
    let again = now(job.world.run(Command::Transition(go.clone())));
    assert_eq!((again.replayed, &again.answered), (true, &first.answered));
    let other = Transition { request: "pause-2".to_owned(), ..go };
    assert_eq!(refused(job.world.run(Command::Transition(other))).code, Code::LeaseFenced);
    job.world.check();
}

#[test]
fn nothing_more_of_a_run_is_done_once_whoever_worked_on_it_is_gone() {
    let mut job = Job::with(CHAIN);
    job.hold_run(9, false);
    job.outlast();
    assert_eq!(job.none(), "the run is idle", "a task that is asked for meets the lapse");
    assert_eq!(job.run_row().code.as_deref(), Some("operation-interrupted"));
    now(job.move_to("running", None));
    job.hold_run(8, false);
    job.outlast();
    let planned = now(job.plan(2, CHAIN));
    assert_eq!(planned.answered.state, "paused", "so does a plan");
    assert_eq!(job.holders(&Resource::Run(job.run)), 0);
    job.world.check();
}

/// A run that ends when whoever works on it is gone.
fn fragile(world: &mut World<'_>, request: &str) -> RunNow {
    let document = br#"{"initial":"begun","states":{"begun":{"to":["over"],"interrupted":"over"},"over":{"terminal":true}}}"#;
    let Ok(Value::Object(document)) = json::read(document, &Limits::DATA) else { panic!("no document") };
    let definition = Arc::new(Definition::compile("fragile", &document).expect("a definition"));
    let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
    let (root, request) = (RootId([1; 16]), request.to_owned());
    now(world.run(Command::StartRun(Box::new(StartRun { root, definition, subject, request, principal }))))
}

fn hold(world: &mut World<'_>, run: RunId, holder: u8) -> Reply {
    let (resource, holder) = (Resource::Run(run), HolderKey([holder; 16]));
    let acquire = AcquireLease { resource, holder, length: Span::minutes(1), shared: false, preempt: None };
    world.run(Command::AcquireLease(Box::new(acquire)))
}

#[test]
fn a_run_that_ends_with_its_worker_is_joined_held_and_handed_over_by_nobody() {
    let mut world = pay_world();
    let gone = |world: &mut World<'_>, run| {
        assert!(matches!(hold(world, run, 1), Reply::Lease(_)));
        world.now = world.now + Span::minutes(2);
    };
    let first = fragile(&mut world, "s1").answered.run;
    gone(&mut world, first);
    // Nobody has recorded that the first one ended: a start does, and begins the next.
    let second = fragile(&mut world, "s2").answered;
    assert_eq!((second.joined, second.run == first), (false, false));
    match world.row(&StreamId::run(second.run)) {
        Some(Row::Run(row)) => assert_eq!((row.previous, row.ordinal), (Some(first), 1)),
        other => panic!("no run: {other:?}"),
    }
    gone(&mut world, second.run);
    assert_eq!(refused(hold(&mut world, second.run, 2)).code, Code::RunEnded);
    let third = fragile(&mut world, "s3").answered.run;
    let (resource, receipt, principal) = (Resource::Run(third), Hash([1; 32]), Principal::agent("bot"));
    let by = Giver::Operator { person: identity("os:owner"), reason: "it hangs".to_owned() };
    let prepare = PrepareHandoff {
        resource: resource.clone(),
        receipt,
        facts: "{}".to_owned(),
        by,
        principal: principal.clone(),
    };
    gone(&mut world, third);
    let late = PrepareHandoff { receipt: Hash([2; 32]), ..prepare.clone() };
    let fourth = fragile(&mut world, "s4").answered.run;
    assert_eq!(refused(world.run(Command::PrepareHandoff(Box::new(late)))).code, Code::RunEnded);
    let prepare = PrepareHandoff { resource: Resource::Run(fourth), ..prepare };
    assert!(matches!(hold(&mut world, fourth, 1), Reply::Lease(_)));
    assert_eq!(world.run(Command::PrepareHandoff(Box::new(prepare))), Reply::Done { changed: true });
    world.now = world.now + Span::minutes(2);
    let (holder, length, resource) = (HolderKey([2; 16]), Span::minutes(1), Resource::Run(fourth));
    let accept = AcceptHandoff { resource, receipt, holder, length, principal };
    assert_eq!(refused(world.run(Command::AcceptHandoff(accept))).code, Code::RunEnded);
    world.check();
}
