//! What is recorded of an approval.

use crate::hash::Hash;
use crate::record::{record, word};
use crate::time::Timestamp;

word! {
    /// How a person was proven.
    pub enum Proof {
        /// By the operating system: the account that owns the store.
        Os = 1 => "os",
        /// By the embedding program, which answers for it.
        Host = 2 => "host",
    }
}

word! {
    /// Who made an unknown outcome known.
    pub enum Source {
        /// The holder of the attempt, after its lease.
        Holder = 1 => "holder",
        /// The remote.
        Remote = 2 => "remote",
        /// A person.
        Person = 3 => "person",
    }
}

word! {
    /// A person's answer.
    pub enum Said {
        /// Yes.
        Yes = 1 => "yes",
        /// No.
        No = 2 => "no",
    }
}

word! {
    /// Where an approval stands.
    pub enum Status {
        /// Asked.
        Pending = 1 => "pending",
        /// Enough people said yes.
        Granted = 2 => "granted",
        /// Somebody said no.
        Denied = 3 => "denied",
        /// Its time was over first.
        Expired = 4 => "expired",
        /// Taken back.
        Revoked = 5 => "revoked",
        /// Used.
        Consumed = 6 => "consumed",
    }
}

word! {
    /// Why an approval was revoked.
    pub enum Revoke {
        /// An entitled person changed their mind.
        Approver = 1 => "approver",
        /// The requester no longer wants it.
        Requester = 2 => "requester",
        /// An operator took it back.
        Operator = 3 => "operator",
        /// The rule it was asked under is not the active one.
        PolicyChanged = 4 => "policy_changed",
        /// Too few of those who said yes are still entitled.
        ApproverRemoved = 5 => "approver_removed",
    }
}

record! {
    /// Somebody is asked.
    pub struct Requested {
        /// Answers and use are possible until here, inclusive.
        expires_at: Timestamp,
        /// Kinds of proof taken.
        proofs: Vec<Proof>,
        /// How many distinct people must say yes.
        quorum: u32,
    }
}

record! {
    /// What the approval binds. Private.
    pub struct RequestedSealed {
        /// Hash of the whole action.
        action_hash: Option<Hash>,
        /// Groups of people who may answer; absent: anybody who is proven.
        approvers: Option<Vec<String>>,
        /// Hash that identical proposals share.
        ask: Option<Hash>,
        /// Hash of all that is bound, which every answer repeats.
        binding: Option<Hash>,
        /// The tool's contract, if a worker is to carry the action out.
        contract: Option<Hash>,
        /// The effect key.
        effect_key: Option<String>,
        /// Hash of what is asked for.
        intent_hash: Option<Hash>,
        /// Name of the action's policy entry.
        name: Option<String>,
        /// Digest of the policy entry.
        rule: Option<Hash>,
    }
}

record! {
    /// A person answered.
    pub struct Responded {
        /// How the person was proven.
        proof: Proof,
        /// What they said.
        said: Said,
        /// Where the approval stands after it.
        status: Status,
    }
}

record! {
    /// Private part: who it was, and why.
    pub struct PersonSealed {
        /// The person.
        person: Option<String>,
        /// Why, if they said so.
        reason: Option<String>,
    }
}

record! {
    /// The approval's time was over.
    pub struct Expired {
    }
}

record! {
    /// The approval was taken back.
    pub struct Revoked {
        /// How the person was proven, if it was one.
        proof: Option<Proof>,
        /// Why.
        reason: Revoke,
    }
}

record! {
    /// The approval was used by the action in `refs`.
    pub struct Consumed {
    }
}
