//! Plays steps on the rules and on the second opinion, and holds both together.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::approval::Identity;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::Lease;
use onceseal_core::reply::Reply;
use onceseal_core::run::{Definition, StartRun, Subject, Towards, Transition};
use onceseal_core::task::{
    Fact, GrantAttempts, MoveTask, Plan, PlanTasks, QueueTask, TakeTask, TaskState, TaskTo,
};
use onceseal_core::time::Span;

use crate::executor::Real;
use crate::naive::{Naive, Stands, Task};
use crate::world::World;

const POLICY: &str = "schema: onceseal.policy/v1\nactions: {}\n";
const LENGTH: Span = Span::minutes(5);

/// One thing that happens; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Take,
    Pass(u8),
    Stop {
        task: u8,
        to: u8,
        why: bool,
    },
    Queue(u8),
    /// Every lease is over, and swept.
    Outlast,
    Grant(u8),
    Tick,
}

pub(crate) struct Play {
    world: World<'static>,
    run: RunId,
    naive: Naive,
    leases: BTreeMap<usize, Lease>,
    requests: u32,
}

fn document(tasks: &[Task], capacity: u32) -> String {
    let ids = |numbers: &[usize]| numbers.iter().map(|at| format!("\"t{at}\"")).collect::<Vec<_>>().join(",");
    let texts = |texts: &[String]| texts.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(",");
    let mut out = format!("{{\"capacity\":{capacity},\"tasks\":[");
    for (at, task) in tasks.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let phases: Vec<_> = (0..task.phases).map(|phase| format!("p{phase}")).collect();
        let (depends_on, conflicts) = (ids(&task.depends_on), ids(&task.conflicts));
        let (phases, resources) = (texts(&phases), texts(&task.resources));
        let (reads, writes, attempts) = (texts(&task.reads), texts(&task.writes), task.attempts);
        write!(
            out,
            r#"{comma}{{"id":"t{at}","attempts":{attempts},"conflicts":[{conflicts}],"depends_on":[{depends_on}],"phases":[{phases}],"reads":[{reads}],"resources":[{resources}],"writes":[{writes}]}}"#
        )
        .expect("a text");
    }
    out + "]}"
}

fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

fn principal() -> Principal {
    Principal::agent("worker")
}

impl Play {
    pub(crate) fn begin(tasks: &[Task], capacity: u32) -> Play {
        let mut world = World::new(&Real, POLICY);
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let definition = Arc::new(definition.expect("built in"));
        let (root, subject) = (RootId([1; 16]), Subject::Change("c".to_owned()));
        let (request, principal) = ("start".to_owned(), principal());
        let start = StartRun { root, definition, subject, request, principal };
        let run = match world.run(Command::StartRun(Box::new(start))) {
            Reply::Run(now) => now.answered.run,
            other => panic!("no run: {other:?}"),
        };
        let naive = Naive::new(tasks, capacity, world.now.micros().unsigned_abs());
        let mut play = Play { world, run, naive, leases: BTreeMap::new(), requests: 0 };
        let (to, request) = (Towards::State("running".to_owned()), play.request());
        let go = Transition { run, to, code: None, request, principal: self::principal(), under: None };
        assert!(matches!(play.world.run(Command::Transition(go)), Reply::Run(_)));
        let document = document(tasks, capacity);
        let Ok(Value::Object(document)) = json::read(document.as_bytes(), &Limits::DATA) else {
            panic!("no document: {document}")
        };
        let plan = Arc::new(Plan::compile(&document).expect("a plan"));
        let request = play.request();
        let set = PlanTasks { run, revision: 1, plan, request, principal: self::principal(), under: None };
        assert!(matches!(play.world.run(Command::PlanTasks(Box::new(set))), Reply::Run(_)));
        play
    }

    fn request(&mut self) -> String {
        self.requests += 1;
        format!("r{}", self.requests)
    }

    fn now(&self) -> u64 {
        self.world.now.micros().unsigned_abs()
    }

    /// Takes the next task by the rules.
    pub(crate) fn take_alone(&mut self) -> Option<usize> {
        let take = TakeTask {
            run: self.run,
            holder: HolderKey([1; 16]),
            length: LENGTH,
            again: false,
            principal: principal(),
        };
        match self.world.run(Command::TakeTask(take)) {
            Reply::Task(task) => {
                let number = task.task[1..].parse().expect("a number");
                self.leases.insert(number, task.lease.lease);
                Some(number)
            }
            Reply::Refused(refusal) if refusal.code == Code::NoTask => None,
            other => panic!("neither a task nor none: {other:?}"),
        }
    }

    /// Has a task that is at work done, by the rules.
    pub(crate) fn finish(&mut self, task: usize) -> String {
        self.go(task, TaskTo::Validating(fact("worker")));
        self.go(task, TaskTo::Passed(fact("ci")))
    }

    fn go(&mut self, task: usize, to: TaskTo) -> String {
        let (run, request, under) = (self.run, self.request(), self.leases[&task].clone());
        let go = MoveTask { run, task: format!("t{task}"), to, request, principal: principal(), under };
        match self.world.run(Command::MoveTask(Box::new(go))) {
            Reply::Run(now) => now.answered.state,
            other => panic!("t{task} did not move: {other:?}"),
        }
    }

    fn worked_on(&self, number: u8) -> Option<usize> {
        let at_work = self.naive.at_work();
        (!at_work.is_empty()).then(|| at_work[usize::from(number) % at_work.len()])
    }

    fn any(&self, number: u8) -> usize {
        usize::from(number) % self.naive.tasks.len()
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Take => {
                let expected = self.naive.next();
                assert_eq!(self.take_alone(), expected, "the next one");
                expected.into_iter().for_each(|task| self.naive.take(task));
            }
            Step::Pass(number) => {
                let Some(task) = self.worked_on(number) else { return };
                let (state, now) = (self.finish(task), self.now());
                assert_eq!(state == "verified", self.naive.pass(task, now), "{state}");
            }
            Step::Stop { task, to, why } => {
                let Some(task) = self.worked_on(task) else { return };
                use TaskState as S;
                let states = [S::Repairable, S::Retryable, S::Paused, S::ApprovalNeeded, S::Failed];
                let state = states[usize::from(to) % states.len()];
                let code = if why { "broken" } else { "flaky" };
                self.go(task, TaskTo::Stopped { state, code: code.to_owned(), fact: None });
                self.naive.stop(task, code, state != S::Failed);
            }
            Step::Queue(number) => {
                let task = self.any(number);
                let (run, request) = (self.run, self.request());
                let queue = QueueTask { run, task: format!("t{task}"), request, principal: principal() };
                let is_queued = matches!(self.world.run(Command::QueueTask(queue)), Reply::Run(_));
                let now = self.now();
                assert_eq!(is_queued, self.naive.queue(task, now), "t{task}");
            }
            Step::Outlast => self.outlast(),
            Step::Grant(number) => {
                let task = self.any(number);
                let person = Identity::parse("os:owner").expect("a person");
                let (run, reason) = (self.run, "looked at".to_owned());
                let grant = GrantAttempts { run, task: format!("t{task}"), person, reason };
                self.world.run(Command::GrantAttempts(grant));
                self.naive.grant(task);
            }
            Step::Tick => self.world.now = self.world.now + Span::millis(1),
        }
    }

    fn outlast(&mut self) {
        self.world.now = self.world.now + LENGTH + Span::micros(1);
        for task in self.naive.at_work() {
            let resource = format!("run/{}/task/t{task}", self.run);
            let stream = self.world.pinned.tenant.lease(&resource);
            self.world.run(Command::Lapse(stream));
            let now = self.now();
            self.naive.interrupt(task, now);
        }
    }

    /// Holds the store and the second opinion together once more.
    pub(crate) fn check(&self) {
        let at_work = self.naive.stands.iter().filter(|stands| **stands == Stands::AtWork).count();
        assert!(at_work <= self.naive.capacity);
        self.world.check();
    }
}
