//! Commands: everything a caller may want changed.

use std::fmt;

use crate::action::{Acquire, Run};
use crate::approval::{Answer, Revocation};
use crate::effect::{Begin, Reconcile, Renew, Reserve, Resolve, Settle};
use crate::handoff::{AcceptHandoff, PrepareHandoff, WithdrawHandoff};
use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId, ReceiptId, RunId, uuid_v7};
use crate::lease::{AcquireLease, CommitLease, InterruptLease, RenewLease};
use crate::operation::{Cancel, Claim, Dispatch, GiveBack, Postpone, Query, Retry};
use crate::policy::Activate;
use crate::route::{CloseRoute, ReportRoute, TryRoute};
use crate::run::{BindChange, BindDeliveries, StartRun, Transition};
use crate::store::{Accept, Note};
use crate::stream::StreamId;
use crate::task::{GrantAttempts, MoveTask, PlanTasks, QueueTask, TakeTask};
use crate::tool::Declare;

/// A command with what makes its ids and salts.
#[derive(Debug, Clone)]
pub struct Stamped {
    /// What is wanted.
    pub command: Command,
    /// Unix milliseconds at which it was made; for ids only, never for rules.
    pub made_at: u64,
    /// 128 random bits.
    pub nonce: Nonce,
}

/// The random bits of a command. Never stored, logged or sent: whoever has
/// them can open the command's seals.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// What is wanted.
#[derive(Debug, Clone)]
pub enum Command {
    /// Propose, decide, acquire and begin, as far as asked and permitted.
    Run(Box<Run>),
    /// Go on with a recorded action.
    Acquire(Acquire),
    /// Take an effect without policy or approval.
    Reserve(Reserve),
    /// Permit a reserved attempt's executor to run.
    Begin(Begin),
    /// Move an attempt's lease.
    Renew(Renew),
    /// Report an attempt's outcome.
    Settle(Settle),
    /// The remote's word on an attempt.
    Reconcile(Reconcile),
    /// A person's word on an unknown outcome.
    Resolve(Resolve),
    /// Record that a lease, a request or a proposal has ended by itself.
    Lapse(StreamId),
    /// A person's answer to a request.
    Answer(Answer),
    /// Take an approval back.
    Revoke(Revocation),
    /// Make a policy the active one.
    Activate(Activate),
    /// Accept that the store went back in time.
    Accept(Accept),
    /// Keep foreign evidence.
    Note(Note),
    /// Have an action carried out by a worker.
    Dispatch(Box<Dispatch>),
    /// Take an operation that is due.
    Claim(Claim),
    /// Give a claimed attempt back that has not begun.
    GiveBack(GiveBack),
    /// Have an operation looked at again later.
    Postpone(Postpone),
    /// Ask what became of an operation.
    Query(Box<Query>),
    /// Have a parked or delayed operation attempted.
    Retry(Retry),
    /// Call an operation off.
    Cancel(Cancel),
    /// Ask whether an endpoint may be tried.
    TryRoute(TryRoute),
    /// Say whether an endpoint answered.
    ReportRoute(ReportRoute),
    /// A person's word that a destination answers.
    CloseRoute(CloseRoute),
    /// Start a run, or join it.
    StartRun(Box<StartRun>),
    /// Name the change of a run.
    BindChange(BindChange),
    /// Bind deliveries to a run.
    BindDeliveries(Box<BindDeliveries>),
    /// Move a run on.
    Transition(Transition),
    /// Set a run's plan.
    PlanTasks(Box<PlanTasks>),
    /// Take the task of a run that is next.
    TakeTask(TakeTask),
    /// Move a task on.
    MoveTask(Box<MoveTask>),
    /// Have a task that stopped attempted again.
    QueueTask(QueueTask),
    /// Give a task its attempts back.
    GrantAttempts(GrantAttempts),
    /// Take a resource.
    AcquireLease(Box<AcquireLease>),
    /// Move the end of a lease.
    RenewLease(RenewLease),
    /// Give a lease up with an outcome.
    CommitLease(CommitLease),
    /// Give a lease up without an outcome.
    InterruptLease(InterruptLease),
    /// Prepare a handoff.
    PrepareHandoff(Box<PrepareHandoff>),
    /// Accept a handoff.
    AcceptHandoff(AcceptHandoff),
    /// Let nobody accept a handoff.
    WithdrawHandoff(WithdrawHandoff),
    /// Make a contract of a tool active, or active no more.
    Declare(Declare),
    /// Record the tenant's first event, once.
    Create,
}

impl Stamped {
    /// derive(kind, n) = SHA-256(`onceseal.derive.v1\n` ‖ nonce ‖ kind ‖ 0x00 ‖ n as
    /// u32 big-endian): deciding twice gives the same ids.
    fn derive(&self, kind: &str, n: u32) -> [u8; 32] {
        Hash::of("onceseal.derive.v1\n", &[&self.nonce.0, kind.as_bytes(), &[0], &n.to_be_bytes()]).0
    }

    /// The command's id in its events.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id.copy_from_slice(&self.derive("command", 0)[..16]);
        id
    }

    /// The salt of its n-th event's private part.
    #[must_use]
    pub fn salt(&self, n: u32) -> [u8; 32] {
        self.derive("salt", n)
    }

    /// The salt of its n-th payload.
    #[must_use]
    pub fn payload_salt(&self, n: u32) -> [u8; 32] {
        self.derive("payload", n)
    }

    /// A new action's id.
    #[must_use]
    pub fn action(&self) -> ActionId {
        self.action_within(0)
    }

    /// The id of the n-th action that it does itself.
    #[must_use]
    pub fn action_within(&self, n: u32) -> ActionId {
        ActionId(uuid_v7(self.made_at, self.derive(ActionId::PREFIX, n)))
    }

    /// A new approval's id.
    #[must_use]
    pub fn approval(&self) -> ApprovalId {
        ApprovalId(uuid_v7(self.made_at, self.derive(ApprovalId::PREFIX, 0)))
    }

    /// A new run's id.
    #[must_use]
    pub fn run(&self) -> RunId {
        RunId(uuid_v7(self.made_at, self.derive(RunId::PREFIX, 0)))
    }

    /// A new receipt's id.
    #[must_use]
    pub fn receipt(&self, n: u32) -> ReceiptId {
        ReceiptId(uuid_v7(self.made_at, self.derive(ReceiptId::PREFIX, n)))
    }

    /// A new note's stream.
    #[must_use]
    pub fn note(&self) -> [u8; 16] {
        uuid_v7(self.made_at, self.derive("note_", 0))
    }
}
