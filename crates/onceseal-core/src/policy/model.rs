//! What a policy says about one action.

use super::argument::ArgumentPath;
use super::condition::Condition;
use super::evaluate::Verdict;
use super::template::Template;
use crate::approval::Proof;
use crate::time::Span;

/// An attempt's lease where neither entry nor caller says.
pub const DEFAULT_LEASE: Span = Span::minutes(5);
/// An attempt's deadline where neither entry nor caller says, unless its lease
/// is longer.
pub const DEFAULT_DEADLINE: Span = Span::minutes(10);
/// How long a request waits for answers where the entry does not say.
pub const DEFAULT_TTL: Span = Span::minutes(15);

/// The entry of one action.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The effect key's template; without it each action is its own effect.
    pub effect: Option<Template>,
    /// The template of the action's resource.
    pub resource: Option<Template>,
    /// Arguments that are no part of what is asked. None is inside another.
    pub incidental: Vec<ArgumentPath>,
    /// Arguments that only approver and executor see. None is inside another.
    pub redact: Vec<ArgumentPath>,
    /// How people answer.
    pub approval: ApprovalTerms,
    /// The lease as written, 1 s to 24 h.
    pub lease: Option<Span>,
    /// The deadline as written, 1 s to 30 d and not below `lease`.
    pub deadline: Option<Span>,
    /// How many attempts there may be, at least 1; no limit if absent.
    pub max_attempts: Option<u32>,
    /// Whether arguments may be numbers with fractions.
    pub floats: bool,
    /// The decision.
    pub ruling: Ruling,
}

/// How an entry decides.
#[derive(Debug, Clone)]
pub enum Ruling {
    /// Always so.
    Always(Verdict),
    /// By the first rule that holds; there is at least one.
    Rules(Vec<Rule>),
}

/// One rule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rule {
    /// Its conditions, by name; all must hold. Without any it always holds.
    pub when: Vec<Condition>,
    /// The decision if it holds.
    pub decision: Verdict,
}

/// How people answer for an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalTerms {
    /// How long a request waits, 1 s to 30 d.
    pub ttl: Span,
    /// Groups whose members may answer; anybody proven if absent.
    pub approvers: Option<Vec<String>>,
    /// How many different people must say yes, 1 to 16.
    pub quorum: u32,
    /// The kinds of proof that count; `os` and `host` if absent.
    pub proof: Option<Vec<Proof>>,
}

impl Default for ApprovalTerms {
    fn default() -> ApprovalTerms {
        ApprovalTerms { ttl: DEFAULT_TTL, approvers: None, quorum: 1, proof: None }
    }
}

impl ApprovalTerms {
    /// Whether an answer with this kind of proof counts.
    #[must_use]
    pub fn accepts(&self, proof: Proof) -> bool {
        self.proof.as_ref().is_none_or(|accepted| accepted.contains(&proof))
    }
}

impl Entry {
    /// The lease of an attempt: as written, else `usual` but not past a
    /// written deadline.
    #[must_use]
    pub fn lease_or(&self, usual: Span) -> Span {
        self.lease.unwrap_or_else(|| self.deadline.map_or(usual, |deadline| usual.min(deadline)))
    }

    /// The deadline of an attempt with this lease: as written, else 10 min or
    /// the lease if that is longer. A lease past its deadline could not be
    /// kept, so a deadline is never below it.
    #[must_use]
    pub fn deadline_for(&self, lease: Span) -> Span {
        self.deadline.unwrap_or(DEFAULT_DEADLINE).max(lease)
    }

    /// Whether it can come to this verdict.
    #[must_use]
    pub fn can_be(&self, verdict: Verdict) -> bool {
        match &self.ruling {
            Ruling::Always(always) => *always == verdict,
            Ruling::Rules(rules) => rules.iter().any(|rule| rule.decision == verdict),
        }
    }
}
