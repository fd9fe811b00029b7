//! What the holder of an attempt does with it: begin, renew, report; and what
//! happens when it does not.
//!
//! A report is judged by its fence, not by time.

use crate::action::{Answer, answer_held, end_held};
use crate::approval::Source;
use crate::case::{Case, Renewal};
use crate::code::Code;
use crate::effect::event::{Begun, Late, RemoteReceipt, Settled, SettledSealed};
use crate::effect::gate::{now, record_lapse};
use crate::effect::{EffectRow, EffectState, Outcome, remote};
use crate::hash::Hash;
use crate::id::{ActionId, ReceiptId};
use crate::journal::{Body, Nothing, Payload, Refs};
use crate::limits;
use crate::operation;
use crate::reply::{Attempt, EffectNow, Refusal, Reply};
use crate::route::{self, Health};
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::Halt;

/// The names of an attempt; every command of its holder carries all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holding {
    /// The effect.
    pub effect: StreamId,
    /// The holder.
    pub action: ActionId,
    /// The attempt.
    pub fence: u64,
}

impl From<&Attempt> for Holding {
    fn from(attempt: &Attempt) -> Holding {
        Holding { effect: attempt.effect, action: attempt.action, fence: attempt.fence }
    }
}

/// Permit a reserved attempt's executor to run.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The attempt.
    pub attempt: Holding,
    /// The lease that was given, handed back in the reply.
    pub lease: Span,
}

/// Move an attempt's lease to now + `lease`, never past its deadline.
#[derive(Debug, Clone)]
pub struct Renew {
    /// The attempt.
    pub attempt: Holding,
    /// 1 s to 24 h.
    pub lease: Span,
}

/// Report an attempt's outcome.
#[derive(Debug, Clone)]
pub struct Settle {
    /// The attempt.
    pub attempt: Holding,
    /// What became of it.
    pub outcome: Outcome,
    /// A short code of the executor.
    pub code: Option<String>,
    /// Its error text, at most 1,024 characters; more is cut.
    pub error: Option<String>,
    /// Its result as canonical JSON text, at most 64 KiB.
    pub result: Option<String>,
    /// What the remote calls what it did.
    pub remote: Option<Box<RemoteReceipt>>,
    /// If it is a worker's and did not happen, or may not have: what it says of
    /// its destination.
    pub health: Option<Health>,
    /// If it is a worker's: not attempted again sooner than this from now.
    /// Absent, what failed is attempted again when a person says so.
    pub again: Option<Span>,
}

impl Settle {
    /// A report of this outcome, with nothing said of it besides.
    #[must_use]
    pub const fn new(attempt: Holding, outcome: Outcome) -> Settle {
        Settle {
            attempt,
            outcome,
            code: None,
            error: None,
            result: None,
            remote: None,
            health: None,
            again: None,
        }
    }
}

pub(crate) fn begin(case: &mut Case<'_>, begin: &Begin) -> Result<Reply, Halt> {
    let holding = begin.attempt;
    let Some(row) = case.view.effect(&holding.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    if !holds(&row, holding) || row.state != EffectState::Reserved {
        return wrong(case, &row, holding);
    }
    if !row.live(case.now) {
        return lapsed(case, &row, holding);
    }
    let refs = Refs { action: Some(holding.action), ..Refs::NONE };
    case.record(holding.effect, refs, Body::EffectBegun(Begun { fence: holding.fence }, Nothing {}));
    Ok(Reply::Attempt(Attempt {
        action: holding.action,
        effect: holding.effect,
        key: row.private.key.filter(|key| !key.starts_with(crate::action::Action::OWN_KEY_PREFIX)),
        fence: holding.fence,
        taken_at: case.now,
        lease_until: row.lease_until.unwrap_or(case.now),
        deadline: row.deadline,
        lease: begin.lease,
        begun: true,
        approval: None,
    }))
}

pub(crate) fn renew(case: &mut Case<'_>, renew: &Renew) -> Result<Reply, Halt> {
    let holding = renew.attempt;
    if renew.lease < limits::LEASE_MIN || renew.lease > limits::LEASE_MAX {
        return Ok(Code::OutOfBounds.into());
    }
    let Some(row) = case.view.effect(&holding.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    if !holds(&row, holding) || !row.held() {
        return wrong(case, &row, holding);
    }
    if !row.live(case.now) {
        return lapsed(case, &row, holding);
    }
    // A renewal never takes time away that was given.
    let lease_until = (case.now + renew.lease).min(row.deadline).max(row.lease_until.unwrap_or(case.now));
    if row.lease_until != Some(lease_until) {
        case.renewals.push(Renewal { stream: holding.effect, fence: holding.fence, lease_until });
    }
    Ok(Reply::Renewed { lease_until })
}

pub(crate) fn settle(case: &mut Case<'_>, settle: &Settle) -> Result<Reply, Halt> {
    use EffectState as S;
    use Outcome as O;
    let holding = settle.attempt;
    let Some(row) = case.view.effect(&holding.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    let unfit = settle.result.as_ref().is_some_and(|text| !limits::is_result(text));
    let unfit = unfit || settle.remote.as_ref().is_some_and(|remote| !remote.is_fit());
    if unfit || settle.code.as_ref().is_some_and(|code| !limits::is_name(code)) {
        return Ok(Code::OutOfBounds.into());
    }
    if !holds(&row, holding) {
        return late(case, &row, settle);
    }
    // An attempt that repeats an unknown one speaks for itself alone: that it was
    // not executed says nothing of the one before.
    let proof = remote::proof(case, &holding.effect, holding.action, settle.remote.as_deref())?;
    let outcome = match settle.outcome {
        // Its receipt is of something else.
        O::Committed if proof.is_none() => O::Ambiguous,
        O::Failed if row.claimed_from == Some(S::Ambiguous) => O::Ambiguous,
        outcome => outcome,
    };
    match (row.state, outcome) {
        (S::Executing, _) | (S::Reserved, O::Ambiguous) => {
            let receipt = record(case, settle, outcome, proof)?;
            if let Some(health) = health(settle) {
                route::heard(case, holding, health)?;
            }
            Ok(Reply::Settled { state: outcome.into(), receipt, repeated: false })
        }
        (S::Ambiguous, O::Committed | O::Failed) if row.lapsed_unanswered() => {
            let receipt = record(case, settle, outcome, proof)?;
            Ok(Reply::Settled { state: outcome.into(), receipt, repeated: false })
        }
        // It was, and the operation waits for another attempt since.
        (S::Queued | S::Released, O::Failed) => {
            Ok(Reply::Settled { state: S::Failed, receipt: None, repeated: true })
        }
        (S::Ambiguous, O::Ambiguous) => again(case, &row),
        (state, outcome) if state == outcome.into() && row.answered_by == Some(Source::Holder) => {
            again(case, &row)
        }
        (S::Reserved, _) => wrong(case, &row, holding),
        _ => late(case, &row, settle),
    }
}

/// What a report says of the destination: what happened was answered there.
const fn health(settle: &Settle) -> Option<Health> {
    match settle.outcome {
        Outcome::Committed => Some(Health::Well),
        Outcome::Failed | Outcome::Ambiguous => settle.health,
    }
}

pub(crate) fn lapse(case: &mut Case<'_>, stream: &StreamId) -> Result<Reply, Halt> {
    let over = case.view.effect(stream)?.filter(|row| row.held() && !row.live(case.now)).cloned();
    if let Some(row) = &over {
        record_lapse(case, stream, row)?;
    }
    Ok(Reply::Done { changed: over.is_some() })
}

pub(crate) fn holds(row: &EffectRow, holding: Holding) -> bool {
    row.fence == holding.fence && row.holder == holding.action
}

/// The report was recorded before: the answer is the first one's.
pub(super) fn again(case: &Case<'_>, row: &EffectRow) -> Result<Reply, Halt> {
    let receipt = case.view.action(row.holder)?.and_then(crate::action::ActionRow::receipt);
    Ok(Reply::Settled { state: row.state, receipt, repeated: true })
}

fn record(
    case: &mut Case<'_>,
    settle: &Settle,
    outcome: Outcome,
    proof: Option<[Option<Hash>; 2]>,
) -> Result<Option<ReceiptId>, Halt> {
    let Holding { effect, action, fence } = settle.attempt;
    let (sealed, payload) = sealed(case, settle);
    let reused = proof.is_none();
    let code = match reused {
        true => Some(Code::RemoteReceiptReused.as_str().to_owned()),
        false => settle.code.clone(),
    };
    let [remote_receipt, remote_request] =
        proof.filter(|_| outcome == Outcome::Committed).unwrap_or_default();
    let data = Settled { code, fence, outcome, remote_receipt, remote_request };
    let refs = Refs { action: Some(action), ..Refs::NONE };
    case.record_with(effect, refs, Body::EffectSettled(data, sealed), payload);
    let answer = Answer::from(outcome);
    match outcome {
        // Repeated, it would answer the same.
        Outcome::Ambiguous if reused => {
            let code = Some(Code::RemoteReceiptReused);
            end_held(case, action, &effect, fence, answer, code, None)
        }
        Outcome::Ambiguous => {
            let (code, after) = (Some(Code::Ambiguous), settle.again.unwrap_or(Span::ZERO));
            end_held(case, action, &effect, fence, answer, code, Some(after))
        }
        Outcome::Failed if operation::not_executed(case, action, &effect, fence, settle.again)? => Ok(None),
        _ => answer_held(case, action, &effect, fence, answer, Source::Holder, false),
    }
}

fn sealed(case: &Case<'_>, settle: &Settle) -> (SettledSealed, Option<Payload>) {
    let payload = settle.result.as_deref().map(|text| case.payload(text));
    let error = settle.error.as_deref().map(limits::cut);
    let result = payload.as_ref().map(Payload::hash);
    (SettledSealed { error, remote: settle.remote.as_deref().cloned(), result }, payload)
}

/// A report for an attempt that somebody else has answered for, or that a
/// newer one has replaced: kept once per fence, if it is proven to be the
/// holder's, and nothing changes.
fn late(case: &mut Case<'_>, row: &EffectRow, settle: &Settle) -> Result<Reply, Halt> {
    let Holding { effect, action, fence } = settle.attempt;
    let was_holder = match case.view.action(action)? {
        // An operation may have made several attempts, one after another.
        Some(action) => action.held.is_some_and(|(held, newest)| {
            held == effect && (fence == newest || action.operation.is_some() && fence < newest)
        }),
        None => holds(row, settle.attempt),
    };
    if !was_holder {
        return wrong(case, row, settle.attempt);
    }
    let current = row.fence == fence;
    let mut receipt = None;
    if !row.late.contains(&fence) {
        let id = case.receipt();
        let (sealed, payload) = sealed(case, settle);
        // A newer attempt exists because this one was known not to have happened.
        // Under a contract it may also have been made again not knowing.
        let known = match row.claimed_from {
            _ if current && row.known_absent() => EffectState::Failed,
            _ if current => row.state,
            Some(EffectState::Ambiguous) => EffectState::Ambiguous,
            _ => EffectState::Failed,
        };
        // Not to know is no answer, and contradicts none.
        let contradicts = settle.outcome != Outcome::Ambiguous
            && known != EffectState::Ambiguous
            && known != settle.outcome.into();
        let refs = Refs { action: Some(action), approval: None, receipt: Some(id) };
        let data = Late { contradicts, fence, outcome: settle.outcome };
        case.record_with(effect, refs, Body::EffectLate(data, sealed), payload);
        receipt = Some(id);
    }
    let effect = now(case, &effect, None)?;
    // Nobody has answered for it but the holder itself, who did not know.
    let unknown = current && row.state == EffectState::Ambiguous;
    let code = if unknown { Code::Ambiguous } else { Code::Fenced };
    Ok(Refusal { action: Some(action), receipt, effect, ..Refusal::new(code) }.into())
}

/// The lease ended before its holder came: recorded, and refused.
fn lapsed(case: &mut Case<'_>, row: &EffectRow, holding: Holding) -> Result<Reply, Halt> {
    let state = record_lapse(case, &holding.effect, row)?.state;
    let effect = now(case, &holding.effect, None)?.map(|effect| EffectNow { state, ..effect });
    Ok(Refusal { effect, ..Refusal::new(Code::LeaseLapsed) }.into())
}

/// What somebody is told who does not hold the attempt, or not in that state.
pub(crate) fn wrong(case: &Case<'_>, row: &EffectRow, holding: Holding) -> Result<Reply, Halt> {
    let code = match row.state {
        EffectState::Ambiguous => Code::Ambiguous,
        EffectState::Committed => Code::Duplicate,
        _ if !holds(row, holding) && row.live(case.now) => Code::InProgress,
        _ => Code::InvalidTransition,
    };
    Ok(Refusal { effect: now(case, &holding.effect, None)?, ..Refusal::new(code) }.into())
}
