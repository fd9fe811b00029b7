//! `audit`: everything in the store rebuilt from its events, and compared.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use onceseal::audit::Finding;
use onceseal::{AuditOptions, AuditReport};

use crate::context::Context;
use crate::error::{CliError, REFUSED, UNCHECKED};
use crate::table::state_style;
use crate::text::{counted, shown};

/// Rebuild the store from its events and compare
///
/// Nothing is written, and the store may be in use. Exits 0 if it is intact, 1 if it is broken, 3 if that could not be
/// checked.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what was touched after this position of the log
    #[arg(long, value_name = "N")]
    since: Option<u64>,
}

pub(crate) fn run(context: &Context, audit: &Audit) -> Result<ExitCode, CliError> {
    let unchecked = |error: CliError| error.exit(UNCHECKED);
    let Some(control) = context.read().map_err(unchecked)? else {
        return Err(unchecked(CliError::new("store_missing", "there is no store to audit", UNCHECKED)));
    };
    let progress = Progress::new();
    let report = {
        let tell = |seen, of| progress.tell(seen, of);
        let options = AuditOptions { since: audit.since, progress: Some(&tell) };
        onceseal::audit(&control, &options).map_err(|error| unchecked(error.into()))
    };
    progress.end();
    let report = report?;
    if context.out.is_json() {
        context.out.line(&report.to_json())?;
    } else {
        context.out.text(&text(&report))?;
    }
    Ok(ExitCode::from(if report.is_clean() { 0 } else { REFUSED }))
}

/// A report for people.
pub(crate) fn text(report: &AuditReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let style = state_style("broken");
        text.push_str(&format!("{style}broken{style:#}  {}\n", line(finding)));
    }
    for note in &report.notes {
        text.push_str(&format!("note    {}\n", line(note)));
    }
    let count = |n: u64, one| counted(usize::try_from(n).unwrap_or(usize::MAX), one);
    let looked = format!("{} in {}", count(report.events, "event"), count(report.streams, "stream"));
    let findings = report.findings.len() as u64 + report.more;
    let word = match findings {
        0 => "intact".to_owned(),
        findings => format!("broken: {}", count(findings, "finding")),
    };
    text + &format!("{word}; {looked}\n")
}

fn line(finding: &Finding) -> String {
    let place = [
        finding.position.map(|position| format!("position {position}, ")),
        finding.stream.map(|stream| format!("{stream}")),
        finding.sequence.map(|sequence| format!("#{sequence}")),
    ];
    let place: String = place.into_iter().flatten().collect();
    let gap = if place.is_empty() { "" } else { ": " };
    format!("{}{gap}{} [{}]", place.trim_end_matches(", "), shown(&finding.sentence), finding.code)
}

/// How far an audit is, told at a terminal when it takes over a second.
struct Progress {
    begun: Instant,
    told: Cell<Option<Instant>>,
}

impl Progress {
    fn new() -> Progress {
        Progress { begun: Instant::now(), told: Cell::new(None) }
    }

    fn tell(&self, seen: u64, of: u64) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let last = self.told.get().unwrap_or(self.begun);
        if last.elapsed() < PATIENCE || !io::stderr().is_terminal() {
            return;
        }
        self.told.set(Some(Instant::now()));
        let percent = seen * 100 / of.max(1);
        // Nobody needs to know; the report follows.
        let _ = write!(io::stderr(), "\raudited {seen} of {of} events, {percent} % ");
    }

    fn end(&self) {
        if self.told.get().is_some() {
            let _ = write!(io::stderr(), "\r{:60}\r", "");
        }
    }
}
