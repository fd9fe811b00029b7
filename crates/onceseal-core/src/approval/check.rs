//! Using an approval, and every way it ends without having been used.

use std::collections::BTreeSet;

use crate::action::{Proposal, end_waiting};
use crate::approval::ask::code_of;
use crate::approval::event::{Consumed, Expired, PersonSealed, Revoke, Revoked, Status};
use crate::approval::{ApprovalRow, Asked, Identity};
use crate::case::Case;
use crate::code::Code;
use crate::id::{ActionId, ApprovalId};
use crate::journal::{Body, Nothing, Refs};
use crate::policy::ActivePolicy;
use crate::reply::Reply;
use crate::stream::StreamId;
use crate::view::Halt;

/// Whether an approval permits an action.
pub(crate) enum Check {
    /// Yes, once.
    Usable,
    /// No.
    Refused { code: Code, field: Option<&'static str>, status: Option<Status> },
    /// It was given under another rule or by people who count no longer: it is
    /// to be taken back, and the action decided without it.
    Anew(Revoke),
}

/// Holds an approval against a proposal. The first failure wins; nothing is
/// recorded.
pub(crate) fn check(
    case: &Case<'_>,
    id: ApprovalId,
    asked: &Asked<'_>,
    policy: &ActivePolicy,
) -> Result<Check, Halt> {
    let refused = |code, field, status| Ok(Check::Refused { code, field, status });
    let proposal = asked.proposal;
    let Some(row) = case.view.approval(id)? else { return refused(Code::ApprovalUnknown, None, None) };
    let bound = &row.private.bound;
    let Some(action_hash) = bound.action_hash else { return refused(Code::Erased, None, None) };
    if action_hash != proposal.action_hash() {
        let field = differing_field(case, row, proposal)?;
        return refused(Code::ApprovalMismatch, Some(field), Some(row.status));
    }
    if bound.contract != asked.contract {
        return refused(Code::ApprovalMismatch, Some("contract"), Some(row.status));
    }
    let same_rule = bound.rule == proposal.rule();
    if same_rule && bound.effect_key != asked.effect_key {
        return refused(Code::ApprovalMismatch, Some("effect_key"), Some(row.status));
    }
    if row.status != Status::Granted {
        return refused(code_of(row.status), None, Some(row.status));
    }
    if row.over(case.now) {
        return refused(Code::ApprovalExpired, None, Some(Status::Expired));
    }
    if !same_rule {
        return Ok(Check::Anew(Revoke::PolicyChanged));
    }
    if (yes_count(row, policy) as u64) < u64::from(row.quorum) {
        return Ok(Check::Anew(Revoke::ApproverRemoved));
    }
    Ok(Check::Usable)
}

/// Distinct people who said yes and are entitled under this policy. People are
/// told apart by name: one person with two proofs is one person.
pub(crate) fn yes_count(row: &ApprovalRow, policy: &ActivePolicy) -> usize {
    let Some(entry) = row.private.bound.name.as_deref().and_then(|name| policy.policy.entry(name)) else {
        return 0;
    };
    let entitled = row.who_said_yes().filter(|person| policy.policy.entitles(entry, person));
    entitled.map(|person| person.name).collect::<BTreeSet<_>>().len()
}

/// Which member of the approved action the presented one differs in.
fn differing_field(case: &Case<'_>, row: &ApprovalRow, proposal: &Proposal) -> Result<&'static str, Halt> {
    let approved = case.view.action(row.action)?.and_then(|action| action.private.proposal.as_ref());
    let Some(approved) = approved else { return Ok("action") };
    let principal = proposal.principal();
    Ok(match () {
        () if approved.name != proposal.name() => "name",
        () if approved.agent != principal.agent || approved.user != principal.user => "principal",
        () if approved.environment != proposal.facts().environment => "environment",
        () if approved.resource.as_deref() != proposal.resource() => "resource",
        () => "arguments",
    })
}

/// Records the use; returns the action the approval was asked for.
pub(crate) fn consume(case: &mut Case<'_>, id: ApprovalId, action: ActionId) -> Result<ActionId, Halt> {
    let Some(row) = case.view.approval(id)? else { return Err(Halt::Unreadable) };
    let asked_for = row.action;
    let refs = Refs { action: Some(action), ..Refs::NONE };
    case.record(StreamId::approval(id), refs, Body::ApprovalConsumed(Consumed {}, Nothing {}));
    case.closed.push(id);
    Ok(asked_for)
}

/// An approval that is open, and not ended by this command.
fn open<'a>(case: &Case<'a>, id: ApprovalId) -> Result<Option<&'a ApprovalRow>, Halt> {
    let row = case.view.approval(id)?;
    Ok(row.filter(|row| row.open() && !case.closed.contains(&id)))
}

/// Records that an approval's time is over, and ends the action waiting for it.
pub(crate) fn expire(case: &mut Case<'_>, id: ApprovalId, and_waiting: bool) -> Result<(), Halt> {
    let Some(row) = open(case, id)? else { return Ok(()) };
    let action = row.action;
    case.record(StreamId::approval(id), Refs::NONE, Body::ApprovalExpired(Expired {}, Nothing {}));
    case.closed.push(id);
    if and_waiting {
        end_waiting(case, action, id, Code::ApprovalExpired)?;
    }
    Ok(())
}

/// Records that an approval is taken back by a rule, not a person.
pub(crate) fn take_back(
    case: &mut Case<'_>,
    id: ApprovalId,
    reason: Revoke,
    and_waiting: bool,
) -> Result<(), Halt> {
    revoke_by(case, id, reason, None, and_waiting)
}

/// Records that an approval is taken back, and ends the action waiting for it.
pub(crate) fn revoke_by(
    case: &mut Case<'_>,
    id: ApprovalId,
    reason: Revoke,
    person: Option<(&Identity, Option<&str>)>,
    and_waiting: bool,
) -> Result<(), Halt> {
    let Some(row) = open(case, id)? else { return Ok(()) };
    let action = row.action;
    let why = person.and_then(|(_, why)| why).map(str::to_owned);
    let sealed = PersonSealed { person: person.map(|(person, _)| person.to_string()), reason: why };
    let data = Revoked { proof: person.map(|(person, _)| person.proof), reason };
    case.record(StreamId::approval(id), Refs::NONE, Body::ApprovalRevoked(data, sealed));
    case.closed.push(id);
    if and_waiting {
        end_waiting(case, action, id, Code::ApprovalRevoked)?;
    }
    Ok(())
}

/// Ends a request whose time is over, or whose rule is no longer active.
pub(crate) fn lapse(case: &mut Case<'_>, stream: &StreamId) -> Result<Reply, Halt> {
    let id = ApprovalId(stream.name);
    let Some(row) = case.view.approval(id)?.filter(|row| row.open()).cloned() else {
        return Ok(Reply::Done { changed: false });
    };
    if row.over(case.now) {
        expire(case, id, true)?;
        return Ok(Reply::Done { changed: true });
    }
    let changed = row.status == Status::Pending && outdated(case, &row)?;
    if changed {
        take_back(case, id, Revoke::PolicyChanged, true)?;
    }
    Ok(Reply::Done { changed })
}

/// Whether a request was made under another rule than the active one.
pub(crate) fn outdated(case: &Case<'_>, row: &ApprovalRow) -> Result<bool, Halt> {
    let Some(active) = crate::action::active_policy(case)? else { return Ok(true) };
    let bound = &row.private.bound;
    Ok(bound.name.as_deref().is_some_and(|name| active.rule(name) != bound.rule))
}
