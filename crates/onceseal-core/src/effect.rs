//! Effects: at most one live attempt per key, and what became of each.

pub mod event;
mod gate;
mod known;
mod remote;
mod row;
mod settle;

pub use event::{Outcome, RemoteReceipt};
pub use gate::Reserve;
pub use known::{Finding, Reconcile, Resolve};
pub use row::{EffectPrivate, EffectRow, EffectState, evolve};
pub use settle::{Begin, Holding, Renew, Settle};

pub(crate) use gate::{Gate, Take, gate, now, queue, record_lapse, reserve, stored_result, take};
pub(crate) use known::{reconcile, resolve};
pub(crate) use settle::{begin, holds, lapse, renew, settle, wrong};
