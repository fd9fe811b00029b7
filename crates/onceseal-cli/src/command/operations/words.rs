//! A person's word on operations that wait: try them after all, or never.

use std::process::ExitCode;

use clap::Args;
use onceseal::Control;
use onceseal::core::code::Code;
use onceseal::core::id::ActionId;
use onceseal::core::json::{Object, Value};
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::views::action_state;

use super::{find, last_word, rendered, unknown};
use crate::command::list::{self, Pages};
use crate::context::{Context, wait};
use crate::error::CliError;

/// A person's word on operations.
#[derive(Debug, Args)]
pub(crate) struct Word {
    /// Its reference, `status_…`, or its action
    #[arg(value_name = "REFERENCE|ACTION", required_unless_present = "all")]
    which: Option<String>,
    /// All that are parked
    #[arg(long, conflicts_with = "which")]
    all: bool,
    /// Why; kept with the operation
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn said(context: &Context, word: &Word, retry: bool) -> Result<ExitCode, CliError> {
    let Some(control) = context.answer()? else { return Err(unknown()) };
    let person = Control::account();
    let ids = match &word.which {
        Some(which) => vec![find(&control, which)?],
        None => parked(&control)?,
    };
    let mut items = Vec::new();
    let mut failed = None;
    for id in ids {
        let (person, reason) = (person.clone(), word.reason.clone());
        let reply = match retry {
            true => wait(control.retry(id, person, reason))?,
            false => wait(control.cancel(id, person, reason))?,
        };
        match reply {
            Ok(Reply::Done { .. }) => {}
            // One that cannot be does not stand in the way of the others.
            no => {
                let error = match no {
                    Err(error) => CliError::from(error),
                    // It is not waiting.
                    Ok(_) => CliError::missing(Code::InvalidTransition),
                };
                failed = failed.or(Some(standing(&control, id, error)));
                continue;
            }
        }
        let row = control.action_row(id)?.ok_or_else(list::corrupt)?;
        if !context.out.is_json() {
            let intent = row.private.intent.as_deref();
            let reference = intent.map_or("erased", |intent| &intent.status_ref);
            context.out.text(&format!("{reference} {}\n", action_state(&row.state)))?;
        }
        items.push(rendered(id, &row, last_word(&control, &row)?.as_ref())?.into());
    }
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("items", Value::List(items));
        object.insert("person", person.to_string());
        context.out.document(object)?;
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Why a person's word does not count, with where the operation stands.
fn standing(control: &Control, id: ActionId, error: CliError) -> CliError {
    let error = error.about("action", id.to_string());
    // A store that cannot say leaves it out.
    let row = control.action_row(id).ok().flatten();
    let Some(row) = row.filter(|row| row.operation.is_some()) else { return error };
    let state = action_state(&row.state);
    error
        .about("state", state)
        .because(format!("it is {state}"))
        .next(format!("onceseal operations show {id}"))
}

/// Every operation that is parked.
fn parked(control: &Control) -> Result<Vec<ActionId>, CliError> {
    let pages = Pages { limit: 1000, after: None, newest: false };
    let mut filter = pages.filter(control, StreamKind::Action, Some("parked"), None)?;
    let mut ids = Vec::new();
    loop {
        let page = control.list(StreamKind::Action, &filter, pages.limit())?;
        ids.extend(page.items.iter().map(|(stream, _)| ActionId(stream.name)));
        filter.after = page.next;
        if filter.after.is_none() {
            return Ok(ids);
        }
    }
}
