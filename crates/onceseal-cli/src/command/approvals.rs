//! `approvals`: what people are asked, in full, and their answers.

mod request;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use onceseal::core::approval::{ApprovalRow, Said, Status};
use onceseal::core::code::Code;
use onceseal::core::id::ApprovalId;
use onceseal::core::journal::Row;
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::runs::BIND_DELIVERY;
use onceseal::views::{Cursor, Filter};
use onceseal::{Control, Error};

use super::exec::approval;
use super::list::{self, Pages};
use super::refused::{integer, of};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::standing;
use crate::table::{Cell, Table};
use crate::text::{age, shown};
use request::{Request, asked_in_list, rendered};

/// What to do with requests for approval.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List requests
    List(List),
    /// Show one request, with the whole action it is about
    Show(Show),
    Approve(Approve),
    Deny(Deny),
    /// Take back a request or an approval that was not used
    Revoke {
        /// The request
        #[arg(value_parser = approval)]
        id: ApprovalId,
    },
}

/// Which requests.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.iter().map(|status| status.as_str())))]
    state: Option<String>,
    /// Only those made at least so long ago
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    older_than: Option<Span>,
    #[command(flatten)]
    pages: Pages,
}

/// Requests that wait.
#[derive(Debug, Args)]
pub(crate) struct Pending {
    #[command(flatten)]
    pages: Pages,
}

/// One request.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The request
    #[arg(value_parser = approval)]
    id: ApprovalId,
    /// Show redacted values, although this is no terminal
    #[arg(long)]
    reveal: bool,
}

/// Approve exactly one action, once
///
/// Shows the whole action and approves exactly what it showed: the approval is void for anything else. At a terminal
/// it asks first. Elsewhere typing the command is the answer; --hash makes sure that it is given to what was read.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    show: Show,
    /// Approve only if the request's binding begins so; at a terminal nothing is asked then
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    hash: Option<String>,
}

/// Deny one action
///
/// One no ends a request that waits. After the grant, it takes the approval back.
#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// The request
    #[arg(value_parser = approval)]
    id: ApprovalId,
    /// Why, for whoever asked: it is recorded, and shown with the request
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Hex digits with or without `sha256:`, enough that nobody meets them by chance.
fn prefix(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let is_hex = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_hex && (8..=64).contains(&digits.len()) {
        return Ok(format!("sha256:{digits}"));
    }
    Err("write 8 to 64 hex digits of the request's binding, as `approvals show` prints it".to_owned())
}

pub(crate) fn run(context: &Context, approvals: Approvals) -> Result<ExitCode, CliError> {
    match approvals {
        Approvals::List(list) => {
            let List { state, older_than, pages } = list;
            self::list(context, state.as_deref(), older_than, &pages)
        }
        Approvals::Show(show) => self::show(context, &show),
        Approvals::Approve(approve) => self::approve(context, &approve),
        Approvals::Deny(deny) => self::deny(context, &deny),
        Approvals::Revoke { id } => revoke(context, id),
    }
}

pub(crate) fn pending(context: &Context, pending: &Pending) -> Result<ExitCode, CliError> {
    list(context, Some(Status::Pending.as_str()), None, &pending.pages)
}

fn list(
    context: &Context,
    state: Option<&str>,
    older_than: Option<Span>,
    pages: &Pages,
) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["APPROVAL", "AGE", "STATUS", "YES", "EXPIRES", "ACTION", "EFFECT KEY"]);
    let mut items = Vec::new();
    let mut next = None;
    if let Some(control) = context.read()? {
        let now = control.store().now();
        let wanted = state.and_then(Status::parse);
        // What time has ended stands in the index as it was until it is met.
        let indexed = state.filter(|_| wanted != Some(Status::Expired));
        let filter = pages.filter(&control, StreamKind::Approval, indexed, older_than)?;
        let found = listed(&control, filter, pages.limit(), |row| {
            wanted.is_none_or(|wanted| standing::status(row, now) == wanted)
        })?;
        next = found.next.map(|cursor| cursor.to_string());
        for (id, row) in found.requests {
            let status = standing::status(&row, now);
            let asked = asked_in_list(&control, &row)?;
            items.push(rendered(id, &row, asked.as_ref(), now).into());
            let expires = match status {
                Status::Pending | Status::Granted => format!("in {}", age(row.expires_at.since(now))),
                _ => "-".to_owned(),
            };
            let bound = &row.private.bound;
            let text = |text: Option<&String>| Cell::from(text.map_or("-".to_owned(), |text| shown(text)));
            table.row(vec![
                id.to_string().into(),
                age(now.since(row.created_at)).into(),
                Cell::state(status.as_str()),
                format!("{}/{}", row.yeses(), row.quorum).into(),
                expires.into(),
                match &asked {
                    Some(asked) => Cell::from(format!("{BIND_DELIVERY} {}", asked.word())),
                    None => text(bound.name.as_ref()),
                },
                text(bound.effect_key.as_ref()),
            ]);
        }
    }
    let what = if state == Some("pending") { "pending approvals" } else { "approvals" };
    list::print(context, what, items, &table, next)?;
    Ok(ExitCode::SUCCESS)
}

/// Requests, and where the next ones begin.
struct Found {
    requests: Vec<(ApprovalId, ApprovalRow)>,
    next: Option<Cursor>,
}

/// As many requests as are wanted, if there are.
fn listed(
    control: &Control,
    mut filter: Filter,
    limit: usize,
    is_wanted: impl Fn(&ApprovalRow) -> bool,
) -> Result<Found, CliError> {
    let mut requests = Vec::new();
    loop {
        let page = control.list(StreamKind::Approval, &filter, limit - requests.len())?;
        for (stream, row) in page.items {
            let Row::Approval(row) = row else { return Err(list::corrupt()) };
            if is_wanted(&row) {
                requests.push((ApprovalId(stream.name), row));
            }
        }
        if page.next.is_none() || requests.len() == limit {
            return Ok(Found { requests, next: page.next });
        }
        filter.after = page.next;
    }
}

fn show(context: &Context, show: &Show) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else { return Err(CliError::missing(Code::ApprovalUnknown)) };
    let request = Request::find(context, &control, show)?;
    if context.out.is_json() {
        context.out.document(request.object(&control))?;
    } else {
        context.out.text(&request.text(&control))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn approve(context: &Context, approve: &Approve) -> Result<ExitCode, CliError> {
    let Some(control) = context.answer()? else { return Err(CliError::missing(Code::ApprovalUnknown)) };
    let request = Request::find(context, &control, &approve.show)?;
    let binding = request.binding()?;
    if !context.out.is_json() {
        context.out.text(&request.text(&control))?;
    }
    match &approve.hash {
        Some(prefix) if !binding.to_string().starts_with(prefix) => {
            return Err(CliError::new(Code::ShownDiffers.as_str(), Code::ShownDiffers.sentence(), REFUSED)
                .because(format!("its binding is {binding}"))
                .about("approval", request.id.to_string())
                .next(format!("onceseal approvals show {}", request.id)));
        }
        None if context.out.can_ask() && !asked(context)? => {
            return Err(CliError::new(
                "not_approved",
                "nothing was approved, and the request stays",
                REFUSED,
            )
            .about("approval", request.id.to_string())
            .next(format!("onceseal deny {}", request.id)));
        }
        Some(_) | None => {}
    }
    let reply = wait(control.answer(request.id, Control::account(), Said::Yes, binding))?;
    answered(context, &control, request, reply)
}

/// Asks at the terminal; only `y` and `yes` are a yes.
fn asked(context: &Context) -> Result<bool, CliError> {
    context.out.text("\nApprove exactly this, once? [y/N] ")?;
    let mut line = String::new();
    io::stdout().flush().and_then(|()| io::stdin().read_line(&mut line)).map_err(|error| {
        CliError::new("input_failed", format!("the answer cannot be read: {}", error.kind()), 2)
    })?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

pub(crate) fn deny(context: &Context, deny: &Deny) -> Result<ExitCode, CliError> {
    let Some(control) = context.answer()? else { return Err(CliError::missing(Code::ApprovalUnknown)) };
    let request = Request::find(context, &control, &Show { id: deny.id, reveal: false })?;
    let (id, person, binding) = (request.id, Control::account(), request.binding()?);
    let reply = match &deny.reason {
        Some(reason) => wait(control.deny(id, person, binding, reason))?,
        None => wait(control.answer(id, person, Said::No, binding))?,
    };
    answered(context, &control, request, reply)
}

fn revoke(context: &Context, id: ApprovalId) -> Result<ExitCode, CliError> {
    let Some(control) = context.answer()? else { return Err(CliError::missing(Code::ApprovalUnknown)) };
    let request = Request::find(context, &control, &Show { id, reveal: false })?;
    let reply = wait(control.revoke(id, Control::account()))?;
    answered(context, &control, request, reply)
}

/// Prints where a request stands after an answer. An answer that was given
/// before is a success that changes nothing, and says so.
fn answered(
    context: &Context,
    control: &Control,
    request: Request,
    reply: Result<Reply, Error>,
) -> Result<ExitCode, CliError> {
    let (status, yes, quorum, repeated) = match reply {
        Ok(Reply::Approval { status, yes, quorum, repeated }) => (status, yes, quorum, repeated),
        Ok(_) => return Err(Error::Unexpected.into()),
        Err(error) => return Err(of(control, error)),
    };
    if context.out.is_json() {
        let row = control.approval(request.id)?.ok_or_else(list::corrupt)?;
        let reasons = control.reasons(request.id)?;
        let mut object = Request { row, reasons, ..request }.object(control);
        object.insert("yes", integer(u64::from(yes)));
        object.insert("repeated", repeated);
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let again = if repeated { ", as before" } else { "" };
    let (id, expires_at) = (request.id, request.row.expires_at);
    context.out.text(&match status {
        Status::Granted => format!("\n{id} granted{again}: usable once, until {expires_at}\n"),
        Status::Pending => format!("\n{id} has {yes} of {quorum} yes{again}\n"),
        status => format!("{id} {status}{again}\n"),
    })?;
    if status == Status::Granted {
        context.out.note("next: whoever asked repeats the command");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onceseal::views::state_numbers;

    #[test]
    fn a_prefix_is_long_enough_to_mean_something() {
        assert_eq!(prefix("0123abcd"), Ok("sha256:0123abcd".to_owned()));
        assert_eq!(prefix("sha256:0123abcd"), Ok("sha256:0123abcd".to_owned()));
        for wrong in ["", "0123abc", "0123ABCD", "sha256:", "0123abcz"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_status_that_is_offered_is_known_to_the_index() {
        let known: Vec<_> = state_numbers(StreamKind::Approval).into_iter().map(|(_, name)| name).collect();
        assert_eq!(known, Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>());
    }
}
