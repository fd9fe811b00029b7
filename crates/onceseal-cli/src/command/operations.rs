//! `operations`: actions that a worker carries out.

mod case;
mod routes;
mod show;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use onceseal::config::{Config, ConfigError};
use onceseal::core::action::{ActionRow, ActionState, Answer};
use onceseal::core::code::Code;
use onceseal::core::effect::EffectRow;
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::journal::Row;
use onceseal::core::json::{Object, Value};
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::fault::point;
use onceseal::operations::{Declared, Operations as Tools, Standing, Tool};
use onceseal::views::action_state;
use onceseal::{Control, Error, render};

use super::actions::as_object;
use super::call::With;
use super::exec::told::not_run;
use super::exec::{approval, waiting};
use super::list::{self, Pages};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::table::{Cell, Table};
use crate::text::{age, literal, shown};
use show::Which;
use words::Word;

/// What to do with operations.
#[derive(Debug, Subcommand)]
pub(crate) enum Operations {
    /// Store an action with its intent, to be carried out by a worker
    ///
    /// The action's name is a tool of the section `tools` of the configuration. The same key with the same arguments
    /// is the same operation, however often it is dispatched; with others it is refused.
    Dispatch(Box<Dispatch>),
    /// Ask what became of the call of a case file, as the model would
    Status {
        /// The case file that was dispatched
        #[arg(long, value_name = "FILE")]
        case: PathBuf,
        /// Its reference
        #[arg(long, value_name = "REFERENCE")]
        status_ref: String,
    },
    /// Audit the store, and print a gate: PASS or BLOCK
    Audit,
    /// List operations
    List(List),
    /// Show one operation, with its result and what a person last said of it
    Show(Which),
    /// Wait until an operation has ended, is parked or is unknown: exit 0 if it is committed, 1 if not
    Wait {
        #[command(flatten)]
        which: Which,
        /// No longer than this
        #[arg(long, value_name = "TIME", value_parser = list::span)]
        timeout: Option<Span>,
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

impl Operations {
    /// Whether it is for programs alone.
    pub(crate) const fn answers_programs(&self) -> bool {
        match self {
            Operations::Dispatch(dispatch) => dispatch.case.is_some(),
            Operations::Status { .. } | Operations::Audit => true,
            _ => false,
        }
    }
}

/// An operation to store.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    /// The action's name, as the policy lists it
    #[arg(required_unless_present = "case")]
    action: Option<String>,
    #[command(flatten)]
    with: With,
    /// What makes two dispatches the same wish
    #[arg(long = "idempotency-key", value_name = "KEY", required_unless_present = "case")]
    key: Option<String>,
    /// Use one of these approvals
    #[arg(long = "approval", value_name = "ID", value_parser = approval)]
    approvals: Vec<ApprovalId>,
    /// Wait until a person has answered, where one must, and then until it has ended, is parked or is unknown, whoever
    /// carries it out; no longer than TIME for each, if that is given
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = list::span)]
    wait: Option<Option<Span>>,
    /// Dispatch the call of this case file and carry it out here, at the time that it says: for tests
    #[arg(long, value_name = "FILE", conflicts_with_all = ["action", "key", "approvals", "wait", "args", "files", "raw_files", "user", "resource"])]
    case: Option<PathBuf>,
    /// Fail at this point, as if the process had died there: for tests
    #[arg(long, value_name = "POINT", requires = "case", value_parser = PossibleValuesParser::new(point::ALL))]
    fault: Option<String>,
}

/// Which operations.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(STATES))]
    state: Option<String>,
    /// Only those of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only those accepted at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

const STATES: [&str; 7] = ["queued", "running", "parked", "committed", "failed", "ambiguous", "cancelled"];

pub(crate) fn run(context: &Context, operations: Operations) -> Result<ExitCode, CliError> {
    match operations {
        Operations::Dispatch(dispatch) => self::dispatch(context, &dispatch),
        Operations::Status { case, status_ref } => case::status(context, &case, &status_ref),
        Operations::Audit => case::audited(context),
        Operations::List(list) => self::list(context, &list),
        Operations::Show(which) => show::run(context, &which),
        Operations::Wait { which, timeout } => show::wait_for(context, &which, timeout),
        Operations::Retry(word) => words::said(context, &word, true),
        Operations::Cancel(word) => words::said(context, &word, false),
        Operations::Routes => routes::routes(context),
        Operations::CloseRoute(close) => routes::close(context, &close),
    }
}

/// The tools of the configuration.
pub(crate) fn tools(config: &Config) -> Result<Vec<Tool>, CliError> {
    let tools: Result<Vec<Tool>, _> = config.tools.iter().map(Declared::tool).collect();
    tools.map_err(|error| ConfigError::from(error).into())
}

fn dispatch(context: &Context, dispatch: &Dispatch) -> Result<ExitCode, CliError> {
    if let Some(case) = &dispatch.case {
        return case::dispatch(context, case, dispatch.fault.as_deref());
    }
    if dispatch.fault.is_some() {
        return Err(CliError::usage("--fault goes with --case"));
    }
    let (Some(action), Some(key)) = (&dispatch.action, &dispatch.key) else {
        return Err(CliError::usage("an action and --idempotency-key are needed, or --case"));
    };
    let config = context.config()?;
    let action = dispatch.with.action(action, context, &config.policy.policy)?;
    let (tools, control) = (tools(&config)?, context.act(&config)?);
    let patience = dispatch.wait.map(|time| time.map_or(Duration::MAX, Span::to_std));
    let sent = wait(async {
        let operations = Tools::of(&control, tools).await?;
        let send = || {
            let action = action.clone();
            let sending = operations.dispatch(action.name).args(action.arguments).by(action.principal);
            let sending = sending.environment(action.environment).key(key);
            let sending = match action.resource {
                Some(resource) => sending.resource(resource),
                None => sending,
            };
            dispatch.approvals.iter().fold(sending, |sending, id| sending.approval(*id)).send()
        };
        match (send().await, patience) {
            (Err(Error::ApprovalNeeded { approval, expires_at, .. }), Some(patience)) => {
                context.out.note(&waiting(approval, expires_at));
                control.wait_for_answer(approval, patience).await?;
                send().await
            }
            (sent, _) => sent,
        }
    })?;
    let now = match sent {
        Ok(now) => now,
        Err(error) => return Err(not_run(&control, &config.policy.policy, &action, error)),
    };
    if patience.is_some() && !context.out.is_json() {
        context.out.note("waiting for a worker to carry it out");
    }
    let waited = match patience {
        Some(patience) => Some(wait(control.wait_for(now.action, patience))??),
        None => None,
    };
    let row = control.action_row(now.action)?.ok_or_else(list::corrupt)?;
    let effect = last_word(&control, &row)?;
    let value = result(&control, &row, effect.as_ref())?;
    if context.out.is_json() {
        let mut object = rendered(now.action, &row, effect.as_ref())?;
        object.insert("repeated", now.repeated);
        object.insert("policy_activated", context.activated());
        object.insert("value", value.unwrap_or(Value::Null));
        context.out.document(object)?;
    } else {
        let repeated = if now.repeated { " (dispatched before)" } else { "" };
        let value = value.map(|value| literal(&value) + "\n").unwrap_or_default();
        context.out.text(&format!("{} {}{repeated}\n{value}", now.status_ref, action_state(&row.state)))?;
    }
    // It will not happen by itself, nobody knows whether it did, or it was waited for
    // in vain.
    let stuck = match (waited, now.standing) {
        (Some(_), _) => !is_committed(&row),
        (None, Standing::Queued { .. } | Standing::Running { .. }) => false,
        (None, Standing::Ended { result, .. }) => result != Answer::Committed,
        (None, Standing::Parked { .. } | Standing::Unknown) => true,
    };
    if stuck && !context.out.is_json() {
        if waited == Some(false) {
            context.out.note("it was waited for in vain, and goes on; without a worker nothing happens");
        }
        context.out.note(&format!("next: onceseal operations show {}", now.status_ref));
    }
    Ok(ExitCode::from(if stuck { REFUSED } else { 0 }))
}

fn is_committed(row: &ActionRow) -> bool {
    let (ActionState::Ended { result, .. } | ActionState::Answered { result, .. }) = row.state else {
        return false;
    };
    result == Answer::Committed
}

/// What it returned, where that is still kept.
fn result(control: &Control, row: &ActionRow, effect: Option<&EffectRow>) -> Result<Option<Value>, CliError> {
    let at = effect.and_then(|effect| effect.result_at);
    let stored = row.operation.as_ref().zip(at).map(|(operation, sequence)| (operation.effect, sequence));
    Ok(control.stored_value(stored)?)
}

/// An operation as JSON has it, with what was last said of its attempts.
fn rendered(id: ActionId, row: &ActionRow, effect: Option<&EffectRow>) -> Result<Object, CliError> {
    let mut object = render::operation(id, row).map(as_object).ok_or_else(list::corrupt)?;
    let last = effect.filter(|effect| effect.code.is_some() || effect.private.error.is_some());
    let last = last.map(|effect| {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        let mut last = Object::new();
        last.insert("code", text(&effect.code));
        last.insert("note", text(&effect.private.error));
        last
    });
    object.insert("last", last.map_or(Value::Null, Value::Object));
    Ok(object)
}

fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["REFERENCE", "AGE", "STATE", "TOOL", "KEY", "WHY"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let mut filter =
            list.pages.filter(&control, StreamKind::Action, list.state.as_deref(), list.older_than)?;
        filter.name.clone_from(&list.tool);
        let mut found: Vec<(ActionId, ActionRow)> = Vec::new();
        // A page of actions may have few operations in it.
        loop {
            let page = control.list(StreamKind::Action, &filter, list.pages.limit())?;
            found.extend(page.items.into_iter().filter_map(|(stream, row)| match row {
                Row::Action(row) if row.operation.is_some() => Some((ActionId(stream.name), row)),
                _ => None,
            }));
            filter.after = page.next;
            if found.len() >= list.pages.limit() || filter.after.is_none() {
                break;
            }
        }
        if found.len() > list.pages.limit() {
            found.truncate(list.pages.limit());
            filter.after = found.last().map(|(id, row)| filter.after_action(*id, row));
        }
        next = filter.after.map(|cursor| cursor.to_string());
        let now = control.store().now();
        for (id, row) in found {
            let effect = last_word(&control, &row)?;
            let object = rendered(id, &row, effect.as_ref())?;
            let (proposal, intent) = (row.private.proposal.as_ref(), row.private.intent.as_deref());
            let text = |text: Option<&String>| Cell::from(text.map_or("-".to_owned(), |text| shown(text)));
            // What was done needs no reason, whatever was said of attempts before.
            let said = effect.filter(|_| !is_committed(&row)).and_then(|effect| effect.code);
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
        None => wait(control.operation(which))?.map_err(|error| {
            let is_unknown = error.refusal().is_some_and(|refusal| refusal.code == Code::OperationUnknown);
            if is_unknown { unknown() } else { error.into() }
        }),
    }
}

fn unknown() -> CliError {
    CliError::missing(Code::OperationUnknown).next("onceseal operations list")
}
