//! Handoffs: a resource passes from one holder to another, once, as it was.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, PrepareHandoff, WithdrawHandoff};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::lease::{AcquireLease, InterruptLease, Lease, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::time::Span;

use crate::calls::identity;
use crate::world::World;
use crate::{pay_world, refused};

const OLD: HolderKey = HolderKey([1; 16]);
const NEW: HolderKey = HolderKey([2; 16]);
const OTHER: HolderKey = HolderKey([3; 16]);
const MINUTE: Span = Span::minutes(1);
const R1: Hash = Hash([1; 32]);
const R2: Hash = Hash([2; 32]);

fn resource() -> Resource {
    Resource::parse("name/selector").expect("a resource")
}

fn operator() -> Giver {
    Giver::Operator { person: identity("os:owner"), reason: "the old one is gone".to_owned() }
}

trait HandOver {
    fn take(&mut self, holder: HolderKey, shared: bool) -> LeaseNow;
    fn hand_over(&mut self, receipt: Hash, facts: &str, by: Giver) -> Reply;
    fn accept(&mut self, receipt: Hash, holder: HolderKey) -> Reply;
    fn withdraw(&mut self, receipt: Hash, by: Giver) -> Reply;
    fn renew(&mut self, lease: &Lease) -> Reply;
}

impl HandOver for World<'_> {
    fn take(&mut self, holder: HolderKey, shared: bool) -> LeaseNow {
        let take = AcquireLease { resource: resource(), holder, length: MINUTE, shared, preempt: None };
        held(self.run(Command::AcquireLease(Box::new(take))))
    }

    fn hand_over(&mut self, receipt: Hash, facts: &str, by: Giver) -> Reply {
        let (facts, principal) = (facts.to_owned(), Principal::agent("bot"));
        let prepare = PrepareHandoff { resource: resource(), receipt, facts, by, principal };
        self.run(Command::PrepareHandoff(Box::new(prepare)))
    }

    fn accept(&mut self, receipt: Hash, holder: HolderKey) -> Reply {
        let (length, principal) = (MINUTE, Principal::agent("next"));
        let accept = AcceptHandoff { resource: resource(), receipt, holder, length, principal };
        self.run(Command::AcceptHandoff(accept))
    }

    fn withdraw(&mut self, receipt: Hash, by: Giver) -> Reply {
        self.run(Command::WithdrawHandoff(WithdrawHandoff { resource: resource(), receipt, by }))
    }

    fn renew(&mut self, lease: &Lease) -> Reply {
        self.run(Command::RenewLease(RenewLease { lease: lease.clone(), length: MINUTE }))
    }
}

#[track_caller]
fn held(reply: Reply) -> LeaseNow {
    match reply {
        Reply::Lease(now) => *now,
        other => panic!("no lease: {other:?}"),
    }
}

const DONE: Reply = Reply::Done { changed: true };
const NOTHING: Reply = Reply::Done { changed: false };

#[test]
fn whoever_accepts_has_the_resource_and_the_old_holder_is_fenced() {
    let mut world = pay_world();
    let old = world.take(OLD, false);
    assert_eq!(world.hand_over(R1, r#"{"at":7}"#, Giver::Holder(old.lease.clone())), DONE);
    held(world.renew(&old.lease));
    let new = held(world.accept(R1, NEW));
    assert!(new.lease.fence > old.lease.fence);
    assert_eq!(refused(world.renew(&old.lease)).code, Code::LeaseFenced);
    held(world.renew(&new.lease));
    // An answer that was lost is given again, to nobody else.
    assert_eq!(held(world.accept(R1, NEW)).lease, new.lease);
    assert_eq!(refused(world.accept(R1, OTHER)).code, Code::HandoffOver);
    assert_eq!(refused(world.withdraw(R1, Giver::Holder(new.lease))).code, Code::HandoffOver);
    world.check();
}

#[test]
fn one_handoff_of_a_resource_is_prepared_and_one_receipt_names_one() {
    let mut world = pay_world();
    let old = Giver::Holder(world.take(OLD, false).lease);
    assert_eq!(world.hand_over(R1, r#"{"at":7}"#, old.clone()), DONE);
    assert_eq!(world.hand_over(R1, r#"{"at":7}"#, old.clone()), NOTHING, "the same again");
    assert_eq!(refused(world.hand_over(R1, r#"{"at":8}"#, old.clone())).code, Code::HandoffConflict);
    assert_eq!(refused(world.hand_over(R2, "{}", old.clone())).code, Code::HandoffPrepared);
    assert_eq!(world.withdraw(R1, old.clone()), DONE);
    assert_eq!(world.withdraw(R1, old.clone()), NOTHING);
    assert_eq!(refused(world.accept(R1, NEW)).code, Code::HandoffOver);
    let late = refused(world.hand_over(R1, r#"{"at":7}"#, old.clone()));
    assert_eq!(late.code, Code::HandoffOver, "a receipt is used once");
    assert_eq!(world.hand_over(R2, "{}", old), DONE);
    held(world.accept(R2, NEW));
    let late = refused(world.hand_over(R2, "{}", operator()));
    assert_eq!(late.code, Code::HandoffOver, "somebody has it by this receipt");
    world.check();
}

#[test]
fn what_went_elsewhere_since_is_not_handed_over() {
    let mut world = pay_world();
    let old = world.take(OLD, false);
    assert_eq!(world.hand_over(R1, "{}", Giver::Holder(old.lease)), DONE);
    world.now = world.now + MINUTE + Span::micros(1);
    let other = world.take(OTHER, false);
    assert_eq!(refused(world.accept(R1, NEW)).code, Code::HandoffStale);
    assert_eq!(refused(world.hand_over(R1, "{}", operator())).code, Code::HandoffStale);
    // It is out of the way of the next one.
    assert_eq!(world.hand_over(R2, "{}", Giver::Holder(other.lease)), DONE);
    assert_eq!(refused(world.accept(R1, NEW)).code, Code::HandoffOver);
    held(world.accept(R2, NEW));
    world.check();
}

#[test]
fn a_handoff_outlives_the_lease_of_whoever_prepared_it() {
    let mut world = pay_world();
    let old = world.take(OLD, false);
    assert_eq!(world.hand_over(R1, "{}", Giver::Holder(old.lease.clone())), DONE);
    world.run(Command::InterruptLease(InterruptLease { lease: old.lease }));
    world.now = world.now + Span::hours(1);
    held(world.accept(R1, NEW));
    world.check();
}

#[test]
fn nobody_hands_over_what_is_not_theirs() {
    let mut world = pay_world();
    let mine = world.take(OLD, true);
    let forged = Lease::handed_on(resource(), 1, mine.lease.holder, [0; 16]);
    let elsewhere =
        Lease::handed_on(Resource::Name("b".to_owned()), 1, mine.lease.holder, mine.lease.token());
    for lease in [forged, elsewhere] {
        assert_eq!(refused(world.hand_over(R1, "{}", Giver::Holder(lease))).code, Code::LeaseFenced);
    }
    world.take(OTHER, true);
    let shared = refused(world.hand_over(R1, "{}", Giver::Holder(mine.lease)));
    assert_eq!(shared.code, Code::LeaseHeld, "the other has it too");
    let somebody = Giver::Operator { person: identity("os:somebody"), reason: "please".to_owned() };
    assert_eq!(refused(world.hand_over(R1, "{}", somebody.clone())).code, Code::NotOperator);
    world.now = world.now + MINUTE + Span::micros(1);
    assert_eq!(world.hand_over(R1, "{}", operator()), DONE, "an operator may, where the holder cannot");
    assert_eq!(refused(world.withdraw(R1, somebody)).code, Code::NotOperator);
    assert_eq!(world.withdraw(R1, operator()), DONE);
    for bad in ["[]", "null", "{ }", ""] {
        assert_eq!(refused(world.hand_over(R2, bad, operator())).code, Code::FactsInvalid, "{bad:?}");
    }
    assert_eq!(refused(world.accept(R2, NEW)).code, Code::HandoffUnknown);
    world.check();
}
