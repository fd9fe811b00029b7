//! A process is killed at a named point, a hundred times each: the store it
//! leaves is whole, has all that was acknowledged, and going on leads to
//! exactly one execution of every effect (P02, P03, P05, P07, P12).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use onceseal_core::journal::{Row, Stored};
use onceseal_core::stream::StreamId;
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::read::row_of;
use onceseal_tests::chance::Chance;
use onceseal_tests::place::{self, DATABASE};
use onceseal_tests::promise::Promise;
use onceseal_tests::refold;
use onceseal_tests::shop::{Shop, options};
use tempfile::TempDir;

/// Kills at each point.
const KILLS: u64 = 100;
/// Kills of processes that follow each other on one store.
const IN_A_ROW: u64 = 10;
/// Customers at most between two kills.
const CUSTOMERS: u64 = 12;
/// Between two processes: leases end, requests do not.
const MINUTES_5: i64 = 300_000_000;
const SIGKILL: i32 = 9;

/// One store, and the processes that died of it.
struct Scene {
    directory: TempDir,
    database: PathBuf,
    wall_us: i64,
    served: u64,
    payments: usize,
    promises: Vec<Promise>,
}

impl Scene {
    fn new() -> Scene {
        let directory = place::fast();
        let database = place::database(directory.path(), "store");
        Scene {
            directory,
            database,
            wall_us: 1_767_225_600_000_000,
            served: 0,
            payments: 0,
            promises: Vec::new(),
        }
    }

    fn ledger(&self) -> PathBuf {
        self.directory.path().join("ledger")
    }

    /// Lets a process serve; answers whether it was killed. Otherwise it is done.
    fn run(&mut self, customers: u64, crash: Option<(&str, u64)>) -> bool {
        let numbers = [self.served.to_string(), customers.to_string(), self.wall_us.to_string()];
        let mut child = Process::new(env!("CARGO_BIN_EXE_crasher"));
        child.arg(&self.database).arg(self.ledger()).args(numbers).stdout(Stdio::piped());
        if let Some((point, nth)) = crash {
            child.env("ONCESEAL_CRASH", format!("{point}:{nth}"));
        }
        let output = child.spawn().and_then(std::process::Child::wait_with_output).expect("run");
        self.wall_us += MINUTES_5;
        let said = String::from_utf8(output.stdout).expect("text");
        // A line without an end was not said.
        for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.strip_prefix("served ").and_then(|numbers| numbers.split_once(' ')) {
                Some((n, payments)) => {
                    self.served = n.parse::<u64>().expect("a number") + 1;
                    self.payments += payments.parse::<usize>().expect("a number");
                }
                None => self.promises.push(Promise::parse(line).expect("a promise")),
            }
        }
        match (output.status.code(), output.status.signal()) {
            (Some(0), None) => false,
            (None, Some(SIGKILL)) => true,
            other => panic!("{crash:?}: the process ended by itself: {other:?}"),
        }
    }

    /// Looks at a copy of what the process left, so that the next one has to
    /// recover it by itself.
    fn examine(&self, what: &str) {
        let left = self.directory.path().join("left");
        fs::create_dir(&left).expect("a new directory");
        for suffix in ["", "-wal", "-journal"] {
            let of = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
            let from = of(&self.database);
            if from.exists() {
                fs::copy(from, of(&left.join(DATABASE))).expect("copied");
            }
        }
        let clock = Arc::new(ManualClock::new(Reading { wall_us: self.wall_us, boot_us: 0 }));
        let shop = Shop::open(&left.join(DATABASE), &options(&clock, None));
        let shop = shop.unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        let faults = refold::faults(&shop.store);
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        for promise in &self.promises {
            let stands = shop.store.read(|snapshot| promise.stands(snapshot)).expect("readable");
            assert!(stands, "{what}: lost {promise}");
        }
        for (effect, fences) in self.executions() {
            let row = shop.store.read(|snapshot| Ok(row_of(snapshot.stream(&effect)?))).expect("readable");
            let Some(Stored { row: Row::Effect(row), .. }) = row else {
                panic!("{what}: {effect} was executed and nothing is known of it")
            };
            assert_eq!(fences.len(), 1, "{what}: {effect} was executed as {fences:?}");
            assert!(fences[0] <= row.fence, "{what}: {effect} was executed before its attempt was durable");
        }
        shop.store.close();
        fs::remove_dir_all(left).expect("removed");
    }

    /// Effects in the ledger, and the attempts that executed them.
    fn executions(&self) -> BTreeMap<StreamId, Vec<u64>> {
        let mut executions: BTreeMap<StreamId, Vec<u64>> = BTreeMap::new();
        for line in fs::read_to_string(self.ledger()).unwrap_or_default().lines() {
            let (effect, fence) = line.split_once(' ').expect("effect and fence");
            let effect = StreamId::parse(effect).expect("an effect");
            executions.entry(effect).or_default().push(fence.parse().expect("a number"));
        }
        executions
    }

    /// A last process takes up what is left; then everything has happened once.
    fn finish(&mut self, what: &str) {
        assert!(!self.run(2, None), "{what}: nothing kills it");
        self.examine(&format!("{what}, in the end"));
        assert_eq!(self.executions().len(), self.payments, "{what}: one execution for each payment");
    }
}

/// Kills processes at the n-th time of a point, n at most `most`: on one store
/// in a row, or each on a new one.
fn kill_at(point: &str, most: u64, in_a_row: u64) {
    let mut chance = Chance::of(point.bytes().map(u64::from).sum());
    let (mut kills, mut served, mut promises) = (0, 0, 0);
    while kills < KILLS {
        let mut scene = Scene::new();
        for _ in 0..in_a_row {
            let nth = 1 + chance.below(most);
            let what = format!("{point}, time {nth}, after {} customers", scene.served);
            assert!(scene.run(CUSTOMERS, Some((point, nth))), "{what}: it was never reached");
            scene.examine(&what);
            kills += 1;
        }
        scene.finish(point);
        served += scene.served;
        promises += scene.promises.len();
    }
    println!("{point}: {kills} kills, {served} customers served, {promises} promises kept");
}

#[test]
#[should_panic(expected = "lost ")]
fn a_store_that_went_back_is_noticed() {
    let mut scene = Scene::new();
    assert!(!scene.run(2, None));
    let earlier = fs::read(&scene.database).expect("read");
    assert!(!scene.run(2, None));
    scene.examine("gone on");
    fs::write(&scene.database, earlier).expect("written");
    scene.examine("gone back");
}

macro_rules! killed {
    ($($test:ident: $point:literal, $most:literal, $in_a_row:expr;)*) => {$(
        #[test]
        fn $test() {
            kill_at($point, $most, $in_a_row);
        }
    )*};
}

killed! {
    p05_p12_killed_with_the_write_lock_held: "after_begin", 20, IN_A_ROW;
    p05_p12_killed_before_deciding: "after_load", 20, IN_A_ROW;
    p05_p12_killed_when_decided: "after_decide", 20, IN_A_ROW;
    p07_killed_between_rows_and_events: "mid_save", 20, IN_A_ROW;
    p07_killed_before_the_commit: "before_commit", 20, IN_A_ROW;
    p05_p12_killed_after_the_commit: "after_commit", 20, IN_A_ROW;
    p05_p12_killed_before_the_answer: "before_reply", 20, IN_A_ROW;
    p03_p05_killed_before_executing: "before_execute", 8, IN_A_ROW;
    p03_p06_killed_after_executing: "after_execute", 8, IN_A_ROW;
    p12_killed_at_a_write_of_the_log: "log_write", 200, IN_A_ROW;
    p12_killed_at_a_sync_of_the_log: "log_sync", 20, IN_A_ROW;
    p12_killed_at_a_write_of_a_checkpoint: "checkpoint_write", 30, IN_A_ROW;
    p12_killed_at_the_sync_of_a_checkpoint: "checkpoint_sync", 2, IN_A_ROW;
    p12_killed_before_migrating: "before_migrate", 1, 1;
    p12_killed_while_migrating: "mid_migrate", 1, 1;
    p12_killed_after_migrating: "after_migrate", 1, 1;
    p12_killed_after_making_the_tenant: "after_tenant", 1, 1;
}
