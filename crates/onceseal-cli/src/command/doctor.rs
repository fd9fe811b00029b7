//! `doctor`: whether everything is as it should be, what waits for a person,
//! and what an operator may accept.

use std::process::ExitCode;

use clap::Args;
use onceseal::core::code::Code;
use onceseal::core::json::{Object, Value};
use onceseal::{Control, Error, Opening, Seen};

use super::refused;
use crate::context::Context;
use crate::error::{CliError, REFUSED, UNCHECKED};
use crate::table::state_style;
use crate::text::shown;

mod checks;
mod history;
mod leases;
mod runs;
mod server;

/// Say whether everything is as it should be, and what waits for a person
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Go on with a store that is older than what was seen: what it forgot may happen again
    #[arg(long, requires = "reason")]
    accept_went_back: bool,
    /// Why it is accepted; kept in the journal
    #[arg(long, value_name = "TEXT", requires = "accept_went_back")]
    reason: Option<String>,
}

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Warn,
    Fail,
    Unknown,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    verdict: Verdict,
    detail: String,
    next: Option<String>,
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, detail: impl Into<String>) -> Check {
        Check { name, verdict, detail: detail.into(), next: None }
    }

    fn next(self, next: impl Into<String>) -> Check {
        Check { next: Some(next.into()), ..self }
    }

    fn line(&self) -> String {
        let word = self.verdict.word();
        let style = state_style(word);
        let next =
            self.next.as_ref().map(|next| format!("\n{:27}next: {}", "", shown(next))).unwrap_or_default();
        format!("{style}{word:<8}{style:#} {:<16}  {}{next}\n", self.name, shown(&self.detail))
    }

    fn object(&self) -> Value {
        let mut object = Object::new();
        object.insert("name", self.name);
        object.insert("status", self.verdict.word());
        object.insert("detail", self.detail.as_str());
        object.insert("next", self.next.as_ref().map_or(Value::Null, |next| next.as_str().into()));
        object.into()
    }
}

pub(crate) fn run(context: &Context, doctor: Doctor) -> Result<ExitCode, CliError> {
    if let (true, Some(reason)) = (doctor.accept_went_back, doctor.reason) {
        return accept_went_back(context, reason);
    }
    let checks = checks::all(context);
    let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
    let code = match () {
        () if any(Verdict::Fail) => REFUSED,
        () if any(Verdict::Unknown) => UNCHECKED,
        () => 0,
    };
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("checks", Value::List(checks.iter().map(Check::object).collect()));
        context.out.document(object)?;
    } else {
        context.out.text(&checks.iter().map(Check::line).collect::<String>())?;
    }
    Ok(ExitCode::from(code))
}

fn accept_went_back(context: &Context, reason: String) -> Result<ExitCode, CliError> {
    let opening: Opening = context.opening(context.settings()?)?;
    let accepted = Control::accept_went_back(&opening, Control::account(), reason.clone());
    let text = match accepted.map_err(|error| unaccepted(error, &reason))? {
        Some(Seen::WentBack { seen, found }) => {
            format!("accepted: {}; what was done then may happen again", lost(seen, found))
        }
        Some(_) => "accepted: the mark could not be read, so what was forgotten is not known".to_owned(),
        None => "nothing to accept: the store has all that was seen of it".to_owned(),
    };
    tell(context, "accepted_went_back", &text)
}

fn unaccepted(error: Error, reason: &str) -> CliError {
    let is_text = error.refusal().is_some_and(|refusal| refusal.code == Code::OutOfBounds);
    let told = CliError::from(error);
    if is_text { refused::remarks(told, &[("--reason", Some(reason))]) } else { told }
}

/// What is missing of a log of which more was seen.
pub(crate) fn lost(seen: u64, found: u64) -> String {
    match (seen, found) {
        (0, _) => "how much was seen is not known".to_owned(),
        (seen, 0) => format!("all {seen} entries of the log that were seen are gone"),
        (seen, found) if found < seen => {
            format!("entries {} to {seen} of the log, at least, were seen and are gone", found + 1)
        }
        (seen, _) => format!("entry {seen} of the log is another than was seen, and others before it may be"),
    }
}

fn tell(context: &Context, name: &str, text: &str) -> Result<ExitCode, CliError> {
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert(name, text);
        context.out.document(object)?;
    } else {
        context.out.text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
