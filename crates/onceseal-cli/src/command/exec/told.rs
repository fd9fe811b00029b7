//! What is said of a command that was run, or was not.

use std::process::ExitCode;

use onceseal::Outcome;
use onceseal::core::action::Action;
use onceseal::core::code::{Code, Retry};
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::Policy;
use onceseal::core::reply::Refusal;
use onceseal::core::stream::own_effect_key;
use onceseal::process::Ended;
use onceseal::{Control, Error, Receipt};

use super::Ran;
use crate::command::refused;
use crate::context::Context;
use crate::error::{CliError, REFUSED};
use crate::text::{literal, shell};

impl Ran {
    /// The key under which the effect was taken.
    fn key(&self) -> String {
        self.call.effect_key().map_or_else(|| own_effect_key(self.call.action()), str::to_owned)
    }

    /// How the command ended, for people.
    fn end(&self) -> String {
        match &self.ended {
            Some((ended, _)) => ended.to_string(),
            None => "the program had not ended at the deadline".to_owned(),
        }
    }

    /// How the command ended, for programs.
    fn child(&self) -> Value {
        let Some((ended, _)) = &self.ended else { return Value::Null };
        let mut object = Object::new();
        object.insert("code", ended.code());
        let (exit, signal) = match ended {
            Ended::Exit(status) => (Value::Integer((*status).into()), Value::Null),
            Ended::Signal(signal) => (Value::Null, Value::Integer((*signal).into())),
            _ => (Value::Null, Value::Null),
        };
        object.insert("exit", exit);
        object.insert("signal", signal);
        object.into()
    }
}

/// The command committed, now or before.
pub(super) fn done(
    context: &Context,
    control: &Control,
    receipt: &Receipt,
    ran: Option<&Ran>,
) -> Result<ExitCode, CliError> {
    let key = ran.map(Ran::key).or_else(|| refused::effect_key(control, receipt.action));
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("action", receipt.action.to_string());
        object.insert("receipt", receipt.id.map_or(Value::Null, |id| id.to_string().into()));
        object.insert("result", "committed");
        object.insert("replayed", receipt.replayed);
        object.insert("attempt", refused::integer(receipt.fence));
        object.insert("effect_key", key.clone().map_or(Value::Null, Value::Text));
        object.insert("child", ran.map_or(Value::Null, Ran::child));
        object.insert("policy_activated", context.activated());
        // Whoever cannot be told on stdout must not take it for undone.
        context.out.document(object).map_err(|error| {
            error.because(committed(receipt, &key)).about("action", receipt.action.to_string()).ran()
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    context.out.note(&committed(receipt, &key));
    Ok(ExitCode::SUCCESS)
}

fn committed(receipt: &Receipt, key: &Option<String>) -> String {
    let key = key.as_ref().map(|key| literal(&key.as_str().into())).unwrap_or_default();
    let id = receipt.id.map(|id| format!(", receipt {id}")).unwrap_or_default();
    if receipt.replayed {
        format!("{} had committed {key} already{id}; the command was not run", receipt.action)
    } else {
        format!("committed {key}, attempt {}{id}", receipt.fence)
    }
}

/// Why the action was not committed, or is not known to be.
pub(super) fn not_done(
    control: &Control,
    policy: &Policy,
    action: &Action,
    error: Error,
    ran: Option<&Ran>,
) -> CliError {
    let told = match (&error, ran) {
        (Error::NotExecuted { action, receipt, message, named, .. }, _) => {
            let again = match named {
                true => "the effect is free: the same command without this --id tries again",
                false => "the effect is free: the same command tries again",
            };
            CliError::new(error.code(), format!("not executed: {message}"), REFUSED)
                .retry(error.retry())
                .about("action", action.to_string())
                .about_receipt(*receipt)
                .next(again)
        }
        (Error::Unknown { unrecorded: Some(because), .. } | Error::Unsettled { because, .. }, Some(ran)) => {
            match &**because {
                Error::Refused(refusal) if refusal.code == Code::Fenced => fenced(control, refusal, ran),
                because => unrecorded(ran, because),
            }
        }
        (Error::Unknown { action: id, receipt, message, .. }, _) => {
            let message_of = format!("it is unknown whether {} happened", action.name);
            let told = CliError::new(error.code(), message_of, REFUSED)
                .retry(error.retry())
                .about("action", id.to_string())
                .about_receipt(*receipt)
                .because(message.clone());
            match refused::effect_key(control, *id) {
                Some(key) => refused::to_resolve(told.about("effect_key", key.as_str()), &key),
                None => told,
            }
        }
        (_, Some(ran)) => unrecorded(ran, &error),
        (_, None) => not_run(control, policy, action, error),
    };
    match ran {
        Some(ran) => told.about("child", ran.child()),
        None => told,
    }
}

/// Somebody else has answered, and what the command did is kept beside that.
fn fenced(control: &Control, refusal: &Refusal, ran: &Ran) -> CliError {
    refused::explained(control, refusal)
        .because(format!("the command ran: {}", ran.end()))
        .about("action", ran.call.action().to_string())
        .about("effect_key", ran.key())
}

/// The command may have acted, and the store does not know how it ended: the
/// lease ends without a report.
fn unrecorded(ran: &Ran, cause: &Error) -> CliError {
    let (call, key) = (&ran.call, ran.key());
    let what = match &ran.ended {
        Some((Ended::NotStarted(_), _)) => "the command was not run, and that",
        _ => "the command ran, and how it ended",
    };
    let recorded = match cause.code() == Code::CommitUnknown.as_str() {
        true => "may not be recorded",
        false => "is not recorded",
    };
    let until = call.attempt().deadline;
    let told = CliError::new("outcome_unrecorded", format!("{what} {recorded}"), REFUSED)
        .retry(Retry::AfterResolution)
        .because(format!("{}; {}: {}", ran.end(), cause.code(), unwritten(cause)))
        .because(format!(
            "the effect {} of {} counts as in progress until its lease ends, {until} at the latest, and as ambiguous \
             from then on",
            literal(&key.as_str().into()),
            call.action(),
        ))
        .about("action", call.action().to_string())
        .about("effect_key", key.as_str())
        .about("attempt", refused::integer(call.fence()))
        .about("cause", cause.code())
        .about("lease_ends_by", until.to_string());
    let key = shell(&key);
    let told = told.next(format!("onceseal effects show {key}")).next("and once its lease has ended");
    let resolve = format!("onceseal resolve {key} --fence {}", call.fence());
    match &ran.ended {
        Some((_, Outcome::Committed)) => {
            told.next(format!("{resolve} --committed --reason 'the command exited with status 0'"))
        }
        Some((ended, Outcome::NotExecuted { .. })) => {
            told.next(format!("{resolve} --failed --reason {}", shell(&ended.to_string())))
        }
        Some((_, Outcome::Unknown { .. })) | None => told
            .next("look at the remote whether it happened; then one of")
            .next(format!("{resolve} --committed --reason '…'"))
            .next(format!("{resolve} --failed --reason '…'")),
    }
}

/// Why an outcome was not written; what a busy store says is of a command that can be
/// given again.
fn unwritten(cause: &Error) -> String {
    match cause.code() == Code::StoreBusy.as_str() {
        true => "the store had no room for it as long as it was asked".to_owned(),
        false => cause.to_string(),
    }
}

/// Why the command was not run.
pub(crate) fn not_run(control: &Control, policy: &Policy, wanted: &Action, error: Error) -> CliError {
    match error {
        Error::ApprovalNeeded { action, approval, expires_at } => asked(
            CliError::new("approval_needed", format!("{} waits for a person", wanted.name), REFUSED),
            action,
            approval,
        )
        .about("expires_at", expires_at.to_string())
        .because(format!("the policy asks; {approval} can be answered until {expires_at}")),
        Error::WaitTimeout { action, approval } => asked(
            CliError::new("wait_timeout", "nobody answered within the wait; the request stays", REFUSED),
            action,
            approval,
        ),
        Error::Refused(refusal) => refused::call(control, policy, wanted, &refusal),
        Error::Ended(refusal) => {
            refused::call(control, policy, wanted, &refusal).retry(Retry::Never).because(
                "the action of this --id has ended with this answer; another id, or none, is looked at anew",
            )
        }
        error => {
            let told = refused::of(control, error);
            // Unlike a store that fails, this leaves open whether the action is there.
            if told.is(Code::CommitUnknown) { told.because("the command was not run") } else { told }
        }
    }
}

fn asked(error: CliError, action: ActionId, approval: ApprovalId) -> CliError {
    error
        .retry(Retry::AfterApproval)
        .about("action", action.to_string())
        .about("approval", approval.to_string())
        .next(format!("onceseal approve {approval}"))
        .next("then the same command again")
}
