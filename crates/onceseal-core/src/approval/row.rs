//! An approval's row and its fold.

use std::collections::BTreeSet;

use crate::approval::Identity;
use crate::approval::event::{Proof, RequestedSealed, Revoke, Said, Status};
use crate::id::ActionId;
use crate::journal::{Body, Event, Index, Key, moment};
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::stream::StreamKind;
use crate::time::Timestamp;

record! {
    /// One person's answer.
    pub struct Response {
        /// When it was recorded.
        at: Timestamp,
        /// The person, as `os:<login>` or `host:<name>`.
        person: Option<String>,
        /// How they were proven.
        proof: Proof,
        /// What they said.
        said: Said,
    }
}

record! {
    /// The private half of an approval's row.
    pub struct ApprovalPrivate {
        /// What it binds.
        bound: RequestedSealed,
        /// The answers, oldest first.
        responses: Vec<Response>,
    }
}

/// An approval's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApprovalRow {
    /// Where it stands.
    pub status: Status,
    /// The action that waits for it.
    pub action: ActionId,
    /// Answers and use are possible until here, inclusive.
    pub expires_at: Timestamp,
    /// How many distinct people must say yes.
    pub quorum: u32,
    /// Kinds of proof taken.
    pub proofs: Vec<Proof>,
    /// The action that used it.
    pub consumed_by: Option<ActionId>,
    /// Why it was revoked.
    pub revoked: Option<Revoke>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: ApprovalPrivate,
}

const UNKNOWN: ApprovalPrivate = ApprovalPrivate {
    bound: RequestedSealed {
        action_hash: None,
        approvers: None,
        ask: None,
        binding: None,
        contract: None,
        effect_key: None,
        intent_hash: None,
        name: None,
        rule: None,
    },
    responses: Vec::new(),
};

impl Pack for ApprovalRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.status.pack(out);
        self.action.pack(out);
        self.expires_at.pack(out);
        self.quorum.pack(out);
        self.proofs.pack(out);
        self.consumed_by.pack(out);
        self.revoked.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<ApprovalRow, Corrupt> {
        Ok(ApprovalRow {
            status: Pack::unpack(input)?,
            action: Pack::unpack(input)?,
            expires_at: Pack::unpack(input)?,
            quorum: Pack::unpack(input)?,
            proofs: Pack::unpack(input)?,
            consumed_by: Pack::unpack(input)?,
            revoked: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: UNKNOWN,
        })
    }
}

impl ApprovalRow {
    /// Whether its time is over; the end is inclusive.
    #[must_use]
    pub fn over(&self, now: Timestamp) -> bool {
        now > self.expires_at
    }

    /// How many people said yes, entitled or not. People are told apart by name:
    /// one person with two proofs is one person.
    #[must_use]
    pub fn yeses(&self) -> usize {
        self.who_said_yes().map(|person| person.name).collect::<BTreeSet<_>>().len()
    }

    /// Everybody who said yes, as often as they did.
    pub(super) fn who_said_yes(&self) -> impl Iterator<Item = Identity> {
        let said_yes = self.private.responses.iter().filter(|response| response.said == Said::Yes);
        said_yes.filter_map(|response| Identity::parse(response.person.as_deref()?))
    }

    /// Whether it may still be answered or used.
    #[must_use]
    pub const fn open(&self) -> bool {
        matches!(self.status, Status::Pending | Status::Granted)
    }

    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(3);
        keys.push(Key::state(StreamKind::Approval, self.status.number(), self.created_at));
        let bound = &self.private.bound;
        if self.open() {
            keys.push(Key::due(self.expires_at));
            keys.extend(bound.ask.map(|ask| Key::of(Index::Ask, &[&ask.0])));
        }
        if self.status == Status::Denied {
            let expiry = moment(self.expires_at);
            keys.extend(bound.intent_hash.map(|intent| Key::of(Index::Denial, &[&intent.0, &expiry])));
        }
        keys
    }
}

/// The row after one more event; the state machine of an approval.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<ApprovalRow>, at: Timestamp, event: &Event) -> Result<ApprovalRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of an approval's events");
    let status = next(row.as_ref().map(|row| row.status), &event.body).ok_or(WRONG)?;
    let mut row = match (&event.body, row) {
        (Body::ApprovalRequested(data, sealed), None) => ApprovalRow {
            status,
            action: event.refs.action.ok_or(WRONG)?,
            expires_at: data.expires_at,
            quorum: data.quorum,
            proofs: data.proofs.clone(),
            consumed_by: None,
            revoked: None,
            created_at: at,
            updated_at: at,
            private: ApprovalPrivate { bound: sealed.clone(), responses: Vec::new() },
        },
        (_, Some(row)) => row,
        (_, None) => return Err(WRONG),
    };
    match &event.body {
        Body::ApprovalAnswered(data, sealed) => {
            let person = sealed.person.clone();
            row.private.responses.push(Response { at, person, proof: data.proof, said: data.said });
        }
        Body::ApprovalRevoked(data, sealed) => {
            row.revoked = Some(data.reason);
            // An approver who takes it back says no.
            if let (Revoke::Approver, Some(proof)) = (data.reason, data.proof) {
                let person = sealed.person.clone();
                row.private.responses.push(Response { at, person, proof, said: Said::No });
            }
        }
        Body::ApprovalConsumed(..) => row.consumed_by = event.refs.action,
        _ => {}
    }
    row.status = status;
    row.updated_at = at;
    Ok(row)
}

/// The whole table: which status follows on which event, `None` if it cannot.
fn next(status: Option<Status>, body: &Body) -> Option<Status> {
    use Status as S;
    match (status, body) {
        (None, Body::ApprovalRequested(..)) => Some(S::Pending),
        (Some(S::Pending), Body::ApprovalAnswered(data, _)) => match (data.said, data.status) {
            (Said::Yes, S::Pending | S::Granted) | (Said::No, S::Denied) => Some(data.status),
            _ => None,
        },
        (Some(S::Pending | S::Granted), Body::ApprovalExpired(..)) => Some(S::Expired),
        (Some(S::Pending | S::Granted), Body::ApprovalRevoked(..)) => Some(S::Revoked),
        (Some(S::Granted), Body::ApprovalConsumed(..)) => Some(S::Consumed),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
