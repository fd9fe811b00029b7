//! An effect's row and its fold.

use crate::approval::Source;
use crate::effect::event::{Outcome, RemoteReceipt};
use crate::effect::remote;
use crate::hash::Hash;
use crate::id::ActionId;
use crate::journal::{Body, Event, Key};
use crate::pack::{Corrupt, Pack};
use crate::record::{record, word};
use crate::stream::StreamKind;
use crate::time::Timestamp;

word! {
    /// Where an effect stands.
    pub enum EffectState {
        /// Taken; its executor may not run yet.
        Reserved = 1 => "reserved",
        /// Its executor may be running.
        Executing = 2 => "executing",
        /// It happened.
        Committed = 3 => "committed",
        /// The last attempt did not happen.
        Failed = 4 => "failed",
        /// Nobody knows whether the last attempt happened.
        Ambiguous = 5 => "ambiguous",
        /// An operation waits for a worker to attempt it.
        Queued = 6 => "queued",
        /// What was queued was called off before any attempt of it began.
        Released = 7 => "released",
    }
}

impl From<Outcome> for EffectState {
    fn from(outcome: Outcome) -> EffectState {
        match outcome {
            Outcome::Committed => EffectState::Committed,
            Outcome::Failed => EffectState::Failed,
            Outcome::Ambiguous => EffectState::Ambiguous,
        }
    }
}

record! {
    /// The private half of an effect's row.
    #[derive(Default)]
    pub struct EffectPrivate {
        /// Error text or note of the last answer.
        error: Option<String>,
        /// The effect key.
        key: Option<String>,
        /// What the remote calls what it did.
        remote: Option<RemoteReceipt>,
        /// Reference of the stored result.
        result: Option<Hash>,
    }
}

/// How many late reports a row remembers; older fences may be recorded again.
const LATE_KEPT: usize = 64;

/// An effect's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EffectRow {
    /// Where it stands.
    pub state: EffectState,
    /// The newest attempt; never reused, never restarted.
    pub fence: u64,
    /// The action of the newest attempt.
    pub holder: ActionId,
    /// The end of its lease; none in records made without one.
    pub lease_until: Option<Timestamp>,
    /// However often renewed, the lease ends here.
    pub deadline: Timestamp,
    /// What the newest attempt was claimed from, if a worker claimed it: there
    /// it returns when it is given back.
    pub claimed_from: Option<EffectState>,
    /// How often the effect has been wanted anew after it was known not to have
    /// happened: attempts of one generation share a provider key.
    pub generation: u64,
    /// When an attempt of this generation first began.
    pub first_begun_at: Option<Timestamp>,
    /// Who last answered for this attempt; `None` while it lives, and when the
    /// lease ended without an answer.
    pub answered_by: Option<Source>,
    /// The event that says it happened; its payload, if it has one, is the
    /// stored result.
    pub result_at: Option<u64>,
    /// A short code of the executor.
    pub code: Option<String>,
    /// The remote's receipt and its name of the request, blinded: each proves
    /// one effect of its tool.
    pub remote: [Option<Hash>; 2],
    /// Fences that reported late.
    pub late: Vec<u64>,
    /// When the key was first taken.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: EffectPrivate,
}

impl Pack for EffectRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.state.pack(out);
        self.fence.pack(out);
        self.holder.pack(out);
        self.lease_until.pack(out);
        self.deadline.pack(out);
        self.claimed_from.pack(out);
        self.generation.pack(out);
        self.first_begun_at.pack(out);
        self.answered_by.pack(out);
        self.result_at.pack(out);
        self.code.pack(out);
        self.remote[0].pack(out);
        self.remote[1].pack(out);
        self.late.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<EffectRow, Corrupt> {
        Ok(EffectRow {
            state: Pack::unpack(input)?,
            fence: Pack::unpack(input)?,
            holder: Pack::unpack(input)?,
            lease_until: Pack::unpack(input)?,
            deadline: Pack::unpack(input)?,
            claimed_from: Pack::unpack(input)?,
            generation: Pack::unpack(input)?,
            first_begun_at: Pack::unpack(input)?,
            answered_by: Pack::unpack(input)?,
            result_at: Pack::unpack(input)?,
            code: Pack::unpack(input)?,
            remote: [Pack::unpack(input)?, Pack::unpack(input)?],
            late: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: EffectPrivate::default(),
        })
    }
}

impl EffectRow {
    /// Whether an attempt holds it, live or not.
    #[must_use]
    pub const fn held(&self) -> bool {
        matches!(self.state, EffectState::Reserved | EffectState::Executing)
    }

    /// Whether an attempt holds it and its lease has not ended. The end of a
    /// lease is inclusive; without a lease time nothing is live.
    #[must_use]
    pub fn live(&self, now: Timestamp) -> bool {
        self.held() && self.lease_until.is_some_and(|until| now <= until)
    }

    /// Whether this attempt holds it and its lease has ended unrecorded.
    #[must_use]
    pub fn lapses(&self, fence: u64, now: Timestamp) -> bool {
        self.held() && self.fence == fence && !self.live(now)
    }

    /// Whether it is unknown because a lease ended and nobody answered since.
    #[must_use]
    pub fn lapsed_unanswered(&self) -> bool {
        self.state == EffectState::Ambiguous && self.answered_by.is_none()
    }

    /// Whether somebody has answered for its newest attempt, so that a report of
    /// the holder comes late. What is wanted anew, or no longer, did not happen.
    #[must_use]
    pub const fn answered(&self) -> bool {
        !self.held() && (self.answered_by.is_some() || self.known_absent())
    }

    /// Whether its newest attempt is known not to have happened.
    #[must_use]
    pub const fn known_absent(&self) -> bool {
        matches!(self.state, EffectState::Failed | EffectState::Queued | EffectState::Released)
    }

    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(2);
        keys.push(Key::state(StreamKind::Effect, self.state.number(), self.created_at));
        keys.extend(self.remote.iter().flatten().map(|name| remote::key(*name)));
        if self.held() {
            keys.push(Key::due(self.lease_until.unwrap_or(self.updated_at)));
        }
        keys
    }

    /// Moves the lease: the one change of a row without an event.
    pub fn renew(&mut self, until: Timestamp) {
        self.lease_until = Some(until.min(self.deadline));
    }
}

/// The row after one more event; the state machine of an effect.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(
    row: Option<EffectRow>,
    sequence: u64,
    at: Timestamp,
    event: &Event,
) -> Result<EffectRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of an effect's events");
    let state = next(row.as_ref(), &event.body).ok_or(WRONG)?;
    let mut row = match (&event.body, row) {
        (Body::EffectAcquired(data, sealed), row) => {
            let anew = wanted(row, at, sealed.key.as_ref());
            let claimed_from =
                Some(anew.state).filter(|from| matches!(from, EffectState::Queued | EffectState::Ambiguous));
            EffectRow {
                fence: data.fence,
                holder: event.refs.action.ok_or(WRONG)?,
                lease_until: Some(data.lease_until),
                deadline: data.deadline,
                claimed_from,
                first_begun_at: anew.first_begun_at.or(data.begun.then_some(at)),
                ..anew
            }
        }
        (Body::EffectQueued(_, sealed), row) => {
            // Why the last attempt did not happen is told until there is another.
            let last = row.as_ref().map(|row| (row.code.clone(), row.private.error.clone()));
            let (code, error) = last.unwrap_or_default();
            let mut row = wanted(row, at, sealed.key.as_ref());
            row.private.error = error;
            EffectRow { holder: event.refs.action.ok_or(WRONG)?, code, ..row }
        }
        (_, Some(row)) => row,
        (_, None) => return Err(WRONG),
    };
    match &event.body {
        Body::EffectSettled(data, sealed) => {
            row.answered_by = Some(Source::Holder);
            row.code.clone_from(&data.code);
            row.remote = [data.remote_receipt, data.remote_request];
            row.private.error.clone_from(&sealed.error);
            row.private.remote.clone_from(&sealed.remote);
            row.private.result = sealed.result;
        }
        Body::EffectReconciled(data, sealed) | Body::EffectResolved(data, sealed) => {
            row.answered_by = Some(data.source);
            row.remote = [data.remote_receipt, data.remote_request];
            row.private.error = sealed.reason.clone().or_else(|| sealed.evidence.clone());
            row.private.remote.clone_from(&sealed.remote);
            row.private.result = sealed.result;
        }
        Body::EffectBegun(..) => row.first_begun_at = row.first_begun_at.or(Some(at)),
        Body::EffectReturned(..) => {
            // Its holder has spoken: nothing of this attempt will be reported.
            row.answered_by = Some(Source::Holder);
        }
        Body::EffectLate(data, _) => {
            row.late.push(data.fence);
            if row.late.len() > LATE_KEPT {
                row.late.remove(0);
            }
        }
        _ => {}
    }
    if state == EffectState::Committed && row.state != state {
        row.result_at = Some(sequence);
    }
    row.state = state;
    row.updated_at = at;
    Ok(row)
}

/// The row when an attempt at the effect is wanted: what was known of the last
/// one is no longer the present. It is another generation if that one is known
/// not to have happened.
fn wanted(row: Option<EffectRow>, at: Timestamp, key: Option<&String>) -> EffectRow {
    let Some(row) = row else {
        return EffectRow {
            state: EffectState::Released,
            fence: 0,
            holder: ActionId([0; 16]),
            lease_until: None,
            deadline: at,
            claimed_from: None,
            generation: 1,
            first_begun_at: None,
            answered_by: None,
            result_at: None,
            code: None,
            remote: [None; 2],
            late: Vec::new(),
            created_at: at,
            updated_at: at,
            private: EffectPrivate { key: key.cloned(), ..EffectPrivate::default() },
        };
    };
    let failed = row.state == EffectState::Failed;
    EffectRow {
        lease_until: None,
        claimed_from: None,
        generation: row.generation + u64::from(failed),
        first_begun_at: row.first_begun_at.filter(|_| !failed),
        answered_by: None,
        result_at: None,
        code: None,
        remote: [None; 2],
        private: EffectPrivate { key: row.private.key.or_else(|| key.cloned()), ..EffectPrivate::default() },
        ..row
    }
}

/// The whole table: which state follows on which event, `None` if it cannot.
fn next(row: Option<&EffectRow>, body: &Body) -> Option<EffectState> {
    use EffectState as S;
    let state = row.map(|row| row.state);
    let fence = row.map_or(0, |row| row.fence);
    match (state, body) {
        (None | Some(S::Failed | S::Released | S::Queued), Body::EffectAcquired(data, _))
            if data.fence == fence + 1 && !data.again =>
        {
            Some(if data.begun { S::Executing } else { S::Reserved })
        }
        (Some(S::Ambiguous), Body::EffectAcquired(data, _)) if data.fence == fence + 1 && data.again => {
            Some(if data.begun { S::Executing } else { S::Reserved })
        }
        (None | Some(S::Failed | S::Released), Body::EffectQueued(data, _)) if data.fence == fence => {
            Some(S::Queued)
        }
        (Some(S::Queued), Body::EffectReleased(data, _)) if data.fence == fence => Some(S::Released),
        (Some(S::Reserved), Body::EffectReturned(data, _)) if data.fence == fence => row?.claimed_from,
        (Some(S::Reserved), Body::EffectBegun(data, _)) if data.fence == fence => Some(S::Executing),
        // An attempt that repeats an unknown one speaks for itself alone.
        (Some(S::Executing | S::Ambiguous), Body::EffectSettled(data, _))
            if data.outcome == Outcome::Failed && row?.claimed_from == Some(S::Ambiguous) =>
        {
            None
        }
        (Some(S::Executing), Body::EffectSettled(data, _)) if data.fence == fence => {
            Some(data.outcome.into())
        }
        (Some(S::Reserved), Body::EffectSettled(data, _))
            if data.fence == fence && data.outcome == Outcome::Ambiguous =>
        {
            Some(S::Ambiguous)
        }
        (Some(S::Ambiguous), Body::EffectSettled(data, _))
            if data.fence == fence && data.outcome != Outcome::Ambiguous && row?.lapsed_unanswered() =>
        {
            Some(data.outcome.into())
        }
        (Some(S::Reserved | S::Executing), Body::EffectLapsed(data, _)) if data.fence == fence => {
            Some(S::Ambiguous)
        }
        (Some(S::Ambiguous), Body::EffectResolved(data, _) | Body::EffectReconciled(data, _))
            if data.fence == fence && data.outcome != Outcome::Ambiguous =>
        {
            Some(data.outcome.into())
        }
        (Some(S::Executing), Body::EffectReconciled(data, _))
            if data.fence == fence && data.outcome == Outcome::Committed =>
        {
            Some(S::Committed)
        }
        (Some(state), Body::EffectLate(data, _))
            if data.fence < fence || data.fence == fence && row?.answered() =>
        {
            Some(state)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
