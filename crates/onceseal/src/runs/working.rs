//! Working on the tasks of a run, one after another.

use std::time::{Duration, Instant};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::HolderKey;
use onceseal_core::json::Object;
use onceseal_core::reply::{Reply, RunNow, TaskNow};
use onceseal_core::task::{Fact, TakeTask, TaskState, TaskTo};
use onceseal_core::time::Span;

use super::leasing::{ASK_AGAIN, LENGTH, handed_out, keep};
use super::{LeaseGuard, Run};
use crate::control::{accepted, refused};
use crate::error::Error;
use crate::moment::Moment;
use crate::watch::from_now;

impl Run {
    /// Begins to take the task that is next.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use onceseal::core::hash::Hash;
    /// use onceseal::core::json::{self, Limits, Value};
    /// use onceseal::runs::{Fact, TaskState};
    /// use onceseal::{Control, Principal, config::Config};
    ///
    /// # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
    /// # let config = Config::parse(b"schema: onceseal.policy/v1\nactions: {}\n")?;
    /// let control = Control::memory(config.policy, clock).await?;
    /// let runs = control.runs().by(Principal::agent("builder"));
    /// let run = runs.start("simple").change("add-login").send().await?.run;
    /// run.transition("running").send().await?;
    /// let plan = br#"{"tasks":[{"id":"form"},{"id":"docs","depends_on":["form"]}]}"#;
    /// let Ok(Value::Object(plan)) = json::read(plan, &Limits::DATA) else { panic!("an object") };
    /// run.plan(1, &plan).expect("a plan").send().await?;
    ///
    /// let fact = |kind: &str, by: &str| Fact {
    ///     kind: kind.into(),
    ///     hash: Hash::of("example.evidence.v1\n", &[b"all is green"]),
    ///     environment: "ci".into(),
    ///     produced_by: by.into(),
    /// };
    /// while let Ok(mut task) = run.take().take().await {
    ///     // … the work; `task.lost()` tells if somebody else has it meanwhile.
    ///     task.produced(fact("work-done", "builder")).await?;
    ///     // Whoever did it cannot say that it is right.
    ///     assert_eq!(task.passed(fact("tests-passed", "builder")).await.unwrap_err().code(), "fact_claimed");
    ///     assert_eq!(task.passed(fact("tests-passed", "ci")).await?, TaskState::Verified);
    /// }
    /// assert!(run.blockers().await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn take(&self) -> Taking {
        Taking { run: self.clone(), holder: None, length: LENGTH, wait: Duration::ZERO }
    }
}

/// A task about to be taken; see [`Run::take`].
#[must_use = "nothing is taken until it is asked for"]
#[derive(Clone)]
pub struct Taking {
    run: Run,
    holder: Option<HolderKey>,
    length: Span,
    wait: Duration,
}

impl Taking {
    /// How long the lease lasts unless it is renewed: 1 s to 24 h, 30 s if nothing is
    /// said. For so long nobody goes on with the task of a worker that has died.
    pub fn length(self, length: Span) -> Taking {
        Taking { length, ..self }
    }

    /// Who takes it, instead of a holder drawn at random. Whoever is at a task of the
    /// run under this name gets that one again, and no other.
    pub fn holder(self, holder: HolderKey) -> Taking {
        Taking { holder: Some(holder), ..self }
    }

    /// Waits so long until there is one to take.
    pub fn wait(self, wait: Duration) -> Taking {
        Taking { wait, ..self }
    }

    /// Takes it, and keeps the lease on it alive until the task stops, is verified, or
    /// the guard is given up.
    ///
    /// # Errors
    /// `no_task` with why none can be taken now, `run_unknown`, `run_ended`,
    /// `out_of_bounds` for a length, or what the store fails with.
    pub async fn take(self) -> Result<TaskGuard, Error> {
        let Taking { run, holder, length, .. } = self.clone();
        let (asked, now) = self.waited().await?;
        let TaskNow { lease, task, state, phase, spec } = now;
        let spec = super::object(&spec)?;
        let lease = keep(run.control.clone(), lease, length, asked, holder.is_some());
        Ok(TaskGuard { run, lease, task, phase, spec, state })
    }

    /// Takes it, and renews nothing: for whoever hands the lease on.
    ///
    /// # Errors
    /// As [`Taking::take`].
    pub async fn once(self) -> Result<TaskNow, Error> {
        Ok(self.waited().await?.1)
    }

    async fn waited(self) -> Result<(Moment, TaskNow), Error> {
        let until = from_now(self.wait);
        loop {
            match self.ask().await {
                Err(Error::Refused(refusal)) if refusal.code == Code::NoTask && Instant::now() < until => {
                    tokio::time::sleep_until(until.min(Instant::now() + ASK_AGAIN).into()).await;
                }
                answer => return answer,
            }
        }
    }

    async fn ask(&self) -> Result<(Moment, TaskNow), Error> {
        // What somebody who is gone was at goes before all that is in line.
        self.run.record_lapses().await?;
        let Taking { run: Run { control, principal, id: run }, holder, length, wait: _ } = self.clone();
        let asked = Moment::now(control.store().clock().as_ref());
        let again = holder.is_some();
        let take = |holder| Command::TakeTask(TakeTask { run, holder, again, length, principal });
        match accepted(handed_out(&control, holder, take).await?)? {
            Reply::Task(now) => Ok((asked, *now)),
            reply => Err(refused(reply)),
        }
    }
}

impl Run {
    /// Records which leases on its tasks are over: nothing else may have looked.
    async fn record_lapses(&self) -> Result<(), Error> {
        let run = self.id;
        for lease in self.control.aside(move |control| control.lapsed_tasks(run)).await? {
            self.control.submit(Command::Lapse(lease)).await?;
        }
        Ok(())
    }
}

/// A task that is worked on. The lease on it is renewed as that of a
/// [`LeaseGuard`], until the task stops, is verified, or the lease is lost.
///
/// Dropped before that, the task is left to the next worker within a second, as if
/// this process had died.
#[derive(Debug)]
pub struct TaskGuard {
    run: Run,
    lease: LeaseGuard,
    task: String,
    phase: String,
    spec: Object,
    state: TaskState,
}

impl TaskGuard {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.task
    }

    /// Its run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// The phase that it is in, by its name.
    #[must_use]
    pub fn phase(&self) -> &str {
        &self.phase
    }

    /// What it is, as the plan says it: `id`, `input` and all the rest.
    #[must_use]
    pub const fn spec(&self) -> &Object {
        &self.spec
    }

    /// Where it stands, as far as was moved here.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        self.state
    }

    /// The lease on it.
    #[must_use]
    pub const fn lease(&self) -> &LeaseGuard {
        &self.lease
    }

    /// The lease's number: see [`LeaseGuard::fence`].
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.lease.fence()
    }

    /// Whether somebody else may work on the task, as far as is known here.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// Waits until the lease on it is lost.
    pub async fn lost(&self) {
        self.lease.lost().await;
    }

    /// Records that what is to be done in this phase was done: it is to be looked at.
    ///
    /// # Errors
    /// `lease_fenced`, `transition_forbidden`, `out_of_bounds` for the fact,
    /// `run_ended`, or what the store fails with.
    pub async fn produced(&mut self, fact: Fact) -> Result<(), Error> {
        self.go(TaskTo::Validating(fact)).await.map(drop)
    }

    /// Records that what was done was found right, by somebody else than who did it:
    /// on to the next phase (`running`), or `verified`. Where no attempt of the next
    /// phase is left it is `retryable`, and waits there for a person.
    ///
    /// # Errors
    /// `fact_claimed`, and as [`TaskGuard::produced`].
    pub async fn passed(&mut self, fact: Fact) -> Result<TaskState, Error> {
        let state = self.go(TaskTo::Passed(fact)).await?;
        if state != TaskState::Verified {
            let view = self.run.task(&self.task).await?;
            self.phase = view.map(|view| view.row.phase_name().to_owned()).unwrap_or_default();
        }
        Ok(state)
    }

    /// Records that it stopped, and why: `repairable`, `retryable`, `paused`,
    /// `approval_needed` or `failed`.
    ///
    /// # Errors
    /// As [`TaskGuard::produced`], with `out_of_bounds` for the code too.
    pub async fn stopped(
        &mut self,
        state: TaskState,
        code: impl Into<String>,
        fact: Option<Fact>,
    ) -> Result<(), Error> {
        self.go(TaskTo::Stopped { state, code: code.into(), fact }).await.map(drop)
    }

    async fn go(&mut self, to: TaskTo) -> Result<TaskState, Error> {
        let lease = self.lease.lease().clone();
        let RunNow { answered, .. } = self.run.move_task(&self.task, to, lease).send().await?;
        let mut states = TaskState::ALL.iter().copied();
        self.state = states.find(|state| state.as_str() == answered.state).ok_or(Error::Unexpected)?;
        if !self.state.is_worked_on() {
            // The lease has ended with it.
            self.lease.let_go();
        }
        Ok(self.state)
    }
}
