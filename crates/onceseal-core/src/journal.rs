//! The journal: recorded facts, how they are chained, and what they render to.
//!
//! Events are the truth; rows are a fold of them. This module knows the shapes,
//! not the rules: which events a command causes stands with its concept.

mod event;
mod found;
mod row;
mod seal;

pub use event::{Body, Event, KINDS, Kind, KindInfo, Nothing, Refs};
pub use row::{Head, Index, Key, Row, Stored, moment};
pub use seal::{Draft, Payload, Recorded, Stamp, chain_hash, open_text, seal, seal_hash, sealed_text};
