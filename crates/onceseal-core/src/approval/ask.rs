//! Asking: what a request binds, and when an earlier one answers instead.

use crate::action::Proposal;
use crate::approval::check::expire;
use crate::approval::event::{Proof, Requested as RequestedEvent, RequestedSealed, Status};
use crate::approval::{ApprovalRow, Identity};
use crate::case::Case;
use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId};
use crate::journal::{Body, Index, Key, Refs, moment};
use crate::policy::ActivePolicy;
use crate::record::{Json, record};
use crate::stream::{StreamId, Tenant};
use crate::time::Timestamp;
use crate::view::{Halt, Range};

record! {
    /// What an approval binds. Its canonical text is hashed twice: whole, as
    /// the binding that every answer repeats; and without expiry, approvers,
    /// proof and quorum, as what identical proposals share.
    pub struct Bound {
        /// Hash of the whole action.
        action_hash: Hash,
        /// Groups of people who may answer.
        approvers: Option<Vec<String>>,
        /// The tool's contract, if a worker is to carry the action out.
        contract: Option<Hash>,
        /// The effect key.
        effect_key: Option<String>,
        /// When it expires.
        expires_at: Option<Timestamp>,
        /// Kinds of proof taken.
        proof: Option<Vec<Proof>>,
        /// How many must say yes.
        quorum: Option<u32>,
        /// Digest of the policy entry.
        rule: Option<Hash>,
        /// The tenant.
        tenant: String,
    }
}

/// What an approval is asked for, and used for: an action, under the effect key
/// that it is attempted under, and the contract if a worker carries it out.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The action.
    pub proposal: &'a Proposal,
    /// The effect key: the policy entry's, or an operation's own.
    pub effect_key: Option<String>,
    /// The contract.
    pub contract: Option<Hash>,
}

impl<'a> Asked<'a> {
    /// An action that its caller attempts.
    #[must_use]
    pub fn of(proposal: &'a Proposal) -> Asked<'a> {
        Asked { proposal, effect_key: proposal.effect_key().map(str::to_owned), contract: None }
    }
}

impl Bound {
    fn asked(tenant: &Tenant, asked: &Asked<'_>) -> Bound {
        let Asked { proposal, effect_key, contract } = asked;
        Bound {
            action_hash: proposal.action_hash(),
            approvers: None,
            contract: *contract,
            effect_key: effect_key.clone(),
            expires_at: None,
            proof: None,
            quorum: None,
            rule: proposal.rule(),
            tenant: tenant.name.clone(),
        }
    }

    fn hash(&self, purpose: &str) -> Hash {
        let mut text = String::with_capacity(512);
        self.json(&mut text);
        Hash::of(purpose, &[text.as_bytes()])
    }
}

/// The hash that identical proposals share.
#[must_use]
pub fn ask_hash(tenant: &Tenant, asked: &Asked<'_>) -> Hash {
    Bound::asked(tenant, asked).hash("onceseal.ask.v1\n")
}

/// A request that was made.
pub(crate) struct Requested {
    pub(crate) approval: ApprovalId,
    pub(crate) expires_at: Timestamp,
}

/// The one pending or granted request for this ask; those found past their
/// expiry are recorded as expired, and with them ends what waits for them, but
/// for the action that asks: it goes on.
pub(crate) fn find_open(
    case: &mut Case<'_>,
    ask: Hash,
    asking: ActionId,
) -> Result<Option<(ApprovalId, ApprovalRow)>, Halt> {
    let range = Range::equal(Key::of(Index::Ask, &[&ask.0]));
    for stream in case.view.range(&range)? {
        let id = ApprovalId(stream.name);
        let Some(row) = case.view.approval(id)?.cloned() else { continue };
        if case.closed.contains(&id) || !row.open() {
            continue;
        }
        if !row.over(case.now) {
            return Ok(Some((id, row)));
        }
        expire(case, id, row.action != asking)?;
    }
    Ok(None)
}

/// A denial of the same wish whose request has not expired.
pub(crate) fn find_denial(case: &Case<'_>, intent: Hash) -> Result<Option<ApprovalId>, Halt> {
    let from = Key::of(Index::Denial, &[&intent.0, &moment(case.now)]).bytes;
    let to = Key::of(Index::Denial, &[&intent.0, &moment(Timestamp::MAX)]).bytes;
    let range = Range { index: Index::Denial, from, to, limit: 1 };
    Ok(case.view.range(&range)?.first().map(|stream| ApprovalId(stream.name)))
}

/// Makes a request; `None` if nobody who can be proven here could answer it.
pub(crate) fn request(
    case: &mut Case<'_>,
    action: ActionId,
    asked: &Asked<'_>,
    policy: &ActivePolicy,
    ask: Hash,
) -> Option<Requested> {
    let proposal = asked.proposal;
    let entry = policy.policy.entry(proposal.name())?;
    let terms = &entry.approval;
    let owner = case.pinned.owner.as_deref().and_then(Identity::parse).map(|owner| owner.name);
    if owner.is_none() && !terms.accepts(Proof::Host) {
        return None;
    }
    policy.policy.answerable(entry, Some(owner.as_deref().unwrap_or_default())).ok()?;
    let proofs = terms.proof.clone().unwrap_or_else(|| Proof::ALL.to_vec());
    let approval = case.command.approval();
    let expires_at = case.now + terms.ttl;
    let bound = Bound {
        approvers: terms.approvers.clone(),
        expires_at: Some(expires_at),
        proof: Some(proofs.clone()),
        quorum: Some(terms.quorum),
        ..Bound::asked(&case.pinned.tenant, asked)
    };
    let sealed = RequestedSealed {
        action_hash: Some(bound.action_hash),
        approvers: bound.approvers.clone(),
        ask: Some(ask),
        binding: Some(bound.hash("onceseal.binding.v1\n")),
        contract: bound.contract,
        effect_key: bound.effect_key.clone(),
        intent_hash: Some(proposal.intent_hash()),
        name: Some(proposal.name().to_owned()),
        rule: bound.rule,
    };
    let data = RequestedEvent { expires_at, proofs, quorum: terms.quorum };
    let refs = Refs { action: Some(action), ..Refs::NONE };
    case.record(StreamId::approval(approval), refs, Body::ApprovalRequested(data, sealed));
    Some(Requested { approval, expires_at })
}

/// Where a status stands as the reason of a refusal.
pub(crate) const fn code_of(status: Status) -> crate::code::Code {
    use crate::code::Code;
    match status {
        Status::Pending => Code::ApprovalPending,
        Status::Granted => Code::ApprovalDecided,
        Status::Denied => Code::ApprovalDenied,
        Status::Expired => Code::ApprovalExpired,
        Status::Revoked => Code::ApprovalRevoked,
        Status::Consumed => Code::ApprovalUsed,
    }
}
