//! Every reachable state of a few leases, on the real rules.
//!
//! A run and those who work on it, or paths above and below each other; holders
//! that crash, sweep, are preempted; a clock that runs on and goes back. The
//! promises are held against what everybody was told (`ghost`), not against what
//! rows say of themselves. Then the rules are broken on purpose, one at a time,
//! and each break is found.

#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/broken.rs"]
mod broken;
#[path = "../support/executor.rs"]
mod executor;
mod ghost;
mod handing;
mod judge;
mod ledger;
mod mutants;
mod protocol;
mod steps;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use executor::Real;
use mutants::Mutant;
use protocol::{Bounds, Protocol, RUN, TREE, TWO_PATHS};

/// Looks at a world, without optimisation at as much of it as takes seconds.
fn holds(world: Bounds, small: Bounds) {
    let (bounds, begin) = (if cfg!(debug_assertions) { small } else { world }, Instant::now());
    let checker = Protocol::new(&Real, bounds).checker().threads(2).spawn_bfs().join();
    for (name, path) in checker.discoveries() {
        assert!(!ghost::PROMISES.contains(&name), "{name}: {:#?}", path.into_actions());
    }
    checker.assert_properties();
    let (states, steps, depth) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    println!("{bounds:?}: {states} states, {steps} steps, depth {depth}, {:?}", begin.elapsed());
}

#[test]
fn the_promises_hold_in_every_reachable_state_of_a_run() {
    let small = Bounds { back: 1, ..RUN };
    holds(Bounds { holders: 3, leases: 3, crash: true, ..small }, small);
}

#[test]
fn the_promises_hold_in_every_reachable_state_of_a_run_that_is_handed_over() {
    let small = Bounds { hands: true, ..RUN };
    holds(Bounds { holders: 3, leases: 3, back: 1, ..small }, small);
}

#[test]
fn the_promises_hold_in_every_reachable_state_of_two_paths() {
    let small = Bounds { back: 1, leases: 1, ..TWO_PATHS };
    holds(Bounds { holders: 3, leases: 2, ..small }, small);
}

#[test]
fn the_promises_hold_in_every_reachable_state_of_a_tree() {
    let small = Bounds { leases: 1, ..TREE };
    holds(Bounds { holders: 3, back: 1, ..small }, small);
}

fn each_is_found(mutants: Vec<Mutant>) {
    for Mutant { name, bounds, rules, promise } in mutants {
        let checker = Protocol::new(rules, bounds)
            .checker()
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        let found = checker.discoveries();
        assert!(found.contains_key(promise), "{name}: found {:?}", found.keys());
        println!("{name}: found by \"{promise}\" after {} states", checker.unique_state_count());
    }
}

#[test]
fn every_broken_rule_of_what_a_holder_may_say_is_found() {
    each_is_found(mutants::words::all());
}

#[test]
fn every_broken_rule_of_taking_a_resource_is_found() {
    each_is_found(mutants::taking::all());
}

#[test]
fn every_broken_rule_of_handing_over_is_found() {
    each_is_found(mutants::handing::all());
}

#[test]
fn every_broken_rule_of_runs_under_leases_is_found() {
    each_is_found(mutants::runs::all());
}
