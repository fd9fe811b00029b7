//! What an event is found by for ever, which text it names, and whose streams have
//! events of its kind.

use crate::hash::Hash;
use crate::journal::{Body, Event, Index, Key, Kind};
use crate::stream::StreamKind;

impl Event {
    /// Keys under which this event is found for ever.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let receipt = self.refs.receipt.map(|id| Key::of(Index::Receipt, &[&id.0]));
        let text = match &self.body {
            Body::PolicyActivated(data, _) => Some(Key::of(Index::PolicyText, &[&data.policy.0])),
            Body::ToolActivated(data, _) => Some(Key::of(Index::ToolText, &[&data.contract.0])),
            Body::DefinitionAdded(data, _) => Some(Key::of(Index::DefinitionText, &[&data.definition.0])),
            _ => None,
        };
        receipt.into_iter().chain(text).collect()
    }

    /// Whether it is an answer, which has a receipt: the terminal one of an
    /// action, a later one, or a late word.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(
            self.body,
            Body::ActionEnded(..)
                | Body::ActionCancelled(..)
                | Body::ActionAnswered(..)
                | Body::EffectLate(..)
        )
    }

    /// The reference of the text kept beside this event, if it names one.
    #[must_use]
    pub fn payload(&self) -> Option<Hash> {
        match &self.body {
            Body::ActionStarted(_, sealed)
            | Body::ActionWaiting(_, sealed)
            | Body::ActionReady(_, sealed)
            | Body::ActionEnded(_, sealed) => sealed.proposal.as_ref().map(|proposal| proposal.arguments),
            Body::EffectSettled(_, sealed) | Body::EffectLate(_, sealed) => sealed.result,
            Body::EffectReconciled(_, sealed) | Body::EffectResolved(_, sealed) => sealed.result,
            Body::PolicyActivated(_, sealed) => sealed.text,
            Body::NoteAppended(_, sealed) => sealed.body,
            Body::ActionQueued(_, sealed) => sealed.proposal.as_ref().map(|proposal| proposal.arguments),
            Body::ToolActivated(_, sealed) => sealed.text,
            Body::DefinitionAdded(_, sealed) => sealed.text,
            Body::LeaseCommitted(_, sealed) => sealed.outcome,
            Body::TaskAdded(_, sealed) => sealed.text,
            Body::HandoffPrepared(_, sealed) => sealed.facts,
            Body::ActionAnswered(..)
            | Body::EffectAcquired(..)
            | Body::EffectQueued(..)
            | Body::EffectReturned(..)
            | Body::EffectReleased(..)
            | Body::EffectBegun(..)
            | Body::EffectLapsed(..)
            | Body::ApprovalRequested(..)
            | Body::ApprovalAnswered(..)
            | Body::ApprovalExpired(..)
            | Body::ApprovalRevoked(..)
            | Body::ApprovalConsumed(..)
            | Body::ActionDelayed(..)
            | Body::ActionParked(..)
            | Body::ActionRetried(..)
            | Body::ActionCancelled(..)
            | Body::CallBound(..)
            | Body::ToolRetired(..)
            | Body::RouteFailed(..)
            | Body::RouteOpened(..)
            | Body::RouteProbed(..)
            | Body::RouteClosed(..)
            | Body::RunStarted(..)
            | Body::RunMoved(..)
            | Body::RunNamed(..)
            | Body::RunInterrupted(..)
            | Body::RunBound(..)
            | Body::DeliveryBound(..)
            | Body::TaskRenumbered(..)
            | Body::TaskQueued(..)
            | Body::TaskTaken(..)
            | Body::TaskMoved(..)
            | Body::TaskGranted(..)
            | Body::TaskDropped(..)
            | Body::PlanSet(..)
            | Body::HandoffAccepted(..)
            | Body::HandoffWithdrawn(..)
            | Body::LeaseTaken(..)
            | Body::LeaseInterrupted(..)
            | Body::LeaseLapsed(..)
            | Body::LeasePreempted(..)
            | Body::RequestAnswered(..)
            | Body::StoreCreated(..)
            | Body::StoreAccepted(..) => None,
        }
    }
}

impl Kind {
    /// Whose streams have events of this kind.
    #[must_use]
    pub const fn stream(self) -> StreamKind {
        match self.number() {
            ..10 | 80..90 => StreamKind::Action,
            10..20 => StreamKind::Effect,
            20..30 => StreamKind::Approval,
            30..40 => StreamKind::Policy,
            40..50 => StreamKind::Store,
            50..60 => StreamKind::Note,
            60..70 => StreamKind::Tool,
            70..80 => StreamKind::Call,
            90..100 => StreamKind::Route,
            100..110 => StreamKind::Run,
            110..120 => StreamKind::Request,
            120..130 => StreamKind::Definition,
            130..140 => StreamKind::Lease,
            140..150 => StreamKind::Delivery,
            150..160 => StreamKind::Task,
            160..170 => StreamKind::Plan,
            170.. => StreamKind::Handoff,
        }
    }
}
