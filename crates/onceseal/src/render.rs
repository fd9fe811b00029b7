//! Things as JSON: the stable form that programs read.
//!
//! Members without a value are null, times RFC 3339, hashes and ids in their
//! printed form. Redacted arguments print as `"[redacted]"`.

mod tasks;

use std::sync::Arc;

use onceseal_core::action::{ActionRow, ActionState};
use onceseal_core::approval::{ApprovalRow, Revoke};
use onceseal_core::code::Code;
use onceseal_core::effect::{EffectRow, RemoteReceipt};
use onceseal_core::hash::{Hash, write_hex};
use onceseal_core::id::{ActionId, ApprovalId, RunId};
use onceseal_core::journal::{chain_hash, open_text, sealed_text};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::lease::Holder;
use onceseal_core::policy::{ActivePolicy, ArgumentPath, Policy};
use onceseal_core::route::{RouteRow, RouteState};
use onceseal_core::run::RunRow;
use onceseal_core::stream::StreamId;
use onceseal_store::StoreError;
use onceseal_store::read::StoredEvent;

pub use tasks::{blocker, delivery, handoff, plan, run_event, task};
pub(crate) use tasks::{handoff_moment, lease_moment, task_moment};

use crate::control::Control;
use crate::error::Error;
use crate::views::action_state;

/// What stands in place of a redacted value.
pub const REDACTED: &str = "[redacted]";

/// What stands in place of the values of an action that no entry lists.
const UNLISTED: &str = "[unlisted]";

/// An object of these members.
pub(crate) fn object(members: Vec<(&str, Value)>) -> Value {
    let mut object = Object::new();
    for (name, value) in members {
        object.insert(name, value);
    }
    Value::Object(object)
}

pub(crate) fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

pub(crate) fn optional(value: Option<impl ToString>) -> Value {
    value.map_or(Value::Null, text)
}

pub(crate) fn number(n: u64) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(json::SAFE_INTEGER))
}

/// An effect.
#[must_use]
pub fn effect(row: &EffectRow) -> Value {
    object(vec![
        ("effect_key", optional(row.private.key.as_ref())),
        ("state", text(row.state)),
        ("attempt", number(row.fence)),
        ("action", text(row.holder)),
        ("answered_by", optional(row.answered_by)),
        ("lease_until", optional(row.lease_until.filter(|_| row.held()))),
        ("code", optional(row.code.as_ref())),
        ("error", optional(row.private.error.as_ref())),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// What a remote calls what it did.
#[must_use]
pub fn remote(remote: &RemoteReceipt) -> Value {
    object(vec![
        ("receipt_id", optional(remote.receipt_id.as_ref())),
        ("request_id", optional(remote.request_id.as_ref())),
        ("revision", optional(remote.revision.as_ref())),
        ("observed_at", optional(remote.observed_at)),
    ])
}

/// An action without its arguments.
#[must_use]
pub fn action(id: ActionId, row: &ActionRow) -> Value {
    let proposal = row.private.proposal.as_ref();
    let receipt = row.receipt();
    let code = match &row.state {
        ActionState::Ended { code, .. } => *code,
        ActionState::Parked { code } => Some(*code),
        ActionState::Queued { code, .. } => *code,
        _ => None,
    };
    object(vec![
        ("action", text(id)),
        ("name", optional(proposal.map(|p| &p.name))),
        ("state", text(action_state(&row.state))),
        ("code", optional(code)),
        ("decision", text(row.decided.decision)),
        ("reason", text(&row.decided.reason)),
        ("environment", optional(proposal.map(|p| &p.environment))),
        ("agent", optional(proposal.map(|p| &p.agent))),
        ("user", optional(proposal.and_then(|p| p.user.as_ref()))),
        ("resource", optional(proposal.and_then(|p| p.resource.as_ref()))),
        ("effect_key", optional(proposal.and_then(|p| p.effect_key.as_ref()))),
        ("action_hash", optional(proposal.map(|p| p.action_hash))),
        ("approval", optional(row.approval)),
        ("attempt", row.held.map_or(Value::Null, |(_, fence)| number(fence))),
        ("receipt", optional(receipt)),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// An action that is an operation: what [`action`] shows and, in `operation`,
/// what it has besides. `None` if it is none.
#[must_use]
pub fn operation(id: ActionId, row: &ActionRow) -> Option<Value> {
    let (Value::Object(mut members), Some(operation)) = (action(id, row), &row.operation) else {
        return None;
    };
    let intent = row.private.intent.as_deref();
    let due = match row.state {
        ActionState::Queued { due, .. } => Some(due),
        _ => None,
    };
    let besides = object(vec![
        ("status_ref", optional(intent.map(|intent| &intent.status_ref))),
        ("idempotency_key", optional(intent.map(|intent| &intent.key))),
        ("subject", optional(intent.map(|intent| &intent.subject))),
        ("request", optional(intent.map(|intent| intent.request))),
        ("contract", text(operation.contract)),
        ("due", optional(due)),
        ("until", text(operation.until)),
    ]);
    members.insert("operation", besides);
    Some(members.into())
}

/// A route.
#[must_use]
pub fn route(row: &RouteRow) -> Value {
    let (state, failures, open) = match &row.state {
        RouteState::Closed { failures } => ("closed", *failures, None),
        RouteState::Open { since, times, until, .. } => ("open", 0, Some((*since, *times, *until))),
    };
    object(vec![
        ("destination", optional(row.private.destination.as_ref())),
        ("state", text(state)),
        ("failures", number(u64::from(failures))),
        ("since", optional(open.map(|(since, ..)| since))),
        ("times", number(open.map_or(0, |(_, times, _)| u64::from(times)))),
        ("until", optional(open.map(|(.., until)| until))),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// An approval, without the action it is about.
#[must_use]
pub fn approval(id: ApprovalId, row: &ApprovalRow) -> Value {
    let responses = row.private.responses.iter().map(|response| {
        object(vec![
            ("person", optional(response.person.as_ref())),
            ("proof", text(response.proof)),
            ("said", text(response.said)),
            ("at", text(response.at)),
        ])
    });
    let bound = &row.private.bound;
    let approvers = bound.approvers.as_ref().map(|groups| Value::List(groups.iter().map(text).collect()));
    object(vec![
        ("approval", text(id)),
        ("status", text(row.status)),
        ("action", text(row.action)),
        ("action_name", optional(bound.name.as_ref())),
        ("action_hash", optional(bound.action_hash)),
        ("effect_key", optional(bound.effect_key.as_ref())),
        ("binding", optional(bound.binding)),
        ("approvers", approvers.unwrap_or(Value::Null)),
        ("proof", Value::List(row.proofs.iter().map(text).collect())),
        ("quorum", number(u64::from(row.quorum))),
        ("responses", Value::List(responses.collect())),
        ("revoked", optional(row.revoked.map(Revoke::as_str))),
        ("consumed_by", optional(row.consumed_by)),
        ("created_at", text(row.created_at)),
        ("expires_at", text(row.expires_at)),
    ])
}

/// A run.
#[must_use]
pub fn run(id: RunId, row: &RunRow) -> Value {
    object(vec![
        ("run", text(id)),
        ("kind", text(&row.kind)),
        ("key", optional(row.private.key.as_ref())),
        ("state", text(&row.state)),
        ("terminal", Value::Bool(row.terminal)),
        ("code", optional(row.code.as_ref())),
        ("provisional", Value::Bool(row.provisional)),
        ("root", text(row.root)),
        ("definition", text(row.definition)),
        ("previous", optional(row.previous)),
        ("ordinal", number(row.ordinal)),
        ("agent", optional(row.private.agent.as_ref())),
        ("user", optional(row.private.user.as_ref())),
        ("created_at", text(row.created_at)),
        ("updated_at", text(row.updated_at)),
    ])
}

/// Whoever holds a resource.
#[must_use]
pub fn holder(holder: &Holder) -> Value {
    object(vec![
        ("holder", text(holder.holder)),
        ("fence", number(holder.fence)),
        ("shared", Value::Bool(holder.shared)),
        ("until", text(holder.until)),
    ])
}

/// An event: its open part as it is hashed, its sealed part with the salt that
/// opens it. `prior` is the hash of the stream's previous event.
///
/// # Errors
/// `corrupt` if it does not decode.
pub fn event(event: &StoredEvent, prior: Hash) -> Result<Value, StoreError> {
    let corrupt = || StoreError::new(Code::Corrupt);
    let body = event.event.as_ref().ok_or_else(corrupt)?;
    let open = open_text(&event.stamp, body, prior, event.seal);
    if chain_hash(&open) != event.hash {
        return Err(corrupt());
    }
    let parse = |text: &str| json::read(text.as_bytes(), &Limits::DATA).map_err(|_| corrupt());
    let sealed = match (event.salt, sealed_text(body)) {
        (Some(_), Some(text)) => parse(&text)?,
        _ => Value::Null,
    };
    Ok(object(vec![
        ("position", number(event.position)),
        ("hash", text(event.hash)),
        ("open", parse(&open)?),
        ("sealed", sealed),
        ("salt", event.salt.map_or(Value::Null, |salt| Value::Text(hex(&salt)))),
    ]))
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    write_hex(bytes, &mut out);
    out
}

/// The arguments of an action as its policy lets them be shown. What no entry
/// lists is hidden whole: nobody has said which of it is secret, as where a name
/// was mistyped.
#[must_use]
pub fn shown(policy: &Policy, name: &str, arguments: &Object) -> Object {
    match policy.entry(name) {
        Some(entry) => redacted(arguments, &entry.redact),
        None => {
            let mut hidden = Object::new();
            for (name, _) in arguments.iter() {
                hidden.insert(name, UNLISTED);
            }
            hidden
        }
    }
}

/// Arguments with every value at these paths hidden.
#[must_use]
pub fn redacted(arguments: &Object, paths: &[ArgumentPath]) -> Object {
    let mut shown = arguments.clone();
    for path in paths {
        hide(&mut shown, path.names());
    }
    shown
}

fn hide(object: &mut Object, names: &[String]) {
    let [first, rest @ ..] = names else { return };
    match object.get_mut(first) {
        Some(Value::Object(inner)) if !rest.is_empty() => hide(inner, rest),
        // A path that ends in the middle of a value hides all of it.
        Some(value) => *value = REDACTED.into(),
        None => {}
    }
}

impl Control {
    /// The arguments of an action for showing: redacted by the policy it was
    /// decided under, unless they are to be revealed.
    ///
    /// # Errors
    /// `erased`, `corrupt`, or the store cannot be read.
    pub fn shown_arguments(&self, id: ActionId, reveal: bool) -> Result<Object, Error> {
        let arguments = self.arguments(id)?;
        if reveal {
            return Ok(arguments);
        }
        let (policy, name) = self.decided_under(id)?;
        Ok(shown(&policy.policy, &name, &arguments))
    }

    /// The policy an action was last decided under, and the action's name.
    pub(crate) fn decided_under(&self, id: ActionId) -> Result<(Arc<ActivePolicy>, String), Error> {
        let corrupt = || StoreError::new(Code::Corrupt);
        let row = self.action_row(id)?.ok_or_else(corrupt)?;
        let proposal = row.private.proposal.ok_or_else(|| StoreError::new(Code::Erased))?;
        let policy = match self.policy() {
            Some(policy) if policy.hash == row.decided.policy => policy,
            _ => self.store().policy(row.decided.policy)?.ok_or_else(corrupt)?,
        };
        Ok((policy, proposal.name))
    }

    /// The hash that stands before an event of a stream.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn prior(&self, stream: &StreamId, sequence: u64) -> Result<Hash, Error> {
        if sequence <= 1 {
            return Ok(self.store().tenant().genesis(stream));
        }
        let before = self.events(stream, sequence - 1, 1)?.pop();
        before.map(|event| event.hash).ok_or_else(|| StoreError::new(Code::Corrupt).into())
    }
}
