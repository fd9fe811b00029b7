//! Every disk that a power loss may leave behind, each opened by the stock
//! database and examined.
//!
//! Disks with equal bytes are examined once, for all the moments they stand
//! for, and by the promises made until the last of these. Disks whose tables
//! are equal are checked in full once; opened, checked for integrity and
//! written to is each of them.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onceseal_core::action::Reach;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::EffectState;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_store::clock::ManualClock;
use onceseal_store::executor::Outcome;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::place;
use crate::promise::Promise;
use crate::refold;
use crate::shop::{Shop, options};
use crate::vfs::{Disk, Loss, Op};

/// What was done to the disk, and what was promised meanwhile.
#[derive(Debug, Clone)]
pub struct Day {
    /// Everything done to the files, and when the caller was told.
    pub log: Vec<Op>,
    /// Everything promised, in order.
    pub promises: Vec<Promise>,
    /// Actions and payments whose effects were attempted.
    pub keys: Vec<(&'static str, String)>,
    /// The clock as it stood at the end.
    pub clock: Arc<ManualClock>,
}

/// One disk to be examined.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// After so many operations.
    pub at: usize,
    /// What became of what was not synced.
    pub loss: Loss,
    /// Promises made until the last moment at which the disk looks so.
    pub told: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Disks examined.
    pub images: usize,
    /// Different contents among them.
    pub contents: usize,
    /// What is wrong, with the case.
    pub faults: Vec<(Case, String)>,
}

impl Day {
    /// Every disk that is lost or kept, after every operation; and a torn one at
    /// each moment at which something is not synced, `torn` of them when a sync
    /// comes next.
    #[must_use]
    pub fn cases(&self, torn: u64) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let (mut lost, mut kept, mut told) = (0, 1, 0);
        let mut open = 0..0;
        let mut disk = Disk::default();
        cases.push(Case { at: 0, loss: Loss::Lost, told });
        cases.push(Case { at: 0, loss: Loss::Kept, told });
        for (at, op) in (1..).zip(&self.log) {
            let more_durable = disk.apply(op);
            if let Op::Told(promises) = op {
                told = *promises;
                for case in open.clone().chain([lost, kept]) {
                    cases[case].told = told;
                }
                continue;
            }
            if more_durable {
                lost = cases.len();
                cases.push(Case { at, loss: Loss::Lost, told });
            }
            if op.changes_files() {
                kept = cases.len();
                cases.push(Case { at, loss: Loss::Kept, told });
            }
            open = cases.len()..cases.len();
            if disk.has_unsynced() {
                let sync_next = matches!(self.log.get(at), Some(Op::Sync(_) | Op::SyncFailed(_)));
                let seeds = (0..if sync_next { torn } else { 1 }).map(|n| at as u64 * torn + n);
                cases.extend(seeds.map(|seed| Case { at, loss: Loss::Torn(seed), told }));
                open.end = cases.len();
            }
        }
        cases
    }

    /// The last moment, with everything unsynced lost.
    #[must_use]
    pub fn end(&self) -> Case {
        Case { at: self.log.len(), loss: Loss::Lost, told: self.promises.len() }
    }

    /// Examines each case, on as many threads as there are processors.
    ///
    /// # Panics
    /// If the examination itself cannot be done.
    #[must_use]
    pub fn examine(&self, cases: &[Case]) -> Findings {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let next = AtomicUsize::new(0);
        let known = Mutex::new(HashMap::new());
        let faults = Mutex::new(Vec::new());
        let directory = place::fast();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let path = place::database(directory.path(), &thread.to_string());
                let examiner = Examiner { day: self, path, known: &known };
                let (next, faults) = (&next, &faults);
                scope.spawn(move || {
                    let (mut disk, mut applied) = (Disk::default(), 0);
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        for op in &self.log[applied..case.at] {
                            disk.apply(op);
                        }
                        applied = case.at;
                        let found = examiner.examine(&disk, case);
                        lock(faults).extend(found.into_iter().map(|fault| (*case, fault)));
                    }
                });
            }
        });
        let faults = std::mem::take(&mut *lock(&faults));
        Findings { images: cases.len(), contents: lock(&known).len(), faults }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a store with certain contents does, whatever its files look like.
#[derive(Debug)]
struct Verdict {
    faults: Vec<String>,
    /// Of each promise of the day, whether it stands.
    stand: Vec<bool>,
    /// What asking for each key again came to.
    again: BTreeMap<StreamId, Again>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Again {
    Refused,
    Attempt(u64),
    Asked,
    Other(String),
}

impl From<&Outcome> for Again {
    fn from(outcome: &Outcome) -> Again {
        match outcome {
            Ok(Reply::Attempt(attempt)) => Again::Attempt(attempt.fence),
            Ok(Reply::ApprovalNeeded { .. }) => Again::Asked,
            Ok(Reply::Refused(refusal))
                if matches!(refusal.code, Code::Duplicate | Code::InProgress | Code::Ambiguous) =>
            {
                Again::Refused
            }
            other => Again::Other(format!("{other:?}")),
        }
    }
}

struct Examiner<'a> {
    day: &'a Day,
    path: PathBuf,
    known: &'a Mutex<HashMap<u64, Arc<Verdict>>>,
}

impl Examiner<'_> {
    fn examine(&self, disk: &Disk<'_>, case: &Case) -> Vec<String> {
        let directory = self.path.parent().expect("made with a directory");
        disk.image(case.loss).write(directory).expect("the image is written");
        let mut shop = match Shop::open(&self.path, &options(&self.day.clock, None)) {
            Ok(shop) => shop,
            Err(error) => return vec![format!("cannot be opened: {error}")],
        };
        let content = match dump(&self.path) {
            Ok(content) => content,
            Err(error) => return vec![format!("cannot be read: {error}")],
        };
        let known = lock(self.known).get(&content).cloned();
        let verdict = match known {
            Some(verdict) => {
                let mut faults =
                    shop.store.read(|snapshot| snapshot.integrity()).unwrap_or_else(|e| vec![e.to_string()]);
                faults.extend(self.use_once(&mut shop, &verdict, case));
                if !faults.is_empty() {
                    return faults;
                }
                verdict
            }
            None => {
                let verdict = Arc::new(self.judge(&mut shop));
                lock(self.known).insert(content, verdict.clone());
                verdict
            }
        };
        shop.store.close();
        self.held_against(&verdict, case.told)
    }

    /// Everything that can be said of a content.
    fn judge(&self, shop: &mut Shop) -> Verdict {
        let mut faults = refold::faults(&shop.store);
        let stand = shop.store.read(|snapshot| {
            self.day.promises.iter().map(|promise| promise.stands(snapshot)).collect::<Result<_, _>>()
        });
        let stand = stand.unwrap_or_else(|error| {
            faults.push(error.to_string());
            Vec::new()
        });
        if let Err(error) = shop.activate() {
            faults.push(format!("cannot be written: {error}"));
        }
        let commands = self.day.keys.iter().map(|key| again(shop, key).1).collect();
        let outcomes = shop.run_all(commands).unwrap_or_else(|error| {
            faults.push(error.to_string());
            Vec::new()
        });
        let effects = self.day.keys.iter().map(|key| again(shop, key).0);
        let again = effects.zip(outcomes.iter().map(Again::from)).collect();
        faults.extend(refold::faults(&shop.store).into_iter().map(|fault| format!("after use: {fault}")));
        Verdict { faults, stand, again }
    }

    /// Asks for one key again: a store that came back is written to.
    fn use_once(&self, shop: &mut Shop, verdict: &Verdict, case: &Case) -> Option<String> {
        let (effect, command) = again(shop, self.day.keys.get(case.at % self.day.keys.len().max(1))?);
        if let Err(error) = shop.activate() {
            return Some(format!("cannot be written: {error}"));
        }
        let (now, before) = (Again::from(&shop.run(command)), verdict.again.get(&effect));
        (before != Some(&now)).then(|| format!("equal contents answer {now:?} and {before:?}"))
    }

    /// What is wrong with a content, if so many promises were made.
    fn held_against(&self, verdict: &Verdict, told: usize) -> Vec<String> {
        let mut faults = verdict.faults.clone();
        let promises = &self.day.promises[..told];
        let lost = promises.iter().zip(&verdict.stand).filter(|(_, stands)| !**stands);
        faults.extend(lost.map(|(promise, _)| format!("lost: {promise}")));
        for promise in promises {
            let Promise::Attempt { effect, fence, .. } = promise else { continue };
            let failed = Promise::Outcome { effect: *effect, fence: *fence, state: EffectState::Failed };
            match verdict.again.get(effect) {
                Some(Again::Refused) => {}
                Some(Again::Attempt(next)) if next > fence && self.day.promises.contains(&failed) => {}
                other => faults.push(format!("{promise}: asked for again it is {other:?}")),
            }
        }
        faults
    }
}

/// The effect of a key, and the command that asks for it again.
fn again(shop: &Shop, (name, payment): &(&str, String)) -> (StreamId, Command) {
    let run = shop.action(name, payment, Reach::Executing);
    (shop.store.tenant().effect(&format!("{name}:{payment}")), Command::Run(Box::new(run)))
}

/// A hash of every table as it is.
fn dump(path: &Path) -> rusqlite::Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut hasher = DefaultHasher::new();
    for table in ["tenants", "streams", "events", "payloads", "keys"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Null => 0.hash(&mut hasher),
                    ValueRef::Integer(n) => (1, n).hash(&mut hasher),
                    ValueRef::Real(n) => (2, n.to_bits()).hash(&mut hasher),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => (3, bytes).hash(&mut hasher),
                }
            }
        }
        table.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
