//! Actions: what is proposed, and the way from a proposal to its answer.

mod end;
pub mod event;
mod permit;
mod proposal;
mod redact;
mod refuse;
mod row;
mod run;
mod within;

pub use event::Answer;
pub use proposal::{Action, Principal, Proposal, ProposalError};
pub use row::{
    ActionPrivate, ActionRow, ActionState, Operation, ended_number, evolve, outbox_key, scope_key,
    state_number, status_key,
};
pub use run::{Acquire, Reach, Run};

pub(crate) use end::{End, answer_held, end, end_held, end_waiting, lapse};
pub(crate) use permit::{decide, first};
pub(crate) use refuse::{No, conclude};
pub(crate) use run::{Goal, Wish, acquire, active_policy, run};
pub(crate) use within::{Within, carry_out, may_carry_out};
