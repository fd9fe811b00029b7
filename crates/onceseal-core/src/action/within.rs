//! An action that is done by the very transaction that decides it: what it does
//! is recorded in this store and nowhere else, so nothing can be unknown of it.

use std::sync::Arc;

use crate::action::end::{End, end, end_waiting};
use crate::action::event::Started;
use crate::action::permit::first;
use crate::action::run::{Goal, Reach, Wish, active_policy};
use crate::action::{Action, ActionState, Answer, Proposal};
use crate::approval::{self, Asked, Check};
use crate::case::Case;
use crate::code::Code;
use crate::effect::event::{Settled, SettledSealed};
use crate::effect::{self, Gate, Outcome, Take};
use crate::id::{ActionId, ApprovalId};
use crate::journal::{Body, Refs};
use crate::policy::{ActivePolicy, DEFAULT_DEADLINE, DEFAULT_LEASE, Verdict};
use crate::reply::Refusal;
use crate::stream::StreamId;
use crate::view::Halt;

/// An action that an approval permits, not done yet.
pub(crate) struct Within {
    id: ActionId,
    proposal: Proposal,
    policy: Arc<ActivePolicy>,
    approval: ApprovalId,
    effect: StreamId,
    fence: u64,
}

impl Within {
    /// Its id.
    pub(crate) const fn action(&self) -> ActionId {
        self.id
    }

    /// The effect that it takes.
    pub(crate) const fn effect(&self) -> StreamId {
        self.effect
    }
}

/// Whether this approval permits this action now; nothing is recorded but a lapse
/// that is met. `n` tells the actions of one command apart.
pub(crate) fn may_carry_out(
    case: &mut Case<'_>,
    action: Action,
    approval: ApprovalId,
    n: u32,
) -> Result<Result<Within, Refusal>, Halt> {
    let no = |code| Ok(Err(Refusal { approval: Some(approval), ..Refusal::new(code) }));
    let Some(policy) = active_policy(case)? else { return no(Code::PolicyMissing) };
    let Ok(proposal) = Proposal::prepare(&case.pinned.tenant, &policy, action) else {
        return no(Code::OutOfBounds);
    };
    match approval::check(case, approval, &Asked::of(&proposal), &policy)? {
        Check::Usable => {}
        Check::Refused { code, field, status } => {
            return Ok(Err(Refusal { approval: Some(approval), field, status, ..Refusal::new(code) }));
        }
        // Given under another rule, or by people who count no longer.
        Check::Anew(_) => return no(Code::ApprovalRevoked),
    }
    let Some(asked_for) = case.view.approval(approval)?.map(|row| row.action) else {
        return Err(Halt::Unreadable);
    };
    let waits =
        case.view.action(asked_for)?.is_some_and(|row| row.state == ActionState::Waiting { approval });
    let id = if waits { asked_for } else { case.command.action_within(n) };
    let wish = wish(case, id, &proposal, policy.clone())?;
    if wish.decided.decision == Verdict::Deny {
        return no(Code::PolicyDenied);
    }
    let key = wish.key();
    let most = policy.policy.entry(proposal.name()).and_then(|entry| entry.max_attempts);
    let fence = match effect::gate(case, &key, Some(&proposal), most)? {
        Gate::Refused { code, effect } => {
            let effect = Some(effect);
            return Ok(Err(Refusal { approval: Some(approval), effect, ..Refusal::new(code) }));
        }
        Gate::Free { fence } => fence,
    };
    let effect = case.pinned.tenant.effect(&key);
    Ok(Ok(Within { id, proposal, policy, approval, effect, fence }))
}

/// Records it as done: the approval is used, the effect is taken and committed,
/// and the action has its receipt.
pub(crate) fn carry_out(case: &mut Case<'_>, within: Within) -> Result<(), Halt> {
    let Within { id, proposal, policy, approval, effect, fence } = within;
    let asked_for = approval::consume(case, approval, id)?;
    if asked_for != id {
        end_waiting(case, asked_for, approval, Code::ApprovalUsed)?;
    }
    let wish = wish(case, id, &proposal, policy)?;
    let key = wish.key();
    let (lease, deadline) = (DEFAULT_LEASE, DEFAULT_DEADLINE);
    let approval = Some(approval);
    let take = Take { key: &key, action: id, approval, fence, lease, deadline, begun: true, again: false };
    effect::take(case, take)?;
    let (decided, sealed, payload) = first(case, &wish);
    let refs = Refs { approval, ..Refs::NONE };
    let started = Body::ActionStarted(Started { decided, effect, fence }, sealed);
    case.record_with(StreamId::action(id), refs, started, payload);
    let outcome = Outcome::Committed;
    let data = Settled { code: None, fence, outcome, remote_receipt: None, remote_request: None };
    let settled = Body::EffectSettled(data, SettledSealed { error: None, remote: None, result: None });
    case.record(effect, Refs { action: Some(id), ..Refs::NONE }, settled);
    let (result, code) = (Answer::Committed, None);
    end(case, End { action: id, result, code, approval: None, decided: None, proposal: None });
    Ok(())
}

fn wish<'a>(
    case: &Case<'_>,
    id: ActionId,
    proposal: &'a Proposal,
    policy: Arc<ActivePolicy>,
) -> Result<Wish<'a>, Halt> {
    let (reach, lease, deadline) = (Reach::Executing, DEFAULT_LEASE, DEFAULT_DEADLINE);
    let known = case.view.action(id)?.cloned();
    Ok(Wish::new(id, known, proposal, policy, Goal::Attempt { reach, lease, deadline }))
}
