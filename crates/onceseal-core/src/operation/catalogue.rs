//! What a model may be told of a "no": a fixed code, a fixed sentence, and what
//! it may do next. Nothing of another principal, of the store or of a rule.

use crate::action::Answer;
use crate::code::Code;
use crate::record::word;
use crate::reply::Standing;

word! {
    /// What kind of "no" it is.
    pub enum Category {
        /// The call is malformed.
        Contract = 1 => "contract",
        /// The principal may not.
        Authorization = 2 => "authorization",
        /// It was used for something else.
        Conflict = 3 => "conflict",
        /// The current state of the business forbids it.
        Business = 4 => "business",
        /// A person has not said yes.
        Approval = 5 => "approval",
        /// What became of it is not known, or it went wrong.
        Execution = 6 => "execution",
        /// Something that is needed is not there.
        Dependency = 7 => "dependency",
    }
}

word! {
    /// What the model may do about it.
    pub enum Remedy {
        /// Nothing.
        None = 1 => "none",
        /// Call with other input.
        CorrectInput = 2 => "correct_input",
        /// Have a person look.
        HumanReview = 3 => "human_review",
        /// Have a person approve.
        RequestApproval = 4 => "request_approval",
        /// Ask for the status.
        QueryStatus = 5 => "query_status",
        /// Call again after the time given.
        RetryAfter = 6 => "retry_after",
    }
}

macro_rules! catalogue {
    ($($(#[$doc:meta])* $code:ident = $number:literal => $text:literal, $category:ident, $unknown:literal, $remedy:ident, $sentence:literal;)*) => {
        word! {
            /// The code that a model is told.
            pub enum ModelCode { $($(#[$doc])* $code = $number => $text,)* }
        }

        impl ModelCode {
            /// What kind of "no" it is.
            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(ModelCode::$code => Category::$category,)* }
            }

            /// Whether it is unknown what became of it; otherwise nothing was started.
            #[must_use]
            pub const fn is_unknown(self) -> bool {
                match self { $(ModelCode::$code => $unknown,)* }
            }

            /// What the model may do about it.
            #[must_use]
            pub const fn remedy(self) -> Remedy {
                match self { $(ModelCode::$code => Remedy::$remedy,)* }
            }

            /// The one sentence that it is told.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(ModelCode::$code => $sentence,)* }
            }
        }
    };
}

catalogue! {
    /// There is no such tool.
    UnknownTool = 1 => "UNKNOWN_TOOL", Contract, false, CorrectInput, "There is no such tool.";
    /// The arguments are not such as the tool takes.
    InvalidArguments = 2 => "INVALID_ARGUMENTS", Contract, false, CorrectInput,
        "The arguments are not such as the tool takes.";
    /// There is no such thing for this principal.
    NotFound = 3 => "NOT_FOUND", Authorization, false, None, "There is no such thing.";
    /// There is no idempotency key.
    IdempotencyKeyRequired = 4 => "IDEMPOTENCY_KEY_REQUIRED", Contract, false, CorrectInput,
        "An idempotency key is needed.";
    /// The call was made before for something else.
    CallIdConflict = 5 => "CALL_ID_CONFLICT", Conflict, false, HumanReview,
        "This call was made before for something else.";
    /// The key belongs to another request.
    IdempotencyConflict = 6 => "IDEMPOTENCY_CONFLICT", Conflict, false, HumanReview,
        "This idempotency key belongs to another request.";
    /// It is not permitted now.
    BusinessRuleViolation = 7 => "BUSINESS_RULE_VIOLATION", Business, false, HumanReview,
        "This is not permitted at present.";
    /// A person must approve it.
    ApprovalRequired = 8 => "APPROVAL_REQUIRED", Approval, false, RequestApproval,
        "A person must approve this first.";
    /// No approval that was given counts.
    ApprovalInvalid = 9 => "APPROVAL_INVALID", Approval, false, RequestApproval,
        "The approval does not count for this.";
    /// It is accepted, and not known what became of it.
    OutcomeUnknown = 10 => "OUTCOME_UNKNOWN", Execution, true, QueryStatus,
        "It was accepted, and what became of it is not known yet.";
    /// The query does not match the operation.
    StatusConflict = 11 => "STATUS_CONFLICT", Conflict, true, HumanReview,
        "This reference belongs to another request.";
    /// It was done, and what it returned is not such as the tool returns.
    OutputContractViolation = 12 => "OUTPUT_CONTRACT_VIOLATION", Execution, true, HumanReview,
        "It was done, and its result cannot be shown.";
    /// It was not started in time.
    TimeoutBeforeExecute = 13 => "TIMEOUT_BEFORE_EXECUTE", Execution, false, RetryAfter,
        "It was not started in time.";
    /// What it depends on is busy, or does not answer.
    RateLimit = 14 => "RATE_LIMIT", Dependency, false, RetryAfter,
        "It cannot be taken at the moment.";
    /// It could not be done.
    ToolError = 15 => "TOOL_ERROR", Execution, false, HumanReview, "It could not be done.";
}

impl ModelCode {
    /// What a model is told of where an operation stands; `None`: it was done.
    #[must_use]
    pub const fn of_standing(standing: &Standing) -> Option<ModelCode> {
        match standing {
            Standing::Ended { result: Answer::Committed, .. } => None,
            Standing::Ended { result: Answer::Ambiguous, .. }
            | Standing::Queued { .. }
            | Standing::Running { .. }
            // A person may still have it carried out.
            | Standing::Parked { .. }
            | Standing::Unknown => Some(ModelCode::OutcomeUnknown),
            Standing::Ended { .. } => Some(ModelCode::ToolError),
        }
    }

    /// After how many milliseconds it may be called again.
    #[must_use]
    pub const fn retry_after_ms(self) -> Option<u32> {
        match self.remedy() {
            Remedy::RetryAfter => Some(1_000),
            _ => None,
        }
    }

    /// What a model is told of a refusal.
    #[must_use]
    pub const fn of(code: Code) -> ModelCode {
        match code {
            Code::ToolUnknown => ModelCode::UnknownTool,
            Code::AuthorizationDenied | Code::OperationUnknown => ModelCode::NotFound,
            Code::IdempotencyKeyRequired => ModelCode::IdempotencyKeyRequired,
            Code::CallIdConflict => ModelCode::CallIdConflict,
            Code::IdempotencyConflict | Code::EffectKeyConflict => ModelCode::IdempotencyConflict,
            Code::BusinessRuleViolation | Code::PolicyDenied => ModelCode::BusinessRuleViolation,
            Code::ApprovalPending => ModelCode::ApprovalRequired,
            Code::ApprovalDenied
            | Code::ApprovalUnknown
            | Code::ApprovalMismatch
            | Code::ApprovalExpired
            | Code::ApprovalRevoked
            | Code::ApprovalUsed
            | Code::ApprovalUnanswerable => ModelCode::ApprovalInvalid,
            Code::Ambiguous | Code::InProgress | Code::CommitUnknown => ModelCode::OutcomeUnknown,
            Code::StatusConflict => ModelCode::StatusConflict,
            Code::CallInvalid | Code::OutOfBounds | Code::EffectKeyError | Code::ResourceError => {
                ModelCode::InvalidArguments
            }
            Code::TooLate => ModelCode::TimeoutBeforeExecute,
            Code::StoreBusy | Code::CannotTell => ModelCode::RateLimit,
            _ => ModelCode::ToolError,
        }
    }
}
