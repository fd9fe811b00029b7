//! The player of runs, leases and handoffs.

#[path = "../../../onceseal-core/tests/properties_runs/definitions.rs"]
mod definitions;
#[path = "../../../onceseal-core/tests/properties_runs/handing.rs"]
mod handing;
#[path = "../../../onceseal-core/tests/properties_runs/naive.rs"]
mod naive;
#[path = "../../../onceseal-core/tests/properties_runs/play.rs"]
mod play;
#[path = "../../../onceseal-core/tests/properties_runs/steps.rs"]
mod steps;

use crate::executor::Rules;
pub(crate) use definitions::definitions;
pub(crate) use steps::{Do, step};

pub(crate) fn play(rules: &dyn Rules, texts: &[String], steps: &[Do]) {
    let mut play = play::Play::new(rules, texts);
    steps.iter().for_each(|step| play.step(step).expect("the rules say what the model says"));
}
