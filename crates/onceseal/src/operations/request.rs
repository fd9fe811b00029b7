//! Tools that are HTTP requests.

use std::collections::BTreeSet;
use std::time::Duration;

use onceseal_core::json::{self, Limits, Object, Value};

use super::body::FilledValue;
use super::carrying::pause;
use super::filling::{Filling, Given, Missing, plainly};
use super::program::codes;
use super::returned::{Pointer, named};
use super::tool::{Answering, Handler, Job, Question, Word};
use super::undone::Undone;
use crate::executed::{Done, Failure, Performed};
use crate::http::{Client, Local, Request, Response};
use crate::outcome::stand_in;
use crate::secrets::Secrets;

/// The header that tells attempts of one wish.
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
const KEY_HEADER: &str = "Idempotency-Key";

/// Why nothing was sent, where sending it again would come to the same.
const STAYS: [&str; 3] = ["not_filled", "invalid_request", "local_destination"];

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
    /// Of the URL.
    host: String,
    headers: Vec<(String, Filling)>,
    body: Option<FilledValue>,
}

/// A remote as a contract describes it.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    request: Template,
    /// The hosts that may be this machine or on its link.
    allow: Vec<String>,
    undone: Undone<u16>,
    /// Where in its answer the remote's own receipt is.
    receipt: Option<Pointer>,
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
    /// Reads `{method, url, headers?, body?, not_executed_on?, retry_on?, receipt?, status?,
    /// allow?}`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(document: &Object) -> Result<Remote, String> {
        let keys =
            ["method", "url", "headers", "body", "not_executed_on", "retry_on", "receipt", "status", "allow"];
        known(document, &keys)?;
        let receipt = match document.get("receipt") {
            None => None,
            Some(Value::Text(pointer)) => {
                Some(Pointer::parse(pointer).map_err(|what| format!("http: receipt: {what}"))?)
            }
            Some(_) => return Err("http: receipt is a JSON pointer".to_owned()),
        };
        let status = match document.get("status") {
            None => None,
            Some(Value::Object(status)) => {
                known(status, &["method", "url", "headers", "body", "absent_on"])?;
                let mut absent = Object::new();
                absent.insert(
                    "absent_on",
                    status.get("absent_on").cloned().unwrap_or(Value::List(vec![Value::Integer(404)])),
                );
                Some(Status {
                    request: Template::parse(status, Purpose::Ask)?,
                    absent_on: codes(&absent, "absent_on", "http: status", 300..=599)?,
                })
            }
            Some(_) => return Err("http: status is a mapping".to_owned()),
        };
        let undone = Undone::parse(document, "http", 300..=599)?;
        let request = Template::parse(document, Purpose::Act)?;
        let remote = Remote { request, allow: listed(document)?, undone, receipt, status };
        remote.permits_hosts()?;
        Ok(remote)
    }

    /// Whether its requests may go where its contract says, as far as names tell:
    /// the client has the last word.
    fn permits_hosts(&self) -> Result<(), String> {
        let local = Local::only(&self.allow);
        let status = self.status.as_ref().map(|status| &status.request);
        let hosts: Vec<&String> =
            [Some(&self.request), status].into_iter().flatten().map(|r| &r.host).collect();
        if let Some(host) = hosts.iter().find(|host| !local.permits_name(host)) {
            return Err(format!(
                "http: {host} is this machine or on its link; if that is meant, write allow: [\"{host}\"]"
            ));
        }
        match self.allow.iter().find(|name| !hosts.iter().any(|host| Local::is_same(host, name))) {
            Some(name) => {
                Err(format!("http: allow: `{name}` is the host of no url here; write it without port"))
            }
            None => Ok(()),
        }
    }

    /// The hosts that may be this machine or on its link.
    pub(super) fn allow(&self) -> &[String] {
        &self.allow
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

    /// What no answer may repeat into what is kept, whichever request it answers:
    /// the remote may have seen all of it.
    fn secrets(&self) -> Secrets {
        let values = self.variables().into_iter().filter_map(|name| std::env::var(name).ok());
        values.collect::<Vec<_>>().into()
    }

    /// The variables that its requests are filled from.
    pub(super) fn variables(&self) -> BTreeSet<String> {
        let requests = [Some(&self.request), self.status.as_ref().map(|status| &status.request)];
        requests.into_iter().flatten().flat_map(Template::secrets).collect()
    }

    /// What is kept of an answer: its status, its body or what stands in for one
    /// that is no JSON, and the remote's receipt.
    fn done(&self, response: &Response, secrets: &Secrets) -> Done {
        let mut result = Object::new();
        result.insert("status", Value::Integer(i64::from(response.status)));
        let length = response.body.len();
        let body = match json::read(&response.body, &Limits::RESULT) {
            _ if length == 0 => None,
            _ if response.truncated => Some(stand_in("too_large", length)),
            Ok(body) => Some(body),
            Err(_) => Some(stand_in("no_json", length)),
        };
        let receipt = self.receipt.as_ref().and_then(|pointer| pointer.find(body.as_ref()?)).and_then(named);
        if let Some(body) = body {
            result.insert("body", secrets.hide_in(body));
        }
        let done = Done::from(Value::Object(result));
        match receipt.filter(|receipt| secrets.hide(receipt.clone()) == *receipt) {
            Some(receipt) => done.receipt(receipt),
            None => done,
        }
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
        let mut template = Template { purpose, method, url, host: String::new(), headers, body };
        template.host = template.check()?;
        Ok(template)
    }

    /// The variables of the secrets that are filled in.
    fn secrets(&self) -> Vec<String> {
        let headers = self.headers.iter().flat_map(|(_, value)| value.secrets());
        let body = self.body.iter().flat_map(FilledValue::secrets);
        self.url.secrets().chain(headers).chain(body).collect()
    }

    /// Whether it can be sent whatever is filled in; answers to which host.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn check(&self) -> Result<String, String> {
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
    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        Box::pin(async move {
            let given = Given { arguments: job.args(), provider_key: job.provider_key() };
            let request = match self.remote.request.fill(&given) {
                Ok(request) => request,
                Err(missing) => {
                    let message = missing.to_string();
                    return Err(Failure::NotExecuted { code: Some("not_filled".to_owned()), message });
                }
            };
            let secrets = self.remote.secrets();
            match self.client.send(request).await {
                Ok(response) => {
                    let message = secrets.hide(answered(&response));
                    let outcome = response.outcome(&self.remote.undone.all);
                    outcome.executed(Value::Null, message).map(|_| self.remote.done(&response, &secrets))
                }
                Err(error) => {
                    let message = secrets.hide(error.to_string());
                    error.outcome().executed(Value::Null, message).map(Done::from)
                }
            }
        })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        Box::pin(async move {
            let status = self.remote.status.as_ref()?;
            let given = Given { arguments: &question.arguments, provider_key: &question.provider_key };
            let response = self.client.send(status.request.fill(&given).ok()?).await.ok()?;
            match response.status {
                200..=299 => Some(Word::Committed(self.remote.done(&response, &self.remote.secrets()))),
                code if !response.relayed && status.absent_on.contains(&code) => Some(Word::Absent),
                _ => None,
            }
        })
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        match failure {
            Failure::NotExecuted { code: Some(code), .. }
                if code.starts_with("status_") && !self.remote.undone.is_again(code)
                    || STAYS.contains(&code.as_str()) =>
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
            (code, Failure::NotExecuted { .. })
                if code.starts_with("status_") && !self.remote.undone.is_again(code) =>
            {
                Some(true)
            }
            // RFC 9110, section 15.6, and RFC 6585, section 4.
            (code, _) if code.starts_with("status_5") || code == "status_429" => Some(false),
            (code, _) if code.starts_with("status_") => Some(true),
            // Nothing was to be sent, or nobody is trusted here.
            ("not_filled" | "invalid_request" | "no_root_certificates", _) => None,
            _ => Some(false),
        }
    }
}

/// What the remote said, for people: they look at it when they decide what is to
/// be done.
fn answered(response: &Response) -> String {
    // Whole: a secret that was cut would not be known for one.
    let said = String::from_utf8_lossy(&response.body);
    let said = said.trim();
    let colon = if said.is_empty() { "" } else { ": " };
    format!("the remote answered with status {}{colon}{said}", response.status)
}

/// The hosts under `allow`.
fn listed(document: &Object) -> Result<Vec<String>, String> {
    const WRONG: &str = "http: allow is a list of hosts";
    match document.get("allow") {
        None => Ok(Vec::new()),
        Some(Value::List(hosts)) => {
            hosts.iter().map(|host| host.as_text().map(str::to_owned).ok_or(WRONG.to_owned())).collect()
        }
        Some(_) => Err(WRONG.to_owned()),
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
