//! What is recorded of an action.

use crate::approval::Source;
use crate::code::Code;
use crate::hash::Hash;
use crate::policy::Verdict;
use crate::record::{record, word};
use crate::stream::StreamId;
use crate::time::Timestamp;

word! {
    /// The terminal answer of an action.
    pub enum Answer {
        /// The effect happened.
        Committed = 1 => "committed",
        /// The effect did not happen.
        Failed = 2 => "failed",
        /// Nobody knows.
        Ambiguous = 3 => "ambiguous",
        /// Policy or a person said no.
        Denied = 4 => "denied",
        /// It could not start.
        Blocked = 5 => "blocked",
        /// A person called it off before it was carried out.
        Cancelled = 6 => "cancelled",
    }
}

record! {
    /// What the policy said, and which policy.
    pub struct Decided {
        /// Allow, approve or deny.
        decision: Verdict,
        /// Hash of the policy that was asked.
        policy: Hash,
        /// Which part of the entry decided: `decision`, `rule[0]`, …
        reason: String,
    }
}

record! {
    /// The proposal as it was made. Private: it is about people and content.
    pub struct Proposed {
        /// Hash of the whole action.
        action_hash: Hash,
        /// Who acts.
        agent: String,
        /// Where the arguments are: the payload of the action's first event.
        arguments: Hash,
        /// The effect key, unless the action has none of its own.
        effect_key: Option<String>,
        /// The environment.
        environment: String,
        /// Hash of what is asked for.
        intent_hash: Hash,
        /// The action's name.
        name: String,
        /// The resource.
        resource: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// The private part of every action event: the proposal, on the first.
    pub struct ActionSealed {
        /// The proposal.
        proposal: Option<Proposed>,
    }
}

record! {
    /// The executor may run.
    pub struct Started {
        /// The decision, on the first event or when decided anew.
        decided: Option<Decided>,
        /// The effect it holds.
        effect: StreamId,
        /// The attempt.
        fence: u64,
    }
}

record! {
    /// A person is asked.
    pub struct Waiting {
        /// The decision, on the first event or when decided anew.
        decided: Option<Decided>,
    }
}

record! {
    /// Proposed and permitted, not started.
    pub struct Readied {
        /// The decision.
        decided: Option<Decided>,
        /// When it ends unless started.
        until: Timestamp,
    }
}

record! {
    /// The terminal answer.
    pub struct Ended {
        /// Why, unless committed.
        code: Option<Code>,
        /// The decision, on the first event or when decided anew.
        decided: Option<Decided>,
        /// What it came to.
        result: Answer,
    }
}

record! {
    /// The unknown outcome became known.
    pub struct Answered {
        /// Committed or failed.
        result: Answer,
        /// Who said so.
        source: Source,
    }
}
