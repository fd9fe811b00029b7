//! `export`: receipts and events as JSON lines, in the order of the log.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use onceseal::core::json::Object;

use super::events::{follow, rendered};
use super::{list, refused};
use crate::context::Context;
use crate::error::CliError;

/// What to write.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// One line for each receipt: its position in the log, and the document
    Receipts(Lines),
    /// One line for each event
    Events(Lines),
}

/// From where, and how long.
#[derive(Debug, Args)]
pub(crate) struct Lines {
    /// Only after this position: that of the last line, to go on where an export ended
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// Go on with what is recorded later, until stopped
    #[arg(long)]
    follow: bool,
}

pub(crate) fn run(context: &Context, export: &Export) -> Result<ExitCode, CliError> {
    match export {
        Export::Events(lines) => follow(context, lines.after, u64::MAX, lines.follow, |control, stored| {
            context.out.line(&rendered(control, stored)?)
        })?,
        Export::Receipts(lines) => {
            follow(context, lines.after, u64::MAX, lines.follow, |control, stored| {
                let event = stored.event.as_ref().ok_or_else(list::corrupt)?;
                let Some(id) = event.refs.receipt else { return Ok(()) };
                let mut line = Object::new();
                line.insert("position", refused::integer(stored.position));
                line.insert("receipt", control.receipt(id)?.ok_or_else(list::corrupt)?);
                context.out.line(&line.into())
            })?
        }
    }
    Ok(ExitCode::SUCCESS)
}
