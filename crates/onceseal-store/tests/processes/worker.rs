//! This program again, as another process with a task.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Stdio};

use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::reply::Reply;
use onceseal_store::Store;

use crate::ground::{Place, open};
use crate::saying::{activate, note, to_pay};

/// What a child is told in one variable: its task, its name, its store.
const TASK: &str = "PROCESSES_TASK";

/// This program again, running only [`child`] with this task.
pub(crate) struct Worker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(task: &str, name: usize, place: &Place<'_>) -> Worker {
        let (mut program, store) = place.program(name);
        let mut process = program
            .args(["--exact", "worker::child", "--nocapture"])
            .env(TASK, format!("{task} {name} {store}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        Worker { process, lines }
    }

    /// So many of them, each ready to be told to go.
    pub(crate) fn many(n: usize, task: &str, place: &Place<'_>) -> Vec<Worker> {
        let mut all: Vec<_> = (0..n).map(|name| Worker::start(task, name, place)).collect();
        for worker in &mut all {
            assert_eq!(worker.hear(), "ready");
        }
        all
    }

    pub(crate) fn say(&mut self, word: &str) {
        let stdin = self.process.stdin.as_mut().expect("its input");
        writeln!(stdin, "{word}").expect("said");
        stdin.flush().expect("said");
    }

    /// What it says next.
    pub(crate) fn hear(&mut self) -> String {
        for line in self.lines.by_ref() {
            if let Some(word) = line.expect("text").strip_prefix("> ") {
                return word.to_owned();
            }
        }
        panic!("the process ended without a word: {:?}", self.process.wait());
    }

    pub(crate) fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("ended").success());
    }

    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.strip_prefix("> ")?.to_owned()))
            .collect()
    }
}

/// Whoever goes on to look at what is there does not leave it running.
impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs only as a child of the other tests.
#[test]
fn child() {
    let Ok(told) = std::env::var(TASK) else { return };
    let mut told = told.splitn(3, ' ');
    let mut next = || told.next().expect("a word").to_owned();
    let (task, name, place) = (next(), next(), next());
    println!();
    match task.as_str() {
        "attempt" => attempts(&open(&place)),
        "note" => notes(&open(&place), &name, 500, 2),
        "some" => while_told(&open(&place), &name),
        "alone" => notes(&open(&place), &name, 250, 1),
        "endless" => notes(&open(&place), &name, usize::MAX, 1),
        "open" => {
            hear("ready");
            let store = open(&place);
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
    activate(store);
    let mut answer = "ready".to_owned();
    while hear(&answer).is_some() {
        answer = match store.run(to_pay(store)).expect("answered") {
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

/// Each time it is told to go it writes three notes.
fn while_told(store: &Store, name: &str) {
    let (mut answer, mut number) = ("ready", 0);
    while hear(answer).is_some() {
        for _ in 0..3 {
            note(store, name, number);
            number += 1;
        }
        answer = "done";
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
