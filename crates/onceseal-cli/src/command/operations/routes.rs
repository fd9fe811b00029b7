//! Destinations that do not answer, and a person's word that one does.

use std::process::ExitCode;

use clap::Args;
use onceseal::Control;
use onceseal::core::code::Code;
use onceseal::core::json::{Object, Value};
use onceseal::core::reply::Reply;
use onceseal::core::route::RouteState;
use onceseal::core::time::Timestamp;
use onceseal::render;
use onceseal::views::Stopped;

use crate::command::list;
use crate::command::refused;
use crate::context::{Context, wait};
use crate::error::CliError;
use crate::table::{Cell, Table};
use crate::text::{age, shell, shown};

/// A person's word on a destination.
#[derive(Debug, Args)]
pub(crate) struct Close {
    /// The destination, as `operations routes` lists it
    destination: String,
    /// Why; kept in the journal
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn routes(context: &Context) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["DESTINATION", "STATE", "OPEN FOR", "TIMES", "PROBED FROM"]);
    let mut items = Vec::new();
    let mut destinations = Vec::new();
    if let Some(control) = context.read()? {
        let Stopped { open, unreadable } = control.stopped_routes()?;
        let now = control.store().now();
        for row in open {
            let RouteState::Open { since, times, until, .. } = row.state else { continue };
            let destination = row.private.destination.as_deref();
            table.row(vec![
                destination.map_or("erased".to_owned(), shown).into(),
                Cell::state("open"),
                age(now.since(since)).into(),
                times.to_string().into(),
                probed_from(until, now).into(),
            ]);
            destinations.extend(destination.map(shell));
            items.push(render::route(&row));
        }
        for stream in unreadable {
            let dash = || Cell::from("-");
            table.row(vec![stream.to_string().into(), Cell::state("unreadable"), dash(), dash(), dash()]);
            let mut object = Object::new();
            object.insert("destination", Value::Null);
            object.insert("state", "unreadable");
            object.insert("stream", stream.to_string());
            items.push(object.into());
        }
    }
    list::print(context, "destinations that do not answer", items, &table, None)?;
    if let [destination] = &destinations[..]
        && !context.out.is_json()
    {
        context.out.note(&format!(
            "it is probed by itself; if you know that it answers: onceseal operations close-route {destination} \
             --reason '…'"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn probed_from(until: Timestamp, now: Timestamp) -> String {
    if until <= now { "now".to_owned() } else { until.to_string() }
}

pub(super) fn close(context: &Context, close: &Close) -> Result<ExitCode, CliError> {
    let unknown = || CliError::missing(Code::RouteUnknown).next("onceseal operations routes");
    let Some(control) = context.answer()? else { return Err(unknown()) };
    let (destination, person) = (close.destination.clone(), Control::account());
    let reply = wait(control.close_route(destination, person.clone(), close.reason.clone()))?;
    let changed = match reply {
        Ok(reply) => matches!(reply, Reply::Done { changed: true }),
        Err(error) => {
            let is = |code| error.refusal().is_some_and(|refusal| refusal.code == code);
            return Err(match () {
                () if is(Code::RouteUnknown) => unknown(),
                () if is(Code::OutOfBounds) => {
                    refused::remarks(error.into(), &[("--reason", Some(close.reason.as_str()))])
                }
                () => error.into(),
            });
        }
    };
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("destination", close.destination.as_str());
        object.insert("changed", changed);
        object.insert("person", person.to_string());
        context.out.document(object)?;
    } else {
        let word = if changed { "closed" } else { "closed before" };
        context.out.text(&format!("{} {word}\n", shown(&close.destination)))?;
    }
    Ok(ExitCode::SUCCESS)
}
