//! The table of event kinds: name, number, version, open and sealed part.

use crate::action::event as action;
use crate::approval::event as approval;
use crate::effect::event as effect;
use crate::handoff::event as handoff;
use crate::id::{ActionId, ApprovalId, ReceiptId};
use crate::lease::event as lease;
use crate::operation::event as operation;
use crate::pack::{Corrupt, Pack};
use crate::policy::event as policy;
use crate::record::{Fields, Json, record, word};
use crate::route::event as route;
use crate::run::event as run;
use crate::store::event as store;
use crate::task::event as task;
use crate::tool::event as tool;

record! {
    /// Random ids of what an event concerns, besides its own stream.
    pub struct Refs {
        /// The action that holds or wants.
        action: Option<ActionId>,
        /// The approval.
        approval: Option<ApprovalId>,
        /// The receipt this event is the terminal answer of.
        receipt: Option<ReceiptId>,
    }
}

impl Refs {
    /// No ids.
    pub const NONE: Refs = Refs { action: None, approval: None, receipt: None };
}

record! {
    /// A part with nothing in it.
    pub struct Nothing {
    }
}

/// One recorded fact before it is numbered, salted and chained.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// Ids of what it concerns.
    pub refs: Refs,
    /// What happened.
    pub body: Body,
}

/// A line of the table of kinds.
#[derive(Debug, Clone, Copy)]
pub struct KindInfo {
    /// The kind.
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
    /// Fields of `data`.
    pub data: &'static [(&'static str, &'static str)],
    /// Fields of the sealed part.
    pub sealed: &'static [(&'static str, &'static str)],
}

macro_rules! kinds {
    ($($name:ident = $number:literal => $text:literal, $about:literal, $data:ty, $sealed:ty;)*) => {
        word! {
            /// A kind of event, version 1 each. An unlisted number does not decode.
            pub enum Kind { $(#[doc = $about] $name = $number => $text,)* }
        }

        /// What happened, with its open and its sealed part.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Body { $(#[doc = $about] $name($data, $sealed),)* }

        /// All kinds with their fields; `journal/kinds.md` is rendered from it.
        pub const KINDS: &[KindInfo] = &[$(KindInfo {
            kind: Kind::$name,
            about: $about,
            data: <$data as Fields>::FIELDS,
            sealed: <$sealed as Fields>::FIELDS,
        },)*];

        impl Body {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Body::$name(..) => Kind::$name,)* }
            }

            /// Appends the canonical text of the open part.
            pub fn write_data(&self, out: &mut String) {
                match self { $(Body::$name(data, _) => data.json(out),)* }
            }

            /// Appends the canonical text of the sealed part; `{}` if nothing is private.
            pub fn write_sealed(&self, out: &mut String) {
                match self { $(Body::$name(_, sealed) => sealed.json(out),)* }
            }

            /// Appends the packed open part.
            pub fn pack_data(&self, out: &mut Vec<u8>) {
                match self { $(Body::$name(data, _) => data.pack(out),)* }
            }

            /// Appends the packed sealed part.
            pub fn pack_sealed(&self, out: &mut Vec<u8>) {
                match self { $(Body::$name(_, sealed) => sealed.pack(out),)* }
            }

            /// Reads both packed parts of an event of this kind.
            ///
            /// # Errors
            /// [`Corrupt`] for bytes that were not written so.
            pub fn unpack(kind: Kind, data: &[u8], sealed: &[u8]) -> Result<Body, Corrupt> {
                Ok(match kind { $(Kind::$name => Body::$name(Pack::unpacked(data)?, Pack::unpacked(sealed)?),)* })
            }
        }
    };
}

kinds! {
    ActionStarted = 1 => "action.started", "An action may run: it holds its effect.",
        action::Started, action::ActionSealed;
    ActionWaiting = 2 => "action.waiting", "An action waits for the approval in `refs`.",
        action::Waiting, action::ActionSealed;
    ActionReady = 3 => "action.ready", "An action is permitted and not started.",
        action::Readied, action::ActionSealed;
    ActionEnded = 4 => "action.ended", "An action came to its terminal answer.",
        action::Ended, action::ActionSealed;
    ActionAnswered = 5 => "action.answered", "An action's unknown outcome became known.",
        action::Answered, Nothing;
    EffectAcquired = 10 => "effect.acquired", "An attempt of the action in `refs` took the effect.",
        effect::Acquired, effect::AcquiredSealed;
    EffectBegun = 11 => "effect.begun", "The attempt's executor may run.",
        effect::Begun, Nothing;
    EffectSettled = 12 => "effect.settled", "The attempt's holder reported its outcome.",
        effect::Settled, effect::SettledSealed;
    EffectLapsed = 13 => "effect.lapsed", "The attempt's lease ended without a report.",
        effect::Lapsed, Nothing;
    EffectReconciled = 14 => "effect.reconciled", "The remote answered for the attempt.",
        effect::Known, effect::KnownSealed;
    EffectResolved = 15 => "effect.resolved", "A person answered for the attempt.",
        effect::Known, effect::KnownSealed;
    EffectLate = 16 => "effect.late", "A holder reported after somebody else had answered.",
        effect::Late, effect::SettledSealed;
    EffectQueued = 17 => "effect.queued", "An operation in `refs` wants the effect attempted.",
        effect::Queued, effect::AcquiredSealed;
    EffectReturned = 18 => "effect.returned", "An attempt that had not begun was given back.",
        effect::Returned, Nothing;
    EffectReleased = 19 => "effect.released", "What was queued was called off; the key is free.",
        effect::Released, Nothing;
    ApprovalRequested = 20 => "approval.requested", "People are asked about the action in `refs`.",
        approval::Requested, approval::RequestedSealed;
    ApprovalAnswered = 21 => "approval.answered", "A person answered.",
        approval::Responded, approval::PersonSealed;
    ApprovalExpired = 22 => "approval.expired", "The approval's time was over.",
        approval::Expired, Nothing;
    ApprovalRevoked = 23 => "approval.revoked", "The approval was taken back.",
        approval::Revoked, approval::PersonSealed;
    ApprovalConsumed = 24 => "approval.consumed", "The action in `refs` used the approval.",
        approval::Consumed, Nothing;
    PolicyActivated = 30 => "policy.activated", "A policy became the active one; its text is the payload.",
        policy::Activated, policy::ActivatedSealed;
    StoreCreated = 40 => "store.created", "The tenant was made in this store.",
        store::Created, store::CreatedSealed;
    StoreAccepted = 41 => "store.accepted", "A person accepted that the store went back.",
        store::Accepted, store::AcceptedSealed;
    NoteAppended = 50 => "note.appended", "Foreign evidence; the body is the payload.",
        Nothing, store::NoteSealed;
    ToolActivated = 60 => "tool.activated", "A contract of a tool may be dispatched; its text is the payload.",
        tool::Activated, tool::ActivatedSealed;
    ToolRetired = 61 => "tool.retired", "A contract of a tool is dispatched no more.",
        tool::Retired, Nothing;
    CallBound = 70 => "call.bound", "A call's identity was used, once and for ever.",
        operation::Bound, operation::BoundSealed;
    ActionQueued = 80 => "action.queued", "A worker is to carry the action out.",
        operation::Queued, operation::QueuedSealed;
    ActionDelayed = 81 => "action.delayed", "The action is carried out later.",
        operation::Delayed, Nothing;
    ActionParked = 82 => "action.parked", "The action is not carried out until somebody says so.",
        operation::Parked, Nothing;
    ActionRetried = 83 => "action.retried", "A person wants a parked or delayed action carried out.",
        operation::Retried, operation::PersonSaid;
    ActionCancelled = 84 => "action.cancelled", "A person called a queued action off.",
        operation::Cancelled, operation::PersonSaid;
    RouteFailed = 90 => "route.failed", "The attempt of the action in `refs` could not reach its destination.",
        route::Failed, route::FailedSealed;
    RouteOpened = 91 => "route.opened", "Nothing is attempted at the destination for a while.",
        route::Opened, Nothing;
    RouteProbed = 92 => "route.probed", "The action in `refs` is attempted, to see whether the destination answers.",
        route::Probe, Nothing;
    RouteClosed = 93 => "route.closed", "The destination answers, or a person says so.",
        route::Closed, operation::PersonSaid;
    RunStarted = 100 => "run.started", "A run was started.",
        run::Started, run::StartedSealed;
    RunMoved = 101 => "run.moved", "A run went on to another state.",
        run::Moved, run::AskedBy;
    RunNamed = 102 => "run.named", "A run's change has a name now.",
        run::Named, run::NamedSealed;
    RunInterrupted = 103 => "run.interrupted", "Nobody works on the run any more.",
        run::Moved, Nothing;
    RunBound = 104 => "run.bound", "A delivery was bound at a gate of the run.",
        run::GateBound, run::AskedBy;
    RequestAnswered = 110 => "request.answered", "A request was answered, and is answered so from now on.",
        run::Answered, run::AnsweredSealed;
    DefinitionAdded = 120 => "definition.added", "A definition was first used; its text is the payload.",
        run::Added, run::AddedSealed;
    LeaseTaken = 130 => "lease.taken", "A holder took the resource.",
        lease::Taken, lease::TakenSealed;
    LeaseCommitted = 131 => "lease.committed", "A lease was given up with an outcome, which is the payload.",
        lease::Committed, lease::CommittedSealed;
    LeaseInterrupted = 132 => "lease.interrupted", "A lease was given up without an outcome.",
        lease::Ended, Nothing;
    LeaseLapsed = 133 => "lease.lapsed", "A lease ended without a word.",
        lease::Ended, Nothing;
    LeasePreempted = 134 => "lease.preempted", "An operator ended every lease on the resource.",
        lease::Preempted, operation::PersonSaid;
    DeliveryBound = 140 => "delivery.bound", "A delivery was bound, proven by the action in `refs` if there is one.",
        run::Bound, run::BoundSealed;
    TaskAdded = 150 => "task.added", "A task is in the run's plan as it is said here; its text is the payload.",
        task::Added, task::AddedSealed;
    TaskRenumbered = 151 => "task.renumbered", "A task has another number in the plan.",
        task::Renumbered, Nothing;
    TaskQueued = 152 => "task.queued", "A task waits for its turn.",
        task::Queued, Nothing;
    TaskTaken = 153 => "task.taken", "A worker took the task.",
        task::TaskTaken, run::AskedBy;
    TaskMoved = 154 => "task.moved", "A task went on, or stopped.",
        task::TaskMoved, task::TaskMovedSealed;
    TaskGranted = 155 => "task.granted", "A person gave a task its attempts back.",
        task::Granted, operation::PersonSaid;
    TaskDropped = 156 => "task.dropped", "A task is in the run's plan no more.",
        task::Dropped, Nothing;
    PlanSet = 160 => "plan.set", "A run's plan was set.",
        task::Planned, run::AskedBy;
    HandoffPrepared = 170 => "handoff.prepared", "A resource is to be handed over; the facts are the payload.",
        handoff::Prepared, handoff::PreparedSealed;
    HandoffAccepted = 171 => "handoff.accepted", "Somebody has the resource that was handed over.",
        handoff::Accepted, run::AskedBy;
    HandoffWithdrawn = 172 => "handoff.withdrawn", "The resource is not handed over.",
        handoff::Withdrawn, operation::PersonSaid;
}
