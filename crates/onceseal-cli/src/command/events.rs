//! `events`: the journal as it is.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::core::id::{ActionId, ApprovalId, RunId};
use onceseal::core::json::{Object, Value};
use onceseal::core::stream::StreamId;
use onceseal::store::read::StoredEvent;
use onceseal::{Control, render};

use super::away::Away;
use super::list;
use crate::context::Context;
use crate::error::CliError;
use crate::text::shown;

/// How often a follower looks, where no server tells it sooner.
const PAUSE: Duration = Duration::from_millis(250);
/// Events read at once.
const PAGE: usize = 256;

/// Read the journal
///
/// In the order of the log, or one stream in its own order. A reader that goes on after the last position it has seen
/// misses nothing.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Only after this position of the log; with --stream, after this number in the stream
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// At most so many [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Only one stream: an action's, approval's or run's id, `kind/hex` as events name it, or an effect key
    #[arg(long, value_name = "STREAM")]
    stream: Option<String>,
    /// Go on with what is recorded later, until stopped; JSON lines with --json
    #[arg(long, conflicts_with = "stream")]
    follow: bool,
}

pub(crate) fn run(context: &Context, events: &Events) -> Result<ExitCode, CliError> {
    let most = events.limit.unwrap_or(u64::MAX);
    if events.follow {
        follow(context, events.after, most, true, |control, stored| print(context, control, stored))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut items = Vec::new();
    let mut last = None;
    if let Some(control) = context.read()? {
        let stream = events.stream.as_deref().map(|text| named(&control, text));
        let mut after = events.after;
        let mut left = most;
        while left > 0 {
            let page = page(&control, stream.as_ref(), after, left)?;
            let Some(newest) = page.last() else { break };
            after = if stream.is_some() { newest.stamp.sequence } else { newest.position };
            left -= page.len() as u64;
            last = Some(after).filter(|_| left == 0);
            for stored in &page {
                match context.out.is_json() {
                    true => items.push(rendered(&control, stored)?),
                    false => print(context, &control, stored)?,
                }
            }
        }
    }
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("items", Value::List(items));
        object.insert("next", last.map_or(Value::Null, super::refused::integer));
        context.out.document(object)?;
    } else if let Some(last) = last {
        context.out.note(&format!("more: --after {last}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn page(
    control: &Control,
    stream: Option<&StreamId>,
    after: u64,
    left: u64,
) -> Result<Vec<StoredEvent>, CliError> {
    let most = usize::try_from(left).unwrap_or(PAGE).min(PAGE);
    Ok(match stream {
        Some(stream) => control.events(stream, after.saturating_add(1), most)?,
        None => control.log(after, most)?,
    })
}

/// The stream that a text names.
fn named(control: &Control, text: &str) -> StreamId {
    let action = ActionId::parse(text).map(StreamId::action);
    let approval = || ApprovalId::parse(text).map(StreamId::approval);
    let run = || RunId::parse(text).map(StreamId::run);
    action
        .or_else(approval)
        .or_else(run)
        .or_else(|| StreamId::parse(text))
        .unwrap_or_else(|| control.store().tenant().effect(text))
}

/// An event as JSON.
pub(crate) fn rendered(control: &Control, stored: &StoredEvent) -> Result<Value, CliError> {
    Ok(render::event(stored, control.prior(&stored.stamp.stream, stored.stamp.sequence)?)?)
}

fn print(context: &Context, control: &Control, stored: &StoredEvent) -> Result<(), CliError> {
    if context.out.is_json() {
        return context.out.line(&rendered(control, stored)?);
    }
    let event = stored.event.as_ref().ok_or_else(list::corrupt)?;
    let refs = [
        event.refs.action.map(|id| id.to_string()),
        event.refs.approval.map(|id| id.to_string()),
        event.refs.receipt.map(|id| id.to_string()),
    ];
    let mut data = String::new();
    event.body.write_data(&mut data);
    let data = shown(&data);
    let refs: String = refs.into_iter().flatten().map(|id| format!(" {id}")).collect();
    let (stamp, kind) = (&stored.stamp, event.body.kind().to_string());
    let (position, at, stream) = (stored.position, stamp.at, stamp.stream);
    context.out.text(&format!("{position:>6}  {at}  {kind:<18}  {stream}{refs}  {data}\n"))
}

/// Gives every event of the log after a position to `take`, and with `wait`
/// those that are recorded later, also in a store that is only made then.
pub(crate) fn follow(
    context: &Context,
    mut after: u64,
    mut left: u64,
    wait: bool,
    mut take: impl FnMut(&Control, &StoredEvent) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut control = context.read()?;
    let mut away = Away::new(context.out);
    while left > 0 {
        let heard = if wait { heard(control.as_ref()) } else { 0 };
        let mut looked = || {
            let Some(control) = &control else { return Ok(0) };
            let page = page(control, None, after, left)?;
            for stored in &page {
                take(control, stored)?;
                // What was taken is not told again, whatever comes of the next.
                (after, left) = (stored.position, left - 1);
            }
            Ok(page.len())
        };
        if !wait {
            match looked()? {
                0 => break,
                _ => continue,
            }
        }
        if control.is_some() && away.passes(looked())?.is_some_and(|found| found > 0) {
            continue;
        }
        pause(control.as_ref(), heard, PAUSE);
        if control.is_none() {
            control = away.passes(context.read())?.flatten();
        }
    }
    Ok(())
}

/// What was heard of others' commits, to be asked before they are looked for.
pub(crate) fn heard(control: Option<&Control>) -> u64 {
    control.map_or(0, |control| control.store().hints().count())
}

/// Waits before the next look: so long, or until more is heard.
pub(crate) fn pause(control: Option<&Control>, heard: u64, at_most: Duration) {
    match control {
        Some(control) => control.store().hints().wait(heard, at_most),
        None => std::thread::sleep(at_most),
    }
}
