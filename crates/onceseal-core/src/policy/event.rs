//! What is recorded of the active policy.

use crate::approval::Proof;
use crate::hash::Hash;
use crate::record::record;

record! {
    /// A policy became the active one.
    pub struct Activated {
        /// The policy's hash.
        policy: Hash,
        /// The hash of the one before.
        previous: Option<Hash>,
        /// How whoever did it was proven.
        proof: Option<Proof>,
    }
}

record! {
    /// Private part: who did it.
    pub struct ActivatedSealed {
        /// Who did it.
        person: Option<String>,
        /// The text: this event's payload.
        text: Option<Hash>,
    }
}
