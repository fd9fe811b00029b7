//! `operations`: actions that a worker carries out.

mod routes;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use onceseal::config::Config;
use onceseal::core::action::{ActionRow, ActionState, Answer};
use onceseal::core::code::Code;
use onceseal::core::effect::{EffectRow, EffectState};
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::journal::Row;
use onceseal::core::json::{Object, Value};
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::operations::{Declared, Operations as Tools, Standing, Tool};
use onceseal::views::action_state;
use onceseal::{Control, render};

use super::actions::as_object;
use super::call::CallArgs;
use super::exec::approval;
use super::exec::told::not_run;
use super::list::{self, Pages};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED, UNUSABLE};
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{age, literal, shell, shown};

/// What to do with operations.
#[derive(Debug, Subcommand)]
pub(crate) enum Operations {
    /// Store an action with its intent, to be carried out by a worker
    ///
    /// The action's name is a tool of the section `tools` of the configuration. The same key with the same arguments
    /// is the same operation, however often it is dispatched; with others it is refused.
    Dispatch(Dispatch),
    /// List operations
    List(List),
    /// Show one operation
    Show {
        /// Its reference, `status_…`, or its action
        #[arg(value_name = "REFERENCE|ACTION")]
        which: String,
    },
    /// Have a parked or delayed operation carried out after all
    Retry(Word),
    /// Call an operation off, nothing of which may have happened
    Cancel(Word),
    /// List destinations that do not answer: nothing is attempted there for a while
    ///
    /// After five attempts in a row that could not reach their destination, or found it overloaded, operations that go
    /// there are put off, and one of them is attempted from time to time to see whether it answers.
    Routes,
    /// Say that a destination answers again: what goes there is attempted when it is due
    CloseRoute(routes::Close),
}

/// An operation to store.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    #[command(flatten)]
    call: CallArgs,
    /// What makes two dispatches the same wish
    #[arg(long = "idempotency-key", value_name = "KEY")]
    key: String,
    /// Use one of these approvals
    #[arg(long = "approval", value_name = "ID", value_parser = approval)]
    approvals: Vec<ApprovalId>,
}

/// Which operations.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(STATES))]
    state: Option<String>,
    /// Only those accepted at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

const STATES: [&str; 7] = ["queued", "running", "parked", "committed", "failed", "ambiguous", "cancelled"];

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

pub(crate) fn run(context: &Context, operations: Operations) -> Result<ExitCode, CliError> {
    match operations {
        Operations::Dispatch(dispatch) => self::dispatch(context, &dispatch),
        Operations::List(list) => self::list(context, &list),
        Operations::Show { which } => show(context, &which),
        Operations::Retry(word) => said(context, &word, true),
        Operations::Cancel(word) => said(context, &word, false),
        Operations::Routes => routes::routes(context),
        Operations::CloseRoute(close) => routes::close(context, &close),
    }
}

/// The tools of the configuration.
pub(crate) fn tools(config: &Config) -> Result<Vec<Tool>, CliError> {
    let tools: Result<Vec<Tool>, _> = config.tools.iter().map(Declared::tool).collect();
    tools.map_err(|error| CliError::new("tool_invalid", error.to_string(), UNUSABLE))
}

fn dispatch(context: &Context, dispatch: &Dispatch) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let action = dispatch.call.action(context, &config.policy.policy)?;
    let (tools, control) = (tools(&config)?, context.act(&config)?);
    let asked = action.clone();
    let sent = wait(async {
        let operations = Tools::of(&control, tools).await?;
        let mut sending = operations.dispatch(action.name).args(action.arguments).by(action.principal);
        sending = sending.environment(action.environment).key(&dispatch.key);
        if let Some(resource) = action.resource {
            sending = sending.resource(resource);
        }
        dispatch.approvals.iter().fold(sending, |sending, id| sending.approval(*id)).send().await
    })?;
    let now = match sent {
        Ok(now) => now,
        Err(error) => return Err(not_run(&control, &config.policy.policy, &asked, error)),
    };
    let row = control.action_row(now.action)?.ok_or_else(list::corrupt)?;
    if context.out.is_json() {
        let mut object = rendered(now.action, &row)?;
        object.insert("repeated", now.repeated);
        object.insert("policy_activated", context.activated());
        context.out.document(object)?;
    } else {
        let repeated = if now.repeated { " (dispatched before)" } else { "" };
        context.out.text(&format!("{} {}{repeated}\n", now.status_ref, action_state(&row.state)))?;
    }
    // It will not happen by itself, or nobody knows whether it did.
    let stuck = match now.standing {
        Standing::Queued { .. } | Standing::Running { .. } => false,
        Standing::Ended { result, .. } => result != Answer::Committed,
        Standing::Parked { .. } | Standing::Unknown => true,
    };
    if stuck && !context.out.is_json() {
        context.out.note(&format!("next: onceseal operations show {}", now.status_ref));
    }
    Ok(ExitCode::from(if stuck { REFUSED } else { 0 }))
}

fn rendered(id: ActionId, row: &ActionRow) -> Result<Object, CliError> {
    render::operation(id, row).map(as_object).ok_or_else(list::corrupt)
}

fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["REFERENCE", "AGE", "STATE", "TOOL", "KEY", "WHY"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let mut filter =
            list.pages.filter(&control, StreamKind::Action, list.state.as_deref(), list.older_than)?;
        let mut found = Vec::new();
        // A page of actions may have no operation in it.
        loop {
            let page = control.list(StreamKind::Action, &filter, list.pages.limit())?;
            let is_one = |row: &Row| matches!(row, Row::Action(row) if row.operation.is_some());
            found.extend(page.items.into_iter().filter(|(_, row)| is_one(row)));
            filter.after = page.next;
            if !found.is_empty() || filter.after.is_none() {
                break;
            }
        }
        next = filter.after.map(|cursor| cursor.to_string());
        let now = control.store().now();
        for (stream, row) in found {
            let Row::Action(row) = row else { return Err(list::corrupt()) };
            let Some(value) = render::operation(ActionId(stream.name), &row) else { continue };
            let object = as_object(value);
            let (proposal, intent) = (row.private.proposal.as_ref(), row.private.intent.as_deref());
            let text = |text: Option<&String>| Cell::from(text.map_or("-".to_owned(), |text| shown(text)));
            let said = last_word(&control, &row)?.and_then(|effect| effect.code);
            let code = object.get("code").and_then(Value::as_text).map(str::to_owned);
            let why = match (code, said) {
                (Some(code), Some(said)) if code != said => format!("{code} ({})", shown(&said)),
                (Some(code), _) => code,
                (None, Some(said)) => shown(&said),
                (None, None) => "-".to_owned(),
            };
            table.row(vec![
                text(intent.map(|intent| &intent.status_ref)),
                age(now.since(row.created_at)).into(),
                Cell::state(action_state(&row.state)),
                text(proposal.map(|proposal| &proposal.name)),
                text(intent.map(|intent| &intent.key)),
                why.into(),
            ]);
            items.push(object.into());
        }
    }
    let what = list.state.as_ref().map_or("operations".to_owned(), |state| format!("{state} operations"));
    list::print(context, &what, items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

/// What was last said of its attempts.
fn last_word(control: &Control, row: &ActionRow) -> Result<Option<EffectRow>, CliError> {
    let Some(operation) = &row.operation else { return Ok(None) };
    let effect = control.effect_at(&operation.effect)?;
    Ok(effect.filter(|effect| row.held.is_some_and(|(_, fence)| fence == effect.fence)))
}

/// The action of a reference, or the one that is named.
fn find(control: &Control, which: &str) -> Result<ActionId, CliError> {
    match ActionId::parse(which) {
        Some(id) => Ok(id),
        None => Ok(wait(control.operation(which))??),
    }
}

fn unknown() -> CliError {
    CliError::missing(Code::OperationUnknown).next("onceseal operations list")
}

fn show(context: &Context, which: &str) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else { return Err(unknown()) };
    let id = find(&control, which)?;
    let Some(row) = control.action_row(id)? else { return Err(unknown()) };
    let mut object = render::operation(id, &row).map(as_object).ok_or_else(unknown)?;
    let arguments = control.shown_arguments(id, false)?;
    if context.out.is_json() {
        object.insert("arguments", arguments);
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let effect = last_word(&control, &row)?;
    context.out.text(&text(&control, id, &row, effect.as_ref(), &arguments))?;
    let unknown = effect.as_ref().filter(|effect| effect.state == EffectState::Ambiguous);
    if let Some(key) = unknown.and_then(|effect| effect.private.key.as_deref()) {
        context.out.note(&format!("next: onceseal resolve {} --committed|--failed --reason '…'", shell(key)));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(
    control: &Control,
    id: ActionId,
    row: &ActionRow,
    effect: Option<&EffectRow>,
    arguments: &Object,
) -> String {
    let state = action_state(&row.state);
    let style = state_style(state);
    let quoted =
        |text: Option<&String>| text.map_or("erased".to_owned(), |text| literal(&text.as_str().into()));
    let mut rows = vec![("state", format!("{style}{state}{style:#}"))];
    match row.state {
        ActionState::Parked { code } => {
            rows.push(("why", format!("{code}: {}", code.sentence())));
        }
        ActionState::Queued { due, code } => {
            rows.push(("due", due.to_string()));
            rows.extend(code.map(|code| ("why", format!("{code}: {}", code.sentence()))));
        }
        _ => {}
    }
    let (proposal, intent) = (row.private.proposal.as_ref(), row.private.intent.as_deref());
    rows.extend([
        ("tool", quoted(proposal.map(|proposal| &proposal.name))),
        ("key", quoted(intent.map(|intent| &intent.key))),
        ("subject", quoted(intent.map(|intent| &intent.subject))),
        ("arguments", literal(&arguments.clone().into())),
        ("action", id.to_string()),
    ]);
    if let Some((_, fence)) = row.held {
        rows.push(("attempt", fence.to_string()));
    }
    if let Some(effect) = effect {
        rows.push(("effect", format!("{} {}", quoted(effect.private.key.as_ref()), effect.state)));
        if let Some(code) = &effect.code {
            rows.push(("last said", literal(&code.as_str().into())));
        }
        if let Some(error) = &effect.private.error {
            rows.push(("note", literal(&error.as_str().into())));
        }
    }
    if let Some(receipt) = row.receipt() {
        rows.push(("receipt", receipt.to_string()));
    }
    if let Some(operation) = &row.operation {
        rows.push(("contract", operation.contract.to_string()));
        rows.push(("until", operation.until.to_string()));
    }
    rows.push(("accepted", row.created_at.to_string()));
    rows.push(("age", age(control.store().now().since(row.created_at))));
    format!("{}\n{}", intent.map_or("erased", |intent| &intent.status_ref), fields(&rows))
}

fn said(context: &Context, word: &Word, retry: bool) -> Result<ExitCode, CliError> {
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
                failed = failed.or(Some(error.about("action", id.to_string())));
                continue;
            }
        }
        let row = control.action_row(id)?.ok_or_else(list::corrupt)?;
        if !context.out.is_json() {
            let intent = row.private.intent.as_deref();
            let reference = intent.map_or("erased", |intent| &intent.status_ref);
            context.out.text(&format!("{reference} {}\n", action_state(&row.state)))?;
        }
        items.push(rendered(id, &row)?.into());
    }
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("items", Value::List(items));
        object.insert("person", person.to_string());
        context.out.document(object)?;
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
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
