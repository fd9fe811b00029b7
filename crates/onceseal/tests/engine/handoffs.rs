//! Handoffs from Rust: the resource passes on once, and its old holder is fenced.

use onceseal::Control;
use onceseal::core::hash::Hash;
use onceseal::core::id::HolderKey;
use onceseal::core::json::Object;
use onceseal::core::time::Span;
use onceseal::runs::{Giver, Handing, HandoffState, LeaseGuard, Resource};

use crate::support::{POLICY, World, bot, code, stranger};

fn facts(position: i64) -> Object {
    let mut facts = Object::new();
    facts.insert("position", position);
    facts
}

fn of(control: &Control, resource: &Resource, receipt: u8) -> Handing {
    control.handoff(resource.clone(), Hash([receipt; 32])).by(bot())
}

fn holder(lease: &LeaseGuard) -> Giver {
    Giver::Holder(lease.lease().clone())
}

#[tokio::test]
async fn whoever_accepts_holds_the_resource_and_whoever_had_it_is_told() {
    for world in World::both().await {
        let control = &world.control;
        let resource = Resource::Name("selector".to_owned());
        let old = control.lease(resource.clone()).length(Span::seconds(1)).take().await.expect("taken");
        assert!(of(control, &resource, 1).prepare(facts(7), holder(&old)).await.expect("prepared"));
        assert!(!of(control, &resource, 1).prepare(facts(7), holder(&old)).await.expect("so before"));
        assert_eq!(code(of(control, &resource, 1).prepare(facts(8), holder(&old)).await), "handoff_conflict");
        assert_eq!(code(of(control, &resource, 2).prepare(facts(7), holder(&old)).await), "handoff_prepared");
        let prepared = control.prepared_handoff(&resource).expect("readable").expect("one is");
        assert_eq!((prepared.row.state, prepared.facts), (HandoffState::Prepared, Some(facts(7))));
        let me = HolderKey([7; 16]);
        let new = of(control, &resource, 1).holder(me).accept().await.expect("accepted");
        assert!(new.fence() > old.fence());
        let again = of(control, &resource, 1).holder(me).accept_once().await.expect("its own");
        assert_eq!(again.lease, *new.lease());
        assert_eq!(code(of(control, &resource, 1).accept().await), "handoff_over");
        assert_eq!(code(of(control, &resource, 1).withdraw(holder(&new)).await), "handoff_over");
        old.lost().await;
        assert!(!new.is_lost());
        assert!(control.prepared_handoff(&resource).expect("readable").is_none());
        assert_eq!(of(control, &resource, 1).view().await.expect("known").row.state, HandoffState::Accepted);
        let elsewhere = Resource::Name("other".to_owned());
        assert_eq!(code(of(control, &elsewhere, 1).view().await), "handoff_unknown");
    }
}

#[tokio::test]
async fn what_was_withdrawn_or_went_elsewhere_is_not_handed_over() {
    let world = World::memory(POLICY).await;
    let control = &world.control;
    let resource = Resource::Name("selector".to_owned());
    let mut old = control.lease(resource.clone()).take().await.expect("taken");
    of(control, &resource, 1).prepare(facts(1), holder(&old)).await.expect("prepared");
    assert!(of(control, &resource, 1).withdraw(holder(&old)).await.expect("withdrawn"));
    assert!(!of(control, &resource, 1).withdraw(holder(&old)).await.expect("so before"));
    assert_eq!(code(of(control, &resource, 1).accept().await), "handoff_over");
    let stranger = Giver::Operator { person: stranger(), reason: "please".to_owned() };
    assert_eq!(code(of(control, &resource, 2).prepare(facts(2), stranger).await), "not_operator");
    let owner = Giver::Operator { person: Control::account(), reason: "it hangs".to_owned() };
    of(control, &resource, 2).prepare(facts(2), owner).await.expect("prepared");
    old.give_back().await.expect("given back");
    let other = control.lease(resource.clone()).take().await.expect("taken by another");
    assert_eq!(code(of(control, &resource, 2).accept().await), "handoff_stale");
    assert_eq!(code(of(control, &resource, 3).accept().await), "handoff_unknown");
    assert!(!other.is_lost());
}
