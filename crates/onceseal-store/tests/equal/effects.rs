//! The player of actions, approvals and effects.

#[path = "../../../onceseal-core/tests/properties/commands.rs"]
mod commands;
#[path = "../../../onceseal-core/tests/properties/naive.rs"]
mod naive;
#[path = "../../../onceseal-core/tests/properties/play.rs"]
mod play;
#[path = "../../../onceseal-core/tests/properties/policies.rs"]
mod policies;

use crate::executor::Rules;
pub(crate) use commands::{Do, step};

pub(crate) fn play(rules: &dyn Rules, steps: &[Do]) {
    let mut play = play::Play::new(rules);
    steps.iter().for_each(|step| play.step(step).expect("the rules say what the model says"));
}
