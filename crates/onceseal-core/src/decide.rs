//! The one decision function, and the one fold.

use crate::case::Case;
pub use crate::case::{Renewal, Verdict};
use crate::command::{Command, Stamped};
use crate::journal::{Event, Row, Stored};
use crate::lease::Lease;
use crate::pack::Corrupt;
use crate::reply::Reply;
use crate::stream::{StreamId, StreamKind, Tenant};
use crate::time::Timestamp;
use crate::view::{Halt, Pinned, Read, View};
use crate::{action, approval, effect, handoff, lease, operation, policy, route, run, store, task, tool};

/// Decides a command. Pure: the same arguments give the same verdict.
///
/// # Errors
/// [`Halt`]: what must be seen first, or a row that does not decode.
pub fn decide(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let mut case = Case::new(pinned, view, command, now);
    let reply = match &command.command {
        Command::Run(run) => action::run(&mut case, run),
        Command::Acquire(acquire) => action::acquire(&mut case, acquire),
        Command::Reserve(reserve) => effect::reserve(&mut case, reserve),
        Command::Begin(begin) => effect::begin(&mut case, begin),
        Command::Renew(renew) => effect::renew(&mut case, renew),
        Command::Settle(settle) => effect::settle(&mut case, settle),
        Command::Reconcile(reconcile) => effect::reconcile(&mut case, reconcile),
        Command::Resolve(resolve) => effect::resolve(&mut case, resolve),
        Command::Lapse(stream) => match stream.kind {
            StreamKind::Action => action::lapse(&mut case, stream),
            StreamKind::Effect => effect::lapse(&mut case, stream),
            StreamKind::Approval => approval::lapse(&mut case, stream),
            StreamKind::Lease => lease::lapse(&mut case, stream),
            _ => Ok(Reply::Done { changed: false }),
        },
        Command::Answer(answer) => approval::answer(&mut case, answer),
        Command::Revoke(revocation) => approval::revoke(&mut case, revocation),
        Command::Activate(activate) => policy::activate(&mut case, activate),
        Command::Accept(accept) => store::accept(&mut case, accept),
        Command::Note(note) => Ok(store::note(&mut case, note)),
        Command::Declare(declare) => tool::declare(&mut case, declare),
        Command::Dispatch(dispatch) => operation::dispatch(&mut case, dispatch),
        Command::Claim(claim) => operation::claim(&mut case, claim),
        Command::GiveBack(given) => operation::give_back(&mut case, given),
        Command::Postpone(postpone) => operation::postpone(&mut case, postpone),
        Command::Query(query) => operation::query(&mut case, query),
        Command::Retry(retry) => operation::retry(&mut case, retry),
        Command::Cancel(cancel) => operation::cancel(&mut case, cancel),
        Command::TryRoute(wish) => route::try_it(&mut case, wish),
        Command::ReportRoute(report) => route::report(&mut case, report),
        Command::CloseRoute(close) => route::close(&mut case, close),
        Command::StartRun(start) => run::start(&mut case, start),
        Command::BindChange(bind) => run::bind_change(&mut case, bind),
        Command::BindDeliveries(bind) => run::bind_deliveries(&mut case, bind),
        Command::Transition(transition) => run::transition(&mut case, transition),
        Command::PlanTasks(plan) => task::plan(&mut case, plan),
        Command::TakeTask(take) => task::take(&mut case, take),
        Command::MoveTask(go) => task::move_on(&mut case, go),
        Command::QueueTask(queue) => task::queue(&mut case, queue),
        Command::GrantAttempts(grant) => task::grant(&mut case, grant),
        Command::AcquireLease(acquire) => lease::acquire(&mut case, acquire),
        Command::RenewLease(renew) => lease::renew(&mut case, renew),
        Command::CommitLease(commit) => lease::commit(&mut case, commit),
        Command::InterruptLease(interrupt) => lease::interrupt(&mut case, interrupt),
        Command::PrepareHandoff(prepare) => handoff::prepare(&mut case, prepare),
        Command::AcceptHandoff(accept) => handoff::accept(&mut case, accept),
        Command::WithdrawHandoff(withdraw) => handoff::withdraw(&mut case, withdraw),
        Command::Create => store::create(&mut case),
    }?;
    Ok(case.verdict(reply))
}

/// What a command reads on its usual path; `decide` may need more.
#[must_use]
pub fn reads(pinned: &Pinned, command: &Stamped) -> Vec<Read> {
    let tenant = &pinned.tenant;
    match &command.command {
        Command::Run(run) => {
            let id = run.action.unwrap_or_else(|| command.action());
            let key = run.proposal.key_for(id);
            let mut reads = vec![
                Read::Stream(pinned.policy_stream),
                Read::Stream(StreamId::action(id)),
                Read::Stream(tenant.effect(&key)),
            ];
            reads.extend(run.approval.map(|id| Read::Stream(StreamId::approval(id))));
            reads
        }
        Command::Acquire(acquire) => {
            let mut reads = vec![
                Read::Stream(pinned.policy_stream),
                Read::Stream(StreamId::action(acquire.action)),
                Read::Payload(StreamId::action(acquire.action), 1),
            ];
            reads.extend(acquire.approval.map(|id| Read::Stream(StreamId::approval(id))));
            reads
        }
        Command::Reserve(reserve) => vec![Read::Stream(tenant.effect(&reserve.key))],
        Command::Begin(begin) => attempt(begin.attempt),
        Command::Renew(renew) => attempt(renew.attempt),
        Command::Settle(settle) => attempt(settle.attempt),
        Command::Reconcile(reconcile) => vec![Read::Stream(reconcile.effect)],
        Command::Resolve(resolve) => vec![Read::Stream(resolve.effect), Read::Stream(pinned.policy_stream)],
        Command::Lapse(stream) => vec![Read::Stream(*stream)],
        Command::Answer(answer) => {
            vec![Read::Stream(StreamId::approval(answer.approval)), Read::Stream(pinned.policy_stream)]
        }
        Command::Revoke(revocation) => {
            vec![Read::Stream(StreamId::approval(revocation.approval)), Read::Stream(pinned.policy_stream)]
        }
        Command::Activate(activate) => {
            vec![Read::Stream(pinned.policy_stream), Read::Policy(activate.policy.hash)]
        }
        Command::Accept(_) => vec![Read::Stream(tenant.store()), Read::Stream(pinned.policy_stream)],
        Command::Create => vec![Read::Stream(tenant.store())],
        Command::Dispatch(dispatch) => operation::dispatch_reads(pinned, dispatch, command.action()),
        Command::Claim(claim) => operation::claim_reads(pinned, claim),
        Command::GiveBack(given) => attempt(given.attempt),
        Command::Postpone(postpone) => vec![Read::Stream(StreamId::action(postpone.action))],
        Command::Query(query) => vec![Read::Stream(tenant.call(&query.subject, &query.call))],
        Command::Retry(retry) => {
            vec![Read::Stream(StreamId::action(retry.action)), Read::Stream(pinned.policy_stream)]
        }
        Command::Cancel(cancel) => {
            vec![Read::Stream(StreamId::action(cancel.action)), Read::Stream(pinned.policy_stream)]
        }
        Command::TryRoute(wish) => route::endpoint_reads(pinned, &wish.destination),
        Command::ReportRoute(report) => route::endpoint_reads(pinned, &report.destination),
        Command::CloseRoute(close) => {
            vec![Read::Stream(tenant.route(&close.destination)), Read::Stream(pinned.policy_stream)]
        }
        Command::Declare(declare) => vec![Read::Stream(tenant.tool(declare.name()))],
        Command::StartRun(start) => run::start_reads(pinned, start),
        Command::BindChange(bind) => run::moving_reads(tenant, bind.run, &bind.request),
        Command::BindDeliveries(bind) => run::delivery_reads(pinned, bind),
        Command::Transition(go) => run::moving_reads(tenant, go.run, &go.request),
        Command::PlanTasks(plan) => task::plan_reads(pinned, plan),
        Command::TakeTask(take) => task::taking_reads(pinned, take),
        Command::MoveTask(go) => {
            let mut reads = task::moving_reads(tenant, go.run, &go.task, Some(&go.request));
            reads.push(held(tenant, &go.under));
            reads
        }
        Command::QueueTask(queue) => task::moving_reads(tenant, queue.run, &queue.task, Some(&queue.request)),
        Command::GrantAttempts(grant) => task::moving_reads(tenant, grant.run, &grant.task, None),
        Command::AcquireLease(acquire) => lease::reads(pinned, acquire),
        Command::RenewLease(renew) => vec![held(tenant, &renew.lease)],
        Command::CommitLease(commit) => vec![held(tenant, &commit.lease)],
        Command::InterruptLease(interrupt) => vec![held(tenant, &interrupt.lease)],
        Command::PrepareHandoff(prepare) => {
            handoff::prepare_reads(pinned, &prepare.resource, prepare.receipt)
        }
        Command::AcceptHandoff(accept) => handoff::accept_reads(pinned, accept),
        Command::WithdrawHandoff(withdraw) => {
            handoff::prepare_reads(pinned, &withdraw.resource, withdraw.receipt)
        }
        Command::Note(_) => vec![],
    }
}

/// The streams that a command makes under names drawn for it, which no store
/// can have yet: they need not be looked for.
pub fn fresh(command: &Stamped) -> impl Iterator<Item = StreamId> {
    let approval = || StreamId::approval(command.approval());
    let streams = match &command.command {
        Command::Run(run) => {
            let action = run.action.is_none().then(|| StreamId::action(command.action()));
            [action, Some(approval())]
        }
        Command::Dispatch(_) => [Some(StreamId::action(command.action())), Some(approval())],
        Command::Acquire(_) => [Some(approval()), None],
        Command::StartRun(_) => [Some(StreamId::run(command.run())), None],
        Command::Note(_) => [Some(StreamId { kind: StreamKind::Note, name: command.note() }), None],
        _ => [None, None],
    };
    streams.into_iter().flatten()
}

fn held(tenant: &Tenant, lease: &Lease) -> Read {
    Read::Stream(tenant.lease(&lease.resource.to_string()))
}

fn attempt(attempt: effect::Holding) -> Vec<Read> {
    vec![Read::Stream(attempt.effect), Read::Stream(StreamId::action(attempt.action))]
}

/// A row after one more event of its stream.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow on the row.
pub fn evolve(
    stream: &StreamId,
    row: Option<Row>,
    sequence: u64,
    at: Timestamp,
    event: &Event,
) -> Result<Row, Corrupt> {
    if event.body.kind().stream() != stream.kind {
        return Err(Corrupt("event in a foreign stream"));
    }
    Ok(match (stream.kind, row) {
        (StreamKind::Action, None) => Row::Action(action::evolve(None, at, event)?),
        (StreamKind::Action, Some(Row::Action(row))) => Row::Action(action::evolve(Some(row), at, event)?),
        (StreamKind::Approval, None) => Row::Approval(approval::evolve(None, at, event)?),
        (StreamKind::Approval, Some(Row::Approval(row))) => {
            Row::Approval(approval::evolve(Some(row), at, event)?)
        }
        (StreamKind::Effect, None) => Row::Effect(effect::evolve(None, sequence, at, event)?),
        (StreamKind::Effect, Some(Row::Effect(row))) => {
            Row::Effect(effect::evolve(Some(row), sequence, at, event)?)
        }
        (StreamKind::Policy, None) => Row::Policy(policy::evolve(None, at, event)?),
        (StreamKind::Policy, Some(Row::Policy(row))) => Row::Policy(policy::evolve(Some(row), at, event)?),
        (StreamKind::Store | StreamKind::Note, None) => Row::Store(store::evolve(None, at, event)?),
        (StreamKind::Store | StreamKind::Note, Some(Row::Store(row))) => {
            Row::Store(store::evolve(Some(row), at, event)?)
        }
        (StreamKind::Tool, None) => Row::Tool(tool::evolve(None, at, event)?),
        (StreamKind::Tool, Some(Row::Tool(row))) => Row::Tool(tool::evolve(Some(row), at, event)?),
        (StreamKind::Call, None) => Row::Call(operation::evolve_call(None, at, event)?),
        (StreamKind::Call, Some(Row::Call(row))) => Row::Call(operation::evolve_call(Some(row), at, event)?),
        (StreamKind::Route, None) => Row::Route(route::evolve(None, at, event)?),
        (StreamKind::Route, Some(Row::Route(row))) => Row::Route(route::evolve(Some(row), at, event)?),
        (StreamKind::Run, None) => Row::Run(run::evolve(None, at, event)?),
        (StreamKind::Run, Some(Row::Run(row))) => Row::Run(run::evolve(Some(row), at, event)?),
        (StreamKind::Lease, None) => Row::Lease(lease::evolve(None, sequence, at, event)?),
        (StreamKind::Lease, Some(Row::Lease(row))) => {
            Row::Lease(lease::evolve(Some(row), sequence, at, event)?)
        }
        (StreamKind::Delivery, None) => Row::Delivery(run::evolve_delivery(None, at, event)?),
        (StreamKind::Delivery, Some(Row::Delivery(row))) => {
            Row::Delivery(run::evolve_delivery(Some(row), at, event)?)
        }
        (StreamKind::Task, None) => Row::Task(task::evolve(None, sequence, at, event)?),
        (StreamKind::Task, Some(Row::Task(row))) => Row::Task(task::evolve(Some(row), sequence, at, event)?),
        (StreamKind::Plan, None) => Row::Plan(task::evolve_plan(None, at, event)?),
        (StreamKind::Plan, Some(Row::Plan(row))) => Row::Plan(task::evolve_plan(Some(row), at, event)?),
        (StreamKind::Handoff, None) => Row::Handoff(handoff::evolve(None, at, event)?),
        (StreamKind::Handoff, Some(Row::Handoff(row))) => {
            Row::Handoff(handoff::evolve(Some(row), at, event)?)
        }
        (StreamKind::Request, None) => Row::Request(run::evolve_request(None, at, event)?),
        (StreamKind::Request, Some(Row::Request(row))) => {
            Row::Request(run::evolve_request(Some(row), at, event)?)
        }
        (StreamKind::Definition, None) => Row::Definition(run::evolve_definition(None, at, event)?),
        (StreamKind::Definition, Some(Row::Definition(row))) => {
            Row::Definition(run::evolve_definition(Some(row), at, event)?)
        }
        _ => return Err(Corrupt("row of a foreign stream")),
    })
}

/// A row after a renewal; `None` if it is not that fence's live attempt.
#[must_use]
pub fn renew(stored: &Stored, renewal: &Renewal) -> Option<Stored> {
    let mut stored = stored.clone();
    match &mut stored.row {
        Row::Effect(row) if row.held() && row.fence == renewal.fence => row.renew(renewal.lease_until),
        Row::Lease(row) if row.lease(renewal.fence).is_some() => {
            row.renew(renewal.fence, renewal.lease_until);
        }
        _ => return None,
    }
    Some(stored)
}
