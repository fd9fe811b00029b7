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
/// younger is full it becomes the older, and what nobody has met since is gone.
#[derive(Default)]
pub(super) struct Recent {
    /// SQLite's number for what others have committed, `PRAGMA data_version`.
    version: Option<i64>,
    young: StreamMap<Known>,
    old: StreamMap<Known>,
}

impl Recent {
    /// Whether nobody else has written since this was asked last. If somebody
    /// has, every row is forgotten.
    pub(super) fn is_current(&mut self, version: i64) -> bool {
        if self.version == Some(version) {
            return true;
        }
        self.forget();
        self.version = Some(version);
        false
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
