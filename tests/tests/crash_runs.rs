//! A process that carries runs out is killed at a named point: the store it leaves
//! is whole, has all that was answered, and the next one goes on: every task is
//! verified once, by whoever had it last, and every run comes to its end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;

use onceseal_core::id::RunId;
use onceseal_core::journal::{Row, Stored};
use onceseal_core::stream::StreamId;
use onceseal_core::task::TaskState;
use onceseal_store::Store;
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::read::row_of;
use onceseal_tests::chance::Chance;
use onceseal_tests::job::TASKS;
use onceseal_tests::shop::options;
use onceseal_tests::{place, refold};
use tempfile::TempDir;

/// Kills at each point, on one store in a row.
const KILLS: u64 = 20;
/// Runs at most between two kills.
const RUNS: u64 = 6;
/// Between two processes: every lease is over.
const HOUR: i64 = 3_600_000_000;
const SIGKILL: i32 = 9;

/// One store, and the processes that died of it.
struct Scene {
    directory: TempDir,
    database: PathBuf,
    wall_us: i64,
    /// Runs that were said to have come to their end.
    completed: BTreeMap<u64, RunId>,
    /// Tasks that were said to be verified, and how often they had been carried
    /// out by then.
    verified: BTreeMap<(u64, String), usize>,
}

impl Scene {
    fn new() -> Scene {
        let directory = place::fast();
        let database = place::database(directory.path(), "store");
        let (completed, verified) = (BTreeMap::new(), BTreeMap::new());
        Scene { directory, database, wall_us: 1_767_225_600_000_000, completed, verified }
    }

    fn ledger(&self) -> PathBuf {
        self.directory.path().join("ledger")
    }

    /// Lets a process carry runs out; answers whether it was killed.
    fn run(&mut self, runs: u64, crash: Option<(&str, u64)>) -> bool {
        let first = self.completed.len() as u64;
        let numbers = [first.to_string(), runs.to_string(), self.wall_us.to_string()];
        let mut child = Process::new(env!("CARGO_BIN_EXE_runner"));
        child.arg(&self.database).arg(self.ledger()).args(numbers).stdout(Stdio::piped());
        if let Some((point, nth)) = crash {
            child.env("ONCESEAL_CRASH", format!("{point}:{nth}"));
        }
        let output = child.spawn().and_then(std::process::Child::wait_with_output).expect("run");
        self.wall_us += HOUR;
        let executed = self.executed();
        let said = String::from_utf8(output.stdout).expect("text");
        for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["completed", n, run] => {
                    let run = RunId::parse(run).expect("a run");
                    self.completed.insert(n.parse().expect("a number"), run);
                }
                ["verified", n, task] => {
                    let task = (n.parse().expect("a number"), task.to_owned());
                    let times = executed.get(&task).map_or(0, Vec::len);
                    self.verified.insert(task, times);
                }
                _ => panic!("it says {line:?}"),
            }
        }
        match (output.status.code(), output.status.signal()) {
            (Some(0), None) => false,
            (None, Some(SIGKILL)) => true,
            other => panic!("{crash:?}: the process ended by itself: {other:?}"),
        }
    }

    /// The fences under which each task was carried out.
    fn executed(&self) -> BTreeMap<(u64, String), Vec<u64>> {
        let mut executed: BTreeMap<(u64, String), Vec<u64>> = BTreeMap::new();
        for line in fs::read_to_string(self.ledger()).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [n, task, fence] = words[..] else { panic!("{line:?}") };
            let task = (n.parse().expect("a number"), task.to_owned());
            executed.entry(task).or_default().push(fence.parse().expect("a number"));
        }
        executed
    }

    fn examine(&self, what: &str) {
        let clock = Arc::new(ManualClock::new(Reading { wall_us: self.wall_us, boot_us: 0 }));
        let copy = self.directory.path().join("left.db");
        for suffix in ["", "-wal"] {
            let from = PathBuf::from(format!("{}{suffix}", self.database.display()));
            let to = PathBuf::from(format!("{}{suffix}", copy.display()));
            if from.exists() {
                fs::copy(from, to).expect("copied");
            }
        }
        let store = Store::sqlite(copy.clone(), &options(&clock, None));
        let store = store.unwrap_or_else(|error| panic!("{what}: cannot be opened: {error}"));
        let faults = refold::faults(&store);
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        for (n, run) in &self.completed {
            let (row, name) = (row(&store, &StreamId::run(*run)), format!("{what}: run {n}"));
            assert!(matches!(row, Some(Row::Run(row)) if row.state == "completed"), "{name} was completed");
            for id in TASKS {
                let task = task(&store, *run, id);
                assert_eq!(task, Some(TaskState::Verified), "{name}, {id}");
            }
        }
        let executed = self.executed();
        for (task, fences) in &executed {
            assert!(fences.is_sorted_by(|a, b| a < b), "{what}: {task:?} was carried out as {fences:?}");
            if let Some(times) = self.verified.get(task) {
                assert_eq!(fences.len(), *times, "{what}: {task:?} was carried out after it was verified");
            }
        }
        store.close();
        for suffix in ["", "-wal", "-shm"] {
            // Which of them there are is SQLite's to say.
            drop(fs::remove_file(format!("{}{suffix}", copy.display())));
        }
    }
}

fn row(store: &Store, stream: &StreamId) -> Option<Row> {
    let stored = store.read(|snapshot| Ok(row_of(snapshot.stream(stream)?))).expect("readable");
    stored.map(|Stored { row, .. }| row)
}

fn task(store: &Store, run: RunId, id: &str) -> Option<TaskState> {
    match row(store, &store.tenant().task(run, id)) {
        Some(Row::Task(row)) => Some(row.state),
        _ => None,
    }
}

fn kill_at(point: &str, most: u64) {
    let mut chance = Chance::of(point.bytes().map(u64::from).sum());
    let mut scene = Scene::new();
    for _ in 0..KILLS {
        let nth = 1 + chance.below(most);
        let what = format!("{point}, time {nth}, after {} runs", scene.completed.len());
        assert!(scene.run(RUNS, Some((point, nth))), "{what}: it was never reached");
        scene.examine(&what);
    }
    assert!(!scene.run(2, None), "{point}: nothing kills it");
    scene.examine(point);
    let executed = scene.executed();
    for n in scene.completed.keys() {
        for id in TASKS {
            assert!(executed.contains_key(&(*n, id.to_owned())), "{point}: {id} of run {n} was never done");
        }
    }
    let again = executed.values().filter(|fences| fences.len() > 1).count();
    println!("{point}: {KILLS} kills, {} runs, {again} tasks carried out again", scene.completed.len());
}

macro_rules! killed {
    ($($test:ident: $point:literal, $most:literal;)*) => {$(
        #[test]
        fn $test() {
            kill_at($point, $most);
        }
    )*};
}

killed! {
    p05_p12_a_run_is_killed_with_the_write_lock_held: "after_begin", 60;
    p05_p12_a_run_is_killed_before_deciding: "after_load", 60;
    p05_p12_a_run_is_killed_when_decided: "after_decide", 60;
    p07_a_run_is_killed_between_rows_and_events: "mid_save", 60;
    p07_a_run_is_killed_before_the_commit: "before_commit", 60;
    p05_p12_a_run_is_killed_after_the_commit: "after_commit", 60;
    p05_p12_a_run_is_killed_before_the_answer: "before_reply", 60;
    p03_a_run_is_killed_before_a_task_is_carried_out: "before_execute", 12;
    p03_a_run_is_killed_after_a_task_was_carried_out: "after_execute", 12;
    p12_a_run_is_killed_at_a_write_of_the_log: "log_write", 200;
    p12_a_run_is_killed_at_a_sync_of_the_log: "log_sync", 60;
}
