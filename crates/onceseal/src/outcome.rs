//! What of an executor's answer, or the remote's, is written down, and in
//! which form.
//!
//! A committed effect never becomes an error because of what its executor
//! returned.

use onceseal_core::effect::{Finding, Holding, Outcome, RemoteReceipt, Settle};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::limits;
use onceseal_core::reply::Attempt;

use crate::executed::{Done, Failure, Performed};
use crate::secrets::Secrets;

/// Codes are open in the journal, so they are words: this many characters of
/// letters, digits and `_.:-`.
const CODE_CHARS: usize = 64;

/// The report of an outcome.
pub(crate) fn settle_of(attempt: &Attempt, performed: &Performed, secrets: &Secrets) -> Settle {
    let (outcome, code, error, result) = match performed {
        Ok(done) => (Outcome::Committed, None, None, storable(&done.value, secrets)),
        Err(Failure::NotExecuted { code, message }) => (Outcome::Failed, code.as_ref(), Some(message), None),
        Err(Failure::Unknown { code, message }) => (Outcome::Ambiguous, code.as_ref(), Some(message), None),
    };
    let error = error.map(|text| {
        // No more is kept, so no more is carried to the store.
        text.chars().take(limits::ERROR_CHARS).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect()
    });
    let code = code.map(|code| word(code)).filter(|code| !code.is_empty());
    let remote = performed.as_ref().ok().and_then(|done| receipt_of(done, secrets)).map(Box::new);
    Settle { code, error, result, remote, ..Settle::new(Holding::from(attempt), outcome) }
}

/// What is kept of a remote's receipt, if it gave any. What is no name, or has a
/// secret in it, proves nothing: without the secret two would be one.
pub(crate) fn receipt_of(done: &Done, secrets: &Secrets) -> Option<RemoteReceipt> {
    let name = |text: &Option<String>| {
        text.clone().filter(|text| limits::is_name(text) && secrets.hide(text.clone()) == *text)
    };
    let RemoteReceipt { observed_at, receipt_id, request_id, revision } = &done.remote;
    let kept = RemoteReceipt {
        observed_at: *observed_at,
        receipt_id: name(receipt_id),
        request_id: name(request_id),
        revision: name(revision),
    };
    (kept != RemoteReceipt::NONE).then_some(kept)
}

/// What the remote said, without what the call redacts: it knows that as well.
pub(crate) fn without(finding: Finding, secrets: &Secrets) -> Finding {
    let Finding::Committed(Some(text)) = finding else { return finding };
    Finding::Committed(match json::read(text.as_bytes(), &Limits::DATA) {
        _ if secrets.is_empty() => Some(text),
        Ok(value) => storable(&value, secrets),
        Err(_) => Some(secrets.hide(text)),
    })
}

fn word(code: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.:-".contains(c) { c } else { '_' };
    code.chars().take(CODE_CHARS).map(plain).collect()
}

/// The stored form of a result: its canonical text, or what stands in for it.
pub(crate) fn storable(value: &Value, secrets: &Secrets) -> Option<String> {
    if *value == Value::Null {
        return None;
    }
    let text = match secrets.is_empty() {
        true => json::canonical(value),
        false => json::canonical(&secrets.hide_in(value.clone())),
    };
    let problem = match json::read(text.as_bytes(), &Limits::RESULT) {
        Ok(_) => return Some(text),
        Err(_) if text.len() > limits::RESULT_BYTES => "too_large",
        Err(_) => value.type_name(),
    };
    Some(json::canonical(&stand_in(problem, text.len())))
}

/// What stands in for a result that is not kept: it was done all the same.
pub(crate) fn stand_in(problem: &str, bytes: usize) -> Value {
    let mut stand_in = Object::new();
    stand_in.insert("unstorable", problem);
    stand_in.insert("bytes", Value::Integer(i64::try_from(bytes).unwrap_or(json::SAFE_INTEGER)));
    stand_in.into()
}
