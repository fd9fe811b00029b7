//! A process that carries runs out until it is killed at a named point.
//!
//! `runner <database> <ledger> <first run> <runs> <clock, µs>`, armed by
//! `ONCESEAL_CRASH=<point>:<n>`. It prints what it was answered before it goes on:
//! `verified <n> <task>`, and `completed <n> <run>`. Each task appends its run, its
//! name and its fence to the ledger.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use onceseal_core::action::{Action, Principal};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::{AcquireLease, Lease, Resource};
use onceseal_core::reply::{Reply, RunNow, TaskNow};
use onceseal_core::run::{BindDeliveries, Delivery, RunRow, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{Fact, MoveTask, Plan, PlanTasks, TakeTask, TaskState, TaskTo};
use onceseal_core::time::Span;
use onceseal_store::Store;
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::fault::reach;
use onceseal_store::read::row_of;
use onceseal_tests::armed::armed;
use onceseal_tests::job::{PLAN, TASKS, definition};
use onceseal_tests::shop::options;
use onceseal_tests::vfs::Recorder;

const LEASE: Span = Span::seconds(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, ledger, first, runs, wall_us] = &arguments[..] else { panic!("five arguments") };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let clock = Arc::new(ManualClock::new(Reading { wall_us: number(wall_us) as i64, boot_us: 0 }));
    let recorder = armed();
    let options = options(&clock, recorder.as_ref().map(Recorder::name));
    let store = Store::sqlite(PathBuf::from(database), &options).expect("opened");
    // The time is another one for each process.
    let mut holder = [0; 16];
    holder[..8].copy_from_slice(&number(wall_us).to_be_bytes());
    let runner = Runner { store, ledger: PathBuf::from(ledger), holder: HolderKey(holder) };
    for n in number(first)..number(first) + number(runs) {
        let run = runner.carry_out(n);
        println!("completed {n} {run}");
    }
    runner.store.close();
}

struct Runner {
    store: Store,
    ledger: PathBuf,
    holder: HolderKey,
}

fn principal() -> Principal {
    Principal::agent("runner")
}

fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

impl Runner {
    fn ask(&self, command: Command) -> Reply {
        self.store.run(command).expect("answered")
    }

    fn asked(&self, command: Command) -> RunNow {
        match self.ask(command) {
            Reply::Run(now) => *now,
            other => panic!("{other:?}"),
        }
    }

    /// Goes on with a run from wherever it is, to its end.
    fn carry_out(&self, n: u64) -> RunId {
        let (root, subject, request) =
            (RootId([1; 16]), Subject::Change(format!("c{n}")), format!("start-{n}"));
        let definition = Arc::new(definition());
        let start = StartRun { root, definition, subject, request, principal: principal() };
        let run = self.asked(Command::StartRun(Box::new(start))).answered.run;
        if self.row(run).1.terminal {
            return run;
        }
        let lease = self.hold(run);
        // Taken over from whoever died under the lease before, it was interrupted.
        let (sequence, row) = self.row(run);
        if row.state != "running" {
            self.go(run, "running", format!("on-at-{sequence}"), &lease);
        }
        self.prepare(run, &lease);
        while !self.is_done(run) {
            self.work(n, run);
        }
        self.go(run, "completed", "done".to_owned(), &lease);
        run
    }

    fn row(&self, run: RunId) -> (u64, RunRow) {
        let stored = self.store.read(|snapshot| Ok(row_of(snapshot.stream(&StreamId::run(run))?)));
        match stored.expect("readable") {
            Some(Stored { head, row: Row::Run(row) }) => (head.sequence, row),
            other => panic!("no run: {other:?}"),
        }
    }

    /// The lease on the run: whoever died has it no more.
    fn hold(&self, run: RunId) -> Lease {
        let (resource, holder) = (Resource::Run(run), self.holder);
        let take = AcquireLease { resource, holder, length: LEASE, shared: false, preempt: None };
        match self.ask(Command::AcquireLease(Box::new(take))) {
            Reply::Lease(now) => now.lease,
            other => panic!("{other:?}"),
        }
    }

    fn go(&self, run: RunId, state: &str, request: String, lease: &Lease) {
        let (to, under) = (Towards::State(state.to_owned()), Some(lease.clone()));
        let go = Transition { run, to, code: None, request, principal: principal(), under };
        self.asked(Command::Transition(go));
    }

    /// Binds what is delivered, and plans the tasks for it: asked again, it is as it
    /// was.
    fn prepare(&self, run: RunId, lease: &Lease) {
        let delivery = Delivery {
            gate: "free".to_owned(),
            revision: 1,
            receipt: Hash([1; 32]),
            contract: None,
            record: None,
            approval: None,
        };
        let bind = BindDeliveries {
            run,
            deliveries: vec![delivery],
            environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
            request: "bind".to_owned(),
            principal: principal(),
            under: Some(lease.clone()),
        };
        self.asked(Command::BindDeliveries(Box::new(bind)));
        let Ok(Value::Object(document)) = json::read(PLAN.as_bytes(), &Limits::DATA) else {
            panic!("no document")
        };
        let (plan, request) = (Arc::new(Plan::compile(&document).expect("a plan")), "plan".to_owned());
        let under = Some(lease.clone());
        let set = PlanTasks { run, revision: 1, plan, request, principal: principal(), under };
        self.asked(Command::PlanTasks(Box::new(set)));
    }

    fn is_done(&self, run: RunId) -> bool {
        let state = |id: &str| {
            let stream = self.store.tenant().task(run, id);
            let stored = self.store.read(|snapshot| Ok(row_of(snapshot.stream(&stream)?)));
            match stored.expect("readable") {
                Some(Stored { row: Row::Task(row), .. }) => row.state,
                other => panic!("no task: {other:?}"),
            }
        };
        TASKS.iter().all(|id| state(id) == TaskState::Verified)
    }

    /// Carries the next task out. Where there is none, whoever died has them.
    fn work(&self, n: u64, run: RunId) {
        let take = TakeTask { run, holder: self.holder, length: LEASE, again: false, principal: principal() };
        match self.ask(Command::TakeTask(take)) {
            Reply::Task(task) => self.carry_task_out(n, run, &task),
            Reply::Refused(refusal) if refusal.code == Code::NoTask => {
                let lapse = |id: &str| {
                    let resource = Resource::Task(run, id.to_owned()).to_string();
                    let lapsed = self.ask(Command::Lapse(self.store.tenant().lease(&resource)));
                    lapsed == (Reply::Done { changed: true })
                };
                assert!(TASKS.into_iter().filter(|id| lapse(id)).count() > 0, "nobody has them: {refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn carry_task_out(&self, n: u64, run: RunId, task: &TaskNow) {
        let point = |name| reach(name).expect("armed to kill, not to fail");
        point("before_execute");
        let mut ledger = OpenOptions::new().create(true).append(true).open(&self.ledger).expect("the ledger");
        let (id, fence) = (&task.task, task.lease.lease.fence);
        let line = format!("{n} {id} {fence}\n");
        ledger.write_all(line.as_bytes()).and_then(|()| ledger.sync_all()).expect("written");
        point("after_execute");
        for (to, name) in
            [(TaskTo::Validating(fact("runner")), "made"), (TaskTo::Passed(fact("check")), "right")]
        {
            let (request, under) = (format!("{name}-{id}-{fence}"), task.lease.lease.clone());
            let go = MoveTask { run, task: id.clone(), to, request, principal: principal(), under };
            self.asked(Command::MoveTask(Box::new(go)));
        }
        println!("verified {n} {id}");
    }
}
