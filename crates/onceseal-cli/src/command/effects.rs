//! `effects`: what happened under which key, and a person's word on what is unknown.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use onceseal::core::code::Code;
use onceseal::core::effect::{EffectRow, EffectState};
use onceseal::core::journal::Row;
use onceseal::core::json::{Object, Value};
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::{Span, Timestamp};
use onceseal::{Control, Error, render};

use super::actions::as_object;
use super::list::{self, Pages};
use super::refused::{self, of, to_resolve};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::standing;
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{age, literal, shell, shown};

/// What to do with effects.
#[derive(Debug, Subcommand)]
pub(crate) enum Effects {
    /// List effects
    List(List),
    /// Show one effect and its attempts
    Show {
        /// The effect key
        key: String,
    },
    Resolve(Resolve),
}

/// Which effects.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(EffectState::ALL.iter().map(|state| state.as_str())))]
    state: Option<String>,
    /// Only those whose key was first taken at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

/// Say what became of an effect whose outcome is unknown
///
/// Look at the remote first: whoever says --failed lets it happen again.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("outcome").required(true).args(["committed", "failed"])))]
pub(crate) struct Resolve {
    /// The effect key
    key: String,
    /// It happened
    #[arg(long)]
    committed: bool,
    /// It did not happen, and may be attempted again
    #[arg(long)]
    failed: bool,
    /// How you know; kept with the effect
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Where it can be looked up
    #[arg(long, value_name = "TEXT")]
    evidence: Option<String>,
    /// The attempt that was looked at; refused if there was a newer one [default: the newest]
    #[arg(long, value_name = "N")]
    fence: Option<u64>,
}

pub(crate) fn run(context: &Context, effects: Effects) -> Result<ExitCode, CliError> {
    match effects {
        Effects::List(list) => self::list(context, &list),
        Effects::Show { key } => show(context, &key),
        Effects::Resolve(resolve) => self::resolve(context, resolve),
    }
}

fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["EFFECT KEY", "STATE", "ATTEMPT", "AGE", "CHANGED", "ACTION"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let filter =
            list.pages.filter(&control, StreamKind::Effect, list.state.as_deref(), list.older_than)?;
        let page = control.list(StreamKind::Effect, &filter, list.pages.limit())?;
        next = page.next.map(|cursor| cursor.to_string());
        let now = control.store().now();
        for (_, row) in page.items {
            let Row::Effect(row) = row else { return Err(list::corrupt()) };
            items.push(rendered(&row, now).into());
            let key = row.private.key.as_deref().map_or("erased".to_owned(), shown);
            table.row(vec![
                key.into(),
                Cell::state(row.state.as_str()).over(standing::lapsed(&row, now)),
                row.fence.to_string().into(),
                age(now.since(row.created_at)).into(),
                age(now.since(row.updated_at)).into(),
                row.holder.to_string().into(),
            ]);
        }
    }
    let what = match list.state.as_deref() {
        Some(state) => format!("{state} effects"),
        None => "effects".to_owned(),
    };
    list::print(context, &what, items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, key: &str) -> Result<ExitCode, CliError> {
    let missing = || CliError::missing(Code::EffectUnknown).next("onceseal effects list");
    let Some(control) = context.read()? else { return Err(missing()) };
    let Some(row) = control.effect(key)? else { return Err(missing()) };
    let stream = control.store().tenant().effect(key);
    let mut history = Vec::new();
    let mut from = 1;
    loop {
        let page = control.events(&stream, from, 256)?;
        let Some(last) = page.last() else { break };
        from = last.stamp.sequence + 1;
        history.extend(page);
    }
    if context.out.is_json() {
        let mut object = rendered(&row, control.store().now());
        let mut events = Vec::with_capacity(history.len());
        for event in &history {
            events.push(render::event(event, control.prior(&stream, event.stamp.sequence)?)?);
        }
        object.insert("events", Value::List(events));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = text(&control, key, &row);
    for stored in &history {
        let event = stored.event.as_ref().ok_or_else(list::corrupt)?;
        let action = event.refs.action.map(|id| format!(" {id}")).unwrap_or_default();
        text.push_str(&format!("  {} {}{action}\n", stored.stamp.at, event.body.kind()));
    }
    context.out.text(&text)?;
    if row.state == EffectState::Ambiguous {
        context.out.note(&format!("next: onceseal resolve {} --committed|--failed --reason '…'", shell(key)));
    }
    Ok(ExitCode::SUCCESS)
}

/// An effect as JSON has it, with whether the lease of its attempt is over.
fn rendered(row: &EffectRow, now: Timestamp) -> Object {
    let mut object = as_object(render::effect(row));
    object.insert("over", standing::lapsed(row, now));
    object
}

fn text(control: &Control, key: &str, row: &EffectRow) -> String {
    let style = state_style(row.state.as_str());
    let now = control.store().now();
    let mut rows = vec![
        ("state", format!("{style}{}{style:#}", row.state)),
        ("attempt", row.fence.to_string()),
        ("action", row.holder.to_string()),
    ];
    if let Some(until) = row.lease_until.filter(|_| row.held()) {
        let over = if standing::lapsed(row, now) { " (over: nobody has reported)" } else { "" };
        rows.push(("lease ends", format!("{until}{over}")));
    }
    if let Some(source) = row.answered_by {
        rows.push(("answered by", source.to_string()));
    }
    if let Some(code) = &row.code {
        rows.push(("code", literal(&code.as_str().into())));
    }
    if let Some(error) = &row.private.error {
        rows.push(("note", literal(&error.as_str().into())));
    }
    rows.push(("first taken", format!("{} ({} ago)", row.created_at, age(now.since(row.created_at)))));
    rows.push(("changed", format!("{} ({} ago)", row.updated_at, age(now.since(row.updated_at)))));
    format!("{}\n{}", literal(&key.into()), fields(&rows))
}

pub(crate) fn resolve(context: &Context, resolve: Resolve) -> Result<ExitCode, CliError> {
    let missing = || CliError::missing(Code::EffectUnknown).next("onceseal effects list --state ambiguous");
    let Some(control) = context.answer()? else { return Err(missing()) };
    let Resolve { key, committed, reason, evidence, fence, .. } = resolve;
    let person = Control::account();
    let (remarks, key_of) = ((reason.clone(), evidence.clone()), key.clone());
    let (state, receipt) =
        match wait(control.resolve(&key, fence, committed, reason, evidence, person.clone()))? {
            Ok(Reply::Settled { state, receipt, .. }) => (state, receipt),
            Ok(_) => return Err(Error::Unexpected.into()),
            Err(Error::Refused(refusal)) if refusal.code == Code::EffectUnknown => return Err(missing()),
            Err(error) => {
                let row = control.effect(&key)?;
                return Err(unresolved(&control, error, &key, fence, row.as_ref(), &remarks));
            }
        };
    let receipt = receipt.map(|id| id.to_string());
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("effect_key", key);
        object.insert("state", state.as_str());
        object.insert("person", person.to_string());
        object.insert("receipt", receipt.map_or(Value::Null, Value::Text));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let receipt = receipt.map(|id| format!(", receipt {id}")).unwrap_or_default();
    context.out.text(&format!(
        "{} {state} by {}{receipt}\n",
        literal(&key.into()),
        shown(&person.to_string())
    ))?;
    if state == EffectState::Failed {
        let holder =
            control.effect(&key_of)?.map(|row| control.action_row(row.holder)).transpose()?.flatten();
        let by = match holder.is_some_and(|row| row.operation.is_some()) {
            true => ", of an operation by dispatching it with another idempotency key",
            false => "",
        };
        context.out.note(&format!("a new attempt is possible now{by}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a person's word was not taken.
fn unresolved(
    control: &Control,
    error: Error,
    key: &str,
    fence: Option<u64>,
    row: Option<&EffectRow>,
    (reason, evidence): &(String, Option<String>),
) -> CliError {
    let code = error.refusal().map(|refusal| refusal.code);
    let told = of(control, error);
    match (code, row, fence) {
        (Some(Code::OutOfBounds), ..) => {
            refused::remarks(told, &[("--reason", Some(reason)), ("--evidence", evidence.as_deref())])
        }
        (Some(Code::NotAmbiguous), Some(row), Some(fence)) if row.fence != fence => {
            let message =
                format!("the word is about attempt {fence}, and the newest attempt is {}", row.fence);
            CliError::new("fence_differs", message, REFUSED)
                .because(format!("the effect {} is {}", literal(&key.into()), row.state))
                .about("effect_key", key)
                .about("state", row.state.as_str())
                .about("attempt", refused::integer(row.fence))
                .next(format!("onceseal effects show {}", shell(key)))
        }
        (_, Some(row), _) if row.state == EffectState::Ambiguous => to_resolve(told, key),
        _ => told,
    }
}
