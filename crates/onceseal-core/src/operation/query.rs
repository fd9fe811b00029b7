//! Asking what became of an operation. It is never carried out by being asked.

use crate::action::status_key;
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::ActionId;
use crate::operation::call::bind;
use crate::operation::standing::standing;
use crate::operation::{CallIdentity, Purpose};
use crate::reply::Reply;
use crate::view::{Halt, Range};

/// Ask what became of an operation.
#[derive(Debug, Clone)]
pub struct Query {
    /// On whose behalf.
    pub subject: String,
    /// The tool that was called.
    pub tool: String,
    /// The call that asks: another identity than the one that dispatched, with
    /// the same key.
    pub call: CallIdentity,
    /// The opaque reference.
    pub status_ref: String,
    /// What this call asks about: the digest of its tool and arguments.
    pub request: Hash,
    /// What is expected to have been asked for.
    pub expected: Hash,
}

pub(crate) fn query(case: &mut Case<'_>, query: &Query) -> Result<Reply, Halt> {
    let Query { subject, tool, call, status_ref, request, expected } = query;
    if call.check().is_err() {
        return Ok(Code::CallInvalid.into());
    }
    let Some(key) = &call.idempotency_key else { return Ok(Code::IdempotencyKeyRequired.into()) };
    let range = Range { limit: 1, ..Range::equal(status_key(status_ref)) };
    let found = case.view.range(&range)?.first().map(|stream| ActionId(stream.name));
    let Some(id) = found else { return Ok(Code::OperationUnknown.into()) };
    let Some(row) = case.view.action(id)?.cloned() else { return Err(Halt::Unreadable) };
    // Another's is as good as none.
    let Some(intent) = row.private.intent.as_ref().filter(|intent| intent.subject == *subject) else {
        return Ok(Code::OperationUnknown.into());
    };
    if !bind(case, subject, call, Purpose::QueryStatus, *request)? {
        return Ok(Code::CallIdConflict.into());
    }
    let profile = (&call.provider, &call.api_family, &call.adapter_revision);
    let same = intent.request == *request
        && request == expected
        && intent.key == *key
        && (&intent.provider, &intent.api_family, &intent.adapter_revision) == profile
        && row.private.proposal.as_ref().is_some_and(|proposal| proposal.name == *tool);
    if !same {
        return Ok(Code::StatusConflict.into());
    }
    standing(case, id, &row, true)
}
