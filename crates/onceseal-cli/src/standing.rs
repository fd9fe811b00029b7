//! Where things stand now, as the core would say if they were met: what time
//! has ended is recorded only then.

use std::collections::BTreeSet;

use onceseal::Control;
use onceseal::core::action::{ActionRow, ActionState};
use onceseal::core::approval::{ApprovalRow, Identity, Said, Status};
use onceseal::core::effect::EffectRow;
use onceseal::core::time::Timestamp;

/// How many people said yes. People are told apart by name: one person with
/// two proofs is one person.
pub(crate) fn yes(row: &ApprovalRow) -> usize {
    let said_yes = row.private.responses.iter().filter(|response| response.said == Said::Yes);
    let people = said_yes.filter_map(|response| Identity::parse(response.person.as_deref()?));
    people.map(|person| person.name).collect::<BTreeSet<_>>().len()
}

/// The status of a request: expired as soon as its time is over.
pub(crate) fn status(row: &ApprovalRow, now: Timestamp) -> Status {
    if row.open() && now > row.expires_at { Status::Expired } else { row.status }
}

/// Whether an attempt's lease has ended without a report.
pub(crate) fn lapsed(row: &EffectRow, now: Timestamp) -> bool {
    row.held() && !row.live(now)
}

/// Whether the time has passed in which an action could be started or a person
/// asked about it.
pub(crate) fn is_over(control: &Control, row: &ActionRow, now: Timestamp) -> bool {
    match row.state {
        ActionState::Ready { until } => now > until,
        ActionState::Waiting { approval } => {
            // A request that cannot be read is told of where it is shown.
            let request = control.approval(approval).ok().flatten();
            request.is_some_and(|request| status(&request, now) == Status::Expired)
        }
        _ => false,
    }
}
