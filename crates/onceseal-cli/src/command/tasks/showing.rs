//! Tasks as they stand.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use onceseal::Control;
use onceseal::core::hash::Hash;
use onceseal::core::id::RunId;
use onceseal::core::journal::Body;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Timestamp;
use onceseal::render;
use onceseal::runs::{Blocking, RunView, TaskFilter, TaskRow, TaskState, TaskView};
use onceseal::store::read::StoredEvent;
use onceseal::views::Cursor;

use super::{One, unknown};
use crate::command::actions::as_object;
use crate::command::list;
use crate::command::refused::integer;
use crate::command::runs::{Which, opened, unknown as no_run};
use crate::context::Context;
use crate::error::CliError;
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{age, literal, shell, shown};

/// Which tasks.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    which: Which,
    /// Only those in this state [default: all that are in the plan]
    #[arg(long, value_parser = PossibleValuesParser::new(TaskState::ALL.iter().map(|state| state.as_str())))]
    state: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// What follows this place: `next` of the page before
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

pub(super) fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, &list.which)?;
    let turn = Turn::read(&control, id)?;
    let after = match &list.after {
        Some(text) => Some(Cursor::parse(text).ok_or_else(list::cursor)?),
        None => None,
    };
    let named = |name: &String| TaskState::ALL.iter().copied().find(|state| state.as_str() == *name);
    let filter = TaskFilter { state: list.state.as_ref().and_then(named), after };
    let page = control.list_tasks(id, &filter, usize::from(list.limit))?;
    let now = control.store().now();
    let mut table = Table::new(&["TASK", "STATE", "PHASE", "LEFT", "WAITS FOR", "CHANGED", "HELD"]);
    for view in &page.items {
        table.row(cells(view, &turn, now));
    }
    let items: Vec<Value> = page.items.iter().map(render::task).collect();
    let what = list.state.as_ref().map_or("tasks".to_owned(), |state| format!("{state} tasks"));
    list::print(context, &what, items, &table, page.next.map(|next| next.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// A row of a table of tasks.
fn cells(view: &TaskView, turn: &Turn, now: Timestamp) -> Vec<Cell> {
    let row = &view.row;
    vec![
        view.id().map_or("erased".to_owned(), shown).into(),
        Cell::state(row.state.as_str()).over(view.lapsed.is_some()),
        row.phase_name().into(),
        row.attempts_left().to_string().into(),
        waits(view, turn).into(),
        age(now.since(row.updated_at)).into(),
        if view.holder.is_some() { "yes" } else { "no" }.into(),
    ]
}

/// Why it is nobody's turn, as far as that is so for every task in line.
struct Turn {
    /// The state of the run, if none is taken in it.
    idle: Option<String>,
    /// How many are worked on, if there may be no more.
    full: Option<usize>,
}

impl Turn {
    fn read(control: &Control, id: RunId) -> Result<Turn, CliError> {
        let RunView { row, definition, .. } = control.run(id)?.ok_or_else(no_run)?;
        let idle = definition.filter(|definition| definition.is_idle(&row.state)).map(|_| row.state);
        let capacity = control.plan(id)?.map(|plan| plan.capacity);
        let mut at_work = 0;
        for state in TaskState::ALL.iter().copied().filter(|state| state.is_worked_on()) {
            let filter = TaskFilter { state: Some(state), ..TaskFilter::default() };
            at_work += control.list_tasks(id, &filter, usize::MAX)?.items.len();
        }
        let is_full =
            capacity.is_some_and(|capacity| usize::try_from(capacity).is_ok_and(|most| at_work >= most));
        Ok(Turn { idle, full: is_full.then_some(at_work) })
    }

    fn told(&self) -> String {
        match (&self.idle, self.full) {
            (Some(state), _) => format!("the run, idle: {}", shown(state)),
            (None, Some(at_work)) => format!("capacity: {at_work} at work"),
            (None, None) => "its turn".to_owned(),
        }
    }
}

/// What a task waits for, in a few words.
fn waits(view: &TaskView, turn: &Turn) -> String {
    let is_in_line = matches!(view.row.state, TaskState::Queued | TaskState::Ready);
    match (&view.waits_for[..], &view.blocker) {
        ([], Some(blocker)) if is_in_line && blocker.blocking == Blocking::Waiting => turn.told(),
        ([], Some(blocker)) => format!("{}: {}", blocker.blocking, shown(&blocker.code)),
        ([], None) => "-".to_owned(),
        (on, _) => on.iter().map(|task| shown(task)).collect::<Vec<_>>().join(", "),
    }
}

pub(super) fn show(context: &Context, one: &One) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, &one.which)?;
    let turn = Turn::read(&control, id)?;
    let view = control.task(id, &one.task)?.ok_or_else(|| unknown(&shell(&one.which.run)))?;
    let spec = control.task_spec(&view)?;
    let events = events(&control, &view)?;
    if context.out.is_json() {
        let mut object = as_object(render::task(&view));
        object.insert("run", id.to_string());
        object.insert("spec", spec);
        object.insert("events", Value::List(events.iter().map(rendered).collect()));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = control.store().now();
    context.out.text(&text(&view, &turn, &spec, now))?;
    let mut table = Table::new(&["EVENT", "AGE", "WHAT", "CODE", "FACT", "BY"]);
    for event in &events {
        table.row(event.cells(now));
    }
    context.out.text(&format!("\n{}", table.render()))?;
    let (row, task) = (&view.row, shell(&one.task));
    if row.state == TaskState::Failed {
        context.out.note(&format!(
            "next: onceseal tasks plan {id} REVISION FILE, a plan that changes it, begins it anew"
        ));
    } else if row.attempts_left() == 0 && may_be_attempted(row.state) {
        context.out.note(&format!("next: onceseal tasks grant {id} {task} --reason '…'"));
    } else if row.state.is_stop() {
        context.out.note(&format!("next: onceseal tasks queue {id} {task}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a task waits for an attempt, be it that it stopped or that it is in line.
const fn may_be_attempted(state: TaskState) -> bool {
    state.is_stop() || matches!(state, TaskState::Pending | TaskState::Queued | TaskState::Ready)
}

/// How often its phase may be attempted yet. Each cause is counted by itself.
fn attempts(row: &TaskRow) -> String {
    let (left, of) = (row.attempts_left(), row.attempts);
    match row.cause() {
        "first" => format!("{left} of {of} left"),
        cause => format!("{left} of {of} left for {}, counted by itself", shown(cause)),
    }
}

fn text(view: &TaskView, turn: &Turn, spec: &Object, now: Timestamp) -> String {
    let row = &view.row;
    let style = state_style(row.state.as_str());
    let mut rows = vec![
        ("state", format!("{style}{}{style:#}", row.state)),
        ("phase", format!("{} of {}", row.phase_name(), row.phases.join(", "))),
    ];
    rows.extend(row.code.as_deref().map(|code| ("code", shown(code))));
    rows.push(("attempts", attempts(row)));
    if view.blocker.is_some() {
        rows.push(("waits for", waits(view, turn)));
    }
    rows.push((
        "held",
        match (&view.holder, &view.lapsed) {
            (Some(held), _) => format!("by {} until {}, fence {}", held.holder, held.until, held.fence),
            (None, Some(over)) => format!(
                "by nobody: the lease of {} ended {} ago without a word",
                over.holder,
                age(now.since(over.until))
            ),
            (None, None) => "by nobody".to_owned(),
        },
    ));
    rows.extend(row.private.workers.first().map(|worker| ("last worker", shown(worker))));
    rows.push(("is", literal(&Value::Object(spec.clone()))));
    format!("{}\n{}", view.id().map_or("erased".to_owned(), shown), fields(&rows))
}

/// What happened to a task once.
struct Happened {
    sequence: u64,
    at: Timestamp,
    kind: String,
    what: String,
    code: Option<String>,
    fact: Option<String>,
    hash: Option<Hash>,
    environment: Option<String>,
    by: Option<String>,
}

/// Events of one task are as many as its attempts, a few times.
const MOST: usize = 10_000;

fn events(control: &Control, view: &TaskView) -> Result<Vec<Happened>, CliError> {
    let stored = control.events(&view.stream, 1, MOST)?;
    stored.iter().map(happened).collect()
}

fn happened(stored: &StoredEvent) -> Result<Happened, CliError> {
    let body = &stored.event.as_ref().ok_or_else(list::corrupt)?.body;
    let mut happened = Happened {
        sequence: stored.stamp.sequence,
        at: stored.stamp.at,
        kind: body.kind().to_string(),
        what: body.kind().to_string(),
        code: None,
        fact: None,
        hash: None,
        environment: None,
        by: None,
    };
    match body {
        Body::TaskAdded(data, _) => happened.what = format!("planned, {}", data.state),
        Body::TaskQueued(data, _) => happened.what = data.state.to_string(),
        Body::TaskTaken(data, by) => {
            happened.what = format!("taken, fence {}", data.fence);
            happened.by.clone_from(&by.agent);
        }
        Body::TaskMoved(data, sealed) => {
            happened.what = format!("{} > {}", data.from, data.to);
            (happened.code, happened.fact) = (data.code.clone(), data.fact.clone());
            (happened.hash, happened.environment) = (sealed.hash, sealed.environment.clone());
            happened.by = sealed.produced_by.clone().or_else(|| sealed.agent.clone());
        }
        Body::TaskGranted(_, said) => {
            happened.what = "attempts granted".to_owned();
            happened.by.clone_from(&said.person);
        }
        Body::TaskDropped(..) => happened.what = "closed: a newer plan does not have it".to_owned(),
        _ => {}
    }
    Ok(happened)
}

fn rendered(event: &Happened) -> Value {
    let optional = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
    let mut object = Object::new();
    object.insert("sequence", integer(event.sequence));
    object.insert("at", event.at.to_string());
    object.insert("kind", event.kind.as_str());
    object.insert("what", event.what.as_str());
    object.insert("code", optional(&event.code));
    object.insert("fact", optional(&event.fact));
    object.insert("hash", event.hash.map_or(Value::Null, |hash| hash.to_string().into()));
    object.insert("environment", optional(&event.environment));
    object.insert("by", optional(&event.by));
    object.into()
}

impl Happened {
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let optional = |text: &Option<String>| Cell::from(text.as_deref().map_or("-".to_owned(), shown));
        vec![
            self.sequence.to_string().into(),
            age(now.since(self.at)).into(),
            self.what.as_str().into(),
            optional(&self.code),
            optional(&self.fact),
            optional(&self.by),
        ]
    }
}
