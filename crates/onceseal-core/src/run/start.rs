//! Starting a run, and naming its change.

use std::sync::Arc;

use crate::action::Principal;
use crate::case::Case;
use crate::code::Code;
use crate::hash::{Hash, write_hex};
use crate::id::{RootId, RunId};
use crate::journal::{Body, Refs};
use crate::json::Object;
use crate::reply::{Refusal, Reply};
use crate::run::event::{Added, AddedSealed, Answered, Named, NamedSealed, Started, StartedSealed};
use crate::run::moving;
use crate::run::request::{self, Request};
use crate::run::row::{Standing, former_range, living_key};
use crate::run::{Definition, name};
use crate::stream::{StreamId, Tenant};
use crate::view::{Halt, Pinned, Range, Read};

/// Start a run, or join the one that lives under its lookup key.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The project it is about.
    pub root: RootId,
    /// What it goes by.
    pub definition: Arc<Definition>,
    /// What is run.
    pub subject: Subject,
    /// What makes two starts the same request: of this root and kind.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
}

/// What a run is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A change, by its name.
    Change(String),
    /// One that has no name yet: the digest of what is known of it.
    Provisional(Hash),
}

impl Subject {
    /// What it is called among the runs of a kind and project.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Subject::Change(change) => format!("change:{change}"),
            Subject::Provisional(digest) => {
                let mut key = "provisional:".to_owned();
                write_hex(&digest.0, &mut key);
                key
            }
        }
    }

    /// Why it cannot be, if it cannot.
    fn fault(&self, definition: &Definition) -> Option<Code> {
        match self {
            Subject::Change(change) if !name::is_plain(change) => Some(Code::ChangeInvalid),
            Subject::Provisional(_) if !definition.is_provisional() => Some(Code::ProvisionalForbidden),
            Subject::Change(_) | Subject::Provisional(_) => None,
        }
    }
}

/// Name the change of a run that was started without one.
#[derive(Debug, Clone)]
pub struct BindChange {
    /// The run.
    pub run: RunId,
    /// The name.
    pub change: String,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
}

pub(crate) fn start(case: &mut Case<'_>, start: &StartRun) -> Result<Reply, Halt> {
    let StartRun { root, definition, subject, request, principal } = start;
    let key = subject.key();
    let mut arguments = Object::new();
    arguments.insert("key", key.as_str());
    let scope = scope(*root, definition.kind());
    let request = Request::new(case, request, "start", &scope, principal, arguments);
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    if !principal.is_fit() {
        return Ok(Refusal { field: Some("principal"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    if let Some(code) = subject.fault(definition) {
        return Ok(code.into());
    }
    let lookup = lookup(&case.pinned.tenant, *root, definition.kind(), &key);
    let mut ended = None;
    if let Some(id) = living(case, lookup)? {
        let (sequence, row) = moving::met(case, id)?.ok_or(Halt::Unreadable)?;
        if !row.terminal {
            let now = Standing::of(sequence, &row);
            let answered = Answered { joined: true, run: id, sequence, state: row.state.clone() };
            return Ok(request.answer(case, answered, now));
        }
        // It has just ended, since whoever worked on it is gone.
        ended = Some((Some(id), row.ordinal + 1));
    }
    let (previous, ordinal) = match ended {
        Some(ended) => ended,
        None => former(case, lookup)?,
    };
    add(case, definition)?;
    let id = case.command.run();
    let data = Started {
        definition: definition.digest(),
        kind: definition.kind().to_owned(),
        lookup,
        ordinal,
        previous,
        provisional: matches!(subject, Subject::Provisional(_)),
        root: *root,
        state: definition.initial().to_owned(),
    };
    let (agent, user) = (Some(principal.agent.clone()), principal.user.clone());
    let sealed = StartedSealed { agent, key: Some(key), user };
    case.record(StreamId::run(id), Refs::NONE, Body::RunStarted(data, sealed));
    let state = definition.initial().to_owned();
    let now = Standing { sequence: 1, state: state.clone(), code: None, terminal: false };
    Ok(request.answer(case, Answered { joined: false, run: id, sequence: 1, state }, now))
}

/// Keeps a definition that no run has gone by yet.
fn add(case: &mut Case<'_>, definition: &Definition) -> Result<(), Halt> {
    let stream = case.pinned.tenant.definition(definition.digest());
    if case.view.definition(&stream)?.is_some() {
        return Ok(());
    }
    let payload = case.payload(definition.text());
    let sealed = AddedSealed { kind: Some(definition.kind().to_owned()), text: Some(payload.hash()) };
    let body = Body::DefinitionAdded(Added { definition: definition.digest() }, sealed);
    case.record_with(stream, Refs::NONE, body, Some(payload));
    Ok(())
}

/// The newest of the runs that ended under a lookup, and how many there were
/// before the one that follows on it.
fn former(case: &Case<'_>, lookup: Hash) -> Result<(Option<RunId>, u64), Halt> {
    let Some(stream) = case.view.range(&former_range(lookup))?.first().copied() else { return Ok((None, 0)) };
    let id = RunId(stream.name);
    let (_, row) = request::run(case, id)?.ok_or(Halt::Unreadable)?;
    Ok((Some(id), row.ordinal + 1))
}

/// The run that lives under a lookup.
fn living(case: &Case<'_>, lookup: Hash) -> Result<Option<RunId>, Halt> {
    let range = Range { limit: 1, ..Range::equal(living_key(lookup)) };
    Ok(case.view.range(&range)?.first().map(|stream| RunId(stream.name)))
}

pub(crate) fn bind_change(case: &mut Case<'_>, bind: &BindChange) -> Result<Reply, Halt> {
    let BindChange { run, change, request, principal } = bind;
    let mut arguments = Object::new();
    arguments.insert("change", change.as_str());
    let request = Request::new(case, request, "bind_change", &run.to_string(), principal, arguments);
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    if !principal.is_fit() {
        return Ok(Refusal { field: Some("principal"), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    let Some((sequence, row)) = moving::met(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    if !row.provisional {
        return Ok(Code::ChangeBound.into());
    }
    if !name::is_plain(change) {
        return Ok(Code::ChangeInvalid.into());
    }
    let key = Subject::Change(change.clone()).key();
    let lookup = lookup(&case.pinned.tenant, row.root, &row.kind, &key);
    if living(case, lookup)?.is_some() {
        return Ok(Code::ChangeTaken.into());
    }
    let (agent, user) = (Some(principal.agent.clone()), principal.user.clone());
    let (previous, ordinal) = former(case, lookup)?;
    let body =
        Body::RunNamed(Named { lookup, ordinal, previous }, NamedSealed { agent, key: Some(key), user });
    case.record(StreamId::run(*run), Refs::NONE, body);
    let now = Standing::of(sequence + 1, &row);
    let answered = Answered { joined: false, run: *run, sequence: sequence + 1, state: row.state.clone() };
    Ok(request.answer(case, answered, now))
}

/// The scope of a start's request id.
fn scope(root: RootId, kind: &str) -> String {
    format!("{root}/{kind}")
}

/// Where a run of this root and kind is found.
#[must_use]
pub fn lookup(tenant: &Tenant, root: RootId, kind: &str, key: &str) -> Hash {
    tenant.lookup(&format!("{root}/{kind}/{key}"))
}

/// What a start reads on its usual path.
pub(crate) fn start_reads(pinned: &Pinned, start: &StartRun) -> Vec<Read> {
    let StartRun { root, definition, subject, request, .. } = start;
    let lookup = lookup(&pinned.tenant, *root, definition.kind(), &subject.key());
    vec![
        Read::Stream(pinned.tenant.request(&scope(*root, definition.kind()), request)),
        Read::Range(Range { limit: 1, ..Range::equal(living_key(lookup)) }),
        Read::Range(former_range(lookup)),
        Read::Stream(pinned.tenant.definition(definition.digest())),
    ]
}
