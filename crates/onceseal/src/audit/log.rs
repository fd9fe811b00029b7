//! The log: every place filled, every event in a stream, every command whole.

use std::collections::BTreeSet;

use onceseal_core::hash::Hash;
use onceseal_core::journal::Stamp;
use onceseal_core::stream::StreamId;
use onceseal_store::raw::{Entry, Logged, Misshapen};
use onceseal_store::{Store, StoreError};

use super::Tally;
use super::finding::{self as code, Finding};

/// Places read at once.
const PAGE: usize = 4096;

/// What following the log came to.
#[derive(Default)]
pub(super) struct Followed {
    /// The newest event of the tenant: its place and hash.
    pub(super) newest: Option<(u64, Hash)>,
    /// The numbers of the streams touched, if they were asked for.
    pub(super) touched: BTreeSet<i64>,
}

/// Follows the log from after a position to its end.
pub(super) fn follow(store: &Store, since: Option<u64>, tally: &mut Tally) -> Result<Followed, StoreError> {
    let mut follower = Follower::new(since, store.tenant().store());
    let mut after = match since {
        Some(since) => i64::try_from(since).unwrap_or(i64::MAX),
        None => i64::MIN,
    };
    loop {
        let page = store.read(|snapshot| snapshot.entries(after, PAGE));
        let what = format!("the log after position {}", follower.last);
        let Some(page) = tally.readable(page, &what)? else { return Ok(follower.followed) };
        for entry in &page {
            follower.entry(entry, tally);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.position,
            _ => break,
        }
    }
    follower.end(tally);
    Ok(follower.followed)
}

/// The command whose events are being read.
enum Open {
    /// None: the next event begins one.
    Between,
    /// It cannot be said, until the next one begins.
    Unknown,
    /// This one, from the event at `first` on; `last` is its newest part.
    Command { first: i64, last: Stamp },
}

struct Follower {
    last: i64,
    open: Open,
    touch: bool,
    /// The stream that the log begins with, until its beginning was seen.
    begins: Option<StreamId>,
    followed: Followed,
}

impl Follower {
    fn new(since: Option<u64>, begins: StreamId) -> Follower {
        let last = since.map_or(0, |since| i64::try_from(since).unwrap_or(i64::MAX));
        // A command may have begun before the first place that is looked at.
        let open = if last > 0 { Open::Unknown } else { Open::Between };
        let begins = since.is_none().then_some(begins);
        Follower { last, open, touch: since.is_some(), begins, followed: Followed::default() }
    }

    fn entry(&mut self, entry: &Entry, tally: &mut Tally) {
        let place = entry.position;
        if place < 1 {
            let sentence = format!("an event stands at position {place}, outside the log");
            tally.findings.push(Finding::of_place(code::POSITION_INVALID, place, sentence));
        } else {
            if place > self.last.saturating_add(1) {
                let (from, to) = (self.last + 1, place - 1);
                let sentence = if from == to {
                    format!("position {from} of the log is empty: an event was removed or moved")
                } else {
                    format!("positions {from} to {to} of the log are empty: events were removed or moved")
                };
                tally.findings.push(Finding::of_place(code::POSITION_MISSING, from, sentence));
            }
            self.last = place;
        }
        match &entry.at {
            Logged::Own { ordinal, stamp, hash } => {
                if self.touch {
                    self.followed.touched.insert(*ordinal);
                }
                self.part(place, stamp, tally);
                if let Some(store) = self.begins.take()
                    && (stamp.stream, stamp.sequence) != (store, 1)
                {
                    tally.findings.push(Finding::of_no_maker(store));
                }
                self.followed.newest = u64::try_from(place).ok().map(|place| (place, *hash));
            }
            Logged::Another => self.end(tally),
            Logged::Misplaced { ordinal } => self.stray(place, *ordinal, "another tenant's", tally),
            Logged::Stray { ordinal } => self.stray(place, *ordinal, "not there", tally),
            Logged::Misshapen(Misshapen(column)) => {
                let sentence =
                    format!("{column} of the event at position {place} does not hold what is written there");
                self.unread(place, code::EVENT_MISSHAPEN, sentence, tally);
            }
        }
    }

    fn stray(&mut self, place: i64, ordinal: i64, whose: &str, tally: &mut Tally) {
        let sentence =
            format!("the event at position {place} belongs to stream number {ordinal}, which is {whose}");
        self.unread(place, code::EVENT_STRAY, sentence, tally);
    }

    /// A place that says nothing of the command it is a part of, nor of the beginning.
    fn unread(&mut self, place: i64, code: &'static str, sentence: String, tally: &mut Tally) {
        tally.findings.push(Finding::of_place(code, place, sentence));
        (self.open, self.begins) = (Open::Unknown, None);
    }

    /// An event is the next part of the command under way, or the first of the
    /// next one.
    fn part(&mut self, place: i64, stamp: &Stamp, tally: &mut Tally) {
        let open = std::mem::replace(&mut self.open, Open::Unknown);
        let (first, fits) = match open {
            Open::Command { first, last } => {
                let same = (last.command, last.of, last.at) == (stamp.command, stamp.of, stamp.at);
                (first, same && stamp.part == last.part + 1)
            }
            Open::Between => (place, stamp.part == 1),
            Open::Unknown if stamp.part == 1 => (place, true),
            Open::Unknown => return,
        };
        if !fits {
            let from = if first == place { "here".to_owned() } else { format!("at position {first}") };
            let sentence = format!("the command {from} does not have all its events one after another");
            tally.findings.push(Finding::of_place(code::COMMAND_BROKEN, first, sentence));
            // What stands here may begin the next one.
            if first != place && stamp.part == 1 {
                self.open = Open::Between;
                self.part(place, stamp, tally);
            }
            return;
        }
        self.open =
            if stamp.part == stamp.of { Open::Between } else { Open::Command { first, last: *stamp } };
    }

    /// No event of the command under way comes any more.
    fn end(&mut self, tally: &mut Tally) {
        if let Open::Command { first, .. } = self.open {
            let sentence = format!("the command at position {first} does not have all its events");
            tally.findings.push(Finding::of_place(code::COMMAND_BROKEN, first, sentence));
            self.open = Open::Between;
        }
    }
}
