//! What a command answers. A refusal is an answer, not an error.

use crate::action::Answer;
use crate::action::event::Proposed;
use crate::approval::Status;
use crate::code::Code;
use crate::effect::EffectState;
use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId, ReceiptId};
use crate::lease::{Holder, Lease};
use crate::operation::Intent;
use crate::run;
use crate::run::event::Answered;
use crate::stream::StreamId;
use crate::task::TaskState;
use crate::time::{Span, Timestamp};

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An attempt is handed out, here and never again.
    Attempt(Attempt),
    /// The action is recorded and permitted; it may be acquired until then.
    Ready {
        /// The action.
        action: ActionId,
        /// Until here, inclusive.
        until: Timestamp,
    },
    /// A person must answer first. The action waits.
    ApprovalNeeded {
        /// The waiting action, which may be an earlier, identical one.
        action: ActionId,
        /// The request.
        approval: ApprovalId,
        /// When the request ends.
        expires_at: Timestamp,
        /// Whether the request was there before this command.
        joined: bool,
    },
    /// The action has its terminal answer already.
    Ended {
        /// The action.
        action: ActionId,
        /// The answer.
        result: Answer,
        /// Why, unless committed.
        code: Option<Code>,
        /// Its receipt.
        receipt: ReceiptId,
        /// Where its result is, if it has one.
        stored: Option<(StreamId, u64)>,
    },
    /// The effect's state after a report or an answer for it.
    Settled {
        /// Where the effect stands.
        state: EffectState,
        /// The action's receipt, if the holder is a recorded action.
        receipt: Option<ReceiptId>,
        /// Whether it was so before this command.
        repeated: bool,
    },
    /// The lease now ends here.
    Renewed {
        /// The end, inclusive.
        lease_until: Timestamp,
    },
    /// Where the approval stands after an answer or a revocation.
    Approval {
        /// Its status.
        status: Status,
        /// Distinct people who said yes.
        yes: u32,
        /// How many are needed.
        quorum: u32,
        /// Whether it was so before this command.
        repeated: bool,
    },
    /// The policy with this hash is active.
    Policy {
        /// Its hash.
        active: Hash,
        /// Whether this command made it so.
        changed: bool,
    },
    /// Another policy is active than the proposal was prepared under.
    PolicyStale {
        /// The active one.
        active: Hash,
    },
    /// Where an operation stands.
    Operation(Box<OperationNow>),
    /// Where a run stands, and what was answered.
    Run(Box<RunNow>),
    /// A task, handed to its worker.
    Task(Box<TaskNow>),
    /// A lease, handed to its holder.
    Lease(Box<LeaseNow>),
    /// An attempt is handed to a worker, here and never again.
    Claimed(Box<Attempt>, Box<Job>),
    /// What only the outside knows must be known first: nothing was recorded,
    /// and the command is to be repeated with the answer.
    Ask(Question),
    /// Done, or there was nothing to do.
    Done {
        /// Whether anything was recorded.
        changed: bool,
    },
    /// No.
    Refused(Box<Refusal>),
}

/// A permitted attempt: what its holder must name in every later command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The action.
    pub action: ActionId,
    /// The effect's stream.
    pub effect: StreamId,
    /// The effect key; `None` if the action has none of its own.
    pub key: Option<String>,
    /// The attempt's number.
    pub fence: u64,
    /// When it was handed out, by the store's clock.
    pub taken_at: Timestamp,
    /// The holder may act until here, inclusive, without renewing.
    pub lease_until: Timestamp,
    /// However often renewed, the lease ends here.
    pub deadline: Timestamp,
    /// The lease that was given, for renewals.
    pub lease: Span,
    /// Whether the executor may run now.
    pub begun: bool,
    /// The approval that was used for it.
    pub approval: Option<ApprovalId>,
}

/// Where an operation stands, as its caller may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationNow {
    /// Its action.
    pub action: ActionId,
    /// The opaque reference under which it may be asked about.
    pub status_ref: String,
    /// Where it stands.
    pub standing: Standing,
    /// Whether it was accepted before this command.
    pub repeated: bool,
}

/// A lease as its holder has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseNow {
    /// What proves it.
    pub lease: Lease,
    /// Whether others may hold the resource too.
    pub shared: bool,
    /// It ends here unless it is renewed, inclusive.
    pub until: Timestamp,
}

/// A task as its worker gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNow {
    /// The lease on it.
    pub lease: LeaseNow,
    /// Its id.
    pub task: String,
    /// Where it stands: running, or validating where its worker had it before.
    pub state: TaskState,
    /// The phase that it is in.
    pub phase: String,
    /// What it is, as canonical JSON.
    pub spec: String,
}

/// What was answered of a run, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNow {
    /// The answer, which is the first one if the request was made before.
    pub answered: Answered,
    /// Whether the request was made before.
    pub replayed: bool,
    /// Where the run stands now.
    pub now: run::Standing,
}

/// Where an operation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It waits for a worker.
    Queued {
        /// Not attempted before.
        due: Timestamp,
    },
    /// A worker attempts it.
    Running {
        /// The end of its lease, unless renewed.
        lease_until: Option<Timestamp>,
    },
    /// Nobody attempts it until a person says so.
    Parked {
        /// Why.
        code: Code,
    },
    /// Nobody knows whether it happened; it is looked into, or a person's word
    /// is waited for.
    Unknown,
    /// It has its terminal answer.
    Ended {
        /// The answer.
        result: Answer,
        /// Why, unless committed.
        code: Option<Code>,
        /// Its receipt.
        receipt: ReceiptId,
        /// Where its result is, if it has one.
        stored: Option<(StreamId, u64)>,
    },
}

/// What a worker needs to carry an operation out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The action.
    pub action: ActionId,
    /// The contract under which it was accepted.
    pub contract: Hash,
    /// The policy that decided it.
    pub policy: Hash,
    /// The effect.
    pub effect: StreamId,
    /// The newest attempt.
    pub fence: u64,
    /// The key under which the remote tells attempts of one wish.
    pub provider_key: String,
    /// The proposal as it was made.
    pub proposed: Proposed,
    /// Its arguments, as canonical text.
    pub arguments: String,
    /// The call that asked for it.
    pub intent: Intent,
}

/// What must be asked outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Whether the tool's business rule permits it now.
    BusinessRule,
    /// What the remote knows of this operation's last attempt.
    Remote {
        /// When this was asked, by the store's clock.
        asked_at: Timestamp,
        /// What is asked about.
        job: Box<Job>,
    },
}

/// A "no", with all that a program needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// The policy's reason, where the policy denied: `rule[0]`, …
    pub reason: Option<String>,
    /// What of the request it is about: `created > applying`, `gate-a 3`, …
    pub detail: Option<String>,
    /// The member that did not match, where something had to match.
    pub field: Option<&'static str>,
    /// The recorded action, if one was recorded.
    pub action: Option<ActionId>,
    /// Its receipt.
    pub receipt: Option<ReceiptId>,
    /// Whether the same was refused within the last minute, and nothing recorded.
    pub repeated: bool,
    /// The approval concerned.
    pub approval: Option<ApprovalId>,
    /// Where the approval stands, where that is why.
    pub status: Option<Status>,
    /// The effect as it is now, where that is why.
    pub effect: Option<EffectNow>,
    /// Who holds what, where that is why.
    pub held: Option<Box<Held>>,
}

impl Refusal {
    /// A refusal with nothing but its code.
    #[must_use]
    pub const fn new(code: Code) -> Refusal {
        Refusal {
            code,
            reason: None,
            detail: None,
            field: None,
            action: None,
            receipt: None,
            repeated: false,
            approval: None,
            status: None,
            effect: None,
            held: None,
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::Refused(Box::new(refusal))
    }
}

impl From<Code> for Reply {
    fn from(code: Code) -> Reply {
        Refusal::new(code).into()
    }
}

/// A lease that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What is held, as it is printed: what was asked for, a part of it, or what it
    /// is a part of.
    pub resource: Option<String>,
    /// By whom.
    pub by: Holder,
}

/// An effect as a refusal names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectNow {
    /// Its stream.
    pub stream: StreamId,
    /// Where it stands.
    pub state: EffectState,
    /// The newest attempt.
    pub fence: u64,
    /// The end of a live lease.
    pub lease_until: Option<Timestamp>,
    /// Whether the holder asked for the same; `None` if that is not recorded.
    pub same_intent: Option<bool>,
    /// For the same intent: the holder's receipt.
    pub receipt: Option<ReceiptId>,
    /// For the same intent and principal: where the result is, if it has one.
    pub stored: Option<(StreamId, u64)>,
}
