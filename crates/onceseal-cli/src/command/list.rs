//! What lists have in common: pages, filters, and how they are printed.

use clap::Args;
use onceseal::core::json::{Object, Value};
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::views::{Cursor, Filter, state_numbers};
use onceseal::{Control, Error};

use crate::context::Context;
use crate::error::CliError;
use crate::table::Table;

/// Which page of a list.
#[derive(Debug, Args)]
pub(crate) struct Pages {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// What follows this place: `next` of the page before
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Newest first instead of oldest first
    #[arg(long)]
    pub(crate) newest: bool,
}

impl Pages {
    pub(crate) fn limit(&self) -> usize {
        usize::from(self.limit)
    }

    /// The filter of a list of streams.
    pub(crate) fn filter(
        &self,
        control: &Control,
        kind: StreamKind,
        state: Option<&str>,
        older_than: Option<Span>,
    ) -> Result<Filter, CliError> {
        let after = match &self.after {
            Some(text) => Some(Cursor::parse(text).ok_or_else(cursor)?),
            None => None,
        };
        let number = |name: &str| state_numbers(kind).into_iter().find(|(_, known)| *known == name);
        Ok(Filter {
            state: state.and_then(number).map(|(number, _)| number),
            name: None,
            until: older_than.map(|age| control.store().now() - age),
            after,
            newest_first: self.newest,
        })
    }
}

/// A cursor that no list printed.
pub(crate) fn cursor() -> CliError {
    CliError::usage("--after takes the cursor that the page before printed")
}

/// Reads `5m` and the like.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    Span::parse(text).ok_or_else(|| "write a number and ms, s, m, h or d, as in 30s or 15m".to_owned())
}

/// Prints a page: a table for people, `{items, next, schema}` for programs.
pub(crate) fn print(
    context: &Context,
    what: &str,
    items: Vec<Value>,
    table: &Table,
    next: Option<String>,
) -> Result<(), CliError> {
    if context.out.is_json() {
        let mut page = Object::new();
        page.insert("items", Value::List(items));
        page.insert("next", next.map_or(Value::Null, Value::Text));
        return context.out.document(page);
    }
    if items.is_empty() {
        context.out.note(&format!("no {what}"));
        return Ok(());
    }
    context.out.text(&table.render())?;
    if let Some(next) = next {
        context.out.note(&format!("more: --after {next}"));
    }
    Ok(())
}

/// A record that does not decode, met while a list is printed.
pub(crate) fn corrupt() -> CliError {
    Error::from(onceseal::store::StoreError::new(onceseal::core::code::Code::Corrupt)).into()
}
