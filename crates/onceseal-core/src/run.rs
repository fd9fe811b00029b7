//! Runs: long jobs that survive their process.
//!
//! A run is a stream of its own, and goes through the states of a definition,
//! which is data. Which moves are legal, what interruption does and what an
//! operator is offered all come from that data, and from nowhere else.

mod definition;
pub mod name;

pub use definition::{Definition, DefinitionError, Gate, Proving, State};
