//! Handoffs: control of a resource passes from one holder to another, once.
//!
//! Whoever has a resource prepares one, with the facts that the next holder goes
//! on from and the digest of a receipt that names it. Whoever accepts it gets the
//! resource with a new lease, if it is still as it was: the old holder is fenced.

pub mod event;
mod giving;
mod row;

pub use event::HandoffState;
pub use giving::{AcceptHandoff, Giver, PrepareHandoff, WithdrawHandoff, prepared};
pub use row::{HandoffPrivate, HandoffRow, evolve};

pub(crate) use giving::{accept, accept_reads, prepare, prepare_reads, withdraw};
