//! Setting the plan of a run, and what is asked about its tasks by those who do
//! not work on them.

use std::sync::Arc;

use onceseal_core::approval::Identity;
use onceseal_core::command::Command;
use onceseal_core::json::Object;
use onceseal_core::lease::Lease;
use onceseal_core::reply::RunNow;
use onceseal_core::run::DocumentError;
use onceseal_core::task::{GrantAttempts, MoveTask, Plan, PlanTasks, QueueTask, TaskTo};

use super::asking::{asked, named};
use super::leasing::done;
use super::{LeaseGuard, Run};
use crate::error::Error;

impl Run {
    /// Begins to set its plan for a delivery revision, from 1: a document with `tasks`
    /// and perhaps `capacity`, how many of them may be worked on at once (4 unless
    /// said). What is unchanged since the plan before goes on, what changed begins
    /// anew, what is gone is closed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use onceseal::core::json::{self, Limits, Object, Value};
    /// use onceseal::{Control, Principal, config::Config};
    ///
    /// # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
    /// # let config = Config::parse(b"schema: onceseal.policy/v1\nactions: {}\n")?;
    /// let control = Control::memory(config.policy, clock).await?;
    /// let runs = control.runs().by(Principal::agent("builder"));
    /// let run = runs.start("simple").change("add-login").send().await?.run;
    /// let plan = |text: &str| match json::read(text.as_bytes(), &Limits::DATA) {
    ///     Ok(Value::Object(plan)) => plan,
    ///     _ => Object::new(),
    /// };
    ///
    /// let first = plan(r#"{"tasks":[{"id":"form"},{"id":"docs","depends_on":["form"]}]}"#);
    /// run.plan(1, &first)?.send().await?;
    /// // `form` is what it was and keeps what was done; `docs` is gone, `page` is new.
    /// let second = plan(r#"{"tasks":[{"id":"form"},{"id":"page"}]}"#);
    /// run.plan(2, &second)?.send().await?;
    ///
    /// let replanned = control.run_history(run.id()).more(100)?.pop().and_then(|event| event.replanned);
    /// let replanned = replanned.expect("the newest event is of the plan");
    /// assert_eq!((replanned.kept, replanned.added, replanned.closed), (1, 1, 1));
    /// // What is wrong with a plan is told with its place.
    /// let wrong = plan(r#"{"tasks":[{"id":"form","depends_on":["fom"]}]}"#);
    /// let error = run.plan(3, &wrong).err().expect("refused");
    /// assert_eq!(error.to_string(), "tasks[0].depends_on: `fom` is no task of this plan; did you mean `form`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// What is wrong with the document, and where.
    pub fn plan(&self, revision: u64, document: &Object) -> Result<Planning, DocumentError> {
        let plan = Arc::new(Plan::compile(document)?);
        Ok(Planning { run: self.clone(), revision, plan, request: None, under: None })
    }

    /// Begins to have a task that stopped attempted again.
    pub fn queue(&self, task: impl Into<String>) -> Queueing {
        Queueing { run: self.clone(), task: task.into(), request: None }
    }

    /// Records a person's word that a task may be attempted again though its attempts
    /// are spent: it has as many as in the beginning. `false`: it had some left.
    ///
    /// # Errors
    /// `not_operator`, `task_unknown`, `task_closed`, `run_unknown`, `run_ended`, or
    /// what the store fails with.
    pub async fn grant(&self, task: &str, person: Identity, reason: &str) -> Result<bool, Error> {
        let grant = GrantAttempts { run: self.id, task: task.to_owned(), person, reason: reason.to_owned() };
        done(self.control.submit(Command::GrantAttempts(grant)).await?)
    }

    /// Begins to move a task on under a lease on it that was handed on, as a
    /// [`TaskGuard`](super::TaskGuard) does under its own.
    pub fn move_task(&self, task: impl Into<String>, to: TaskTo, under: Lease) -> TaskMoving {
        TaskMoving { run: self.clone(), task: task.into(), to, under, request: None }
    }
}

/// A plan about to be set; see [`Run::plan`].
#[must_use = "nothing is planned until it is sent"]
pub struct Planning {
    run: Run,
    revision: u64,
    plan: Arc<Plan>,
    request: Option<String>,
    under: Option<Lease>,
}

impl Planning {
    /// What makes two requests of this run the same.
    pub fn request(self, id: impl Into<String>) -> Planning {
        Planning { request: Some(id.into()), ..self }
    }

    /// Only while this lease on the run holds.
    pub fn under(self, lease: &LeaseGuard) -> Planning {
        self.under_lease(lease.lease().clone())
    }

    /// The same with a lease that was handed on.
    pub fn under_lease(self, lease: Lease) -> Planning {
        Planning { under: Some(lease), ..self }
    }

    /// Sets the plan.
    ///
    /// # Errors
    /// `delivery_unbound`, `delivery_revision_old`, `plan_conflict`, `run_unknown`,
    /// `run_ended`, `lease_fenced`, `request_id_conflict`, or what the store fails
    /// with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let Planning { run: Run { control, principal, id: run }, revision, plan, request, under } = self;
        let request = named(request)?;
        let set = PlanTasks { run, revision, plan, request, principal, under };
        asked(&control, Command::PlanTasks(Box::new(set))).await
    }
}

/// A task about to wait for its turn again; see [`Run::queue`].
#[must_use = "nothing is queued until it is sent"]
pub struct Queueing {
    run: Run,
    task: String,
    request: Option<String>,
}

impl Queueing {
    /// What makes two requests of this run the same.
    pub fn request(self, id: impl Into<String>) -> Queueing {
        Queueing { request: Some(id.into()), ..self }
    }

    /// Queues it. What is answered is where the task stands.
    ///
    /// # Errors
    /// `transition_forbidden` for one that did not stop, or cannot be done,
    /// `attempts_spent`, `task_unknown`, `task_closed`, `run_unknown`, `run_ended`,
    /// `request_id_conflict`, or what the store fails with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let Queueing { run: Run { control, principal, id: run }, task, request } = self;
        let request = named(request)?;
        asked(&control, Command::QueueTask(QueueTask { run, task, request, principal })).await
    }
}

/// A task about to be moved on; see [`Run::move_task`].
#[must_use = "nothing moves until it is sent"]
pub struct TaskMoving {
    run: Run,
    task: String,
    to: TaskTo,
    under: Lease,
    request: Option<String>,
}

impl TaskMoving {
    /// What makes two requests of this run the same.
    pub fn request(self, id: impl Into<String>) -> TaskMoving {
        TaskMoving { request: Some(id.into()), ..self }
    }

    /// Moves it on. What is answered is where the task stands; where that is a state
    /// that nobody works in, the lease has ended with it.
    ///
    /// # Errors
    /// `lease_fenced`, `transition_forbidden`, `fact_claimed`, `out_of_bounds` for a
    /// fact or a code, `task_unknown`, `task_closed`, `run_unknown`, `run_ended`,
    /// `request_id_conflict`, or what the store fails with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let TaskMoving { run: Run { control, principal, id: run }, task, to, under, request } = self;
        let request = named(request)?;
        let go = MoveTask { run, task, to, request, principal, under };
        asked(&control, Command::MoveTask(Box::new(go))).await
    }
}
