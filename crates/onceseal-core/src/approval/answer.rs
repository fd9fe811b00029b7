//! Answering: who may, and what an answer comes to.

use std::fmt;

use crate::action::{active_policy, end_waiting};
use crate::approval::ask::code_of;
use crate::approval::check::{expire, outdated, revoke_by, take_back, yes_count};
use crate::approval::event::{PersonSealed, Proof, Responded, Revoke, Said, Status};
use crate::approval::{ApprovalRow, Response};
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::ApprovalId;
use crate::journal::{Body, Refs};
use crate::json;
use crate::limits;
use crate::policy::ActivePolicy;
use crate::reply::{Refusal, Reply};
use crate::stream::StreamId;
use crate::view::Halt;

/// A person and how they were proven; prints as `os:login` or `host:name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// How.
    pub proof: Proof,
    /// The name, without the proof.
    pub name: String,
}

impl Identity {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Identity> {
        let (proof, name) = text.split_once(':')?;
        Some(Identity { proof: Proof::parse(proof)?, name: name.to_owned() })
    }

    /// Whether the name is one printable line in NFC, at most 255 characters,
    /// without bidirectional or zero-width characters.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        limits::is_name(&self.name) && !self.name.trim().is_empty() && !json::is_suspicious(&self.name)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.proof, self.name)
    }
}

/// A person's answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The request.
    pub approval: ApprovalId,
    /// Who answers.
    pub person: Identity,
    /// What they say.
    pub said: Said,
    /// The binding hash that was shown to them.
    pub shown: Hash,
    /// Why, in their words; nothing follows from it.
    pub reason: Option<String>,
}

/// Take an approval back.
#[derive(Debug, Clone)]
pub struct Revocation {
    /// The approval.
    pub approval: ApprovalId,
    /// Who takes it back: an operator, or the person the agent acts for.
    pub person: Identity,
}

pub(crate) fn answer(case: &mut Case<'_>, answer: &Answer) -> Result<Reply, Halt> {
    let id = answer.approval;
    if !answer.person.is_valid() {
        return Ok(Code::PersonInvalid.into());
    }
    if answer.reason.as_deref().is_some_and(|why| why.trim().is_empty() || !limits::is_remark(why)) {
        return Ok(Refusal { field: Some("reason"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let Some(row) = case.view.approval(id)?.cloned() else { return Ok(Code::ApprovalUnknown.into()) };
    let Some(active) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    let takes_back = row.status == Status::Granted && answer.said == Said::No;
    let repeated = repeats(&row, answer).then(|| stands(&row, row.status, yes_count(&row, &active), true));
    if row.status != Status::Pending && !takes_back {
        return Ok(repeated.unwrap_or_else(|| decided(id, &row)));
    }
    if row.over(case.now) {
        expire(case, id, true)?;
        return Ok(closed(id, Status::Expired));
    }
    if row.status == Status::Pending && outdated(case, &row)? {
        take_back(case, id, Revoke::PolicyChanged, true)?;
        return Ok(closed(id, Status::Revoked));
    }
    if let Some(repeated) = repeated {
        return Ok(repeated);
    }
    if let Some(code) = may_not(case, &row, answer, &active)? {
        return Ok(Refusal { approval: Some(id), ..Refusal::new(code) }.into());
    }
    if takes_back {
        revoke_by(case, id, Revoke::Approver, Some((&answer.person, answer.reason.as_deref())), true)?;
        return Ok(stands(&row, Status::Revoked, yes_count(&row, &active), false));
    }
    count(case, row, answer, &active)
}

/// Records the answer; the request is granted by enough yeses, denied by one no.
fn count(
    case: &mut Case<'_>,
    mut row: ApprovalRow,
    answer: &Answer,
    active: &ActivePolicy,
) -> Result<Reply, Halt> {
    let id = answer.approval;
    let person = Some(answer.person.to_string());
    let (proof, said) = (answer.person.proof, answer.said);
    let reason = answer.reason.clone();
    row.private.responses.push(Response { at: case.now, person: person.clone(), proof, said });
    let yes = yes_count(&row, active);
    let status = match said {
        Said::No => Status::Denied,
        Said::Yes if yes as u64 >= u64::from(row.quorum) => Status::Granted,
        Said::Yes => Status::Pending,
    };
    let body = Body::ApprovalAnswered(Responded { proof, said, status }, PersonSealed { person, reason });
    case.record(StreamId::approval(id), Refs::NONE, body);
    if status == Status::Denied {
        end_waiting(case, row.action, id, Code::ApprovalDenied)?;
    }
    Ok(stands(&row, status, yes, false))
}

pub(crate) fn revoke(case: &mut Case<'_>, revocation: &Revocation) -> Result<Reply, Halt> {
    let id = revocation.approval;
    if !revocation.person.is_valid() {
        return Ok(Code::PersonInvalid.into());
    }
    let Some(row) = case.view.approval(id)?.cloned() else { return Ok(Code::ApprovalUnknown.into()) };
    let Some(active) = active_policy(case)? else { return Ok(Code::PolicyMissing.into()) };
    let proposal = case.view.action(row.action)?.and_then(|action| action.private.proposal.as_ref());
    let user = proposal.and_then(|proposal| proposal.user.as_deref());
    let requester = user.is_some_and(|user| names(user, &revocation.person));
    let may = case.proves(&revocation.person) && (requester || active.policy.is_operator(&revocation.person));
    if !may {
        return Ok(Refusal { approval: Some(id), ..Refusal::new(Code::NotOperator) }.into());
    }
    if row.status == Status::Revoked {
        return Ok(stands(&row, Status::Revoked, yes_count(&row, &active), true));
    }
    if !row.open() {
        return Ok(decided(id, &row));
    }
    if row.over(case.now) {
        expire(case, id, true)?;
        return Ok(closed(id, Status::Expired));
    }
    let reason = if requester { Revoke::Requester } else { Revoke::Operator };
    revoke_by(case, id, reason, Some((&revocation.person, None)), true)?;
    Ok(stands(&row, Status::Revoked, yes_count(&row, &active), false))
}

fn repeats(row: &ApprovalRow, answer: &Answer) -> bool {
    let person = answer.person.to_string();
    let last = row.private.responses.iter().rev().find(|r| r.person.as_deref() == Some(person.as_str()));
    last.is_some_and(|response| response.said == answer.said)
}

/// Why this person's answer does not count; the first reason wins.
fn may_not(
    case: &Case<'_>,
    row: &ApprovalRow,
    answer: &Answer,
    active: &ActivePolicy,
) -> Result<Option<Code>, Halt> {
    let bound = &row.private.bound;
    if !row.proofs.contains(&answer.person.proof) {
        return Ok(Some(Code::ProofNotTaken));
    }
    let entry = bound.name.as_deref().and_then(|name| active.policy.entry(name));
    let entitled = entry.is_some_and(|entry| active.policy.entitles(entry, &answer.person));
    if !case.proves(&answer.person) || !entitled {
        return Ok(Some(Code::NotEntitled));
    }
    let action = case.view.action(row.action)?.and_then(|action| action.private.proposal.as_ref());
    let Some(proposal) = action else { return Ok(Some(Code::Erased)) };
    if names(&proposal.agent, &answer.person) {
        return Ok(Some(Code::AgentCannotAnswer));
    }
    Ok((bound.binding != Some(answer.shown)).then_some(Code::ShownDiffers))
}

/// Whether this person is proven and an operator of the active policy; without
/// a policy whoever is proven is one.
pub(crate) fn is_operator(case: &Case<'_>, person: &Identity) -> Result<bool, Halt> {
    let active = active_policy(case)?;
    Ok(case.proves(person) && active.is_none_or(|active| active.policy.is_operator(person)))
}

/// Why an operator's word with this reason does not count, if it does not.
pub(crate) fn unheard(case: &Case<'_>, person: &Identity, reason: &str) -> Result<Option<Code>, Halt> {
    Ok(match () {
        () if reason.trim().is_empty() || !limits::is_remark(reason) => Some(Code::OutOfBounds),
        () if !person.is_valid() => Some(Code::PersonInvalid),
        () if !is_operator(case, person)? => Some(Code::NotOperator),
        () => None,
    })
}

/// Whether a text of a principal names this person.
pub(crate) fn names(text: &str, person: &Identity) -> bool {
    text == person.name || Identity::parse(text).as_ref() == Some(person)
}

fn stands(row: &ApprovalRow, status: Status, yes: usize, repeated: bool) -> Reply {
    Reply::Approval { status, yes: u32::try_from(yes).unwrap_or(u32::MAX), quorum: row.quorum, repeated }
}

fn decided(id: ApprovalId, row: &ApprovalRow) -> Reply {
    Refusal { approval: Some(id), status: Some(row.status), ..Refusal::new(Code::ApprovalDecided) }.into()
}

fn closed(id: ApprovalId, status: Status) -> Reply {
    Refusal { approval: Some(id), status: Some(status), ..Refusal::new(code_of(status)) }.into()
}
