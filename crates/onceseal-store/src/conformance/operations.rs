//! Operations: what is accepted once, and carried out by a worker.

use std::sync::Arc;

use onceseal_core::action::{ActionState, Answer, outbox_key};
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome};
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::journal::Index;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::operation::{CallIdentity, Cancel, Claim, Dispatch, GiveBack, Next};
use onceseal_core::reply::{Attempt, Job, OperationNow, Reply, Standing};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::tool::{Declare, Tool};

use super::world::{Call, World, big, code, host, pay, to_begin};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};
use crate::read::Page;

suite! { "operations":
    a_dispatch_queues_its_effect_once
    an_approval_is_used_when_the_intent_is_stored
    one_of_many_workers_claims_an_operation
    an_attempt_given_back_leaves_the_operation_queued
    a_lapsed_claim_that_had_not_begun_is_given_back
    what_is_due_is_found_by_its_contract_the_oldest_first
    a_cancelled_operation_frees_its_key
    ; durable:
    an_operation_waits_across_openings
}

/// The contract that cases carry `pay` out under.
pub(super) fn contract(name: &str) -> Result<Arc<Tool>, Failure> {
    let text = format!(r#"{{"name":"{name}","recovery":"same_key","key_ttl":"1h","request_timeout":"10s"}}"#);
    match json::read(text.as_bytes(), &Limits::DATA).map_err(Failure::new)? {
        Value::Object(document) => Tool::compile(&document).map(Arc::new).map_err(Failure::new),
        _ => Err(Failure::new("a contract is an object")),
    }
}

impl World<'_> {
    /// Makes the contract of a tool active.
    pub(super) fn declare(&self, name: &str) -> Result<Arc<Tool>, Failure> {
        let tool = contract(name)?;
        self.command(Command::Declare(Declare::Activate(tool.clone())))?;
        Ok(tool)
    }

    pub(super) fn to_dispatch(&self, call: &Call<'_>, contract: Hash) -> Result<Command, Failure> {
        let identity = CallIdentity {
            provider: "openai".to_owned(),
            api_family: "responses".to_owned(),
            adapter_revision: "openai-responses-v1".to_owned(),
            response_id: "resp".to_owned(),
            call_id: format!("call {} {}", call.id, call.amount),
            operation_id: "op".to_owned(),
            idempotency_key: Some(call.id.to_owned()),
        };
        let approvals = call.approval.into_iter().collect();
        let proposal = self.proposal(call)?;
        Ok(Command::Dispatch(Box::new(Dispatch {
            proposal,
            contract,
            call: identity,
            approvals,
            permitted: None,
        })))
    }

    pub(super) fn dispatch(&self, call: &Call<'_>, contract: Hash) -> Result<OperationNow, Failure> {
        let reply = self.command(self.to_dispatch(call, contract)?)?;
        Ok(take!(reply, Reply::Operation(now) => *now, "it is an operation"))
    }

    pub(super) fn claim(
        &self,
        action: ActionId,
        contract: Hash,
        begin: bool,
    ) -> Result<(Attempt, Job), Failure> {
        let reply = self.command(to_claim(action, contract, begin))?;
        Ok(take!(reply, Reply::Claimed(attempt, job) => (*attempt, *job), "it is claimed"))
    }

    pub(super) fn cancel(&self, action: ActionId) -> Result<Reply, Failure> {
        let reason = "not wanted".to_owned();
        self.command(Command::Cancel(Cancel { action, person: host("olga"), reason }))
    }
}

pub(super) fn to_claim(action: ActionId, contract: Hash, begin: bool) -> Command {
    Command::Claim(Claim { action, contract, lease: None, begin, absent: None })
}

fn standing(reply: Reply) -> Result<Standing, Failure> {
    Ok(take!(reply, Reply::Operation(now) => now.standing, "it is an operation"))
}

fn a_dispatch_queues_its_effect_once(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let first = world.dispatch(&pay("a"), tool)?;
    ensure!(!first.repeated, "it is accepted");
    let effect = world.effect(&world.effect_of("pay:a"))?;
    ensure_eq!((effect.state, effect.fence), (EffectState::Queued, 0), "nothing is attempted yet");
    let again = world.dispatch(&pay("a"), tool)?;
    ensure!(again.repeated, "the same call is the same operation");
    ensure_eq!((again.action, again.status_ref), (first.action, first.status_ref), "by the same reference");
    let mut other = pay("a");
    other.amount = 60;
    let conflict = world.command(world.to_dispatch(&other, tool)?)?;
    ensure_eq!(code(&conflict), Some(Code::IdempotencyConflict), "another wish under its key is none");
    let inline = world.refusal(&pay("a"))?;
    ensure_eq!(inline.code, Code::InProgress, "nor may anybody else attempt what is queued");
    let (attempt, job) = world.claim(first.action, tool, true)?;
    ensure_eq!((attempt.fence, job.proposed.name.as_str()), (1, "pay"), "a worker does");
    world.settle(&attempt, Outcome::Committed)?;
    let ended = standing(world.command(world.to_dispatch(&pay("a"), tool)?)?)?;
    let stored =
        take!(ended, Standing::Ended { result: Answer::Committed, stored, .. } => stored, "it is done");
    let (stream, sequence) = stored.ok_or_else(|| Failure::new("it has a result"))?;
    ensure_eq!(world.text(&stream, sequence)?.as_deref(), Some("{\"done\":true}"), "which is replayed");
    Ok(())
}

fn an_approval_is_used_when_the_intent_is_stored(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let dispatch = || world.to_dispatch(&big("a"), tool);
    let (action, approval) = take!(world.command(dispatch()?)?,
        Reply::ApprovalNeeded { action, approval, .. } => (action, approval), "a person is asked");
    let inline = Call { action: None, approval: Some(approval), ..big("a") };
    world.answer(approval, "ann", Said::Yes)?;
    let refused = world.refusal(&inline)?;
    ensure_eq!(
        (refused.code, refused.field),
        (Code::ApprovalMismatch, Some("contract")),
        "for a worker alone"
    );
    let accepted = take!(world.command(dispatch()?)?, Reply::Operation(now) => *now, "it is accepted");
    ensure_eq!(accepted.action, action, "the action that waited goes on");
    let again = world.dispatch(&Call { approval: Some(approval), ..big("a") }, tool)?;
    ensure_eq!((again.action, again.repeated), (action, true), "and needs no approval any more");
    world.pass(Span::hours(1));
    let (attempt, _) = world.claim(action, tool, true)?;
    ensure_eq!(attempt.approval, Some(approval), "its expiry counts when it is used, not later");
    Ok(())
}

fn one_of_many_workers_claims_an_operation(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let action = world.dispatch(&pay("a"), tool)?.action;
    let answers = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| world.store.run(to_claim(action, tool, true)))).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Result<Vec<_>, _>>()
    });
    let answers = answers.map_err(|_| Failure::new("no worker panics"))?;
    let mut claimed = 0;
    for answer in answers {
        match answer? {
            Reply::Claimed(..) => claimed += 1,
            reply => take!(standing(reply)?, Standing::Running { .. } => (), "the others are told"),
        }
    }
    ensure_eq!(claimed, 1, "one of them has it");
    Ok(())
}

fn an_attempt_given_back_leaves_the_operation_queued(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let action = world.dispatch(&pay("a"), tool)?.action;
    let (attempt, _) = world.claim(action, tool, false)?;
    let next = Next::Later { after: Span::minutes(1), code: Code::AuthorizationDenied };
    let given = || Command::GiveBack(GiveBack { attempt: Holding::from(&attempt), next });
    ensure_eq!(world.command(given())?, Reply::Done { changed: true }, "it is given back");
    ensure!(code(&world.command(given())?).is_some(), "once");
    ensure!(code(&world.command(to_begin(Holding::from(&attempt)))?).is_some(), "and begun no more");
    let early = standing(world.command(to_claim(action, tool, true))?)?;
    take!(early, Standing::Queued { .. } => (), "it is not due yet");
    world.pass(Span::minutes(1));
    ensure_eq!(world.claim(action, tool, true)?.0.fence, 2, "then it is claimed by another number");
    Ok(())
}

fn a_lapsed_claim_that_had_not_begun_is_given_back(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let action = world.dispatch(&pay("a"), tool)?.action;
    let (attempt, _) = world.claim(action, tool, false)?;
    world.pass(Span::minutes(1));
    world.command(Command::Lapse(attempt.effect))?;
    let row = world.effect(&attempt.effect)?;
    ensure_eq!(row.state, EffectState::Queued, "nothing ran");
    take!(world.action(action)?.state, ActionState::Queued { .. } => (), "so it waits again");
    Ok(())
}

fn what_is_due_is_found_by_its_contract_the_oldest_first(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (pays, retries) = (world.declare("pay")?.digest, world.declare("retry")?.digest);
    let mut expected = Vec::new();
    for id in ["a", "b", "c"] {
        expected.push(StreamId::action(world.dispatch(&pay(id), pays)?.action));
        world.dispatch(&super::world::call("retry", id, 1), retries)?;
        world.pass(Span::seconds(1));
    }
    let due = |now| -> Result<Vec<StreamId>, Failure> {
        let (from, to) = (outbox_key(pays, onceseal_core::time::Timestamp::MIN), outbox_key(pays, now));
        let page = Page {
            index: Index::Outbox,
            from: from.bytes,
            to: to.bytes,
            after: None,
            newest_first: false,
            limit: 10,
        };
        let hits = world.store.read(|snapshot| snapshot.keys(&page))?;
        Ok(hits.into_iter().map(|hit| hit.stream).collect())
    };
    ensure_eq!(due(world.now())?, expected, "those of its contract, the oldest first");
    ensure_eq!(due(world.now() - Span::seconds(2))?, expected[..2], "that are due by then");
    let (attempt, _) = world.claim(ActionId(expected[0].name), pays, true)?;
    ensure_eq!(due(world.now())?, expected[1..], "what runs is not due");
    world.settle(&attempt, Outcome::Committed)?;
    ensure_eq!(due(world.now())?, expected[1..], "nor what has ended");
    Ok(())
}

fn a_cancelled_operation_frees_its_key(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let action = world.dispatch(&pay("a"), tool)?.action;
    ensure_eq!(world.cancel(action)?, Reply::Done { changed: true }, "it is called off");
    let claim = standing(world.command(to_claim(action, tool, true))?)?;
    take!(claim, Standing::Ended { result: Answer::Cancelled, .. } => (), "nobody carries it out");
    let taken = world.attempt(&pay("a"))?;
    ensure_eq!(taken.fence, 1, "and the key is free");
    Ok(())
}

fn an_operation_waits_across_openings(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = world.declare("pay")?.digest;
    let first = world.dispatch(&pay("a"), tool)?;
    let world = world.reopened()?;
    ensure_eq!(world.dispatch(&pay("a"), tool)?.status_ref, first.status_ref, "it is known");
    let (attempt, job) = world.claim(first.action, tool, true)?;
    let key = job.provider_key;
    world.pass(Span::minutes(1));
    let world = world.reopened()?;
    world.command(Command::Lapse(attempt.effect))?;
    let (again, job) = world.claim(first.action, tool, true)?;
    ensure_eq!((again.fence, job.provider_key), (2, key), "another attempt, the same key for the remote");
    Ok(())
}
