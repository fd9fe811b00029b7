//! Tasks: by what they move on, how often they are attempted, and what is told of
//! them.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::{CommitLease, InterruptLease, Lease};
use onceseal_core::reply::{Refusal, Reply, RunNow, TaskNow};
use onceseal_core::run::{Definition, RunRow, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{
    Blocking, Fact, GrantAttempts, MoveTask, Plan, PlanTasks, QueueTask, TakeTask, TaskRow, TaskState,
    TaskTo, blockers,
};
use onceseal_core::time::Span;

use crate::calls::identity;
use crate::world::World;
use crate::{pay_world, refused};

pub(crate) const MINUTE: Span = Span::minutes(1);

pub(crate) fn plan(document: &str) -> Arc<Plan> {
    let Ok(Value::Object(document)) = json::read(document.as_bytes(), &Limits::DATA) else {
        panic!("no document: {document}")
    };
    Arc::new(Plan::compile(&document).expect("a plan"))
}

pub(crate) fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

pub(crate) fn stopped(state: TaskState, code: &str) -> TaskTo {
    TaskTo::Stopped { state, code: code.to_owned(), fact: None }
}

/// A run whose tasks are tried, and a way to say what happens to them.
pub(crate) struct Job<'w> {
    pub(crate) world: World<'w>,
    pub(crate) run: RunId,
    pub(crate) requests: u32,
}

impl Job<'_> {
    pub(crate) fn begin() -> Job<'static> {
        let mut world = pay_world();
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
        let (root, request) = (RootId([1; 16]), "start".to_owned());
        let definition = Arc::new(definition.expect("built in"));
        let start = StartRun { root, definition, subject, request, principal };
        let run = now(world.run(Command::StartRun(Box::new(start)))).answered.run;
        let mut job = Job { world, run, requests: 0 };
        job.go("running");
        job
    }

    pub(crate) fn with(document: &str) -> Job<'static> {
        let mut job = Job::begin();
        now(job.plan(1, document));
        job
    }

    pub(crate) fn request(&mut self) -> String {
        self.requests += 1;
        format!("r{}", self.requests)
    }

    pub(crate) fn go(&mut self, state: &str) {
        let (to, principal, request) =
            (Towards::State(state.to_owned()), Principal::agent("bot"), self.request());
        let go = Transition { run: self.run, to, code: None, request, principal, under: None };
        now(self.world.run(Command::Transition(go)));
    }

    pub(crate) fn plan(&mut self, revision: u64, document: &str) -> Reply {
        let (run, plan, request) = (self.run, plan(document), self.request());
        let set = PlanTasks { run, revision, plan, request, principal: Principal::agent("bot"), under: None };
        self.world.run(Command::PlanTasks(Box::new(set)))
    }

    pub(crate) fn try_take(&mut self, holder: u8) -> Reply {
        let (holder, principal) = (HolderKey([holder; 16]), Principal::agent("worker"));
        let take = TakeTask { run: self.run, holder, again: false, length: MINUTE, principal };
        self.world.run(Command::TakeTask(take))
    }

    #[track_caller]
    pub(crate) fn take(&mut self) -> TaskNow {
        match self.try_take(1) {
            Reply::Task(task) => *task,
            other => panic!("no task: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn none(&mut self) -> String {
        let refusal = refused(self.try_take(1));
        assert_eq!(refusal.code, Code::NoTask);
        refusal.detail.expect("why")
    }

    pub(crate) fn to(&mut self, task: &str, to: TaskTo, under: &Lease) -> Reply {
        let (request, principal) = (self.request(), Principal::agent("controller"));
        let (run, task, under) = (self.run, task.to_owned(), under.clone());
        self.world.run(Command::MoveTask(Box::new(MoveTask { run, task, to, request, principal, under })))
    }

    #[track_caller]
    pub(crate) fn pass(&mut self, task: &TaskNow) -> String {
        self.world.now = self.world.now + Span::millis(1);
        let lease = task.lease.lease.clone();
        now(self.to(&task.task, TaskTo::Validating(fact("worker")), &lease));
        now(self.to(&task.task, TaskTo::Passed(fact("ci")), &lease)).answered.state
    }

    #[track_caller]
    pub(crate) fn stop(&mut self, task: &TaskNow, state: TaskState, code: &str) {
        now(self.to(&task.task, stopped(state, code), &task.lease.lease));
    }

    pub(crate) fn queue(&mut self, task: &str) -> Reply {
        let (request, principal) = (self.request(), Principal::agent("controller"));
        let (run, task) = (self.run, task.to_owned());
        self.world.run(Command::QueueTask(QueueTask { run, task, request, principal }))
    }

    pub(crate) fn task(&self, id: &str) -> TaskRow {
        match self.world.row(&self.world.pinned.tenant.task(self.run, id)) {
            Some(Row::Task(row)) => row.clone(),
            other => panic!("no task: {other:?}"),
        }
    }

    pub(crate) fn state(&self, id: &str) -> TaskState {
        self.task(id).state
    }

    pub(crate) fn run_row(&self) -> RunRow {
        match self.world.row(&StreamId::run(self.run)) {
            Some(Row::Run(row)) => row.clone(),
            other => panic!("no run: {other:?}"),
        }
    }

    /// Until every lease is over.
    pub(crate) fn outlast(&mut self) {
        self.world.now = self.world.now + MINUTE + Span::micros(1);
    }

    pub(crate) fn sweep(&mut self, task: &str) {
        let resource = format!("run/{}/task/{task}", self.run);
        let stream = self.world.pinned.tenant.lease(&resource);
        self.world.run(Command::Lapse(stream));
    }
}

#[track_caller]
pub(crate) fn now(reply: Reply) -> RunNow {
    match reply {
        Reply::Run(now) => *now,
        other => panic!("no run: {other:?}"),
    }
}

pub(crate) const CHAIN: &str = r#"{"tasks":[
    {"id":"a"},{"id":"b","depends_on":["a"]},{"id":"c","depends_on":["a","b"]}]}"#;

#[test]
fn a_task_goes_through_its_phases_by_facts_that_its_worker_does_not_stand_for() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a","phases":["red","green"],"input":{"goal":"x"}}]}"#);
    let task = job.take();
    assert_eq!((task.phase.as_str(), task.spec.contains("\"goal\":\"x\"")), ("red", true));
    let lease = task.lease.lease.clone();
    let early = refused(job.to("a", TaskTo::Passed(fact("ci")), &lease));
    assert_eq!(early.code, Code::TransitionForbidden, "nothing was looked at yet");
    now(job.to("a", TaskTo::Validating(fact("worker")), &lease));
    let claim = refused(job.to("a", TaskTo::Passed(fact("worker")), &lease));
    assert_eq!((claim.code, claim.field), (Code::FactClaimed, Some("produced_by")));
    assert_eq!(now(job.to("a", TaskTo::Passed(fact("ci")), &lease)).answered.state, "running");
    assert_eq!(job.task("a").phase_name(), "green");
    assert_eq!(job.pass(&task), "verified");
    let after = refused(job.to("a", TaskTo::Validating(fact("worker")), &lease));
    assert_eq!(after.code, Code::LeaseFenced, "whoever is done holds it no more");
    job.world.check();
}

#[test]
fn a_phase_that_has_no_attempts_left_does_not_begin_by_itself() {
    let document = |n: u32| {
        format!(r#"{{"tasks":[{{"id":"a","attempts":1,"phases":["one","two"],"input":{{"n":{n}}}}}]}}"#)
    };
    let grant = |job: &mut Job<'_>| {
        let (person, reason, task) = (identity("os:owner"), "it is worth it".to_owned(), "a".to_owned());
        let grant = GrantAttempts { run: job.run, task, person, reason };
        assert_eq!(job.world.run(Command::GrantAttempts(grant)), Reply::Done { changed: true });
    };
    let mut job = Job::with(&document(0));
    let task = job.take();
    assert_eq!(job.pass(&task), "running", "its second phase is attempted");
    now(job.plan(2, &document(1)));
    grant(&mut job);
    let task = job.take();
    assert_eq!((task.phase.as_str(), job.pass(&task).as_str()), ("one", "retryable"));
    let row = job.task("a");
    assert_eq!((row.phase_name(), row.attempts_left()), ("two", 0), "the first is done, and stays so");
    assert_eq!(job.none(), "nothing is queued");
    let late = refused(job.to("a", TaskTo::Validating(fact("worker")), &task.lease.lease));
    assert_eq!(late.code, Code::LeaseFenced, "nobody works on it");
    assert_eq!(refused(job.queue("a")).code, Code::AttemptsSpent);
    grant(&mut job);
    now(job.queue("a"));
    let task = job.take();
    assert_eq!((task.phase.as_str(), job.pass(&task).as_str()), ("two", "verified"));
    job.world.check();
}

#[test]
fn each_cause_and_phase_has_attempts_of_its_own() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a","attempts":1,"phases":["one","two"]}]}"#);
    for (state, code) in [
        (TaskState::Retryable, "flaky"),
        (TaskState::Repairable, "wrong"),
        (TaskState::Paused, "asked"),
        (TaskState::ApprovalNeeded, "scope"),
    ] {
        let task = job.take();
        job.stop(&task, state, code);
        assert_eq!(now(job.queue("a")).answered.state, "queued");
    }
    let task = job.take();
    assert_eq!(job.pass(&task), "running");
    job.stop(&task, TaskState::Retryable, "flaky");
    now(job.queue("a"));
    let task = job.take();
    job.stop(&task, TaskState::Retryable, "flaky");
    assert_eq!(refused(job.queue("a")).code, Code::AttemptsSpent);
    job.world.check();
}

#[test]
fn everything_that_stands_in_the_way_is_told_at_once() {
    let mut job = Job::with(
        r#"{"capacity":9,"tasks":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"},
        {"id":"e","depends_on":["a"]},{"id":"f","conflicts":["d"]}]}"#,
    );
    let taken = [job.take(), job.take(), job.take(), job.take()];
    job.stop(&taken[0], TaskState::ApprovalNeeded, "scope");
    job.stop(&taken[1], TaskState::Retryable, "route_open");
    job.stop(&taken[2], TaskState::Failed, "impossible");
    let tasks: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|id| job.task(id)).into();
    let simple = Definition::built_in().into_iter().find(|found| found.kind() == "simple").expect("built in");
    let found = blockers(&job.run_row(), &simple, &tasks);
    let found: Vec<_> = found.iter().map(|it| (it.blocking, it.task, it.code.as_str())).collect();
    let expected = [
        (Blocking::Decision, Some(0), "scope"),
        (Blocking::Capability, Some(1), "route_open"),
        (Blocking::Decision, Some(2), "impossible"),
        (Blocking::Waiting, Some(4), "dependencies"),
        (Blocking::Waiting, Some(5), "turn"),
    ];
    assert_eq!(found, expected);
    let mut of_run = |state: &str| {
        job.go(state);
        let found = blockers(&job.run_row(), &simple, &[]);
        found.into_iter().map(|it| (it.blocking, it.task, it.code)).collect::<Vec<_>>()
    };
    let idle = (Blocking::Decision, None, "idle:paused".to_owned());
    assert_eq!(of_run("paused"), [idle], "nothing of an idle run goes on");
    assert_eq!(of_run("running"), []);
    assert_eq!(of_run("cancelled"), [], "nothing follows, so nothing is in the way");
}

#[test]
fn a_replay_is_answered_as_the_first_time_and_another_request_is_refused() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"}]}"#);
    let task = job.take();
    let lease = task.lease.lease.clone();
    let run = job.run;
    let go = |to: TaskTo| {
        let (run, task, under) = (run, "a".to_owned(), lease.clone());
        let (request, principal) = ("one".to_owned(), Principal::agent("controller"));
        Command::MoveTask(Box::new(MoveTask { run, task, to, request, principal, under }))
    };
    let first = now(job.world.run(go(TaskTo::Validating(fact("worker")))));
    job.outlast();
    let again = now(job.world.run(go(TaskTo::Validating(fact("worker")))));
    assert_eq!((again.replayed, &again.answered), (true, &first.answered), "whatever became of the lease");
    let other = refused(job.world.run(go(TaskTo::Validating(fact("other")))));
    assert_eq!(other.code, Code::RequestIdConflict);
    job.world.check();
}

#[test]
fn what_cannot_be_is_refused_with_its_member() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#);
    let (a, b) = (job.take(), job.take());
    let mut refuse = |task: &str, to: TaskTo, under: &Lease| -> Refusal { refused(job.to(task, to, under)) };
    let lease = &a.lease.lease;
    for bad in [
        Fact { kind: "No Name".to_owned(), ..fact("worker") },
        Fact { environment: String::new(), ..fact("worker") },
        Fact { produced_by: "a\nb".to_owned(), ..fact("worker") },
    ] {
        assert_eq!(refuse("a", TaskTo::Validating(bad), lease).field, Some("fact"));
    }
    assert_eq!(refuse("a", stopped(TaskState::Paused, ""), lease).field, Some("code"));
    for state in [TaskState::Verified, TaskState::Queued, TaskState::Closed, TaskState::Running] {
        assert_eq!(refuse("a", stopped(state, "x"), lease).code, Code::TransitionForbidden);
    }
    assert_eq!(refuse("a", stopped(TaskState::Paused, "x"), &b.lease.lease).code, Code::LeaseFenced);
    assert_eq!(refuse("z", stopped(TaskState::Paused, "x"), lease).code, Code::TaskUnknown);
    assert_eq!(refused(job.queue("a")).code, Code::TransitionForbidden, "it has not stopped");
    job.world.check();
}

#[test]
fn a_task_that_its_worker_gives_up_is_not_at_work_for_ever() {
    let mut job = Job::with(r#"{"capacity":1,"tasks":[{"id":"a"}]}"#);
    let first = job.take();
    let lease = first.lease.lease.clone();
    job.world.run(Command::InterruptLease(InterruptLease { lease }));
    assert_eq!(
        (job.state("a"), job.task("a").code.as_deref()),
        (TaskState::Ready, Some("operation-interrupted"))
    );
    let second = job.take();
    let (lease, outcome) = (second.lease.lease.clone(), "{}".to_owned());
    job.world.run(Command::CommitLease(CommitLease { lease, outcome }));
    assert_eq!(job.state("a"), TaskState::Ready);
    assert_eq!(job.take().task, "a");
    job.world.check();
}

#[test]
fn nobody_stands_for_what_it_did_under_whatever_name_and_after_whatever_handoff() {
    let mut job = Job::with(r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#);
    let task = job.take();
    let lease = task.lease.lease.clone();
    // Another one did it than who took it, as after a handoff.
    now(job.to("a", TaskTo::Validating(fact("heir")), &lease));
    for name in ["worker", "Worker", "WORKER ", "heir", " Heir"] {
        let claim = refused(job.to("a", TaskTo::Passed(fact(name)), &lease));
        assert_eq!((claim.code, claim.field), (Code::FactClaimed, Some("produced_by")), "{name}");
    }
    assert_eq!(now(job.to("a", TaskTo::Passed(fact("ci")), &lease)).answered.state, "verified");
    // What somebody did of one task is nothing to the next.
    let next = job.take();
    now(job.to("b", TaskTo::Validating(fact("worker")), &next.lease.lease));
    assert_eq!(now(job.to("b", TaskTo::Passed(fact("heir")), &next.lease.lease)).answered.state, "verified");
    job.world.check();
}
