//! Where things stand now, as the core would say if they were met: what time
//! has ended is recorded only then.

use onceseal::Control;
use onceseal::core::action::{ActionRow, ActionState};
use onceseal::core::approval::{ApprovalRow, Status};
use onceseal::core::effect::EffectRow;
use onceseal::core::time::Timestamp;

/// The status of a request: expired as soon as its time is over.
pub(crate) fn status(row: &ApprovalRow, now: Timestamp) -> Status {
    if row.open() && row.over(now) { Status::Expired } else { row.status }
}

/// Whether an attempt's lease has ended without a report.
pub(crate) fn lapsed(row: &EffectRow, now: Timestamp) -> bool {
    row.held() && !row.live(now)
}

/// Whether the time has passed in which an action could be started or a person
/// asked about it.
pub(crate) fn is_over(control: &Control, row: &ActionRow, now: Timestamp) -> bool {
    match row.state {
        ActionState::Ready { .. } => row.state.over(now),
        ActionState::Waiting { approval } => {
            // A request that cannot be read is told of where it is shown.
            let request = control.approval(approval).ok().flatten();
            request.is_some_and(|request| status(&request, now) == Status::Expired)
        }
        _ => false,
    }
}
