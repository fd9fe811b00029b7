//! The decision: the first rule that holds.
//!
//! What cannot be judged never loosens a decision: an unjudged `allow` is
//! passed over, an unjudged `deny` denies, and after an unjudged `approve` an
//! `allow` needs approval.

use std::fmt;

use super::Policy;
use super::condition::Truth;
use super::model::{Rule, Ruling};
use crate::json::Object;
use crate::record::word;

word! {
    /// What a policy says to an action. The stricter is the lesser, so the
    /// strictest of several verdicts is their minimum.
    pub enum Verdict {
        /// It must not run.
        Deny = 1 => "deny",
        /// It may run when people have approved it.
        Approve = 2 => "approve",
        /// It may run.
        Allow = 3 => "allow",
    }
}

/// Why a policy says so. Prints as the reason code of events and receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// `decision`: the entry always says so.
    Decision,
    /// `rule[i]`: this rule holds.
    Rule(usize),
    /// `rule[i]_unjudged`: this rule could not be judged and might hold.
    RuleUnjudged(usize),
    /// `no_matching_rule`: no rule of the entry holds.
    NoMatchingRule,
    /// `unknown_action`: there is no entry of this name.
    UnknownAction,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Decision => f.write_str("decision"),
            Reason::Rule(index) => write!(f, "rule[{index}]"),
            Reason::RuleUnjudged(index) => write!(f, "rule[{index}]_unjudged"),
            Reason::NoMatchingRule => f.write_str("no_matching_rule"),
            Reason::UnknownAction => f.write_str("unknown_action"),
        }
    }
}

/// What a policy says to an action, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// What.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// What a policy looks at: the action as its canonical text says it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The action's name, compared exactly.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: &'a Object,
    /// Its environment.
    pub environment: &'a str,
    /// Its principal's agent.
    pub agent: &'a str,
    /// Its principal's user; absent to conditions if it has none.
    pub user: Option<&'a str>,
}

impl Policy {
    /// Decides an action. What is not listed is denied.
    #[must_use]
    pub fn decide(&self, facts: &Facts<'_>) -> Decision {
        let Some(entry) = self.entry(facts.name) else {
            return Decision { verdict: Verdict::Deny, reason: Reason::UnknownAction };
        };
        match &entry.ruling {
            Ruling::Always(verdict) => Decision { verdict: *verdict, reason: Reason::Decision },
            Ruling::Rules(rules) => first(rules.iter().map(|rule| (rule.judge(facts), rule.decision))),
        }
    }
}

impl Rule {
    /// Whether the rule holds for these facts. All conditions are judged.
    #[must_use]
    pub fn judge(&self, facts: &Facts<'_>) -> Truth {
        Truth::all(self.when.iter().map(|condition| condition.judge(facts)))
    }
}

/// The decision of rules in order, each with its truth.
pub(super) fn first(rules: impl IntoIterator<Item = (Truth, Verdict)>) -> Decision {
    let mut perhaps_approve = None;
    for (index, (truth, verdict)) in rules.into_iter().enumerate() {
        match (truth, verdict, perhaps_approve) {
            (Truth::False, ..) | (Truth::Unjudged, Verdict::Allow, _) => {}
            (Truth::Unjudged, Verdict::Approve, earlier) => perhaps_approve = earlier.or(Some(index)),
            (Truth::Unjudged, Verdict::Deny, _) => {
                return Decision { verdict, reason: Reason::RuleUnjudged(index) };
            }
            (Truth::True, Verdict::Allow, Some(earlier)) => {
                return Decision { verdict: Verdict::Approve, reason: Reason::RuleUnjudged(earlier) };
            }
            (Truth::True, ..) => return Decision { verdict, reason: Reason::Rule(index) },
        }
    }
    Decision { verdict: Verdict::Deny, reason: Reason::NoMatchingRule }
}

#[cfg(test)]
mod tests;
