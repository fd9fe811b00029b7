//! What is looked at, each on its own: one that cannot be looked at leaves the
//! others.

use onceseal::config::{Config, ConfigError, Settings};
use onceseal::core::action::ActionState;
use onceseal::core::approval::Status;
use onceseal::core::code::Code;
use onceseal::core::effect::EffectState;
use onceseal::core::journal::Row;
use onceseal::core::policy::{ActivePolicy, Severity};
use onceseal::core::route::{RouteRow, RouteState};
use onceseal::core::stream::StreamKind;
use onceseal::core::time::{Span, Timestamp};
use onceseal::store::SCHEMA_VERSION;
use onceseal::views::{Filter, state_numbers};
use onceseal::{Control, Error, Opening};

use super::{Check, Verdict, history, leases, runs, server};
use crate::command::policy::{Checked, FORGETS, Noticed};
use crate::context::Context;
use crate::error::CliError;
use crate::standing;
use crate::text::{age, counted};

/// How many rows of one state are counted, and read at once.
const COUNTED: usize = 1_000;
/// A worker that runs takes what is due long before this is over.
const TAKEN_WITHIN: Span = Span::minutes(1);

/// Every check, in the order in which a fault of one explains those after it.
pub(super) fn all(context: &Context) -> Vec<Check> {
    let mut checks = vec![Check::new(
        "version",
        Verdict::Ok,
        format!("onceseal {}, store schema {SCHEMA_VERSION}", env!("CARGO_PKG_VERSION")),
    )];
    let config = config(context, &mut checks);
    let settings = match &config {
        Some(config) => Ok(config.settings.clone()),
        None => context.settings(),
    };
    if settings.as_ref().is_ok_and(|settings| settings.memory) {
        checks.push(Check::new("store", Verdict::Warn, FORGETS).next("leave `memory` out of the settings"));
    } else if let Some(opening) = opening(context, settings, &mut checks) {
        match Control::reading(&opening) {
            Ok(Some(control)) => {
                store(&control, &mut checks);
                let is_on_server = opening.settings.store.is_some();
                // A server was looked at already.
                if !is_on_server {
                    checks.push(settings_of(&control));
                }
                checks.push(history::seen(&control, is_on_server));
                work(&control, config.as_ref(), &mut checks);
            }
            Ok(None) => checks.push(Check::new("store", Verdict::Ok, "there is none yet; acting makes one")),
            Err(error) if error.code() == Code::StoreWentBack.as_str() => {
                checks.push(failed("history", &error).next(history::accept(opening.is_on_server())));
            }
            Err(error) => checks.push(failed("store", &error)),
        }
    }
    checks.push(Check::new(
        "who answers",
        Verdict::Warn,
        format!(
            "{}, proven by the operating system, which cannot tell an agent from the person whose account it runs in",
            Control::account()
        ),
    ));
    checks
}

pub(super) fn failed(name: &'static str, error: &Error) -> Check {
    Check::new(name, Verdict::Fail, format!("{}: {error}", error.code()))
}

fn config(context: &Context, checks: &mut Vec<Check>) -> Option<Config> {
    let file = match context.file() {
        Ok(file) => file,
        Err(ConfigError::Missing) => {
            let detail = "there is none here or above: reading and answering work, acting does not";
            checks.push(Check::new("policy file", Verdict::Warn, detail).next("onceseal init"));
            return None;
        }
        Err(error) => {
            checks.push(Check::new("policy file", Verdict::Fail, format!("{}: {error}", error.code())));
            return None;
        }
    };
    match Checked::read(&file) {
        Ok(Checked { config, found }) => {
            let of = |severity| move |noticed: &&Noticed| noticed.severity == severity;
            let errors = found.iter().filter(of(Severity::Error));
            let found: Vec<&Noticed> = errors.chain(found.iter().filter(of(Severity::Warning))).collect();
            let verdict = match found.first().map(|noticed| noticed.severity) {
                None => Verdict::Ok,
                Some(Severity::Error) => Verdict::Fail,
                Some(_) => Verdict::Warn,
            };
            let first = found.first().map(|noticed| format!(", the first: {}", noticed.told()));
            let detail = format!(
                "{}: {}, {}{}",
                file.display(),
                counted(config.policy.policy.entries().len(), "action"),
                counted(found.len(), "finding"),
                first.unwrap_or_default()
            );
            let check = Check::new("policy file", verdict, detail);
            checks.push(if verdict == Verdict::Ok { check } else { check.next("onceseal policy check") });
            Some(config)
        }
        Err(error) => {
            checks.push(Check::new("policy file", Verdict::Fail, error.summary()));
            None
        }
    }
}

/// The settings, and the place they lead to.
fn opening(
    context: &Context,
    settings: Result<Settings, CliError>,
    checks: &mut Vec<Check>,
) -> Option<Opening> {
    let opening = match settings.and_then(|settings| context.opening(settings)) {
        Ok(opening) => opening,
        Err(_) => {
            checks.push(Check::new("state", Verdict::Unknown, "the settings cannot be read, see above"));
            return None;
        }
    };
    if let Some(address) = &opening.settings.store {
        return server::look(&opening, address, checks).then_some(opening);
    }
    match opening.place() {
        Ok(place) => {
            let check = Check::new("state", Verdict::Ok, place.directory().display().to_string());
            let less_safe: Vec<_> = [
                ("force_filesystem", opening.settings.force_filesystem),
                ("state_in_project", opening.settings.state_in_project),
                ("trust_group", opening.settings.trust_group.is_some()),
            ]
            .into_iter()
            .filter_map(|(name, set)| set.then_some(name))
            .collect();
            checks.push(match less_safe[..] {
                [] => check,
                _ => Check {
                    verdict: Verdict::Warn,
                    detail: format!("{}; less safe by {}", check.detail, less_safe.join(", ")),
                    ..check
                },
            });
            Some(opening)
        }
        Err(error) if error.code() == "project_missing" => {
            checks.push(Check::new("state", Verdict::Warn, "there is no project here").next("onceseal init"));
            None
        }
        Err(error) => {
            let mut check = failed("state", &error);
            if let Error::Place(error) = &error {
                let about = error.path().map(|path| format!(" ({})", path.display())).unwrap_or_default();
                check = Check { detail: check.detail + &about, next: error.command(), ..check };
            }
            checks.push(check);
            None
        }
    }
}

fn store(control: &Control, checks: &mut Vec<Check>) {
    let store = control.store();
    checks.push(match store.read(|snapshot| snapshot.counts()) {
        Ok(counts) => Check::new(
            "store",
            Verdict::Ok,
            format!("tenant {}: {} events in {} streams", store.tenant().name, counts.events, counts.streams),
        ),
        Err(error) => failed("store", &error.into()),
    });
}

fn settings_of(control: &Control) -> Check {
    match control.store().unsafe_settings() {
        Ok(faults) if faults.is_empty() => {
            Check::new("settings", Verdict::Ok, "the database protects what it acknowledges")
        }
        Ok(faults) => Check::new("settings", Verdict::Fail, faults.join("; ")),
        Err(error) => failed("settings", &error.into()),
    }
}

/// What was done, and what waits.
fn work(control: &Control, config: Option<&Config>, checks: &mut Vec<Check>) {
    checks.push(active(control.policy().as_deref(), config));
    checks.push(waiting(control));
    checks.push(unknown(control));
    checks.extend([lapsed(control), leases::lapsed(control), runs::waiting(control)]);
    checks.extend([parked(control), overdue(control), destinations(control)]);
}

fn active(active: Option<&ActivePolicy>, config: Option<&Config>) -> Check {
    match (active, config) {
        (None, _) => Check::new("active policy", Verdict::Warn, "none is active; acting activates the file's"),
        (Some(active), Some(config)) if active.hash != config.policy.hash => Check::new(
            "active policy",
            Verdict::Warn,
            "another policy than the file's is active; acting activates the file's unless it was active before",
        )
        .next("onceseal policy apply"),
        (Some(active), _) => Check::new("active policy", Verdict::Ok, active.hash.to_string()),
    }
}

/// Rows of one state that count: how many (at most [`COUNTED`] or so) and the
/// oldest one's age.
pub(super) fn oldest(
    control: &Control,
    kind: StreamKind,
    state: &str,
    counts: impl Fn(&Row) -> bool,
) -> Result<Option<(String, Timestamp)>, Error> {
    let state = state_numbers(kind).into_iter().find(|(_, name)| *name == state).map(|(number, _)| number);
    let made = |row: &Row| match row {
        // Since when nothing has been done about it.
        Row::Action(row) => match row.state {
            ActionState::Queued { due, .. } => due,
            _ => row.updated_at,
        },
        Row::Approval(row) => row.created_at,
        Row::Effect(row) => row.updated_at,
        _ => row.updated_at(),
    };
    let mut filter = Filter { state, ..Filter::default() };
    let mut since = Vec::new();
    loop {
        let page = control.list(kind, &filter, COUNTED)?;
        since.extend(page.items.iter().map(|(_, row)| row).filter(|row| counts(row)).map(made));
        filter.after = page.next;
        if filter.after.is_none() || since.len() >= COUNTED {
            break;
        }
    }
    let more = if filter.after.is_some() { " or more" } else { "" };
    Ok(since.iter().min().map(|oldest| (format!("{}{more}", since.len()), *oldest)))
}

fn waiting(control: &Control) -> Check {
    let now = control.store().now();
    let waits =
        |row: &Row| matches!(row, Row::Approval(row) if standing::status(row, now) == Status::Pending);
    match oldest(control, StreamKind::Approval, "pending", waits) {
        Ok(None) => Check::new("approvals", Verdict::Ok, "none waits for an answer"),
        Ok(Some((count, since))) => {
            let age = age(control.store().now().since(since));
            Check::new(
                "approvals",
                Verdict::Warn,
                format!("{count} wait for an answer, the oldest for {age}"),
            )
            .next("onceseal pending")
        }
        Err(error) => failed("approvals", &error),
    }
}

fn unknown(control: &Control) -> Check {
    // What a worker will look into needs nobody yet.
    let needs_somebody = |row: &Row| match row {
        Row::Effect(row) => !matches!(
            control.action_row(row.holder),
            Ok(Some(holder)) if matches!(holder.state, ActionState::Queued { .. })
        ),
        _ => true,
    };
    match oldest(control, StreamKind::Effect, EffectState::Ambiguous.as_str(), needs_somebody) {
        Ok(None) => {
            Check::new("unknown effects", Verdict::Ok, "no outcome is unknown that a person must look into")
        }
        Ok(Some((count, since))) => {
            let age = age(control.store().now().since(since));
            Check::new(
                "unknown effects",
                Verdict::Warn,
                format!("{count} have an unknown outcome, the oldest for {age}"),
            )
            .next("onceseal effects list --state ambiguous")
        }
        Err(error) => failed("unknown effects", &error),
    }
}

fn parked(control: &Control) -> Check {
    match oldest(control, StreamKind::Action, "parked", |_| true) {
        Ok(None) => Check::new("parked", Verdict::Ok, "no operation is parked"),
        Ok(Some((count, since))) => {
            let age = age(control.store().now().since(since));
            let detail = format!("{count} operations wait for a person's word, the oldest for {age}");
            Check::new("parked", Verdict::Warn, detail).next("onceseal operations list --state parked")
        }
        Err(error) => failed("parked", &error),
    }
}

/// Operations that are due and that nobody has taken.
fn overdue(control: &Control) -> Check {
    let before = control.store().now() - TAKEN_WITHIN;
    let is_overdue = |row: &Row| matches!(row, Row::Action(row) if matches!(row.state, ActionState::Queued { due, .. } if due < before));
    match oldest(control, StreamKind::Action, "queued", is_overdue) {
        Ok(None) => Check::new("overdue", Verdict::Ok, "no operation waits for a worker in vain"),
        Ok(Some((count, since))) => {
            let age = age(control.store().now().since(since));
            let detail = format!(
                "{count} operations are due and nobody takes them, the oldest for {age}: no worker runs, it is too \
                 slow, or it has not their contract"
            );
            Check::new("overdue", Verdict::Warn, detail).next("onceseal operations list --state queued")
        }
        Err(error) => failed("overdue", &error),
    }
}

/// Destinations at which nothing is attempted for a while.
fn destinations(control: &Control) -> Check {
    let stopped = match control.stopped_routes() {
        Ok(stopped) => stopped,
        Err(error) => return failed("destinations", &error),
    };
    if !stopped.unreadable.is_empty() {
        let detail = format!(
            "what is known of {} cannot be read, so nothing is attempted there",
            counted(stopped.unreadable.len(), "destination")
        );
        return Check::new("destinations", Verdict::Fail, detail).next("onceseal audit");
    }
    let since = |row: &RouteRow| match row.state {
        RouteState::Open { since, .. } => Some(since),
        RouteState::Closed { .. } => None,
    };
    match stopped.open.iter().filter_map(since).min() {
        None => Check::new("destinations", Verdict::Ok, "operations are attempted wherever they go"),
        Some(oldest) => {
            let (n, age) = (stopped.open.len(), age(control.store().now().since(oldest)));
            let detail = format!(
                "{} not answering, the first for {age}: operations that go there wait",
                counted(n, "destination")
            );
            Check::new("destinations", Verdict::Warn, detail).next("onceseal operations routes")
        }
    }
}

/// Attempts whose lease ended without a report: nobody has met them yet.
fn lapsed(control: &Control) -> Check {
    let now = control.store().now();
    let number = |state: EffectState| Filter { state: Some(state.number()), ..Filter::default() };
    let mut over = 0;
    for state in [EffectState::Reserved, EffectState::Executing] {
        match control.list(StreamKind::Effect, &number(state), COUNTED) {
            Ok(page) => {
                let is_over = |row: &Row| matches!(row, Row::Effect(row) if standing::lapsed(row, now));
                over += page.items.iter().filter(|(_, row)| is_over(row)).count();
            }
            Err(error) => return failed("attempts", &error),
        }
    }
    match over {
        0 => Check::new("attempts", Verdict::Ok, "every attempt under way has a live lease"),
        over => Check::new(
            "attempts",
            Verdict::Warn,
            format!(
                "{} ended without a report; whoever meets it records its outcome as unknown",
                counted(over, "attempt")
            ),
        ),
    }
}
