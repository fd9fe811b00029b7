//! What stands in the way of a run.

use std::process::ExitCode;

use onceseal::core::code::Code;
use onceseal::core::json::Value;
use onceseal::core::task::Blocking;
use onceseal::render;
use onceseal::runs::InTheWay;

use super::{Which, opened, unknown};
use crate::command::list;
use crate::context::Context;
use crate::error::CliError;
use crate::table::Table;
use crate::text::{shell, shown};

pub(super) fn blockers(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, which)?;
    let found = control.blockers(id)?.ok_or_else(unknown)?;
    let mut table = Table::new(&["BLOCKING", "TASK", "CODE"]);
    for InTheWay { blocker, task } in &found {
        table.row(vec![
            blocker.blocking.as_str().into(),
            task.as_deref().map_or("-".to_owned(), shown).into(),
            shown(&blocker.code).into(),
        ]);
    }
    let items: Vec<Value> = found.iter().map(render::blocker).collect();
    list::print(context, "blockers", items, &table, None)?;
    if !context.out.is_json() {
        let has_ended = control.run(id)?.is_some_and(|view| view.row.terminal);
        match has_ended {
            true => context.out.note("note: the run has ended, so nothing is in its way"),
            false => next(context, &found, &id.to_string()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person can do about each kind of it.
fn next(context: &Context, found: &[InTheWay], run: &str) {
    let any = |is: &dyn Fn(&InTheWay) -> bool| found.iter().any(is);
    if any(&|it| it.task.is_none() && !it.blocker.code.starts_with("unbound:")) {
        context.out.note(&format!("next: onceseal runs show {run} says where the run may go from here"));
    }
    if any(&|it| it.blocker.code.starts_with("unbound:")) {
        context
            .out
            .note(&format!("next: onceseal runs deliver {run} GATE REVISION --receipt-file FILE --ask"));
    }
    let is_spent = |it: &InTheWay| it.blocker.code == Code::AttemptsSpent.as_str();
    let mut spent = found.iter().filter(|it| is_spent(it)).filter_map(|it| it.task.as_deref());
    if let Some(task) = spent.next() {
        // Each is granted by itself.
        let task = if spent.next().is_none() { shell(task) } else { "TASK".to_owned() };
        context.out.note(&format!("next: onceseal tasks grant {run} {task} --reason '…'"));
    }
    if any(&|it| it.task.is_some() && it.blocker.blocking != Blocking::Waiting && !is_spent(it)) {
        context.out.note(&format!("next: onceseal tasks show {run} TASK says what lets it go on"));
    }
}
