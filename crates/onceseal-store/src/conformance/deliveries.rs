//! Deliveries: what is bound at a gate of a run, and what a person approved of it.

use std::sync::Arc;

use onceseal_core::action::{Action, ActionState, Principal, Proposal, Reach, Run};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, RootId, RunId};
use onceseal_core::journal::{Kind, Row};
use onceseal_core::reply::Reply;
use onceseal_core::run::{BindDeliveries, Definition, Delivery, DeliveryRow, StartRun, Subject as About};
use onceseal_core::stream::StreamId;

use super::contention::at_once;
use super::runs::{row as run_row, run};
use super::world::{World, code};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "deliveries":
    what_is_bound_stays_and_an_identical_repeat_adds_nothing
    one_of_many_threads_binds_a_revision
    an_approval_is_used_once_by_however_many_bind_what_it_is_for
    several_are_bound_together_or_none_is
    one_of_a_batch_sees_what_the_others_bound
    what_proves_a_delivery_is_answered_in_the_same_transaction
    ; durable:
    what_was_bound_is_bound_after_reopening
}

const POLICY: &str = r#"{
  "schema": "onceseal.policy/v1",
  "groups": {"finance": ["host:ann"]},
  "actions": {"run.bind_delivery": {
    "approval": {"ttl": "15m", "approvers": ["finance"]}, "decision": "approve"
  }}
}"#;

const A: Hash = Hash([0xaa; 32]);
const B: Hash = Hash([0xbb; 32]);

/// A store with a run of which one gate asks for no proof.
fn opened<'a>(subject: &'a dyn Subject) -> Result<(World<'a>, RunId), Failure> {
    let mut world = World::open(subject)?;
    world.activate(POLICY)?;
    let found = Definition::built_in().into_iter().find(|found| found.kind() == "delivery");
    let found = found.ok_or_else(|| Failure::new("`delivery` is built in"))?;
    let text = found.text().replace("\"gates\":{", "\"gates\":{\"free\":{\"proof\":\"none\"},");
    let definition = Arc::new(Definition::restore(&text).map_err(Failure::new)?);
    let (subject, principal) = (About::Change("c".to_owned()), Principal::agent("bot"));
    let (root, request) = (RootId([1; 16]), "start".to_owned());
    let start = StartRun { root, definition, subject, request, principal };
    let id = run(world.command(Command::StartRun(Box::new(start)))?)?.answered.run;
    Ok((world, id))
}

fn delivery(gate: &str, revision: u64, receipt: Hash) -> Delivery {
    Delivery { gate: gate.to_owned(), revision, receipt, contract: None, record: None, approval: None }
}

fn binding(run: RunId, deliveries: Vec<Delivery>, request: &str) -> Command {
    Command::BindDeliveries(Box::new(BindDeliveries {
        run,
        deliveries,
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        request: request.to_owned(),
        principal: Principal::agent("bot"),
        under: None,
    }))
}

/// An approval of exactly this delivery, and the action that asked for it.
fn approved(world: &World<'_>, run: RunId, of: &Delivery) -> Result<(ApprovalId, ActionId), Failure> {
    let action = of.action(run, &Principal::agent("bot"), Action::DEFAULT_ENVIRONMENT);
    let proposal = Proposal::prepare(world.store.tenant(), &world.policy, action).map_err(Failure::new)?;
    let (action, approval, reach) = (None, None, Reach::Executing);
    let run = Run { proposal, action, approval, reach, lease: None, deadline: None };
    let (action, approval) = take!(world.command(Command::Run(Box::new(run)))?,
        Reply::ApprovalNeeded { action, approval, .. } => (action, approval), "a person is asked");
    world.answer(approval, "ann", Said::Yes)?;
    Ok((approval, action))
}

fn row(world: &World<'_>, run: RunId, of: &Delivery) -> Result<DeliveryRow, Failure> {
    let stream = world.store.tenant().delivery(run, &of.gate, of.revision);
    Ok(take!(world.stored(&stream)?.row, Row::Delivery(row) => row, "its row"))
}

/// How many events of this kind a run has.
fn bound(world: &World<'_>, run: RunId) -> Result<usize, Failure> {
    let events = world.events(&StreamId::run(run))?;
    let is_bound = |kind: Option<Kind>| kind == Some(Kind::RunBound);
    Ok(events.iter().filter(|it| is_bound(it.event.as_ref().map(|event| event.body.kind()))).count())
}

fn what_is_bound_stays_and_an_identical_repeat_adds_nothing(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    let of = delivery("free", 1, A);
    let first = run(world.command(binding(id, vec![of.clone()], "b1"))?)?;
    ensure_eq!((first.now.sequence, first.replayed), (2, false), "it is an event of the run");
    let again = run(world.command(binding(id, vec![of.clone()], "b2"))?)?;
    ensure_eq!((again.now.sequence, again.replayed), (2, false), "an identical repeat adds none");
    ensure!(
        run(world.command(binding(id, vec![of.clone()], "b1"))?)?.replayed,
        "a request is answered again"
    );
    let other = world.command(binding(id, vec![delivery("free", 1, B)], "b3"))?;
    ensure_eq!(code(&other), Some(Code::DeliveryConflict), "nothing else is bound there");
    ensure_eq!(row(&world, id, &of)?.private.receipt, Some(A), "it stays");
    ensure_eq!(run_row(&world, id)?.revision_of("free"), Some(1), "the run tells the newest");
    Ok(())
}

fn one_of_many_threads_binds_a_revision(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    for revision in 1..=6 {
        let of = |n: u8| delivery("free", revision, Hash([n; 32]));
        let replies = at_once(|n| {
            let request = format!("b{revision}-{n}");
            Ok((n, world.command(binding(id, vec![of(n)], &request))?))
        })?;
        let mut winner = None;
        for (n, reply) in replies {
            match code(&reply) {
                None => {
                    run(reply)?;
                    ensure!(winner.replace(n).is_none(), "one of them binds revision {revision}");
                }
                Some(code) => ensure_eq!(code, Code::DeliveryConflict, "the others are told"),
            }
        }
        let kept = row(&world, id, &of(0))?.private.receipt;
        ensure_eq!(kept, winner.map(|n| Hash([n; 32])), "what it bound is kept");
    }
    ensure_eq!(bound(&world, id)?, 6, "each revision is bound once");
    Ok(())
}

fn an_approval_is_used_once_by_however_many_bind_what_it_is_for(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    for revision in 1..=4 {
        let of = delivery("gate-a", revision, A);
        let (approval, action) = approved(&world, id, &of)?;
        let proven = Delivery { approval: Some(approval), ..of.clone() };
        let bind = |n: u8| binding(id, vec![proven.clone()], &format!("b{revision}-{n}"));
        for reply in at_once(|n| world.command(bind(n)))? {
            ensure_eq!(run(reply)?.answered.sequence, 1 + revision, "all of them are told that it is bound");
        }
        ensure_eq!(world.approval(approval)?.consumed_by, Some(action), "it is used by its action");
        let row = row(&world, id, &of)?;
        ensure_eq!((row.approval, row.action), (Some(approval), Some(action)), "and named by the delivery");
        let used = binding(id, vec![Delivery { revision: revision + 1, ..proven.clone() }], "other");
        ensure_eq!(code(&world.command(used)?), Some(Code::ApprovalMismatch), "it proves nothing else");
    }
    ensure_eq!(bound(&world, id)?, 4, "each is bound once");
    Ok(())
}

fn several_are_bound_together_or_none_is(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    run(world.command(binding(id, vec![delivery("free", 1, A)], "b1"))?)?;
    let of = delivery("gate-a", 1, A);
    let (approval, action) = approved(&world, id, &of)?;
    let proven = Delivery { approval: Some(approval), ..of };
    let log = world.log()?.len();
    let one_conflicts = vec![proven.clone(), delivery("free", 1, B)];
    let refused = world.command(binding(id, one_conflicts, "b2"))?;
    ensure_eq!(code(&refused), Some(Code::DeliveryConflict), "one of them is in the way");
    ensure_eq!(world.log()?.len(), log, "nothing is recorded of it");
    ensure_eq!(world.approval(approval)?.status, Status::Granted, "the approval is not used");
    let both = run(world.command(binding(id, vec![proven, delivery("free", 2, B)], "b2"))?)?;
    ensure_eq!(both.now.sequence, 4, "both are bound");
    ensure_eq!(world.approval(approval)?.consumed_by, Some(action), "and it is used");
    ensure_eq!(run_row(&world, id)?.delivery_revision(), Some(2), "the newest is told");
    Ok(())
}

fn one_of_a_batch_sees_what_the_others_bound(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    let all = [(2, A), (2, A), (2, B), (1, A), (3, B)];
    let commands = all.iter().enumerate().map(|(at, (revision, receipt))| {
        binding(id, vec![delivery("free", *revision, *receipt)], &format!("b{at}"))
    });
    let mut codes = Vec::new();
    for reply in world.together(commands.collect())? {
        codes.push(code(&reply?));
    }
    let expected = [None, None, Some(Code::DeliveryConflict), Some(Code::DeliveryOld), None];
    ensure_eq!(codes, expected, "each against those before it");
    ensure_eq!(bound(&world, id)?, 2, "two are new");
    Ok(())
}

fn what_proves_a_delivery_is_answered_in_the_same_transaction(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    let of = delivery("gate-a", 1, A);
    let (approval, action) = approved(&world, id, &of)?;
    let before = world.log()?.len();
    let proven = Delivery { approval: Some(approval), ..of };
    run(world.command(binding(id, vec![proven], "b1"))?)?;
    let row = world.action(action)?;
    ensure!(matches!(row.state, ActionState::Ended { .. }), "its action is over: {:?}", row.state);
    let events = world.log()?.split_off(before);
    ensure!(events.windows(2).all(|two| two[0].stamp.command == two[1].stamp.command), "one command did it");
    let kinds: Vec<_> = events.iter().filter_map(|it| Some(it.event.as_ref()?.body.kind())).collect();
    for kind in [Kind::ApprovalConsumed, Kind::ActionEnded, Kind::DeliveryBound, Kind::RunBound] {
        ensure!(kinds.contains(&kind), "{kind:?} is part of it: {kinds:?}");
    }
    Ok(())
}

fn what_was_bound_is_bound_after_reopening(subject: &dyn Subject) -> Verdict {
    let (world, id) = opened(subject)?;
    run(world.command(binding(id, vec![delivery("free", 2, A)], "b1"))?)?;
    let of = delivery("gate-a", 1, A);
    let (approval, action) = approved(&world, id, &of)?;
    let world = world.reopened()?;
    let proven = Delivery { approval: Some(approval), ..of.clone() };
    run(world.command(binding(id, vec![proven.clone()], "b2"))?)?;
    let world = world.reopened()?;
    let old = world.command(binding(id, vec![delivery("free", 1, A)], "b3"))?;
    ensure_eq!(code(&old), Some(Code::DeliveryOld), "the newest of the gate is known");
    let other = world.command(binding(id, vec![delivery("free", 2, B)], "b3"))?;
    ensure_eq!(code(&other), Some(Code::DeliveryConflict), "what is bound is known");
    let again = run(world.command(binding(id, vec![proven], "b3"))?)?;
    ensure_eq!(again.now.sequence, 3, "a repeat adds nothing");
    ensure_eq!(row(&world, id, &of)?.action, Some(action), "nor uses anything");
    Ok(())
}
