//! A call's identity is used once: for one purpose, request and key.

use crate::case::Case;
use crate::hash::Hash;
use crate::journal::{Body, Event, Refs};
use crate::operation::event::{Bound, BoundSealed};
use crate::operation::{CallIdentity, Purpose};
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::time::Timestamp;
use crate::view::Halt;

/// The row of a call's identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallRow {
    /// When it was used.
    pub created_at: Timestamp,
    /// For what.
    pub purpose: Purpose,
    /// The private half.
    pub private: CallPrivate,
}

impl Pack for CallRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.created_at.pack(out);
        self.purpose.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<CallRow, Corrupt> {
        let (created_at, purpose) = (Pack::unpack(input)?, Pack::unpack(input)?);
        Ok(CallRow { created_at, purpose, private: CallPrivate { fingerprint: None } })
    }
}

record! {
    /// The private half of a call's row.
    pub struct CallPrivate {
        /// What it is bound to.
        fingerprint: Option<Hash>,
    }
}

/// Binds a call's identity by its first use. `false`: it is bound to something
/// else.
pub(super) fn bind(
    case: &mut Case<'_>,
    subject: &str,
    call: &CallIdentity,
    purpose: Purpose,
    request: Hash,
) -> Result<bool, Halt> {
    let stream = case.pinned.tenant.call(subject, call);
    let fingerprint = call.fingerprint(purpose, request);
    if let Some(row) = case.view.call(&stream)? {
        return Ok(row.private.fingerprint == Some(fingerprint));
    }
    let body = Body::CallBound(Bound { purpose }, BoundSealed { fingerprint: Some(fingerprint) });
    case.record(stream, Refs::NONE, body);
    Ok(true)
}

/// The row after an event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<CallRow>, at: Timestamp, event: &Event) -> Result<CallRow, Corrupt> {
    match (&event.body, row) {
        (Body::CallBound(data, sealed), None) => Ok(CallRow {
            created_at: at,
            purpose: data.purpose,
            private: CallPrivate { fingerprint: sealed.fingerprint },
        }),
        _ => Err(Corrupt("sequence of a call's events")),
    }
}
