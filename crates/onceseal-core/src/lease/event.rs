//! What is recorded of a lease.

use crate::approval::Proof;
use crate::hash::Hash;
use crate::id::HolderId;
use crate::record::record;
use crate::stream::StreamId;
use crate::time::Timestamp;

record! {
    /// A holder took the resource.
    pub struct Taken {
        /// What it is a part of, blinded.
        above: Vec<Hash>,
        /// The lease's number.
        fence: u64,
        /// Who took it.
        holder: HolderId,
        /// The run or task that is interrupted when it ends without a word.
        interrupts: Option<StreamId>,
        /// Whether others may hold it too who take it so.
        shared: bool,
        /// The lease ends here unless it is renewed.
        until: Timestamp,
    }
}

record! {
    /// Private part: the resource.
    pub struct TakenSealed {
        /// As it is printed.
        resource: Option<String>,
    }
}

record! {
    /// The holder gave the lease up with an outcome, which is final.
    pub struct Committed {
        /// The lease's number.
        fence: u64,
    }
}

record! {
    /// Private part: the outcome.
    pub struct CommittedSealed {
        /// Reference of the outcome, this event's payload.
        outcome: Option<Hash>,
    }
}

record! {
    /// The lease is over without an outcome.
    pub struct Ended {
        /// The lease's number.
        fence: u64,
    }
}

record! {
    /// An operator ended every lease on the resource.
    pub struct Preempted {
        /// How the person was proven.
        proof: Proof,
    }
}
