//! Whatever is done about the tasks of runs.

use std::sync::Arc;

use onceseal::Principal;
use onceseal::core::command::Command;
use onceseal::core::hash::Hash;
use onceseal::core::id::HolderKey;
use onceseal::core::json::{self, Limits, Value};
use onceseal::core::task::{
    Fact, GrantAttempts, MoveTask, Plan, PlanTasks, QueueTask, TakeTask, TaskState, TaskTo,
};
use onceseal::core::time::Span;
use proptest::prelude::*;

use super::{World, chosen};
use crate::sample::host;

/// One thing done about tasks; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Working {
    Plan { run: u8, plan: u8, request: u16 },
    Take { run: u8, holder: u8 },
    Validate { task: u8, request: u16 },
    Pass { task: u8, request: u16 },
    Stop { task: u8, state: u8, request: u16 },
    Queue { task: u8, request: u16 },
    Grant { task: u8 },
}

pub(super) fn working() -> impl Strategy<Value = Working> {
    let request = any::<u16>();
    prop_oneof![
        2 => (any::<u8>(), any::<u8>(), request)
            .prop_map(|(run, plan, request)| Working::Plan { run, plan, request }),
        4 => (any::<u8>(), 0..3u8).prop_map(|(run, holder)| Working::Take { run, holder }),
        4 => (any::<u8>(), request).prop_map(|(task, request)| Working::Validate { task, request }),
        4 => (any::<u8>(), request).prop_map(|(task, request)| Working::Pass { task, request }),
        2 => (any::<u8>(), any::<u8>(), request)
            .prop_map(|(task, state, request)| Working::Stop { task, state, request }),
        3 => (any::<u8>(), request).prop_map(|(task, request)| Working::Queue { task, request }),
        2 => any::<u8>().prop_map(|task| Working::Grant { task }),
    ]
}

/// Plans that share some tasks, change some and leave some out.
const PLANS: [&str; 3] = [
    r#"{"tasks":[{"id":"t0","attempts":1},{"id":"t1","depends_on":["t0"],"phases":["one","two"]}]}"#,
    r#"{"tasks":[{"id":"t2"},{"id":"t0","attempts":1},{"id":"t1","writes":["a"]},{"id":"t3","reads":["a/b"]}]}"#,
    r#"{"capacity":1,"tasks":[{"id":"t3","reads":["a/b"]},{"id":"t2","depends_on":["t3"]}]}"#,
];

fn plan(text: &str) -> Plan {
    let document = match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(document)) => document,
        other => panic!("no document: {other:?}"),
    };
    Plan::compile(&document).expect("a plan")
}

fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

impl World<'_> {
    pub(super) fn working(&mut self, working: Working) -> Option<Command> {
        let principal = Principal::agent("bot");
        let name = |number: u16| format!("w{number}");
        let (number, to, request) = match working {
            Working::Plan { run, plan: which, request } => {
                self.revisions += 1;
                let plan = Arc::new(plan(PLANS[usize::from(which) % PLANS.len()]));
                let (run, revision, request) = (chosen(&self.runs, run)?, self.revisions, name(request));
                let set = PlanTasks { run, revision, plan, request, principal, under: None };
                return Some(Command::PlanTasks(Box::new(set)));
            }
            Working::Take { run, holder } => {
                let (run, holder, length) =
                    (chosen(&self.runs, run)?, HolderKey([holder; 16]), Span::minutes(5));
                return Some(Command::TakeTask(TakeTask { run, holder, length, again: false, principal }));
            }
            Working::Queue { task, request } => {
                let (run, task, _) = chosen(&self.tasks, task)?;
                let request = name(request);
                return Some(Command::QueueTask(QueueTask { run, task, request, principal }));
            }
            Working::Grant { task } => {
                let (run, task, _) = chosen(&self.tasks, task)?;
                let (person, reason) = (host("ann"), "looked at".to_owned());
                return Some(Command::GrantAttempts(GrantAttempts { run, task, person, reason }));
            }
            Working::Validate { task, request } => (task, TaskTo::Validating(fact("bot")), request),
            Working::Pass { task, request } => (task, TaskTo::Passed(fact("ci")), request),
            Working::Stop { task, state, request } => {
                use TaskState as S;
                let states = [S::Repairable, S::Retryable, S::Paused, S::ApprovalNeeded, S::Failed];
                let (state, code) = (chosen(&states, state)?, "why".to_owned());
                (task, TaskTo::Stopped { state, code, fact: None }, request)
            }
        };
        let (run, task, under) = chosen(&self.tasks, number)?;
        let request = name(request);
        Some(Command::MoveTask(Box::new(MoveTask { run, task, to, request, principal, under })))
    }
}
