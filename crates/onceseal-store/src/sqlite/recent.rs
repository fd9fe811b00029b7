//! Rows the writer has met lately: what an action began with is asked for again
//! when it ends. They are as good as the file while nobody else writes to it.

use std::collections::HashMap;
use std::sync::Arc;

use onceseal_core::journal::Stored;
use onceseal_core::stream::StreamId;

/// Values by stream. Names are random or blinded, so a fast hash is enough.
pub(super) type StreamMap<V> = HashMap<StreamId, V, foldhash::fast::RandomState>;

/// Rows of one generation.
const GENERATION: usize = 1024;

/// A row with its number in the file.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) id: i64,
    pub(super) stored: Arc<Stored>,
}

/// Rows as they were last read or committed, in two generations: when the
/// younger is full it becomes the older, and the older is forgotten.
#[derive(Default)]
pub(super) struct Recent {
    /// SQLite's number for what others have committed, `PRAGMA data_version`.
    version: Option<i64>,
    young: StreamMap<Known>,
    old: StreamMap<Known>,
}

impl Recent {
    /// Whether nobody else has written since this version was found sound.
    pub(super) fn is_of(&self, version: i64) -> bool {
        self.version == Some(version)
    }

    /// The file is sound at this version, with other rows than were known.
    pub(super) fn begin_anew(&mut self, version: i64) {
        *self = Recent { version: Some(version), ..Recent::default() };
    }

    /// Forgets everything: after a transaction that failed.
    pub(super) fn forget(&mut self) {
        *self = Recent::default();
    }

    pub(super) fn get(&self, stream: &StreamId) -> Option<&Known> {
        self.young.get(stream).or_else(|| self.old.get(stream))
    }

    pub(super) fn put(&mut self, stream: StreamId, known: Known) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(stream, known);
    }
}
