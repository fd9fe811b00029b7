//! The store's own stream, and notes: facts from which nothing is decided.

pub mod event;

use crate::approval::{Identity, is_operator};
use crate::case::Case;
use crate::code::Code;
use crate::journal::{Body, Event, Nothing, Payload, Refs};
use crate::limits;
use crate::pack::Corrupt;
use crate::record::record;
use crate::reply::Reply;
use crate::stream::{StreamId, StreamKind};
use crate::time::Timestamp;
use crate::view::Halt;

use event::{Accepted, AcceptedSealed, Created, CreatedSealed, NoteSealed};

record! {
    /// The row of the store or of a note.
    pub struct StoreRow {
        /// When its first event was recorded.
        created_at: Timestamp,
        /// When its newest event was recorded.
        updated_at: Timestamp,
    }
}

/// Accept that the store is older than what was seen.
#[derive(Debug, Clone)]
pub struct Accept {
    /// The newest position seen.
    pub seen: u64,
    /// The newest position found.
    pub found: u64,
    /// Who accepts it.
    pub person: Identity,
    /// Why.
    pub reason: String,
}

/// Keep foreign evidence.
#[derive(Debug, Clone)]
pub struct Note {
    /// Canonical JSON text, at most 64 KiB.
    pub body: String,
    /// Where it comes from.
    pub source: String,
}

pub(crate) fn create(case: &mut Case<'_>) -> Result<Reply, Halt> {
    let stream = case.pinned.tenant.store();
    let changed = case.view.store(&case.pinned.tenant)?.is_none();
    if changed {
        case.record(
            stream,
            Refs::NONE,
            Body::StoreCreated(Created {}, CreatedSealed { owner: case.pinned.owner.clone() }),
        );
    }
    Ok(Reply::Done { changed })
}

pub(crate) fn accept(case: &mut Case<'_>, accept: &Accept) -> Result<Reply, Halt> {
    if !accept.person.is_valid() {
        return Ok(Code::PersonInvalid.into());
    }
    if !is_operator(case, &accept.person)? {
        return Ok(Code::NotOperator.into());
    }
    if accept.reason.trim().is_empty() || !limits::is_remark(&accept.reason) {
        return Ok(Code::OutOfBounds.into());
    }
    let stream = case.pinned.tenant.store();
    if case.view.store(&case.pinned.tenant)?.is_none() {
        return Ok(Code::StoreFailed.into());
    }
    let sealed =
        AcceptedSealed { person: Some(accept.person.to_string()), reason: Some(accept.reason.clone()) };
    let data = Accepted { found: accept.found, seen: accept.seen };
    case.record(stream, Refs::NONE, Body::StoreAccepted(data, sealed));
    Ok(Reply::Done { changed: true })
}

pub(crate) fn note(case: &mut Case<'_>, note: &Note) -> Reply {
    if !limits::is_result(&note.body) || !limits::is_name(&note.source) {
        return Code::OutOfBounds.into();
    }
    let stream = StreamId { kind: StreamKind::Note, name: case.command.note() };
    let payload = case.payload(&note.body);
    let sealed = NoteSealed { body: Some(Payload::hash(&payload)), source: Some(note.source.clone()) };
    case.record_with(stream, Refs::NONE, Body::NoteAppended(Nothing {}, sealed), Some(payload));
    Reply::Done { changed: true }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<StoreRow>, at: Timestamp, event: &Event) -> Result<StoreRow, Corrupt> {
    match (&event.body, row) {
        (Body::StoreCreated(..) | Body::NoteAppended(..), None) => {
            Ok(StoreRow { created_at: at, updated_at: at })
        }
        (Body::StoreAccepted(..), Some(row)) => Ok(StoreRow { updated_at: at, ..row }),
        _ => Err(Corrupt("sequence of the store's events")),
    }
}
