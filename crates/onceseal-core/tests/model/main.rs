//! Every reachable state of a small world, on the real rules.
//!
//! Two keys, three holders, two approvals, two policies, a clock: whatever
//! order they come in, the promises hold in every state. They are held against
//! what really happened (`ghost`), not against what rows say of themselves.
//! Then the rules are broken on purpose, one at a time, and each break is
//! found.

#[path = "../support/broken.rs"]
mod broken;
#[path = "../support/executor.rs"]
mod executor;
mod ghost;
mod judge;
mod ledger;
mod mutants;
mod normal;
mod protocol;
mod steps;

use std::time::Instant;

use onceseal_core::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model};

use executor::Real;
use mutants::Mutant;
use protocol::{Bounds, Protocol};

/// 2026-01-01T12:00:00Z, where the clock stands.
fn noon() -> Timestamp {
    Timestamp::parse("2026-01-01T12:00:00Z").expect("a moment")
}

/// What is looked at together: whatever order it comes in.
const WORLDS: [Bounds; 3] = [
    // Approvals and policies, with two keys and three holders.
    Bounds { holders: 3, asks: 2, remote: false, leases: false },
    // Leases, executors and the remote, with two keys and three holders.
    Bounds { holders: 3, asks: 0, remote: true, leases: true },
    // All of it, with two holders and one approval.
    Bounds { holders: 2, asks: 1, remote: true, leases: true },
];

/// The same without optimisation: as much as takes seconds.
const SMALL_WORLDS: [Bounds; 3] = [
    Bounds { holders: 1, asks: 1, remote: false, leases: false },
    Bounds { holders: 2, asks: 0, remote: true, leases: false },
    Bounds { holders: 2, asks: 0, remote: false, leases: true },
];

#[test]
fn the_promises_hold_in_every_reachable_state() {
    for bounds in if cfg!(debug_assertions) { SMALL_WORLDS } else { WORLDS } {
        let begin = Instant::now();
        let checker = Protocol::new(&Real, bounds).checker().threads(2).spawn_bfs().join();
        for (name, path) in checker.discoveries() {
            assert!(!ghost::PROMISES.contains(&name), "{name}: {:#?}", path.into_actions());
        }
        checker.assert_properties();
        let (states, steps, depth) =
            (checker.unique_state_count(), checker.state_count(), checker.max_depth());
        println!("{bounds:?}: {states} states, {steps} steps, depth {depth}, {:?}", begin.elapsed());
    }
}

fn each_is_found(mutants: Vec<Mutant>) {
    for mutant in mutants {
        let Mutant { name, bounds, rules, promise } = mutant;
        let rules = Box::leak(Box::new(rules));
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
fn every_broken_rule_of_attempts_is_found() {
    each_is_found(mutants::attempts());
}

#[test]
fn every_broken_rule_of_approvals_is_found() {
    each_is_found(mutants::approvals());
}
