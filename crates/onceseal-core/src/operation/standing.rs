//! Where an operation stands, in words for its caller.

use crate::action::{ActionRow, ActionState};
use crate::case::Case;
use crate::effect::{self, EffectState};
use crate::id::ActionId;
use crate::reply::{OperationNow, Reply, Standing};
use crate::view::Halt;

/// Where an operation stands. A lease found lapsed is recorded.
pub(super) fn standing(
    case: &mut Case<'_>,
    action: ActionId,
    row: &ActionRow,
    repeated: bool,
) -> Result<Reply, Halt> {
    let (Some(operation), Some(intent)) = (&row.operation, &row.private.intent) else {
        return Err(Halt::Unreadable);
    };
    let effect = case.view.effect(&operation.effect)?.filter(|effect| effect.holder == action).cloned();
    let unknown = effect.as_ref().is_some_and(|effect| effect.state == EffectState::Ambiguous);
    let standing = match row.state {
        ActionState::Queued { .. } if unknown => Standing::Unknown,
        ActionState::Queued { due, .. } => Standing::Queued { due },
        ActionState::Parked { code } => Standing::Parked { code },
        ActionState::Running { fence } => match effect {
            Some(effect) if effect.lapses(fence, case.now) => {
                match effect::record_lapse(case, &operation.effect, &effect)?.state {
                    EffectState::Ambiguous => Standing::Unknown,
                    _ => Standing::Queued { due: case.now },
                }
            }
            effect => Standing::Running { lease_until: effect.and_then(|effect| effect.lease_until) },
        },
        ActionState::Ended { result: crate::action::Answer::Ambiguous, .. } => Standing::Unknown,
        ActionState::Ended { result, code, receipt } => {
            Standing::Ended { result, code, receipt, stored: stored(case, row)? }
        }
        ActionState::Answered { result, receipt, .. } => {
            Standing::Ended { result, code: None, receipt, stored: stored(case, row)? }
        }
        // Not an operation yet.
        ActionState::Ready { .. } | ActionState::Waiting { .. } => return Err(Halt::Unreadable),
    };
    let status_ref = intent.status_ref.clone();
    Ok(Reply::Operation(Box::new(OperationNow { action, status_ref, standing, repeated })))
}

fn stored(case: &Case<'_>, row: &ActionRow) -> Result<Option<(crate::stream::StreamId, u64)>, Halt> {
    match row.held {
        Some((stream, fence)) => effect::stored_result(case, &stream, fence),
        None => Ok(None),
    }
}
