//! What happened to a run, and whether the record of it holds.

use std::process::ExitCode;

use clap::Args;
use onceseal::core::id::RunId;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Timestamp;
use onceseal::runs::{Part, RunEvent};
use onceseal::{Control, render};

use super::telling::told;
use super::{Which, opened, unknown};
use crate::command::actions::as_object;
use crate::command::audit;
use crate::command::events;
use crate::command::list;
use crate::command::refused::integer;
use crate::context::Context;
use crate::error::{CliError, REFUSED};
use crate::table::{Cell, Table};
use crate::text::{age, counted, literal};

/// Events read at once.
const PAGE: usize = 256;

/// Which events.
#[derive(Debug, Args)]
pub(crate) struct Events {
    #[command(flatten)]
    which: Which,
    /// Only what is recorded after this position of the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// At most so many [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Between which events.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    which: Which,
    /// After this event of the run itself
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// To this one, inclusive [default: now, with what happened to its tasks since its newest event]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    to: Option<u64>,
}

pub(super) fn events(context: &Context, events: &Events) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, &events.which)?;
    control.run(id)?.ok_or_else(unknown)?;
    let now = control.store().now();
    let mut table = Table::new(&["EVENT", "AGE", "WHAT", "CODE", "BY", "REQUEST"]);
    let (mut items, mut next, mut left) = (Vec::new(), None, events.limit.unwrap_or(u64::MAX));
    let mut history = control.run_history(id).after(events.after);
    while left > 0 {
        let page = history.more(usize::try_from(left).unwrap_or(PAGE).min(PAGE))?;
        let Some(newest) = page.last() else { break };
        left -= page.len() as u64;
        for event in &page {
            items.push(rendered(event)?.into());
            table.row(cells(event, now)?);
        }
        next = Some(newest.stored.position.to_string()).filter(|_| left == 0);
    }
    list::print(context, "events", items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

/// An event as JSON has it.
pub(super) fn rendered(event: &RunEvent) -> Result<Object, CliError> {
    event.stored.event.as_ref().ok_or_else(list::corrupt)?;
    Ok(as_object(render::run_event(event)))
}

/// The number of an event of the run itself; its parts count theirs apart.
fn own(event: &RunEvent) -> String {
    match event.part {
        Part::Run => event.stored.stamp.sequence.to_string(),
        _ => "-".to_owned(),
    }
}

fn cells(event: &RunEvent, now: Timestamp) -> Result<Vec<Cell>, CliError> {
    let stamp = &event.stored.stamp;
    let [what, code, by, request] = told(event)?;
    let age = age(now.since(stamp.at));
    Ok(vec![own(event).into(), age.into(), what.into(), code.into(), by.into(), request.into()])
}

/// An event on one line.
pub(super) fn line(id: RunId, event: &RunEvent) -> Result<String, CliError> {
    let stamp = &event.stored.stamp;
    let [what, code, by, request] = told(event)?;
    Ok(format!("{}  {id}  {:>4}  {what}  {code}  {by}  {request}\n", stamp.at, own(event)))
}

pub(super) fn diff(context: &Context, diff: &Diff) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, &diff.which)?;
    let newest = control.run(id)?.ok_or_else(unknown)?.sequence;
    let to = diff.to.unwrap_or(newest);
    let changes = control.run_changes(id, diff.from, diff.to)?.ok_or_else(|| {
        let message = format!("the run has {}, numbered from 1", counted(saturated(newest), "event"));
        CliError::usage(message).next(format!("onceseal runs events {id}"))
    })?;
    let mut table = Table::new(&["MEMBER", "BEFORE", "AFTER"]);
    let mut items = Vec::new();
    for change in changes {
        let mut object = Object::new();
        object.insert("member", change.member.as_str());
        object.insert("before", change.before.clone());
        object.insert("after", change.after.clone());
        items.push(object.into());
        let (before, after) = (literal(&change.before), literal(&change.after));
        table.row(vec![change.member.into(), before.into(), after.into()]);
    }
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("run", id.to_string());
        object.insert("from", integer(diff.from));
        object.insert("to", integer(to));
        object.insert("items", Value::List(items));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    list::print(context, "changes", items, &table, None)?;
    Ok(ExitCode::SUCCESS)
}

fn saturated(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

pub(super) fn verify(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, which)?;
    // A row that does not decode is a finding, and none at all is no run.
    if control.events(&onceseal::core::stream::StreamId::run(id), 1, 1)?.is_empty() {
        control.run(id)?.ok_or_else(unknown)?;
    }
    let report = control.verify_run(id)?;
    match context.out.is_json() {
        true => context.out.line(&report.to_json())?,
        false => context.out.text(&audit::text(&report))?,
    }
    Ok(ExitCode::from(if report.is_clean() { 0 } else { REFUSED }))
}

pub(super) fn rebuild(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, which)?;
    let rebuilt = control.rebuild_run(id)?.ok_or_else(unknown)?;
    let code = ExitCode::from(if rebuilt.same { 0 } else { REFUSED });
    if context.out.is_json() {
        let mut object = as_object(render::run(id, &rebuilt.row));
        object.insert("sequence", integer(rebuilt.sequence));
        object.insert("same", rebuilt.same);
        context.out.document(object)?;
        return Ok(code);
    }
    let says = if rebuilt.same { "as it is stored" } else { "which is not what is stored" };
    let events = counted(saturated(rebuilt.sequence), "event");
    context.out.text(&format!("{id} {} after {events}, {says}\n", rebuilt.row.state))?;
    if !rebuilt.same {
        context.out.note("next: onceseal audit");
    }
    Ok(code)
}

pub(super) fn export(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, which)?;
    each(&control, id, |event| context.out.line(&events::rendered(&control, &event.stored)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Gives every event of a run.
fn each(
    control: &Control,
    id: RunId,
    mut take: impl FnMut(&RunEvent) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut from = 1;
    loop {
        let page = control.run_events(id, from, PAGE)?;
        let Some(last) = page.last() else {
            return if from == 1 { Err(unknown()) } else { Ok(()) };
        };
        from = last.stored.stamp.sequence + 1;
        page.iter().try_for_each(&mut take)?;
    }
}
