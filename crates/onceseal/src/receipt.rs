//! Receipts as documents: evidence of one terminal answer.
//!
//! A document shows what was recorded up to its receipt and nothing of what
//! followed, so the same id gives the same document until something is erased.

use onceseal_core::action::{ActionRow, ActionState};
use onceseal_core::approval::ApprovalRow;
use onceseal_core::code::Code;
use onceseal_core::decide::evolve;
use onceseal_core::effect::event::Known;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::journal::{Body, Event, Row};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::stream::{StreamId, StreamKind, Tenant};
use onceseal_store::StoreError;
use onceseal_store::read::{Snapshot, StoredEvent};

use crate::control::Control;
use crate::error::Error;
use crate::render::{self, number, object, optional, text};
use crate::views::place_of;

/// Events read at once.
const PAGE: usize = 256;

fn corrupt() -> StoreError {
    StoreError::new(Code::Corrupt)
}

impl Control {
    /// A receipt as a document: schema `onceseal.receipt/v1`. Redacted
    /// arguments are marked, and the hashes over them withheld.
    ///
    /// # Errors
    /// `corrupt`, or the store cannot be read. `None`: there is no such receipt.
    pub fn receipt(&self, id: ReceiptId) -> Result<Option<Value>, Error> {
        let tenant = self.store().tenant();
        let Some(evidence) = self.store().read(|snapshot| Evidence::of(snapshot, tenant, id))? else {
            return Ok(None);
        };
        let shown = match (&evidence.arguments, &evidence.row.private.proposal) {
            (Some(arguments), Some(proposal)) => {
                let policy = self.store().policy(evidence.row.decided.policy)?.ok_or_else(corrupt)?;
                let paths = policy.policy.entry(&proposal.name).map_or(&[][..], |entry| &entry.redact);
                Some(render::redacted(arguments, paths))
            }
            _ => None,
        };
        Ok(Some(evidence.document(id, tenant, shown)?))
    }

    /// What was last reported or answered for the attempt of an action.
    pub(crate) fn last_word(&self, row: &ActionRow) -> Result<Word, Error> {
        let Some((effect, fence)) = row.held else { return Ok(Word::default()) };
        let events = self.store().read(|snapshot| attempt(snapshot, &effect, fence))?;
        Ok(Word::of(&events))
    }
}

/// What was said of an attempt: by its holder, the remote or a person.
#[derive(Default)]
pub(crate) struct Word {
    /// A short code of the executor.
    pub(crate) code: Option<String>,
    /// Its error text, or why a person said otherwise.
    pub(crate) text: Option<String>,
    /// The event whose payload is the result.
    result: Option<u64>,
    /// Who answered in its place.
    answered: Option<Value>,
}

impl Word {
    /// The last one in these events of an attempt.
    fn of(events: &[StoredEvent]) -> Word {
        let mut word = Word::default();
        for stored in events {
            match stored.event.as_ref().map(|event| &event.body) {
                Some(Body::EffectSettled(data, sealed)) => {
                    word.code.clone_from(&data.code);
                    word.text.clone_from(&sealed.error);
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                Some(Body::EffectLate(_, sealed)) => {
                    word = Word { text: sealed.error.clone(), ..Word::default() };
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                Some(Body::EffectReconciled(data, sealed) | Body::EffectResolved(data, sealed)) => {
                    word.answered = Some(answered(data, sealed));
                    word.text = sealed.reason.clone().or_else(|| sealed.evidence.clone()).or(word.text);
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                _ => {}
            }
        }
        word
    }
}

fn answered(data: &Known, sealed: &onceseal_core::effect::event::KnownSealed) -> Value {
    object(vec![
        ("source", text(data.source)),
        ("person", optional(sealed.person.as_ref())),
        ("proof", optional(data.proof)),
        ("reason", optional(sealed.reason.as_ref())),
        ("evidence", optional(sealed.evidence.as_ref())),
        ("cause", optional(sealed.cause.as_ref())),
    ])
}

/// All that one receipt shows.
struct Evidence {
    carrier: StoredEvent,
    body: Body,
    action: ActionId,
    /// The action as it was at the receipt.
    row: ActionRow,
    arguments: Option<Object>,
    fence: Option<u64>,
    word: Word,
    value: Option<Value>,
    approval: Option<(ApprovalId, ApprovalRow)>,
    /// In the order of the log, each with the hash before it.
    events: Vec<(StoredEvent, Hash)>,
}

impl Evidence {
    fn of(snapshot: &dyn Snapshot, tenant: &Tenant, id: ReceiptId) -> Result<Option<Evidence>, StoreError> {
        let Some((stream, sequence)) = place_of(snapshot, id)? else { return Ok(None) };
        let carrier = snapshot.events(&stream, sequence, 1)?.pop().ok_or_else(corrupt)?;
        let Event { refs, body } = carrier.event.clone().ok_or_else(corrupt)?;
        let action = match stream.kind {
            StreamKind::Action => ActionId(stream.name),
            _ => refs.action.ok_or_else(corrupt)?,
        };
        let known = |events: Vec<StoredEvent>| -> Vec<StoredEvent> {
            events.into_iter().filter(|event| event.position <= carrier.position).collect()
        };
        let mut events = known(whole(snapshot, &StreamId::action(action))?);
        let Some(Row::Action(row)) = fold(&events)? else { return Err(corrupt()) };
        let held = match &body {
            Body::EffectLate(data, _) => Some((stream, data.fence)),
            _ => row.held,
        };
        let (mut word, mut value) = (Word::default(), None);
        if let Some((effect, fence)) = held {
            let said = known(attempt(snapshot, &effect, fence)?);
            word = Word::of(&said);
            if let Some(at) = word.result {
                value = stored_value(snapshot, &effect, at)?;
            }
            events.extend(said);
        }
        let mut approval = None;
        if let Some(id) = row.approval {
            let asked = known(whole(snapshot, &StreamId::approval(id))?);
            if let Some(Row::Approval(row)) = fold(&asked)? {
                approval = Some((id, row));
            }
            events.extend(asked);
        }
        events.sort_by_key(|event| event.position);
        let with_prior = |event: StoredEvent| Ok((prior(snapshot, tenant, &event)?, event));
        let events = events.into_iter().map(with_prior).collect::<Result<Vec<_>, StoreError>>()?;
        let events = events.into_iter().map(|(prior, event)| (event, prior)).collect();
        let arguments = arguments(snapshot, action, &row)?;
        let fence = held.map(|(_, fence)| fence);
        Ok(Some(Evidence { carrier, body, action, row, arguments, fence, word, value, approval, events }))
    }

    fn document(self, id: ReceiptId, tenant: &Tenant, shown: Option<Object>) -> Result<Value, StoreError> {
        let (result, code, first) = match &self.body {
            Body::ActionEnded(data, _) => (data.result.as_str(), data.code, None),
            Body::ActionAnswered(data, _) => (data.result.as_str(), None, self.first_receipt()),
            Body::EffectLate(data, _) => (data.outcome.as_str(), Some(Code::Fenced), self.row.receipt()),
            _ => return Err(corrupt()),
        };
        let contradicts = match &self.body {
            Body::EffectLate(data, _) => Value::Bool(data.contradicts),
            _ => Value::Null,
        };
        // A receipt that withholds an argument withholds the hashes over it.
        let open = shown.is_some() && shown == self.arguments;
        let hash = |hash: Option<Hash>| optional(hash.filter(|_| open));
        let proposal = self.row.private.proposal.as_ref();
        let principal = object(vec![
            ("agent", optional(proposal.map(|p| &p.agent))),
            ("user", optional(proposal.and_then(|p| p.user.as_ref()))),
        ]);
        let approval = self.approval.as_ref().map_or(Value::Null, |(id, row)| asked(*id, row, open));
        let proposed_at =
            self.events.iter().find(|(event, _)| event.stamp.stream == StreamId::action(self.action));
        Ok(object(vec![
            ("schema", text("onceseal.receipt/v1")),
            ("receipt", text(id)),
            ("action", text(self.action)),
            ("name", optional(proposal.map(|p| &p.name))),
            ("arguments", shown.map_or(Value::Null, Value::Object)),
            ("principal", principal),
            ("resource", optional(proposal.and_then(|p| p.resource.as_ref()))),
            ("environment", optional(proposal.map(|p| &p.environment))),
            ("tenant", text(&tenant.name)),
            ("action_hash", hash(proposal.map(|p| p.action_hash))),
            ("intent_hash", hash(proposal.map(|p| p.intent_hash))),
            ("decision", text(self.row.decided.decision)),
            ("reason", text(&self.row.decided.reason)),
            ("policy", text(self.row.decided.policy)),
            ("approval", approval),
            ("effect_key", optional(proposal.and_then(|p| p.effect_key.as_ref()))),
            ("attempt", self.fence.map_or(Value::Null, number)),
            ("result", text(result)),
            ("code", optional(code)),
            ("error_code", optional(self.word.code.as_ref())),
            ("error", optional(self.word.text.as_ref().filter(|_| self.word.answered.is_none()))),
            ("value", self.value.clone().unwrap_or(Value::Null)),
            ("answered", self.word.answered.clone().unwrap_or(Value::Null)),
            ("contradicts", contradicts),
            ("first_receipt", optional(first)),
            ("proposed_at", optional(proposed_at.map(|(event, _)| event.stamp.at))),
            ("started_at", optional(self.started())),
            ("finished_at", text(self.carrier.stamp.at)),
            ("events", Value::List(self.rendered(open)?)),
        ]))
    }

    fn first_receipt(&self) -> Option<ReceiptId> {
        match self.row.state {
            ActionState::Answered { first, .. } => Some(first),
            _ => None,
        }
    }

    /// When the executor was permitted to run.
    fn started(&self) -> Option<onceseal_core::time::Timestamp> {
        let permits = |event: &Event| match &event.body {
            Body::EffectAcquired(data, _) => data.begun,
            Body::EffectBegun(..) => true,
            _ => false,
        };
        let first = self.events.iter().find(|(stored, _)| stored.event.as_ref().is_some_and(permits));
        first.map(|(stored, _)| stored.stamp.at)
    }

    fn rendered(&self, open: bool) -> Result<Vec<Value>, StoreError> {
        let mut rendered = Vec::with_capacity(self.events.len());
        for (stored, prior) in &self.events {
            let mut value = render::event(stored, *prior)?;
            // Sealed parts hold the hashes that are withheld.
            if let (Value::Object(object), false) = (&mut value, open) {
                object.insert("sealed", Value::Null);
                object.insert("salt", Value::Null);
            }
            rendered.push(value);
        }
        Ok(rendered)
    }
}

fn asked(id: ApprovalId, row: &ApprovalRow, open: bool) -> Value {
    let mut value = render::approval(id, row);
    if let (Value::Object(object), false) = (&mut value, open) {
        object.insert("action_hash", Value::Null);
        object.insert("binding", Value::Null);
    }
    value
}

/// All events of a stream.
fn whole(snapshot: &dyn Snapshot, stream: &StreamId) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events: Vec<StoredEvent> = Vec::new();
    loop {
        let from = events.last().map_or(1, |event| event.stamp.sequence + 1);
        let page = snapshot.events(stream, from, PAGE)?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// The events of one attempt at an effect.
fn attempt(snapshot: &dyn Snapshot, effect: &StreamId, fence: u64) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = whole(snapshot, effect)?;
    events.retain(|event| event.event.as_ref().and_then(fence_of) == Some(fence));
    Ok(events)
}

/// What these events of a stream, from the first on, come to.
fn fold(events: &[StoredEvent]) -> Result<Option<Row>, StoreError> {
    let mut row = None;
    for stored in events {
        let stamp = &stored.stamp;
        let event = stored.event.as_ref().ok_or_else(corrupt)?;
        row = Some(evolve(&stamp.stream, row, stamp.sequence, stamp.at, event)?);
    }
    Ok(row)
}

/// The hash that stands before an event.
fn prior(snapshot: &dyn Snapshot, tenant: &Tenant, event: &StoredEvent) -> Result<Hash, StoreError> {
    let stamp = &event.stamp;
    if stamp.sequence <= 1 {
        return Ok(tenant.genesis(&stamp.stream));
    }
    let before = snapshot.events(&stamp.stream, stamp.sequence - 1, 1)?.pop();
    before.map(|event| event.hash).ok_or_else(corrupt)
}

/// The arguments as they were proposed; `None` if they have been erased.
fn arguments(
    snapshot: &dyn Snapshot,
    action: ActionId,
    row: &ActionRow,
) -> Result<Option<Object>, StoreError> {
    let Some(payload) = snapshot.payload(&StreamId::action(action), 1)? else { return Ok(None) };
    let Some(proposal) = &row.private.proposal else { return Ok(None) };
    match json::read_canonical(&payload.text, &Limits::DATA) {
        Ok(Value::Object(arguments)) if payload.hash() == proposal.arguments => Ok(Some(arguments)),
        _ => Err(corrupt()),
    }
}

fn stored_value(snapshot: &dyn Snapshot, stream: &StreamId, at: u64) -> Result<Option<Value>, StoreError> {
    let Some(payload) = snapshot.payload(stream, at)? else { return Ok(None) };
    json::read_canonical(&payload.text, &Limits::DATA).map(Some).map_err(|_| corrupt())
}

fn fence_of(event: &Event) -> Option<u64> {
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
