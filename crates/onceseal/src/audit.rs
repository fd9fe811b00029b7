//! Auditing a store: everything in it is rebuilt from its events and compared.
//!
//! Nothing is written and nothing copied. Streams are read by pages, each page
//! in a short snapshot, so an audit runs beside a store in use. What is wrong
//! in one place does not keep the rest from being looked at.

mod finding;
mod keys;
mod log;
mod render;
mod sane;
mod stream;
mod walk;

pub use finding::{CODES, Finding};

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use onceseal_core::journal::Body;
use onceseal_core::json::Value;
use onceseal_core::run::Definition;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use onceseal_store::raw::Logged;
use onceseal_store::read::{self, Snapshot};
use onceseal_store::{Store, StoreError};

use crate::control::Control;
use crate::error::Error;
use crate::seen::Seen;
use finding::Findings;
use keys::Sums;
use log::Followed;
use sane::Named;
use walk::{Walk, Which};

/// What is audited.
#[derive(Clone, Copy, Default)]
pub struct AuditOptions<'a> {
    /// Only streams with an event after this position of the log; the report
    /// says what that leaves out.
    pub since: Option<u64>,
    /// Called now and then with how many events have been seen and of how many.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditReport {
    /// Events looked at.
    pub events: u64,
    /// Streams looked at.
    pub streams: u64,
    /// Keys looked at; with `since` those of the streams looked at.
    pub keys: u64,
    /// The newest event looked at: its place in the log and its hash. Kept
    /// elsewhere it tells a later audit whether the log was cut.
    pub newest: Option<(u64, Hash)>,
    /// Where the audit began, if not at the beginning.
    pub since: Option<u64>,
    /// What is wrong, in the order of the log, at most a thousand.
    pub findings: Vec<Finding>,
    /// How many more findings there were.
    pub more: u64,
    /// What is not wrong, and worth knowing.
    pub notes: Vec<Finding>,
}

impl AuditReport {
    /// Whether nothing is wrong with what was looked at.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The report as a document: schema `onceseal.audit/v1`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        render::report(self)
    }
}

/// What one thread has seen.
struct Tally {
    findings: Findings,
    notes: Findings,
    events: u64,
    streams: u64,
    keys: u64,
    sums: Sums,
    /// Definitions of runs by their digests: many runs go by one.
    definitions: BTreeMap<Hash, Named<Arc<Definition>>>,
}

impl Tally {
    fn new(sums: Sums) -> Tally {
        let (findings, notes) = (Findings::default(), Findings::default());
        let definitions = BTreeMap::new();
        Tally { findings, notes, events: 0, streams: 0, keys: 0, sums, definitions }
    }

    /// A definition of runs.
    fn definition(
        &mut self,
        snapshot: &dyn Snapshot,
        digest: Hash,
    ) -> Result<Named<Arc<Definition>>, StoreError> {
        if let Some(known) = self.definitions.get(&digest) {
            return Ok(known.clone());
        }
        let found = match read::definition(snapshot, digest) {
            Ok(found) => found.map_or(Named::Absent, |found| Named::Is(Arc::new(found))),
            Err(error) if matches!(error.code(), Code::Erased | Code::Corrupt) => Named::Unreadable,
            Err(error) => return Err(error),
        };
        self.definitions.insert(digest, found.clone());
        Ok(found)
    }

    /// What was read, or a finding that a part of the database cannot be.
    fn readable<T>(&mut self, read: Result<T, StoreError>, what: &str) -> Result<Option<T>, StoreError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.code() == Code::Corrupt => {
                let sentence = format!("{what} cannot be read");
                self.findings.push(Finding::of_store(finding::UNREADABLE, sentence));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// One that can be added to this one.
    fn another(&self) -> Tally {
        Tally::new(self.sums.empty())
    }

    fn add(&mut self, other: Tally) {
        self.findings.append(other.findings);
        self.notes.append(other.notes);
        self.events += other.events;
        self.streams += other.streams;
        self.keys += other.keys;
        self.sums.merge(&other.sums);
    }
}

/// Rebuilds the store from its events and compares. Findings are no errors.
///
/// # Errors
/// The store cannot be read at all: nothing is said of it.
pub fn audit(control: &Control, options: &AuditOptions<'_>) -> Result<AuditReport, Error> {
    let store = control.store();
    let mut tally = Tally::new(Sums::new());
    let newest = store.read(|snapshot| snapshot.newest());
    let newest = tally.readable(newest, "the end of the log")?.unwrap_or_default();
    let followed = match options.since {
        None => whole(store, newest, options, &mut tally)?,
        Some(since) => part(store, since, newest, options, &mut tally)?,
    };
    owned(store, &mut tally)?;
    note(control, options.since, followed.newest, &mut tally)?;
    let (findings, more) = tally.findings.finish();
    let Tally { events, streams, keys, .. } = tally;
    let (notes, _) = tally.notes.finish();
    let since = options.since;
    Ok(AuditReport { events, streams, keys, newest: followed.newest, since, findings, more, notes })
}

/// Audits one stream: its events, what they come to, and its keys. What the rest
/// of the store says of it is not looked at.
pub(crate) fn stream_alone(control: &Control, stream: &StreamId) -> Result<AuditReport, Error> {
    let store = control.store();
    let mut tally = Tally::new(Sums::new());
    // The log knows the number of a stream by any event of it.
    let ordinal = store.read(|snapshot| {
        let Some(event) = snapshot.events(stream, 1, 1)?.pop() else { return Ok(None) };
        let entry = snapshot.entries(i64::try_from(event.position).unwrap_or(i64::MAX) - 1, 1)?.pop();
        Ok(entry.and_then(|entry| match entry.at {
            Logged::Own { ordinal, .. } => Some(ordinal),
            _ => None,
        }))
    });
    let which =
        Which::These(tally.readable(ordinal, "its place in the log")?.flatten().into_iter().collect());
    Walk::new(store, which).run(&mut tally, &|_| ())?;
    if tally.streams == 0 {
        let sentence = format!("{stream} has no event that the log knows");
        tally.findings.push(Finding::of_stream(finding::STREAM_EMPTY, *stream, sentence));
    }
    let (findings, more) = tally.findings.finish();
    let Tally { events, streams, keys, .. } = tally;
    let (notes, _) = tally.notes.finish();
    Ok(AuditReport { events, streams, keys, newest: None, since: None, findings, more, notes })
}

/// Everything: two threads over the streams, one of which first does what
/// cannot be shared out.
fn whole(
    store: &Store,
    newest: u64,
    options: &AuditOptions<'_>,
    tally: &mut Tally,
) -> Result<Followed, Error> {
    let walk = Walk::new(store, Which::All);
    let mut other = tally.another();
    let progress = |seen: u64| report(options, seen, newest);
    let (walked, followed) = std::thread::scope(|scope| {
        let beside = std::thread::Builder::new().name("onceseal-audit".to_owned());
        let beside = beside.spawn_scoped(scope, || {
            let followed = log::follow(store, None, &mut other)?;
            let looked = store.read(|snapshot| Ok((snapshot.integrity()?, snapshot.unseen()?)));
            let (faults, unseen) = other.readable(looked, "the database as a whole")?.unwrap_or_default();
            for fault in faults {
                other.findings.push(Finding::of_store(finding::INTEGRITY, fault));
            }
            if !unseen.is_empty() {
                let sentence = format!(
                    "the role may not look into {}; let it read them to have them looked at",
                    unseen.join(", ")
                );
                other.notes.push(Finding::of_store(finding::NOT_COVERED, sentence));
            }
            walk.run(&mut other, &|_| ())?;
            Ok::<_, StoreError>(followed)
        });
        let walked = walk.run(tally, &progress);
        (walked, beside.map(|beside| beside.join()))
    });
    walked?;
    let followed = followed.map_err(StoreError::from)?.map_err(|_| Error::Unexpected)??;
    tally.add(other);
    let looked = look_at_keys(store, tally);
    tally.readable(looked, "the keys")?;
    Ok(followed)
}

/// The account that proves itself is the one that the store's first event names, which
/// is there wherever anything is.
fn owned(store: &Store, tally: &mut Tally) -> Result<(), StoreError> {
    let stream = store.tenant().store();
    let read = store.read(|snapshot| {
        let is_missing = matches!(snapshot.stream(&stream)?, Loaded::Absent)
            && (snapshot.newest()? > 0 || !snapshot.streams(None, 1)?.is_empty());
        Ok((is_missing, snapshot.owner()?, snapshot.events(&stream, 1, 1)?.pop()))
    });
    let Some((is_missing, owner, first)) = tally.readable(read, "who owns the store")? else {
        return Ok(());
    };
    if is_missing {
        tally.findings.push(Finding::of_no_maker(stream));
    }
    let (Some(owner), Some(first)) = (owner, first) else { return Ok(()) };
    let recorded = match first.event.map(|event| event.body) {
        Some(Body::StoreCreated(_, sealed)) => sealed.owner,
        _ => return Ok(()),
    };
    match recorded {
        Some(_) if recorded != owner => {
            let sentence =
                "the tenant's owner, who may answer for it, is not the one that its first event names";
            let finding = Finding::of_stream(finding::ROW_DIFFERS, stream, sentence.to_owned());
            tally.findings.push(finding);
        }
        None if owner.is_some() => {
            let sentence =
                "who owns the store is in none of its events, which began before that was recorded";
            tally.notes.push(Finding::of_stream(finding::NOT_COVERED, stream, sentence.to_owned()));
        }
        _ => {}
    }
    Ok(())
}

/// Every stored key is one that a stream or event has, and the other way round.
fn look_at_keys(store: &Store, tally: &mut Tally) -> Result<(), StoreError> {
    let expected = tally.sums.clone();
    let doubtful = keys::compare(store, &expected, tally)?;
    if doubtful.any() {
        keys::look_back(store, &doubtful, tally)?;
        let mut again = tally.another();
        Walk::new(store, Which::Doubtful(doubtful)).run(&mut again, &|_| ())?;
        tally.findings.append(again.findings);
    }
    Ok(())
}

/// The streams that were touched after a position.
fn part(
    store: &Store,
    since: u64,
    newest: u64,
    options: &AuditOptions<'_>,
    tally: &mut Tally,
) -> Result<Followed, Error> {
    if since > newest {
        let sentence = format!("the log ends at position {newest}, before {since}: it was cut or went back");
        tally.findings.push(Finding::of_store(finding::LOG_SHORT, sentence));
    }
    let mut followed = log::follow(store, Some(since), tally)?;
    let touched = std::mem::take(&mut followed.touched);
    let progress = |seen: u64| report(options, seen, newest.saturating_sub(since).max(seen));
    Walk::new(store, Which::These(touched)).run(tally, &progress)?;
    Ok(followed)
}

fn report(options: &AuditOptions<'_>, seen: u64, of: u64) {
    if let Some(progress) = options.progress {
        progress(seen.min(of), of);
    }
}

/// What this account has seen, and what the report must not be taken to say.
fn note(
    control: &Control,
    since: Option<u64>,
    newest: Option<(u64, Hash)>,
    tally: &mut Tally,
) -> Result<(), StoreError> {
    if let Seen::WentBack { seen, found } = control.seen() {
        let sentence =
            format!("position {seen} of the log is not what this account saw there; it ends at {found}");
        tally.findings.push(Finding::of_store(finding::WENT_BACK, sentence));
    }
    let mut note = |code, sentence| tally.notes.push(Finding::of_store(code, sentence));
    for setting in control.store().unsafe_settings()? {
        note(finding::SETTING, setting);
    }
    if let Some(since) = since {
        let sentence = format!(
            "streams without an event after position {since}, the log before it, keys that lead nowhere \
             and the database's own soundness were not looked at"
        );
        note(finding::NOT_COVERED, sentence);
    }
    if let Some((position, hash)) = newest {
        let seen = match control.seen() {
            Seen::All(seen) => format!("this account saw it up to position {seen}; "),
            Seen::Nothing | Seen::WentBack { .. } | Seen::Unreadable(_) => String::new(),
        };
        let sentence = format!(
            "whoever can write the file can cut its end or rewrite it consistently; {seen}compare position \
             {position}, hash {hash} with what was kept elsewhere"
        );
        note(finding::NOT_COVERED, sentence);
    }
    Ok(())
}
