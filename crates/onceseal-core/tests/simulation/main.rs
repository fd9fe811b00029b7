//! Whole systems of clients, workers, an operator, a clock and a remote, under
//! one scheduler that a seed decides. Whatever goes wrong is printed with its
//! seed, which goes wrong the same way again.

#[path = "../support/broken.rs"]
#[expect(dead_code, reason = "what others break")]
mod broken;
#[path = "../support/calls.rs"]
#[expect(dead_code, reason = "calls that others make")]
mod calls;
#[path = "../support/executor.rs"]
mod executor;
#[path = "../support/world.rs"]
#[expect(dead_code, reason = "what others look at")]
mod world;

mod chance;
mod jobs;
mod mutants;
mod remote;
mod routes;
mod system;

use executor::{Real, Rules};
use jobs::Jobs;
use system::System;

const SEEDS: u64 = 2_000;
/// Of runs whose tasks are done.
const JOBS: u64 = 150;

/// What is wrong after a seed's run, if anything is.
fn caught(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.unwrap_or_else(|| panic.downcast_ref::<&str>().copied().unwrap_or("a panic").to_owned()))
        }
    }
}

fn run(rules: &dyn Rules, seed: u64) -> Result<(), String> {
    caught(|| System::new(rules, seed).run())
}

fn run_jobs(rules: &dyn Rules, seed: u64) -> Result<(), String> {
    caught(|| Jobs::new(rules, seed).run())
}

#[test]
fn p03_p04_p05_p06_p07_p12_hold_in_every_run() {
    for seed in 0..SEEDS {
        if let Err(wrong) = run(&Real, seed) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn every_task_is_verified_once_and_one_worker_at_a_time_has_it() {
    for seed in 0..JOBS {
        if let Err(wrong) = run_jobs(&Real, seed) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

/// Tells of each broken rule which seed found it.
fn found(all: &[(&str, &dyn Rules)], seeds: u64, run: fn(&dyn Rules, u64) -> Result<(), String>) {
    // What is broken on purpose panics where the fold refuses it.
    std::panic::set_hook(Box::new(|_| {}));
    let found: Vec<_> = all
        .iter()
        .map(|(name, rules)| (name, (0..seeds).find_map(|seed| Some((seed, run(*rules, seed).err()?)))))
        .collect();
    drop(std::panic::take_hook());
    for (name, found) in found {
        match found {
            Some((seed, wrong)) => println!("{name}: seed {seed}: {wrong}"),
            None => panic!("{name} is not found by {seeds} seeds"),
        }
    }
}

#[test]
fn each_rule_that_is_broken_is_found() {
    found(&mutants::ALL, SEEDS, run);
}

#[test]
fn each_rule_of_tasks_that_is_broken_is_found() {
    let all = jobs::mutants::all();
    let all: Vec<_> = all.iter().map(|(name, broken)| (*name, broken as &dyn Rules)).collect();
    found(&all, JOBS, run_jobs);
}
