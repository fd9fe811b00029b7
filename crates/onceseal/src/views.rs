//! Reading: lists by keyset pages, single things, the journal.
//!
//! Nothing here changes anything.

mod attention;
mod routes;

use std::cmp::Ordering;
use std::sync::Arc;

use onceseal_core::action::{ActionRow, ActionState, Answer, ended_number};
use onceseal_core::approval::{ApprovalRow, Status};
use onceseal_core::code::Code;
use onceseal_core::effect::{EffectRow, EffectState};
use onceseal_core::id::{ActionId, ApprovalId, RunId};
use onceseal_core::journal::{Body, Index, Row};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::lease::{LeaseRow, Use};
use onceseal_core::run::{Life, RunRow};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;
use onceseal_store::StoreError;
use onceseal_store::read::{Page, Rows, StoredEvent, row_of};

pub use attention::{Attention, Waiting};
pub use routes::Stopped;

use crate::control::Control;
use crate::error::Error;

/// What to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The state's number in the index of states; see [`state_numbers`].
    pub state: Option<u8>,
    /// The action's name; of actions only, other lists ignore it.
    pub name: Option<String>,
    /// Only what was made at or before this moment.
    pub until: Option<Timestamp>,
    /// Only what comes after this place.
    pub after: Option<Cursor>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
}

/// A place in a list. Prints as 52 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    made: [u8; 8],
    /// Things made at one moment are listed state by state.
    state: u8,
    stream: StreamId,
}

impl Cursor {
    /// A place in a list that is ordered by numbers.
    pub(crate) fn numbered(number: u32, stream: StreamId) -> Cursor {
        Cursor { made: u64::from(number).to_be_bytes(), state: 0, stream }
    }

    /// The number of such a place.
    pub(crate) fn number(&self) -> u32 {
        u32::try_from(u64::from_be_bytes(self.made)).unwrap_or(u32::MAX)
    }

    pub(crate) const fn stream(&self) -> StreamId {
        self.stream
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Cursor> {
        let mut bytes = [0; 26];
        onceseal_core::hash::read_hex(text, &mut bytes)?;
        let (made, rest) = bytes.split_first_chunk()?;
        let kind = StreamKind::ALL.iter().copied().find(|kind| kind.number() == rest[1])?;
        let stream = StreamId { kind, name: rest[2..].try_into().ok()? };
        Some(Cursor { made: *made, state: rest[0], stream })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(52);
        onceseal_core::hash::write_hex(&self.made, &mut text);
        onceseal_core::hash::write_hex(&[self.state, self.stream.kind.number()], &mut text);
        onceseal_core::hash::write_hex(&self.stream.name, &mut text);
        f.write_str(&text)
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Streams with their rows.
    pub items: Vec<(StreamId, Row)>,
    /// Streams whose rows do not decode.
    pub unreadable: Vec<StreamId>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

impl Filter {
    /// Where a list of runs goes on that was broken off after this one.
    #[must_use]
    pub fn after_run(id: RunId, row: &RunRow) -> Cursor {
        let life = if row.terminal { Life::Ended } else { Life::Living };
        let made = onceseal_core::journal::moment(row.created_at);
        Cursor { made, state: life.number(), stream: StreamId::run(id) }
    }

    /// Where a list of what is held goes on that was broken off after this.
    pub(crate) fn after_lease(stream: StreamId, row: &LeaseRow) -> Cursor {
        let made = onceseal_core::journal::moment(row.created_at);
        Cursor { made, state: Use::Held.number(), stream }
    }

    /// Where a list of actions goes on that was broken off after this one.
    #[must_use]
    pub fn after_action(&self, id: ActionId, row: &ActionRow) -> Cursor {
        // Those found by name stand in one range, whatever their state.
        let by_name = self.name.is_some();
        let state = if by_name { 0 } else { onceseal_core::action::state_number(&row.state) };
        Cursor { made: onceseal_core::journal::moment(row.created_at), state, stream: StreamId::action(id) }
    }
}

/// The states a kind of stream can be in: number and name.
#[must_use]
pub fn state_numbers(kind: StreamKind) -> Vec<(u8, &'static str)> {
    match kind {
        StreamKind::Action => {
            let open = [(1, "ready"), (2, "waiting"), (3, "running"), (4, "queued"), (5, "parked")];
            let ended = Answer::ALL.iter().map(|answer| (ended_number(*answer), answer.as_str()));
            open.into_iter().chain(ended).collect()
        }
        StreamKind::Approval => Status::ALL.iter().map(|status| (status.number(), status.as_str())).collect(),
        StreamKind::Effect => EffectState::ALL.iter().map(|state| (state.number(), state.as_str())).collect(),
        StreamKind::Route => vec![(1, "closed"), (2, "open")],
        StreamKind::Lease => Use::ALL.iter().map(|held| (held.number(), held.as_str())).collect(),
        StreamKind::Run => Life::ALL.iter().map(|life| (life.number(), life.as_str())).collect(),
        _ => Vec::new(),
    }
}

impl Control {
    /// A page of actions, approvals, effects or routes.
    ///
    /// # Errors
    /// The store cannot be read, or a row does not decode.
    pub fn list(&self, kind: StreamKind, filter: &Filter, limit: usize) -> Result<Listed, Error> {
        Ok(self.store().read_rows(|snapshot| list(snapshot, kind, filter, limit))?)
    }

    /// An effect by its key.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn effect(&self, key: &str) -> Result<Option<EffectRow>, Error> {
        match self.row(&self.store().tenant().effect(key))? {
            Some(Row::Effect(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// The effect in this stream.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn effect_at(&self, stream: &StreamId) -> Result<Option<EffectRow>, Error> {
        match self.row(stream)? {
            Some(Row::Effect(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// An action by its id.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn action_row(&self, id: ActionId) -> Result<Option<ActionRow>, Error> {
        match self.row(&StreamId::action(id))? {
            Some(Row::Action(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// An approval by its id.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        match self.row(&StreamId::approval(id))? {
            Some(Row::Approval(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// What people said besides yes or no to a request, in order: who, and why.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn reasons(&self, id: ApprovalId) -> Result<Vec<(Option<String>, String)>, Error> {
        /// A request has as many events as people who answer, and three.
        const MOST: usize = 64;
        let events = self.store().read(|snapshot| snapshot.events(&StreamId::approval(id), 1, MOST))?;
        let said = events.into_iter().filter_map(|stored| match stored.event?.body {
            Body::ApprovalAnswered(_, sealed) | Body::ApprovalRevoked(_, sealed) => {
                Some((sealed.person, sealed.reason?))
            }
            _ => None,
        });
        Ok(said.collect())
    }

    /// The arguments of a recorded action, read back from their canonical text.
    ///
    /// # Errors
    /// `erased`, or `corrupt` if they are not what was recorded.
    pub fn arguments(&self, id: ActionId) -> Result<Object, Error> {
        let stream = StreamId::action(id);
        let payload = self.store().read_rows(|snapshot| snapshot.payload(&stream, 1))?;
        let payload = payload.ok_or_else(|| StoreError::new(Code::Erased))?;
        let proposal = self.action_row(id)?.and_then(|row| row.private.proposal);
        if proposal.is_some_and(|proposal| proposal.arguments != payload.hash()) {
            return Err(StoreError::new(Code::Corrupt).into());
        }
        match json::read_canonical(&payload.text, &Limits::DATA) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            _ => Err(StoreError::new(Code::Corrupt).into()),
        }
    }

    /// A stored result.
    ///
    /// # Errors
    /// `corrupt` if it does not decode.
    pub fn stored_value(&self, stored: Option<(StreamId, u64)>) -> Result<Option<Value>, Error> {
        let Some((stream, sequence)) = stored else { return Ok(None) };
        let payload = self.store().read_rows(|snapshot| snapshot.payload(&stream, sequence))?;
        let Some(payload) = payload else { return Ok(None) };
        let value = json::read_canonical(&payload.text, &Limits::DATA);
        value.map(Some).map_err(|_| StoreError::new(Code::Corrupt).into())
    }

    /// The events of a stream, oldest first, from this sequence on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn events(&self, stream: &StreamId, from: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        Ok(self.store().read(|snapshot| snapshot.events(stream, from, limit))?)
    }

    /// The log after a position, oldest first. A reader that follows positions
    /// misses nothing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn log(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        Ok(self.store().read(|snapshot| snapshot.log(after, limit))?)
    }

    pub(crate) fn row(&self, stream: &StreamId) -> Result<Option<Row>, Error> {
        let loaded = self.store().read_rows(|snapshot| snapshot.stream(stream))?;
        if loaded == Loaded::Unreadable {
            return Err(StoreError::new(Code::Corrupt).into());
        }
        Ok(row_of(loaded).map(|stored| stored.row))
    }
}

fn list(snapshot: &dyn Rows, kind: StreamKind, filter: &Filter, limit: usize) -> Result<Listed, StoreError> {
    // Only actions are found by name.
    let by_name = filter.name.as_ref().filter(|_| kind == StreamKind::Action);
    let ranges: Vec<(u8, Index, Vec<u8>)> = match (by_name, filter.state) {
        (Some(name), _) => vec![(0, Index::Name, [name.as_bytes(), &[0]].concat())],
        (None, Some(state)) => vec![(state, Index::State, vec![kind.number(), state])],
        (None, None) => {
            let states = state_numbers(kind).into_iter();
            states.map(|(state, _)| (state, Index::State, vec![kind.number(), state])).collect()
        }
    };
    let mut found: Vec<([u8; 8], u8, usize, StreamId)> = Vec::new();
    for (state, index, prefix) in ranges {
        let Some(page) = page(filter, state, index, &prefix, limit) else { continue };
        for (at, hit) in snapshot.keys(&page)?.into_iter().enumerate() {
            let made = hit.key.last_chunk::<8>().copied().unwrap_or_default();
            found.push((made, state, at, hit.stream));
        }
    }
    found.sort_by(|a, b| match filter.newest_first {
        false => (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)),
        true => (b.0, b.1, a.2).cmp(&(a.0, a.1, b.2)),
    });
    found.truncate(limit);
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|(made, state, _, stream)| Cursor { made: *made, state: *state, stream: *stream });
    let mut listed = Listed { items: Vec::with_capacity(found.len()), unreadable: Vec::new(), next };
    for (_, _, _, stream) in found {
        match snapshot.stream(&stream)? {
            Loaded::Row(stored) if fits(&stored.row, filter) => {
                listed.items.push((stream, Arc::unwrap_or_clone(stored).row));
            }
            Loaded::Row(_) => {}
            Loaded::Absent | Loaded::Unreadable => listed.unreadable.push(stream),
        }
    }
    Ok(listed)
}

/// The part of one range that comes after the filter's place; `None` if nothing does.
fn page(filter: &Filter, state: u8, index: Index, prefix: &[u8], limit: usize) -> Option<Page> {
    let key = |made: u64| [prefix, &made.to_be_bytes()].concat();
    let (mut first, mut last) = (0, filter.until.unwrap_or(Timestamp::MAX).micros().unsigned_abs());
    let mut after = None;
    if let Some(cursor) = &filter.after {
        let made = u64::from_be_bytes(cursor.made);
        match (filter.newest_first, state.cmp(&cursor.state)) {
            (_, Ordering::Equal) => after = Some((key(made), cursor.stream)),
            (false, Ordering::Greater) => first = made,
            (false, Ordering::Less) => first = made.checked_add(1)?,
            (true, Ordering::Less) => last = last.min(made),
            (true, Ordering::Greater) => last = last.min(made.checked_sub(1)?),
        }
    }
    let (from, to) = (key(first), key(last));
    let newest_first = filter.newest_first;
    (from <= to).then_some(Page { index, from, to, after, newest_first, limit })
}

/// Whether a row found by name is in the state asked for.
fn fits(row: &Row, filter: &Filter) -> bool {
    match (row, filter.state, &filter.name) {
        (Row::Action(row), Some(state), Some(_)) => onceseal_core::action::state_number(&row.state) == state,
        _ => true,
    }
}

/// The name of an action's state.
#[must_use]
pub const fn action_state(state: &ActionState) -> &'static str {
    match state {
        ActionState::Ready { .. } => "ready",
        ActionState::Waiting { .. } => "waiting",
        ActionState::Running { .. } => "running",
        ActionState::Queued { .. } => "queued",
        ActionState::Parked { .. } => "parked",
        ActionState::Ended { result, .. } | ActionState::Answered { result, .. } => result.as_str(),
    }
}
