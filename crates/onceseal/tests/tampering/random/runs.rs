//! Whatever is done about runs.

use std::sync::Arc;

use onceseal::Principal;
use onceseal::core::command::Command;
use onceseal::core::hash::Hash;
use onceseal::core::id::{RootId, RunId};
use onceseal::core::run::{BindChange, Definition, StartRun, Subject, Towards, Transition};
use proptest::prelude::*;

use super::{World, chosen};

/// One thing done about runs; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Going {
    Start { change: Option<u8>, request: u8 },
    Bind { run: u8, change: u8, request: u8 },
    Move { run: u8, state: u8, request: u8 },
    Ask { run: u8, command: u8, request: u8 },
}

pub(super) fn going() -> impl Strategy<Value = Going> {
    let request = 0..16u8;
    prop_oneof![
        3 => (proptest::option::of(0..3u8), request.clone())
            .prop_map(|(change, request)| Going::Start { change, request }),
        1 => (any::<u8>(), 0..3u8, request.clone())
            .prop_map(|(run, change, request)| Going::Bind { run, change, request }),
        2 => (any::<u8>(), any::<u8>(), request.clone())
            .prop_map(|(run, state, request)| Going::Move { run, state, request }),
        2 => (any::<u8>(), any::<u8>(), request)
            .prop_map(|(run, command, request)| Going::Ask { run, command, request }),
    ]
}

fn design() -> Definition {
    Definition::built_in().into_iter().find(|found| found.kind() == "design").expect("built in")
}

impl World<'_> {
    pub(super) fn going(&self, going: Going) -> Option<Command> {
        let principal = Principal::agent("bot");
        let request = |number: u8| format!("r{number}");
        let step = |run: RunId, to: Towards, number: u8| {
            let (principal, request) = (principal.clone(), request(number));
            Command::Transition(Transition { run, to, code: None, request, principal })
        };
        Some(match going {
            Going::Start { change, request: number } => {
                let unnamed = || Subject::Provisional(Hash([0xbb; 32]));
                let subject = change.map_or_else(unnamed, |change| Subject::Change(format!("c{change}")));
                let (definition, request) = (Arc::new(design()), request(number));
                let start = StartRun { root: RootId([1; 16]), definition, subject, request, principal };
                Command::StartRun(Box::new(start))
            }
            Going::Bind { run, change, request: number } => {
                let (change, request) = (format!("c{change}"), request(number));
                Command::BindChange(BindChange { run: chosen(&self.runs, run)?, change, request, principal })
            }
            Going::Move { run, state, request } => {
                let states: Vec<_> = design().states().keys().cloned().collect();
                step(chosen(&self.runs, run)?, Towards::State(chosen(&states, state)?), request)
            }
            Going::Ask { run, command, request } => {
                let name = chosen(&["cancel", "resume", "discard", "rebind"], command)?;
                step(chosen(&self.runs, run)?, Towards::Command(name.to_owned()), request)
            }
        })
    }
}
