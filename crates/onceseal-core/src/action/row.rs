//! An action's row and its fold.

use crate::action::event::{Answer, Decided, Proposed};
use crate::code::Code;
use crate::hash::Hash;
use crate::id::{ApprovalId, ReceiptId};
use crate::journal::{Body, Event, Index, Key, moment};
use crate::operation::event::{Intent, Queued};
use crate::pack::{Corrupt, Pack};
use crate::record::{choice, record};
use crate::stream::{StreamId, StreamKind};
use crate::time::Timestamp;

choice! {
    /// Where an action stands.
    pub enum ActionState {
        /// Permitted, not started; ends by itself after `until`.
        Ready = 1 { /// Until here, inclusive.
            until: Timestamp },
        /// A person is asked.
        Waiting = 2 { /// The request.
            approval: ApprovalId },
        /// It holds its effect.
        Running = 3 { /// The attempt.
            fence: u64 },
        /// It has its terminal answer.
        Ended = 4 { /// The answer.
            result: Answer, /// Why, unless committed.
            code: Option<Code>, /// Its receipt.
            receipt: ReceiptId },
        /// Its unknown outcome became known.
        Answered = 5 { /// Committed or failed.
            result: Answer, /// The receipt of that.
            receipt: ReceiptId, /// The receipt of the unknown outcome.
            first: ReceiptId },
        /// A worker is to carry it out.
        Queued = 6 { /// Not attempted before.
            due: Timestamp, /// Why it was put off, if it was.
            code: Option<Code> },
        /// It is not carried out until somebody says so.
        Parked = 7 { /// Why.
            code: Code },
    }
}

record! {
    /// What a worker needs to know of an action that it is to carry out.
    pub struct Operation {
        /// The contract under which it was accepted.
        contract: Hash,
        /// The effect it wants.
        effect: StreamId,
        /// Its scope, blinded.
        scope: Hash,
        /// Not attempted after.
        until: Timestamp,
    }
}

record! {
    /// The private half of an action's row.
    pub struct ActionPrivate {
        /// The call that an operation was first asked by.
        intent: Option<Box<Intent>>,
        /// The proposal as it was made.
        proposal: Option<Proposed>,
    }
}

/// An action's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ActionRow {
    /// Where it stands.
    pub state: ActionState,
    /// The latest decision on it.
    pub decided: Decided,
    /// The effect and attempt it holds or held.
    pub held: Option<(StreamId, u64)>,
    /// The approval it waits for or used.
    pub approval: Option<ApprovalId>,
    /// What a worker needs to know of it, if it is an operation.
    pub operation: Option<Operation>,
    /// When it was proposed.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: ActionPrivate,
}

impl Pack for ActionRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.state.pack(out);
        self.decided.pack(out);
        self.held.map(|(stream, _)| stream).pack(out);
        self.held.map(|(_, fence)| fence).pack(out);
        self.approval.pack(out);
        self.operation.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<ActionRow, Corrupt> {
        let (state, decided) = (Pack::unpack(input)?, Pack::unpack(input)?);
        let held = match (Option::unpack(input)?, Option::unpack(input)?) {
            (Some(stream), Some(fence)) => Some((stream, fence)),
            (None, None) => None,
            _ => return Err(Corrupt("held effect")),
        };
        Ok(ActionRow {
            state,
            decided,
            held,
            approval: Pack::unpack(input)?,
            operation: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: ActionPrivate { intent: None, proposal: None },
        })
    }
}

impl Answer {
    /// Whether it is known that the effect happened or did not.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(self, Answer::Committed | Answer::Failed)
    }

    /// Whether an attempt came to it; otherwise none was made.
    #[must_use]
    pub const fn of_attempt(self) -> bool {
        self.is_known() || matches!(self, Answer::Ambiguous)
    }
}

/// Number of a state in the index of states.
#[must_use]
pub const fn state_number(state: &ActionState) -> u8 {
    match state {
        ActionState::Ready { .. } => 1,
        ActionState::Waiting { .. } => 2,
        ActionState::Running { .. } => 3,
        ActionState::Queued { .. } => 4,
        ActionState::Parked { .. } => 5,
        ActionState::Ended { result, .. } | ActionState::Answered { result, .. } => ended_number(*result),
    }
}

/// Number of a terminal answer in the index of states.
#[must_use]
pub const fn ended_number(result: Answer) -> u8 {
    10 + result.number()
}

impl ActionState {
    /// Whether it was not started in time; the end is inclusive.
    #[must_use]
    pub fn over(&self, now: Timestamp) -> bool {
        matches!(self, ActionState::Ready { until } if now > *until)
    }
}

impl ActionRow {
    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(3);
        keys.push(Key::state(StreamKind::Action, state_number(&self.state), self.created_at));
        if let Some(proposal) = &self.private.proposal {
            keys.push(Key::of(Index::Name, &[proposal.name.as_bytes(), &[0], &moment(self.created_at)]));
            if let ActionState::Ended { code: Some(code), result: Answer::Denied | Answer::Blocked, .. } =
                self.state
            {
                keys.push(refusal_key(proposal, code, self.updated_at));
            }
        }
        if let ActionState::Ready { until } = self.state {
            keys.push(Key::due(until));
        }
        if let Some(operation) = &self.operation {
            keys.push(scope_key(operation.scope));
            if let ActionState::Queued { due, .. } = self.state {
                keys.push(outbox_key(operation.contract, due));
                keys.push(Key::due(operation.until));
            }
        }
        if let Some(intent) = &self.private.intent {
            keys.push(status_key(&intent.status_ref));
        }
        keys
    }

    /// The receipt of what it came to, once it has ended.
    #[must_use]
    pub fn receipt(&self) -> Option<ReceiptId> {
        match self.state {
            ActionState::Ended { receipt, .. } => Some(receipt),
            ActionState::Answered { receipt, .. } => Some(receipt),
            _ => None,
        }
    }

    /// Whether it holds this attempt of this effect and has not ended.
    #[must_use]
    pub fn runs(&self, effect: &StreamId, fence: u64) -> bool {
        self.state == ActionState::Running { fence } && self.held == Some((*effect, fence))
    }
}

/// The key under which the operation of this scope is found.
#[must_use]
pub fn scope_key(scope: Hash) -> Key {
    Key::of(Index::Scope, &[&scope.0[..16]])
}

/// The key under which the operation of this reference is found.
#[must_use]
pub fn status_key(reference: &str) -> Key {
    Key::of(Index::Status, &[reference.as_bytes()])
}

/// The key under which workers find what is due under a contract.
#[must_use]
pub fn outbox_key(contract: Hash, due: Timestamp) -> Key {
    Key::of(Index::Outbox, &[&contract.0[..16], &moment(due)])
}

/// The key under which a refusal of this action with this code is found.
#[must_use]
pub(super) fn refusal_key(proposal: &Proposed, code: Code, at: Timestamp) -> Key {
    Key::of(Index::Refusal, &[&proposal.action_hash.0, &[code.number()], &moment(at)])
}

/// The row after one more event; the state machine of an action.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<ActionRow>, at: Timestamp, event: &Event) -> Result<ActionRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of an action's events");
    let refs = &event.refs;
    let (decided, proposal) = match &event.body {
        Body::ActionStarted(data, sealed) => (&data.decided, &sealed.proposal),
        Body::ActionWaiting(data, sealed) => (&data.decided, &sealed.proposal),
        Body::ActionReady(data, sealed) => (&data.decided, &sealed.proposal),
        Body::ActionEnded(data, sealed) => (&data.decided, &sealed.proposal),
        Body::ActionQueued(data, sealed) => (&data.decided, &sealed.proposal),
        Body::ActionAnswered(..)
        | Body::ActionDelayed(..)
        | Body::ActionParked(..)
        | Body::ActionRetried(..)
        | Body::ActionCancelled(..) => (&None, &None),
        _ => return Err(WRONG),
    };
    let before = row.as_ref().map(|row| row.state.clone());
    let mut row = match row {
        Some(row) => row,
        None => ActionRow {
            state: ActionState::Ready { until: at },
            decided: decided.clone().ok_or(WRONG)?,
            held: None,
            approval: None,
            operation: None,
            created_at: at,
            updated_at: at,
            private: ActionPrivate { intent: None, proposal: proposal.clone() },
        },
    };
    row.state = next(before.as_ref(), event).ok_or(WRONG)?;
    if let Some(decided) = decided {
        row.decided = decided.clone();
    }
    match &event.body {
        Body::ActionStarted(data, _) => row.held = Some((data.effect, data.fence)),
        Body::ActionQueued(data, sealed) => {
            let Queued { contract, effect, scope, until, .. } = *data;
            row.operation = Some(Operation { contract, effect, scope, until });
            row.private.intent.clone_from(&sealed.intent);
        }
        Body::ActionRetried(data, _) => row.operation.as_mut().ok_or(WRONG)?.until = data.until,
        _ => {}
    }
    row.approval = refs.approval.or(row.approval);
    row.updated_at = at;
    Ok(row)
}

/// The whole table: which state follows on which event, `None` if it cannot.
fn next(state: Option<&ActionState>, event: &Event) -> Option<ActionState> {
    use ActionState as S;
    let refs = &event.refs;
    match (state, &event.body) {
        (None | Some(S::Waiting { .. }), Body::ActionQueued(data, _)) => {
            Some(S::Queued { due: data.due, code: None })
        }
        (Some(S::Running { .. } | S::Queued { .. }), Body::ActionDelayed(data, _)) => {
            Some(S::Queued { due: data.due, code: Some(data.code) })
        }
        (Some(S::Running { .. } | S::Queued { .. }), Body::ActionParked(data, _)) => {
            Some(S::Parked { code: data.code })
        }
        (Some(S::Queued { .. } | S::Parked { .. }), Body::ActionRetried(data, _)) => {
            Some(S::Queued { due: data.due, code: None })
        }
        (Some(S::Queued { .. } | S::Parked { .. }), Body::ActionCancelled(..)) => {
            Some(S::Ended { result: Answer::Cancelled, code: None, receipt: refs.receipt? })
        }
        (
            None | Some(S::Ready { .. } | S::Waiting { .. } | S::Queued { .. }),
            Body::ActionStarted(data, _),
        ) => Some(S::Running { fence: data.fence }),
        (None | Some(S::Ready { .. } | S::Waiting { .. }), Body::ActionWaiting(..)) => {
            Some(S::Waiting { approval: refs.approval? })
        }
        (None | Some(S::Waiting { .. }), Body::ActionReady(data, _)) => Some(S::Ready { until: data.until }),
        (None | Some(S::Ready { .. } | S::Waiting { .. }), Body::ActionEnded(data, _))
            if matches!(data.result, Answer::Denied | Answer::Blocked) =>
        {
            Some(S::Ended { result: data.result, code: data.code, receipt: refs.receipt? })
        }
        (Some(S::Running { .. } | S::Queued { .. }), Body::ActionEnded(data, _))
            if data.result.of_attempt() =>
        {
            Some(S::Ended { result: data.result, code: data.code, receipt: refs.receipt? })
        }
        (Some(S::Ended { result: Answer::Ambiguous, receipt: first, .. }), Body::ActionAnswered(data, _))
            if data.result.is_known() =>
        {
            Some(S::Answered { result: data.result, receipt: refs.receipt?, first: *first })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
