//! A handoff's row and its fold.

use crate::handoff::event::HandoffState;
use crate::hash::Hash;
use crate::id::HolderId;
use crate::journal::{Body, Event, Index, Key};
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::stream::StreamKind;
use crate::time::Timestamp;

/// A handoff's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HandoffRow {
    /// Where it stands.
    pub state: HandoffState,
    /// The resource, blinded.
    pub resource: Hash,
    /// The newest lease on the resource when it was prepared.
    pub fence: u64,
    /// Who accepted it.
    pub holder: Option<HolderId>,
    /// When it was prepared.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: HandoffPrivate,
}

record! {
    /// The private half of a handoff's row.
    pub struct HandoffPrivate {
        /// Who prepared it.
        agent: Option<String>,
        /// Reference of the facts.
        facts: Option<Hash>,
        /// The receipt's digest.
        receipt: Option<Hash>,
        /// The resource as it is printed.
        resource: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

impl Pack for HandoffRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.state.pack(out);
        self.resource.pack(out);
        self.fence.pack(out);
        self.holder.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<HandoffRow, Corrupt> {
        Ok(HandoffRow {
            state: Pack::unpack(input)?,
            resource: Pack::unpack(input)?,
            fence: Pack::unpack(input)?,
            holder: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: HandoffPrivate { agent: None, facts: None, receipt: None, resource: None, user: None },
        })
    }
}

/// The key under which the handoff that is prepared of a resource is found.
#[must_use]
pub(super) fn prepared_key(resource: Hash) -> Key {
    Key::of(Index::Handoff, &[&resource.0[..16]])
}

impl HandoffRow {
    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = vec![Key::state(StreamKind::Handoff, self.state.number(), self.created_at)];
        if self.state == HandoffState::Prepared {
            keys.push(prepared_key(self.resource));
        }
        keys
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<HandoffRow>, at: Timestamp, event: &Event) -> Result<HandoffRow, Corrupt> {
    let mut row = match (row, &event.body) {
        (None, Body::HandoffPrepared(data, sealed)) => {
            return Ok(HandoffRow {
                state: HandoffState::Prepared,
                resource: data.resource,
                fence: data.fence,
                holder: None,
                created_at: at,
                updated_at: at,
                private: HandoffPrivate {
                    agent: sealed.agent.clone(),
                    facts: sealed.facts,
                    receipt: sealed.receipt,
                    resource: sealed.resource.clone(),
                    user: sealed.user.clone(),
                },
            });
        }
        (Some(row), _) if row.state == HandoffState::Prepared => row,
        _ => return Err(Corrupt("sequence of a handoff's events")),
    };
    match &event.body {
        Body::HandoffAccepted(data, _) => {
            (row.state, row.holder) = (HandoffState::Accepted, Some(data.holder));
        }
        Body::HandoffWithdrawn(..) => row.state = HandoffState::Withdrawn,
        _ => return Err(Corrupt("event of a handoff")),
    }
    row.updated_at = at;
    Ok(row)
}
