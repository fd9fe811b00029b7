//! Deliveries from Rust: bound once, with an approval where the gate asks for it.

use onceseal::core::approval::Said;
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::ApprovalId;
use onceseal::runs::{Blocking, Delivery, Run, WriteError};
use onceseal::store::StoreError;
use onceseal::{Control, Error};

use crate::support::{World, answer, bot, code, needed};
use crate::tasks::plan;

const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  run.bind_delivery: { approval: { ttl: 15m }, decision: approve }
";

fn delivery(gate: &str, revision: u64, approval: Option<ApprovalId>) -> Delivery {
    let receipt = Hash::of("test.receipt.v1\n", &[gate.as_bytes(), &revision.to_be_bytes()]);
    Delivery { gate: gate.to_owned(), revision, receipt, contract: None, record: None, approval }
}

async fn started(control: &Control) -> Run {
    control.runs().by(bot()).start("delivery").change("c").send().await.expect("started").run
}

async fn approved(world: &World, run: &Run, of: &Delivery) -> Result<ApprovalId, Error> {
    let (_, approval) = needed(run.ask_to_bind(of).propose().await);
    answer(&world.control, approval, "ann", Said::Yes).await?;
    Ok(approval)
}

#[tokio::test]
async fn what_a_person_approved_is_bound_and_nothing_else_by_that_approval() {
    for world in [World::memory(POLICY).await, World::sqlite(POLICY).await] {
        let run = started(&world.control).await;
        let first = delivery("gate-a", 1, None);
        assert_eq!(code(run.bind([first.clone()]).send().await), "proof_required");
        let (_, waiting) = needed(run.ask_to_bind(&first).propose().await);
        let unanswered = Delivery { approval: Some(waiting), ..first.clone() };
        assert_eq!(code(run.bind([unanswered]).send().await), "approval_pending");
        let approval = approved(&world, &run, &first).await.expect("approved");
        assert_eq!(approval, waiting, "the same question is one request");
        let other = Delivery { receipt: Hash([9; 32]), approval: Some(approval), ..first.clone() };
        assert_eq!(code(run.bind([other]).send().await), "approval_mismatch");
        let proven = Delivery { approval: Some(approval), ..first };
        let elsewhere = run.bind([proven.clone()]).environment("staging");
        assert_eq!(code(elsewhere.send().await), "approval_mismatch");
        run.bind([proven.clone()]).request("bind-1").send().await.expect("bound");
        assert!(run.bind([proven.clone()]).request("bind-1").send().await.expect("again").replayed);
        run.bind([proven.clone()]).send().await.expect("the same adds nothing");
        let second = delivery("gate-a", 2, Some(approval));
        assert_eq!(code(run.bind([second]).send().await), "approval_mismatch");
        let bound = run.deliveries().await.expect("readable");
        assert_eq!(
            bound.iter().map(|row| (row.gate.as_str(), row.revision)).collect::<Vec<_>>(),
            [("gate-a", 1)]
        );
        assert_eq!(bound[0].approval, Some(approval));
        let blocked = run.blockers().await.expect("readable");
        let blocked: Vec<_> =
            blocked.iter().map(|it| (it.blocker.blocking, it.blocker.code.as_str())).collect();
        let decisions = ["idle:created", "unbound:gate-b"].map(|code| (Blocking::Decision, code));
        assert_eq!(blocked, decisions);
        assert!(world.control.delivery(run.id(), "gate-a", 2).expect("readable").is_none());
    }
}

#[tokio::test]
async fn deliveries_are_bound_all_or_none_and_a_plan_is_for_the_newest() {
    let world = World::memory(POLICY).await;
    let run = started(&world.control).await;
    let mut both = Vec::new();
    for gate in ["gate-a", "gate-b"] {
        let approval = approved(&world, &run, &delivery(gate, 1, None)).await.expect("approved");
        both.push(delivery(gate, 1, Some(approval)));
    }
    let wrong = [both[0].clone(), delivery("gate-c", 1, None)];
    assert_eq!(code(run.bind(wrong).send().await), "gate_unknown");
    assert!(run.deliveries().await.expect("readable").is_empty());
    assert_eq!(code(run.bind([]).send().await), "deliveries_empty");
    let tasks = plan(r#"{"tasks":[{"id":"a"}]}"#);
    assert_eq!(code(run.plan(1, &tasks).expect("a plan").send().await), "delivery_unbound");
    let lease = world.control.lease(onceseal::runs::Resource::Run(run.id())).take().await.expect("held");
    run.bind(both).under(&lease).send().await.expect("bound");
    run.plan(1, &tasks).expect("a plan").under(&lease).send().await.expect("planned");
    assert_eq!(run.deliveries().await.expect("readable").len(), 2);
    // Nothing is taken before the run is somewhere where work is done.
    assert_eq!(code(run.take().take().await), "no_task");
    run.transition("validating-delivery").under(&lease).send().await.expect("moved");
    run.transition("ready").under(&lease).send().await.expect("moved");
    assert_eq!(run.take().take().await.expect("taken").id(), "a");
}

#[tokio::test]
async fn rows_of_the_callers_own_are_written_with_what_is_bound_or_not_at_all() {
    for world in [World::memory(POLICY).await, World::sqlite(POLICY).await] {
        let run = started(&world.control).await;
        let first = delivery("gate-a", 1, None);
        let approval = approved(&world, &run, &first).await.expect("approved");
        let proven = Delivery { approval: Some(approval), ..first.clone() };
        let undone = run.bind([proven.clone()]).send_with(|_, rows| {
            rows.put("seen", b"too early")?;
            Err(StoreError::with(Code::OutOfBounds, "mine"))
        });
        assert!(matches!(undone.await, Err(WriteError::Undone(error)) if error.code() == Code::OutOfBounds));
        assert_eq!(run.deliveries().await.expect("readable").len(), 0, "nothing is bound");
        assert_eq!(world.control.own_row("seen").expect("readable"), None);
        let unproven = run.bind([first]).send_with(|_, rows| rows.put("seen", b"unproven"));
        let Err(WriteError::Refused(refused)) = unproven.await else { panic!("it needs proof") };
        assert_eq!(refused.code(), "proof_required");
        for replayed in [false, true] {
            let bind = run.bind([proven.clone()]).request("bind-1");
            let bound = bind.send_with(move |now, rows| {
                assert!(!replayed, "it was written before");
                rows.put("seen", now.answered.sequence.to_string().as_bytes())
            });
            assert_eq!(bound.await.map(|now| now.replayed).expect("bound"), replayed);
        }
        assert_eq!(world.control.own_row("seen").expect("readable"), Some(b"2".to_vec()));
    }
}
