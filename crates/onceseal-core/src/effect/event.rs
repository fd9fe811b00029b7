//! What is recorded of an effect.

use crate::approval::{Proof, Source};
use crate::hash::Hash;
use crate::record::{record, word};
use crate::time::Timestamp;

word! {
    /// What became of an attempt.
    pub enum Outcome {
        /// It happened.
        Committed = 1 => "committed",
        /// It did not happen.
        Failed = 2 => "failed",
        /// Nobody knows.
        Ambiguous = 3 => "ambiguous",
    }
}

record! {
    /// An attempt took the effect.
    pub struct Acquired {
        /// Whether it repeats an attempt nobody knows the outcome of, as its
        /// recovery contract permits: with the same provider key.
        again: bool,
        /// Whether the executor may run at once.
        begun: bool,
        /// The attempt ends here, however often it is renewed.
        deadline: Timestamp,
        /// The attempt's number.
        fence: u64,
        /// The holder may act until here without renewing.
        lease_until: Timestamp,
    }
}

record! {
    /// An operation will attempt it; none has begun to.
    pub struct Queued {
        /// The attempts so far; the next one is numbered one higher.
        fence: u64,
    }
}

record! {
    /// An attempt that had not begun was given back: nothing ran.
    pub struct Returned {
        /// The attempt's number.
        fence: u64,
    }
}

record! {
    /// Nothing will be attempted any more; the key is free.
    pub struct Released {
        /// The attempts so far.
        fence: u64,
    }
}

record! {
    /// Private part of an acquisition.
    pub struct AcquiredSealed {
        /// The effect key, on the stream's first event.
        key: Option<String>,
    }
}

record! {
    /// The executor may run.
    pub struct Begun {
        /// The attempt's number.
        fence: u64,
    }
}

record! {
    /// The holder reported.
    pub struct Settled {
        /// A short code of the executor.
        code: Option<String>,
        /// The attempt's number.
        fence: u64,
        /// What it reported.
        outcome: Outcome,
        /// The remote's receipt, blinded.
        remote_receipt: Option<Hash>,
        /// The remote's name of the request, blinded.
        remote_request: Option<Hash>,
    }
}

record! {
    /// Private part of a report.
    pub struct SettledSealed {
        /// The executor's error text.
        error: Option<String>,
        /// What the remote calls what it did.
        remote: Option<RemoteReceipt>,
        /// The result: this event's payload.
        result: Option<Hash>,
    }
}

record! {
    /// What a remote calls what it did. One receipt, and one request, proves one
    /// effect of its tool.
    pub struct RemoteReceipt {
        /// When the remote saw it, if it says so.
        observed_at: Option<Timestamp>,
        /// Its receipt.
        receipt_id: Option<String>,
        /// Its name of the request.
        request_id: Option<String>,
        /// The state of the resource that resulted.
        revision: Option<String>,
    }
}

record! {
    /// The lease ended and nobody had reported.
    pub struct Lapsed {
        /// The attempt's number.
        fence: u64,
    }
}

record! {
    /// The remote or a person answered.
    pub struct Known {
        /// The attempt's number.
        fence: u64,
        /// Committed or failed.
        outcome: Outcome,
        /// How the person was proven; absent for the remote.
        proof: Option<Proof>,
        /// The remote's receipt, blinded.
        remote_receipt: Option<Hash>,
        /// The remote's name of the request, blinded.
        remote_request: Option<Hash>,
        /// Who answered.
        source: Source,
    }
}

record! {
    /// Private part of such an answer.
    pub struct KnownSealed {
        /// What was known before: the error text it replaces.
        cause: Option<String>,
        /// Where the answer comes from.
        evidence: Option<String>,
        /// Who answered.
        person: Option<String>,
        /// Why.
        reason: Option<String>,
        /// What the remote calls what it did.
        remote: Option<RemoteReceipt>,
        /// The result: this event's payload.
        result: Option<Hash>,
    }
}

record! {
    /// A holder reported after somebody else had answered; nothing changes.
    pub struct Late {
        /// Whether it says otherwise than what is recorded.
        contradicts: bool,
        /// The attempt's number.
        fence: u64,
        /// What it reported.
        outcome: Outcome,
    }
}
