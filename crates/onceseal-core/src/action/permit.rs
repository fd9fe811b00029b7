//! From a decision of the policy to an attempt, or to the reason why not.
//!
//! The order of checks is the acquire order of the design: policy, the
//! effect's retry table before anybody is asked, approval, the retry table,
//! attempt limit. Invariant: an action that waits has an open request; what
//! takes that request from it lets the action go on, wait for another, or end.

use crate::action::end::end_waiting;
use crate::action::event::{ActionSealed, Decided, Readied, Started, Waiting};
use crate::action::refuse::{No, conclude, refuse, stranded};
use crate::action::run::{Goal, Reach, Wish};
use crate::action::{ActionState, Answer};
use crate::approval::{self, Check, Requested};
use crate::case::Case;
use crate::code::Code;
use crate::effect::{self, Gate, Take};
use crate::id::ApprovalId;
use crate::journal::{Body, Payload, Refs};
use crate::limits;
use crate::operation::{self, Rule};
use crate::policy::Verdict;
use crate::reply::{Attempt, Question, Reply};
use crate::stream::StreamId;
use crate::view::Halt;

pub(crate) fn decide(case: &mut Case<'_>, wish: Wish<'_>) -> Result<Reply, Halt> {
    if let Goal::Order(order) = wish.goal
        && wish.decided.decision != Verdict::Deny
    {
        match order.rule {
            Rule::Unasked => return Ok(Reply::Ask(Question::BusinessRule)),
            Rule::Forbids => {
                return conclude(case, &wish, No::terminal(Answer::Blocked, Code::BusinessRuleViolation));
            }
            Rule::Permits => {}
        }
    }
    match wish.decided.decision {
        Verdict::Deny => {
            drop_outdated(case, &wish)?;
            leave(case, &wish, None)?;
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
    let over = case.view.approval(id)?.is_some_and(|row| row.open() && row.over(case.now));
    let check = match approval::check(case, id, &wish.asks(), &wish.policy)? {
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
    let ask = approval::ask_hash(&case.pinned.tenant, &wish.asks());
    if let Some((id, row)) = approval::find_open(case, ask, wish.id)? {
        if let Some(void) = wish.waits_for().filter(|_| row.action != wish.id && stranded(case, &wish)) {
            end_waiting(case, wish.id, void, Code::ApprovalRevoked)?;
        }
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
        approval::request(case, wish.id, &wish.asks(), &wish.policy, ask)
    else {
        return conclude(case, &wish, No::terminal(Answer::Blocked, Code::ApprovalUnanswerable));
    };
    leave(case, &wish, Some(approval))?;
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
    if let Goal::Attempt { reach: Reach::Ready, .. } = wish.goal {
        return ready(case, wish, approval);
    }
    if let Some(id) = approval {
        let asked_for = approval::consume(case, id, wish.id)?;
        if asked_for != wish.id {
            end_waiting(case, asked_for, id, Code::ApprovalUsed)?;
        }
    }
    leave(case, wish, approval)?;
    let (reach, lease, deadline) = match wish.goal {
        Goal::Order(order) => return operation::queue(case, wish, order, approval, fence),
        Goal::Attempt { reach, lease, deadline } => (reach, lease, deadline),
    };
    let (key, begun) = (wish.key(), reach == Reach::Executing);
    let again = false;
    let take = Take { key: &key, action: wish.id, approval, fence, lease, deadline, begun, again };
    let taken = effect::take(case, take)?;
    let (decided, sealed, payload) = first(case, wish);
    let refs = Refs { approval, ..Refs::NONE };
    let body = Body::ActionStarted(Started { decided, effect: taken.effect, fence }, sealed);
    case.record_with(StreamId::action(wish.id), refs, body, payload);
    Ok(Reply::Attempt(Attempt { key: wish.proposal.effect_key().map(str::to_owned), ..taken }))
}

fn ready(case: &mut Case<'_>, wish: &Wish<'_>, approval: Option<ApprovalId>) -> Result<Reply, Halt> {
    if let Some(ActionState::Ready { until }) = wish.known.as_ref().map(|row| &row.state) {
        return Ok(Reply::Ready { action: wish.id, until: *until });
    }
    let mut until = case.now + limits::READY_FOR;
    if let Some(id) = approval {
        let Some(row) = case.view.approval(id)? else { return Err(Halt::Unreadable) };
        let asker = case.view.action(row.action)?;
        let waits = asker.is_some_and(|asker| asker.state == ActionState::Waiting { approval: id });
        if wish.waits_for() == Some(id) || waits {
            // The action that waits for it is the one to start.
            return Ok(Reply::Ready { action: row.action, until: row.expires_at });
        }
        until = until.min(row.expires_at);
    }
    leave(case, wish, None)?;
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
    effect::gate(case, &wish.key(), Some(wish.proposal), most)
}

/// What the first event of an action carries: the decision, the proposal and
/// its arguments. A later event carries the decision if it is another one.
pub(crate) fn first(case: &Case<'_>, wish: &Wish<'_>) -> (Option<Decided>, ActionSealed, Option<Payload>) {
    if let Some(row) = &wish.known {
        let decided = (row.decided != wish.decided).then(|| wish.decided.clone());
        return (decided, ActionSealed { proposal: None }, None);
    }
    let payload = case.payload(wish.proposal.text());
    let proposal = Some(wish.proposal.proposed(payload.hash()));
    (Some(wish.decided.clone()), ActionSealed { proposal }, Some(payload))
}

/// The action goes on, with this approval or without: the request that it
/// waited for until now is void.
fn leave(case: &mut Case<'_>, wish: &Wish<'_>, with: Option<ApprovalId>) -> Result<(), Halt> {
    match wish.waits_for() {
        Some(waited) if Some(waited) != with => {
            approval::take_back(case, waited, approval::Revoke::PolicyChanged, false)
        }
        _ => Ok(()),
    }
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
