//! What is recorded of the store itself, and foreign evidence.

use crate::hash::Hash;
use crate::record::record;

record! {
    /// The tenant was made.
    pub struct Created {
    }
}

record! {
    /// Private part: whose the store is.
    pub struct CreatedSealed {
        /// The account that proves itself to it, `os:…`; absent where nobody does, or
        /// from a time when that was not recorded.
        owner: Option<String>,
    }
}

record! {
    /// Somebody accepted that the store is older than what was seen.
    pub struct Accepted {
        /// The newest log position the store had then.
        found: u64,
        /// The newest position that had been seen.
        seen: u64,
    }
}

record! {
    /// Private part: who accepted it and why.
    pub struct AcceptedSealed {
        /// The person.
        person: Option<String>,
        /// Why.
        reason: Option<String>,
    }
}

record! {
    /// Foreign evidence.
    pub struct NoteSealed {
        /// The body: this event's payload.
        body: Option<Hash>,
        /// Where it comes from.
        source: Option<String>,
    }
}
