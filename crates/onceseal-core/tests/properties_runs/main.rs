//! Random commands about runs of random definitions, against a naive model of
//! what is promised of them: who finds which run, what may follow, what is
//! answered twice, what is bound once, what is done under a lease, who hands over.

#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/broken.rs"]
mod broken;
mod definitions;
#[path = "../support/executor.rs"]
mod executor;
mod handing;
mod mutants;
mod naive;
mod play;
mod steps;
#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use definitions::definitions;
use executor::{Real, Rules};
use play::Play;
use steps::{Do, step};

const STEPS: usize = 60;

/// Plays a sequence; the first difference, if any.
fn play(rules: &dyn Rules, texts: &[String], steps: &[Do]) -> Result<(), String> {
    let mut play = Play::new(rules, texts);
    for step in steps {
        play.step(step)?;
    }
    play.world.check();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_of_runs_say_what_the_naive_model_says(
        texts in definitions(),
        steps in prop::collection::vec(step(), STEPS),
    ) {
        play(&Real, &texts, &steps)
            .map_err(|differs| TestCaseError::fail(format!("{differs}\n{texts:#?}\n{steps:?}")))?;
    }
}

/// How many random sequences it takes at most to find a broken rule.
const SEQUENCES: usize = 500;

#[test]
fn every_broken_rule_of_runs_is_found() {
    // What is broken on purpose panics where the fold refuses it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut all = Vec::new();
    for (name, rules) in mutants::all() {
        let mut runner = TestRunner::deterministic();
        let sequences = (definitions(), prop::collection::vec(step(), STEPS));
        let found = (1..=SEQUENCES).find_map(|nth| {
            let (texts, steps) = sequences.new_tree(&mut runner).expect("a sequence").current();
            match catch_unwind(AssertUnwindSafe(|| play(&rules, &texts, &steps))) {
                Ok(Ok(())) => None,
                Ok(Err(differs)) => Some((nth, differs)),
                Err(_) => Some((nth, "its events do not fold".to_owned())),
            }
        });
        all.push((name, found));
    }
    drop(std::panic::take_hook());
    for (name, found) in all {
        let (nth, differs) = found.unwrap_or_else(|| panic!("{name}: not found"));
        println!("{name}: found in sequence {nth}: {differs}");
    }
}
