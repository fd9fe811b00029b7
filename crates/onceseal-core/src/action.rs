//! Actions: what is proposed, and the way from a proposal to its answer.

mod end;
pub mod event;
mod permit;
mod proposal;
mod redact;
mod refuse;
mod row;
mod run;

pub use event::Answer;
pub use proposal::{Action, Principal, Proposal, ProposalError};
pub use row::{ActionPrivate, ActionRow, ActionState, ended_number, evolve, state_number};
pub use run::{Acquire, Reach, Run};

pub(crate) use end::{answer_held, end_held, end_waiting, lapse};
pub(crate) use run::{acquire, active_policy, run};
