//! Whole systems of clients, workers, an operator, a clock and a remote, under
//! one scheduler that a seed decides. Whatever goes wrong is printed with its
//! seed, which goes wrong the same way again.

#[path = "../support/calls.rs"]
#[expect(dead_code, reason = "calls that others make")]
mod calls;
#[path = "../support/executor.rs"]
mod executor;
#[path = "../support/world.rs"]
#[expect(dead_code, reason = "what others look at")]
mod world;

mod mutants;
mod remote;
mod routes;
mod system;

use executor::{Real, Rules};
use system::System;

const SEEDS: u64 = 2_000;

/// What is wrong after this seed's run, if anything is.
fn run(rules: &dyn Rules, seed: u64) -> Result<(), String> {
    let run = std::panic::AssertUnwindSafe(|| System::new(rules, seed).run());
    match std::panic::catch_unwind(run) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.unwrap_or_else(|| panic.downcast_ref::<&str>().copied().unwrap_or("a panic").to_owned()))
        }
    }
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
fn each_rule_that_is_broken_is_found() {
    // What is broken on purpose panics where the fold refuses it.
    std::panic::set_hook(Box::new(|_| {}));
    let found: Vec<_> = mutants::ALL
        .iter()
        .map(|(name, rules)| (name, (0..SEEDS).find_map(|seed| Some((seed, run(*rules, seed).err()?)))))
        .collect();
    drop(std::panic::take_hook());
    for (name, found) in found {
        match found {
            Some((seed, wrong)) => println!("{name}: seed {seed}: {wrong}"),
            None => panic!("{name} is not found by {SEEDS} seeds"),
        }
    }
}
