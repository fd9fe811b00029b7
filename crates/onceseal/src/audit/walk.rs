//! Walking over streams: pages of whole streams, each page in one snapshot,
//! shared out among threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use onceseal_core::code::Code;
use onceseal_core::stream::{StreamId, Tenant};
use onceseal_store::raw::{Misshapen, Whole};
use onceseal_store::read::Snapshot;
use onceseal_store::{Store, StoreError};

use super::Tally;
use super::finding::{self as code, Finding};
use super::keys::{Doubtful, look_up};
use super::sane;
use super::stream::{Check, Followed};

/// Streams handed to a thread at once.
const SHARE: usize = 256;
/// Events read at once.
const PAGE: usize = 2048;

/// Which streams are walked over.
pub(super) enum Which {
    /// All.
    All,
    /// These.
    These(BTreeSet<i64>),
    /// Those whose keys are in doubt.
    Doubtful(Doubtful),
}

/// A walk over streams, shared by the threads that walk.
pub(super) struct Walk<'a> {
    store: &'a Store,
    tenant: &'a Tenant,
    which: Which,
    /// The last stream handed out.
    last: Mutex<i64>,
    /// Events seen.
    seen: AtomicU64,
}

/// Where a page ended inside a stream.
struct Cut {
    ordinal: i64,
    sequence: i64,
    check: Option<Check>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(store: &'a Store, which: Which) -> Walk<'a> {
        Walk { store, tenant: store.tenant(), which, last: Mutex::new(i64::MIN), seen: AtomicU64::new(0) }
    }

    /// Takes streams and checks them until none is left.
    pub(super) fn run(&self, tally: &mut Tally, progress: &dyn Fn(u64)) -> Result<(), StoreError> {
        loop {
            let share = self.share();
            let Some(share) = tally.readable(share, "the list of streams")?.flatten() else { return Ok(()) };
            let before = tally.events;
            for (from, to) in spans(&share) {
                self.span(from, to, tally)?;
            }
            let seen = tally.events - before;
            progress(self.seen.fetch_add(seen, Ordering::Relaxed) + seen);
        }
    }

    /// The next streams, ascending; `None` at the end.
    fn share(&self) -> Result<Option<Vec<i64>>, StoreError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut share = match &self.which {
                Which::These(these) => {
                    let rest = (std::ops::Bound::Excluded(*last), std::ops::Bound::Unbounded);
                    these.range(rest).take(SHARE).copied().collect()
                }
                Which::All | Which::Doubtful(_) => {
                    self.store.read(|snapshot| snapshot.ordinals(*last, SHARE))?
                }
            };
            match share.last() {
                Some(newest) => *last = *newest,
                None => return Ok(None),
            }
            if let Which::Doubtful(doubtful) = &self.which {
                share.retain(|ordinal| doubtful.has(*ordinal));
            }
            if !share.is_empty() {
                return Ok(Some(share));
            }
        }
    }

    fn span(&self, from: i64, to: i64, tally: &mut Tally) -> Result<(), StoreError> {
        let mut cut = Cut { ordinal: from, sequence: i64::MIN, check: None };
        loop {
            let (ordinal, sequence) = (cut.ordinal, cut.sequence);
            match self.store.read(|snapshot| self.page(snapshot, to, cut, tally)) {
                Ok(None) => return Ok(()),
                Ok(Some(next)) if (next.ordinal, next.sequence) > (ordinal, sequence) => cut = next,
                // A sequence that is no number: the event has been named, go on after its stream.
                Ok(Some(next)) => cut = Cut { ordinal: next.ordinal + 1, sequence: i64::MIN, check: None },
                Err(error) if error.code() == Code::Corrupt && ordinal < to => {
                    // One of them cannot be read: each by itself.
                    return (ordinal..=to).try_for_each(|ordinal| self.span(ordinal, ordinal, tally));
                }
                Err(error) => {
                    let what = format!("stream number {ordinal} or what belongs to it");
                    return tally.readable(Err(error), &what).map(|_: Option<()>| ());
                }
            }
        }
    }

    /// Checks one page of streams, from where the last one was cut.
    fn page(
        &self,
        snapshot: &dyn Snapshot,
        to: i64,
        cut: Cut,
        tally: &mut Tally,
    ) -> Result<Option<Cut>, StoreError> {
        let page = snapshot.wholes(cut.ordinal, to, cut.sequence, PAGE)?;
        let mut begun = cut.check.map(|check| (cut.ordinal, check));
        let mut next = None;
        let last = page.streams.len().saturating_sub(1);
        for (place, whole) in page.streams.iter().enumerate() {
            let more = page.more && place == last;
            let begun = begun.take().filter(|(ordinal, _)| *ordinal == whole.ordinal).map(|(_, check)| check);
            let check = match whole.stream {
                Ok(stream) => {
                    let mut check = begun.unwrap_or_else(|| Check::new(self.tenant, stream));
                    whole.events.iter().for_each(|event| check.event(event, tally));
                    Some((stream, check))
                }
                Err(Misshapen(column)) => {
                    let sentence = format!(
                        "{column} of stream number {} does not hold what is written there",
                        whole.ordinal
                    );
                    tally.findings.push(Finding::of_store(code::STREAM_MISSHAPEN, sentence));
                    None
                }
            };
            match (more, check) {
                (true, check) => {
                    let sequence = whole.events.last().map_or(i64::MAX, |event| event.sequence);
                    let check = check.map(|(_, check)| check);
                    next = Some(Cut { ordinal: whole.ordinal, sequence, check });
                }
                (false, Some((stream, check))) => self.finish(snapshot, whole, stream, check, tally)?,
                (false, None) => {}
            }
        }
        Ok(next)
    }

    fn finish(
        &self,
        snapshot: &dyn Snapshot,
        whole: &Whole,
        stream: StreamId,
        check: Check,
        tally: &mut Tally,
    ) -> Result<(), StoreError> {
        let Followed { row, keys, moves } = check.finish(&whole.row, tally);
        if let Some(row) = row {
            sane::judge(self.tenant, stream, row, &moves, snapshot, tally)?;
        }
        if !matches!(self.which, Which::All) {
            return look_up(snapshot, stream, whole.ordinal, &keys, tally);
        }
        for (key, sequence) in &keys {
            tally.sums.add(key.index.number().into(), &key.bytes, whole.ordinal, *sequence);
        }
        Ok(())
    }
}

/// Runs of numbers that follow on each other, each with its first and last.
fn spans(numbers: &[i64]) -> Vec<(i64, i64)> {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::spans;

    #[test]
    fn spans_are_the_runs() {
        assert_eq!(spans(&[-1, 0, 1, 5, 7, 8, i64::MAX]), [(-1, 1), (5, 5), (7, 8), (i64::MAX, i64::MAX)]);
        assert_eq!(spans(&[]), []);
    }
}
