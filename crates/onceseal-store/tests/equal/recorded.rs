//! Random commands, as the tests of the rules draw them: each player plays on a
//! world of its own, and what it says there is written down.

use std::sync::Mutex;

use onceseal_core::command::Stamped;
use onceseal_core::decide::{Verdict, decide};
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Pinned, View};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::executor::Rules;
use crate::jobs::Jobs;
use crate::odds::Odds;
use crate::system::System;
use crate::{effects, runs};

/// Of one sequence.
const STEPS: usize = 500;

/// A command, and when it was said.
pub(crate) type Said = (Stamped, Timestamp);

/// The rules as they are, which write down what they decide.
#[derive(Default)]
struct Recorder(Mutex<Vec<Said>>);

impl Rules for Recorder {
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        let mut said = self.0.lock().expect("nobody panics here");
        // It is decided again with what it was found to need.
        if said.last().is_none_or(|(last, _)| last.nonce != command.nonce) {
            said.push((command.clone(), now));
        }
        decide(pinned, view, command, now)
    }
}

/// Who says something; who says less in one sequence has more of them.
const PLAYERS: [fn(&Recorder, u64); 8] =
    [say_of_effects, say_of_runs, say_odds, work, say_of_effects, say_of_runs, say_odds, operate];

fn say_of_effects(rules: &Recorder, seed: u64) {
    effects::play(rules, &drawn(seed, &vec(effects::step(), STEPS)));
}

fn say_of_runs(rules: &Recorder, seed: u64) {
    let (texts, steps) = drawn(seed, &(runs::definitions(), vec(runs::step(), STEPS)));
    runs::play(rules, &texts, &steps);
}

fn say_odds(rules: &Recorder, seed: u64) {
    Odds::new(rules, seed).run();
}

fn work(rules: &Recorder, seed: u64) {
    Jobs::new(rules, seed).run().expect("the rules hold");
}

fn operate(rules: &Recorder, seed: u64) {
    System::new(rules, seed).run().expect("the rules hold");
}

fn drawn<S: Strategy>(seed: u64, strategy: &S) -> S::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).expect("it is drawn").current()
}

/// What a seed says; the first command makes the tenant.
pub(crate) fn recorded(seed: u64) -> Vec<Said> {
    let recorder = Recorder::default();
    PLAYERS[(seed % PLAYERS.len() as u64) as usize](&recorder, seed);
    recorder.0.into_inner().expect("nobody panics here")
}
