//! The engine around actions that cannot be taken back.
//!
//! What carries an action out is an executor, and what matters about an
//! executor's end is which of three things can be said of it: it happened, it
//! did not happen, nobody knows. The modules here are the executors that
//! Onceseal ships. Each says *not executed* only for what it knows did not
//! start.

#[cfg(feature = "http")]
pub mod http;
pub mod process;
