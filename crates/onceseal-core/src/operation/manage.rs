//! A person's word on an operation that waits: try it after all, or never.

use crate::action::event::Proposed;
use crate::action::{ActionRow, ActionState, Proposal};
use crate::approval::{Identity, names, unheard};
use crate::case::Case;
use crate::code::Code;
use crate::effect::event::Released;
use crate::effect::{self, EffectRow, EffectState, Gate};
use crate::id::ActionId;
use crate::journal::{Body, Nothing, Refs};
use crate::operation::event::{Cancelled, PersonSaid, Retried};
use crate::operation::standing::standing;
use crate::reply::{Refusal, Reply};
use crate::stream::StreamId;
use crate::view::Halt;

/// Have a parked or delayed operation attempted now. One whose outcome is not
/// known is looked at now: its contract says what may be done about it, as ever.
#[derive(Debug, Clone)]
pub struct Retry {
    /// The operation's action.
    pub action: ActionId,
    /// Who says so.
    pub person: Identity,
    /// Why; not empty.
    pub reason: String,
}

/// Call an operation off that nothing has been attempted of, or nothing that
/// may have happened.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The operation's action.
    pub action: ActionId,
    /// Who says so.
    pub person: Identity,
    /// Why; not empty.
    pub reason: String,
}

pub(crate) fn retry(case: &mut Case<'_>, retry: &Retry) -> Result<Reply, Halt> {
    let Retry { action, person, reason } = retry;
    let row = match waiting(case, *action, person, reason)? {
        Ok(row) => row,
        Err(reply) => return Ok(reply),
    };
    let (Some(operation), Some(proposed)) = (&row.operation, &row.private.proposal) else {
        return Ok(Code::Erased.into());
    };
    let effect = case.view.effect(&operation.effect)?.cloned();
    let Some(effect) = effect else { return Err(Halt::Unreadable) };
    if is_unknown(&effect, *action) {
        let data = Retried { due: case.now, proof: person.proof, until: operation.until };
        case.record(StreamId::action(*action), Refs::NONE, Body::ActionRetried(data, said(person, reason)));
        return Ok(Reply::Done { changed: true });
    }
    if !(effect.state == EffectState::Queued && effect.holder == *action) {
        // It was given up, so its key may have been used since.
        let Some(key) = effect.private.key.clone() else { return Ok(Code::Erased.into()) };
        match gate(case, *action, &key, proposed)? {
            Gate::Refused { code, effect } => {
                let refusal = Refusal { action: Some(*action), effect: Some(effect), ..Refusal::new(code) };
                return Ok(refusal.into());
            }
            Gate::Free { fence } => effect::queue(case, &key, *action, fence - 1)?,
        }
    }
    let within = case.pinned.tool(operation.contract)?.contract.deliver_within;
    let data = Retried { due: case.now, proof: person.proof, until: case.now + within };
    case.record(StreamId::action(*action), Refs::NONE, Body::ActionRetried(data, said(person, reason)));
    Ok(Reply::Done { changed: true })
}

/// Whether the key is free for the operation, by the table that holds for
/// everybody.
fn gate(case: &mut Case<'_>, action: ActionId, key: &str, proposed: &Proposed) -> Result<Gate, Halt> {
    let Some(policy) = crate::action::active_policy(case)? else { return Err(Halt::Unreadable) };
    let payload = case.view.payload(StreamId::action(action), 1)?.cloned();
    let restored = payload
        .and_then(|payload| Proposal::restore(&case.pinned.tenant, &policy, proposed, &payload.text).ok());
    let most = policy.policy.entry(&proposed.name).and_then(|entry| entry.max_attempts);
    effect::gate(case, key, restored.as_ref(), most)
}

pub(crate) fn cancel(case: &mut Case<'_>, cancel: &Cancel) -> Result<Reply, Halt> {
    let Cancel { action, person, reason } = cancel;
    let row = match waiting(case, *action, person, reason)? {
        Ok(row) => row,
        Err(reply) => return Ok(reply),
    };
    let Some(operation) = &row.operation else { return Err(Halt::Unreadable) };
    let Some(effect) = case.view.effect(&operation.effect)? else { return Err(Halt::Unreadable) };
    if is_unknown(effect, *action) {
        return Ok(Code::Ambiguous.into());
    }
    if effect.state == EffectState::Queued && effect.holder == *action {
        let refs = Refs { action: Some(*action), ..Refs::NONE };
        let body = Body::EffectReleased(Released { fence: effect.fence }, Nothing {});
        case.record(operation.effect, refs, body);
    }
    let refs = Refs { receipt: Some(case.receipt()), ..Refs::NONE };
    let body = Body::ActionCancelled(Cancelled { proof: person.proof }, said(person, reason));
    case.record(StreamId::action(*action), refs, body);
    Ok(Reply::Done { changed: true })
}

fn said(person: &Identity, reason: &str) -> PersonSaid {
    PersonSaid { person: Some(person.to_string()), reason: Some(reason.to_owned()) }
}

/// Whether it is not known what became of the operation's last attempt.
fn is_unknown(effect: &EffectRow, action: ActionId) -> bool {
    effect.holder == action && effect.state == EffectState::Ambiguous
}

/// The operation, if this person may say so and nobody is attempting it.
fn waiting(
    case: &mut Case<'_>,
    action: ActionId,
    person: &Identity,
    reason: &str,
) -> Result<Result<ActionRow, Reply>, Halt> {
    let refused = |code: Code| Ok(Err(Reply::from(code)));
    if let Some(code) = unheard(case, person, reason)? {
        return refused(code);
    }
    let Some(row) = case.view.action(action)?.cloned() else { return refused(Code::ActionUnknown) };
    if row.private.proposal.as_ref().is_some_and(|proposal| names(&proposal.agent, person)) {
        return refused(Code::AgentCannotAnswer);
    }
    if row.operation.is_none() {
        return refused(Code::InvalidTransition);
    }
    match row.state {
        ActionState::Queued { .. } | ActionState::Parked { .. } => Ok(Ok(row)),
        _ => standing(case, action, &row, true).map(Err),
    }
}
