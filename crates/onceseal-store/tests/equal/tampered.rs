//! Stores that are broken on purpose: none of them is taken for one that is alike.

use std::thread;

use onceseal_core::journal::Payload;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::Range;
use onceseal_store::backend::Changes;
use onceseal_store::conformance::tamper::{self, Distort, Found, Tamper};
use onceseal_store::read::{Hit, Page};
use onceseal_store::{Parts, StoreError};

use crate::batches::Sequence;
use crate::playing::Ground;
use crate::stores::Change;

/// How many sequences it takes at most.
const SEQUENCES: u64 = 16;

/// Its clock is ahead by as little as there is.
struct Ahead;

impl Tamper for Ahead {
    fn now(&mut self, now: Timestamp) -> Timestamp {
        now + Span::micros(1)
    }
}

/// Two events of a batch are put into the log in another order.
struct Exchanged;

impl Tamper for Exchanged {
    fn saving(&mut self, mut changes: Changes) -> Result<Option<Changes>, StoreError> {
        let streams: Vec<_> = changes.events.iter().map(|event| event.stamp.stream).collect();
        if let Some(at) = streams.windows(2).position(|two| two[0] != two[1]) {
            changes.events.swap(at, at + 1);
        }
        Ok(Some(changes))
    }
}

/// A lease that is renewed is not, unless something happens to it too.
struct Unrenewed;

impl Tamper for Unrenewed {
    fn saving(&mut self, mut changes: Changes) -> Result<Option<Changes>, StoreError> {
        changes.rows.retain(|row| row.before.as_ref().is_none_or(|before| before.head != row.after.head));
        Ok((!changes.rows.is_empty()).then_some(changes))
    }
}

/// The last of a range is not found.
struct Short;

impl Tamper for Short {
    fn found(&mut self, _range: &Range, mut found: Found) -> Found {
        found.pop();
        found
    }
}

/// What commits some of the commands is acknowledged and lost: the same ones, however
/// many of them there was time for in one batch.
struct Lost;

impl Tamper for Lost {
    fn saving(&mut self, changes: Changes) -> Result<Option<Changes>, StoreError> {
        let is_lost = changes.events.iter().any(|event| event.stamp.command[0] < 4);
        Ok((!is_lost).then_some(changes))
    }
}

/// A text is read with one letter more.
struct Longer;

impl Distort for Longer {
    fn text(&self, text: Option<Payload>) -> Result<Option<Payload>, StoreError> {
        Ok(text.map(|payload| Payload { text: payload.text + " ", ..payload }))
    }
}

/// Of keys that are equal the newest is always the first.
struct Turned;

impl Distort for Turned {
    fn hits(&self, page: &Page, mut hits: Vec<Hit>) -> Result<Vec<Hit>, StoreError> {
        if !page.newest_first && hits.len() < page.limit {
            hits.sort_by(|one, other| one.key.cmp(&other.key).then(other.stream.cmp(&one.stream)));
        }
        Ok(hits)
    }
}

fn backend(parts: Parts, tamper: impl Tamper + 'static) -> Parts {
    Parts { backend: tamper::backend(parts.backend, tamper), ..parts }
}

fn readers(parts: Parts, distort: impl Distort + 'static) -> Parts {
    Parts { readers: tamper::readers(parts.readers, distort), ..parts }
}

type Broken = (&'static str, fn(Parts) -> Parts);

const BROKEN: [Broken; 7] = [
    ("a clock that is ahead", |parts| backend(parts, Ahead)),
    ("a log in another order", |parts| backend(parts, Exchanged)),
    ("a renewal that is lost", |parts| backend(parts, Unrenewed)),
    ("a range that is cut short", |parts| backend(parts, Short)),
    ("a commit that is lost", |parts| backend(parts, Lost)),
    ("a text that is another", |parts| readers(parts, Longer)),
    ("equal keys in another order", |parts| readers(parts, Turned)),
];

#[test]
fn a_store_that_is_not_alike_is_found_and_the_shortest_beginning_told() {
    let ground = Ground::new();
    thread::scope(|scope| {
        for (n, broken) in BROKEN.into_iter().enumerate() {
            let ground = &ground;
            scope.spawn(move || is_found(ground, ["sqlite", "postgres"][n % 2], broken));
        }
    });
}

fn is_found(ground: &Ground, of: &'static str, (name, parts): Broken) {
    let change = Change { of, parts };
    let found = (0..SEQUENCES).find_map(|seed| {
        let sequence = Sequence::drawn(seed);
        ground.differs(&sequence, change).then_some((seed, sequence))
    });
    let (seed, sequence) = found.unwrap_or_else(|| panic!("{name} is not found"));
    let told = ground.play(seed, &sequence, change).expect_err("it was found");
    println!("{name}: {told:.400}\n");
    assert!(told.starts_with(&format!("seed {seed}: after ")), "{told}");
    assert!(told.contains(of), "{told}");
}
