//! What is recorded of a handoff.

use crate::approval::Proof;
use crate::hash::Hash;
use crate::id::HolderId;
use crate::record::{record, word};

word! {
    /// Where a handoff stands.
    pub enum HandoffState {
        /// Somebody may accept it.
        Prepared = 1 => "prepared",
        /// Somebody did.
        Accepted = 2 => "accepted",
        /// Nobody may.
        Withdrawn = 3 => "withdrawn",
    }
}

record! {
    /// A handoff was prepared.
    pub struct Prepared {
        /// The newest lease on the resource then.
        fence: u64,
        /// How the person was proven, if one prepared it.
        proof: Option<Proof>,
        /// The resource, blinded.
        resource: Hash,
    }
}

record! {
    /// Private part: what is handed over, and by whom.
    pub struct PreparedSealed {
        /// Who prepared it.
        agent: Option<String>,
        /// Reference of the facts, this event's payload.
        facts: Option<Hash>,
        /// The person, if one prepared it.
        person: Option<String>,
        /// Why, if a person prepared it.
        reason: Option<String>,
        /// The receipt's digest.
        receipt: Option<Hash>,
        /// The resource as it is printed.
        resource: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// Somebody accepted it.
    pub struct Accepted {
        /// The number of the lease that was given.
        fence: u64,
        /// To whom.
        holder: HolderId,
    }
}

record! {
    /// Nobody may accept it any more.
    pub struct Withdrawn {
        /// How the person was proven, if one withdrew it.
        proof: Option<Proof>,
    }
}
