//! What one receipt shows: gathered from the streams of its action, effect and
//! approval, as they stood when it was recorded.

use onceseal_core::action::{ActionRow, ActionState, Answer};
use onceseal_core::approval::ApprovalRow;
use onceseal_core::code::Code;
use onceseal_core::decide::evolve;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::journal::{Body, Event, Row};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::stream::{StreamId, StreamKind, Tenant};
use onceseal_store::StoreError;
use onceseal_store::read::{Snapshot, StoredEvent};

use super::{Policies, Word, called_off, corrupt, place_of};
use crate::render::{self, number, object, optional, text};

/// Events read at once.
const PAGE: usize = 256;

/// All that one receipt shows.
pub(super) struct Evidence<'a> {
    id: ReceiptId,
    tenant: &'a Tenant,
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
    /// In the order of the log.
    events: Vec<StoredEvent>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(
        snapshot: &dyn Snapshot,
        tenant: &'a Tenant,
        id: ReceiptId,
    ) -> Result<Option<Evidence<'a>>, StoreError> {
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
            let bound = |row: &ApprovalRow| row.private.bound.action_hash;
            match fold(&asked)? {
                // What somebody presented that was given for another action is not
                // this action's to show.
                Some(Row::Approval(asked_for)) if bound(&asked_for) == hash_of(&row) => {
                    approval = Some((id, asked_for));
                    events.extend(asked);
                }
                _ => {}
            }
        }
        events.sort_by_key(|event| event.position);
        let arguments = arguments(snapshot, action, &row)?;
        let fence = held.map(|(_, fence)| fence);
        Ok(Some(Evidence {
            id,
            tenant,
            carrier,
            body,
            action,
            row,
            arguments,
            fence,
            word,
            value,
            approval,
            events,
        }))
    }

    /// The document, with its events or without.
    pub(super) fn document(
        self,
        policies: &mut Policies<'_>,
        with_events: bool,
    ) -> Result<Value, StoreError> {
        let shown = self.shown(policies)?;
        let (result, code, first) = match &self.body {
            Body::ActionEnded(data, _) => (data.result.as_str(), data.code, None),
            Body::ActionCancelled(..) => (Answer::Cancelled.as_str(), None, None),
            Body::ActionAnswered(data, _) => (data.result.as_str(), None, self.first_receipt()),
            Body::EffectLate(data, _) => (data.outcome.as_str(), Some(Code::Fenced), self.row.receipt()),
            _ => return Err(corrupt()),
        };
        let answered = match &self.body {
            Body::ActionCancelled(data, sealed) => Some(called_off(data, sealed)),
            _ => self.word.answered.clone(),
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
            self.events.iter().find(|event| event.stamp.stream == StreamId::action(self.action));
        let mut members = vec![
            ("schema", text("onceseal.receipt/v1")),
            ("receipt", text(self.id)),
            ("action", text(self.action)),
            ("name", optional(proposal.map(|p| &p.name))),
            ("arguments", shown.map_or(Value::Null, Value::Object)),
            ("principal", principal),
            ("resource", optional(proposal.and_then(|p| p.resource.as_ref()))),
            ("environment", optional(proposal.map(|p| &p.environment))),
            ("tenant", text(&self.tenant.name)),
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
            ("remote", self.word.remote.as_ref().map_or(Value::Null, render::remote)),
            ("answered", answered.unwrap_or(Value::Null)),
            ("contradicts", contradicts),
            ("first_receipt", optional(first)),
            ("proposed_at", optional(proposed_at.map(|event| event.stamp.at))),
            ("started_at", optional(self.started())),
            ("finished_at", text(self.carrier.stamp.at)),
        ];
        if with_events {
            members.push(("events", Value::List(self.rendered(policies.snapshot, open)?)));
        }
        Ok(object(members))
    }

    /// The arguments with what the action's policy redacts taken out; `None` if
    /// they have been erased.
    fn shown(&self, policies: &mut Policies<'_>) -> Result<Option<Object>, StoreError> {
        let (Some(arguments), Some(proposal)) = (&self.arguments, &self.row.private.proposal) else {
            return Ok(None);
        };
        let policy = &policies.get(self.row.decided.policy)?.policy;
        Ok(Some(render::shown(policy, &proposal.name, arguments)))
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
        let first = self.events.iter().find(|stored| stored.event.as_ref().is_some_and(permits));
        first.map(|stored| stored.stamp.at)
    }

    fn rendered(&self, snapshot: &dyn Snapshot, open: bool) -> Result<Vec<Value>, StoreError> {
        let mut rendered = Vec::with_capacity(self.events.len());
        for stored in &self.events {
            let mut value = render::event(stored, prior(snapshot, self.tenant, stored)?)?;
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

fn hash_of(row: &ActionRow) -> Option<Hash> {
    row.private.proposal.as_ref().map(|proposal| proposal.action_hash)
}

/// All events of a stream.
fn whole(snapshot: &dyn Snapshot, stream: &StreamId) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events: Vec<StoredEvent> = Vec::new();
    loop {
        let from = events.last().map_or(1, |event| event.stamp.sequence + 1);
        let page = snapshot.events(stream, from, PAGE)?;
        let is_last = page.len() < PAGE;
        events.extend(page);
        if is_last {
            return Ok(events);
        }
    }
}

/// The events of one attempt at an effect.
pub(super) fn attempt(
    snapshot: &dyn Snapshot,
    effect: &StreamId,
    fence: u64,
) -> Result<Vec<StoredEvent>, StoreError> {
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
        Body::EffectReturned(data, _) => Some(data.fence),
        Body::EffectSettled(data, _) => Some(data.fence),
        Body::EffectLapsed(data, _) => Some(data.fence),
        Body::EffectReconciled(data, _) | Body::EffectResolved(data, _) => Some(data.fence),
        Body::EffectLate(data, _) => Some(data.fence),
        _ => None,
    }
}
