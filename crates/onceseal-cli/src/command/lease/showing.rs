//! Who holds what.

use std::process::ExitCode;

use onceseal::core::id::RootId;
use onceseal::core::json::{Object, Value};
use onceseal::core::lease::LeaseRow;
use onceseal::core::time::Timestamp;
use onceseal::render;
use onceseal::runs::{HandoffView, LeaseView, Named};
use onceseal::views::Cursor;

use super::What;
use crate::command::list::{self, Pages};
use crate::command::refused::integer;
use crate::context::Context;
use crate::error::CliError;
use crate::table::{Cell, Table};
use crate::text::{age, literal, shown};

/// What is told of what is in the way: enough to see what to do about it.
const IN_THE_WAY: usize = 64;

/// All that is told of a resource.
#[derive(Default)]
struct Told {
    resource: String,
    view: Option<LeaseView>,
    outcome: Option<(u64, Object)>,
    handoff: Option<HandoffView>,
    in_the_way: Vec<LeaseRow>,
    /// When it was looked at; `None` without a store.
    now: Option<Timestamp>,
}

pub(super) fn inspect(context: &Context, what: &What) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else {
        // Without a store there is no project either, and no run.
        if let Named::OfChange { .. } = what.named(RootId([0; 16]))? {
            return Err(what.no_run());
        }
        return Told { resource: shown(&what.resource), ..Told::default() }.tell(context);
    };
    let resource = what.resource(&control)?;
    let view = control.inspect_lease(&resource)?;
    let last = view.as_ref().and_then(|view| view.row.outcomes.last().map(|kept| (view, kept.fence)));
    let outcome = match last {
        Some((view, fence)) => control.lease_outcome(view, fence)?.map(|outcome| (fence, outcome)),
        None => None,
    };
    let handoff = control.prepared_handoff(&resource)?;
    let in_the_way = control.in_the_way(&resource, IN_THE_WAY)?;
    let (resource, now) = (resource.to_string(), Some(control.store().now()));
    Told { resource, view, outcome, handoff, in_the_way, now }.tell(context)
}

impl Told {
    /// Says who holds a resource, what else is in the way of whoever takes it, and with
    /// what it was last given up.
    fn tell(self, context: &Context) -> Result<ExitCode, CliError> {
        let holders: Vec<_> = self.view.iter().flat_map(LeaseView::holders).collect();
        if context.out.is_json() {
            let mut object = Object::new();
            object.insert("resource", self.resource.as_str());
            object.insert("held", !holders.is_empty());
            object.insert("fence", integer(self.view.as_ref().map_or(0, |view| view.row.fence)));
            object.insert("holders", Value::List(holders.into_iter().map(render::holder).collect()));
            let over = self.view.as_ref().and_then(|view| view.row.lapsed(view.now).next());
            object.insert("lapsed", over.map_or(Value::Null, render::holder));
            let around = rows(&self.in_the_way, self.now);
            object.insert("in_the_way", Value::List(around));
            let last = self.outcome.map(|(fence, outcome)| {
                let mut last = Object::new();
                last.insert("fence", integer(fence));
                last.insert("outcome", outcome);
                last
            });
            object.insert("last_outcome", last.map_or(Value::Null, Value::Object));
            object.insert("handoff", self.handoff.as_ref().map_or(Value::Null, render::handoff));
            context.out.document(object)?;
            return Ok(ExitCode::SUCCESS);
        }
        let head = match (holders.is_empty(), self.in_the_way.is_empty()) {
            (false, _) => "is held",
            (true, true) => "is free",
            (true, false) => "is free itself, and what is above or below it is held",
        };
        context.out.text(&format!("{} {head}\n", shown(&self.resource)))?;
        if let Some((view, over)) =
            self.view.as_ref().and_then(|view| Some((view, view.row.lapsed(view.now).next()?)))
        {
            let text = format!(
                "the lease of {} ended {} ago without a word; whoever takes it next, or `onceseal worker`, records that\n",
                over.holder,
                age(view.now.since(over.until))
            );
            context.out.text(&text)?;
        }
        if let Some(view) = self.view.as_ref().filter(|_| !holders.is_empty()) {
            let mut table = Table::new(&["HOLDER", "FENCE", "SHARED", "ENDS IN", "UNTIL"]);
            cells(&view.row, view.now).for_each(|cells| table.row(cells));
            context.out.text(&table.render())?;
        }
        if !self.in_the_way.is_empty() {
            context.out.text(&table(&self.in_the_way, self.now).render())?;
        }
        if let Some((fence, outcome)) = self.outcome {
            context.out.text(&format!("last outcome, of fence {fence}: {}\n", literal(&outcome.into())))?;
        }
        if let Some(HandoffView { row, facts }) = &self.handoff {
            let by = row.private.agent.as_deref().map_or("erased".to_owned(), shown);
            let facts = facts.clone().map_or("erased".to_owned(), |facts| literal(&facts.into()));
            let text = format!("handed over by {by} at {}, to be accepted: {facts}\n", row.created_at);
            context.out.text(&text)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(super) fn list(context: &Context, pages: &Pages) -> Result<ExitCode, CliError> {
    let after = match &pages.after {
        Some(text) => Some(Cursor::parse(text).ok_or_else(list::cursor)?),
        None => None,
    };
    let Some(control) = context.read()? else {
        list::print(context, "leases", Vec::new(), &table(&[], None), None)?;
        return Ok(ExitCode::SUCCESS);
    };
    let listed = control.list_leases(after, pages.newest, pages.limit())?;
    let (items, now) = (&listed.items, Some(listed.now));
    let next = listed.next.map(|next| next.to_string());
    list::print(context, "leases", rows(items, now), &table(items, now), next)?;
    Ok(ExitCode::SUCCESS)
}

/// What is held, as JSON has it.
fn rows(rows: &[LeaseRow], now: Option<Timestamp>) -> Vec<Value> {
    let one = |(row, now): (&LeaseRow, Timestamp)| {
        let mut object = Object::new();
        object.insert("resource", row.private.resource.as_deref().map_or(Value::Null, Value::from));
        object.insert("fence", integer(row.fence));
        object.insert("holders", Value::List(row.live(now).map(render::holder).collect()));
        object.into()
    };
    rows.iter().zip(now.into_iter().cycle()).map(one).collect()
}

/// A table of what is held, a line for each who holds it.
fn table(rows: &[LeaseRow], now: Option<Timestamp>) -> Table {
    let mut table = Table::new(&["RESOURCE", "HOLDER", "FENCE", "SHARED", "ENDS IN", "UNTIL"]);
    for (row, now) in rows.iter().zip(now.into_iter().cycle()) {
        let resource = row.private.resource.as_deref().map_or("erased".to_owned(), shown);
        for cells in cells(row, now) {
            table.row(std::iter::once(resource.as_str().into()).chain(cells).collect());
        }
    }
    table
}

fn cells(row: &LeaseRow, now: Timestamp) -> impl Iterator<Item = Vec<Cell>> {
    row.live(now).map(move |held| {
        vec![
            held.holder.to_string().into(),
            held.fence.to_string().into(),
            if held.shared { "yes" } else { "no" }.into(),
            age(held.until.since(now)).into(),
            held.until.to_string().into(),
        ]
    })
}
