//! For your own tests, with the feature `fault`: named points at which a call
//! stops, fails or its process dies, a clock that stands still, and a remote
//! that misbehaves as it is told.
//!
//! Points are of the process, so tests that use them take turns with
//! [`alone`], or run in processes of their own.
//!
//! ```
//! # #[cfg(feature = "fault")]
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use onceseal::fault::{self, Remote, point};
//! use onceseal::{Control, Principal, config::Config};
//!
//! let _alone = fault::alone();
//! let config = Config::parse(
//!     b"schema: onceseal.policy/v1\nactions:\n  pay: { effect: 'pay:{order}', decision: allow }\n",
//! )?;
//! let control = Control::memory(config.policy, fault::clock()).await?;
//! let remote = Remote::new();
//! let pay = || control.action("pay").arg("order", "o-1").by(Principal::agent("bot"));
//!
//! // The process loses the answer: nobody knows whether it was paid.
//! remote.lose_answer();
//! let lost = pay().execute(|call| remote.perform(call, 100)).await;
//! assert_eq!(lost.unwrap_err().code(), "outcome_unknown");
//!
//! // So it is not paid again, however often it is asked for.
//! let again = pay().execute(|call| remote.perform(call, 100)).await;
//! assert_eq!(again.unwrap_err().code(), "ambiguous");
//! assert_eq!(remote.hits(), 1);
//!
//! // The remote knows, and says so.
//! let settle = onceseal::core::time::Span::seconds(30);
//! control.reconcile("pay:o-1", settle, async |key, _| remote.find(&key)).await?;
//! assert!(pay().replay().execute(|call| remote.perform(call, 100)).await?.replayed);
//!
//! // A store that fails before anything is recorded leaves nothing behind.
//! fault::arm(point::BEFORE_SUBMIT, 1, fault::Action::Fail);
//! let other = control.action("pay").arg("order", "o-2").by(Principal::agent("bot"));
//! let failed = other.execute(|call| remote.perform(call, 100)).await;
//! assert_eq!(failed.unwrap_err().code(), "store_failed");
//! assert_eq!(control.effect("pay:o-2")?, None);
//! # Ok::<(), onceseal::Error>(())
//! # }).unwrap();
//! ```

#[cfg(feature = "fault")]
mod hooks;
#[cfg(feature = "fault")]
mod remote;

#[cfg(feature = "fault")]
pub use hooks::{Alone, Stop, alone, clock, disarm, on, stop};
#[cfg(feature = "fault")]
pub use onceseal_store::clock::{Clock, ManualClock, Reading};
#[cfg(feature = "fault")]
pub use onceseal_store::fault::{Action, arm};
#[cfg(feature = "fault")]
pub use remote::Remote;

#[cfg(feature = "fault")]
pub(crate) use hooks::reach;

/// Without the feature a point is nothing.
#[cfg(not(feature = "fault"))]
#[inline]
pub(crate) const fn reach(_point: &str) -> Result<(), onceseal_store::StoreError> {
    Ok(())
}

/// The names of the points, in the order in which a call reaches them. Where a
/// point fails, it is as if the store had failed there.
#[cfg_attr(
    not(feature = "fault"),
    expect(dead_code, unreachable_pub, reason = "without the feature the engine names only its own points")
)]
pub mod point {
    /// Before a call is submitted; nothing is recorded.
    pub const BEFORE_SUBMIT: &str = "before_submit";
    /// In the store: decided and written, not committed.
    pub const BEFORE_COMMIT: &str = "before_commit";
    /// In the store: committed, and nobody has been told.
    pub const AFTER_COMMIT: &str = "after_commit";
    /// An attempt was handed out; its executor has not been started. Failing
    /// here is *not executed*.
    pub const AFTER_RESERVE: &str = "after_reserve";
    /// Everything is ready for the executor. Failing here is *not executed*.
    pub const BEFORE_EXECUTOR: &str = "before_executor";
    /// The executor returned; nothing is recorded of it. Failing here loses
    /// what it returned: the outcome is unknown.
    pub const AFTER_EXECUTOR: &str = "after_executor";
    /// Before each try to record an outcome.
    pub const BEFORE_SETTLE: &str = "before_settle";
    /// After each: failing here loses the store's answer.
    pub const AFTER_SETTLE: &str = "after_settle";
    /// Before each try to renew a lease.
    pub const BEFORE_RENEW: &str = "before_renew";
    /// An operation's intent is stored, and nobody has been told.
    pub const AFTER_INTENT_COMMIT: &str = "after_intent_commit";
    /// A worker has claimed an operation. Failing here, nothing more is recorded,
    /// as of a process that died.
    pub const AFTER_CLAIM: &str = "after_claim";
    /// The executor returned. Failing here, nothing more is recorded, as of a
    /// process that died.
    pub const AFTER_DOWNSTREAM_COMMIT: &str = "after_downstream_commit";
    /// All of them.
    pub const ALL: [&str; 12] = [
        BEFORE_SUBMIT,
        BEFORE_COMMIT,
        AFTER_COMMIT,
        AFTER_RESERVE,
        BEFORE_EXECUTOR,
        AFTER_EXECUTOR,
        BEFORE_SETTLE,
        AFTER_SETTLE,
        BEFORE_RENEW,
        AFTER_INTENT_COMMIT,
        AFTER_CLAIM,
        AFTER_DOWNSTREAM_COMMIT,
    ];
}
