//! Request ids: the same request is answered as it was the first time.

use crate::action::Principal;
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::RunId;
use crate::journal::{Body, Event, Refs};
use crate::json::{self, Object, Value};
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::reply::{Reply, RunNow};
use crate::run::event::{Answered, AnsweredSealed};
use crate::run::name;
use crate::run::row::{RunRow, Standing};
use crate::stream::StreamId;
use crate::time::Timestamp;
use crate::view::Halt;

/// The row of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestRow {
    /// What was answered.
    pub answered: Answered,
    /// When.
    pub created_at: Timestamp,
    /// The private half.
    pub private: RequestPrivate,
}

record! {
    /// The private half of a request's row.
    pub struct RequestPrivate {
        /// Hash of the whole request.
        request: Option<Hash>,
    }
}

impl Pack for RequestRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.answered.pack(out);
        self.created_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<RequestRow, Corrupt> {
        let (answered, created_at) = (Pack::unpack(input)?, Pack::unpack(input)?);
        Ok(RequestRow { answered, created_at, private: RequestPrivate { request: None } })
    }
}

/// A request that is being decided.
pub(crate) struct Request<'a> {
    id: &'a str,
    stream: StreamId,
    hash: Hash,
}

impl<'a> Request<'a> {
    /// A request of this kind in a scope. The hash is of the kind, the scope, the
    /// arguments and who asks: whoever asks for something else, or is somebody
    /// else, makes another request.
    pub(crate) fn new(
        case: &Case<'_>,
        id: &'a str,
        kind: &str,
        scope: &str,
        principal: &Principal,
        arguments: Object,
    ) -> Request<'a> {
        let mut request = Object::new();
        request.insert("agent", principal.agent.as_str());
        request.insert("arguments", arguments);
        request.insert("kind", kind);
        request.insert("scope", scope);
        request.insert("user", principal.user.clone());
        let text = json::canonical(&Value::Object(request));
        let stream = case.pinned.tenant.request(scope, id);
        Request { id, stream, hash: Hash::of("onceseal.run-request.v1\n", &[text.as_bytes()]) }
    }

    /// What was answered to it before, if anything: looked up before anything
    /// else is judged.
    pub(crate) fn replay(&self, case: &Case<'_>) -> Result<Option<Reply>, Halt> {
        if !name::is_request(self.id) {
            return Ok(Some(Code::RequestIdInvalid.into()));
        }
        let Some(row) = case.view.request(&self.stream)? else { return Ok(None) };
        Ok(Some(match row.private.request {
            None => Code::Erased.into(),
            Some(hash) if hash == self.hash => replayed(case, row.answered.clone())?,
            Some(_) => Code::RequestIdConflict.into(),
        }))
    }

    /// Records the answer, and gives it.
    pub(crate) fn answer(self, case: &mut Case<'_>, answered: Answered, now: Standing) -> Reply {
        let sealed = AnsweredSealed { id: Some(self.id.to_owned()), request: Some(self.hash) };
        case.record(self.stream, Refs::NONE, Body::RequestAnswered(answered.clone(), sealed));
        Reply::Run(Box::new(RunNow { answered, replayed: false, now }))
    }
}

/// An earlier answer, with where the run stands now.
fn replayed(case: &Case<'_>, answered: Answered) -> Result<Reply, Halt> {
    let Some((sequence, row)) = run(case, answered.run)? else { return Err(Halt::Unreadable) };
    Ok(Reply::Run(Box::new(RunNow { answered, replayed: true, now: Standing::of(sequence, row) })))
}

/// A run, with the number of its newest event.
pub(crate) fn run<'a>(case: &Case<'a>, id: RunId) -> Result<Option<(u64, &'a RunRow)>, Halt> {
    match (case.view.stored(&StreamId::run(id))?, case.view.run(id)?) {
        (Some(stored), Some(row)) => Ok(Some((stored.head.sequence, row))),
        _ => Ok(None),
    }
}

/// The row after an event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<RequestRow>, at: Timestamp, event: &Event) -> Result<RequestRow, Corrupt> {
    match (&event.body, row) {
        (Body::RequestAnswered(data, sealed), None) => Ok(RequestRow {
            answered: data.clone(),
            created_at: at,
            private: RequestPrivate { request: sealed.request },
        }),
        _ => Err(Corrupt("sequence of a request's events")),
    }
}
