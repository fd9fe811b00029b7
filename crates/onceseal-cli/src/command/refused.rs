//! Refusals as people and programs read them.

use onceseal::core::action::{Action, ActionState};
use onceseal::core::code::Code;
use onceseal::core::effect::EffectState;
use onceseal::core::id::ActionId;
use onceseal::core::journal::Row;
use onceseal::core::json::Object;
use onceseal::core::limits;
use onceseal::core::policy::{Facts, Policy, Reason};
use onceseal::core::reply::{EffectNow, Refusal};
use onceseal::store::read::row_of;
use onceseal::{Control, Error};

use super::call::unfit;
use crate::error::{CliError, REFUSED, UNUSABLE};
use crate::text::{cut, literal, shell, shown};

/// A refusal with what it says itself.
pub(crate) fn plain(refusal: &Refusal) -> CliError {
    let code = refusal.code;
    let exit = match code {
        Code::PolicyMissing | Code::PolicyFileOld | Code::PolicyStale | Code::OutOfBounds => UNUSABLE,
        Code::ChangeInvalid | Code::RequestIdInvalid | Code::OutcomeInvalid => UNUSABLE,
        _ => REFUSED,
    };
    let mut error = CliError::new(code.as_str(), code.sentence(), exit).retry(code.retry());
    for (name, value) in [
        ("action", refusal.action.map(|id| id.to_string())),
        ("approval", refusal.approval.map(|id| id.to_string())),
        ("receipt", refusal.receipt.map(|id| id.to_string())),
        ("reason", refusal.reason.clone()),
        ("detail", refusal.detail.clone()),
        ("field", refusal.field.map(str::to_owned)),
        ("status", refusal.status.map(|status| status.to_string())),
    ] {
        if let Some(value) = value {
            error = error.about(name, value);
        }
    }
    if refusal.repeated {
        error = error.about("repeated", true);
    }
    if let Some(held) = &refusal.held {
        let what = held.resource.as_deref().unwrap_or("it");
        error = error.about("holder", onceseal::render::holder(&held.by)).about("held", what).because(
            format!("{} holds {} until {}, unless that is renewed", held.by.holder, cut(what), held.by.until),
        );
    }
    match (&refusal.reason, refusal.field, refusal.status) {
        (Some(reason), ..) => error = error.because(format!("the policy says so in {reason}")),
        (_, Some("revision"), _) if code == Code::OutOfBounds => {
            error = error.because(format!(
                "a revision is at most {} above the newest one, so that those after it have room",
                limits::REVISION_STEP
            ));
        }
        (_, Some(_), _) if code == Code::FactClaimed => {
            error = error
                .in_words("whoever worked on a task cannot stand for it; name what checked it with `--by`")
                .because("--by names who worked on it");
        }
        (_, Some(field), _) if code == Code::OutOfBounds => {
            error = error.because(typed(field).map_or(format!("it is about {field}"), str::to_owned));
        }
        (_, Some(field), _) => error = error.because(format!("it differs in {field}")),
        (.., Some(status)) => error = error.because(format!("the request is {status}")),
        _ => {}
    }
    if let Some(detail) = &refusal.detail {
        error = match detail.split_once(" > ") {
            Some((from, to)) => error.because(format!("it is {from}, and {to} was asked for")),
            None => error.because(shown(detail)),
        };
    }
    next(error, refusal)
}

/// What may be typed for what is outside its limits.
fn typed(field: &str) -> Option<&'static str> {
    match field {
        "principal" => Some(
            "it is about --agent or --user: each is a name of 1 to 255 characters, none of them a control character",
        ),
        "fact" => Some(
            "a fact is 1 to 128 lower-case letters, digits and hyphens, as in work-done; --by and --environment are \
             names of 1 to 255 characters",
        ),
        _ => None,
    }
}

fn next(error: CliError, refusal: &Refusal) -> CliError {
    match (refusal.code, refusal.approval) {
        (Code::RunUnknown, _) => error.next("onceseal runs list"),
        (Code::TaskNotTaken, _) => error.next("onceseal tasks take RUN").next("onceseal tasks list RUN"),
        (Code::RequestIdConflict, _) => error.next("the same command with a new --request, or without one"),
        (Code::PolicyFileOld | Code::PolicyMissing, _) => error.next("onceseal policy apply"),
        (Code::ApprovalPending, Some(id)) => error.next(format!("onceseal approve {id}")),
        (
            Code::ApprovalMismatch
            | Code::ApprovalUsed
            | Code::ApprovalExpired
            | Code::ApprovalRevoked
            | Code::ApprovalUnknown,
            _,
        ) => error.next("propose it without --approval, and it is asked anew"),
        (Code::ApprovalDecided | Code::ShownDiffers, Some(id)) => {
            error.next(format!("onceseal approvals show {id}"))
        }
        (Code::ApprovalUnanswerable | Code::NotOperator | Code::NotEntitled, _) => {
            error.next("onceseal policy check")
        }
        _ => error,
    }
}

/// A refusal with what the store knows of the effect it is about.
pub(crate) fn explained(control: &Control, refusal: &Refusal) -> CliError {
    because(control, refusal, known(control, refusal))
}

/// With what the store knows of it.
fn known(control: &Control, refusal: &Refusal) -> CliError {
    let error = plain(refusal);
    let Some(now) = &refusal.effect else { return error };
    let key = key_of(control, now, refusal.action);
    let mut error = error.about("state", now.state.as_str()).about("attempt", integer(now.fence));
    if let Some(same) = now.same_intent {
        error = error.about("same_intent", same);
    }
    if let Some(until) = now.lease_until {
        error = error.about("lease_until", until.to_string());
    }
    if let (Some(receipt), None) = (now.receipt, refusal.receipt) {
        error = error.about("receipt", receipt.to_string());
    }
    let Some(key) = key else { return error };
    let until = now.lease_until.map(|until| format!(", its lease ends {until}")).unwrap_or_default();
    let shown = literal(&key.as_str().into());
    let error = error
        .about("effect_key", key.as_str())
        .because(format!("the effect {shown} is {}, attempt {}{until}", now.state, now.fence));
    match (refusal.code, now.receipt) {
        (Code::Ambiguous | Code::LeaseLapsed, _) => to_resolve(error, &key),
        (Code::InProgress, _) if now.state == EffectState::Queued => waits(control, now, error),
        (Code::InProgress, _) => {
            let again = now.lease_until.map_or("then the same command again".to_owned(), |until| {
                format!("the same command again after {until}, when its lease ends unless it is renewed")
            });
            error.next(format!("onceseal effects show {}", shell(&key))).next(again)
        }
        (Code::Duplicate, Some(receipt)) => error.next(format!("onceseal receipts show {receipt}")),
        _ => error.next(format!("onceseal effects show {}", shell(&key))),
    }
}

/// An effect that nobody attempts now: an operation waits to.
fn waits(control: &Control, now: &EffectNow, error: CliError) -> CliError {
    let error = error.in_words("an operation waits under this effect key, and has not been carried out");
    // A store that cannot say leaves it out, as with the key.
    let holder = control.effect_at(&now.stream).ok().flatten();
    let row = holder.and_then(|effect| control.action_row(effect.holder).ok().flatten());
    let (Some(state), Some(intent)) =
        (row.as_ref().map(|row| &row.state), row.as_ref().and_then(|row| row.private.intent.as_ref()))
    else {
        return error.next("onceseal operations list");
    };
    let error = error.about("operation", intent.status_ref.as_str());
    let error = error.next(format!("onceseal operations show {}", intent.status_ref));
    match state {
        ActionState::Parked { code } => error
            .because(format!("it is parked: {code}: {}", code.sentence()))
            .next(format!("onceseal operations retry {} --reason '…', or cancel", intent.status_ref)),
        _ => error,
    }
}

/// The refusal of a call, with what the policy says of it.
pub(crate) fn call(control: &Control, policy: &Policy, action: &Action, refusal: &Refusal) -> CliError {
    let error = explained(control, refusal);
    match (refusal.code, refusal.reason.as_deref()) {
        (Code::PolicyDenied, Some(reason)) if reason == Reason::UnknownAction.to_string() => {
            unlisted(error, policy, action)
        }
        (Code::PolicyDenied, _) => {
            let name = shell(&action.name);
            error.next(format!("onceseal policy explain {name} … with the same arguments"))
        }
        (Code::EffectKeyError | Code::ResourceError, _) => match unfit(policy, action) {
            Some(lack) => error.because(lack.to_string()),
            None => error,
        },
        _ => error,
    }
}

/// An action that the policy does not list, with the line that would.
fn unlisted(error: CliError, policy: &Policy, action: &Action) -> CliError {
    let arguments = Object::new();
    let facts = Facts { name: &action.name, arguments: &arguments, environment: "", agent: "", user: None };
    let Some(unknown) = policy.explain(&facts).unknown else { return error };
    let similar = unknown.similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    let error = error.because_instead(format!("the policy does not list this action{similar}"));
    let error = match action.arguments.is_empty() {
        true => error,
        false => error.because("no entry says what to redact, so its arguments are recorded as they are"),
    };
    error.next("to have people asked, add under `actions:` in onceseal.yaml").next(unknown.line_to_add)
}

/// Which of a person's texts is not taken, and why.
pub(crate) fn remarks(error: CliError, texts: &[(&str, Option<&str>)]) -> CliError {
    let given = texts.iter().filter_map(|(flag, text)| Some((flag, (*text)?)));
    let wrong = given.filter_map(|(flag, text)| match () {
        () if *flag == "--reason" && text.trim().is_empty() => Some(format!("{flag} is blank")),
        () if !limits::is_remark(text) => {
            Some(format!("{flag} has more than {} characters", limits::ERROR_CHARS))
        }
        () => None,
    });
    wrong.fold(error, CliError::because)
}

/// What to do about an outcome that nobody knows.
pub(crate) fn to_resolve(error: CliError, key: &str) -> CliError {
    let key = shell(key);
    error
        .next("look at the remote whether it happened; then one of")
        .next(format!("onceseal resolve {key} --committed --reason '…'"))
        .next(format!("onceseal resolve {key} --failed --reason '…'"))
}

/// The key of the effect that a refusal is about. A store that cannot say
/// leaves it out: the refusal stands without it.
fn key_of(control: &Control, now: &EffectNow, action: Option<ActionId>) -> Option<String> {
    let row = control.store().read_rows(|snapshot| Ok(row_of(snapshot.stream(&now.stream)?))).ok().flatten();
    match row.map(|stored| stored.row) {
        Some(Row::Effect(row)) => row.private.key,
        _ => action.and_then(|id| effect_key(control, id)),
    }
}

/// The key that a recorded action's effect has.
pub(crate) fn effect_key(control: &Control, action: ActionId) -> Option<String> {
    let row = control.action_row(action).ok().flatten()?;
    let proposal = row.private.proposal?;
    Some(proposal.effect_key.unwrap_or_else(|| onceseal::core::stream::own_effect_key(action)))
}

/// A count as JSON has it.
pub(crate) fn integer(n: u64) -> onceseal::core::json::Value {
    onceseal::core::json::Value::Integer(i64::try_from(n).unwrap_or(onceseal::core::json::SAFE_INTEGER))
}

/// An error of the engine, with what the store knows of it.
pub(crate) fn of(control: &Control, error: Error) -> CliError {
    match error {
        Error::Refused(refusal) => explained(control, &refusal),
        error => error.into(),
    }
}

/// With what people said who denied it.
fn because(control: &Control, refusal: &Refusal, error: CliError) -> CliError {
    let denied = refusal.approval.filter(|_| refusal.code == Code::ApprovalDenied);
    // A store that cannot say leaves it out.
    let reasons = denied.and_then(|id| control.reasons(id).ok()).unwrap_or_default();
    reasons.into_iter().fold(error, |error, (person, reason)| {
        let person = person.map_or("erased".to_owned(), |person| shown(&person));
        error.because(format!("{person} said: {}", literal(&reason.as_str().into())))
    })
}
