//! Endpoints that a caller tries itself, as a model's: the circuits of routes,
//! asked and told without an operation.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::HolderKey;
use onceseal_core::journal::Row;
use onceseal_core::lease::{Lease, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::route::{Health, OPENS_AFTER, ReportRoute, RouteState, TryRoute};
use onceseal_core::time::{Span, Timestamp};

use crate::world::World;
use crate::{pay_world, refused};

const ENDPOINT: &str = "sha256:fingerprint";
const ONE: HolderKey = HolderKey([1; 16]);
const TWO: HolderKey = HolderKey([2; 16]);
const MINUTE: Span = Span::minutes(1);
const ILL: Health = Health::Ill { spread: 127 };
const FREE: Reply = Reply::Done { changed: false };

trait Endpoints {
    fn try_it(&mut self, holder: HolderKey) -> Reply;
    fn report(&mut self, health: Health, under: Option<&Lease>) -> Reply;
    fn until(&self) -> Option<Timestamp>;
    fn fail(&mut self) -> Timestamp;
}

impl Endpoints for World<'_> {
    fn try_it(&mut self, holder: HolderKey) -> Reply {
        let destination = ENDPOINT.to_owned();
        self.run(Command::TryRoute(TryRoute { destination, holder, length: MINUTE }))
    }

    fn report(&mut self, health: Health, under: Option<&Lease>) -> Reply {
        let (destination, under) = (ENDPOINT.to_owned(), under.cloned());
        self.run(Command::ReportRoute(ReportRoute { destination, health, under }))
    }

    fn until(&self) -> Option<Timestamp> {
        match self.row(&self.pinned.tenant.route(ENDPOINT)) {
            Some(Row::Route(row)) => match row.state {
                RouteState::Open { until, .. } => Some(until),
                RouteState::Closed { .. } => None,
            },
            _ => None,
        }
    }

    /// Fails until its circuit is open.
    fn fail(&mut self) -> Timestamp {
        for _ in 0..OPENS_AFTER {
            assert_eq!(self.try_it(ONE), FREE);
            assert_eq!(self.report(ILL, None), Reply::Done { changed: true });
        }
        self.until().expect("it is open")
    }
}

#[track_caller]
fn probe(reply: Reply) -> LeaseNow {
    match reply {
        Reply::Lease(now) => *now,
        other => panic!("no probe: {other:?}"),
    }
}

#[test]
fn an_endpoint_that_fails_again_and_again_is_left_alone_for_a_while_and_then_probed_by_one() {
    let mut world = pay_world();
    assert_eq!(world.report(Health::Well, None), FREE, "nothing is recorded of one that answers");
    let until = world.fail();
    let shut = refused(world.try_it(TWO));
    assert_eq!((shut.code, shut.detail), (Code::RouteOpen, Some(format!("until {until}"))));
    // Whoever began before says nothing of it now.
    assert_eq!(world.report(Health::Well, None), FREE);
    world.now = until;
    let first = probe(world.try_it(ONE));
    assert_eq!(refused(world.try_it(TWO)).code, Code::RouteOpen, "one probes");
    assert_eq!(world.report(Health::Well, Some(&first.lease)), Reply::Done { changed: true });
    assert_eq!((world.until(), world.try_it(TWO)), (None, FREE));
    assert_eq!(refused(world.report(ILL, Some(&first.lease))).code, Code::LeaseFenced, "it has spoken");
    world.check();
}

#[test]
fn a_probe_that_fails_opens_for_longer_and_one_that_dies_is_replaced() {
    let mut world = pay_world();
    let opened = world.now;
    let first = world.fail();
    world.now = first;
    let dead = probe(world.try_it(ONE));
    world.now = world.now + MINUTE + Span::micros(1);
    let next = probe(world.try_it(TWO));
    let late = refused(world.report(Health::Well, Some(&dead.lease)));
    assert_eq!(late.code, Code::LeaseFenced, "another is under way");
    let before = world.now;
    world.report(ILL, Some(&next.lease));
    let second = world.until().expect("it is open");
    assert!(second.since(before) > first.since(opened), "for longer");
    world.check();
}

#[test]
fn a_probe_that_takes_longer_is_renewed_and_nobody_else_speaks_for_it() {
    let mut world = pay_world();
    world.now = world.fail();
    let held = probe(world.try_it(ONE));
    world.run(Command::RenewLease(RenewLease { lease: held.lease.clone(), length: Span::minutes(9) }));
    world.now = world.now + Span::minutes(8);
    assert_eq!(refused(world.try_it(TWO)).code, Code::RouteOpen);
    let forged = Lease::handed_on(held.lease.resource.clone(), held.lease.fence, held.lease.holder, [0; 16]);
    assert_eq!(refused(world.report(Health::Well, Some(&forged))).code, Code::LeaseFenced);
    let elsewhere =
        Lease::handed_on(Resource::Name("a".to_owned()), 1, held.lease.holder, held.lease.token());
    assert_eq!(refused(world.report(Health::Well, Some(&elsewhere))).code, Code::LeaseFenced);
    world.report(Health::Well, Some(&held.lease));
    assert_eq!(world.until(), None);
    world.check();
}

#[test]
fn what_is_no_endpoint_is_not_tried() {
    let mut world = pay_world();
    for destination in [String::new(), "a\nb".to_owned(), "x".repeat(1_020)] {
        let wish = TryRoute { destination: destination.clone(), holder: ONE, length: MINUTE };
        assert_eq!(refused(world.run(Command::TryRoute(wish))).field, Some("destination"));
        let report = ReportRoute { destination, health: ILL, under: None };
        assert_eq!(refused(world.run(Command::ReportRoute(report))).field, Some("destination"));
    }
    let wish = TryRoute { destination: ENDPOINT.to_owned(), holder: ONE, length: Span::ZERO };
    assert_eq!(refused(world.run(Command::TryRoute(wish))).field, Some("length"));
}
