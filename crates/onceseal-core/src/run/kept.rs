//! Definitions as a store keeps them: every one that a run has gone by.

use crate::hash::Hash;
use crate::journal::{Body, Event};
use crate::pack::Corrupt;
use crate::record::record;
use crate::time::Timestamp;

record! {
    /// The row of a kind's definitions.
    pub struct DefinitionRow {
        /// When the first was used.
        created_at: Timestamp,
        /// Their digests, the oldest first.
        known: Vec<Hash>,
        /// When the newest was.
        updated_at: Timestamp,
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<DefinitionRow>, at: Timestamp, event: &Event) -> Result<DefinitionRow, Corrupt> {
    let mut row = row.unwrap_or(DefinitionRow { created_at: at, known: Vec::new(), updated_at: at });
    match &event.body {
        Body::DefinitionAdded(data, _) if !row.known.contains(&data.definition) => {
            row.known.push(data.definition);
            row.updated_at = at;
            Ok(row)
        }
        _ => Err(Corrupt("sequence of a kind's definitions")),
    }
}
