//! The retry table: whether a new attempt may take an effect.

use crate::action::{Action, Answer, Proposal, end_held};
use crate::case::Case;
use crate::code::Code;
use crate::effect::event::{Acquired, AcquiredSealed, Lapsed, Queued};
use crate::effect::{EffectRow, EffectState};
use crate::id::{ActionId, ApprovalId, ReceiptId};
use crate::journal::{Body, Nothing, Refs};
use crate::limits;
use crate::operation::{self, Next};
use crate::reply::{Attempt, EffectNow, Refusal, Reply};
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::Halt;

/// Take an effect without policy or approval.
#[derive(Debug, Clone)]
pub struct Reserve {
    /// The effect key, 1 to 1,024 bytes.
    pub key: String,
    /// Who holds it.
    pub action: ActionId,
    /// 1 s to 24 h.
    pub lease: Span,
}

/// Whether an attempt may be made.
pub(crate) enum Gate {
    /// Yes, with this number.
    Free { fence: u64 },
    /// No.
    Refused { code: Code, effect: EffectNow },
}

/// Asks the retry table. A lease found lapsed is recorded, whatever follows.
pub(crate) fn gate(
    case: &mut Case<'_>,
    key: &str,
    proposal: Option<&Proposal>,
    max_attempts: Option<u32>,
) -> Result<Gate, Halt> {
    let stream = case.pinned.tenant.effect(key);
    let Some(row) = case.view.effect(&stream)? else { return Ok(Gate::Free { fence: 1 }) };
    if row.private.key.as_ref().is_some_and(|have| have != key) {
        return Err(Halt::Unreadable);
    }
    let mut state = row.state;
    let code = match row.state {
        EffectState::Failed if max_attempts.is_some_and(|most| row.fence >= u64::from(most)) => {
            Code::AttemptLimit
        }
        EffectState::Failed | EffectState::Released => return Ok(Gate::Free { fence: row.fence + 1 }),
        EffectState::Committed => Code::Duplicate,
        EffectState::Ambiguous => Code::Ambiguous,
        EffectState::Queued => Code::InProgress,
        EffectState::Reserved | EffectState::Executing if row.live(case.now) => Code::InProgress,
        EffectState::Reserved | EffectState::Executing => {
            let row = row.clone();
            state = record_lapse(case, &stream, &row)?.state;
            if state == EffectState::Ambiguous { Code::Ambiguous } else { Code::InProgress }
        }
    };
    let Some(mut effect) = now(case, &stream, proposal)? else { return Err(Halt::Unreadable) };
    effect.state = state;
    let differs = effect.same_intent == Some(false);
    let code = match code {
        Code::Duplicate | Code::InProgress if differs => Code::EffectKeyConflict,
        code => code,
    };
    Ok(Gate::Refused { code, effect })
}

/// An effect as it is, and what of it this proposal's principal may see.
pub(crate) fn now(
    case: &Case<'_>,
    stream: &StreamId,
    proposal: Option<&Proposal>,
) -> Result<Option<EffectNow>, Halt> {
    let Some(row) = case.view.effect(stream)? else { return Ok(None) };
    let mut effect = EffectNow {
        stream: *stream,
        state: row.state,
        fence: row.fence,
        lease_until: row.lease_until.filter(|_| row.live(case.now)),
        same_intent: None,
        receipt: None,
        stored: None,
    };
    let Some(proposal) = proposal else { return Ok(Some(effect)) };
    let Some(holder) = case.view.action(row.holder)? else { return Ok(Some(effect)) };
    let Some(held) = &holder.private.proposal else { return Ok(Some(effect)) };
    let same = held.intent_hash == proposal.intent_hash();
    effect.same_intent = Some(same);
    let principal = proposal.principal();
    if same && held.agent == principal.agent && held.user == principal.user {
        effect.receipt = holder.receipt();
        effect.stored = row.result_at.map(|sequence| (*stream, sequence));
    }
    Ok(Some(effect))
}

/// Where the result of this attempt is, if it has one and is still the newest.
pub(crate) fn stored_result(
    case: &Case<'_>,
    stream: &StreamId,
    fence: u64,
) -> Result<Option<(StreamId, u64)>, Halt> {
    let row = case.view.effect(stream)?.filter(|row| row.fence == fence);
    Ok(row.and_then(|row| row.result_at).map(|sequence| (*stream, sequence)))
}

/// What an effect is once its lease has ended without a report.
pub(crate) struct Ended {
    /// Ambiguous, or what it was before a worker claimed it.
    pub(crate) state: EffectState,
    /// The receipt of the action that held it, if that ended by it.
    pub(crate) receipt: Option<ReceiptId>,
}

/// Records that a lease ended without a report, for the effect and its action.
/// A worker's attempt that had not begun is given back: nothing ran.
pub(crate) fn record_lapse(case: &mut Case<'_>, stream: &StreamId, row: &EffectRow) -> Result<Ended, Halt> {
    if let (EffectState::Reserved, Some(state)) = (row.state, row.claimed_from) {
        let next = Next::Later { after: Span::ZERO, code: Code::LeaseLapsed };
        operation::hand_back(case, stream, row, state, next)?;
        return Ok(Ended { state, receipt: None });
    }
    let refs = Refs { action: Some(row.holder), ..Refs::NONE };
    case.record(*stream, refs, Body::EffectLapsed(Lapsed { fence: row.fence }, Nothing {}));
    let code = Some(Code::LeaseLapsed);
    let receipt = end_held(case, row.holder, stream, row.fence, Answer::Ambiguous, code, Some(Span::ZERO))?;
    Ok(Ended { state: EffectState::Ambiguous, receipt })
}

/// Records that an operation wants the effect attempted, after so many attempts.
pub(crate) fn queue(case: &mut Case<'_>, key: &str, action: ActionId, fence: u64) -> Result<(), Halt> {
    let effect = case.pinned.tenant.effect(key);
    let key = case.view.effect(&effect)?.is_none().then(|| key.to_owned());
    let refs = Refs { action: Some(action), ..Refs::NONE };
    case.record(effect, refs, Body::EffectQueued(Queued { fence }, AcquiredSealed { key }));
    Ok(())
}

/// What is taken, and how.
pub(crate) struct Take<'a> {
    pub(crate) key: &'a str,
    pub(crate) action: ActionId,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) fence: u64,
    pub(crate) lease: Span,
    pub(crate) deadline: Span,
    pub(crate) begun: bool,
    /// Whether it repeats one whose outcome is not known.
    pub(crate) again: bool,
}

/// Records that an attempt takes an effect that is free for it.
pub(crate) fn take(case: &mut Case<'_>, take: Take<'_>) -> Result<Attempt, Halt> {
    let effect = case.pinned.tenant.effect(take.key);
    let deadline = case.now + take.deadline;
    let lease_until = (case.now + take.lease).min(deadline);
    let refs = Refs { action: Some(take.action), approval: take.approval, receipt: None };
    let data = Acquired { again: take.again, begun: take.begun, deadline, fence: take.fence, lease_until };
    let key = case.view.effect(&effect)?.is_none().then(|| take.key.to_owned());
    case.record(effect, refs, Body::EffectAcquired(data, AcquiredSealed { key }));
    Ok(Attempt {
        action: take.action,
        effect,
        key: Some(take.key.to_owned()),
        fence: take.fence,
        taken_at: case.now,
        lease_until,
        deadline,
        lease: take.lease,
        begun: take.begun,
        approval: take.approval,
    })
}

pub(crate) fn reserve(case: &mut Case<'_>, reserve: &Reserve) -> Result<Reply, Halt> {
    let key = &reserve.key;
    let lease = reserve.lease;
    let ours = [Action::OWN_KEY_PREFIX, Action::OPERATION_KEY_PREFIX];
    let fits = (1..=limits::EFFECT_KEY_BYTES).contains(&key.len())
        && !key.contains('\0')
        && !ours.iter().any(|prefix| key.starts_with(prefix));
    if !fits || lease < limits::LEASE_MIN || lease > limits::LEASE_MAX {
        return Ok(Code::OutOfBounds.into());
    }
    match gate(case, key, None, None)? {
        Gate::Refused { code, effect } => Ok(Refusal { effect: Some(effect), ..Refusal::new(code) }.into()),
        Gate::Free { fence } => {
            let (action, deadline) = (reserve.action, limits::LEASE_MAX);
            let (approval, begun, again) = (None, false, false);
            let attempt = Take { key, action, approval, fence, lease, deadline, begun, again };
            take(case, attempt).map(Reply::Attempt)
        }
    }
}
