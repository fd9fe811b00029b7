//! Approvals: a question bound to one exact action, its answers, its one use.

mod answer;
mod ask;
mod check;
pub mod event;
mod row;

pub use answer::{Answer, Identity, Revocation};
pub use ask::{Asked, Bound, ask_hash};
pub use event::{Proof, Revoke, Said, Source, Status};
pub use row::{ApprovalPrivate, ApprovalRow, Response, evolve};

pub(crate) use answer::{answer, is_operator, names, revoke, unheard};
pub(crate) use ask::{Requested, find_denial, find_open, request};
pub(crate) use check::{Check, check, consume, expire, lapse, take_back};
