//! What a worker tells of an operation that it has looked at.

use onceseal_core::action::ActionState;
use onceseal_core::code::Code;
use onceseal_core::effect::EffectState;
use onceseal_core::id::ActionId;

use crate::control::Control;
use crate::error::Error;

/// What became of an operation: it ended, or was put off or parked.
#[derive(Debug, Clone)]
pub struct Carried {
    /// Its action.
    pub action: ActionId,
    /// Its reference, unless that is erased.
    pub status_ref: Option<String>,
    /// The tool's name, unless that is erased.
    pub tool: Option<String>,
    /// Where it stands.
    pub state: ActionState,
    /// Why, unless it was committed.
    pub code: Option<Code>,
    /// What was last said of its attempts, in a word, unless it was committed.
    pub said: Option<String>,
}

impl Carried {
    /// Where an operation stands now; `None` if somebody has it.
    pub(super) fn now(control: &Control, action: ActionId) -> Result<Option<Carried>, Error> {
        let Some(row) = control.action_row(action)? else { return Ok(None) };
        let code = match row.state {
            ActionState::Queued { code: Some(code), .. } | ActionState::Parked { code } => Some(code),
            ActionState::Ended { code, .. } => code,
            ActionState::Answered { .. } => None,
            _ => return Ok(None),
        };
        let effect = match &row.operation {
            Some(operation) => control.effect_at(&operation.effect)?,
            None => None,
        };
        let held = effect.filter(|effect| row.held.is_some_and(|(_, fence)| fence == effect.fence));
        let said =
            held.filter(|effect| effect.state != EffectState::Committed).and_then(|effect| effect.code);
        let intent = row.private.intent;
        Ok(Some(Carried {
            action,
            status_ref: intent.map(|intent| intent.status_ref),
            tool: row.private.proposal.map(|proposal| proposal.name),
            state: row.state,
            code,
            said,
        }))
    }
}
