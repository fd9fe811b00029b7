//! Tasks: the parts of a run, each done by one worker at a time.
//!
//! A plan names the tasks of a run for one delivery revision: what each waits
//! for, what it must not run beside, its phases and how often it may be
//! attempted. Which is next follows from that alone. A task moves on by facts
//! that somebody else than its worker stands for.

mod blockers;
mod claims;
pub mod event;
mod moving;
mod plan;
mod planning;
mod queue;
mod row;
mod spec;
mod state;
mod taking;

pub use blockers::{Blocker, Blocking, blockers};
pub use claims::Claim;
pub use moving::{Fact, GrantAttempts, MoveTask, QueueTask, TaskTo};
pub use plan::Plan;
pub use planning::{PlanTasks, of_run};
pub use queue::{at_work, at_work_or_in_line};
pub use row::{PlanRow, Spent, TaskPrivate, TaskRow, evolve, evolve_plan, number_key};
pub use spec::Spec;
pub use state::TaskState;
pub use taking::TakeTask;

pub(crate) use moving::{grant, interrupt, move_on, queue, reads as moving_reads};
pub(crate) use planning::{plan, reads as plan_reads, stop_all};
pub(crate) use taking::{reads as taking_reads, take};
