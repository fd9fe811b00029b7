//! Keys: what every stream and event is found under, against what is stored.
//!
//! Both sides are summed under a secret hash first; only where the sums differ
//! are keys looked at one by one, each in one snapshot with what it leads to.
//! So a store in use, whose sides were read at different moments, costs time
//! and never a false finding.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use onceseal_core::journal::{Index, Key};
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use onceseal_store::raw::RawKey;
use onceseal_store::read::Snapshot;
use onceseal_store::{Store, StoreError};

use super::Tally;
use super::finding::{self as code, Finding};

/// Streams are spread over so many sums.
const SUMS: usize = 4096;
/// Keys read at once.
const PAGE: usize = 4096;

/// Sums over keys, in any order, by stream.
#[derive(Clone)]
pub(super) struct Sums {
    secrets: [RandomState; 2],
    sums: Vec<u128>,
}

impl Sums {
    /// Nothing summed yet, under new secrets.
    pub(super) fn new() -> Sums {
        Sums { secrets: [RandomState::new(), RandomState::new()], sums: vec![0; SUMS] }
    }

    /// Nothing summed yet, under the same secrets.
    pub(super) fn empty(&self) -> Sums {
        Sums { secrets: self.secrets.clone(), sums: vec![0; SUMS] }
    }

    pub(super) fn add(&mut self, index: i64, bytes: &[u8], ordinal: i64, sequence: i64) {
        let [high, low] =
            self.secrets.each_ref().map(|secret| secret.hash_one((index, bytes, ordinal, sequence)));
        let sum = &mut self.sums[bucket(ordinal)];
        *sum = sum.wrapping_add(u128::from(high) << 64 | u128::from(low));
    }

    pub(super) fn merge(&mut self, other: &Sums) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum = sum.wrapping_add(*more);
        }
    }
}

/// Streams whose keys have to be looked at one by one.
pub(super) struct Doubtful(Vec<bool>);

impl Doubtful {
    fn between(expected: &Sums, stored: &Sums) -> Doubtful {
        Doubtful(expected.sums.iter().zip(&stored.sums).map(|(a, b)| a != b).collect())
    }

    pub(super) fn any(&self) -> bool {
        self.0.contains(&true)
    }

    pub(super) fn has(&self, ordinal: i64) -> bool {
        self.0[bucket(ordinal)]
    }
}

fn bucket(ordinal: i64) -> usize {
    ordinal.rem_euclid(SUMS as i64) as usize
}

/// Sums all stored keys, and says which streams are in doubt. Two streams under
/// a key that only one can have are found on the way.
pub(super) fn compare(store: &Store, expected: &Sums, tally: &mut Tally) -> Result<Doubtful, StoreError> {
    let mut stored = expected.empty();
    let mut last: Option<RawKey> = None;
    loop {
        let page = store.read(|snapshot| snapshot.raw_keys(last.as_ref(), PAGE))?;
        let ended = page.len() < PAGE;
        for key in page {
            stored.add(key.index, &key.bytes, key.ordinal, key.sequence);
            tally.keys += 1;
            let twin = last.take().filter(|last| last.index == key.index && last.bytes == key.bytes);
            if twin.is_some()
                && matches!(index(key.index), Some(Index::Receipt | Index::Ask | Index::Scope | Index::Run))
            {
                store.read(|snapshot| twins(snapshot, &key, tally))?;
            }
            last = Some(key);
        }
        if ended {
            return Ok(Doubtful::between(expected, &stored));
        }
    }
}

/// Looks in one snapshot whether two streams have this key, which only one can
/// have: pages are of different moments.
fn twins(snapshot: &dyn Snapshot, key: &RawKey, tally: &mut Tally) -> Result<(), StoreError> {
    let before = RawKey { ordinal: i64::MIN, ..key.clone() };
    let found = snapshot.raw_keys(Some(&before), 2)?;
    if let [one, other] = &found[..]
        && (one.index, &one.bytes) == (other.index, &other.bytes)
        && let Some(index) = index(key.index)
    {
        let (first, second) = (one.ordinal, other.ordinal);
        let page = snapshot.wholes(second, second, i64::MAX, 1)?;
        let stream = page.streams.first().and_then(|whole| whole.stream.ok());
        let sentence = format!("streams number {first} and {second} have one {index} key between them");
        tally.findings.push(Finding { stream, ..Finding::of_store(code::KEY_REPEATED, sentence) });
    }
    Ok(())
}

/// Looks at every stored key of a stream in doubt: does it lead to something
/// that is found under it?
pub(super) fn look_back(store: &Store, doubtful: &Doubtful, tally: &mut Tally) -> Result<(), StoreError> {
    let mut last: Option<RawKey> = None;
    loop {
        let ended = store.read(|snapshot| {
            let page = snapshot.raw_keys(last.as_ref(), PAGE)?;
            for key in page.iter().filter(|key| doubtful.has(key.ordinal)) {
                if let Some((stream, wrong)) = misleads(snapshot, key)? {
                    let name =
                        index(key.index).map_or_else(|| key.index.to_string(), |index| index.to_string());
                    let sentence = format!("a key of index {name} leads to {wrong}");
                    let finding = Finding::of_store(code::KEY_EXTRA, sentence);
                    let sequence = u64::try_from(key.sequence).ok().filter(|sequence| *sequence > 0);
                    tally.findings.push(Finding { stream, sequence, ..finding });
                }
            }
            last = page.last().cloned().or(last.take());
            Ok(page.len() < PAGE)
        })?;
        if ended {
            return Ok(());
        }
    }
}

/// Where a key should not lead, if so.
fn misleads(snapshot: &dyn Snapshot, key: &RawKey) -> Result<Option<(Option<StreamId>, String)>, StoreError> {
    let number = key.ordinal;
    let page = snapshot.wholes(number, number, key.sequence.saturating_sub(1), 1)?;
    let Some(whole) = page.streams.first() else {
        return Ok(Some((None, format!("stream number {number}, which is not there"))));
    };
    let Ok(stream) = whole.stream else { return Ok(None) };
    let has = |keys: Vec<Key>| {
        keys.iter().any(|own| i64::from(own.index.number()) == key.index && own.bytes == key.bytes)
    };
    if key.sequence == 0 {
        let right = if let Loaded::Row(stored) = &whole.row { has(stored.row.keys()) } else { true };
        return Ok((!right).then(|| (Some(stream), format!("{stream}, whose row does not have it"))));
    }
    let event = whole.events.first().filter(|event| event.sequence == key.sequence);
    let right = match event.map(|event| event.event.as_ref().map(|event| event.event.as_ref())) {
        Some(Ok(Some(event))) => has(event.keys()),
        // What does not decode is named where its stream is checked.
        Some(Ok(None) | Err(_)) => true,
        None => false,
    };
    let wrong = || (Some(stream), format!("event {} of {stream}, which does not have it", key.sequence));
    Ok((!right).then(wrong))
}

/// Looks up every key that a stream should have.
pub(super) fn look_up(
    snapshot: &dyn Snapshot,
    stream: StreamId,
    ordinal: i64,
    keys: &BTreeMap<Key, i64>,
    tally: &mut Tally,
) -> Result<(), StoreError> {
    for (key, sequence) in keys {
        let index = key.index;
        let (code, wrong) = match snapshot.raw_key(key, ordinal)? {
            Some(found) if found == *sequence => continue,
            Some(found) => (code::KEY_DIFFERS, format!("its {index} key leads to event {found}")),
            None => (code::KEY_MISSING, format!("it is not found under its {index} key")),
        };
        let what = if *sequence == 0 { "row".to_owned() } else { format!("event {sequence}") };
        let finding = Finding::of_stream(code, stream, format!("{what} of {stream}: {wrong}"));
        let sequence = u64::try_from(*sequence).ok().filter(|sequence| *sequence > 0);
        tally.findings.push(Finding { sequence, ..finding });
    }
    Ok(())
}

fn index(number: i64) -> Option<Index> {
    Index::ALL.iter().copied().find(|index| i64::from(index.number()) == number)
}
