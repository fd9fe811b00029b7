//! What is recorded of a run, of what is asked of it, and of definitions.

use crate::hash::Hash;
use crate::id::{RootId, RunId};
use crate::record::record;

record! {
    /// A run was started.
    pub struct Started {
        /// The definition it goes by, for all its life.
        definition: Hash,
        /// The kind that it defines.
        kind: String,
        /// Where it is found: its root, kind and lookup key, blinded.
        lookup: Hash,
        /// How many runs ended under the lookup key before.
        ordinal: u64,
        /// The newest of them.
        previous: Option<RunId>,
        /// Whether its change has no name yet.
        provisional: bool,
        /// The project it is about.
        root: RootId,
        /// The state that it begins in.
        state: String,
    }
}

record! {
    /// Private part of a start: what it is about, and who asked.
    pub struct StartedSealed {
        /// Who acts.
        agent: Option<String>,
        /// The lookup key.
        key: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// Private part: who asked.
    pub struct AskedBy {
        /// Who acts.
        agent: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// A run went on to another state.
    pub struct Moved {
        /// Why, in a word; it stays on the run until the next move.
        code: Option<String>,
        /// From this state.
        from: String,
        /// Whether nothing follows.
        terminal: bool,
        /// To this one.
        to: String,
    }
}

record! {
    /// A run's change has a name now.
    pub struct Named {
        /// Where it is found from now on.
        lookup: Hash,
        /// How many runs ended under that lookup key before.
        ordinal: u64,
        /// The newest of them.
        previous: Option<RunId>,
    }
}

record! {
    /// Private part of a name: the lookup key, and who asked.
    pub struct NamedSealed {
        /// Who acts.
        agent: Option<String>,
        /// The lookup key.
        key: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// What was answered to a request.
    pub struct Answered {
        /// Whether the run was there before.
        joined: bool,
        /// The run.
        run: RunId,
        /// The run's newest event then.
        sequence: u64,
        /// Its state then.
        state: String,
    }
}

record! {
    /// Private part of a request.
    pub struct AnsweredSealed {
        /// The request's id.
        id: Option<String>,
        /// Hash of the whole request.
        request: Option<Hash>,
    }
}

record! {
    /// A definition was used for the first time.
    pub struct Added {
        /// Its digest.
        definition: Hash,
    }
}

record! {
    /// Private part of a definition: the kind and the text.
    pub struct AddedSealed {
        /// The kind that it defines.
        kind: Option<String>,
        /// The text: this event's payload.
        text: Option<Hash>,
    }
}

record! {
    /// A delivery was bound at a gate of the run.
    pub struct GateBound {
        /// The gate.
        gate: String,
        /// Which of the gate's.
        revision: u64,
    }
}

record! {
    /// What was delivered.
    pub struct Bound {
        /// The gate.
        gate: String,
        /// Which of the gate's.
        revision: u64,
        /// The run.
        run: RunId,
    }
}

record! {
    /// Private part of a delivery: its digests.
    pub struct BoundSealed {
        /// Of the contract that it fulfils.
        contract: Option<Hash>,
        /// Of what was delivered.
        receipt: Option<Hash>,
        /// Of the record of how it came about.
        record: Option<Hash>,
    }
}
