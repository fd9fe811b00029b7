//! Deliveries: what is bound at a gate of a run stays, and where the gate asks
//! for it a person approved exactly that.

use std::sync::Arc;

use onceseal_core::action::{Action, ActionState, Answer, Principal};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, HolderKey, RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::lease::{AcquireLease, Resource};
use onceseal_core::reply::{Refusal, Reply, RunNow};
use onceseal_core::run::{
    BindDeliveries, Definition, Delivery, DeliveryRow, RunRow, StartRun, Subject, Towards, Transition,
};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use crate::calls::call;
use crate::doing::asked;
use crate::executor::Real;
use crate::refused;
use crate::world::World;

const POLICY: &str = r#"
schema: onceseal.policy/v1
actions:
  run.bind_delivery: { approval: { ttl: 15m }, decision: approve }
"#;

const ONE_KEY: &str = r#"
schema: onceseal.policy/v1
actions:
  run.bind_delivery: { effect: "bind:{run}", approval: { ttl: 15m }, decision: approve }
"#;

const A: Hash = Hash([0xaa; 32]);
const B: Hash = Hash([0xbb; 32]);

fn delivery(gate: &str, revision: u64, receipt: Hash) -> Delivery {
    Delivery { gate: gate.to_owned(), revision, receipt, contract: None, record: None, approval: None }
}

fn proven(approval: ApprovalId, of: Delivery) -> Delivery {
    Delivery { approval: Some(approval), ..of }
}

fn binding(run: RunId, deliveries: Vec<Delivery>, request: &str) -> BindDeliveries {
    BindDeliveries {
        run,
        deliveries,
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        request: request.to_owned(),
        principal: Principal::agent("bot"),
        under: None,
    }
}

/// `delivery`, with a gate more that asks for no proof.
fn definition() -> Definition {
    let found = Definition::built_in().into_iter().find(|found| found.kind() == "delivery");
    let text =
        found.expect("built in").text().replace("\"gates\":{", "\"gates\":{\"free\":{\"proof\":\"none\"},");
    Definition::restore(&text).expect("a definition")
}

trait Bind {
    fn begin(&mut self) -> RunId;
    fn bind(&mut self, bind: BindDeliveries) -> Reply;
    fn go(&mut self, run: RunId, state: &str);
    fn approved(&mut self, run: RunId, of: &Delivery) -> (ApprovalId, ActionId);
    fn run_row(&self, run: RunId) -> RunRow;
    fn delivery_row(&self, run: RunId, gate: &str, revision: u64) -> Option<DeliveryRow>;
}

impl Bind for World<'_> {
    fn begin(&mut self) -> RunId {
        let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
        let (root, definition, request) = (RootId([1; 16]), Arc::new(definition()), "s1".to_owned());
        let start = StartRun { root, definition, subject, request, principal };
        bound(self.run(Command::StartRun(Box::new(start)))).answered.run
    }

    fn bind(&mut self, bind: BindDeliveries) -> Reply {
        self.run(Command::BindDeliveries(Box::new(bind)))
    }

    fn go(&mut self, run: RunId, state: &str) {
        let (to, principal) = (Towards::State(state.to_owned()), Principal::agent("bot"));
        let request = format!("to-{state}");
        let go = Transition { run, to, code: None, request, principal, under: None };
        bound(self.run(Command::Transition(go)));
    }

    fn approved(&mut self, run: RunId, of: &Delivery) -> (ApprovalId, ActionId) {
        let Delivery { gate, revision, receipt, .. } = of;
        let arguments =
            format!(r#"{{"gate":"{gate}","receipt_hash":"{receipt}","revision":{revision},"run":"{run}"}}"#);
        let (action, approval) = asked(self.call(call("run.bind_delivery", &arguments)));
        self.answer(approval, "os:owner", Said::Yes);
        (approval, action)
    }

    fn run_row(&self, run: RunId) -> RunRow {
        match self.row(&StreamId::run(run)) {
            Some(Row::Run(row)) => row.clone(),
            other => panic!("no run: {other:?}"),
        }
    }

    fn delivery_row(&self, run: RunId, gate: &str, revision: u64) -> Option<DeliveryRow> {
        match self.row(&self.pinned.tenant.delivery(run, gate, revision)) {
            Some(Row::Delivery(row)) => Some(row.clone()),
            _ => None,
        }
    }
}

#[track_caller]
fn bound(reply: Reply) -> RunNow {
    match reply {
        Reply::Run(now) => *now,
        other => panic!("no run: {other:?}"),
    }
}

#[test]
fn what_is_bound_stays_and_an_identical_repeat_adds_nothing() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    let first = bound(world.bind(binding(run, vec![delivery("free", 1, A)], "b1")));
    assert_eq!((first.now.sequence, first.replayed), (2, false));
    let again = bound(world.bind(binding(run, vec![delivery("free", 1, A)], "b2")));
    assert_eq!((again.now.sequence, again.replayed), (2, false), "no event");
    assert!(bound(world.bind(binding(run, vec![delivery("free", 1, A)], "b1"))).replayed);
    let with = |contract, record| Delivery { contract, record, ..delivery("free", 1, A) };
    for (at, other) in
        [delivery("free", 1, B), with(Some(B), None), with(None, Some(B))].into_iter().enumerate()
    {
        let refusal = refused(world.bind(binding(run, vec![other], &format!("c{at}"))));
        assert_eq!(refusal.code, Code::DeliveryConflict);
    }
    assert_eq!(world.run_row(run).delivery_revision(), Some(1));
    world.check();
}

#[test]
fn revisions_of_a_gate_only_grow_and_those_of_another_are_its_own() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    bound(world.bind(binding(run, vec![delivery("free", 7, A)], "b1")));
    assert_eq!(refused(world.bind(binding(run, vec![delivery("free", 3, A)], "b2"))).code, Code::DeliveryOld);
    let wrong = vec![delivery("free", 9, A), delivery("free", 8, A)];
    assert_eq!(refused(world.bind(binding(run, wrong, "b2"))).code, Code::DeliveryOld);
    bound(world.bind(binding(run, vec![delivery("free", 8, A), delivery("free", 9, A)], "b2")));
    assert_eq!(world.run_row(run).revision_of("free"), Some(9));
    world.check();
}

#[test]
fn several_are_bound_together_or_none_is() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    bound(world.bind(binding(run, vec![delivery("free", 1, A)], "b1")));
    let (approval, _) = world.approved(run, &delivery("gate-a", 1, A));
    let ours = proven(approval, delivery("gate-a", 1, A));
    let conflicting = vec![ours.clone(), delivery("free", 1, B)];
    let events = world.events.len();
    assert_eq!(refused(world.bind(binding(run, conflicting, "b2"))).code, Code::DeliveryConflict);
    assert_eq!(world.events.len(), events, "nothing of it is recorded");
    assert_eq!(world.approval(approval).status, Status::Granted, "and the approval is unused");
    let twice = vec![ours.clone(), ours, delivery("free", 2, B)];
    let both = bound(world.bind(binding(run, twice, "b2")));
    assert_eq!(both.now.sequence, 4, "the same twice is one");
    world.check();
}

#[test]
fn p01_a_gate_that_asks_for_proof_takes_exactly_what_a_person_approved_and_once() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    let of = delivery("gate-a", 1, A);
    assert_eq!(refused(world.bind(binding(run, vec![of.clone()], "b1"))).code, Code::ProofRequired);
    let (approval, action) = world.approved(run, &of);
    // Another receipt, revision, gate, run, agent or environment was not approved.
    let others = [
        delivery("gate-a", 1, B),
        delivery("gate-a", 2, A),
        delivery("gate-b", 1, A),
        Delivery { contract: Some(B), ..of.clone() },
        Delivery { record: Some(B), ..of.clone() },
    ];
    for other in others {
        let refusal = refused(world.bind(binding(run, vec![proven(approval, other)], "b1")));
        assert_eq!((refusal.code, refusal.field), (Code::ApprovalMismatch, Some("arguments")));
    }
    let right = binding(run, vec![proven(approval, of.clone())], "b1");
    let elsewhere = BindDeliveries { environment: "staging".to_owned(), ..right.clone() };
    assert_eq!(refused(world.bind(elsewhere)).code, Code::ApprovalMismatch);
    let somebody = BindDeliveries { principal: Principal::agent("other"), ..right.clone() };
    assert_eq!(refused(world.bind(somebody)).field, Some("principal"));
    let unknown = binding(run, vec![proven(ApprovalId([9; 16]), of.clone())], "b1");
    assert_eq!(refused(world.bind(unknown)).code, Code::ApprovalUnknown);

    assert!(!bound(world.bind(right.clone())).replayed);
    assert_eq!(world.approval(approval).consumed_by, Some(action), "it is used by what it was asked for");
    let row = world.action(action);
    assert!(matches!(row.state, ActionState::Ended { result: Answer::Committed, .. }), "{:?}", row.state);
    let stored = world.delivery_row(run, "gate-a", 1).expect("bound");
    assert_eq!((stored.approval, stored.action), (Some(approval), Some(action)));
    // Answered again, and repeated: nothing more is used.
    assert!(bound(world.bind(right.clone())).replayed);
    bound(world.bind(BindDeliveries { request: "b2".to_owned(), ..right }));
    let used = binding(run, vec![proven(approval, delivery("gate-a", 2, A))], "b3");
    assert_eq!(refused(world.bind(used)).code, Code::ApprovalMismatch);
    world.check();
}

#[test]
fn an_approval_that_is_not_granted_or_over_proves_nothing() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    let of = delivery("gate-a", 1, A);
    let (approval, _) = world.approved(run, &of);
    world.now = world.now + Span::minutes(16);
    let refusal = refused(world.bind(binding(run, vec![proven(approval, of.clone())], "b1")));
    assert_eq!((refusal.code, refusal.approval), (Code::ApprovalExpired, Some(approval)));
    assert_eq!(world.delivery_row(run, "gate-a", 1), None);
    // It is asked for anew, and works.
    world.run(Command::Lapse(StreamId::approval(approval)));
    let (approval, _) = world.approved(run, &of);
    bound(world.bind(binding(run, vec![proven(approval, of)], "b1")));
    world.check();
}

#[test]
fn two_that_take_one_effect_are_not_bound_together() {
    let mut world = World::new(&Real, ONE_KEY);
    let run = world.begin();
    let (a, b) = (delivery("gate-a", 1, A), delivery("gate-b", 1, A));
    let ((of_a, _), (of_b, _)) = (world.approved(run, &a), world.approved(run, &b));
    let both = vec![proven(of_a, a.clone()), proven(of_b, b.clone())];
    assert_eq!(refused(world.bind(binding(run, both, "b1"))).code, Code::Duplicate);
    bound(world.bind(binding(run, vec![proven(of_a, a)], "b1")));
    let refusal = refused(world.bind(binding(run, vec![proven(of_b, b)], "b2")));
    assert_eq!(refusal.code, Code::EffectKeyConflict, "the key is committed for another wish");
    world.check();
}

#[test]
fn nothing_is_bound_that_has_no_place() {
    let mut world = World::new(&Real, POLICY);
    let run = world.begin();
    let refuse = |world: &mut World<'_>, bind: BindDeliveries| -> Refusal { refused(world.bind(bind)) };
    assert_eq!(refuse(&mut world, binding(run, vec![], "b1")).code, Code::DeliveriesEmpty);
    let of = delivery("free", 1, A);
    assert_eq!(refuse(&mut world, binding(RunId([9; 16]), vec![of.clone()], "b1")).code, Code::RunUnknown);
    assert_eq!(
        refuse(&mut world, binding(run, vec![delivery("gate-c", 1, A)], "b1")).code,
        Code::GateUnknown
    );
    for revision in [0, 10_000_000_000_001, (1 << 53) - 1, 1 << 53, u64::MAX] {
        let refusal = refuse(&mut world, binding(run, vec![delivery("free", revision, A)], "b1"));
        assert_eq!(refusal.code, Code::OutOfBounds);
    }
    assert_eq!(refuse(&mut world, binding(run, vec![of.clone(); 65], "b1")).field, Some("deliveries"));
    assert_eq!(refuse(&mut world, binding(run, vec![of.clone()], "-")).code, Code::RequestIdInvalid);
    // Under a lease on something else, or one that is over.
    let mut lease = |resource: Resource| {
        let (holder, length) = (HolderKey([1; 16]), Span::minutes(1));
        let take = AcquireLease { resource, holder, length, shared: false, preempt: None };
        match world.run(Command::AcquireLease(Box::new(take))) {
            Reply::Lease(now) => now.lease,
            other => panic!("no lease: {other:?}"),
        }
    };
    let (elsewhere, ours) = (lease(Resource::Name("a".to_owned())), lease(Resource::Run(run)));
    let under = |lease| BindDeliveries { under: Some(lease), ..binding(run, vec![of.clone()], "b1") };
    assert_eq!(refuse(&mut world, under(elsewhere)).code, Code::LeaseFenced);
    bound(world.bind(under(ours.clone())));
    world.now = world.now + Span::minutes(2);
    assert!(bound(world.bind(under(ours))).replayed, "a replay is answered whatever became of its lease");
    world.go(run, "discarded");
    assert_eq!(refuse(&mut world, binding(run, vec![delivery("free", 2, A)], "b2")).code, Code::RunEnded);
    world.check();
}
