//! One store in the hands of many processes: in one file, on a server, and on a
//! server with each process on a host of its own.

#[path = "processes/ground.rs"]
mod ground;
#[path = "processes/saying.rs"]
mod saying;
#[path = "processes/worker.rs"]
mod worker;

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use onceseal_store::turnstile::Turnstile;

use ground::Ground;
use saying::{assert_sound, note, written};
use worker::Worker;

type Scenario = fn(&Ground);

/// Each scenario wherever the store may be.
macro_rules! everywhere {
    ($($scenario:ident)*) => {
        everywhere! { file: $($scenario)* }
        everywhere! { server: $($scenario)* }
        everywhere! { hosts: $($scenario)* }
    };
    ($ground:ident: $($scenario:ident)*) => {
        mod $ground {
            use crate::ground::Ground;

            $(#[test]
            fn $scenario() {
                if let Some(ground) = Ground::$ground() {
                    super::$scenario(&ground);
                }
            })*
        }
    };
}

everywhere! {
    p03_one_of_eight_processes_gets_the_key_fifty_times_over
    ua_103_eight_processes_with_five_hundred_writes_each_are_never_told_that_it_is_busy
    what_processes_were_told_is_in_the_log_for_whoever_looks_then
    no_process_gets_less_than_half_its_share_while_all_write
    processes_that_open_an_empty_store_at_once_all_find_one
    p05_what_a_killed_process_was_told_is_there_and_the_others_go_on
}

fn p03_one_of_eight_processes_gets_the_key_fifty_times_over(ground: &Ground) {
    let place = ground.place();
    let store = place.open();
    let mut workers = Worker::many(8, "attempt", &place);
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

fn ua_103_eight_processes_with_five_hundred_writes_each_are_never_told_that_it_is_busy(ground: &Ground) {
    let place = ground.place();
    let store = place.open();
    let mut workers = Worker::many(8, "note", &place);
    workers.iter_mut().for_each(|worker| worker.say("go"));
    // A process that is refused anything ends without this word.
    workers.iter_mut().for_each(|worker| assert_eq!(worker.hear(), "done"));
    workers.into_iter().for_each(Worker::end);
    let written: BTreeSet<_> = written(&store).into_iter().collect();
    assert_eq!(written.len(), 8 * 500, "every write is there");
    assert_sound(&store);
}

fn what_processes_were_told_is_in_the_log_for_whoever_looks_then(ground: &Ground) {
    let place = ground.place();
    let store = place.open();
    let reader = place.open_reader();
    let mut workers = Worker::many(4, "some", &place);
    let mut seen = store.read(|snapshot| snapshot.newest()).expect("read");
    for round in 1..=50 {
        workers.iter_mut().for_each(|worker| worker.say("go"));
        workers.iter_mut().for_each(|worker| assert_eq!(worker.hear(), "done"));
        // Nobody writes after them; whether who looks may write makes no difference.
        let looks = if round % 2 == 0 { &store } else { &reader };
        let events = looks.read(|snapshot| snapshot.log(seen, usize::MAX)).expect("read");
        assert_eq!(events.len(), 4 * 3, "round {round}");
        seen = events.last().expect("one").position;
    }
    workers.iter_mut().for_each(|worker| worker.say("go"));
    workers.iter_mut().for_each(|worker| assert_eq!(worker.hear(), "done"));
    assert_sound(&reader);
    workers.into_iter().for_each(Worker::end);
}

fn no_process_gets_less_than_half_its_share_while_all_write(ground: &Ground) {
    // Other work on the machine may hold one process back for a while; what
    // starves does so every time.
    let unfair: Vec<String> = (0..3).map_while(|_| shares(ground).err()).collect();
    assert!(unfair.len() < 3, "{unfair:#?}");
}

/// Four processes write as much as they can: how often each came to it.
fn shares(ground: &Ground) -> Result<(), String> {
    const PROCESSES: usize = 4;
    let place = ground.place();
    let store = place.open();
    let mut workers = Worker::many(PROCESSES, "alone", &place);
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

fn processes_that_open_an_empty_store_at_once_all_find_one(ground: &Ground) {
    for _ in 0..6 {
        let place = ground.place();
        let mut workers = Worker::many(4, "open", &place);
        workers.iter_mut().for_each(|worker| worker.say("go"));
        let tenants: BTreeSet<String> = workers.iter_mut().map(Worker::hear).collect();
        assert_eq!(tenants.len(), 1, "one tenant for all");
        workers.into_iter().for_each(Worker::end);
        let store = place.open();
        assert_eq!(written(&store).len(), 4, "each has written");
        assert_sound(&store);
    }
}

fn p05_what_a_killed_process_was_told_is_there_and_the_others_go_on(ground: &Ground) {
    let place = ground.place();
    let store = place.open();
    let mut workers = Worker::many(3, "endless", &place);
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

/// What these scenarios find where there is no one store.
#[test]
fn processes_with_a_store_each_pass_no_scenario() {
    let scenarios: [Scenario; 5] = [
        p03_one_of_eight_processes_gets_the_key_fifty_times_over,
        ua_103_eight_processes_with_five_hundred_writes_each_are_never_told_that_it_is_busy,
        what_processes_were_told_is_in_the_log_for_whoever_looks_then,
        processes_that_open_an_empty_store_at_once_all_find_one,
        p05_what_a_killed_process_was_told_is_there_and_the_others_go_on,
    ];
    for (n, scenario) in scenarios.into_iter().enumerate() {
        let passed = catch_unwind(AssertUnwindSafe(|| scenario(&Ground::file_for_each())));
        assert!(passed.is_err(), "scenario {n} passes where every process has a store of its own");
    }
}

fn is_locked(database: &Path, suffix: &str) -> bool {
    let file = File::open(format!("{}{suffix}", database.display())).expect("a lock file");
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[test]
fn a_process_that_is_killed_at_the_gate_does_not_block_the_others() {
    let ground = Ground::file().expect("a directory");
    let place = ground.place();
    let (store, database) = (place.open(), place.path());
    let mut worker = Worker::many(1, "endless", &place).remove(0);
    let turnstile = Turnstile::open(database).expect("opened");
    let pass = turnstile.enter().expect("entered");
    worker.say("go");
    let begun = Instant::now();
    while !is_locked(database, ".gate") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the process never came to the gate");
        std::thread::yield_now();
    }
    assert_eq!(worker.kill(), Vec::<String>::new(), "it was told nothing");
    assert!(!is_locked(database, ".gate"), "the dead let go");
    drop(pass);
    note(&store, "9", 0);
    assert_eq!(written(&store), [(9, 0)], "what it wanted to write was never begun");
}
