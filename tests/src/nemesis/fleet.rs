//! Processes of clients, and what they say.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use onceseal_servers::until;

use super::WENT_BACK;
use super::client::Orders;
use super::ground::Ground;
use crate::history::Operation;

/// So long nothing is answered at all before it is given up: longer than anything
/// waits.
const PATIENCE: Duration = Duration::from_secs(90);

/// Processes that are at it.
pub(super) struct Fleet {
    ships: Vec<Ship>,
    directory: PathBuf,
    answered: Arc<AtomicU64>,
}

struct Ship {
    process: Child,
    listener: JoinHandle<()>,
    file: PathBuf,
}

/// An operation, on which effect, by which process.
pub(super) struct Told {
    pub(super) effect: String,
    pub(super) process: usize,
    pub(super) operation: Operation,
}

/// What came of them.
pub(super) struct Ended {
    pub(super) told: Vec<Told>,
    /// How many noticed that the store had gone back.
    pub(super) noticed: usize,
    /// What went wrong with the others.
    pub(super) broken: Vec<String>,
}

impl Fleet {
    /// Starts so many processes; each is ready.
    pub(super) fn start(
        ground: &Ground,
        program: &Path,
        directory: &Path,
        n: usize,
        orders: &Orders,
    ) -> Fleet {
        let answered = Arc::new(AtomicU64::new(0));
        let mut ships = Vec::new();
        for number in 0..n {
            let (url, mut command) = ground.way(number, program);
            let file = directory.join(format!("history-{number}"));
            let Orders { clients, effects, seed, ahead, .. } = orders;
            command.arg("client").arg(url).arg(number.to_string()).arg(clients.to_string());
            command.arg(effects.to_string()).arg(seed.to_string()).arg(ahead.to_string()).arg(&file);
            let log = fs::File::create(directory.join(format!("log-{number}"))).expect("a file");
            let mut process =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().expect("a process");
            let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
            let ready = lines.next().and_then(Result::ok);
            assert_eq!(ready.as_deref(), Some("ready"), "{}", said(directory, number));
            let counter = answered.clone();
            let listener = std::thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    let count = line.strip_prefix("> ").and_then(|count| count.parse().ok()).unwrap_or(0);
                    counter.fetch_add(count, Ordering::Relaxed);
                }
            });
            ships.push(Ship { process, listener, file });
        }
        Fleet { ships, directory: directory.to_owned(), answered }
    }

    /// Waits until so many more operations are answered, or until too long nothing is:
    /// whether they were.
    pub(super) fn await_operations(&self, more: u64) -> bool {
        let start = self.answered.load(Ordering::Relaxed);
        let (mut last, mut since) = (start, Instant::now());
        while last < start + more {
            sleep(Duration::from_millis(2));
            let now = self.answered.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                return false;
            }
        }
        true
    }

    /// Has them end.
    pub(super) fn end(mut self) -> Ended {
        let mut ended = Ended { told: Vec::new(), noticed: 0, broken: Vec::new() };
        for ship in &mut self.ships {
            drop(ship.process.stdin.take());
        }
        for (number, mut ship) in std::mem::take(&mut self.ships).into_iter().enumerate() {
            let status = until("a process of clients ends", || ship.process.try_wait().expect("looked at"));
            ship.listener.join().expect("no panic");
            let went_back = status.code() == Some(i32::from(WENT_BACK));
            if !status.success() && !went_back {
                let said = said(&self.directory, number);
                ended.broken.push(format!("process {number}: {status}\n{said}"));
                continue;
            }
            ended.noticed += usize::from(went_back);
            let text = fs::read_to_string(&ship.file).expect("its history");
            ended.told.extend(text.lines().map(|line| {
                let read = line.split_once(' ').and_then(|(e, rest)| Some((e, Operation::parse(rest)?)));
                let (effect, operation) = read.unwrap_or_else(|| panic!("not an operation: {line}"));
                Told { effect: effect.to_owned(), process: number, operation }
            }));
        }
        ended
    }
}

fn said(directory: &Path, number: usize) -> String {
    fs::read_to_string(directory.join(format!("log-{number}"))).unwrap_or_default()
}

/// A trial that panics leaves no process behind.
impl Drop for Fleet {
    fn drop(&mut self) {
        for ship in &mut self.ships {
            drop(ship.process.kill());
            drop(ship.process.wait());
        }
    }
}
