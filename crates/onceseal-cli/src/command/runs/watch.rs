//! Following runs as they go on.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::Control;
use onceseal::core::id::RunId;
use onceseal::core::json::{Object, Value};
use onceseal::render;
use onceseal::runs::{Blocking, InTheWay, RunFilter, Stand};

use super::history::{line, rendered};
use super::show::{cells, holder};
use super::{Which, opened, parts, unknown};
use crate::command::away::Away;
use crate::command::events::{follow, heard, pause};
use crate::context::Context;
use crate::error::CliError;
use crate::table::Table;
use crate::text::{counted, shown};

/// How often a run or the picture of all is looked at anew, where no server tells
/// that it is time.
const PAUSE: Duration = Duration::from_millis(500);
/// So many fit on no screen.
const MOST: usize = 200;

/// What to follow.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Only this run, to its end: its id, or its kind and change [default: all that live]
    #[arg(value_name = "RUN|KIND/CHANGE")]
    run: Option<String>,
    /// Only what is recorded after this position of the log
    #[arg(long, value_name = "N", conflicts_with = "run")]
    after: Option<u64>,
}

pub(super) fn run(context: &Context, watch: &Watch) -> Result<ExitCode, CliError> {
    match &watch.run {
        Some(run) => one(context, &Which { run: run.clone() })?,
        None if context.out.is_terminal() && watch.after.is_none() => picture(context)?,
        None => tail(context, watch.after)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The events of one run, until it has ended.
fn one(context: &Context, which: &Which) -> Result<(), CliError> {
    let (control, id) = opened(context, which)?;
    let (mut history, mut told) = (control.run_history(id), Told::default());
    let mut away = Away::new(context.out);
    loop {
        let heard = heard(Some(&control));
        let mut looked = || {
            // Looked at first: what is recorded after it is told in the next round.
            let ended = control.run(id)?.ok_or_else(unknown)?.row.terminal;
            let page = history.more(256)?;
            for event in &page {
                match context.out.is_json() {
                    true => context.out.line(&rendered(event)?.into())?,
                    false => context.out.text(&line(id, event)?)?,
                }
            }
            told.tell(context, &control, id)?;
            Ok((page.is_empty(), ended))
        };
        match away.passes(looked())? {
            Some((true, true)) => return Ok(()),
            Some((true, false)) | None => pause(Some(&control), heard, PAUSE),
            Some((false, _)) => {}
        }
    }
}

/// What was told of what stands in a run's way.
#[derive(Default)]
struct Told {
    blockers: Vec<InTheWay>,
    /// The log as far as it was looked at.
    position: u64,
}

impl Told {
    /// Tells what changed since it was looked at.
    fn tell(&mut self, context: &Context, control: &Control, id: RunId) -> Result<(), CliError> {
        let position = control.store().read(|snapshot| snapshot.newest())?;
        if position == self.position {
            return Ok(());
        }
        self.position = position;
        let blockers = control.blockers(id)?.unwrap_or_default();
        // Whose turn it is not is in its state.
        let waits = |it: &InTheWay| it.blocker.blocking == Blocking::Waiting;
        let blockers: Vec<_> = blockers.into_iter().filter(|it| !waits(it)).collect();
        if blockers == self.blockers {
            return Ok(());
        }
        if context.out.is_json() {
            let mut object = Object::new();
            object.insert("blockers", Value::List(blockers.iter().map(render::blocker).collect()));
            context.out.line(&object.into())?;
        } else {
            for it in blockers.iter().filter(|it| !self.blockers.contains(it)) {
                let of = it.task.as_deref().map(|task| format!("task {}: ", shown(task))).unwrap_or_default();
                context.out.text(&format!(
                    "in the way: {of}{} ({})\n",
                    shown(&it.blocker.code),
                    it.blocker.blocking
                ))?;
            }
        }
        self.blockers = blockers;
        Ok(())
    }
}

/// The events of all runs, from now on or after a position.
fn tail(context: &Context, after: Option<u64>) -> Result<(), CliError> {
    let newest = |control: &Control| control.store().read(|snapshot| snapshot.newest());
    let after = match (after, context.read()?) {
        (Some(after), _) => after,
        (None, Some(control)) => newest(&control)?,
        (None, None) => 0,
    };
    if !context.out.is_json() {
        context
            .out
            .note(&format!("what is recorded of runs after position {after}; --after 0 tells all of it"));
    }
    follow(context, after, u64::MAX, true, |control, stored| {
        let Some((id, event)) = control.run_event(stored)? else { return Ok(()) };
        if !context.out.is_json() {
            return context.out.text(&line(id, &event)?);
        }
        let mut object = rendered(&event)?;
        object.insert("run", id.to_string());
        context.out.line(&object.into())
    })
}

/// A table of those that live, drawn again and again.
fn picture(context: &Context) -> Result<(), CliError> {
    let filter = RunFilter { stand: Some(Stand::Living), newest_first: true, ..RunFilter::default() };
    let mut control = context.read()?;
    let mut away = Away::new(context.out);
    loop {
        if control.is_none() {
            control = away.passes(context.read())?.flatten();
        }
        let heard = heard(control.as_ref());
        let drawn = match &control {
            Some(control) => away.passes(drawn(control, &filter))?,
            // Nothing was recorded yet.
            None => (!away.is_away()).then(|| "0 living runs; Ctrl-C ends\n".to_owned()),
        };
        if let Some(drawn) = drawn {
            context.out.clear()?;
            context.out.text(&drawn)?;
        }
        pause(control.as_ref(), heard, PAUSE * 2);
    }
}

fn drawn(control: &Control, filter: &RunFilter) -> Result<String, CliError> {
    let mut table =
        Table::new(&["RUN", "KIND", "CHANGE", "STATE", "CODE", "AGE", "CHANGED", "HELD", "TASKS", "BLOCKED"]);
    let mut count = 0;
    let now = control.store().now();
    for (id, row) in control.list_runs(filter, MOST)?.items {
        let mut cells = cells(id, &row, holder(control, id)?, now);
        cells.extend(parts::cells(control, id)?);
        table.row(cells);
        count += 1;
    }
    Ok(format!("{}{}; Ctrl-C ends\n", table.render(), counted(count, "living run")))
}
