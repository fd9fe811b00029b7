//! `receipts`: the evidence of terminal answers.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use onceseal::core::id::ReceiptId;
use onceseal::core::json::{Object, Value};

use super::actions::as_object;
use super::list::{self, Pages};
use crate::context::Context;
use crate::error::{CliError, REFUSED};
use crate::table::{Cell, Table, fields, state_style};
use crate::text::{literal, shown};

/// What to do with receipts.
#[derive(Debug, Subcommand)]
pub(crate) enum Receipts {
    /// List receipts
    List(List),
    /// Show one receipt; with --json, the whole document
    Show {
        /// The receipt
        #[arg(value_parser = receipt)]
        id: ReceiptId,
    },
}

/// Which receipts.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pages: Pages,
}

fn receipt(text: &str) -> Result<ReceiptId, String> {
    ReceiptId::parse(text).ok_or_else(|| "a receipt's id is rcp_ and 32 hex digits".to_owned())
}

pub(crate) fn run(context: &Context, receipts: &Receipts) -> Result<ExitCode, CliError> {
    match receipts {
        Receipts::List(list) => self::list(context, list),
        Receipts::Show { id } => show(context, *id),
    }
}

fn list(context: &Context, list: &List) -> Result<ExitCode, CliError> {
    let Pages { after, newest, .. } = &list.pages;
    let after = match after {
        Some(text) => Some(ReceiptId::parse(text).ok_or_else(list::cursor)?),
        None => None,
    };
    let limit = list.pages.limit();
    let mut table = Table::new(&["RECEIPT", "FINISHED", "RESULT", "CODE", "NAME", "EFFECT KEY"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let found = control.receipts(after, *newest, limit)?;
        next = found.last().filter(|_| found.len() == limit).map(|(id, _)| id.to_string());
        for (_, document) in found {
            let receipt = as_object(document);
            table.row(row(&receipt));
            items.push(receipt.into());
        }
    }
    list::print(context, "receipts", items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

fn member(receipt: &Object, name: &str) -> String {
    receipt.get(name).and_then(Value::as_text).map_or("-".to_owned(), shown)
}

fn row(receipt: &Object) -> Vec<Cell> {
    vec![
        member(receipt, "receipt").into(),
        member(receipt, "finished_at").into(),
        Cell::state(&member(receipt, "result")),
        member(receipt, "code").into(),
        member(receipt, "name").into(),
        member(receipt, "effect_key").into(),
    ]
}

fn show(context: &Context, id: ReceiptId) -> Result<ExitCode, CliError> {
    let missing = || {
        CliError::new("receipt_unknown", "there is no such receipt", REFUSED)
            .next("onceseal receipts list --newest")
    };
    let Some(control) = context.read()? else { return Err(missing()) };
    let Some(document) = control.receipt(id)? else { return Err(missing()) };
    if context.out.is_json() {
        context.out.line(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let receipt = as_object(document);
    let order = [
        "result",
        "code",
        "error_code",
        "error",
        "answered",
        "contradicts",
        "name",
        "arguments",
        "principal",
        "environment",
        "resource",
        "effect_key",
        "attempt",
        "decision",
        "reason",
        "policy",
        "approval",
        "action",
        "action_hash",
        "intent_hash",
        "value",
        "first_receipt",
        "proposed_at",
        "started_at",
        "finished_at",
    ];
    let mut rows = Vec::new();
    for name in order {
        match receipt.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Text(text)) if name == "result" => {
                let style = state_style(text);
                rows.push((name, format!("{style}{text}{style:#}")));
            }
            Some(value) => rows.push((name, literal(value))),
        }
    }
    let events = receipt.get("events").and_then(Value::as_list).map_or(0, <[Value]>::len);
    rows.push(("events", format!("{events}, printed by --json")));
    context.out.text(&format!("{id}\n{}", fields(&rows)))?;
    Ok(ExitCode::SUCCESS)
}
