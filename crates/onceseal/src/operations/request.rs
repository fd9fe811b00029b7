//! Tools that are HTTP requests.

use std::collections::BTreeSet;
use std::time::Duration;

use onceseal_core::json::{self, Limits, Object, Value};

use super::body::FilledValue;
use super::carrying::pause;
use super::filling::{Filling, Given, Missing, plainly};
use super::program::codes;
use super::tool::{Answering, Handler, Job, Question, Word};
use crate::executed::{Executed, Failure};
use crate::http::{Client, Request, Response};
use crate::secrets::Secrets;

/// The header that tells attempts of one wish.
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
const KEY_HEADER: &str = "Idempotency-Key";

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Act,
    Ask,
}

impl Purpose {
    const fn method(self) -> &'static str {
        match self {
            Purpose::Act => "POST",
            Purpose::Ask => "GET",
        }
    }
}

/// One request as a contract describes it.
#[derive(Debug, Clone)]
struct Template {
    purpose: Purpose,
    method: String,
    url: Filling,
    headers: Vec<(String, Filling)>,
    body: Option<FilledValue>,
}

/// A remote as a contract describes it.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    request: Template,
    not_executed_on: BTreeSet<u16>,
    /// Where in its answer the remote's own receipt is.
    receipt: Option<Vec<String>>,
    status: Option<Status>,
}

/// How the remote is asked what it knows of an attempt.
#[derive(Debug, Clone)]
struct Status {
    request: Template,
    absent_on: BTreeSet<u16>,
}

/// A remote that can be reached.
pub(super) struct Reached {
    remote: Remote,
    client: Client,
}

impl Remote {
    /// Reads `{method, url, headers?, body?, not_executed_on?, receipt?, status?}`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(document: &Object) -> Result<Remote, String> {
        known(document, &["method", "url", "headers", "body", "not_executed_on", "receipt", "status"])?;
        let receipt = match document.get("receipt") {
            None => None,
            Some(Value::Text(pointer)) => Some(steps(pointer)?),
            Some(_) => return Err("http: receipt is a JSON pointer".to_owned()),
        };
        let status = match document.get("status") {
            None => None,
            Some(Value::Object(status)) => {
                known(status, &["method", "url", "headers", "body", "absent_on"])?;
                let mut absent = Object::new();
                absent.insert(
                    "not_executed_on",
                    status.get("absent_on").cloned().unwrap_or(Value::List(vec![Value::Integer(404)])),
                );
                Some(Status {
                    request: Template::parse(status, Purpose::Ask)?,
                    absent_on: codes(&absent, "http: status", 100..=599)?,
                })
            }
            Some(_) => return Err("http: status is a mapping".to_owned()),
        };
        let not_executed_on = codes(document, "http", 300..=599)?;
        Ok(Remote { request: Template::parse(document, Purpose::Act)?, not_executed_on, receipt, status })
    }

    /// Whether it can be asked what it knows of an attempt.
    pub(super) const fn can_be_asked(&self) -> bool {
        self.status.is_some()
    }

    /// Where its requests go, in the one form that each place has.
    pub(super) fn destination(&self) -> String {
        let url = self.request.url.start();
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
        let origin = url[..end].to_ascii_lowercase();
        let usual = if origin.starts_with("https:") { ":443" } else { ":80" };
        origin.strip_suffix(usual).unwrap_or(&origin).to_owned()
    }

    pub(super) fn with(&self, client: Client) -> Reached {
        Reached { remote: self.clone(), client }
    }

    /// What is kept of an answer: its status, the remote's receipt, and its body
    /// if that is JSON.
    fn result(&self, response: &Response) -> Object {
        let mut result = Object::new();
        result.insert("status", Value::Integer(i64::from(response.status)));
        let body = json::read(&response.body, &Limits::RESULT).ok().filter(|_| !response.truncated);
        if let (Some(steps), Some(body)) = (&self.receipt, &body)
            && let Some(receipt) = found(steps, body)
        {
            result.insert("receipt", receipt.clone());
        }
        if let Some(body) = body {
            result.insert("body", body);
        }
        result
    }
}

impl Template {
    fn parse(document: &Object, purpose: Purpose) -> Result<Template, String> {
        let text = |name: &str| document.get(name).and_then(Value::as_text);
        let method = match document.get("method") {
            None => purpose.method().to_owned(),
            Some(Value::Text(method)) => method.clone(),
            Some(_) => return Err("http: method is a text".to_owned()),
        };
        let questions = ["GET", "HEAD"].contains(&method.as_str());
        if purpose == Purpose::Ask && !questions && document.get("body").is_none() {
            return Err("http: status: a question is GET, or has a body of its own".to_owned());
        }
        let url = Filling::parse(text("url").ok_or("http: url is needed")?)?;
        // Where a request goes is the contract's word alone.
        let authority = url.start().strip_prefix("https://").or_else(|| url.start().strip_prefix("http://"));
        let fixed = authority.is_some_and(|rest| rest.contains(['/', '?']) || url.plain().is_some());
        if !fixed {
            return Err(
                "http: url begins with https:// or http:// and a host without placeholders".to_owned()
            );
        }
        let headers = match document.get("headers") {
            None => Vec::new(),
            Some(Value::Object(headers)) => headers
                .iter()
                .map(|(name, value)| {
                    let text = value.as_text().ok_or("http: headers are texts")?;
                    Ok((name.to_owned(), Filling::parse(text)?))
                })
                .collect::<Result<_, String>>()?,
            Some(_) => return Err("http: headers are a mapping".to_owned()),
        };
        let body = document.get("body").map(FilledValue::parse).transpose()?;
        let template = Template { purpose, method, url, headers, body };
        template.check()?;
        Ok(template)
    }

    /// What no answer may repeat into what is kept.
    fn secrets(&self) -> Secrets {
        let headers = self.headers.iter().flat_map(|(_, value)| value.secrets());
        let body = self.body.iter().flat_map(FilledValue::secrets);
        self.url.secrets().chain(headers).chain(body).collect::<Vec<_>>().into()
    }

    /// Whether it can be sent whatever is filled in.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn check(&self) -> Result<(), String> {
        let plain = |filling: &Filling| filling.sample();
        let mut request = Request::new(self.method.as_str(), plain(&self.url));
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), plain(value));
        }
        request.check().map_err(|error| format!("http: {error}"))
    }

    fn fill(&self, given: &Given<'_>) -> Result<Request, Missing> {
        let mut request = Request::new(self.method.as_str(), self.url.fill(given, percent_encoded)?);
        let has = |name: &str| self.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        for (name, value) in &self.headers {
            // The client refuses line ends in them.
            request = request.header(name.as_str(), value.fill(given, plainly)?);
        }
        // A question under the key could be taken for the request itself.
        if self.purpose == Purpose::Act && !has(KEY_HEADER) {
            request = request.header(KEY_HEADER, given.provider_key);
        }
        let Some(body) = &self.body else { return Ok(request) };
        if !has("content-type") {
            request = request.header("Content-Type", "application/json");
        }
        let body = body.fill(given)?.unwrap_or(Value::Null);
        Ok(request.body(json::canonical(&body)))
    }
}

impl Handler for Reached {
    fn perform(&self, job: Job) -> Answering<'_, Executed> {
        Box::pin(async move {
            let given = Given { arguments: job.args(), provider_key: job.provider_key() };
            let request = match self.remote.request.fill(&given) {
                Ok(request) => request,
                Err(missing) => {
                    let message = missing.to_string();
                    return Err(Failure::NotExecuted { code: Some("not_filled".to_owned()), message });
                }
            };
            let secrets = self.remote.request.secrets();
            match self.client.send(request).await {
                Ok(response) => {
                    let message = format!("the remote answered with status {}", response.status);
                    let outcome = response.outcome(&self.remote.not_executed_on);
                    outcome.executed(secrets.hide_in(self.remote.result(&response).into()), message)
                }
                Err(error) => error.outcome().executed(Value::Null, secrets.hide(error.to_string())),
            }
        })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        Box::pin(async move {
            let status = self.remote.status.as_ref()?;
            let given = Given { arguments: &question.arguments, provider_key: &question.provider_key };
            let response = self.client.send(status.request.fill(&given).ok()?).await.ok()?;
            match response.status {
                200..=299 => {
                    let result = self.remote.result(&response).into();
                    Some(Word::Committed(status.request.secrets().hide_in(result)))
                }
                code if !response.relayed && status.absent_on.contains(&code) => Some(Word::Absent),
                _ => None,
            }
        })
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        match failure {
            Failure::NotExecuted { code: Some(code), .. }
                if code.starts_with("status_") || code == "not_filled" || code == "invalid_request" =>
            {
                None
            }
            _ => Some(pause(attempts)),
        }
    }

    fn reached(&self, failure: &Failure) -> Option<bool> {
        let (Failure::NotExecuted { code, .. } | Failure::Unknown { code, .. }) = failure;
        match (code.as_deref()?, failure) {
            // What the contract lists is an answer like any other.
            (code, Failure::NotExecuted { .. }) if code.starts_with("status_") => Some(true),
            // RFC 9110, section 15.6, and RFC 6585, section 4.
            (code, _) if code.starts_with("status_5") || code == "status_429" => Some(false),
            (code, _) if code.starts_with("status_") => Some(true),
            // Nothing was to be sent, or nobody is trusted here.
            ("not_filled" | "invalid_request" | "no_root_certificates", _) => None,
            _ => Some(false),
        }
    }
}

fn known(document: &Object, keys: &[&str]) -> Result<(), String> {
    match document.iter().find(|(name, _)| !keys.contains(name)) {
        Some((name, _)) => Err(format!("http: `{name}` is not known; known are {}", keys.join(", "))),
        None => Ok(()),
    }
}

/// Everything but unreserved characters as `%XX` (RFC 3986, section 2.1). What
/// would lead to another path has no such form: nothing, and dots alone.
fn percent_encoded(text: &str) -> Option<String> {
    if text.chars().all(|c| c == '.') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(out)
}

/// The steps of a JSON pointer (RFC 6901).
fn steps(pointer: &str) -> Result<Vec<String>, String> {
    let rest = pointer.strip_prefix('/').ok_or("http: receipt is a JSON pointer, as in /id")?;
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn found<'a>(steps: &[String], value: &'a Value) -> Option<&'a Value> {
    steps.iter().try_fold(value, |value, step| match value {
        Value::Object(object) => object.get(step),
        Value::List(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
