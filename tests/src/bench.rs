//! A store on a disk whose calls can be made to fail, and what must hold
//! afterwards whatever the store answered.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceseal_core::action::Reach;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_store::clock::ManualClock;
use onceseal_store::executor::Outcome;
use onceseal_store::read::Counts;
use onceseal_store::{SCHEMA_VERSION, StoreError};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::outage::{Case, Day};
use crate::place;
use crate::refold;
use crate::shop::{Shop, clock, options};
use crate::vfs::{Loss, Recorder};
use crate::workload;

/// How many of the last disks without power are examined after a fault.
const LAST: usize = 12;

/// A shop whose store lies on a recorded disk.
pub struct Bench {
    /// The shop.
    pub shop: Shop,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// The database.
    pub path: PathBuf,
    recorder: Recorder,
    keys: Vec<(&'static str, String)>,
    directory: TempDir,
}

impl Bench {
    /// An empty shop with its policy.
    ///
    /// # Panics
    /// If it cannot be had: nothing fails yet.
    #[must_use]
    pub fn new(recorder: Recorder) -> Bench {
        let directory = place::fast();
        let path = place::database(directory.path(), "bench");
        let clock = clock();
        let _earlier = recorder.take_log();
        let mut shop = open(&path, &clock, recorder).expect("opened");
        shop.activate().expect("active");
        Bench { shop, clock, path, recorder, keys: Vec::new(), directory }
    }

    /// Closes the store and opens it again: nothing is in memory any more.
    ///
    /// # Errors
    /// The store's; it is closed then.
    pub fn reopen(&mut self) -> Result<(), StoreError> {
        self.shop.store.close();
        let promises = self.shop.promises.clone();
        self.shop = open(&self.path, &self.clock, self.recorder)?;
        self.shop.promises = promises;
        Ok(())
    }

    /// Has another connection bring the log into the database, so that the next
    /// commit begins the log anew.
    pub fn checkpoint(&self) {
        self.another("PRAGMA wal_checkpoint(PASSIVE)");
    }

    /// Has another connection write, so that the store's next batch reads all it
    /// needs from disk.
    pub fn touch(&self) {
        self.another(&format!("PRAGMA user_version = {SCHEMA_VERSION}"));
    }

    fn another(&self, sql: &str) {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let other = Connection::open_with_flags_and_vfs(&self.path, flags, self.recorder.name());
        other.and_then(|other| other.execute_batch(sql)).expect("nothing fails yet");
    }

    /// Serves so many customers.
    pub fn serve(&mut self, customers: Range<usize>) {
        for n in customers {
            self.keys.extend(workload::serve(&mut self.shop, &self.clock, n));
        }
    }

    /// The command that refunds a payment; its effect is looked at in the end.
    pub fn refund(&mut self, payment: &str) -> Command {
        self.keys.push(("refund", payment.to_owned()));
        self.shop.refund(payment)
    }

    /// The same for an action that needs an answer first.
    pub fn payout(&mut self, payment: &str) -> Command {
        self.keys.push(("payout", payment.to_owned()));
        Command::Run(Box::new(self.shop.action("payout", payment, Reach::Executing)))
    }

    /// How much is stored.
    ///
    /// # Panics
    /// If the store cannot be read.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shop.store.read(|snapshot| snapshot.counts()).expect("readable")
    }

    /// After the fault is over: the store goes on by itself, is what its events
    /// say, and has all it promised: now, opened again, and if the power goes.
    ///
    /// # Panics
    /// If any of it is not so. `what` says in which case.
    pub fn settle_up(mut self, what: &str) {
        let next = self.refund("afterwards");
        let went_on = self.shop.run(next);
        assert!(matches!(went_on, Ok(Reply::Attempt(_))), "{what}: does not go on: {went_on:?}");
        self.check(&format!("{what}, at once"));
        self.shop.store.close();
        let promises = std::mem::take(&mut self.shop.promises);
        let log = self.recorder.take_log();
        self.shop =
            Shop::open(&self.path, &options(&self.clock, None)).expect("opened by the stock database");
        self.shop.promises = promises.clone();
        self.check(&format!("{what}, opened again"));
        self.shop.store.close();
        let day = Day { log, promises, keys: self.keys, clock: self.clock };
        let mut lost: Vec<Case> = day.cases(0).into_iter().filter(|case| case.loss == Loss::Lost).collect();
        let found = day.examine(&lost.split_off(lost.len().saturating_sub(LAST)));
        assert!(found.faults.is_empty(), "{what}, without power: {:#?}", found.faults);
        drop(self.directory);
    }

    fn check(&self, what: &str) {
        let faults = refold::faults(&self.shop.store);
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        for promise in &self.shop.promises {
            let stands = self.shop.store.read(|snapshot| promise.stands(snapshot)).expect("readable");
            assert!(stands, "{what}: lost {promise}");
        }
    }
}

fn open(path: &Path, clock: &Arc<ManualClock>, recorder: Recorder) -> Result<Shop, StoreError> {
    let shop = Shop::open(path, &options(clock, Some(recorder.name())))?;
    Ok(shop.telling(move |promises| recorder.told(promises.len())))
}

/// Whether an answer says truly what is in the store: `before` is what it held
/// before the command.
///
/// # Panics
/// If the answer says that nothing was recorded and something was, or is none
/// that a failing disk explains.
pub fn is_true(bench: &Bench, outcome: &Outcome, before: Counts, what: &str) {
    match outcome {
        Ok(_) => {}
        Err(error) if error.code() == Code::CommitUnknown => {}
        Err(error) if error.code() == Code::StoreFailed => {
            assert_eq!(bench.counts(), before, "{what}: said to be nothing, and is something");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}
