//! How an unknown outcome becomes known: the remote's word, or a person's.

use crate::action::{Answer, answer_held};
use crate::approval::{Identity, Source, is_operator, names};
use crate::case::Case;
use crate::code::Code;
use crate::effect::event::{Known, KnownSealed, RemoteReceipt};
use crate::effect::gate::{now, record_lapse};
use crate::effect::settle::again;
use crate::effect::{EffectRow, EffectState, Outcome, remote};
use crate::journal::{Body, Payload, Refs};
use crate::limits;
use crate::reply::{EffectNow, Refusal, Reply};
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::Halt;

/// What the remote said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It happened; with its result as canonical JSON text.
    Committed(Option<String>),
    /// It did not happen.
    Absent,
}

/// The remote's word on an attempt.
#[derive(Debug, Clone)]
pub struct Reconcile {
    /// The effect.
    pub effect: StreamId,
    /// The attempt that was asked about. That an older one happened counts as
    /// well: the effect is there.
    pub fence: u64,
    /// What it said.
    pub finding: Finding,
    /// How it is known: a reference of the remote.
    pub evidence: Option<String>,
    /// What the remote calls what it did.
    pub remote: Option<RemoteReceipt>,
    /// How long after a lease the remote may still carry the attempt out.
    pub settle: Span,
}

/// A person's word on an unknown outcome.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// The effect.
    pub effect: StreamId,
    /// The attempt.
    pub fence: u64,
    /// Whether it happened.
    pub happened: bool,
    /// Why the person says so; not empty.
    pub reason: String,
    /// Where it can be looked up.
    pub evidence: Option<String>,
    /// Who says so.
    pub person: Identity,
}

pub(crate) fn reconcile(case: &mut Case<'_>, reconcile: &Reconcile) -> Result<Reply, Halt> {
    let Some(row) = case.view.effect(&reconcile.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    let fits = row.fence == reconcile.fence;
    let existed = (1..=row.fence).contains(&reconcile.fence);
    let happened = matches!(reconcile.finding, Finding::Committed(_));
    let text = match &reconcile.finding {
        Finding::Committed(text) => text.as_deref(),
        Finding::Absent => None,
    };
    let remark = reconcile.evidence.as_ref().is_none_or(|text| limits::is_remark(text));
    let remark = remark && reconcile.remote.as_ref().is_none_or(RemoteReceipt::is_fit);
    if !remark || text.is_some_and(|text| !limits::is_result(text)) {
        return Ok(Code::OutOfBounds.into());
    }
    let lapses = row.held() && !row.live(case.now);
    let mut state = row.state;
    let mut ended = false;
    if lapses {
        let lapsed = record_lapse(case, &reconcile.effect, &row)?;
        (state, ended) = (lapsed.state, lapsed.receipt.is_some());
    }
    let code = match (state, happened) {
        (EffectState::Committed, true) if existed => return again(case, &row),
        (EffectState::Executing | EffectState::Ambiguous, true) if existed => None,
        (EffectState::Ambiguous, false) if fits => {
            let settled = row.lease_until.is_none_or(|end| case.now >= end + reconcile.settle);
            (!settled).then_some(Code::TooEarly)
        }
        _ => Some(Code::InvalidTransition),
    };
    let proof = remote::proof(case, &reconcile.effect, row.holder, reconcile.remote.as_ref())?;
    let code = code.or_else(|| proof.is_none().then_some(Code::RemoteReceiptReused));
    if let Some(code) = code {
        let effect = now(case, &reconcile.effect, None)?.map(|effect| EffectNow { state, ..effect });
        return Ok(Refusal { effect, ..Refusal::new(code) }.into());
    }
    let sealed = KnownSealed {
        cause: row.private.error.clone(),
        evidence: reconcile.evidence.clone(),
        person: None,
        reason: None,
        remote: reconcile.remote.clone().filter(|_| happened),
        result: None,
    };
    let [remote_receipt, remote_request] = proof.filter(|_| happened).unwrap_or_default();
    let outcome = outcome(happened);
    let source = Source::Remote;
    let data = Known { fence: row.fence, outcome, proof: None, remote_receipt, remote_request, source };
    record(case, reconcile.effect, &row, data, sealed, text, ended)
}

pub(crate) fn resolve(case: &mut Case<'_>, resolve: &Resolve) -> Result<Reply, Halt> {
    if resolve.reason.trim().is_empty()
        || !limits::is_remark(&resolve.reason)
        || resolve.evidence.as_ref().is_some_and(|text| !limits::is_remark(text))
    {
        return Ok(Code::OutOfBounds.into());
    }
    if !resolve.person.is_valid() {
        return Ok(Code::PersonInvalid.into());
    }
    if !is_operator(case, &resolve.person)? {
        return Ok(Code::NotOperator.into());
    }
    let Some(row) = case.view.effect(&resolve.effect)?.cloned() else {
        return Ok(Code::EffectUnknown.into());
    };
    let holder = case.view.action(row.holder)?.and_then(|action| action.private.proposal.as_ref());
    if holder.is_some_and(|proposal| names(&proposal.agent, &resolve.person)) {
        return Ok(Code::AgentCannotAnswer.into());
    }
    let lapses = row.held() && !row.live(case.now);
    let mut state = row.state;
    let mut ended = false;
    if lapses && row.fence == resolve.fence {
        let lapsed = record_lapse(case, &resolve.effect, &row)?;
        (state, ended) = (lapsed.state, lapsed.receipt.is_some());
    }
    if row.fence != resolve.fence || state != EffectState::Ambiguous {
        let effect = now(case, &resolve.effect, None)?.map(|effect| EffectNow { state, ..effect });
        return Ok(Refusal { effect, ..Refusal::new(Code::NotAmbiguous) }.into());
    }
    let sealed = KnownSealed {
        cause: row.private.error.clone(),
        evidence: resolve.evidence.clone(),
        person: Some(resolve.person.to_string()),
        reason: Some(resolve.reason.clone()),
        remote: None,
        result: None,
    };
    let data = Known {
        fence: row.fence,
        outcome: outcome(resolve.happened),
        proof: Some(resolve.person.proof),
        remote_receipt: None,
        remote_request: None,
        source: Source::Person,
    };
    record(case, resolve.effect, &row, data, sealed, None, ended)
}

const fn outcome(happened: bool) -> Outcome {
    if happened { Outcome::Committed } else { Outcome::Failed }
}

fn record(
    case: &mut Case<'_>,
    stream: StreamId,
    row: &EffectRow,
    data: Known,
    mut sealed: KnownSealed,
    result: Option<&str>,
    ended: bool,
) -> Result<Reply, Halt> {
    let (outcome, source) = (data.outcome, data.source);
    let payload = result.map(|text| case.payload(text));
    sealed.result = payload.as_ref().map(Payload::hash);
    let refs = Refs { action: Some(row.holder), ..Refs::NONE };
    let body = if source == Source::Remote {
        Body::EffectReconciled(data, sealed)
    } else {
        Body::EffectResolved(data, sealed)
    };
    case.record_with(stream, refs, body, payload);
    let receipt = answer_held(case, row.holder, &stream, row.fence, Answer::from(outcome), source, ended)?;
    Ok(Reply::Settled { state: outcome.into(), receipt, repeated: false })
}
