//! Approve exactly, act once, prove it.
//!
//! [`Control`] stands between the decision to act and the call that acts: it
//! decides an action by policy, binds a person's approval to exactly that
//! action, takes its effect at most once, keeps *unknown* apart from *failed*,
//! and records everything in a verifiable journal.

mod attempt;
pub mod audit;
pub mod blocking;
mod call;
mod chance;
mod claim;
pub mod config;
mod control;
mod endpoint;
mod error;
mod executed;
#[cfg(feature = "fault")]
pub mod fault;
#[cfg(not(feature = "fault"))]
mod fault;
#[cfg(feature = "http")]
pub mod http;
mod keeper;
mod marking;
mod moment;
#[cfg(feature = "postgres")]
mod moving;
mod open;
pub mod operations;
mod outcome;
mod permit;
pub mod process;
mod receipt;
pub mod render;
pub mod runs;
mod secrets;
mod seen;
#[cfg(feature = "postgres")]
mod server;
mod site;
mod sweep;
pub mod views;
mod watch;

pub use attempt::Call;
pub use audit::{AuditOptions, AuditReport, audit};
pub use call::{CallOptions, Proposing, Receipt, Resuming};
pub use chance::holder_key;
pub use control::Control;
pub use endpoint::{Endpoint, Trying};
pub use error::Error;
pub use executed::{Done, Executed, Failure, Outcome, Performed};
pub use marking::{MarkFailure, MarkState};
#[cfg(feature = "postgres")]
pub use moving::Moving;
pub use onceseal_core as core;
pub use onceseal_core::action::Principal;
pub use onceseal_store as store;
pub use open::Opening;
pub use seen::Seen;
pub use sweep::sweep;

/// The README's example, compiled with the documentation's examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
