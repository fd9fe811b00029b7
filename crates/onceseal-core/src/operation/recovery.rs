//! What becomes of an operation whose attempt did not come to a known end.

use crate::action::{ActionRow, ActionState, Answer, End, Operation, end};
use crate::case::Case;
use crate::code::Code;
use crate::effect::event::{AcquiredSealed, Queued, Released, Returned};
use crate::effect::{EffectRow, EffectState};
use crate::id::{ActionId, ReceiptId};
use crate::journal::{Body, Nothing, Refs};
use crate::operation::event::{Delayed, Parked};
use crate::reply::{Refusal, Reply};
use crate::stream::StreamId;
use crate::time::{Span, Timestamp};
use crate::tool::{Contract, Recovery};
use crate::view::Halt;

/// What is to become of an operation that was not attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is attempted later.
    Later {
        /// So long from now.
        after: Span,
        /// Why.
        code: Code,
    },
    /// It is not attempted until a person says so.
    Park {
        /// Why.
        code: Code,
    },
}

/// Whether an attempt whose outcome is not known may be made again.
pub(super) enum Redelivery {
    /// Now, with the same provider key.
    Permitted,
    /// Once the remote, asked from then on, knows of none.
    Ask { from: Timestamp },
    /// No.
    Never,
}

/// The arithmetic of a recovery contract. A key counts at the remote from its
/// first use, so the last request of the attempt has to reach it before then.
pub(super) fn redelivery(contract: &Contract, effect: &EffectRow, lease: Span, now: Timestamp) -> Redelivery {
    match contract.recovery {
        Recovery::Never => Redelivery::Never,
        Recovery::SameKey { key_ttl } => match effect.first_begun_at {
            Some(first) if now + lease <= first + key_ttl => Redelivery::Permitted,
            _ => Redelivery::Never,
        },
        Recovery::Ask { settle } => {
            Redelivery::Ask { from: effect.lease_until.unwrap_or(effect.updated_at) + settle }
        }
    }
}

/// How long an attempt may last, however often renewed: no request of it goes
/// out under a key that the remote has forgotten.
pub(super) fn longest(contract: &Contract, effect: &EffectRow, now: Timestamp) -> Span {
    match contract.recovery {
        Recovery::SameKey { key_ttl } => {
            let forgotten = effect.first_begun_at.unwrap_or(now) + key_ttl;
            contract.deadline.min(forgotten.since(now))
        }
        Recovery::Never | Recovery::Ask { .. } => contract.deadline,
    }
}

/// The last moment at which an attempt whose outcome is not known may be made
/// again.
pub(super) fn last_moment(
    contract: &Contract,
    effect: &EffectRow,
    lease: Span,
    operation: &Operation,
) -> Timestamp {
    match (contract.recovery, effect.first_begun_at) {
        (Recovery::SameKey { key_ttl }, Some(first)) => (first + key_ttl - lease).min(operation.until),
        _ => operation.until,
    }
}

/// Has an operation go on whose outcome is not known, if its contract lets it;
/// not sooner than `after`.
pub(crate) fn goes_on(
    case: &mut Case<'_>,
    action: ActionId,
    row: &ActionRow,
    code: Option<Code>,
    after: Span,
) -> Result<bool, Halt> {
    let Some(operation) = &row.operation else { return Ok(false) };
    let Some(effect) = case.view.effect(&operation.effect)? else { return Err(Halt::Unreadable) };
    let contract = &case.pinned.tool(operation.contract)?.contract;
    let due = match redelivery(contract, effect, contract.lease, case.now) {
        Redelivery::Permitted => case.now + after,
        Redelivery::Ask { from } => from.max(case.now + after),
        Redelivery::Never => return Ok(false),
    };
    if due > operation.until {
        return Ok(false);
    }
    put_off(case, action, due, code.unwrap_or(Code::Ambiguous));
    Ok(true)
}

/// Records that an attempt that had not begun was given back, and what becomes
/// of its operation. `from` is what the effect was before.
pub(crate) fn hand_back(
    case: &mut Case<'_>,
    stream: &StreamId,
    row: &EffectRow,
    from: EffectState,
    next: Next,
) -> Result<(), Halt> {
    let refs = Refs { action: Some(row.holder), ..Refs::NONE };
    case.record(*stream, refs, Body::EffectReturned(Returned { fence: row.fence }, Nothing {}));
    match case.view.action(row.holder)? {
        Some(action) if action.runs(stream, row.fence) => {}
        _ => return Ok(()),
    }
    match next {
        Next::Later { after, code } => put_off(case, row.holder, case.now + after, code),
        // What may have happened is not parked: it is not known.
        Next::Park { code } if from == EffectState::Ambiguous => {
            end_unknown(case, row.holder, code);
        }
        Next::Park { code } => park(case, row.holder, code),
    }
    Ok(())
}

/// Records that a worker's attempt did not happen: the operation waits to be
/// attempted again, then if `again` says when, else when a person says so.
/// `None` if the action was no operation that could be attempted again.
pub(crate) fn not_executed(
    case: &mut Case<'_>,
    action: ActionId,
    effect: &StreamId,
    fence: u64,
    again: Option<Span>,
) -> Result<bool, Halt> {
    match case.view.action(action)? {
        Some(row)
            if row.operation.is_some()
                && row.held == Some((*effect, fence))
                && matches!(row.state, ActionState::Running { .. } | ActionState::Queued { .. }) => {}
        _ => return Ok(false),
    }
    let refs = Refs { action: Some(action), ..Refs::NONE };
    case.record(*effect, refs, Body::EffectQueued(Queued { fence }, AcquiredSealed { key: None }));
    match again {
        Some(after) => put_off(case, action, case.now + after, Code::NotExecuted),
        None => park(case, action, Code::NotExecuted),
    }
    Ok(true)
}

/// Records why an operation that is due will not be attempted. What has never
/// been attempted, or is known not to have happened, is parked; what is not
/// known stays so, for the remote or a person to answer.
pub(super) fn come_to_nothing(
    case: &mut Case<'_>,
    action: ActionId,
    operation: &Operation,
    effect: &EffectRow,
    code: Code,
) -> Result<Reply, Halt> {
    let mut receipt = None;
    if effect.state == EffectState::Ambiguous {
        receipt = Some(end_unknown(case, action, code));
    } else {
        if code == Code::TooLate {
            // Nobody should wait for a key that nothing will be done under.
            let refs = Refs { action: Some(action), ..Refs::NONE };
            let body = Body::EffectReleased(Released { fence: effect.fence }, Nothing {});
            case.record(operation.effect, refs, body);
        }
        park(case, action, code);
    }
    Ok(Refusal { action: Some(action), receipt, ..Refusal::new(code) }.into())
}

/// Gives an operation up that waits and whose time is over, whoever has its
/// contract. `None` if it is none that waits.
pub(crate) fn give_up(case: &mut Case<'_>, action: ActionId) -> Result<Option<bool>, Halt> {
    let Some(row) = case.view.action(action)? else { return Ok(None) };
    let (Some(operation), ActionState::Queued { .. }) = (row.operation.clone(), &row.state) else {
        return Ok(None);
    };
    if case.now <= operation.until {
        return Ok(Some(false));
    }
    let Some(effect) = case.view.effect(&operation.effect)?.cloned() else { return Err(Halt::Unreadable) };
    come_to_nothing(case, action, &operation, &effect, Code::TooLate)?;
    Ok(Some(true))
}

pub(super) fn put_off(case: &mut Case<'_>, action: ActionId, due: Timestamp, code: Code) {
    case.record(StreamId::action(action), Refs::NONE, Body::ActionDelayed(Delayed { code, due }, Nothing {}));
}

fn park(case: &mut Case<'_>, action: ActionId, code: Code) {
    case.record(StreamId::action(action), Refs::NONE, Body::ActionParked(Parked { code }, Nothing {}));
}

fn end_unknown(case: &mut Case<'_>, action: ActionId, code: Code) -> ReceiptId {
    let (approval, decided, proposal) = (None, None, None);
    end(case, End { action, result: Answer::Ambiguous, code: Some(code), approval, decided, proposal })
}
