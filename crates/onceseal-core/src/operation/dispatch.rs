//! Accepting an operation, once for each scope.

use std::sync::Arc;

use crate::action::{self, ActionRow, ActionState, Answer, Goal, No, Principal, Proposal, Wish, scope_key};
use crate::approval::{self, Check};
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId};
use crate::operation::call::bind;
use crate::operation::event::Intent;
use crate::operation::order::{Order, Rule};
use crate::operation::standing::standing;
use crate::operation::{CallIdentity, Purpose, Scope};
use crate::policy::Verdict;
use crate::reply::{Reply, Standing};
use crate::stream::StreamId;
use crate::tool::Tool;
use crate::view::{Halt, Range};

/// Have an action carried out by a worker.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The proposal; its name is the tool's.
    pub proposal: Proposal,
    /// The contract under which it is to be carried out, which must be active.
    pub contract: Hash,
    /// The call that asks for it.
    pub call: CallIdentity,
    /// Approvals that may be used for it.
    pub approvals: Vec<ApprovalId>,
    /// What the tool's business rule says, once it has been asked.
    pub permitted: Option<bool>,
}

impl Principal {
    /// On whose behalf: the user's, or `agent:` and the agent's name. No user is
    /// taken for an agent: one whose name begins so has `user:` before it.
    #[must_use]
    pub fn subject(&self) -> String {
        match &self.user {
            None => format!("agent:{}", self.agent),
            Some(user) if user.starts_with("agent:") || user.starts_with("user:") => format!("user:{user}"),
            Some(user) => user.clone(),
        }
    }
}

pub(crate) fn dispatch(case: &mut Case<'_>, dispatch: &Dispatch) -> Result<Reply, Halt> {
    let Some(policy) = action::active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    let Dispatch { proposal, call, .. } = dispatch;
    if proposal.policy() != policy.hash {
        return Ok(Reply::PolicyStale { active: policy.hash });
    }
    if call.check().is_err() {
        return Ok(Code::CallInvalid.into());
    }
    let Some(tool) = active_tool(case, proposal.name(), dispatch.contract)? else {
        return Ok(Code::ToolUnknown.into());
    };
    let Some(key) = &call.idempotency_key else { return Ok(Code::IdempotencyKeyRequired.into()) };
    let (tenant, subject) = (&case.pinned.tenant, &proposal.principal().subject());
    let scope = Scope { tenant: &tenant.name, subject, tool: proposal.name(), key };
    let request = scope.request(proposal.text(), tool.contract.revisions());
    let intent = Intent {
        adapter_revision: call.adapter_revision.clone(),
        api_family: call.api_family.clone(),
        call_id: call.call_id.clone(),
        key: key.clone(),
        operation_id: call.operation_id.clone(),
        provider: call.provider.clone(),
        request,
        response_id: call.response_id.clone(),
        status_ref: scope.status_ref(&tenant.key, request),
        subject: subject.to_owned(),
    };
    let rule = match dispatch.permitted {
        _ if !tool.contract.business_rule => Rule::Permits,
        Some(true) => Rule::Permits,
        Some(false) => Rule::Forbids,
        None => Rule::Unasked,
    };
    let order = Order { tool: &tool, scope: scope.blinded(&tenant.key), intent, rule };
    let mut wish = Wish::new(case.command.action(), None, proposal, policy, Goal::Order(&order));
    if !bind(case, subject, call, Purpose::Dispatch, request)? {
        return action::conclude(case, &wish, No::terminal(Answer::Blocked, Code::CallIdConflict));
    }
    if let Some((id, row)) = find(case, order.scope)? {
        let (Some(first), Some(proposed)) = (&row.private.intent, &row.private.proposal) else {
            return Ok(Code::Erased.into());
        };
        let there = (proposed.environment.as_str(), proposed.resource.as_deref());
        let same =
            is_same(first, &order.intent) && there == (proposal.facts().environment, proposal.resource());
        if !same {
            return action::conclude(case, &wish, No::terminal(Answer::Blocked, Code::IdempotencyConflict));
        }
        let reply = standing(case, id, &row, true)?;
        // A result is for whoever it was made for.
        return Ok(if proposed.agent == proposal.principal().agent { reply } else { without_result(reply) });
    }
    if wish.decided.decision == Verdict::Approve {
        adopt(case, &mut wish, &dispatch.approvals)?;
    }
    action::decide(case, wish)
}

fn without_result(mut reply: Reply) -> Reply {
    if let Reply::Operation(now) = &mut reply
        && let Standing::Ended { stored, .. } = &mut now.standing
    {
        *stored = None;
    }
    reply
}

/// The contract of this digest, if the tool may be dispatched under it.
fn active_tool(case: &Case<'_>, name: &str, contract: Hash) -> Result<Option<Arc<Tool>>, Halt> {
    let row = case.view.tool(&case.pinned.tenant.tool(name))?;
    if !row.is_some_and(|row| row.active.contains(&contract)) {
        return Ok(None);
    }
    case.pinned.tool(contract).cloned().map(Some)
}

/// The operation of this scope.
fn find(case: &Case<'_>, scope: Hash) -> Result<Option<(ActionId, ActionRow)>, Halt> {
    let range = Range { limit: 1, ..Range::equal(scope_key(scope)) };
    let Some(stream) = case.view.range(&range)?.first().copied() else { return Ok(None) };
    let id = ActionId(stream.name);
    let row = case.view.action(id)?.cloned().ok_or(Halt::Unreadable)?;
    Ok(Some((id, row)))
}

/// Whether both calls ask for the same, under one provider profile.
pub(super) fn is_same(first: &Intent, other: &Intent) -> bool {
    first.request == other.request
        && (&first.provider, &first.api_family, &first.adapter_revision)
            == (&other.provider, &other.api_family, &other.adapter_revision)
}

/// Presents the smallest approval by id that permits this, or else the smallest.
/// The action that waits for it is the one to go on.
fn adopt(case: &Case<'_>, wish: &mut Wish<'_>, approvals: &[ApprovalId]) -> Result<(), Halt> {
    let mut given = approvals.to_vec();
    given.sort();
    for id in &given {
        let check = approval::check(case, *id, &wish.asks(), &wish.policy)?;
        if matches!(check, Check::Usable) {
            wish.presented = Some(*id);
            let Some(row) = case.view.approval(*id)? else { return Err(Halt::Unreadable) };
            let waiting = case.view.action(row.action)?;
            if waiting.is_some_and(|waiting| waiting.state == ActionState::Waiting { approval: *id }) {
                (wish.id, wish.known) = (row.action, waiting.cloned());
            }
            return Ok(());
        }
    }
    wish.presented = given.first().copied();
    Ok(())
}

/// What a dispatch reads on its usual path.
pub(crate) fn reads(
    pinned: &crate::view::Pinned,
    dispatch: &Dispatch,
    action: ActionId,
) -> Vec<crate::view::Read> {
    use crate::view::Read;
    let (tenant, proposal) = (&pinned.tenant, &dispatch.proposal);
    let subject = &proposal.principal().subject();
    let mut reads = vec![
        Read::Stream(pinned.policy_stream),
        Read::Stream(tenant.tool(proposal.name())),
        Read::Stream(tenant.call(subject, &dispatch.call)),
        Read::Stream(StreamId::action(action)),
    ];
    if let Some(key) = &dispatch.call.idempotency_key {
        let scope = Scope { tenant: &tenant.name, subject, tool: proposal.name(), key };
        let blinded = scope.blinded(&tenant.key);
        reads.push(Read::Range(Range { limit: 1, ..Range::equal(scope_key(blinded)) }));
        let own = || crate::operation::order::own_key(blinded);
        reads.push(Read::Stream(tenant.effect(&proposal.effect_key().map_or_else(own, str::to_owned))));
    }
    reads.extend(dispatch.approvals.iter().map(|id| Read::Stream(StreamId::approval(*id))));
    reads
}
