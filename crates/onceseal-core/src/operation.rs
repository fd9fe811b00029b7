//! Operations: actions that are stored, and carried out later by a worker.
//!
//! An operation is an action whose effect waits in the outbox: what is decided,
//! approved, attempted and answered is the action, by the rules of every
//! action. Here stands what it has besides: a scope in which its key counts,
//! the call that asked for it, and the contract under which it is carried out.

mod call;
mod catalogue;
mod claim;
mod dispatch;
pub mod event;
mod identity;
mod manage;
mod order;
mod query;
mod recovery;
pub mod result;
mod standing;

pub use call::{CallPrivate, CallRow, evolve as evolve_call};
pub use catalogue::{Category, ModelCode, Remedy};
pub use claim::{Claim, GiveBack, Postpone};
pub use dispatch::Dispatch;
pub use event::Intent;
pub use identity::{
    CallIdentity, HostContextError, Profile, Purpose, Revisions, Scope, principal_ref, provider_key,
};
pub use manage::{Cancel, Retry};
pub use query::Query;
pub use recovery::Next;

pub(crate) use claim::{claim, give_back, postpone, reads as claim_reads};
pub(crate) use dispatch::{dispatch, reads as dispatch_reads};
pub(crate) use manage::{cancel, retry};
pub(crate) use order::{Order, Rule, queue};
pub(crate) use query::query;
pub(crate) use recovery::{give_up, goes_on, hand_back, not_executed};
