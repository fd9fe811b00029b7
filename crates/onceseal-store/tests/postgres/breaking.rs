//! Stores that break the protocol on purpose: what the tests of it look at differs
//! where locks are not taken, where the clock or the rows are read before they are
//! held, and where the last word is not asked for.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal_core::code::Code;
use onceseal_core::journal::{Key, Payload};
use onceseal_core::lock::Locks;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Range, Read};
use onceseal_servers::{Database, server};
use onceseal_store::backend::{Backend, Fault, Loader, Needs, Work};
use onceseal_store::{Parts, Store, StoreError};

use crate::base::*;
use crate::fencing::{both_take_what_overlaps, decided};
use crate::waiting::{refusal_after_a_wait, told_once_the_lease_is_over};

/// What is not done as it has to be.
#[derive(Clone, Copy, PartialEq)]
enum Breach {
    NoLocks,
    ClockFirst,
    RowsFirst,
}

fn broken(parts: Parts, breach: Breach) -> Parts {
    let all = |backends: Vec<_>| backends.into_iter().map(|backend| of(backend, breach)).collect();
    let Parts { backend, helping, waiting, .. } = parts;
    let (backend, helping, waiting) = (of(backend, breach), all(helping), all(waiting));
    Parts { backend, helping, waiting, ..parts }
}

fn of(backend: Box<dyn Backend>, breach: Breach) -> Box<dyn Backend> {
    Box::new(Broken { backend, breach })
}

struct Broken {
    backend: Box<dyn Backend>,
    breach: Breach,
}

impl Backend for Broken {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let breach = self.breach;
        self.backend
            .batch(&mut |loader| work(&mut BrokenLoader { loader, breach, now: None, rows: HashMap::new() }))
    }

    fn accept_clock(&mut self) {
        self.backend.accept_clock();
    }
}

struct BrokenLoader<'a> {
    loader: &'a mut dyn Loader,
    breach: Breach,
    now: Option<Timestamp>,
    rows: HashMap<StreamId, Loaded>,
}

fn unlocked(needs: &Needs) -> Needs {
    Needs { locks: Locks::default(), reads: needs.reads.clone() }
}

/// The server is on this machine.
fn clock() -> Option<Timestamp> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    Timestamp::from_micros(since.as_micros() as i64)
}

impl Loader for BrokenLoader<'_> {
    fn locks(&self) -> bool {
        self.loader.locks()
    }

    fn admit(&mut self, needs: &[Needs]) -> Result<Vec<bool>, StoreError> {
        let without: Vec<Needs> = needs.iter().map(unlocked).collect();
        match self.breach {
            Breach::NoLocks => return self.loader.admit(&without),
            Breach::ClockFirst => self.now = clock(),
            Breach::RowsFirst => {
                self.loader.admit(&without)?;
                for read in without.iter().flat_map(|needs| &needs.reads) {
                    if let Read::Stream(stream) = read {
                        self.rows.insert(*stream, self.loader.stream(stream)?);
                    }
                }
            }
        }
        self.loader.admit(needs)
    }

    fn more(&mut self, needs: &Needs) -> Result<Locks, StoreError> {
        if self.breach == Breach::NoLocks {
            return self.loader.more(&unlocked(needs));
        }
        self.loader.more(needs)
    }

    fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(|| self.loader.now())
    }

    fn stream(&mut self, stream: &StreamId) -> Result<Loaded, StoreError> {
        let early = self.rows.get(stream).cloned();
        early.map_or_else(|| self.loader.stream(stream), Ok)
    }

    fn range(&mut self, range: &Range) -> Result<Vec<(Vec<u8>, StreamId)>, StoreError> {
        self.loader.range(range)
    }

    fn event(&mut self, key: &Key) -> Result<Option<(StreamId, u64)>, StoreError> {
        self.loader.event(key)
    }

    fn own(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.loader.own(key)
    }

    fn payload(&mut self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        self.loader.payload(stream, sequence)
    }
}

#[test]
fn without_locks_two_have_what_overlaps() {
    assert_eq!(both_take_what_overlaps(|parts| parts), 1);
    assert_eq!(both_take_what_overlaps(|parts| broken(parts, Breach::NoLocks)), 2);
}

#[test]
fn with_the_clock_read_before_the_locks_what_is_over_goes_on() {
    let told = told_once_the_lease_is_over(|parts| broken(parts, Breach::ClockFirst));
    assert_eq!(told, Some(Code::InProgress));
}

#[test]
fn with_rows_read_before_the_locks_what_is_free_is_refused() {
    let told = refusal_after_a_wait(|parts| broken(parts, Breach::RowsFirst));
    assert_eq!(told, Some(Code::InProgress));
}

/// How many of two that take no locks get a key at the same moment.
fn get_the_key(database: &Database) -> usize {
    let (latch, name) = (Latch::default(), "k");
    let (_opens, inside) = (Opens(latch.clone()), latch.clone());
    let one = Store::of(broken(parts(database, "one"), Breach::NoLocks)).expect("opened");
    let taken = started(&one, name, 1);
    assert_eq!(code(&one.run(failed(&taken))), None);
    let two = decided(broken(parts(database, "two"), Breach::NoLocks), move |command| {
        if is_about(command, name) {
            inside.pass();
        }
    });
    let two = Store::of(two).expect("opened");
    let second = two.submit(reserve(name, 2)).expect("submitted");
    latch.reached();
    let first = one.run(reserve(name, 1));
    latch.open();
    [first, second.wait()].iter().filter(|answer| code(answer).is_none()).count()
}

#[test]
fn without_the_last_word_who_takes_no_locks_has_what_another_has() {
    let database = server().new_database();
    assert_eq!(get_the_key(&database), 1, "rows are compared, and an event has one place");
    let careless = server().new_database();
    drop(parts(&careless, "made"));
    careless.sql(
        "ALTER TABLE onceseal.events DROP CONSTRAINT events_pkey; \
         ALTER TABLE onceseal.log DROP CONSTRAINT log_stream_sequence_key; \
         ALTER TABLE onceseal.keys DROP CONSTRAINT keys_pkey; \
         DO $do$ BEGIN EXECUTE replace(pg_get_functiondef('onceseal.save'::regproc), \
         'changed <> cardinality(moved)', 'false'); END $do$",
    );
    assert_eq!(get_the_key(&careless), 2);
}
