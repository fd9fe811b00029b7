//! What can come back instead of a committed action.

use onceseal_core::action::ProposalError;
use onceseal_core::code::{Code, Retry};
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::reply::Refusal;
use onceseal_core::time::Timestamp;
use onceseal_store::StoreError;
use onceseal_store::mark::MarkError;
use onceseal_store::place::PlaceError;

use crate::config::ConfigError;
use crate::executed::{Executed, Failure};

/// Why an action was not committed, or a command not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Policy, a person, an approval or the effect's state said no.
    #[error("{}", refusal_text(.0))]
    Refused(Box<Refusal>),
    /// As [`Error::Refused`], by a "no" that passes. But the caller had given the
    /// action an id, and it ended with this answer: the same call is answered so
    /// for ever, and one with another id, or none, is looked at anew.
    #[error("{}; this action id has ended with this answer: ask again under another", refusal_text(.0))]
    Ended(Box<Refusal>),
    /// A person must answer first. The action waits; repeat the call, or acquire it.
    #[error("{action} waits for a person: `onceseal approve {approval}`, then repeat the call")]
    ApprovalNeeded {
        /// The waiting action.
        action: ActionId,
        /// The request.
        approval: ApprovalId,
        /// When the request ends.
        expires_at: Timestamp,
    },
    /// Nobody answered within the wait. The request stays.
    #[error("nobody answered {approval} within the wait; the request stays until it expires")]
    WaitTimeout {
        /// The waiting action.
        action: ActionId,
        /// The request.
        approval: ApprovalId,
    },
    /// The executor said that nothing was done, or could not be started.
    #[error("not executed: {message}{}", if *.named { NAMED } else { "" })]
    NotExecuted {
        /// The action.
        action: ActionId,
        /// Its receipt.
        receipt: Option<ReceiptId>,
        /// A short code of the executor.
        code: Option<String>,
        /// What the executor said.
        message: String,
        /// Whether the executor of this call said it. If not, it was not started,
        /// or this is the answer that the action had before.
        ran: bool,
        /// Whether the caller had given the action an id: the same call is
        /// answered so for ever, and one with another id, or none, tries again.
        named: bool,
    },
    /// The executor ended without saying whether it acted. Nothing new starts
    /// under the effect key until somebody finds out.
    #[error("it is unknown whether {action} happened: {message}; look at the remote, then resolve it")]
    Unknown {
        /// The action.
        action: ActionId,
        /// Its receipt.
        receipt: Option<ReceiptId>,
        /// A short code of the executor.
        code: Option<String>,
        /// What the executor said.
        message: String,
        /// Why the outcome could not be recorded either, if so.
        unrecorded: Option<Box<Error>>,
        /// Whether the executor of this call did. If not, this is the answer that
        /// the action had before.
        ran: bool,
    },
    /// The executor ran and said whether it acted, and that did not become the
    /// outcome: it could not be recorded, or somebody else had answered for the
    /// attempt. The code is the reason's.
    #[error("the executor of {action} said that {}, and that did not become its outcome: {because}", said(.returned))]
    Unsettled {
        /// The action.
        action: ActionId,
        /// The attempt, counted per effect key from 1.
        fence: u64,
        /// What the executor returned, as it would have been recorded: without
        /// redacted values.
        returned: Executed,
        /// Why it did not become the outcome.
        because: Box<Error>,
    },
    /// The arguments are not such as the tool takes; nothing was recorded.
    #[error("arguments: {0}")]
    Arguments(String),
    /// The call cannot be a proposal; nothing was recorded.
    #[error(transparent)]
    Proposal(#[from] ProposalError),
    /// There is no run definition of this kind; nothing was recorded.
    #[error("there is no run definition `{kind}`; known are {}", known.join(", "))]
    KindUnknown {
        /// The kind that was asked for.
        kind: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state has no safe place.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// What was seen of the store cannot be looked up or kept.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store answered something that does not belong to the command: a
    /// fault of ours.
    #[error("a fault in Onceseal: unexpected answer")]
    Unexpected,
}

const NAMED: &str = "; this action id has ended with this answer: try again under another";

const fn said(returned: &Executed) -> &'static str {
    match returned {
        Ok(_) => "it was done",
        Err(Failure::NotExecuted { .. }) => "nothing was done",
        Err(Failure::Unknown { .. }) => "it may have been done",
    }
}

fn refusal_text(refusal: &Refusal) -> String {
    let mut text = format!("{}: {}", refusal.code, refusal.code.sentence());
    if let Some(reason) = &refusal.reason {
        text.push_str(&format!(" ({reason})"));
    }
    if let Some(detail) = &refusal.detail {
        text.push_str(&format!(" ({detail})"));
    }
    if let Some(held) = &refusal.held {
        let what = held.resource.as_deref().unwrap_or("it");
        text.push_str(&format!(" ({what} is held by {} until {})", held.by.holder, held.by.until));
    }
    if let Some(field) = refusal.field {
        let how =
            if matches!(refusal.code, Code::OutOfBounds | Code::FactClaimed) { "in" } else { "differs in" };
        text.push_str(&format!(" ({how} {field})"));
    }
    text
}

impl Error {
    /// The stable code: a refusal's, or a word for the other cases.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refusal) | Error::Ended(refusal) => refusal.code.as_str(),
            Error::ApprovalNeeded { .. } => "approval_needed",
            Error::WaitTimeout { .. } => "wait_timeout",
            Error::NotExecuted { .. } => Code::NotExecuted.as_str(),
            Error::Unknown { .. } => "outcome_unknown",
            Error::Unsettled { because, .. } => because.code(),
            Error::Proposal(_) | Error::Arguments(_) => "invalid_argument",
            Error::KindUnknown { .. } => "kind_unknown",
            Error::Store(error) => error.code().as_str(),
            Error::Place(error) => error.code(),
            Error::Mark(error) => error.code(),
            Error::Config(error) => error.code(),
            Error::Unexpected => Code::Internal.as_str(),
        }
    }

    /// When the same call may succeed.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Error::Refused(refusal) => refusal.code.retry(),
            Error::ApprovalNeeded { .. } | Error::WaitTimeout { .. } => Retry::AfterApproval,
            Error::NotExecuted { named, .. } => {
                if *named {
                    Retry::Never
                } else {
                    Retry::Later
                }
            }
            Error::Unknown { .. } => Retry::AfterResolution,
            Error::Unsettled { because, .. } => match &**because {
                Error::Refused(refusal) => refusal.code.retry(),
                // The lease's lapse makes it unknown.
                _ => Retry::AfterResolution,
            },
            Error::Store(error) => error.code().retry(),
            Error::Ended(_)
            | Error::Proposal(_)
            | Error::Arguments(_)
            | Error::KindUnknown { .. }
            | Error::Place(_)
            | Error::Mark(_)
            | Error::Config(_)
            | Error::Unexpected => Retry::Never,
        }
    }

    /// The refusal, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Error::Refused(refusal) | Error::Ended(refusal) => Some(refusal),
            Error::Unsettled { because, .. } => because.refusal(),
            _ => None,
        }
    }

    /// Whether the executor of this call ran: what it did is done, whatever the
    /// error says.
    #[must_use]
    pub const fn ran(&self) -> bool {
        match self {
            Error::NotExecuted { ran, .. } | Error::Unknown { ran, .. } => *ran,
            Error::Unsettled { .. } => true,
            _ => false,
        }
    }
}
