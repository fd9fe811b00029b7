//! What a worker tells of an operation that it has looked at.

use onceseal_core::action::ActionState;
use onceseal_core::code::Code;
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Row};
use onceseal_core::stream::StreamId;
use onceseal_store::read::row_of;

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
}

impl Carried {
    /// Where an operation stands now; `None` if somebody has it.
    pub(super) fn now(control: &Control, action: ActionId) -> Result<Option<Carried>, Error> {
        let stream = StreamId::action(action);
        let found = control.store().read(|snapshot| {
            let Some(stored) = row_of(snapshot.stream(&stream)?) else { return Ok(None) };
            let newest = snapshot.events(&stream, stored.head.sequence, 1)?.pop();
            Ok(Some((stored.row, newest.and_then(|stored| stored.event))))
        })?;
        let Some((Row::Action(row), Some(newest))) = found else { return Ok(None) };
        let code = match (&row.state, newest.body) {
            (ActionState::Queued { .. }, Body::ActionDelayed(data, _)) => Some(data.code),
            (ActionState::Parked { code }, _) => Some(*code),
            (ActionState::Ended { code, .. }, _) => *code,
            (ActionState::Answered { .. }, _) => None,
            _ => return Ok(None),
        };
        let intent = row.private.intent;
        Ok(Some(Carried {
            action,
            status_ref: intent.map(|intent| intent.status_ref),
            tool: row.private.proposal.map(|proposal| proposal.name),
            state: row.state,
            code,
        }))
    }
}
