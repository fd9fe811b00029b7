//! One operation: where it stands, what it returned, what was said of it.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::core::action::{ActionRow, ActionState, Answer};
use onceseal::core::code::Code;
use onceseal::core::effect::{EffectRow, EffectState};
use onceseal::core::id::ActionId;
use onceseal::core::journal::Body;
use onceseal::core::json::{Object, Value};
use onceseal::core::stream::StreamId;
use onceseal::core::time::{Span, Timestamp};
use onceseal::views::action_state;
use onceseal::{Control, render};

use super::{find, is_committed, last_word, rendered, result, unknown};
use crate::command::list;
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::table::{fields, state_style};
use crate::text::{age, literal, shell};

/// Which operation.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its reference, `status_…`, or its action
    #[arg(value_name = "REFERENCE|ACTION", required_unless_present = "key")]
    which: Option<String>,
    /// Its tool, to find it by its key
    #[arg(long, value_name = "TOOL", requires = "key", conflicts_with = "which")]
    tool: Option<String>,
    /// The key that it was dispatched with
    #[arg(long = "idempotency-key", value_name = "KEY", requires = "tool", conflicts_with = "which")]
    key: Option<String>,
}

/// What is shown besides the row.
struct Seen {
    arguments: Object,
    value: Option<Value>,
    said: Option<Said>,
}

/// A person's word on it.
struct Said {
    what: &'static str,
    person: Option<String>,
    reason: Option<String>,
    at: Timestamp,
}

impl Said {
    fn object(&self) -> Object {
        let mut object = Object::new();
        object.insert("said", self.what);
        for (name, value) in [("person", &self.person), ("reason", &self.reason)] {
            object.insert(name, value.clone().map_or(Value::Null, Value::Text));
        }
        object.insert("at", self.at.to_string());
        object
    }

    fn text(&self) -> String {
        let quoted = |text: &Option<String>| {
            text.as_ref().map_or("erased".to_owned(), |text| literal(&text.as_str().into()))
        };
        format!("{} by {} at {}: {}", self.what, quoted(&self.person), self.at, quoted(&self.reason))
    }
}

/// What a person last said of it.
fn last_said(control: &Control, id: ActionId) -> Result<Option<Said>, CliError> {
    let (mut from, mut last) = (1, None);
    loop {
        let page = control.events(&StreamId::action(id), from, 256)?;
        let Some(newest) = page.last() else { return Ok(last) };
        from = newest.stamp.sequence + 1;
        for stored in page {
            let event = stored.event.ok_or_else(list::corrupt)?;
            let (what, said) = match event.body {
                Body::ActionRetried(_, said) => ("retry", said),
                Body::ActionCancelled(_, said) => ("cancel", said),
                _ => continue,
            };
            last = Some(Said { what, person: said.person, reason: said.reason, at: stored.stamp.at });
        }
    }
}

/// The operation that is meant.
fn meant(control: &Control, which: &Which) -> Result<ActionId, CliError> {
    let (tool, key) = match (&which.which, &which.tool, &which.key) {
        (Some(which), ..) => return find(control, which),
        (None, Some(tool), Some(key)) => (tool, key),
        _ => return Err(unknown()),
    };
    match control.operations_of_key(tool, key)?[..] {
        [] => Err(unknown()),
        [one] => Ok(one),
        ref several => {
            let error = CliError::usage("several subjects have dispatched with this key; name one of them");
            Err(several.iter().fold(error, |error, id| error.next(format!("onceseal operations show {id}"))))
        }
    }
}

/// The operation's row.
fn row(control: &Control, id: ActionId) -> Result<ActionRow, CliError> {
    control.action_row(id)?.filter(|row| row.operation.is_some()).ok_or_else(unknown)
}

pub(super) fn wait_for(
    context: &Context,
    which: &Which,
    timeout: Option<Span>,
) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else { return Err(unknown()) };
    let id = meant(&control, which)?;
    row(&control, id)?;
    let in_time = wait(control.wait_for(id, timeout.map_or(Duration::MAX, Span::to_std)))??;
    let row = row(&control, id)?;
    let effect = last_word(&control, &row)?;
    let value = result(&control, &row, effect.as_ref())?;
    let committed = is_committed(&row);
    if context.out.is_json() {
        let mut object = rendered(id, &row, effect.as_ref())?;
        object.insert("value", value.unwrap_or(Value::Null));
        context.out.document(object)?;
    } else {
        let reference = row.private.intent.as_deref().map_or("erased", |intent| &intent.status_ref);
        let value = value.map(|value| literal(&value) + "\n").unwrap_or_default();
        context.out.text(&format!("{reference} {}\n{value}", action_state(&row.state)))?;
        if !in_time {
            context.out.note("it was waited for in vain, and goes on; without a worker nothing happens");
        } else if !committed {
            context.out.note(&format!("next: onceseal operations show {reference}"));
        }
    }
    Ok(ExitCode::from(if committed { 0 } else { REFUSED }))
}

pub(super) fn run(context: &Context, which: &Which) -> Result<ExitCode, CliError> {
    let Some(control) = context.read()? else { return Err(unknown()) };
    let id = meant(&control, which)?;
    let row = row(&control, id)?;
    let effect = last_word(&control, &row)?;
    let seen = Seen {
        arguments: control.shown_arguments(id, false)?,
        value: result(&control, &row, effect.as_ref())?,
        said: last_said(&control, id)?,
    };
    if context.out.is_json() {
        let mut object = rendered(id, &row, effect.as_ref())?;
        object.insert("arguments", seen.arguments);
        object.insert("value", seen.value.unwrap_or(Value::Null));
        let remote = effect.as_ref().and_then(|effect| effect.private.remote.as_ref());
        object.insert("remote", remote.map_or(Value::Null, render::remote));
        object.insert("said", seen.said.map_or(Value::Null, |said| said.object().into()));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    context.out.text(&text(&control, id, &row, effect.as_ref(), &seen))?;
    if let Some(next) = next(&row, effect.as_ref()) {
        context.out.note(&format!("next: {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be done about it, if it is for a person to do.
fn next(row: &ActionRow, effect: Option<&EffectRow>) -> Option<String> {
    let key = effect.and_then(|effect| effect.private.key.as_deref());
    match (&row.state, effect?.state) {
        (ActionState::Queued { .. }, EffectState::Ambiguous) => {
            Some("nothing: when it is due its contract has it asked about or made again".to_owned())
        }
        (_, EffectState::Ambiguous) => {
            Some(format!("onceseal resolve {} --committed|--failed --reason '…'", shell(key?)))
        }
        (ActionState::Ended { result: Answer::Failed, .. }, _) => Some(
            "nothing more comes of it; to want it anew, dispatch it with another idempotency key".to_owned(),
        ),
        _ => None,
    }
}

fn text(control: &Control, id: ActionId, row: &ActionRow, effect: Option<&EffectRow>, seen: &Seen) -> String {
    let Seen { arguments, value, said } = seen;
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
            let unknown = "ambiguous: it is not known what became of the last attempt";
            rows.extend(code.map(|code| match code {
                Code::Ambiguous => ("why", unknown.to_owned()),
                code => ("why", format!("{code}: {}", code.sentence())),
            }));
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
    if let Some(value) = value {
        rows.push(("value", literal(value)));
    }
    if let Some(said) = said {
        rows.push(("said", said.text()));
    }
    if let Some(remote) = effect.and_then(|effect| effect.private.remote.as_ref()) {
        let named = [&remote.receipt_id, &remote.request_id, &remote.revision].into_iter().flatten();
        let named: Vec<String> = named.map(|name| literal(&name.as_str().into())).collect();
        rows.push(("remote", named.join(" ")));
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
