//! Approve exactly, act once, prove it.
//!
//! [`Control`] stands between the decision to act and the call that acts: it
//! decides an action by policy, binds a person's approval to exactly that
//! action, takes its effect at most once, keeps *unknown* apart from *failed*,
//! and records everything in a verifiable journal.

mod attempt;
pub mod audit;
mod call;
pub mod config;
mod control;
mod error;
mod keeper;
pub mod render;
mod sweep;
pub mod views;
mod watch;

pub use attempt::Call;
pub use audit::{AuditOptions, AuditReport, audit};
pub use call::{CallOptions, Proposing, Receipt, Resuming};
pub use control::{Control, Opening};
pub use error::{Error, Executed, Failure};
pub use onceseal_core as core;
pub use onceseal_core::action::Principal;
pub use onceseal_store as store;
pub use sweep::sweep;
