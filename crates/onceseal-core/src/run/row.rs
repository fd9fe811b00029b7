//! A run's row and its fold.

use crate::hash::Hash;
use crate::id::{RootId, RunId};
use crate::journal::{Body, Event, Index, Key};
use crate::pack::{Corrupt, Pack};
use crate::record::{record, word};
use crate::run::event::{GateBound, Moved};
use crate::stream::StreamKind;
use crate::time::Timestamp;
use crate::view::Range;

/// A run's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunRow {
    /// The definition it goes by.
    pub definition: Hash,
    /// Its kind.
    pub kind: String,
    /// The project it is about.
    pub root: RootId,
    /// Where it is found while it lives: root, kind and lookup key, blinded.
    pub lookup: Hash,
    /// Whether its change has no name yet.
    pub provisional: bool,
    /// Where it stands.
    pub state: String,
    /// Whether nothing follows.
    pub terminal: bool,
    /// Why it stands there, in a word.
    pub code: Option<String>,
    /// Where deliveries were bound, by name.
    pub gates: Vec<GateNow>,
    /// How many runs ended under its lookup key before.
    pub ordinal: u64,
    /// The newest of them.
    pub previous: Option<RunId>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// Where it was found before its change had a name: it is found there too while
    /// it lives, so that whoever begins by the same digest joins it.
    pub begun: Option<Hash>,
    /// The private half.
    pub private: RunPrivate,
}

record! {
    /// The newest delivery of a gate.
    pub struct GateNow {
        /// The gate.
        gate: String,
        /// The newest revision.
        revision: u64,
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The number of its newest event.
    pub sequence: u64,
    /// Its state.
    pub state: String,
    /// Why it stands there, in a word.
    pub code: Option<String>,
    /// Whether nothing follows.
    pub terminal: bool,
}

impl Standing {
    pub(crate) fn of(sequence: u64, row: &RunRow) -> Standing {
        Standing { sequence, state: row.state.clone(), code: row.code.clone(), terminal: row.terminal }
    }
}

record! {
    /// The private half of a run's row.
    pub struct RunPrivate {
        /// Who started it.
        agent: Option<String>,
        /// The lookup key, `change:…` or `provisional:…`.
        key: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

impl Pack for RunRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.definition.pack(out);
        self.kind.pack(out);
        self.root.pack(out);
        self.lookup.pack(out);
        self.provisional.pack(out);
        self.state.pack(out);
        self.terminal.pack(out);
        self.code.pack(out);
        self.gates.pack(out);
        self.ordinal.pack(out);
        self.previous.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
        self.begun.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<RunRow, Corrupt> {
        Ok(RunRow {
            definition: Pack::unpack(input)?,
            kind: Pack::unpack(input)?,
            root: Pack::unpack(input)?,
            lookup: Pack::unpack(input)?,
            provisional: Pack::unpack(input)?,
            state: Pack::unpack(input)?,
            terminal: Pack::unpack(input)?,
            code: Pack::unpack(input)?,
            gates: Pack::unpack(input)?,
            ordinal: Pack::unpack(input)?,
            previous: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            begun: Pack::unpack(input)?,
            private: RunPrivate { agent: None, key: None, user: None },
        })
    }
}

word! {
    /// Whether anything follows on where a run stands.
    pub enum Life {
        /// Something may.
        Living = 1 => "living",
        /// Nothing does.
        Ended = 2 => "ended",
    }
}

/// The key under which the living run of a lookup is found.
#[must_use]
pub fn living_key(lookup: Hash) -> Key {
    Key::of(Index::Run, &[&lookup.0[..16]])
}

/// Where runs that ended under a lookup are found, the newest first.
#[must_use]
pub fn former_range(lookup: Hash) -> Range {
    let key = |byte: u8| [&lookup.0[..16], &[byte; 8]].concat();
    Range { index: Index::FormerRun, from: key(0), to: key(0xff), limit: 1 }
}

impl RunRow {
    /// The newest revision that was bound at a gate.
    #[must_use]
    pub fn revision_of(&self, gate: &str) -> Option<u64> {
        self.gates.iter().find(|now| now.gate == gate).map(|now| now.revision)
    }

    /// The newest revision that was bound at any gate.
    #[must_use]
    pub fn delivery_revision(&self) -> Option<u64> {
        self.gates.iter().map(|now| now.revision).max()
    }

    /// The keys it is found under. One that has ended gives its lookup key up.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let found = match self.terminal {
            false => living_key(self.lookup),
            true => {
                let newest_first = (!self.ordinal).to_be_bytes();
                Key::of(Index::FormerRun, &[&self.lookup.0[..16], &newest_first])
            }
        };
        let life = if self.terminal { Life::Ended } else { Life::Living };
        let begun = self.begun.filter(|_| !self.terminal).map(living_key);
        let keys = [Key::state(StreamKind::Run, life.number(), self.created_at), found];
        keys.into_iter().chain(begun).collect()
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<RunRow>, at: Timestamp, event: &Event) -> Result<RunRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of a run's events");
    let mut row = match (row, &event.body) {
        (None, Body::RunStarted(data, sealed)) => {
            return Ok(RunRow {
                definition: data.definition,
                kind: data.kind.clone(),
                root: data.root,
                lookup: data.lookup,
                provisional: data.provisional,
                state: data.state.clone(),
                terminal: false,
                code: None,
                gates: Vec::new(),
                ordinal: data.ordinal,
                previous: data.previous,
                created_at: at,
                updated_at: at,
                begun: None,
                private: RunPrivate {
                    agent: sealed.agent.clone(),
                    key: sealed.key.clone(),
                    user: sealed.user.clone(),
                },
            });
        }
        // Terminal is final.
        (Some(row), _) if !row.terminal => row,
        _ => return Err(WRONG),
    };
    match &event.body {
        Body::RunMoved(Moved { code, from, terminal, to }, _)
        | Body::RunInterrupted(Moved { code, from, terminal, to }, _)
            if *from == row.state =>
        {
            (row.code, row.state, row.terminal) = (code.clone(), to.clone(), *terminal);
        }
        Body::RunNamed(data, sealed) if row.provisional => {
            row.begun = Some(row.lookup);
            (row.lookup, row.provisional) = (data.lookup, false);
            (row.ordinal, row.previous) = (data.ordinal, data.previous);
            row.private.key.clone_from(&sealed.key);
        }
        Body::RunBound(data, _) if row.revision_of(&data.gate) < Some(data.revision) => {
            let GateBound { gate, revision } = data.clone();
            match row.gates.binary_search_by(|now| now.gate.cmp(&gate)) {
                Ok(at) => row.gates[at].revision = revision,
                Err(at) => row.gates.insert(at, GateNow { gate, revision }),
            }
        }
        _ => return Err(WRONG),
    }
    row.updated_at = at;
    Ok(row)
}

#[cfg(test)]
mod tests;
