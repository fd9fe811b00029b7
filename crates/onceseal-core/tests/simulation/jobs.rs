//! A run whose tasks are done by workers that crash, whose answers get lost, and
//! whose clock jumps; a controller goes on with it, an operator looks after it,
//! somebody sweeps.

#[path = "jobs/ghost.rs"]
mod ghost;
#[path = "jobs/mutants.rs"]
pub(crate) mod mutants;
#[path = "jobs/plan.rs"]
mod plan;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::lease::{AcquireLease, InterruptLease, Lease, RenewLease, Resource};
use onceseal_core::reply::{Reply, RunNow, TaskNow};
use onceseal_core::run::{RunRow, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{
    Fact, GrantAttempts, MoveTask, PlanTasks, QueueTask, TakeTask, TaskRow, TaskState, TaskTo,
};
use onceseal_core::time::{Span, Timestamp};

use crate::calls::identity;
use crate::chance::Chance;
use crate::executor::Rules;
use crate::world::World;
use ghost::Ghost;
use plan::Tasks;

const POLICY: &str = "schema: onceseal.policy/v1\nactions: {}\n";
const WORKERS: usize = 4;
const STEPS: usize = 160;
const LENGTH: Span = Span::minutes(1);
/// Who works, and stands for nothing that passed.
const WORKER: &str = "worker";

type Holds = Result<(), String>;

/// Somebody who works on a task, or goes on with the run.
#[derive(Clone, Default)]
struct Actor {
    /// It has another id each time it starts.
    starts: u8,
    lease: Option<Lease>,
    task: usize,
    /// What it asked last, if the answer was lost, and what that was.
    unanswered: Option<(Command, RunNow)>,
}

pub(crate) struct Jobs<'r> {
    world: World<'r>,
    chance: Chance,
    run: RunId,
    tasks: Tasks,
    /// The first goes on with the run; the others work.
    actors: Vec<Actor>,
    requests: u64,
    ghost: Ghost,
}

fn fact(by: &str) -> Fact {
    let (kind, environment) = ("checked".to_owned(), "sandbox".to_owned());
    Fact { kind, hash: Hash([7; 32]), environment, produced_by: by.to_owned() }
}

impl<'r> Jobs<'r> {
    pub(crate) fn new(rules: &'r dyn Rules, seed: u64) -> Jobs<'r> {
        let mut world = World::new(rules, POLICY);
        let mut chance = Chance(seed);
        let (root, subject) = (RootId([1; 16]), Subject::Change("c".to_owned()));
        let (request, principal) = ("start".to_owned(), Principal::agent("bot"));
        let start = StartRun { root, definition: plan::definition(), subject, request, principal };
        let run = match world.run(Command::StartRun(Box::new(start))) {
            Reply::Run(now) => now.answered.run,
            other => panic!("no run: {other:?}"),
        };
        let tasks = Tasks::drawn(&mut chance);
        let (actors, ghost) = (vec![Actor::default(); WORKERS + 1], Ghost::new(world.now));
        let mut jobs = Jobs { world, chance, run, tasks, actors, requests: 0, ghost };
        assert!(matches!(jobs.plan(None), Reply::Run(_)), "it is planned");
        jobs
    }

    pub(crate) fn run(mut self) -> Holds {
        for _ in 0..STEPS {
            self.step()?;
            self.holds()?;
        }
        // Nobody fails any more: everything comes to an end.
        for actor in &mut self.actors {
            *actor = Actor { starts: actor.starts + 1, ..Actor::default() };
        }
        for _ in 0..40 {
            self.pass(70);
            self.sweep()?;
            self.control(false)?;
            self.control(false)?;
            self.operate();
            for worker in 1..=WORKERS {
                for _ in 0..6 {
                    self.work(worker, false)?;
                    self.holds()?;
                }
            }
            let is_done = |task| self.task(task).state == TaskState::Verified;
            let goes_on = self.actors[0].lease.is_some() && self.row().state == "running";
            if (0..self.tasks.count()).all(is_done) && goes_on {
                break;
            }
        }
        for task in 0..self.tasks.count() {
            let row = self.task(task);
            if row.state != TaskState::Verified {
                return Err(format!("t{task} ends as {}", row.state));
            }
        }
        // It may learn first that its lease is over.
        self.control(false)?;
        self.control(false)?;
        self.go("completed", false)?;
        if !self.row().terminal {
            return Err(format!("the run ends as {}", self.row().state));
        }
        self.world.check();
        Ok(())
    }

    fn step(&mut self) -> Holds {
        match self.chance.below(20) {
            0..=11 => {
                let worker = 1 + self.chance.below(WORKERS);
                self.work(worker, true)
            }
            12..=14 => self.control(true),
            15 => self.sweep(),
            16 => {
                self.operate();
                Ok(())
            }
            17 => {
                // Somebody is gone, with all that it had in its hands.
                let at = self.chance.below(WORKERS + 1);
                self.actors[at] = Actor { starts: self.actors[at].starts + 1, ..Actor::default() };
                Ok(())
            }
            18 => {
                if self.chance.one_in(4) {
                    self.replan();
                }
                Ok(())
            }
            _ => {
                let seconds = self.chance.below(50) as i64;
                // A clock that is set goes back, too.
                let goes_back = self.chance.one_in(5);
                self.pass(if goes_back { -seconds } else { seconds });
                Ok(())
            }
        }
    }

    fn pass(&mut self, seconds: i64) {
        let micros = self.world.now.micros() + seconds * 1_000_000;
        self.world.now = Timestamp::from_micros(micros).expect("a moment");
        self.ghost.latest = self.ghost.latest.max(self.world.now);
    }

    fn request(&mut self) -> String {
        self.requests += 1;
        format!("r{}", self.requests)
    }

    fn holder(&self, at: usize) -> HolderKey {
        let mut id = [0; 16];
        (id[0], id[1]) = (at as u8 + 1, self.actors[at].starts);
        HolderKey(id)
    }

    /// Asks again what was not answered: it must be the first answer.
    fn repeats(&mut self, at: usize) -> Option<Holds> {
        let (command, first) = self.actors[at].unanswered.take()?;
        Some(match self.world.run(command.clone()) {
            Reply::Run(now) if now.replayed && now.answered == first.answered => Ok(()),
            other => Err(format!("{command:?} was answered {first:?}, and again {other:?}")),
        })
    }

    fn work(&mut self, at: usize, faults: bool) -> Holds {
        if let Some(holds) = self.repeats(at) {
            return holds;
        }
        let Some(lease) = self.actors[at].lease.clone() else { return self.take(at, faults) };
        let task = self.actors[at].task;
        let to = match self.task(task).state {
            _ if faults && self.chance.one_in(6) => {
                let renew = RenewLease { lease, length: LENGTH };
                let reply = self.world.run(Command::RenewLease(renew));
                return self.renewed(at, Some(task), reply);
            }
            TaskState::Validating if faults && self.chance.one_in(8) => TaskTo::Passed(fact(WORKER)),
            TaskState::Validating => TaskTo::Passed(fact("ci")),
            _ if faults && self.chance.one_in(5) => {
                let states = [TaskState::Retryable, TaskState::Repairable, TaskState::Paused];
                let state = states[self.chance.below(states.len())];
                TaskTo::Stopped { state, code: "broken".to_owned(), fact: None }
            }
            _ => TaskTo::Validating(fact(WORKER)),
        };
        let (request, principal) = (self.request(), Principal::agent("controller"));
        let (under, id) = (lease.clone(), format!("t{task}"));
        let go = MoveTask { run: self.run, task: id, to: to.clone(), request, principal, under };
        let command = Command::MoveTask(Box::new(go));
        match self.world.run(command.clone()) {
            Reply::Run(now) => {
                let state = now.answered.state.clone();
                self.ghost.moved(task, lease.fence, self.world.now, &to, WORKER, &state)?;
                if faults && self.chance.one_in(4) {
                    self.actors[at].unanswered = Some((command, *now));
                }
                if !["running", "validating"].contains(&state.as_str()) {
                    self.actors[at].lease = None;
                }
                Ok(())
            }
            Reply::Refused(refusal) if refusal.code == Code::LeaseFenced => {
                self.actors[at].lease = None;
                self.ghost.fenced(Some(task), lease.fence)
            }
            Reply::Refused(refusal) if refusal.code == Code::FactClaimed => Ok(()),
            other => Err(format!("t{task} cannot go on: {other:?}")),
        }
    }

    fn take(&mut self, at: usize, faults: bool) -> Holds {
        let (holder, principal) = (self.holder(at), Principal::agent(WORKER));
        let before: Vec<TaskRow> = (0..self.tasks.count()).map(|task| self.task(task)).collect();
        let take = TakeTask { run: self.run, holder, length: LENGTH, again: false, principal };
        let TaskNow { lease, task, .. } = match self.world.run(Command::TakeTask(take)) {
            Reply::Task(now) => *now,
            Reply::Refused(refusal) if refusal.code == Code::NoTask => return Ok(()),
            other => return Err(format!("neither a task nor none: {other:?}")),
        };
        let task = task[1..].parse().expect("a number");
        self.ghost.taken(task, &before[task], lease.lease.fence, lease.until)?;
        self.ghost.fits(task, &self.tasks)?;
        if self.row().state != "running" {
            return Err(format!("t{task} is taken of a run that is {}", self.row().state));
        }
        // Whoever does not hear of it has nothing, and nobody else has it either.
        if !(faults && self.chance.one_in(6)) {
            (self.actors[at].lease, self.actors[at].task) = (Some(lease.lease), task);
        }
        Ok(())
    }

    fn renewed(&mut self, at: usize, task: Option<usize>, reply: Reply) -> Holds {
        match reply {
            Reply::Lease(now) => self.ghost.renewed(task, now.lease.fence, self.world.now, now.until),
            Reply::Refused(refusal) if refusal.code == Code::LeaseFenced => {
                let fence = self.actors[at].lease.take().expect("a lease").fence;
                self.ghost.fenced(task, fence)
            }
            other => Err(format!("not renewed: {other:?}")),
        }
    }

    /// Whoever goes on with the run has the lease on it.
    fn control(&mut self, faults: bool) -> Holds {
        if let Some(holds) = self.repeats(0) {
            return holds;
        }
        let Some(lease) = self.actors[0].lease.clone() else {
            let (resource, holder) = (Resource::Run(self.run), self.holder(0));
            let take = AcquireLease { resource, holder, length: LENGTH, shared: false, preempt: None };
            return match self.world.run(Command::AcquireLease(Box::new(take))) {
                Reply::Lease(now) => {
                    self.ghost.controlled(now.lease.fence, now.until)?;
                    self.actors[0].lease = Some(now.lease);
                    if faults { Ok(()) } else { self.control(false) }
                }
                Reply::Refused(refusal) if refusal.code == Code::LeaseHeld => Ok(()),
                other => Err(format!("not taken: {other:?}")),
            };
        };
        match self.chance.below(if faults { 6 } else { 1 }) {
            0..=2 if self.row().state != "running" => self.go("running", faults),
            3 => self.go("paused", faults),
            4 => {
                let give_up = InterruptLease { lease: lease.clone() };
                self.actors[0].lease = None;
                match self.world.run(Command::InterruptLease(give_up)) {
                    Reply::Done { changed: true } => self.ghost.given_up(lease.fence, self.world.now),
                    _ => self.ghost.fenced(None, lease.fence),
                }
            }
            _ => {
                let reply = self.world.run(Command::RenewLease(RenewLease { lease, length: LENGTH }));
                self.renewed(0, None, reply)
            }
        }
    }

    fn go(&mut self, to: &str, faults: bool) -> Holds {
        let Some(lease) = self.actors[0].lease.clone() else { return Ok(()) };
        let (to, request, principal) =
            (Towards::State(to.to_owned()), self.request(), Principal::agent("bot"));
        let under = Some(lease.clone());
        let command =
            Command::Transition(Transition { run: self.run, to, code: None, request, principal, under });
        match self.world.run(command.clone()) {
            Reply::Run(now) => {
                if faults && self.chance.one_in(4) {
                    self.actors[0].unanswered = Some((command, *now));
                }
                self.ghost.controls(lease.fence, self.world.now)
            }
            Reply::Refused(refusal) if refusal.code == Code::LeaseFenced => {
                self.actors[0].lease = None;
                self.ghost.fenced(None, lease.fence)
            }
            Reply::Refused(refusal) if refusal.code == Code::TransitionForbidden => Ok(()),
            other => Err(format!("the run cannot go on: {other:?}")),
        }
    }

    fn sweep(&mut self) -> Holds {
        let tenant = self.world.pinned.tenant.clone();
        let tasks = (0..self.tasks.count()).map(|task| Resource::Task(self.run, format!("t{task}")));
        let all: Vec<_> = tasks.chain([Resource::Run(self.run)]).collect();
        for resource in all {
            let before = self.row();
            let swept = self.world.run(Command::Lapse(tenant.lease(&resource.to_string())));
            let is_run = resource == Resource::Run(self.run);
            if swept == (Reply::Done { changed: true })
                && is_run
                && !before.terminal
                && self.row().state != "paused"
            {
                return Err(format!("nobody goes on with a run that is {}", self.row().state));
            }
        }
        Ok(())
    }

    /// A person has attempted again what stopped, or begins anew with no attempts
    /// left.
    fn operate(&mut self) {
        for task in 0..self.tasks.count() {
            let row = self.task(task);
            if !row.state.is_stop() && row.attempts_left() > 0 {
                continue;
            }
            let (run, id) = (self.run, format!("t{task}"));
            let (person, reason) = (identity("os:owner"), "mended".to_owned());
            let grant = GrantAttempts { run, task: id.clone(), person, reason };
            if self.world.run(Command::GrantAttempts(grant)) == (Reply::Done { changed: true }) {
                self.ghost.granted(task, &self.task(task));
            }
            let (request, principal) = (self.request(), Principal::agent("bot"));
            self.world.run(Command::QueueTask(QueueTask { run, task: id, request, principal }));
        }
    }

    fn plan(&mut self, under: Option<Lease>) -> Reply {
        let (run, revision, request) = (self.run, self.tasks.revision, self.request());
        let (plan, principal) = (self.tasks.plan(), Principal::agent("bot"));
        let set = PlanTasks { run, revision, plan, request, principal, under };
        self.world.run(Command::PlanTasks(Box::new(set)))
    }

    /// One task is another from now on; what rests on it begins anew too.
    fn replan(&mut self) {
        let Some(lease) = self.actors[0].lease.clone() else { return };
        let before = self.tasks.clone();
        let changed = self.tasks.change(&mut self.chance);
        match self.plan(Some(lease)) {
            Reply::Run(_) => self.ghost.replanned(&changed),
            _ => self.tasks = before,
        }
    }

    /// What must hold after every step.
    fn holds(&self) -> Holds {
        let mut at_work = Vec::new();
        for task in 0..self.tasks.count() {
            let row = self.task(task);
            if (row.state == TaskState::Verified) != self.ghost.verified.contains(&task) {
                return Err(format!("t{task} is {}, and was verified: {:?}", row.state, self.ghost.verified));
            }
            at_work.extend(row.state.is_worked_on().then_some(task));
        }
        self.tasks.fit(&at_work)
    }

    fn task(&self, task: usize) -> TaskRow {
        match self.world.row(&self.world.pinned.tenant.task(self.run, &format!("t{task}"))) {
            Some(Row::Task(row)) => row.clone(),
            other => panic!("no task: {other:?}"),
        }
    }

    fn row(&self) -> RunRow {
        match self.world.row(&StreamId::run(self.run)) {
            Some(Row::Run(row)) => row.clone(),
            other => panic!("no run: {other:?}"),
        }
    }
}
