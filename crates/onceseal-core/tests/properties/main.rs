//! Random sequences of commands against a naive model of the design.

#[path = "../support/broken.rs"]
mod broken;
#[path = "../support/calls.rs"]
mod calls;
mod commands;
#[path = "../support/executor.rs"]
mod executor;
mod mutants;
mod naive;
mod play;
mod policies;
#[path = "../support/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use commands::{Do, step};
use executor::{Real, Rules};
use play::Play;

/// Plays a sequence; the first difference, if any.
fn play(rules: &dyn Rules, steps: &[Do]) -> Result<(), String> {
    let mut play = Play::new(rules);
    for step in steps {
        play.step(step)?;
    }
    play.world.check();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_say_what_the_naive_model_says(steps in prop::collection::vec(step(), 60)) {
        play(&Real, &steps).map_err(|differs| TestCaseError::fail(format!("{differs}\n{steps:?}")))?;
    }
}

/// How many random sequences it takes at most to find a broken rule.
const SEQUENCES: usize = 500;

#[test]
fn every_broken_rule_is_found() {
    for (name, rules) in mutants::all() {
        let mut runner = TestRunner::deterministic();
        let sequences = prop::collection::vec(step(), 60);
        let found = (1..=SEQUENCES).find_map(|nth| {
            let steps = sequences.new_tree(&mut runner).expect("a sequence").current();
            // A rule may be so broken that its events do not fold.
            match catch_unwind(AssertUnwindSafe(|| play(&rules, &steps))) {
                Ok(Ok(())) => None,
                Ok(Err(differs)) => Some((nth, differs)),
                Err(_) => Some((nth, "its events do not fold".to_owned())),
            }
        });
        let (nth, differs) = found.unwrap_or_else(|| panic!("{name}: not found"));
        println!("{name}: found in sequence {nth}: {differs}");
    }
}
