//! From a proposal to an attempt, or to the reason why not.
//!
//! The order of checks is the acquire order of the design: state of the
//! action, template, policy, the effect's retry table before anybody is
//! asked, approval, the retry table, attempt limit.

use std::sync::Arc;

use crate::action::end::{End, end, end_waiting};
use crate::action::event::{ActionSealed, Decided, Readied, Started, Waiting};
use crate::action::row::refusal_key;
use crate::action::{ActionRow, ActionState, Answer, Proposal};
use crate::approval::{self, Check, Requested};
use crate::code::Code;
use crate::decide::Case;
use crate::effect::{self, Gate, Take};
use crate::id::{ActionId, ApprovalId};
use crate::journal::{Body, Payload, Refs};
use crate::limits;
use crate::policy::{ActivePolicy, DEFAULT_DEADLINE, DEFAULT_LEASE, Verdict};
use crate::reply::{Attempt, EffectNow, Refusal, Reply};
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::{Halt, Range};

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

/// A call with all that was found of it.
struct Wish<'a> {
    id: ActionId,
    known: Option<ActionRow>,
    proposal: &'a Proposal,
    policy: Arc<ActivePolicy>,
    decided: Decided,
    presented: Option<ApprovalId>,
    reach: Reach,
    lease: Span,
    deadline: Span,
}

pub(crate) fn run(case: &mut Case<'_>, run: &Run) -> Result<Reply, Halt> {
    let Some(policy) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    if run.proposal.policy() != policy.hash {
        return Ok(Reply::PolicyStale { active: policy.hash });
    }
    let id = run.action.unwrap_or_else(|| case.command.action());
    let known = case.view.action(id)?.cloned();
    if let Some(row) = &known {
        match &row.private.proposal {
            None => return Ok(Code::Erased.into()),
            Some(proposed) if proposed.action_hash != run.proposal.action_hash() => {
                return Ok(Code::IdReused.into());
            }
            Some(_) => {}
        }
    }
    proceed(
        case,
        &run.proposal,
        policy,
        Call {
            id,
            known,
            approval: run.approval,
            reach: run.reach,
            lease: run.lease,
            deadline: run.deadline,
        },
    )
}

pub(crate) fn acquire(case: &mut Case<'_>, acquire: &Acquire) -> Result<Reply, Halt> {
    let Some(policy) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    let id = acquire.action;
    let Some(known) = case.view.action(id)?.cloned() else { return Ok(Code::ActionUnknown.into()) };
    let payload = case.view.payload(StreamId::action(id), 1)?;
    let (Some(proposed), Some(payload)) = (&known.private.proposal, payload) else {
        return Ok(Code::Erased.into());
    };
    if payload.hash() != proposed.arguments {
        return Err(Halt::Unreadable);
    }
    let proposal = match Proposal::restore(&case.pinned.tenant, &policy, proposed, &payload.text) {
        Ok(proposal) => proposal,
        // The policy's entry no longer takes what was once proposed.
        Err(_) => return Ok(Code::OutOfBounds.into()),
    };
    let Acquire { approval, reach, lease, deadline, .. } = *acquire;
    proceed(case, &proposal, policy, Call { id, known: Some(known), approval, reach, lease, deadline })
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
    let Some(row) = case.view.policy(&case.pinned.tenant)? else { return Ok(None) };
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
    let entry = policy.policy.entry(proposal.name());
    let most = match entry {
        Some(entry) => {
            let lease = entry.lease_or(DEFAULT_LEASE);
            (lease, entry.deadline_for(lease))
        }
        None => (DEFAULT_LEASE, DEFAULT_DEADLINE),
    };
    let (lease, deadline) = (lease.unwrap_or(most.0), deadline.unwrap_or(most.1));
    if lease < limits::LEASE_MIN || lease > most.0 || deadline == Span::ZERO || deadline > most.1 {
        return Ok(Code::OutOfBounds.into());
    }
    let (decision, reason) = match proposal.unfit() {
        Some(code) => (Verdict::Deny, code.to_string()),
        None => {
            let decision = policy.policy.decide(&proposal.facts());
            (decision.verdict, decision.reason.to_string())
        }
    };
    let decided = Decided { decision, policy: policy.hash, reason };
    let mut wish = Wish { id, known, proposal, policy, decided, presented: approval, reach, lease, deadline };
    match wish.known.as_ref().map(|row| row.state.clone()) {
        Some(ActionState::Ended { result, code, receipt }) => {
            return ended(case, &wish, result, code, receipt);
        }
        Some(ActionState::Answered { result, receipt, .. }) => {
            return ended(case, &wish, result, None, receipt);
        }
        Some(ActionState::Running { .. }) => return running(case, &wish),
        Some(ActionState::Ready { until }) if until < case.now => {
            return conclude(case, &wish, No::terminal(Answer::Blocked, Code::NotStarted));
        }
        Some(ActionState::Waiting { approval }) => wish.presented = wish.presented.or(Some(approval)),
        Some(ActionState::Ready { .. }) | None => {}
    }
    decide(case, wish)
}

fn decide(case: &mut Case<'_>, wish: Wish<'_>) -> Result<Reply, Halt> {
    match wish.decided.decision {
        Verdict::Deny => {
            drop_outdated(case, &wish)?;
            let code = wish.proposal.unfit().unwrap_or(Code::PolicyDenied);
            conclude(case, &wish, No::terminal(Answer::Denied, code))
        }
        Verdict::Allow => {
            drop_outdated(case, &wish)?;
            take(case, &wish, None)
        }
        Verdict::Approve => match wish.presented {
            None => ask(case, wish),
            Some(id) => present(case, wish, id),
        },
    }
}

/// The attempt is permitted if the approval stands up to it.
fn present(case: &mut Case<'_>, wish: Wish<'_>, id: ApprovalId) -> Result<Reply, Halt> {
    let own = wish.known.as_ref().is_some_and(|row| row.state == ActionState::Waiting { approval: id });
    let over = case.view.approval(id)?.is_some_and(|row| row.open() && case.now > row.expires_at);
    let check = match approval::check(case, id, wish.proposal, &wish.policy)? {
        // What an action waits for is over for it, answered or not.
        Check::Refused { code: Code::ApprovalPending, field, .. } if own && over => {
            Check::Refused { code: Code::ApprovalExpired, field, status: Some(approval::Status::Expired) }
        }
        check => check,
    };
    match check {
        Check::Usable => take(case, &wish, Some(id)),
        Check::Refused { code: Code::ApprovalPending, .. } if own => {
            let expires_at = case.view.approval(id)?.map_or(case.now, |row| row.expires_at);
            Ok(Reply::ApprovalNeeded { action: wish.id, approval: id, expires_at, joined: true })
        }
        Check::Refused { code, field, status } => {
            if code == Code::ApprovalExpired {
                approval::expire(case, id, !own)?;
            }
            let result = if code == Code::ApprovalDenied { Answer::Denied } else { Answer::Blocked };
            let no = No { approval: Some(id), field, status, ..No::terminal(result, code) };
            // Another action's approval says nothing about the one this action waits for.
            conclude(case, &wish, No { terminal: own, ..no })
        }
        Check::Anew(reason) => {
            approval::take_back(case, id, reason, !own)?;
            ask(case, wish)
        }
    }
}

/// Asks a person, unless the key would be refused anyway, the same is being
/// asked already, or a person has said no to the same wish.
fn ask(case: &mut Case<'_>, mut wish: Wish<'_>) -> Result<Reply, Halt> {
    if let Gate::Refused { code, effect } = gate(case, &wish)? {
        return refuse(case, &wish, code, effect);
    }
    let ask = approval::ask_hash(&case.pinned.tenant, wish.proposal);
    if let Some((id, row)) = approval::find_open(case, ask)? {
        if row.status == approval::Status::Pending {
            let (action, expires_at) = (row.action, row.expires_at);
            return Ok(Reply::ApprovalNeeded { action, approval: id, expires_at, joined: true });
        }
        let waiting = case.view.action(row.action)?.cloned();
        if waiting.as_ref().is_some_and(|action| action.state == ActionState::Waiting { approval: id }) {
            wish.id = row.action;
            wish.known = waiting;
        }
        return present(case, wish, id);
    }
    if let Some(id) = approval::find_denial(case, wish.proposal.intent_hash())? {
        let no = No::terminal(Answer::Denied, Code::ApprovalDenied);
        return conclude(case, &wish, No { approval: Some(id), ..no });
    }
    let Some(Requested { approval, expires_at }) =
        approval::request(case, wish.id, wish.proposal, &wish.policy, ask)
    else {
        return conclude(case, &wish, No::terminal(Answer::Blocked, Code::ApprovalUnanswerable));
    };
    let refs = Refs { approval: Some(approval), ..Refs::NONE };
    let (decided, sealed, payload) = first(case, &wish);
    let body = Body::ActionWaiting(Waiting { decided }, sealed);
    case.record_with(StreamId::action(wish.id), refs, body, payload);
    Ok(Reply::ApprovalNeeded { action: wish.id, approval, expires_at, joined: false })
}

/// Takes the effect, and uses the approval in the same transaction.
fn take(case: &mut Case<'_>, wish: &Wish<'_>, approval: Option<ApprovalId>) -> Result<Reply, Halt> {
    let fence = match gate(case, wish)? {
        Gate::Refused { code, effect } => return refuse(case, wish, code, effect),
        Gate::Free { fence } => fence,
    };
    if wish.reach == Reach::Ready {
        return ready(case, wish, approval);
    }
    if let Some(id) = approval {
        let asked_for = approval::consume(case, id, wish.id)?;
        if asked_for != wish.id {
            end_waiting(case, asked_for, id, Code::ApprovalUsed)?;
        }
    }
    let key = wish.proposal.key_for(wish.id);
    let begun = wish.reach == Reach::Executing;
    let (lease, deadline) = (wish.lease, wish.deadline);
    let taken =
        effect::take(case, Take { key: &key, action: wish.id, approval, fence, lease, deadline, begun });
    let (decided, sealed, payload) = first(case, wish);
    let refs = Refs { approval, ..Refs::NONE };
    let body = Body::ActionStarted(Started { decided, effect: taken.effect, fence }, sealed);
    case.record_with(StreamId::action(wish.id), refs, body, payload);
    Ok(Reply::Attempt(Attempt { key: wish.proposal.effect_key().map(str::to_owned), ..taken }))
}

fn ready(case: &mut Case<'_>, wish: &Wish<'_>, approval: Option<ApprovalId>) -> Result<Reply, Halt> {
    if let Some(id) = approval {
        let until = case.view.approval(id)?.map_or(case.now, |row| row.expires_at);
        return Ok(Reply::Ready { action: wish.id, until });
    }
    if let Some(ActionState::Ready { until }) = wish.known.as_ref().map(|row| &row.state) {
        return Ok(Reply::Ready { action: wish.id, until: *until });
    }
    let until = case.now + limits::READY_FOR;
    let (decided, sealed, payload) = first(case, wish);
    case.record_with(
        StreamId::action(wish.id),
        Refs::NONE,
        Body::ActionReady(Readied { decided, until }, sealed),
        payload,
    );
    Ok(Reply::Ready { action: wish.id, until })
}

fn gate(case: &mut Case<'_>, wish: &Wish<'_>) -> Result<Gate, Halt> {
    let entry = wish.policy.policy.entry(wish.proposal.name());
    let most = entry.and_then(|entry| entry.max_attempts);
    effect::gate(case, &wish.proposal.key_for(wish.id), Some(wish.proposal), most)
}

/// What the first event of an action carries: the decision, the proposal and
/// its arguments. A later event carries the decision if it is another one.
fn first(case: &Case<'_>, wish: &Wish<'_>) -> (Option<Decided>, ActionSealed, Option<Payload>) {
    if let Some(row) = &wish.known {
        let decided = (row.decided != wish.decided).then(|| wish.decided.clone());
        return (decided, ActionSealed { proposal: None }, None);
    }
    let payload = case.payload(wish.proposal.text());
    let proposal = Some(wish.proposal.proposed(payload.hash()));
    (Some(wish.decided.clone()), ActionSealed { proposal }, Some(payload))
}

/// Takes back an approval that this action waits for or presents, if it was
/// given under another rule than the active one.
fn drop_outdated(case: &mut Case<'_>, wish: &Wish<'_>) -> Result<(), Halt> {
    let Some(id) = wish.presented else { return Ok(()) };
    let Some(row) = case.view.approval(id)? else { return Ok(()) };
    let bound = &row.private.bound;
    let same_action = bound.action_hash == Some(wish.proposal.action_hash());
    if row.open() && same_action && bound.rule != wish.proposal.rule() {
        let own = row.action == wish.id;
        approval::take_back(case, id, approval::Revoke::PolicyChanged, !own)?;
    }
    Ok(())
}

/// A "no" and what it concerns.
struct No {
    result: Answer,
    code: Code,
    approval: Option<ApprovalId>,
    field: Option<&'static str>,
    status: Option<approval::Status>,
    effect: Option<EffectNow>,
    /// Whether a waiting or ready action ends by it.
    terminal: bool,
}

impl No {
    const fn terminal(result: Answer, code: Code) -> No {
        No { result, code, approval: None, field: None, status: None, effect: None, terminal: true }
    }
}

/// The effect refuses. An action that waits or is ready stays so: it may be
/// tried again once the effect is known.
fn refuse(case: &mut Case<'_>, wish: &Wish<'_>, code: Code, effect: EffectNow) -> Result<Reply, Halt> {
    let no = No { effect: Some(effect), terminal: false, ..No::terminal(Answer::Blocked, code) };
    conclude(case, wish, no)
}

/// Ends a new action with a receipt, or a recorded one if the "no" is final
/// for it. The same refusal within a minute is answered with the first receipt.
fn conclude(case: &mut Case<'_>, wish: &Wish<'_>, no: No) -> Result<Reply, Halt> {
    let mut refusal = Refusal {
        reason: (no.code == Code::PolicyDenied).then(|| wish.decided.reason.clone()),
        field: no.field,
        approval: no.approval,
        status: no.status,
        effect: no.effect,
        ..Refusal::new(no.code)
    };
    match &wish.known {
        Some(_) if !no.terminal => refusal.action = Some(wish.id),
        None if repeats(case, wish, no.code, &mut refusal)? => {}
        _ => {
            let (decided, sealed, payload) = first(case, wish);
            let proposal = sealed.proposal.zip(payload);
            let (result, code) = (no.result, Some(no.code));
            let approval = no.approval;
            refusal.receipt =
                Some(end(case, End { action: wish.id, result, code, approval, decided, proposal }));
            refusal.action = Some(wish.id);
        }
    }
    Ok(refusal.into())
}

fn repeats(case: &Case<'_>, wish: &Wish<'_>, code: Code, refusal: &mut Refusal) -> Result<bool, Halt> {
    let proposed = wish.proposal.proposed(wish.proposal.action_hash());
    let from = refusal_key(&proposed, code, case.now - limits::REFUSAL_REMEMBERED);
    let to = refusal_key(&proposed, code, case.now);
    let range = Range { index: from.index, from: from.bytes, to: to.bytes, limit: 1 };
    let Some(first) = case.view.range(&range)?.first().copied() else { return Ok(false) };
    let id = ActionId(first.name);
    refusal.action = Some(id);
    refusal.receipt = case.view.action(id)?.and_then(ActionRow::receipt);
    refusal.repeated = true;
    Ok(true)
}

fn ended(
    case: &Case<'_>,
    wish: &Wish<'_>,
    result: Answer,
    code: Option<Code>,
    receipt: crate::id::ReceiptId,
) -> Result<Reply, Halt> {
    let stored = match wish.known.as_ref().and_then(|row| row.held) {
        Some((stream, fence)) => effect::stored_result(case, &stream, fence)?,
        None => None,
    };
    Ok(Reply::Ended { action: wish.id, result, code, receipt, stored })
}

fn running(case: &Case<'_>, wish: &Wish<'_>) -> Result<Reply, Halt> {
    let effect = match wish.known.as_ref().and_then(|row| row.held) {
        Some((stream, _)) => effect::now(case, &stream, Some(wish.proposal))?,
        None => None,
    };
    Ok(Refusal { action: Some(wish.id), effect, ..Refusal::new(Code::InProgress) }.into())
}
