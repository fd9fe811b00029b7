//! Runs as they stand, and the definitions that they go by.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use onceseal::core::id::{HolderId, RootId, RunId};
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::run::RunRow;
use onceseal::core::time::{Span, Timestamp};
use onceseal::runs::{Definition, Resource, RunFilter, RunView, Stand};
use onceseal::views::Cursor;
use onceseal::{Control, render};

use super::next::steps;
use super::parts::Parts;
use super::{Which, known_kind, opened, unknown};
use crate::command::actions::as_object;
use crate::command::list::{self, Pages};
use crate::command::refused::integer;
use crate::context::Context;
use crate::error::CliError;
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{age, cut, literal, shown};

/// Which runs.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state: `living`, `ended`, or one of their definition's
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only those of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only those of this project, as `runs show` names it
    #[arg(long, value_name = "ROOT", value_parser = root)]
    root: Option<RootId>,
    /// Only those started at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

fn root(text: &str) -> Result<RootId, String> {
    RootId::parse(text).ok_or_else(|| "a project is root_ and 32 hex digits".to_owned())
}

impl List {
    /// Whether a run can be in the state: where none was found, it may be misspelt.
    fn known(&self, context: &Context) -> Result<(), CliError> {
        self.kind.iter().try_for_each(|kind| known_kind(context, kind))?;
        let Some(state) = &self.state else { return Ok(()) };
        let of_kind =
            |definition: &Definition| self.kind.as_ref().is_none_or(|kind| definition.kind() == kind);
        let mut known = BTreeSet::from(["living".to_owned(), "ended".to_owned()]);
        // Whoever lists runs does without a file that can be read.
        let configured = context.definitions().unwrap_or_default();
        let built_in = Definition::built_in().into_iter().map(Arc::new);
        for definition in built_in.chain(configured).filter(|definition| of_kind(definition)) {
            known.insert(definition.initial().to_owned());
            known.extend(definition.edges().map(|(_, to)| to.to_owned()));
        }
        if known.contains(state) {
            return Ok(());
        }
        let known: Vec<_> = known.into_iter().collect();
        Err(CliError::usage(format!(
            "no definition has the state {}; there are {}",
            cut(state),
            known.join(", ")
        )))
    }

    fn filter(&self, now: Timestamp) -> Result<RunFilter, CliError> {
        let after = match &self.pages.after {
            Some(text) => Some(Cursor::parse(text).ok_or_else(list::cursor)?),
            None => None,
        };
        let stand = self.state.as_ref().map(|state| match state.as_str() {
            "living" => Stand::Living,
            "ended" => Stand::Ended,
            state => Stand::In(state.to_owned()),
        });
        Ok(RunFilter {
            kind: self.kind.clone(),
            stand,
            root: self.root,
            until: self.older_than.map(|age| now - age),
            after,
            newest_first: self.pages.newest,
        })
    }
}

pub(super) fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let mut table = table();
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let now = control.store().now();
        let page = control.list_runs(&list.filter(now)?, list.pages.limit())?;
        next = page.next.map(|cursor| cursor.to_string());
        for (id, row) in page.items {
            let holder = holder(&control, id)?;
            let mut object = as_object(render::run(id, &row));
            object.insert("holder", holder.map_or(Value::Null, |id| id.to_string().into()));
            items.push(object.into());
            table.row(cells(id, &row, holder, now));
        }
    }
    if items.is_empty() {
        list.known(context)?;
    }
    let what = list.state.as_ref().map_or("runs".to_owned(), |state| format!("{} runs", shown(state)));
    list::print(context, &what, items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

/// A table of runs.
const fn table() -> Table {
    Table::new(&["RUN", "KIND", "CHANGE", "STATE", "CODE", "AGE", "CHANGED", "HELD"])
}

/// A row of such a table.
pub(super) fn cells(id: RunId, row: &RunRow, holder: Option<HolderId>, now: Timestamp) -> Vec<Cell> {
    vec![
        id.to_string().into(),
        row.kind.as_str().into(),
        change(row).into(),
        Cell::state(&row.state),
        row.code.as_deref().map_or("-".to_owned(), shown).into(),
        age(now.since(row.created_at)).into(),
        age(now.since(row.updated_at)).into(),
        if holder.is_some() { "yes" } else { "no" }.into(),
    ]
}

fn change(row: &RunRow) -> String {
    let key = row.private.key.as_deref();
    match key.map(|key| key.strip_prefix("change:").unwrap_or(key)) {
        None => "erased".to_owned(),
        // Long, and told in full where one run is shown.
        Some(key) if row.provisional => shown(&key.chars().take(24).collect::<String>()),
        Some(key) => shown(key),
    }
}

/// Who holds a run now.
pub(super) fn holder(control: &Control, id: RunId) -> Result<Option<HolderId>, CliError> {
    let lease = control.inspect_lease(&Resource::Run(id))?;
    Ok(lease.and_then(|lease| lease.holders().next().map(|held| held.holder)))
}

pub(super) fn show(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let (control, id) = opened(context, which)?;
    let view = control.run(id)?.ok_or_else(unknown)?;
    let parts = Parts::read(&control, &view)?;
    if context.out.is_json() {
        let mut object = rendered(&view);
        parts.render(&mut object);
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    context.out.text(&text(&view, &parts, control.store().now()))?;
    steps(&view, &parts).iter().for_each(|step| context.out.note(&format!("next: {step}")));
    Ok(ExitCode::SUCCESS)
}

/// A run as JSON has it, with who holds it and what may follow.
fn rendered(view: &RunView) -> Object {
    let mut object = as_object(render::run(view.id, &view.row));
    object.insert("sequence", integer(view.sequence));
    object.insert("holder", view.holder.as_ref().map_or(Value::Null, render::holder));
    object.insert("lapsed", view.lapsed.as_ref().map_or(Value::Null, render::holder));
    let commands = view.commands().map(|(name, to)| {
        let mut command = Object::new();
        command.insert("name", name);
        command.insert("to", to.map_or(Value::Null, Value::from));
        command.into()
    });
    object.insert("commands", Value::List(commands.collect()));
    object.insert("next", Value::List(view.next().map(Value::from).collect()));
    object
}

fn text(view: &RunView, parts: &Parts, now: Timestamp) -> String {
    let RunView { row, holder, lapsed, .. } = view;
    let style = state_style(&row.state);
    let ended = if row.terminal { " (ended)" } else { "" };
    let quoted =
        |text: Option<&String>| text.map_or("erased".to_owned(), |text| literal(&Value::from(text.as_str())));
    let at = |moment: Timestamp| format!("{moment} ({} ago)", age(now.since(moment)));
    let mut rows = vec![
        ("kind", row.kind.clone()),
        ("key", row.private.key.as_deref().map_or("erased".to_owned(), shown)),
        ("state", format!("{style}{}{style:#}{ended}", row.state)),
    ];
    if let Some(code) = &row.code {
        rows.push(("code", shown(code)));
    }
    rows.push(("started", format!("{} by {}", at(row.created_at), quoted(row.private.agent.as_ref()))));
    if let Some(user) = &row.private.user {
        rows.push(("for", literal(&Value::from(user.as_str()))));
    }
    rows.push(("changed", format!("{}, event {}", at(row.updated_at), view.sequence)));
    rows.push((
        "held",
        match (holder, lapsed) {
            (Some(held), _) => format!("by {} until {}, fence {}", held.holder, held.until, held.fence),
            (None, Some(over)) => format!(
                "by nobody: the lease of {} ended {} ago without a word",
                over.holder,
                age(now.since(over.until))
            ),
            (None, None) => "by nobody".to_owned(),
        },
    ));
    if let Some(previous) = row.previous {
        rows.push(("previous", previous.to_string()));
    }
    rows.push(("project", row.root.to_string()));
    rows.push(("definition", row.definition.to_string()));
    let next: Vec<&str> = view.next().collect();
    if !next.is_empty() {
        rows.push(("may follow", next.join(", ")));
    }
    rows.extend(parts.rows());
    format!("{}\n{}", view.id, fields(&rows))
}

pub(super) fn definitions(context: &Context) -> Result<ExitCode, CliError> {
    let own = context.definitions()?;
    let mut table = Table::new(&["KIND", "STATES", "INITIAL", "ENDS IN", "FROM"]);
    let mut items = Vec::new();
    let built_in = Definition::built_in().into_iter().map(|known| (known, "built in"));
    for (known, from) in built_in.chain(own.iter().map(|own| ((**own).clone(), "configuration"))) {
        let ends: Vec<&str> =
            known.states().keys().map(String::as_str).filter(|state| known.is_terminal(state)).collect();
        let mut object = Object::new();
        object.insert("kind", known.kind());
        object.insert("definition", known.digest().to_string());
        object.insert("built_in", from == "built in");
        let document = json::read_canonical(known.text(), &Limits::DATA);
        object.insert("document", document.map_err(|_| list::corrupt())?);
        items.push(object.into());
        table.row(vec![
            known.kind().into(),
            known.states().len().to_string().into(),
            known.initial().into(),
            ends.join(", ").into(),
            from.into(),
        ]);
    }
    list::print(context, "definitions", items, &table, None)?;
    Ok(ExitCode::SUCCESS)
}
