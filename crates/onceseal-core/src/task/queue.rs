//! The queue of a run: who is at work, and who is next.

use crate::id::RunId;
use crate::journal::{Index, Key};
use crate::task::row::{AT_WORK, FIRST_IN_LINE, IN_LINE};
use crate::view::Range;

/// As far as is looked down the line: who stands behind so many that cannot run
/// yet waits until one of them can.
pub(super) const FURTHEST: usize = 1_024;
/// As far as is looked at first.
pub(super) const NEAREST: usize = 16;

/// The tasks of a run that are at work.
#[must_use]
pub fn at_work(run: RunId) -> Range {
    ranks(run, AT_WORK, AT_WORK, usize::MAX)
}

/// The tasks of a run that are at work, and behind them those that wait for their
/// turn, the next one first.
#[must_use]
pub fn at_work_or_in_line(run: RunId) -> Range {
    ranks(run, AT_WORK, IN_LINE, usize::MAX)
}

/// Those that wait for their turn, the next one first.
pub(super) fn in_line(run: RunId, most: usize) -> Range {
    ranks(run, FIRST_IN_LINE, IN_LINE, most)
}

fn ranks(run: RunId, from: u8, to: u8, limit: usize) -> Range {
    let from = Key::of(Index::Queue, &[&run.0, &[from]]);
    let to = Key::of(Index::Queue, &[&run.0, &[to], &[0xff; 12]]);
    Range { index: Index::Queue, from: from.bytes, to: to.bytes, limit }
}
