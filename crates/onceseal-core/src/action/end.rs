//! How actions end: with a receipt, in the transaction of what ended them.

use crate::action::event::{ActionSealed, Answered, Decided, Ended, Proposed};
use crate::action::{ActionState, Answer};
use crate::approval::Source;
use crate::case::Case;
use crate::code::Code;
use crate::effect::Outcome;
use crate::id::{ActionId, ApprovalId, ReceiptId};
use crate::journal::{Body, Refs};
use crate::operation;
use crate::reply::Reply;
use crate::stream::StreamId;
use crate::time::Span;
use crate::view::Halt;

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Committed => Answer::Committed,
            Outcome::Failed => Answer::Failed,
            Outcome::Ambiguous => Answer::Ambiguous,
        }
    }
}

/// What ends: the pieces of an `action.ended` event.
pub(crate) struct End {
    pub(crate) action: ActionId,
    pub(crate) result: Answer,
    pub(crate) code: Option<Code>,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) decided: Option<Decided>,
    pub(crate) proposal: Option<(Proposed, crate::journal::Payload)>,
}

/// Records the end of an action and its receipt.
pub(crate) fn end(case: &mut Case<'_>, end: End) -> ReceiptId {
    let receipt = case.receipt();
    let refs = Refs { action: None, approval: end.approval, receipt: Some(receipt) };
    let (proposal, payload) = end.proposal.unzip();
    let data = Ended { code: end.code, decided: end.decided, result: end.result };
    let body = Body::ActionEnded(data, ActionSealed { proposal });
    case.record_with(StreamId::action(end.action), refs, body, payload);
    receipt
}

/// Ends the action that holds this attempt, if it is recorded and still runs.
/// An operation whose outcome is not known goes on instead where its contract
/// lets it, not sooner than `after`; with `None` a person must look first.
pub(crate) fn end_held(
    case: &mut Case<'_>,
    action: ActionId,
    effect: &StreamId,
    fence: u64,
    result: Answer,
    code: Option<Code>,
    after: Option<Span>,
) -> Result<Option<ReceiptId>, Halt> {
    match case.view.action(action)? {
        Some(row) if row.runs(effect, fence) => {
            if let (Answer::Ambiguous, Some(after)) = (result, after)
                && operation::goes_on(case, action, row, code, after)?
            {
                return Ok(None);
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(end(case, End { action, result, code, approval: None, decided: None, proposal: None })))
}

/// Answers for the unknown outcome of the action that held this attempt. It
/// may still run, wait to be attempted again, be ended, or have been `ended` by
/// this very command.
pub(crate) fn answer_held(
    case: &mut Case<'_>,
    action: ActionId,
    effect: &StreamId,
    fence: u64,
    result: Answer,
    source: Source,
    ended: bool,
) -> Result<Option<ReceiptId>, Halt> {
    let Some(row) = case.view.action(action)? else { return Ok(None) };
    if row.held != Some((*effect, fence)) {
        return Ok(None);
    }
    match row.state {
        ActionState::Running { .. } | ActionState::Queued { .. } if !ended => {
            let (code, approval, decided, proposal) = (None, None, None, None);
            Ok(Some(end(case, End { action, result, code, approval, decided, proposal })))
        }
        ActionState::Running { .. } | ActionState::Ended { result: Answer::Ambiguous, .. } => {
            let receipt = case.receipt();
            let refs = Refs { receipt: Some(receipt), ..Refs::NONE };
            let body = Body::ActionAnswered(Answered { result, source }, crate::journal::Nothing {});
            case.record(StreamId::action(action), refs, body);
            Ok(Some(receipt))
        }
        _ => Ok(None),
    }
}

/// Ends the action that waits for this approval, if it still does.
pub(crate) fn end_waiting(
    case: &mut Case<'_>,
    action: ActionId,
    approval: ApprovalId,
    code: Code,
) -> Result<Option<ReceiptId>, Halt> {
    match case.view.action(action)? {
        Some(row) if row.state == (ActionState::Waiting { approval }) => {}
        _ => return Ok(None),
    }
    let result = if code == Code::ApprovalDenied { Answer::Denied } else { Answer::Blocked };
    Ok(Some(end(
        case,
        End { action, result, code: Some(code), approval: None, decided: None, proposal: None },
    )))
}

/// Ends a ready action whose time is over, and gives an operation up that no
/// worker has carried out in time.
pub(crate) fn lapse(case: &mut Case<'_>, stream: &StreamId) -> Result<Reply, Halt> {
    let action = ActionId(stream.name);
    if let Some(changed) = operation::give_up(case, action)? {
        return Ok(Reply::Done { changed });
    }
    let over = case.view.action(action)?.is_some_and(|row| row.state.over(case.now));
    if over {
        let code = Some(Code::NotStarted);
        end(
            case,
            End { action, result: Answer::Blocked, code, approval: None, decided: None, proposal: None },
        );
    }
    Ok(Reply::Done { changed: over })
}
