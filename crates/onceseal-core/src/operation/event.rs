//! What is recorded of an operation, besides what is recorded of its action and
//! effect.

use crate::action::event::{Decided, Proposed};
use crate::approval::Proof;
use crate::code::Code;
use crate::hash::Hash;
use crate::operation::Purpose;
use crate::record::record;
use crate::stream::StreamId;
use crate::time::Timestamp;

record! {
    /// A worker is to carry the action out.
    pub struct Queued {
        /// The contract under which it was accepted.
        contract: Hash,
        /// The decision, on the first event or when decided anew.
        decided: Option<Decided>,
        /// Not attempted before.
        due: Timestamp,
        /// The effect it wants.
        effect: StreamId,
        /// Its scope, blinded.
        scope: Hash,
        /// Not attempted after.
        until: Timestamp,
    }
}

record! {
    /// Private part of a queued action: the call that asked for it, and the
    /// proposal if this is its first event.
    pub struct QueuedSealed {
        /// The call.
        intent: Option<Box<Intent>>,
        /// The proposal.
        proposal: Option<Proposed>,
    }
}

record! {
    /// The call that an operation was first asked by.
    pub struct Intent {
        /// Revision of the adapter that read the call.
        adapter_revision: String,
        /// The provider's interface.
        api_family: String,
        /// The call.
        call_id: String,
        /// The idempotency key.
        key: String,
        /// The host's name for what is going on.
        operation_id: String,
        /// Who runs the model.
        provider: String,
        /// What is asked for.
        request: Hash,
        /// The response that the call stands in.
        response_id: String,
        /// The opaque reference under which it may be asked about.
        status_ref: String,
        /// On whose behalf.
        subject: String,
    }
}

record! {
    /// It is attempted later.
    pub struct Delayed {
        /// Why.
        code: Code,
        /// Not attempted before.
        due: Timestamp,
    }
}

record! {
    /// It is not attempted until somebody says so.
    pub struct Parked {
        /// Why.
        code: Code,
    }
}

record! {
    /// Somebody wants it attempted after all.
    pub struct Retried {
        /// Not attempted before.
        due: Timestamp,
        /// How the person was proven.
        proof: Proof,
        /// Not attempted after.
        until: Timestamp,
    }
}

record! {
    /// Somebody has called it off before anything was attempted that may have
    /// happened.
    pub struct Cancelled {
        /// How the person was proven.
        proof: Proof,
    }
}

record! {
    /// Private part of a person's word on an operation.
    pub struct PersonSaid {
        /// Who.
        person: Option<String>,
        /// Why.
        reason: Option<String>,
    }
}

record! {
    /// A call's identity was used.
    pub struct Bound {
        /// For what.
        purpose: Purpose,
    }
}

record! {
    /// Private part of a call's use.
    pub struct BoundSealed {
        /// What it is bound to.
        fingerprint: Option<Hash>,
    }
}
