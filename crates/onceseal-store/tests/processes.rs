//! One store in the hands of many processes.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::action::{Action, Principal, Proposal, Reach, Run};
use onceseal_core::command::Command;
use onceseal_core::decide::evolve;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::journal::{Body, chain_hash, open_text};
use onceseal_core::json::{self, Limits, Object};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_core::view::Loaded;
use onceseal_store::turnstile::Turnstile;
use onceseal_store::{Options, Store};

/// What a child is told in one variable: its task, its name, its database.
const TASK: &str = "PROCESSES_TASK";

/// This program again, running only [`child`] with this task.
struct Worker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(task: &str, name: usize, database: &Path) -> Worker {
        let mut process = Program::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child", "--nocapture"])
            .env(TASK, format!("{task} {name} {}", database.to_str().expect("text")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        Worker { process, lines }
    }

    /// So many of them, each ready to be told to go.
    fn many(n: usize, task: &str, database: &Path) -> Vec<Worker> {
        let mut all: Vec<_> = (0..n).map(|name| Worker::start(task, name, database)).collect();
        for worker in &mut all {
            assert_eq!(worker.hear(), "ready");
        }
        all
    }

    fn say(&mut self, word: &str) {
        let stdin = self.process.stdin.as_mut().expect("its input");
        writeln!(stdin, "{word}").expect("said");
        stdin.flush().expect("said");
    }

    /// What it says next.
    fn hear(&mut self) -> String {
        for line in self.lines.by_ref() {
            if let Some(word) = line.expect("text").strip_prefix("> ") {
                return word.to_owned();
            }
        }
        panic!("the process ended without a word: {:?}", self.process.wait());
    }

    fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("ended").success());
    }

    fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
        self.lines
            .map_while(Result::ok)
            .filter_map(|line| Some(line.strip_prefix("> ")?.to_owned()))
            .collect()
    }
}

/// Runs only as a child of the tests below.
#[test]
fn child() {
    let Ok(told) = std::env::var(TASK) else { return };
    let mut told = told.splitn(3, ' ');
    let mut next = || told.next().expect("a word").to_owned();
    let (task, name, database) = (next(), next(), PathBuf::from(next()));
    println!();
    match task.as_str() {
        "attempt" => attempts(&open(&database)),
        "note" => notes(&open(&database), &name, 500, 2),
        "alone" => notes(&open(&database), &name, 250, 1),
        "endless" => notes(&open(&database), &name, usize::MAX, 1),
        "open" => {
            hear("ready");
            let store = open(&database);
            note(&store, &name, 0);
            say(&format!("{:?}", store.tenant().id));
        }
        other => panic!("no such task: {other}"),
    }
}

fn say(word: &str) {
    println!("> {word}");
    std::io::stdout().flush().expect("said");
}

/// Says a word and waits for the answer; `None` at the end.
fn hear(word: &str) -> Option<String> {
    say(word);
    std::io::stdin().lines().next().map(|line| line.expect("text"))
}

/// Each time it is told to go it wants the one key.
fn attempts(store: &Store) {
    let policy = store.active_policy().expect("read").expect("a policy");
    let mut answer = "ready".to_owned();
    while hear(&answer).is_some() {
        answer = match store.run(to_pay(store, &policy)).expect("answered") {
            Reply::Attempt(attempt) => {
                let word = hear(&format!("attempt {}", attempt.fence)).expect("to settle");
                assert_eq!(word, "settle");
                let settled =
                    store.run(Command::Settle(Settle::new(Holding::from(&attempt), Outcome::Failed)));
                assert!(matches!(settled, Ok(Reply::Settled { .. })), "{settled:?}");
                "settled".to_owned()
            }
            Reply::Refused(refusal) => refusal.code.to_string(),
            other => panic!("{other:?}"),
        };
    }
}

/// Writes notes, each in its own commit or shared with another thread's.
fn notes(store: &Store, name: &str, n: usize, threads: usize) {
    hear("ready");
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in (thread..n).step_by(threads) {
                    note(store, name, number);
                    if n == usize::MAX {
                        say(&number.to_string());
                    }
                }
            });
        }
    });
    say("done");
}

fn note(store: &Store, name: &str, number: usize) {
    let note = Note { body: number.to_string(), source: format!("process {name}") };
    let noted = store.run(Command::Note(note));
    assert!(matches!(noted, Ok(Reply::Done { changed: true })), "{noted:?}");
}

fn open(database: &Path) -> Store {
    Store::sqlite(database.to_owned(), &Options::default()).expect("opened")
}

fn new() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    File::create_new(&database).expect("an empty file");
    (dir, database)
}

fn to_pay(store: &Store, policy: &ActivePolicy) -> Command {
    let principal = Principal { agent: "bot".to_owned(), user: None };
    let action = Action {
        name: "pay".to_owned(),
        arguments: Object::default(),
        principal,
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    let proposal = Proposal::prepare(store.tenant(), policy, action).expect("prepared");
    let (reach, lease, deadline) = (Reach::Executing, None, None);
    Command::Run(Box::new(Run { proposal, action: None, approval: None, reach, lease, deadline }))
}

fn activate(store: &Store) {
    let text =
        br#"{"schema":"onceseal.policy/v1","actions":{"pay":{"effect":"the one key","decision":"allow"}}}"#;
    let policy =
        ActivePolicy::compile(&json::read(text, &Limits::DATA).expect("a document")).expect("a policy");
    let activate = Activate { policy: Arc::new(policy), again: false, person: None };
    store.run(Command::Activate(activate)).expect("activated");
}

/// Who wrote each note, in the order of the log, and which.
fn written(store: &Store) -> Vec<(usize, usize)> {
    store
        .read(|snapshot| {
            let mut written = Vec::new();
            for event in snapshot.log(0, usize::MAX)? {
                let Some(Body::NoteAppended(_, sealed)) = event.event.map(|event| event.body) else {
                    continue;
                };
                let source = sealed.source.expect("its source");
                let text = snapshot.payload(&event.stamp.stream, 1)?.expect("its text").text;
                let name = source.strip_prefix("process ").expect("a process");
                written.push((name.parse().expect("a number"), text.parse().expect("a number")));
            }
            Ok(written)
        })
        .expect("read")
}

/// Every stream is one chain and its row the fold of it.
fn assert_sound(store: &Store) {
    store
        .read(|snapshot| {
            assert_eq!(snapshot.integrity()?, Vec::<String>::new());
            for stream in snapshot.streams(None, usize::MAX)? {
                let (mut prior, mut row) = (store.tenant().genesis(&stream), None);
                for (sequence, event) in (1..).zip(snapshot.events(&stream, 1, usize::MAX)?) {
                    assert_eq!(event.stamp.sequence, sequence, "{stream}");
                    let body = event.event.expect("it decodes");
                    let text = open_text(&event.stamp, &body, prior, event.seal);
                    assert_eq!(chain_hash(&text), event.hash, "event {sequence} of {stream}");
                    row = Some(evolve(&stream, row, sequence, event.stamp.at, &body).expect("it follows"));
                    prior = event.hash;
                }
                let Loaded::Row(stored) = snapshot.stream(&stream)? else { panic!("{stream} has no row") };
                assert_eq!((stored.head.hash, Some(&stored.row)), (prior, row.as_ref()), "{stream}");
            }
            Ok(())
        })
        .expect("read");
}

fn is_locked(database: &Path, suffix: &str) -> bool {
    let file = File::open(format!("{}{suffix}", database.display())).expect("a lock file");
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[test]
fn p03_one_of_eight_processes_gets_the_key_fifty_times_over() {
    let (_dir, database) = new();
    let store = open(&database);
    activate(&store);
    let mut workers = Worker::many(8, "attempt", &database);
    for round in 1..=50 {
        workers.iter_mut().for_each(|worker| worker.say("go"));
        let answers: Vec<String> = workers.iter_mut().map(Worker::hear).collect();
        let winner = answers.iter().position(|answer| *answer == format!("attempt {round}"));
        let others = answers.iter().filter(|answer| *answer == "in_progress").count();
        assert_eq!((winner.is_some(), others), (true, 7), "round {round}: {answers:?}");
        let winner = &mut workers[winner.expect("one")];
        winner.say("settle");
        assert_eq!(winner.hear(), "settled");
    }
    workers.into_iter().for_each(Worker::end);
    let effect = store.tenant().effect("the one key");
    let events = store.read(|snapshot| snapshot.events(&effect, 1, usize::MAX)).expect("read");
    assert_eq!(events.len(), 100, "fifty attempts and their outcomes");
    assert_sound(&store);
}

#[test]
fn ua_103_eight_processes_with_five_hundred_writes_each_are_never_told_that_it_is_busy() {
    let (_dir, database) = new();
    let store = open(&database);
    let mut workers = Worker::many(8, "note", &database);
    workers.iter_mut().for_each(|worker| worker.say("go"));
    // A process that is refused anything ends without this word.
    workers.iter_mut().for_each(|worker| assert_eq!(worker.hear(), "done"));
    workers.into_iter().for_each(Worker::end);
    let written: BTreeSet<_> = written(&store).into_iter().collect();
    assert_eq!(written.len(), 8 * 500, "every write is there");
    assert_sound(&store);
}

#[test]
fn no_process_gets_less_than_half_its_share_while_all_write() {
    // Other work on the machine may hold one process back for a while; what
    // starves does so every time.
    let unfair: Vec<String> = (0..3).map_while(|_| shares().err()).collect();
    assert!(unfair.len() < 3, "{unfair:#?}");
}

/// Four processes write as much as they can: how often each came to it.
fn shares() -> Result<(), String> {
    const PROCESSES: usize = 4;
    let (_dir, database) = new();
    let store = open(&database);
    let mut workers = Worker::many(PROCESSES, "alone", &database);
    workers.iter_mut().for_each(|worker| worker.say("go"));
    workers.iter_mut().for_each(|worker| assert_eq!(worker.hear(), "done"));
    workers.into_iter().for_each(Worker::end);
    let order: Vec<usize> = written(&store).into_iter().map(|(name, _)| name).collect();
    assert_eq!(order.len(), PROCESSES * 250);
    // From the moment all have written to the moment the first is done.
    let first = |name| order.iter().position(|found| *found == name).expect("it wrote");
    let last = |name| order.iter().rposition(|found| *found == name).expect("it wrote");
    let start = (0..PROCESSES).map(first).max().expect("some");
    let end = (0..PROCESSES).map(last).min().expect("some");
    let window = &order[start.min(end)..end];
    let share = window.len() / PROCESSES;
    let counts: Vec<usize> =
        (0..PROCESSES).map(|name| window.iter().filter(|found| **found == name).count()).collect();
    println!("{counts:?} of {}", window.len());
    let fair = share > 250 / 4 && counts.iter().all(|count| 2 * count >= share);
    if fair { Ok(()) } else { Err(format!("{counts:?} of {}", window.len())) }
}

#[test]
fn processes_that_open_an_empty_file_at_once_all_find_one_store() {
    for _ in 0..6 {
        let (_dir, database) = new();
        let mut workers = Worker::many(4, "open", &database);
        workers.iter_mut().for_each(|worker| worker.say("go"));
        let tenants: BTreeSet<String> = workers.iter_mut().map(Worker::hear).collect();
        assert_eq!(tenants.len(), 1, "one tenant for all");
        workers.into_iter().for_each(Worker::end);
        let store = open(&database);
        assert_eq!(written(&store).len(), 4, "each has written");
        assert_sound(&store);
    }
}

#[test]
fn a_process_that_is_killed_at_the_gate_does_not_block_the_others() {
    let (_dir, database) = new();
    let store = open(&database);
    let mut worker = Worker::many(1, "endless", &database).remove(0);
    let turnstile = Turnstile::open(&database).expect("opened");
    let pass = turnstile.enter().expect("entered");
    worker.say("go");
    let begun = Instant::now();
    while !is_locked(&database, ".gate") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the process never came to the gate");
        std::thread::yield_now();
    }
    assert_eq!(worker.kill(), Vec::<String>::new(), "it was told nothing");
    assert!(!is_locked(&database, ".gate"), "the dead let go");
    drop(pass);
    note(&store, "9", 0);
    assert_eq!(written(&store), [(9, 0)], "what it wanted to write was never begun");
}

#[test]
fn p05_what_a_killed_process_was_told_is_there_and_the_others_go_on() {
    let (_dir, database) = new();
    let store = open(&database);
    let mut workers = Worker::many(3, "endless", &database);
    workers.iter_mut().for_each(|worker| worker.say("go"));
    for (name, mut worker) in workers.into_iter().enumerate() {
        for number in 0..20 {
            assert_eq!(worker.hear(), number.to_string());
        }
        let told = 20 + worker.kill().len();
        // Whoever is left, and we, can write at once.
        note(&store, "9", name);
        let found = written(&store).into_iter().filter(|(by, _)| *by == name).count();
        assert!((told..=told + 1).contains(&found), "{found} are there, it was told of {told}");
    }
    assert_sound(&store);
}
