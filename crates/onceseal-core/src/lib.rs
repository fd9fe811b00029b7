//! The rules of Onceseal as pure functions.
//!
//! Nothing in this crate reads a clock, draws a random number, does I/O,
//! knows a database or is async: whatever it needs is an argument.
//!
//! A [`command::Command`] is decided by [`decide::decide`] on a
//! [`view::View`]; the events it returns are folded into rows by
//! [`decide::evolve`]. Everything else moves bytes.

pub mod action;
pub mod approval;
mod case;
pub mod code;
pub mod command;
pub mod decide;
pub mod effect;
pub mod handoff;
pub mod hash;
pub mod id;
pub mod journal;
pub mod json;
pub mod lease;
pub mod limits;
pub mod lock;
pub mod operation;
pub mod pack;
pub mod policy;
mod record;
pub mod reply;
pub mod route;
pub mod run;
pub mod store;
pub mod stream;
pub mod task;
pub mod time;
pub mod tool;
pub mod view;

pub use record::{Fields, Json};
