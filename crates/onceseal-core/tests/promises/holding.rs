//! Leases on resources: who holds what, for how long, and what may be done under
//! one.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::lease::{
    AcquireLease, CommitLease, InterruptLease, Lease, LeaseRow, Preempt, RenewLease, Resource,
};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::run::{Definition, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use crate::calls::identity;
use crate::world::World;
use crate::{pay_world, refused};

const ONE: HolderKey = HolderKey([1; 16]);
const TWO: HolderKey = HolderKey([2; 16]);
const MINUTE: Span = Span::minutes(1);

fn name() -> Resource {
    Resource::parse("name/deploy").expect("a resource")
}

fn path(text: &str) -> Resource {
    Resource::parse(&format!("root/{}/path/{text}", RootId([2; 16]))).expect("a path")
}

fn take(resource: &Resource, holder: HolderKey) -> AcquireLease {
    AcquireLease { resource: resource.clone(), holder, length: MINUTE, shared: false, preempt: None }
}

#[track_caller]
fn held(reply: Reply) -> LeaseNow {
    match reply {
        Reply::Lease(now) => *now,
        other => panic!("no lease: {other:?}"),
    }
}

trait Leases {
    fn take(&mut self, acquire: AcquireLease) -> Reply;
    fn renew(&mut self, lease: &Lease, length: Span) -> Reply;
    fn commit(&mut self, lease: &Lease, outcome: &str) -> Reply;
    fn give_up(&mut self, lease: &Lease) -> Reply;
    fn sweep(&mut self, resource: &Resource) -> Reply;
    fn lease_row(&self, resource: &Resource) -> LeaseRow;
    fn begin(&mut self, change: &str) -> RunId;
}

impl Leases for World<'_> {
    fn take(&mut self, acquire: AcquireLease) -> Reply {
        self.run(Command::AcquireLease(Box::new(acquire)))
    }

    fn renew(&mut self, lease: &Lease, length: Span) -> Reply {
        self.run(Command::RenewLease(RenewLease { lease: lease.clone(), length }))
    }

    fn commit(&mut self, lease: &Lease, outcome: &str) -> Reply {
        self.run(Command::CommitLease(CommitLease { lease: lease.clone(), outcome: outcome.to_owned() }))
    }

    fn give_up(&mut self, lease: &Lease) -> Reply {
        self.run(Command::InterruptLease(InterruptLease { lease: lease.clone() }))
    }

    fn sweep(&mut self, resource: &Resource) -> Reply {
        let stream = self.pinned.tenant.lease(&resource.to_string());
        self.run(Command::Lapse(stream))
    }

    fn lease_row(&self, resource: &Resource) -> LeaseRow {
        match self.row(&self.pinned.tenant.lease(&resource.to_string())) {
            Some(Row::Lease(row)) => row.clone(),
            other => panic!("no lease: {other:?}"),
        }
    }

    fn begin(&mut self, change: &str) -> RunId {
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let definition = Arc::new(definition.expect("built in"));
        let (subject, principal) = (Subject::Change(change.to_owned()), Principal::agent("bot"));
        let (root, request) = (RootId([1; 16]), format!("start-{change}"));
        let start = StartRun { root, definition, subject, request, principal };
        match self.run(Command::StartRun(Box::new(start))) {
            Reply::Run(now) => now.answered.run,
            other => panic!("no run: {other:?}"),
        }
    }
}

#[test]
fn one_holds_a_resource_to_its_last_moment_and_the_next_has_a_higher_fence() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    assert_eq!((first.lease.fence, first.until), (1, world.now + MINUTE));
    let busy = refused(world.take(take(&name(), TWO)));
    let other = busy.held.expect("who has it").by;
    assert_eq!((busy.code, other.holder, other.until), (Code::LeaseHeld, first.lease.holder, first.until));
    world.now = first.until;
    assert_eq!(refused(world.take(take(&name(), TWO))).code, Code::LeaseHeld, "the end belongs to it");
    held(world.renew(&first.lease, Span::seconds(1)));
    world.now = world.now + Span::seconds(1) + Span::micros(1);
    let second = held(world.take(take(&name(), TWO)));
    assert_eq!(second.lease.fence, 2);
    let replies =
        [world.renew(&first.lease, MINUTE), world.commit(&first.lease, "{}"), world.give_up(&first.lease)];
    for reply in replies {
        assert_eq!(refused(reply).code, Code::LeaseFenced);
    }
    assert_eq!(world.lease_row(&name()).holders.len(), 1);
    world.check();
}

#[test]
fn the_holder_that_everybody_is_told_of_gives_nobody_its_lease() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    let told = refused(world.take(take(&name(), TWO))).held.expect("who has it").by.holder;
    assert_eq!(told, first.lease.holder);
    assert_ne!(told.0, ONE.0);
    assert_eq!(refused(world.take(take(&name(), HolderKey(told.0)))).code, Code::LeaseHeld);
    assert!(!format!("{:?}", take(&name(), ONE)).contains(&ONE.to_string()), "nor does a line of a log");
    world.check();
}

#[test]
fn whoever_holds_it_gets_what_it_has_and_nobody_else_can_name_it() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    world.now = world.now + Span::seconds(9);
    assert_eq!(held(world.take(take(&name(), ONE))), first, "not for longer");
    let guessed = Lease::handed_on(name(), 1, first.lease.holder, [0; 16]);
    let another = Lease::handed_on(name(), 1, world.pinned.tenant.holder(TWO), first.lease.token());
    for lease in [guessed, another] {
        assert_eq!(refused(world.renew(&lease, MINUTE)).code, Code::LeaseFenced);
    }
    let handed_on = Lease::handed_on(name(), 1, first.lease.holder, first.lease.token());
    held(world.renew(&handed_on, MINUTE));
    world.check();
}

#[test]
fn shared_leases_stand_beside_each_other_and_beside_no_other() {
    let mut world = pay_world();
    let shared = |holder| AcquireLease { shared: true, ..take(&name(), holder) };
    let one = held(world.take(shared(ONE)));
    let two = held(world.take(shared(TWO)));
    assert_eq!((one.lease.fence, two.lease.fence), (1, 2));
    let three = HolderKey([3; 16]);
    assert_eq!(refused(world.take(take(&name(), three))).code, Code::LeaseHeld);
    assert_eq!(world.give_up(&one.lease), Reply::Done { changed: true });
    assert_eq!(refused(world.take(take(&name(), three))).code, Code::LeaseHeld, "the other is left");
    held(world.renew(&two.lease, MINUTE));
    world.check();
}

#[test]
fn a_path_is_held_with_all_that_is_above_and_below_it() {
    let mut world = pay_world();
    let held_one = held(world.take(take(&path("a/b"), ONE)));
    for taken in ["a", "a/b", "a/b/c", "a/b/c/d"] {
        assert_eq!(refused(world.take(take(&path(taken), TWO))).code, Code::LeaseHeld, "{taken}");
    }
    for free in ["a/bb", "ab", "c"] {
        held(world.take(take(&path(free), TWO)));
    }
    world.give_up(&held_one.lease);
    held(world.take(take(&path("a/b/c"), TWO)));
    world.check();
}

#[test]
fn an_outcome_is_final_and_outlives_the_leases_that_follow() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    for bad in ["[]", "null", "{ }", ""] {
        assert_eq!(refused(world.commit(&first.lease, bad)).code, Code::OutcomeInvalid, "{bad:?}");
    }
    assert_eq!(world.commit(&first.lease, r#"{"done":true}"#), Reply::Done { changed: true });
    let second = held(world.take(take(&name(), TWO)));
    assert_eq!(world.commit(&first.lease, r#"{"done":true}"#), Reply::Done { changed: false });
    assert_eq!(refused(world.commit(&first.lease, "{}")).code, Code::OutcomeFinal);
    let guessed = Lease::handed_on(name(), 1, first.lease.holder, [0; 16]);
    assert_eq!(refused(world.commit(&guessed, r#"{"done":true}"#)).code, Code::LeaseFenced);
    held(world.renew(&second.lease, MINUTE));
    world.check();
}

#[test]
fn an_operator_may_take_a_resource_from_whoever_has_it_and_is_recorded() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    let by = |person: &str, reason: &str| {
        let preempt = Some(Preempt { person: identity(person), reason: reason.to_owned() });
        AcquireLease { preempt, ..take(&name(), TWO) }
    };
    assert_eq!(refused(world.take(by("os:somebody", "stuck"))).code, Code::NotOperator);
    assert_eq!(refused(world.take(by("os:owner", " "))).code, Code::OutOfBounds);
    let second = held(world.take(by("os:owner", "stuck")));
    assert_eq!(second.lease.fence, 2);
    assert_eq!(refused(world.renew(&first.lease, MINUTE)).code, Code::LeaseFenced);
    world.check();
}

#[test]
fn what_an_operator_takes_is_taken_from_those_above_and_below_it_too() {
    for (had, taken) in [("a", "a/b"), ("a/b", "a")] {
        let mut world = pay_world();
        let first = held(world.take(take(&path(had), ONE)));
        let preempt = Some(Preempt { person: identity("os:owner"), reason: "stuck".to_owned() });
        let second = held(world.take(AcquireLease { preempt, ..take(&path(taken), TWO) }));
        assert_eq!(refused(world.renew(&first.lease, MINUTE)).code, Code::LeaseFenced, "{had}");
        held(world.renew(&second.lease, MINUTE));
        world.check();
    }
}

#[test]
fn a_clock_that_goes_back_gives_nobody_back_what_another_has_a_part_of() {
    for (had, taken) in [("a", "a/b"), ("a/b", "a")] {
        let mut world = pay_world();
        let first = held(world.take(take(&path(had), ONE)));
        world.now = first.until + Span::micros(1);
        let second = held(world.take(take(&path(taken), TWO)));
        world.now = first.until;
        assert_eq!(refused(world.renew(&first.lease, MINUTE)).code, Code::LeaseFenced, "{had}");
        held(world.renew(&second.lease, MINUTE));
        world.check();
    }
}

#[test]
fn however_much_is_held_below_a_path_it_is_looked_at_in_few_rounds() {
    let mut world = pay_world();
    let shared = |text: &str| AcquireLease { shared: true, ..take(&path(text), ONE) };
    for n in 0..20 {
        held(world.take(shared(&format!("a/{n}"))));
    }
    // The world bounds the rounds, as stores do.
    held(world.take(shared("a")));
    assert_eq!(refused(world.take(take(&path("a"), TWO))).code, Code::LeaseHeld);
    world.check();
}

#[test]
fn a_sweep_ends_what_is_over_and_never_a_fresh_lease() {
    let mut world = pay_world();
    let first = held(world.take(take(&name(), ONE)));
    world.now = first.until + Span::micros(1);
    let second = held(world.take(take(&name(), TWO)));
    assert_eq!(world.sweep(&name()), Reply::Done { changed: false });
    held(world.renew(&second.lease, MINUTE));
    world.now = world.now + MINUTE + Span::micros(1);
    assert_eq!(world.sweep(&name()), Reply::Done { changed: true });
    assert!(world.lease_row(&name()).holders.is_empty());
    world.check();
}

#[test]
fn a_run_whose_worker_is_gone_is_interrupted_and_only_then() {
    let mut world = pay_world();
    let run = world.begin("c");
    let resource = Resource::Run(run);
    let go = |state: &str, request: &str, under: Option<Lease>| {
        let (to, principal) = (Towards::State(state.to_owned()), Principal::agent("bot"));
        Command::Transition(Transition { run, to, code: None, request: request.to_owned(), principal, under })
    };
    let first = held(world.take(take(&resource, ONE)));
    assert!(matches!(world.run(go("running", "t1", Some(first.lease.clone()))), Reply::Run(_)));
    world.now = first.until + Span::micros(1);
    assert_eq!(refused(world.run(go("completed", "t2", Some(first.lease.clone())))).code, Code::LeaseFenced);
    // A replay is answered whatever became of its lease.
    assert!(matches!(world.run(go("running", "t1", Some(first.lease.clone()))), Reply::Run(_)));
    let second = held(world.take(take(&resource, TWO)));
    let state = |world: &World<'_>| match world.row(&StreamId::run(run)) {
        Some(Row::Run(row)) => (row.state.clone(), row.code.clone()),
        other => panic!("no run: {other:?}"),
    };
    assert_eq!(state(&world), ("paused".to_owned(), Some("operation-interrupted".to_owned())));
    let elsewhere = held(world.take(take(&name(), TWO)));
    assert_eq!(refused(world.run(go("running", "t3", Some(elsewhere.lease)))).code, Code::LeaseFenced);
    assert!(matches!(world.run(go("running", "t3", Some(second.lease.clone()))), Reply::Run(_)));
    // One that gives it up says so: nothing is interrupted.
    world.give_up(&second.lease);
    assert_eq!(state(&world), ("running".to_owned(), None));
    world.run(go("cancelled", "t4", None));
    assert_eq!(refused(world.take(take(&resource, ONE))).code, Code::RunEnded);
    assert_eq!(refused(world.take(take(&Resource::Run(RunId([9; 16])), ONE))).code, Code::RunUnknown);
    world.check();
}

#[test]
fn a_lease_is_between_a_second_and_a_day() {
    let mut world = pay_world();
    for length in [Span::ZERO, Span::micros(999_999), Span::hours(25)] {
        let taken = AcquireLease { length, ..take(&name(), ONE) };
        assert_eq!(refused(world.take(taken)).code, Code::OutOfBounds);
    }
}

#[test]
fn what_is_over_stays_over_though_the_clock_goes_back() {
    let mut world = pay_world();
    let run = world.begin("c");
    let resource = Resource::Run(run);
    let first = held(world.take(take(&resource, ONE)));
    let before = world.now;
    world.now = first.until + Span::micros(1);
    // Whoever meets the end records it, and what it means for the run.
    assert_eq!(refused(world.renew(&first.lease, MINUTE)).code, Code::LeaseFenced);
    let state = match world.row(&StreamId::run(run)) {
        Some(Row::Run(row)) => row.state.clone(),
        other => panic!("no run: {other:?}"),
    };
    assert_eq!(state, "paused");
    world.now = before;
    assert_eq!(refused(world.renew(&first.lease, MINUTE)).code, Code::LeaseFenced);
    assert_eq!(world.sweep(&resource), Reply::Done { changed: false });
    world.check();
}

#[test]
fn whoever_shares_a_resource_does_not_have_it_alone_by_asking_again() {
    let mut world = pay_world();
    let shared = AcquireLease { shared: true, ..take(&name(), ONE) };
    let own = held(world.take(shared.clone()));
    let refusal = refused(world.take(take(&name(), ONE)));
    assert_eq!(
        (refusal.code, refusal.held.expect("who").by.holder),
        (Code::LeaseHeld, world.pinned.tenant.holder(ONE))
    );
    assert_eq!(held(world.take(shared)).lease, own.lease);
    world.give_up(&own.lease);
    let alone = held(world.take(take(&name(), ONE)));
    let again = AcquireLease { shared: true, ..take(&name(), ONE) };
    assert_eq!(held(world.take(again)).lease, alone.lease, "more than is asked");
    world.check();
}

#[test]
fn nobody_holds_a_part_of_a_run_that_is_not_there_or_has_ended() {
    let mut world = pay_world();
    let run = world.begin("c");
    let part = Resource::Task(run, "t".to_owned());
    assert_eq!(refused(world.take(take(&part, ONE))).code, Code::TaskNotTaken);
    let (to, principal) = (Towards::State("cancelled".to_owned()), Principal::agent("bot"));
    let request = "end".to_owned();
    world.run(Command::Transition(Transition { run, to, code: None, request, principal, under: None }));
    assert_eq!(refused(world.take(take(&part, TWO))).code, Code::RunEnded);
    let nowhere = Resource::Task(RunId([9; 16]), "t".to_owned());
    assert_eq!(refused(world.take(take(&nowhere, ONE))).code, Code::RunUnknown);
}
