//! `actions`: what was proposed, and what became of it.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use onceseal::core::action::ActionRow;
use onceseal::core::code::Code;
use onceseal::core::id::ActionId;
use onceseal::core::journal::Row;
use onceseal::core::json::{Object, Value};
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::views::{Filter, action_state, state_numbers};
use onceseal::{CallOptions, Control, Error, render};

use super::call::{CallArgs, proposed};
use super::exec::{action, approval};
use super::list::{self, Pages};
use super::refused;
use crate::context::{Context, wait};
use crate::error::CliError;
use crate::standing;
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{age, literal, shown};

/// What to do with actions.
#[derive(Debug, Subcommand)]
pub(crate) enum Actions {
    /// Propose an action and have it decided, without running anything
    ///
    /// What is permitted waits 15 minutes to be started, what a person must approve until the request expires; `exec`
    /// with the same action and --id starts it.
    Submit(Submit),
    /// List actions
    List(List),
    /// Show one action
    Show {
        /// The action
        #[arg(value_parser = action)]
        id: ActionId,
    },
}

/// An action to propose.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    call: CallArgs,
    /// Use this approval
    #[arg(long, value_name = "ID", value_parser = approval)]
    approval: Option<onceseal::core::id::ApprovalId>,
    /// Give the action this id
    #[arg(long, value_name = "ID", value_parser = action)]
    id: Option<ActionId>,
}

/// Which actions.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(states()))]
    state: Option<String>,
    /// Only those of this name
    #[arg(long)]
    name: Option<String>,
    /// Only those proposed at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

fn states() -> Vec<&'static str> {
    state_numbers(StreamKind::Action).into_iter().map(|(_, name)| name).collect()
}

pub(crate) fn run(context: &Context, actions: Actions) -> Result<ExitCode, CliError> {
    match actions {
        Actions::Submit(submit) => self::submit(context, &submit),
        Actions::List(list) => self::list(context, list),
        Actions::Show { id } => show(context, id),
    }
}

fn submit(context: &Context, submit: &Submit) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let action = submit.call.action(context, &config.policy.policy)?;
    let control = context.act(&config)?;
    let options = CallOptions { id: submit.id, approval: submit.approval, ..CallOptions::default() };
    let proposed = proposed(&control, &action).options(options);
    let (id, approval, until) = match wait(proposed.propose())? {
        Ok(Reply::Ready { action, until }) => (action, None, Some(until)),
        Err(Error::ApprovalNeeded { action, approval, expires_at }) => {
            (action, Some(approval), Some(expires_at))
        }
        Ok(Reply::Ended { action, .. }) => (action, None, None),
        Ok(_) => return Err(Error::Unexpected.into()),
        Err(Error::Refused(refusal)) => {
            return Err(refused::call(&control, &config.policy.policy, &action, &refusal));
        }
        Err(error) => return Err(error.into()),
    };
    let row = control.action_row(id)?.ok_or_else(list::corrupt)?;
    if context.out.is_json() {
        let mut object = as_object(render::action(id, &row));
        object.insert("until", until.map_or(Value::Null, |until| until.to_string().into()));
        object.insert("policy_activated", context.activated());
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
    context.out.text(&format!("{id} {}{until}\n", action_state(&row.state)))?;
    if let Some(approval) = approval {
        context.out.note(&format!("next: onceseal approve {approval}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// An action as JSON has it, with whether its time is over.
fn rendered(id: ActionId, row: &ActionRow, over: bool) -> Object {
    let mut object = as_object(render::action(id, row));
    object.insert("over", over);
    object
}

/// The members of an object that is rendered as one.
pub(crate) fn as_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn list(context: &Context, list: List) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["ACTION", "AGE", "STATE", "NAME", "EFFECT KEY", "AGENT"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let filter =
            list.pages.filter(&control, StreamKind::Action, list.state.as_deref(), list.older_than)?;
        let filter = Filter { name: list.name, ..filter };
        let page = control.list(StreamKind::Action, &filter, list.pages.limit())?;
        next = page.next.map(|cursor| cursor.to_string());
        let now = control.store().now();
        for (stream, row) in page.items {
            let Row::Action(row) = row else { return Err(list::corrupt()) };
            let id = ActionId(stream.name);
            let over = standing::is_over(&control, &row, now);
            items.push(rendered(id, &row, over).into());
            let proposal = row.private.proposal.as_ref();
            let text = |text: Option<&String>| Cell::from(text.map_or("-".to_owned(), |text| shown(text)));
            table.row(vec![
                id.to_string().into(),
                age(now.since(row.created_at)).into(),
                Cell::state(action_state(&row.state)).over(over),
                text(proposal.map(|p| &p.name)),
                text(proposal.and_then(|p| p.effect_key.as_ref())),
                text(proposal.map(|p| &p.agent)),
            ]);
        }
    }
    list::print(context, "actions", items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, id: ActionId) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else { return Err(CliError::missing(Code::ActionUnknown)) };
    let Some(row) = control.action_row(id)? else { return Err(CliError::missing(Code::ActionUnknown)) };
    let arguments = control.shown_arguments(id, false)?;
    if context.out.is_json() {
        let over = standing::is_over(&control, &row, control.store().now());
        let mut object = rendered(id, &row, over);
        object.insert("arguments", arguments);
        context.out.document(object)?;
    } else {
        context.out.text(&text(&control, id, &row, &arguments))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(control: &Control, id: ActionId, row: &ActionRow, arguments: &Object) -> String {
    let state = action_state(&row.state);
    let style = state_style(state);
    let quoted =
        |text: Option<&String>| text.map_or("none".to_owned(), |text| literal(&text.as_str().into()));
    let over = if standing::is_over(control, row, control.store().now()) { " (over)" } else { "" };
    let mut rows = vec![("state", format!("{style}{state}{style:#}{over}"))];
    if let onceseal::core::action::ActionState::Ended { code: Some(code), .. } = row.state {
        rows.push(("code", code.to_string()));
    }
    rows.push(("decision", format!("{} ({})", row.decided.decision, row.decided.reason)));
    if let Some(proposal) = &row.private.proposal {
        rows.extend([
            ("name", literal(&proposal.name.as_str().into())),
            ("agent", literal(&proposal.agent.as_str().into())),
            ("user", quoted(proposal.user.as_ref())),
            ("environment", literal(&proposal.environment.as_str().into())),
            ("resource", quoted(proposal.resource.as_ref())),
            ("effect key", quoted(proposal.effect_key.as_ref())),
            ("action hash", proposal.action_hash.to_string()),
        ]);
    }
    rows.push(("arguments", literal(&arguments.clone().into())));
    if let Some(approval) = row.approval {
        rows.push(("approval", approval.to_string()));
    }
    if let Some((_, fence)) = row.held {
        rows.push(("attempt", fence.to_string()));
    }
    if let Some(receipt) = row.receipt() {
        rows.push(("receipt", receipt.to_string()));
    }
    rows.push(("proposed", row.created_at.to_string()));
    rows.push(("changed", row.updated_at.to_string()));
    rows.push(("age", age(control.store().now().since(row.created_at))));
    format!("{id}\n{}", fields(&rows))
}
