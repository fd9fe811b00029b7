//! Things as JSON: the stable form that programs read.
//!
//! Members without a value are null, times RFC 3339, hashes and ids in their
//! printed form. Redacted arguments print as `"[redacted]"`.

use onceseal_core::action::{ActionRow, ActionState};
use onceseal_core::approval::{ApprovalRow, Revoke, evolve};
use onceseal_core::code::Code;
use onceseal_core::effect::EffectRow;
use onceseal_core::hash::{Hash, write_hex};
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::journal::{Body, chain_hash, open_text, sealed_text};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::policy::ArgumentPath;
use onceseal_core::stream::StreamId;
use onceseal_store::StoreError;
use onceseal_store::read::StoredEvent;

use crate::control::Control;
use crate::error::Error;
use crate::views::action_state;

/// What stands in place of a redacted value.
pub const REDACTED: &str = "[redacted]";

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

/// An action without its arguments.
#[must_use]
pub fn action(id: ActionId, row: &ActionRow) -> Value {
    let proposal = row.private.proposal.as_ref();
    let receipt = row.receipt();
    let code = match &row.state {
        ActionState::Ended { code, .. } => *code,
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
        let Some(row) = self.action_row(id)? else { return Ok(arguments) };
        let Some(proposal) = &row.private.proposal else { return Ok(arguments) };
        // Most were decided under the policy that is at hand.
        let policy = match self.policy().filter(|policy| policy.hash == row.decided.policy) {
            Some(policy) => policy,
            None => self.store().policy(row.decided.policy)?.ok_or_else(|| StoreError::new(Code::Corrupt))?,
        };
        let paths = policy.policy.entry(&proposal.name).map(|entry| entry.redact.clone()).unwrap_or_default();
        Ok(redacted(&arguments, &paths))
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

    /// A receipt as a document: schema `onceseal.receipt/v1`. Redacted
    /// arguments are marked, and the hashes over them withheld.
    ///
    /// # Errors
    /// `corrupt`, or the store cannot be read. `None`: there is no such receipt.
    pub fn receipt(&self, id: ReceiptId) -> Result<Option<Value>, Error> {
        let Some((stream, sequence)) = self.receipt_place(id)? else { return Ok(None) };
        let corrupt = || Error::from(StoreError::new(Code::Corrupt));
        let carrier = self.events(&stream, sequence, 1)?.pop().ok_or_else(corrupt)?;
        let body = carrier.event.clone().ok_or_else(corrupt)?;
        let action_id = self.receipt_action(id)?.ok_or_else(corrupt)?;
        let row = self.action_row(action_id)?.ok_or_else(corrupt)?;
        let proposal = row.private.proposal.clone();
        let (result, code, first) = match &body.body {
            Body::ActionEnded(data, _) => (data.result.as_str(), data.code, None),
            Body::ActionAnswered(data, _) => {
                let first = match row.state {
                    ActionState::Answered { first, .. } => Some(first),
                    _ => None,
                };
                (data.result.as_str(), None, first)
            }
            Body::EffectLate(data, _) => (data.outcome.as_str(), Some(Code::Fenced), row.receipt()),
            _ => return Err(corrupt()),
        };
        let fence = match &body.body {
            Body::EffectLate(data, _) => Some(data.fence),
            _ => row.held.map(|(_, fence)| fence),
        };
        let arguments = self.arguments(action_id).ok();
        let shown = arguments.is_some().then(|| self.shown_arguments(action_id, false)).transpose()?;
        // A receipt that withholds an argument withholds the hashes over it.
        let whole = shown.is_some() && shown == arguments;
        let past = carrier.position;
        let report = self.report(&row, fence, past)?;
        let started = self.events(&StreamId::action(action_id), 1, 1)?.pop().map(|event| event.stamp.at);
        let approval = match row.approval {
            Some(id) => self.approval_at(id, past)?.map_or(Value::Null, |row| approval(id, &row)),
            None => Value::Null,
        };
        let hash = |hash: Option<Hash>| if whole { optional(hash) } else { Value::Null };
        let principal = object(vec![
            ("agent", optional(proposal.as_ref().map(|p| &p.agent))),
            ("user", optional(proposal.as_ref().and_then(|p| p.user.as_ref()))),
        ]);
        Ok(Some(object(vec![
            ("schema", text("onceseal.receipt/v1")),
            ("receipt", text(id)),
            ("action", text(action_id)),
            ("name", optional(proposal.as_ref().map(|p| &p.name))),
            ("arguments", shown.map_or(Value::Null, Value::Object)),
            ("principal", principal),
            ("resource", optional(proposal.as_ref().and_then(|p| p.resource.as_ref()))),
            ("environment", optional(proposal.as_ref().map(|p| &p.environment))),
            ("tenant", text(&self.store().tenant().name)),
            ("action_hash", hash(proposal.as_ref().map(|p| p.action_hash))),
            ("intent_hash", hash(proposal.as_ref().map(|p| p.intent_hash))),
            ("decision", text(row.decided.decision)),
            ("reason", text(&row.decided.reason)),
            ("policy", text(row.decided.policy)),
            ("approval", approval),
            ("effect_key", optional(proposal.as_ref().and_then(|p| p.effect_key.as_ref()))),
            ("attempt", fence.map_or(Value::Null, number)),
            ("result", text(result)),
            ("code", optional(code)),
            ("error", optional(report.error)),
            ("value", report.value.unwrap_or(Value::Null)),
            ("first_receipt", optional(first)),
            ("started_at", optional(started)),
            ("finished_at", text(carrier.stamp.at)),
            ("events", Value::List(self.receipt_events(&carrier, &row, fence, action_id, whole)?)),
        ])))
    }

    /// What the holder, the remote or a person had reported of an attempt at a
    /// position of the log.
    fn report(&self, row: &ActionRow, fence: Option<u64>, past: u64) -> Result<Report, Error> {
        let mut report = Report::default();
        let (Some((stream, _)), Some(fence)) = (row.held, fence) else { return Ok(report) };
        for event in self.attempt_events(&stream, fence)?.iter().filter(|event| event.position <= past) {
            let Some(body) = &event.event else { continue };
            let (error, result) = match &body.body {
                Body::EffectSettled(_, sealed) | Body::EffectLate(_, sealed) => {
                    (sealed.error.clone(), sealed.result)
                }
                Body::EffectReconciled(_, sealed) | Body::EffectResolved(_, sealed) => {
                    (sealed.reason.clone().or_else(|| sealed.evidence.clone()), sealed.result)
                }
                _ => continue,
            };
            report.error = error;
            if result.is_some() {
                report.value = self.stored_value(Some((stream, event.stamp.sequence)))?;
            }
        }
        Ok(report)
    }

    /// An approval as it stood at a position of the log.
    fn approval_at(&self, id: ApprovalId, past: u64) -> Result<Option<ApprovalRow>, Error> {
        let events = self.events(&StreamId::approval(id), 1, 256)?;
        let mut row = None;
        for stored in events.iter().filter(|stored| stored.position <= past) {
            let event = stored.event.as_ref().ok_or_else(|| StoreError::new(Code::Corrupt))?;
            row = Some(evolve(row, stored.stamp.at, event).map_err(StoreError::from)?);
        }
        Ok(row)
    }

    /// The events of one attempt at an effect.
    fn attempt_events(&self, stream: &StreamId, fence: u64) -> Result<Vec<StoredEvent>, Error> {
        let mut found = Vec::new();
        let mut from = 1;
        loop {
            let page = self.events(stream, from, 256)?;
            let Some(last) = page.last() else { return Ok(found) };
            from = last.stamp.sequence + 1;
            found.extend(
                page.into_iter().filter(|event| event.event.as_ref().and_then(fence_of) == Some(fence)),
            );
        }
    }

    /// What a receipt rests on: nothing that came after it.
    fn receipt_events(
        &self,
        carrier: &StoredEvent,
        row: &ActionRow,
        fence: Option<u64>,
        action: ActionId,
        whole: bool,
    ) -> Result<Vec<Value>, Error> {
        let mut events = self.events(&StreamId::action(action), 1, 256)?;
        if let (Some((stream, _)), Some(fence)) = (row.held, fence) {
            events.extend(self.attempt_events(&stream, fence)?);
        } else if carrier.stamp.stream.kind == onceseal_core::stream::StreamKind::Effect {
            events.extend(self.events(&carrier.stamp.stream, 1, 256)?);
        }
        if let Some(id) = row.approval {
            events.extend(self.events(&StreamId::approval(id), 1, 256)?);
        }
        events.retain(|event| event.position <= carrier.position);
        events.sort_by_key(|event| event.position);
        let mut rendered = Vec::with_capacity(events.len());
        for stored in events {
            let prior = self.prior(&stored.stamp.stream, stored.stamp.sequence)?;
            let mut value = event(&stored, prior)?;
            // Sealed parts hold the hashes that are withheld.
            if let (Value::Object(object), false) = (&mut value, whole) {
                object.insert("sealed", Value::Null);
                object.insert("salt", Value::Null);
            }
            rendered.push(value);
        }
        Ok(rendered)
    }
}

#[derive(Default)]
struct Report {
    error: Option<String>,
    value: Option<Value>,
}

fn fence_of(event: &onceseal_core::journal::Event) -> Option<u64> {
    match &event.body {
        Body::EffectAcquired(data, _) => Some(data.fence),
        Body::EffectBegun(data, _) => Some(data.fence),
        Body::EffectSettled(data, _) => Some(data.fence),
        Body::EffectLapsed(data, _) => Some(data.fence),
        Body::EffectReconciled(data, _) | Body::EffectResolved(data, _) => Some(data.fence),
        Body::EffectLate(data, _) => Some(data.fence),
        _ => None,
    }
}
