//! One command being decided: what it sees, and what it has caused so far.
//!
//! The rules of each concept take a case and record events in it; `decide`
//! opens it and takes the verdict out.

use crate::approval::{Identity, Proof};
use crate::command::Stamped;
use crate::id::{ApprovalId, ReceiptId};
use crate::journal::{Body, Draft, Event, Payload, Refs};
use crate::reply::Reply;
use crate::stream::StreamId;
use crate::time::Timestamp;
use crate::view::{Pinned, View};

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Events to record, in order. A refusal may have some.
    pub drafts: Vec<Draft>,
    /// Leases to move.
    pub renewals: Vec<Renewal>,
    /// The answer.
    pub reply: Reply,
}

/// The one change of a row without an event: the live lease of this fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// The effect.
    pub stream: StreamId,
    /// Its attempt.
    pub fence: u64,
    /// The new end.
    pub lease_until: Timestamp,
}

/// One command being decided.
pub(crate) struct Case<'a> {
    pub(crate) pinned: &'a Pinned,
    pub(crate) view: &'a View,
    pub(crate) command: &'a Stamped,
    pub(crate) now: Timestamp,
    pub(crate) renewals: Vec<Renewal>,
    /// Approvals that this command has ended: the view still shows them open.
    pub(crate) closed: Vec<ApprovalId>,
    drafts: Vec<Draft>,
    receipts: u32,
}

impl<'a> Case<'a> {
    pub(crate) fn new(pinned: &'a Pinned, view: &'a View, command: &'a Stamped, now: Timestamp) -> Case<'a> {
        let (renewals, closed, drafts) = (Vec::new(), Vec::new(), Vec::new());
        Case { pinned, view, command, now, renewals, closed, drafts, receipts: 0 }
    }

    /// Whether this person is proven: the operating system proves the account
    /// that owns the store and nobody else; for others the embedding program
    /// answers.
    pub(crate) fn proves(&self, person: &Identity) -> bool {
        person.proof == Proof::Host || self.pinned.owner.as_deref() == Some(person.to_string().as_str())
    }

    /// What it has come to, with this answer. A question leaves no trace.
    pub(crate) fn verdict(self, reply: Reply) -> Verdict {
        if let Reply::Ask(_) = reply {
            return Verdict { drafts: Vec::new(), renewals: Vec::new(), reply };
        }
        Verdict { drafts: self.drafts, renewals: self.renewals, reply }
    }

    /// Records an event.
    pub(crate) fn record(&mut self, stream: StreamId, refs: Refs, body: Body) {
        self.record_with(stream, refs, body, None);
    }

    /// Records an event with the text it names.
    pub(crate) fn record_with(&mut self, stream: StreamId, refs: Refs, body: Body, payload: Option<Payload>) {
        self.drafts.push(Draft { stream, event: Event { refs, body }, payload });
    }

    /// A text to be kept beside the next event.
    pub(crate) fn payload(&self, text: &str) -> Payload {
        let n = u32::try_from(self.drafts.len()).unwrap_or(u32::MAX);
        Payload { salt: self.command.payload_salt(n), text: text.to_owned() }
    }

    /// A new receipt id.
    pub(crate) fn receipt(&mut self) -> ReceiptId {
        self.receipts += 1;
        self.command.receipt(self.receipts)
    }
}
