//! Every way a call ends without an attempt.

use crate::action::end::{End, end};
use crate::action::permit::first;
use crate::action::row::refusal_key;
use crate::action::run::Wish;
use crate::action::{ActionRow, ActionState, Answer};
use crate::approval;
use crate::case::Case;
use crate::code::Code;
use crate::effect;
use crate::id::{ActionId, ApprovalId, ReceiptId};
use crate::limits;
use crate::reply::{EffectNow, Refusal, Reply};
use crate::view::{Halt, Range};

/// A "no" and what it concerns.
pub(crate) struct No {
    pub(crate) result: Answer,
    pub(crate) code: Code,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) field: Option<&'static str>,
    pub(crate) status: Option<approval::Status>,
    pub(crate) effect: Option<EffectNow>,
    /// Whether a waiting or ready action ends by it.
    pub(crate) terminal: bool,
}

impl No {
    pub(crate) const fn terminal(result: Answer, code: Code) -> No {
        No { result, code, approval: None, field: None, status: None, effect: None, terminal: true }
    }
}

/// The effect refuses. An action that waits or is ready stays so: it may be
/// tried again once the effect is known.
pub(super) fn refuse(
    case: &mut Case<'_>,
    wish: &Wish<'_>,
    code: Code,
    effect: EffectNow,
) -> Result<Reply, Halt> {
    let no = No { effect: Some(effect), terminal: false, ..No::terminal(Answer::Blocked, code) };
    conclude(case, wish, no)
}

/// Ends a new action with a receipt, or a recorded one if the "no" is final
/// for it or has left it nothing to wait for. The same refusal within a minute
/// is answered with the first receipt.
pub(crate) fn conclude(case: &mut Case<'_>, wish: &Wish<'_>, no: No) -> Result<Reply, Halt> {
    let mut refusal = Refusal {
        reason: (no.code == Code::PolicyDenied).then(|| wish.decided.reason.clone()),
        field: no.field,
        approval: no.approval,
        status: no.status,
        effect: no.effect,
        ..Refusal::new(no.code)
    };
    match &wish.known {
        Some(_) if !no.terminal && !stranded(case, wish) => refusal.action = Some(wish.id),
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

/// Whether this command has ended the request that the action waits for.
pub(super) fn stranded(case: &Case<'_>, wish: &Wish<'_>) -> bool {
    wish.waits_for().is_some_and(|approval| case.closed.contains(&approval))
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

/// The terminal answer of an action that has one: nothing is asked of whoever
/// repeats it, neither the policy nor bounds.
pub(super) fn ended(case: &Case<'_>, id: ActionId, row: &ActionRow) -> Result<Option<Reply>, Halt> {
    let (result, code, receipt) = match row.state {
        ActionState::Ended { result, code, receipt } => (result, code, receipt),
        ActionState::Answered { result, receipt, .. } => (result, None, receipt),
        _ => return Ok(None),
    };
    came_to(case, id, row, result, code, receipt).map(Some)
}

fn came_to(
    case: &Case<'_>,
    action: ActionId,
    row: &ActionRow,
    result: Answer,
    code: Option<Code>,
    receipt: ReceiptId,
) -> Result<Reply, Halt> {
    let stored = match row.held {
        Some((stream, fence)) => effect::stored_result(case, &stream, fence)?,
        None => None,
    };
    Ok(Reply::Ended { action, result, code, receipt, stored })
}

/// A worker is to carry the action out: nobody else does.
pub(super) fn queued(case: &Case<'_>, wish: &Wish<'_>) -> Result<Reply, Halt> {
    let operation = wish.known.as_ref().and_then(|row| row.operation.as_ref());
    let Some(operation) = operation else { return Err(Halt::Unreadable) };
    let effect = effect::now(case, &operation.effect, Some(wish.proposal))?;
    Ok(Refusal { action: Some(wish.id), effect, ..Refusal::new(Code::InProgress) }.into())
}

/// The action runs: in progress, or unknown if its lease is found lapsed.
pub(super) fn running(case: &mut Case<'_>, wish: &Wish<'_>) -> Result<Reply, Halt> {
    let Some(known) = &wish.known else { return Err(Halt::Unreadable) };
    let Some((stream, fence)) = known.held else { return Err(Halt::Unreadable) };
    let over = case.view.effect(&stream)?.filter(|row| row.lapses(fence, case.now)).cloned();
    let mut state = None;
    if let Some(row) = over {
        let lapsed = effect::record_lapse(case, &stream, &row)?;
        if let Some(receipt) = lapsed.receipt {
            return came_to(case, wish.id, known, Answer::Ambiguous, Some(Code::LeaseLapsed), receipt);
        }
        state = Some(lapsed.state);
    }
    let effect = effect::now(case, &stream, Some(wish.proposal))?
        .map(|effect| EffectNow { state: state.unwrap_or(effect.state), ..effect });
    Ok(Refusal { action: Some(wish.id), effect, ..Refusal::new(Code::InProgress) }.into())
}
