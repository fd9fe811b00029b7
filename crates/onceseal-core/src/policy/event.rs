//! What is recorded of the active policy.

use crate::hash::Hash;
use crate::record::record;

record! {
    /// A policy became the active one.
    pub struct Activated {
        /// The policy's hash.
        policy: Hash,
        /// The hash of the one before.
        previous: Option<Hash>,
    }
}

record! {
    /// Private part: who did it.
    pub struct ActivatedSealed {
        /// The person or program.
        person: Option<String>,
        /// The text: this event's payload.
        text: Option<Hash>,
    }
}
