//! Why an action is decided so: every rule and condition, with what it saw.
//!
//! No value that an entry redacts is in an explanation, nor any part of one.

use super::condition::{Condition, Subject, Truth};
use super::error::nearest;
use super::evaluate::{Decision, Facts, Verdict};
use super::model::{Entry, Rule, Ruling};
use super::{Policy, yaml};
use crate::json::Value;

/// Why an action is decided so.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation<'p> {
    /// The decision, as [`Policy::decide`] gives it.
    pub decision: Decision,
    /// The entry's rules in order; all are judged, also those after the one
    /// that decides. None for an entry that always decides the same.
    pub rules: Vec<ExplainedRule<'p>>,
    /// What to do about an action that is not listed.
    pub unknown: Option<UnknownAction>,
}

/// One rule and what it saw.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedRule<'p> {
    /// What it decides if it holds.
    pub decision: Verdict,
    /// Whether it holds.
    pub truth: Truth,
    /// Its conditions, by name.
    pub conditions: Vec<ExplainedCondition<'p>>,
}

/// One condition and what it saw.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedCondition<'p> {
    /// The condition, with its operand.
    pub condition: &'p Condition,
    /// Whether it holds.
    pub truth: Truth,
    /// The value it looked at.
    pub value: Shown,
}

/// A value as it may be shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// There is none.
    Absent,
    /// There is one, and it is `[redacted]`.
    Redacted,
    /// The value; parts of it that are redacted read `[redacted]`.
    Value(Value),
}

/// An action that the policy does not list, and therefore denies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownAction {
    /// The line to add under `actions:` so that people are asked.
    pub line_to_add: String,
    /// The listed action of the most similar name.
    pub similar: Option<String>,
}

const REDACTED: &str = "[redacted]";

impl Policy {
    /// Explains the decision on an action.
    #[must_use]
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation<'_> {
        let decision = self.decide(facts);
        let (rules, unknown) = match self.entry(facts.name) {
            None => (Vec::new(), Some(self.unknown(facts.name))),
            Some(entry) => match &entry.ruling {
                Ruling::Always(_) => (Vec::new(), None),
                Ruling::Rules(rules) => (rules.iter().map(|rule| rule.explain(entry, facts)).collect(), None),
            },
        };
        Explanation { decision, rules, unknown }
    }

    fn unknown(&self, name: &str) -> UnknownAction {
        UnknownAction {
            line_to_add: format!("  {}: {{ decision: {} }}", yaml::key(name), Verdict::Approve),
            similar: nearest(name, self.actions.keys().map(String::as_str)),
        }
    }
}

impl Rule {
    fn explain<'p>(&'p self, entry: &Entry, facts: &Facts<'_>) -> ExplainedRule<'p> {
        let explain = |condition: &'p Condition| ExplainedCondition {
            condition,
            truth: condition.judge(facts),
            value: shown(condition.subject(), entry, facts),
        };
        ExplainedRule {
            decision: self.decision,
            truth: self.judge(facts),
            conditions: self.when.iter().map(explain).collect(),
        }
    }
}

fn shown(subject: &Subject, entry: &Entry, facts: &Facts<'_>) -> Shown {
    let Some(value) = subject.find(facts) else { return Shown::Absent };
    let mut value = value.into_owned();
    if let Subject::Argument(path) = subject {
        for redacted in &entry.redact {
            if redacted.covers(path) {
                return Shown::Redacted;
            }
            if path.covers(redacted) {
                let inside = &redacted.names()[path.names().len()..];
                value = hide(value, inside);
            }
        }
    }
    Shown::Value(value)
}

/// `value` without what stands at `names` in it. Where these lead into
/// something that is no object, all of that is hidden.
fn hide(value: Value, names: &[String]) -> Value {
    match (value, names.split_first()) {
        (Value::Object(mut object), Some((name, rest))) => {
            if let Some(inner) = object.remove(name) {
                object.insert(name.as_str(), hide(inner, rest));
            }
            Value::Object(object)
        }
        _ => Value::from(REDACTED),
    }
}

#[cfg(test)]
mod tests;
