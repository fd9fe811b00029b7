//! What is recorded of a tool.

use crate::hash::Hash;
use crate::record::record;

record! {
    /// A contract became active.
    pub struct Activated {
        /// Its digest.
        contract: Hash,
    }
}

record! {
    /// Private part: the tool's name, and the contract.
    pub struct ActivatedSealed {
        /// The tool's name.
        name: Option<String>,
        /// The text: this event's payload.
        text: Option<Hash>,
    }
}

record! {
    /// A contract is active no more.
    pub struct Retired {
        /// Its digest.
        contract: Hash,
    }
}
