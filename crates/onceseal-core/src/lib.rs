//! The rules of Onceseal as pure functions.
//!
//! Nothing in this crate reads a clock, draws a random number, does I/O,
//! knows a database or is async: whatever it needs is an argument.

pub mod json;
pub mod policy;
