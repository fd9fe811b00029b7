//! The two ways into an action: a proposal, and the id of a recorded one.
//!
//! Whatever the way, the state of the action is looked at first, then the
//! policy decides; what follows stands in `permit`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::action::event::Decided;
use crate::action::permit::decide;
use crate::action::refuse::{No, conclude, ended, queued, running};
use crate::action::{ActionRow, ActionState, Answer, Proposal};
use crate::approval::Asked;
use crate::case::Case;
use crate::code::Code;
use crate::id::{ActionId, ApprovalId};
use crate::limits;
use crate::operation::Order;
use crate::policy::{ActivePolicy, DEFAULT_DEADLINE, DEFAULT_LEASE, Verdict};
use crate::reply::Reply;
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::Halt;

/// How far a call wants to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Recorded and permitted.
    Ready,
    /// Its effect taken; the executor may not run yet.
    Reserved,
    /// The executor may run: the usual path, one durable write.
    Executing,
}

/// Propose an action, and go as far as wanted and permitted.
#[derive(Debug, Clone)]
pub struct Run {
    /// The proposal.
    pub proposal: Proposal,
    /// Its id, to resume an action; a new one if absent.
    pub action: Option<ActionId>,
    /// An approval to use.
    pub approval: Option<ApprovalId>,
    /// How far.
    pub reach: Reach,
    /// A shorter lease than the policy's.
    pub lease: Option<Span>,
    /// A shorter deadline than the policy's.
    pub deadline: Option<Span>,
}

/// Go on with a recorded action.
#[derive(Debug, Clone)]
pub struct Acquire {
    /// The action.
    pub action: ActionId,
    /// An approval to use instead of the one it waits for.
    pub approval: Option<ApprovalId>,
    /// How far.
    pub reach: Reach,
    /// A shorter lease than the policy's.
    pub lease: Option<Span>,
    /// A shorter deadline than the policy's.
    pub deadline: Option<Span>,
}

/// What a permitted action comes to.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    /// An attempt of the caller's own.
    Attempt {
        /// How far.
        reach: Reach,
        /// Its lease.
        lease: Span,
        /// How long it may last.
        deadline: Span,
    },
    /// A worker carries it out.
    Order(&'a Order<'a>),
}

/// A call with all that was found of it.
pub(crate) struct Wish<'a> {
    pub(crate) id: ActionId,
    pub(crate) known: Option<ActionRow>,
    pub(crate) proposal: &'a Proposal,
    pub(crate) policy: Arc<ActivePolicy>,
    pub(crate) decided: Decided,
    pub(crate) presented: Option<ApprovalId>,
    pub(crate) goal: Goal<'a>,
}

impl<'a> Wish<'a> {
    /// A call of an action that has this id, decided by the policy.
    pub(crate) fn new(
        id: ActionId,
        known: Option<ActionRow>,
        proposal: &'a Proposal,
        policy: Arc<ActivePolicy>,
        goal: Goal<'a>,
    ) -> Wish<'a> {
        let (decision, reason) = match proposal.unfit() {
            Some(code) => (Verdict::Deny, code.to_string()),
            None => {
                let decision = policy.policy.decide(&proposal.facts());
                (decision.verdict, decision.reason.to_string())
            }
        };
        let decided = Decided { decision, policy: policy.hash, reason };
        Wish { id, known, proposal, policy, decided, presented: None, goal }
    }

    /// The key that it is attempted under.
    pub(crate) fn key(&self) -> String {
        match self.goal {
            Goal::Attempt { .. } => self.proposal.key_for(self.id),
            Goal::Order(order) => order.key(self.proposal),
        }
    }

    /// What a person would be asked for.
    pub(crate) fn asks(&self) -> Asked<'a> {
        match self.goal {
            Goal::Attempt { .. } => Asked::of(self.proposal),
            Goal::Order(order) => Asked {
                effect_key: Some(order.key(self.proposal)),
                contract: Some(order.tool.digest),
                ..Asked::of(self.proposal)
            },
        }
    }

    /// The request that the action waits for.
    pub(crate) fn waits_for(&self) -> Option<ApprovalId> {
        match self.known.as_ref()?.state {
            ActionState::Waiting { approval } => Some(approval),
            _ => None,
        }
    }
}

pub(crate) fn run(case: &mut Case<'_>, run: &Run) -> Result<Reply, Halt> {
    let Some(policy) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    if run.proposal.policy() != policy.hash {
        return Ok(Reply::PolicyStale { active: policy.hash });
    }
    let id = run.action.unwrap_or_else(|| case.command.action());
    let known = case.view.action(id)?.cloned();
    let mut proposal = Cow::Borrowed(&run.proposal);
    if let Some(row) = &known {
        match &row.private.proposal {
            None => return Ok(Code::Erased.into()),
            Some(proposed) if proposed.action_hash == proposal.action_hash() => {}
            // Another call, or hashed under a policy that redacted or named otherwise.
            Some(_) => match recorded(case, &policy, id, row)? {
                Ok(recorded) if recorded.is_same_call(&proposal) => proposal = Cow::Owned(recorded),
                Ok(_) | Err(Code::OutOfBounds) => return Ok(Code::IdReused.into()),
                Err(code) => return Ok(code.into()),
            },
        }
    }
    let Run { approval, reach, lease, deadline, .. } = *run;
    proceed(case, &proposal, policy, Call { id, known, approval, reach, lease, deadline })
}

pub(crate) fn acquire(case: &mut Case<'_>, acquire: &Acquire) -> Result<Reply, Halt> {
    let Some(policy) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    let id = acquire.action;
    let Some(known) = case.view.action(id)?.cloned() else { return Ok(Code::ActionUnknown.into()) };
    if let Some(answer) = ended(case, id, &known)? {
        return Ok(answer);
    }
    let proposal = match recorded(case, &policy, id, &known)? {
        Ok(proposal) => proposal,
        Err(code) => return Ok(code.into()),
    };
    let Acquire { approval, reach, lease, deadline, .. } = *acquire;
    proceed(case, &proposal, policy, Call { id, known: Some(known), approval, reach, lease, deadline })
}

/// What was proposed under this id, as the active policy takes it; its hashes
/// are those it was proposed with.
fn recorded(
    case: &Case<'_>,
    policy: &ActivePolicy,
    id: ActionId,
    row: &ActionRow,
) -> Result<Result<Proposal, Code>, Halt> {
    let payload = case.view.payload(StreamId::action(id), 1)?;
    let (Some(proposed), Some(payload)) = (&row.private.proposal, payload) else {
        return Ok(Err(Code::Erased));
    };
    if payload.hash() != proposed.arguments {
        return Err(Halt::Unreadable);
    }
    // The policy's entry may no longer take what was once proposed.
    let restored = Proposal::restore(&case.pinned.tenant, policy, proposed, &payload.text);
    Ok(restored.map_err(|_| Code::OutOfBounds))
}

struct Call {
    id: ActionId,
    known: Option<ActionRow>,
    approval: Option<ApprovalId>,
    reach: Reach,
    lease: Option<Span>,
    deadline: Option<Span>,
}

/// The policy that is active now.
pub(crate) fn active_policy(case: &Case<'_>) -> Result<Option<Arc<ActivePolicy>>, Halt> {
    let Some(row) = case.view.policy(case.pinned)? else { return Ok(None) };
    match case.pinned.policy(row.active)? {
        Some(policy) => Ok(Some(policy.clone())),
        None => Err(Halt::Unreadable),
    }
}

fn proceed(
    case: &mut Case<'_>,
    proposal: &Proposal,
    policy: Arc<ActivePolicy>,
    call: Call,
) -> Result<Reply, Halt> {
    let Call { id, known, approval, reach, lease, deadline } = call;
    if let Some(row) = &known
        && let Some(answer) = ended(case, id, row)?
    {
        return Ok(answer);
    }
    let entry = policy.policy.entry(proposal.name());
    let most = match entry {
        Some(entry) => {
            let lease = entry.lease_or(DEFAULT_LEASE);
            (lease, entry.deadline_for(lease))
        }
        None => (DEFAULT_LEASE, DEFAULT_DEADLINE),
    };
    let (lease, deadline) = (lease.unwrap_or(most.0), deadline.unwrap_or(most.1));
    let fits = lease >= limits::LEASE_MIN && lease <= most.0 && deadline > Span::ZERO && deadline <= most.1;
    let mut wish = Wish::new(id, known, proposal, policy, Goal::Attempt { reach, lease, deadline });
    wish.presented = approval;
    match wish.known.as_ref().map(|row| row.state.clone()) {
        Some(ActionState::Running { .. }) => return running(case, &wish),
        // It is a worker's: nobody else attempts it.
        Some(ActionState::Queued { .. } | ActionState::Parked { .. }) => return queued(case, &wish),
        _ if !fits => return Ok(Code::OutOfBounds.into()),
        Some(state) if state.over(case.now) => {
            return conclude(case, &wish, No::terminal(Answer::Blocked, Code::NotStarted));
        }
        Some(ActionState::Waiting { approval }) => wish.presented = wish.presented.or(Some(approval)),
        _ => {}
    }
    decide(case, wish)
}
