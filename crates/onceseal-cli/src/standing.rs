//! Where a request for approval stands, as the core would say.

use std::collections::BTreeSet;

use onceseal::core::approval::{ApprovalRow, Identity, Said};

/// How many people said yes. People are told apart by name: one person with
/// two proofs is one person.
pub(crate) fn yes(row: &ApprovalRow) -> usize {
    let said_yes = row.private.responses.iter().filter(|response| response.said == Said::Yes);
    let people = said_yes.filter_map(|response| Identity::parse(response.person.as_deref()?));
    people.map(|person| person.name).collect::<BTreeSet<_>>().len()
}
