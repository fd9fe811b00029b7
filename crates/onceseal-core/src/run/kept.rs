//! Definitions as a store keeps them: every one that a run has gone by, each in
//! a stream of its own.

use crate::journal::{Body, Event};
use crate::pack::Corrupt;
use crate::record::record;
use crate::time::Timestamp;

record! {
    /// The row of a definition.
    pub struct DefinitionRow {
        /// When it was first used.
        created_at: Timestamp,
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<DefinitionRow>, at: Timestamp, event: &Event) -> Result<DefinitionRow, Corrupt> {
    match (&event.body, row) {
        (Body::DefinitionAdded(..), None) => Ok(DefinitionRow { created_at: at }),
        _ => Err(Corrupt("sequence of a definition's events")),
    }
}
