//! Rows: the present state of a stream, and the keys it is found under.

use crate::action::ActionRow;
use crate::approval::ApprovalRow;
use crate::effect::EffectRow;
use crate::handoff::HandoffRow;
use crate::hash::Hash;
use crate::lease::LeaseRow;
use crate::operation::CallRow;
use crate::pack::{Corrupt, Pack};
use crate::policy::PolicyRow;
use crate::record::word;
use crate::route::RouteRow;
use crate::run::{DefinitionRow, DeliveryRow, RequestRow, RunRow};
use crate::store::StoreRow;
use crate::stream::StreamKind;
use crate::task::{PlanRow, TaskRow};
use crate::time::Timestamp;
use crate::tool::ToolRow;

/// The last event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// Its number; the first is 1.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

/// A stream's row with its head.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Where the stream ends.
    pub head: Head,
    /// What it folds to.
    pub row: Row,
}

/// What a stream folds to. Each row has a half folded from open parts, and a
/// private half folded from sealed parts, which may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Row {
    /// An action.
    Action(ActionRow),
    /// An approval.
    Approval(ApprovalRow),
    /// An effect.
    Effect(EffectRow),
    /// The active policy.
    Policy(PolicyRow),
    /// The store, or a note: nothing is decided from it.
    Store(StoreRow),
    /// A tool.
    Tool(ToolRow),
    /// A call's identity.
    Call(CallRow),
    /// A route to a destination.
    Route(RouteRow),
    /// A run definition.
    Definition(DefinitionRow),
    /// A run.
    Run(RunRow),
    /// What was asked of a run.
    Request(RequestRow),
    /// Who holds a resource.
    Lease(LeaseRow),
    /// What was bound at a gate of a run.
    Delivery(DeliveryRow),
    /// A task of a run.
    Task(TaskRow),
    /// A run's plan.
    Plan(PlanRow),
    /// A resource that is handed over.
    Handoff(HandoffRow),
}

word! {
    /// What a stream or an event can be found by.
    pub enum Index {
        /// Receipt id → the event it is rendered from.
        Receipt = 1 => "receipt",
        /// Policy hash → the event that activated it.
        PolicyText = 2 => "policy_text",
        /// Kind, state, creation → streams of that state, oldest first.
        State = 3 => "state",
        /// Action name, creation → actions of that name, oldest first.
        Name = 4 => "name",
        /// Moment → streams that end by themselves then.
        Due = 5 => "due",
        /// Ask hash → the one pending or granted approval for it.
        Ask = 6 => "ask",
        /// Intent hash, expiry → denied approvals.
        Denial = 7 => "denial",
        /// Action hash, code, moment → refusals recorded.
        Refusal = 8 => "refusal",
        /// Contract digest → the event that activated it.
        ToolText = 9 => "tool_text",
        /// Blinded scope → the operation.
        Scope = 10 => "scope",
        /// Status reference → the operation.
        Status = 11 => "status",
        /// Contract, moment → operations to be carried out from then on.
        Outbox = 12 => "outbox",
        /// A remote's receipt or request, blinded → the effect it proves.
        Remote = 13 => "remote",
        /// Blinded lookup → the living run.
        Run = 14 => "run",
        /// Blinded lookup, creation → runs that ended under it, newest first.
        FormerRun = 15 => "former_run",
        /// Definition digest → the event that added it.
        DefinitionText = 16 => "definition_text",
        /// A resource, blinded → those held that are a part of it.
        Below = 17 => "below",
        /// Run, revision → what was bound.
        Delivery = 18 => "delivery",
        /// Run, number → its tasks.
        Task = 19 => "task",
        /// Run, place, moment, number → tasks at work and in line.
        Queue = 20 => "queue",
        /// Task → tasks that wait for it.
        Dependent = 21 => "dependent",
        /// A resource, blinded → the handoff that is prepared of it.
        Handoff = 22 => "handoff",
    }
}

/// A key under which a stream or an event is found. Keys compare as bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which index.
    pub index: Index,
    /// The bytes, big-endian where they are numbers.
    pub bytes: Vec<u8>,
}

impl Key {
    /// A key of these parts, one after another.
    #[must_use]
    pub fn of(index: Index, parts: &[&[u8]]) -> Key {
        Key { index, bytes: parts.concat() }
    }

    /// The key of a stream's state in lists.
    #[must_use]
    pub fn state(kind: StreamKind, state: u8, created_at: Timestamp) -> Key {
        Key::of(Index::State, &[&[kind.number(), state], &moment(created_at)])
    }

    /// The key of a moment at which a stream ends by itself.
    #[must_use]
    pub fn due(at: Timestamp) -> Key {
        Key::of(Index::Due, &[&moment(at)])
    }
}

/// A moment as bytes that order as it does.
#[must_use]
pub fn moment(at: Timestamp) -> [u8; 8] {
    at.micros().to_be_bytes()
}

impl Row {
    /// The keys under which the stream is found as it is now.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        match self {
            Row::Action(row) => row.keys(),
            Row::Approval(row) => row.keys(),
            Row::Effect(row) => row.keys(),
            Row::Route(row) => row.keys(),
            Row::Run(row) => row.keys(),
            Row::Lease(row) => row.keys(),
            Row::Delivery(row) => row.keys(),
            Row::Task(row) => row.keys(),
            Row::Handoff(row) => row.keys(),
            Row::Policy(_)
            | Row::Store(_)
            | Row::Tool(_)
            | Row::Call(_)
            | Row::Definition(_)
            | Row::Plan(_)
            | Row::Request(_) => Vec::new(),
        }
    }

    /// The row with the ends of leases as this one has them: what renewals move
    /// is in no event.
    #[must_use]
    pub fn renewed_as(mut self, other: &Row) -> Row {
        match (&mut self, other) {
            (Row::Effect(row), Row::Effect(other)) => row.lease_until = other.lease_until,
            (Row::Lease(row), Row::Lease(other)) => {
                for holder in &other.holders {
                    row.renew(holder.fence, holder.until);
                }
            }
            _ => {}
        }
        self
    }

    /// When its newest event was recorded.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        match self {
            Row::Action(row) => row.updated_at,
            Row::Approval(row) => row.updated_at,
            Row::Effect(row) => row.updated_at,
            Row::Policy(row) => row.updated_at,
            Row::Store(row) => row.updated_at,
            Row::Tool(row) => row.updated_at,
            Row::Call(row) => row.created_at,
            Row::Route(row) => row.updated_at,
            Row::Definition(row) => row.created_at,
            Row::Run(row) => row.updated_at,
            Row::Lease(row) => row.updated_at,
            Row::Request(row) => row.created_at,
            Row::Delivery(row) => row.created_at,
            Row::Task(row) => row.updated_at,
            Row::Plan(row) => row.updated_at,
            Row::Handoff(row) => row.updated_at,
        }
    }

    /// The packed halves: the one folded from open parts, the private one.
    #[must_use]
    pub fn packed(&self) -> (Vec<u8>, Vec<u8>) {
        match self {
            Row::Action(row) => (row.packed(), row.private.packed()),
            Row::Approval(row) => (row.packed(), row.private.packed()),
            Row::Effect(row) => (row.packed(), row.private.packed()),
            Row::Policy(row) => (row.packed(), Vec::new()),
            Row::Store(row) => (row.packed(), Vec::new()),
            Row::Tool(row) => (row.packed(), Vec::new()),
            Row::Call(row) => (row.packed(), row.private.packed()),
            Row::Route(row) => (row.packed(), row.private.packed()),
            Row::Definition(row) => (row.packed(), Vec::new()),
            Row::Run(row) => (row.packed(), row.private.packed()),
            Row::Lease(row) => (row.packed(), row.private.packed()),
            Row::Request(row) => (row.packed(), row.private.packed()),
            Row::Delivery(row) => (row.packed(), row.private.packed()),
            Row::Task(row) => (row.packed(), row.private.packed()),
            Row::Handoff(row) => (row.packed(), row.private.packed()),
            Row::Plan(row) => (row.packed(), Vec::new()),
        }
    }

    /// Reads the packed halves of a row of this kind of stream.
    ///
    /// # Errors
    /// [`Corrupt`] for bytes that were not written so.
    pub fn unpack(kind: StreamKind, open: &[u8], private: &[u8]) -> Result<Row, Corrupt> {
        Ok(match kind {
            StreamKind::Action => {
                Row::Action(ActionRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Approval => {
                Row::Approval(ApprovalRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Effect => {
                Row::Effect(EffectRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Call => {
                Row::Call(CallRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Route => {
                Row::Route(RouteRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Run => {
                Row::Run(RunRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Request => {
                Row::Request(RequestRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Lease => {
                Row::Lease(LeaseRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Delivery => {
                Row::Delivery(DeliveryRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Task => {
                Row::Task(TaskRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            StreamKind::Handoff => {
                Row::Handoff(HandoffRow { private: Pack::unpacked(private)?, ..Pack::unpacked(open)? })
            }
            // These have no private half.
            _ if !private.is_empty() => return Err(Corrupt("private half")),
            StreamKind::Policy => Row::Policy(Pack::unpacked(open)?),
            StreamKind::Store | StreamKind::Note => Row::Store(Pack::unpacked(open)?),
            StreamKind::Tool => Row::Tool(Pack::unpacked(open)?),
            StreamKind::Definition => Row::Definition(Pack::unpacked(open)?),
            StreamKind::Plan => Row::Plan(Pack::unpacked(open)?),
        })
    }
}
