//! Leases: who works on a resource, for how long, and with what outcome.
//!
//! A lease has a fence, which grows with each lease on its resource and never
//! starts again, and a token that only its holder and the store can name. It is
//! valid to its last moment, inclusive. Whatever is done under a lease is done in
//! the transaction that looked at it.

pub mod event;
mod hold;
mod naming;
mod resource;
mod row;
mod taking;

pub use hold::{CommitLease, InterruptLease, Lease, RenewLease};
pub use naming::{Misnamed, Named};
pub use resource::Resource;
pub use row::{Holder, LeasePrivate, LeaseRow, Outcome, Use, below_key, evolve};
pub use taking::{AcquireLease, Preempt};

pub(crate) use hold::{
    commit, end_all, end_others, holds, interrupt, is_abandoned, is_of_run, lapse, record_lapses_on, renew,
};
pub(crate) use taking::{acquire, blinded, hand_over, is_left, live_of, read, reads, run_reads};
