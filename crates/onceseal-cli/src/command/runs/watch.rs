//! Following runs as they go on.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::Control;
use onceseal::core::id::RunId;
use onceseal::core::stream::StreamKind;
use onceseal::runs::{RunFilter, Stand};

use super::history::{line, rendered};
use super::show::{cells, holder, table};
use super::{Which, opened, unknown};
use crate::command::events::follow;
use crate::context::Context;
use crate::error::CliError;
use crate::text::counted;

/// How often a run or the picture of all is looked at anew.
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
    let mut from = 1;
    loop {
        // Looked at first: what is recorded after it is told in the next round.
        let ended = control.run(id)?.ok_or_else(unknown)?.row.terminal;
        let page = control.run_events(id, from, 256)?;
        for event in &page {
            from = event.stored.stamp.sequence + 1;
            match context.out.is_json() {
                true => context.out.line(&rendered(event)?.into())?,
                false => context.out.text(&line(id, event)?)?,
            }
        }
        match (page.is_empty(), ended) {
            (true, true) => return Ok(()),
            (true, false) => std::thread::sleep(PAUSE),
            (false, _) => {}
        }
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
    follow(context, after, u64::MAX, true, |control, stored| {
        if stored.stamp.stream.kind != StreamKind::Run {
            return Ok(());
        }
        let (id, event) = (RunId(stored.stamp.stream.name), control.run_event(stored)?);
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
    loop {
        let mut table = table();
        let mut count = 0;
        if let Some(control) = context.read()? {
            let now = control.store().now();
            for (id, row) in control.list_runs(&filter, MOST)?.items {
                table.row(cells(id, &row, holder(&control, id)?, now));
                count += 1;
            }
        }
        let living = counted(count, "living run");
        context.out.clear()?;
        context.out.text(&format!("{}{living}; Ctrl-C ends\n", table.render()))?;
        std::thread::sleep(PAUSE * 2);
    }
}
