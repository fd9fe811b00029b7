//! A worker takes an operation, and gives it back where it cannot begin.

use crate::action::event::{ActionSealed, Started};
use crate::action::{ActionRow, ActionState, Operation, Proposal};
use crate::approval::Status;
use crate::case::Case;
use crate::code::Code;
use crate::effect::{self, EffectRow, EffectState, Holding, Take};
use crate::hash::Hash;
use crate::id::ActionId;
use crate::journal::{Body, Refs};
use crate::operation::provider_key;
use crate::operation::recovery::{
    Next, Redelivery, come_to_nothing, hand_back, last_moment, longest, put_off, redelivery,
};
use crate::operation::standing::standing;
use crate::policy::Verdict;
use crate::reply::{Job, Question, Refusal, Reply};
use crate::route::{self, Way};
use crate::stream::StreamId;
use crate::time::{Span, Timestamp};
use crate::view::{Halt, Pinned, Read};
use crate::{action, limits};

/// Take an operation that is due, to carry it out.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The operation's action.
    pub action: ActionId,
    /// The contract that the worker carries it out under.
    pub contract: Hash,
    /// A shorter lease than the contract's.
    pub lease: Option<Span>,
    /// Whether the executor may run at once; else the worker looks at who may do
    /// this first, then begins it or gives it back.
    pub begin: bool,
    /// The remote was asked then and knows of no attempt: the answer to
    /// [`Question::Remote`].
    pub absent: Option<Timestamp>,
}

/// Give a claimed attempt back that has not begun: nothing ran.
#[derive(Debug, Clone)]
pub struct GiveBack {
    /// The attempt.
    pub attempt: Holding,
    /// What is to become of the operation.
    pub next: Next,
}

/// Have an operation looked at again later, where nobody holds it.
#[derive(Debug, Clone)]
pub struct Postpone {
    /// The operation's action.
    pub action: ActionId,
    /// So long from now.
    pub after: Span,
    /// Why.
    pub code: Code,
}

/// What a claim reads on its usual path: a contract that is known says what else.
pub(crate) fn reads(pinned: &Pinned, claim: &Claim) -> Vec<Read> {
    let action = StreamId::action(claim.action);
    let mut reads = vec![
        Read::Stream(action),
        Read::Payload(action, 1),
        Read::Stream(pinned.policy_stream),
        Read::Tool(claim.contract),
    ];
    if let Ok(tool) = pinned.tool(claim.contract) {
        reads.push(Read::Stream(pinned.tenant.tool(&tool.contract.identity.name)));
        let destination = tool.contract.destination.as_ref();
        reads.extend(destination.map(|destination| Read::Stream(pinned.tenant.route(destination))));
    }
    reads
}

pub(crate) fn claim(case: &mut Case<'_>, claim: &Claim) -> Result<Reply, Halt> {
    let id = claim.action;
    let Some(row) = case.view.action(id)?.cloned() else { return Ok(Code::ActionUnknown.into()) };
    let Some(operation) = row.operation.clone() else { return Ok(Code::InvalidTransition.into()) };
    if claim.lease.is_some_and(|lease| lease < limits::LEASE_MIN) {
        return Ok(Code::OutOfBounds.into());
    }
    if operation.contract != claim.contract {
        return Ok(Code::ToolUnknown.into());
    }
    match row.state {
        ActionState::Queued { due, .. } if due <= case.now => {}
        _ => return standing(case, id, &row, true),
    }
    let Some(effect) = case.view.effect(&operation.effect)?.cloned() else { return Err(Halt::Unreadable) };
    let waits = matches!(effect.state, EffectState::Queued | EffectState::Ambiguous);
    if effect.holder != id || !waits {
        return Err(Halt::Unreadable);
    }
    if let Some(code) = hindrance(case, id, &row, &operation, &effect)? {
        return come_to_nothing(case, id, &operation, &effect, code);
    }
    let tool = case.pinned.tool(operation.contract)?.clone();
    let lease = claim.lease.unwrap_or(tool.contract.lease).min(tool.contract.lease);
    let Some(job) = job(case, id, &row, &operation, &effect)? else { return Ok(Code::Erased.into()) };
    let again = effect.state == EffectState::Ambiguous;
    if again {
        match redelivery(&tool.contract, &effect, lease, case.now) {
            Redelivery::Permitted => {}
            Redelivery::Ask { from } if claim.absent.is_some_and(|asked| asked >= from) => {}
            Redelivery::Ask { from } if case.now >= from => {
                return Ok(Reply::Ask(Question::Remote { asked_at: case.now, job: Box::new(job) }));
            }
            Redelivery::Ask { from } => {
                put_off(case, id, from, Code::TooEarly);
                return Ok(Code::TooEarly.into());
            }
            Redelivery::Never => {
                return come_to_nothing(case, id, &operation, &effect, Code::Ambiguous);
            }
        }
    }
    let way = route::way(case, &tool.contract)?;
    if let Way::Shut { until } = way
        // Where it is not known what was done, no time is taken away in which it may be made again.
        && (!again || until <= last_moment(&tool.contract, &effect, lease, &operation))
    {
        put_off(case, id, until, Code::RouteOpen);
        return Ok(Refusal { action: Some(id), ..Refusal::new(Code::RouteOpen) }.into());
    }
    let attempt = effect::take(
        case,
        Take {
            key: effect.private.key.as_deref().unwrap_or_default(),
            action: id,
            approval: row.approval,
            fence: effect.fence + 1,
            lease,
            deadline: longest(&tool.contract, &effect, case.now),
            begun: claim.begin,
            again,
        },
    )?;
    let started = Started { decided: None, effect: operation.effect, fence: attempt.fence };
    let body = Body::ActionStarted(started, ActionSealed { proposal: None });
    case.record(StreamId::action(id), Refs::NONE, body);
    if way == Way::Probe {
        route::probe(case, &tool.contract, &attempt);
    }
    let job = Job { fence: attempt.fence, ..job };
    Ok(Reply::Claimed(Box::new(attempt), Box::new(job)))
}

/// Why an operation that is due is not to be attempted.
fn hindrance(
    case: &Case<'_>,
    id: ActionId,
    row: &ActionRow,
    operation: &Operation,
    effect: &EffectRow,
) -> Result<Option<Code>, Halt> {
    if case.now > operation.until {
        return Ok(Some(Code::TooLate));
    }
    let Some(proposed) = &row.private.proposal else { return Ok(Some(Code::Erased)) };
    let tool = case.view.tool(&case.pinned.tenant.tool(&proposed.name))?;
    if !tool.is_some_and(|tool| tool.active.contains(&operation.contract)) {
        return Ok(Some(Code::ContractRetired));
    }
    if let Some(id) = row.approval {
        let approval = case.view.approval(id)?.ok_or(Halt::Unreadable)?;
        let bound = &approval.private.bound;
        let holds = approval.status == Status::Consumed
            && bound.action_hash == Some(proposed.action_hash)
            && bound.contract == Some(operation.contract)
            && bound.effect_key == effect.private.key;
        if !holds {
            return Ok(Some(Code::ApprovalMismatch));
        }
    }
    // What was accepted stays so, unless the policy has come to deny it.
    let Some(policy) = action::active_policy(case)? else { return Ok(Some(Code::PolicyMissing)) };
    let most = policy.policy.entry(&proposed.name).and_then(|entry| entry.max_attempts);
    if most.is_some_and(|most| effect.fence >= u64::from(most)) {
        return Ok(Some(Code::AttemptLimit));
    }
    if policy.hash == row.decided.policy {
        return Ok(None);
    }
    let Some(payload) = case.view.payload(StreamId::action(id), 1)? else { return Ok(Some(Code::Erased)) };
    let denied = Proposal::restore(&case.pinned.tenant, &policy, proposed, &payload.text)
        .map_or(true, |now| {
            now.unfit().is_some() || policy.policy.decide(&now.facts()).verdict == Verdict::Deny
        });
    Ok(denied.then_some(Code::PolicyDenied))
}

fn job(
    case: &Case<'_>,
    action: ActionId,
    row: &ActionRow,
    operation: &Operation,
    effect: &EffectRow,
) -> Result<Option<Job>, Halt> {
    let payload = case.view.payload(StreamId::action(action), 1)?;
    let (Some(proposed), Some(intent), Some(key), Some(payload)) =
        (&row.private.proposal, &row.private.intent, &effect.private.key, payload)
    else {
        return Ok(None);
    };
    if payload.hash() != proposed.arguments {
        return Err(Halt::Unreadable);
    }
    Ok(Some(Job {
        action,
        contract: operation.contract,
        policy: row.decided.policy,
        effect: operation.effect,
        fence: effect.fence,
        provider_key: provider_key(&case.pinned.tenant, key, effect.generation),
        proposed: proposed.clone(),
        arguments: payload.text.clone(),
        intent: (**intent).clone(),
    }))
}

pub(crate) fn give_back(case: &mut Case<'_>, given: &GiveBack) -> Result<Reply, Halt> {
    let holding = given.attempt;
    let Some(row) = case.view.effect(&holding.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    match (row.state, row.claimed_from) {
        (EffectState::Reserved, Some(from)) if effect::holds(&row, holding) => {
            hand_back(case, &holding.effect, &row, from, given.next)?;
            Ok(Reply::Done { changed: true })
        }
        _ => effect::wrong(case, &row, holding),
    }
}

pub(crate) fn postpone(case: &mut Case<'_>, postpone: &Postpone) -> Result<Reply, Halt> {
    let Some(row) = case.view.action(postpone.action)?.cloned() else {
        return Ok(Code::ActionUnknown.into());
    };
    match row.state {
        ActionState::Queued { due, .. } if due <= case.now => {
            put_off(case, postpone.action, case.now + postpone.after, postpone.code);
            Ok(Reply::Done { changed: true })
        }
        _ => Ok(Reply::Done { changed: false }),
    }
}
