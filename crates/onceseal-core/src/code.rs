//! Every answer that is not "done": one stable code, when trying again makes
//! sense, and the sentence a person reads.

use crate::record::word;

word! {
    /// When the same request may succeed.
    pub enum Retry {
        /// Not as it is: change the request.
        Never = 1 => "never",
        /// At once, with the same id.
        SameId = 2 => "same_id",
        /// Once a person has answered.
        AfterApproval = 3 => "after_approval",
        /// Once the unknown outcome is known.
        AfterResolution = 4 => "after_resolution",
        /// After a while.
        Later = 5 => "later",
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal => $text:literal, $retry:ident, $sentence:literal;)*) => {
        word! {
            /// A stable code of a refusal or an unknown outcome.
            pub enum Code { $($(#[$doc])* $code = $number => $text,)* }
        }

        impl Code {
            /// When the same request may succeed.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Code::$code => Retry::$retry,)* }
            }

            /// What happened and what to do next, for people.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Code::$code => $sentence,)* }
            }
        }
    };
}

codes! {
    /// Policy says no.
    PolicyDenied = 1 => "policy_denied", Never,
        "the policy denies this action; `onceseal policy explain` shows the rule";
    /// A person said no.
    ApprovalDenied = 2 => "approval_denied", Never,
        "a person denied this action, and it is not asked again before the request expires; change what is asked for, or ask that person";
    /// No such approval in this tenant.
    ApprovalUnknown = 3 => "approval_unknown", Never,
        "there is no such approval; leave the id out to have one requested";
    /// The approval was given for something else.
    ApprovalMismatch = 4 => "approval_mismatch", Never,
        "the approval was given for another action; propose this one without it and it is asked anew";
    /// Nobody has answered yet.
    ApprovalPending = 5 => "approval_pending", AfterApproval,
        "the approval has not been answered; repeat the call once it is granted";
    /// The approval's time is over.
    ApprovalExpired = 6 => "approval_expired", Never,
        "the approval has expired; propose the action again to have it asked anew";
    /// The approval was taken back.
    ApprovalRevoked = 7 => "approval_revoked", Never,
        "the approval was revoked; propose the action again to have it asked anew";
    /// The approval has been used.
    ApprovalUsed = 8 => "approval_used", Never,
        "the approval has been used, and an approval counts once; propose the action again";
    /// Nobody could answer such a request.
    ApprovalUnanswerable = 9 => "approval_unanswerable", Never,
        "nobody who could be proven here is entitled to answer; see `onceseal policy check`";
    /// The approval has been answered already.
    ApprovalDecided = 10 => "approval_decided", Never,
        "the approval has already been decided, and the first decision stands; there is nothing to do, or deny what was granted";
    /// This person may not answer.
    NotEntitled = 11 => "not_entitled", Never,
        "this person is not among those who may answer; have one of them answer, `onceseal approvals show` names them";
    /// This kind of proof is not taken.
    ProofNotTaken = 12 => "proof_not_taken", Never,
        "the request does not take this kind of proof of identity; answer where another kind is proven, `onceseal approvals show` names it";
    /// The acting agent cannot approve its own action.
    AgentCannotAnswer = 13 => "agent_cannot_answer", Never,
        "the agent that acts cannot answer for its own action; have a person answer";
    /// What was shown is not what is stored.
    ShownDiffers = 14 => "shown_differs", Never,
        "the answer repeats another hash than the request has; show the request again and answer that";
    /// The name of the person is not acceptable.
    PersonInvalid = 15 => "person_invalid", Never,
        "a person is one printable line of at most 255 characters in NFC, without hidden characters; name them so";

    /// The effect has happened.
    Duplicate = 20 => "duplicate", Never,
        "this effect has already happened; its result is the answer, and there is nothing to do";
    /// The effect is being attempted.
    InProgress = 21 => "in_progress", Later,
        "another attempt at this effect is under way; ask again after its lease ends";
    /// Nobody knows whether the effect happened.
    Ambiguous = 22 => "ambiguous", AfterResolution,
        "nobody knows whether this effect happened; look at the remote, then `onceseal resolve` it";
    /// Something else was done under this key.
    EffectKeyConflict = 23 => "effect_key_conflict", Never,
        "this effect key belongs to a different request; add what tells the two apart to the effect template";
    /// As many attempts as the policy permits.
    AttemptLimit = 24 => "attempt_limit", Never,
        "the policy permits no further attempt at this effect; raise `max_attempts` if there should be one";
    /// The effect template has no value here.
    EffectKeyError = 25 => "effect_key_error", Never,
        "the effect template cannot be filled from these arguments; give the argument that it names, as text or an integer";
    /// The resource template has no value here.
    ResourceError = 26 => "resource_error", Never,
        "the resource template cannot be filled from these arguments; give the argument that it names, as text or an integer";
    /// The action was not started in time.
    NotStarted = 27 => "not_started", Never,
        "the action was proposed and not started in time; propose it again";

    /// The id names another action.
    IdReused = 40 => "id_reused", Never,
        "this action id belongs to other content; use a new id";
    /// No such action.
    ActionUnknown = 41 => "action_unknown", Never,
        "there is no action with this id; `onceseal receipts list` has those that ended";
    /// No such effect.
    EffectUnknown = 42 => "effect_unknown", Never,
        "there is no effect with this key; `onceseal effects list` lists those there are";
    /// The command does not fit the state.
    InvalidTransition = 43 => "invalid_transition", Never,
        "it is in a state that does not permit this; look at it first, with `onceseal effects show` or `operations show`";
    /// The lease ended before the attempt began or was renewed.
    LeaseLapsed = 44 => "lease_lapsed", AfterResolution,
        "the lease ended first, so the outcome counts as unknown; resolve it before trying again";
    /// A newer attempt, the remote or a person has answered.
    Fenced = 45 => "fenced", Never,
        "a newer attempt, the remote or a person has answered for this effect; the report is kept, the state stays, and there is nothing to do";
    /// Only an unknown outcome can be resolved.
    NotAmbiguous = 46 => "not_ambiguous", Never,
        "only an ambiguous effect can be resolved; there is nothing to resolve here";
    /// Not an operator.
    NotOperator = 47 => "not_operator", Never,
        "this person is not among the operators; have one of them do it, `operators` in the policy names them";
    /// The remote was asked too early to say "absent".
    TooEarly = 48 => "too_early", Later,
        "the remote may still carry the attempt out; ask it again later";
    /// What the rule needs has been erased.
    Erased = 49 => "erased", Never,
        "what this decision needs has been erased; begin with something new, it does not come back";
    /// A value is outside its bounds.
    OutOfBounds = 50 => "out_of_bounds", Never,
        "a lease, deadline or text is outside its limits; give one inside them";

    /// No such tool, or no such contract of it.
    ToolUnknown = 100 => "tool_unknown", Never,
        "there is no such tool, or its contract is active no more; tools stand in the section `tools` of the configuration";
    /// The host names the call in a way that cannot be.
    CallInvalid = 101 => "call_invalid", Never,
        "a name of the call is missing, blank or too long, or its provider profile is unknown; correct it";
    /// An operation needs a key.
    IdempotencyKeyRequired = 102 => "idempotency_key_required", Never,
        "an operation needs an idempotency key, without which a repeated call would be another wish; give one";
    /// The call's identity was used for something else.
    CallIdConflict = 103 => "call_id_conflict", Never,
        "this call was made before for something else; its identity counts once, so give a new call another one";
    /// The key was used for something else.
    IdempotencyConflict = 104 => "idempotency_conflict", Never,
        "this idempotency key belongs to another request; use a new key for a new wish";
    /// The tool's business rule forbids it.
    BusinessRuleViolation = 105 => "business_rule_violation", Never,
        "the tool's business rule does not permit this now; ask again once it does";
    /// The current principal may not touch the resource.
    AuthorizationDenied = 106 => "authorization_denied", Never,
        "there is no such resource for this principal; ask for one that it may use";
    /// No such reference for this principal.
    OperationUnknown = 107 => "operation_unknown", Never,
        "there is no operation with this reference; `onceseal operations list` lists those there are";
    /// The query does not match the operation.
    StatusConflict = 108 => "status_conflict", Never,
        "this reference belongs to another request; ask with the request and key that were dispatched";
    /// The remote's receipt proves another operation.
    RemoteReceiptReused = 113 => "remote_receipt_reused", Never,
        "the remote answered with a receipt that proves another operation; look at the remote, then `onceseal resolve`";
    /// It did not happen.
    NotExecuted = 109 => "not_executed", Later,
        "it is known that nothing was done; it may be tried again, an operation by `onceseal operations retry`";
    /// It was not carried out in time.
    TooLate = 110 => "too_late", Never,
        "it was not carried out within the time its contract gives; `onceseal operations retry` or cancel it";
    /// Something outside could not be asked.
    CannotTell = 112 => "cannot_tell", Later,
        "who may do this, whether a rule permits it or what became of it could not be found out; ask again later";
    /// Its contract is active no more.
    ContractRetired = 111 => "contract_retired", Never,
        "the contract it was accepted under is active no more; activate it again and retry, or cancel it";

    /// Its destination does not answer.
    RouteOpen = 114 => "route_open", Later,
        "its destination did not answer lately, so nothing is attempted there for a while; it is attempted later by itself, see `onceseal operations routes`";
    /// Nothing is recorded of such a destination.
    RouteUnknown = 115 => "route_unknown", Never,
        "nothing is recorded of this destination; `onceseal operations routes` lists those that do not answer";

    /// No such run.
    RunUnknown = 120 => "run_unknown", Never,
        "there is no such run; `onceseal runs list` lists those there are";
    /// Nothing follows on where the run stands.
    RunEnded = 121 => "run_ended", Never,
        "the run has ended, and nothing follows on that; `onceseal runs start` begins a new one of the same change";
    /// The run has no such state.
    StateUnknown = 122 => "state_unknown", Never,
        "the run's definition has no such state; `onceseal runs show` says which may follow";
    /// The definition does not permit it.
    TransitionForbidden = 123 => "transition_forbidden", Never,
        "the run's definition does not let this state follow on the one it is in; `onceseal runs show` says which may";
    /// An operator cannot ask for this where the run stands.
    CommandForbidden = 124 => "command_forbidden", Never,
        "the run's definition does not let this be asked for in the state it is in; `onceseal runs show` lists what can be";
    /// An operator may ask for this, and the program says what follows.
    CommandElsewhere = 125 => "command_elsewhere", Never,
        "what follows on this is for the program that works on the run to say; ask it there";
    /// The id of a request is not acceptable.
    RequestIdInvalid = 126 => "request_id_invalid", Never,
        "a request id is 1 to 128 ASCII letters, digits, dots, underscores, colons and hyphens, both ends a letter or a digit; give such, or leave it out to have one drawn";
    /// The id was used for another request.
    RequestIdConflict = 127 => "request_id_conflict", Never,
        "this request id belongs to another request, or to somebody else's; use a new one for a new request";
    /// The name of a change is not acceptable.
    ChangeInvalid = 128 => "change_invalid", Never,
        "a change is named by 1 to 128 lower-case letters, digits and hyphens, both ends a letter or a digit; name it so";
    /// Runs of this kind begin with a name.
    ProvisionalForbidden = 130 => "provisional_forbidden", Never,
        "runs of this kind are started for a change with a name; name it, `onceseal runs start KIND CHANGE`";
    /// The run's change has a name.
    ChangeBound = 131 => "change_bound", Never,
        "the run's change has a name, which does not change; there is nothing to bind, start another change under another name";
    /// Another run lives under this change.
    ChangeTaken = 132 => "change_taken", Never,
        "another run lives under this change; go on with that one, or end it";

    /// The definition has no such gate.
    GateUnknown = 137 => "gate_unknown", Never,
        "the run's definition has no such gate; `onceseal runs definitions --json` has those it has";
    /// Something else was bound there.
    DeliveryConflict = 138 => "delivery_revision_conflict", Never,
        "something else was bound at this gate with this revision, which is final; bind it with a higher one";
    /// A newer one was bound there.
    DeliveryOld = 139 => "delivery_revision_old", Never,
        "a higher revision was bound at this gate, and revisions of a gate only grow; bind it with a higher one";
    /// The gate asks for an approval.
    ProofRequired = 140 => "proof_required", Never,
        "this gate takes only what a person approved; have the action `run.bind_delivery` approved and name the approval";
    /// There is nothing to bind.
    DeliveriesEmpty = 141 => "deliveries_empty", Never,
        "no delivery was given to bind; name at least one";

    /// The revision is not the newest that was bound.
    DeliveryUnbound = 142 => "delivery_unbound", Never,
        "tasks are planned for the newest delivery of the run, bound at every gate that asks for proof, and this revision is not; bind it first";
    /// Another plan was set for the revision.
    PlanConflict = 143 => "plan_conflict", Never,
        "another plan was set for this revision, which is final; set it for a higher one";
    /// There is no task to be taken now.
    NoTask = 144 => "no_task", Later,
        "no task of this run can be taken now; ask again when one has ended";
    /// No such task.
    TaskUnknown = 145 => "task_unknown", Never,
        "the run's plan has no such task; `onceseal tasks list` lists those it has";
    /// The plan has the task no more.
    TaskClosed = 146 => "task_closed", Never,
        "a newer plan of the run does not have this task; there is nothing to do for it";
    /// A task is taken, not its lease.
    TaskNotTaken = 156 => "task_not_taken", Never,
        "the lease on a task is had by whoever takes the task, with `onceseal tasks take` or `tasks work`; an operator preempts it, and a handoff passes it on, only while somebody has it";
    /// Who did a task does not say that it is right.
    FactClaimed = 147 => "fact_claimed", Never,
        "whoever worked on a task cannot stand for it; name what checked it in `produced_by`";
    /// The attempts of a task are spent.
    AttemptsSpent = 148 => "attempts_spent", Never,
        "this was attempted as often as the plan allows; an operator may grant more";

    /// No such handoff.
    HandoffUnknown = 149 => "handoff_unknown", Never,
        "no handoff of this resource has this receipt; ask whoever handed it over for theirs";
    /// The receipt names another handoff.
    HandoffConflict = 150 => "handoff_conflict", Never,
        "this receipt names another handoff, and one receipt names one; make a receipt of its own for this one";
    /// Another handoff of the resource is prepared.
    HandoffPrepared = 151 => "handoff_prepared", Later,
        "another handoff of this resource is prepared; accept or withdraw that one first";
    /// It was accepted by somebody else, or withdrawn.
    HandoffOver = 152 => "handoff_over", Never,
        "this handoff was accepted by somebody else or withdrawn; there is nothing to accept, have another prepared";
    /// The resource went elsewhere since.
    HandoffStale = 153 => "handoff_stale", Never,
        "somebody else has taken the resource since the handoff was prepared; prepare another";
    /// Facts must be an object.
    FactsInvalid = 154 => "facts_invalid", Never,
        "the facts of a handoff are a JSON object of at most 64 KiB; give such";

    /// Somebody else holds the resource.
    LeaseHeld = 133 => "lease_held", Later,
        "somebody else holds this resource, or a part of it; `onceseal lease inspect` says who and until when, and it can be taken once their lease has ended";
    /// The lease is over, or was never this one.
    LeaseFenced = 134 => "lease_fenced", Never,
        "this lease has ended, and whatever was asked for under it was not done; take the resource again";
    /// An outcome must be an object.
    OutcomeInvalid = 135 => "outcome_invalid", Never,
        "a lease's outcome is a JSON object of at most 64 KiB; give such";
    /// The lease has another outcome.
    OutcomeFinal = 136 => "outcome_final", Never,
        "this lease was given up with another outcome, which is final; there is nothing to do, `onceseal lease inspect` shows it";

    /// No policy is active.
    PolicyMissing = 60 => "policy_missing", Never,
        "no policy is active in this store; `onceseal init` writes one and `onceseal policy apply` activates it";
    /// Another policy is active than the action was prepared under.
    PolicyStale = 61 => "policy_stale", SameId,
        "another policy is active now; prepare the action under it";
    /// The policy file is older than the active policy.
    PolicyFileOld = 62 => "policy_file_old", Never,
        "this policy was active before and is not now; `onceseal policy apply` makes it active again";

    /// The clock moved by more than an hour against the boot clock.
    ClockJump = 80 => "clock_jump", Later,
        "the clock moved by more than an hour while this program ran; check it, then start the program again";
    /// The store had no room for the command in time.
    StoreBusy = 81 => "store_busy", SameId,
        "the store is busy and the command was not begun; repeat it";
    /// The caller took too long to write its own rows.
    OwnRowsLate = 155 => "own_rows_late", SameId,
        "what was to be written beside the command took longer than a second, while others waited, so nothing was recorded; write less, and repeat the command";
    /// Nobody knows whether the command was committed.
    CommitUnknown = 82 => "commit_unknown", SameId,
        "the store cannot say whether this was recorded; repeat the command with the same id";
    /// The store cannot be used.
    StoreFailed = 83 => "store_failed", Later,
        "the store cannot be used, and nothing was recorded; `onceseal doctor` looks why";
    /// The database server does not answer.
    StoreUnreachable = 157 => "store_unreachable", SameId,
        "the database server cannot be reached, and nothing was recorded; repeat the command once it answers, `onceseal doctor` looks why";
    /// The database server does not let this program in.
    StoreRefused = 160 => "store_refused", Later,
        "the database server does not let this program in, and nothing was recorded; correct the address, the role, its password or the server's settings, `onceseal doctor` looks again";
    /// A store that moves to the server is not there yet.
    StoreArriving = 161 => "store_arriving", Later,
        "a store moves from a file to this server and is not there yet; where `onceseal migrate` was ended before its end, run it again on the host that the file is on";
    /// The schema on the server is older than this program's.
    SchemaOld = 158 => "schema_old", Later,
        "the schema on the server is older than this program's; update the programs on all hosts, then `onceseal migrate` brings it to theirs";
    /// A standby may take over without what was acknowledged.
    StandbyMayLose = 159 => "standby_may_lose", Never,
        "commits on this server do not wait for its standby, which may take over without what was acknowledged; set `synchronous_standby_names` there, or accept it by `asynchronous_standby: true` in the settings";
    /// The store was closed.
    StoreClosed = 84 => "store_closed", Never,
        "the store has been closed; open it again";
    /// A stored row or event is not readable.
    Corrupt = 85 => "corrupt", Never,
        "a stored record is not readable; `onceseal audit` names it";
    /// The store is older than what this account has seen.
    StoreWentBack = 86 => "store_went_back", Never,
        "the store is older than what was seen before, or another one; `onceseal doctor` says what may be repeated";
    /// A rule failed in a way that is a fault of ours.
    Internal = 87 => "internal", Never,
        "a fault in Onceseal refused this command alone, and nothing was recorded for it; report it, with what was asked";
    /// The store is not ours or is newer.
    StoreForeign = 88 => "store_foreign", Never,
        "this is no store that this program can use, and it was left as it is; name another one, or use the program that made it";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_says_what_to_do_next_or_that_there_is_nothing_to_do() {
        for code in Code::ALL {
            let (_, next) = code.sentence().split_once("; ").unwrap_or_default();
            assert!(!next.is_empty(), "{code}: {}", code.sentence());
        }
    }
}
