//! Whether a policy says what its author means: rules that never decide,
//! approvals that nobody can give, groups that nobody uses.
//!
//! A finding never changes a decision. What is reported as never holding never
//! holds; not everything that never holds is found.

mod known;

use std::collections::BTreeSet;
use std::fmt;

use super::Policy;
use super::error::Path;
use super::evaluate::Verdict;
use super::model::{Entry, Rule, Ruling};
use crate::json::Value;
use known::{always_with, never_holds};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably not what is meant.
    Warning,
    /// Something can never work.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// Something about a policy that its author should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is: a code that stays the same.
    pub code: &'static str,
    /// Where it is; [`Document::position`](super::Document::position) has the
    /// place in the file.
    pub path: Path,
    /// A sentence for people.
    pub sentence: String,
}

impl Policy {
    /// Everything noticed, in the order of the document's canonical text.
    /// `owner` is the login that owns the store, if it is known.
    #[must_use]
    pub fn check(&self, owner: Option<&str>) -> Vec<Finding> {
        let actions = Path::default().member("actions");
        let mut findings = Findings::default();
        if self.actions.is_empty() {
            findings.note(
                &actions,
                "no_actions",
                "no action is listed, so every action is denied".to_owned(),
            );
        }
        for (name, entry) in &self.actions {
            let path = actions.member(name);
            if let Ruling::Rules(rules) = &entry.ruling {
                findings.rules(&path.member("rules"), rules);
            }
            findings.approval(&path, entry, self, owner, self.writes_approval(name));
            findings.effect(&path, entry);
        }
        findings.groups(self);
        findings.0
    }

    fn writes_approval(&self, name: &str) -> bool {
        let member = |value: &Value, name| value.as_object().and_then(|o| o.get(name)).is_some();
        let actions = self.document.as_object().and_then(|o| o.get("actions")).and_then(Value::as_object);
        actions.and_then(|actions| actions.get(name)).is_some_and(|entry| member(entry, "approval"))
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn rules(&mut self, path: &Path, rules: &[Rule]) {
        let always = rules.iter().position(|rule| rule.when.is_empty());
        for (index, rule) in rules.iter().enumerate() {
            let path = path.item(index);
            if let Some(always) = always.filter(|always| *always < index) {
                let sentence = format!("this rule is never reached: rule[{always}] always holds");
                self.warn(&path, "rule_unreachable", sentence);
            } else if never_holds(rule) {
                let sentence = "this rule never holds: no value meets all its conditions".to_owned();
                self.warn(&path, "rule_never_holds", sentence);
            } else if let Some(earlier) = rules[..index].iter().position(|earlier| always_with(earlier, rule))
            {
                let sentence = format!("this rule never holds first: rule[{earlier}] holds whenever it does");
                self.warn(&path, "rule_unreachable", sentence);
            }
        }
    }

    fn approval(&mut self, path: &Path, entry: &Entry, policy: &Policy, owner: Option<&str>, written: bool) {
        let path = path.member("approval");
        if entry.can_be(Verdict::Approve) {
            if let Err(problem) = policy.answerable(entry, owner) {
                let sentence = format!("nobody can approve this action: {problem}");
                self.push(Severity::Error, &path, "approval_unanswerable", sentence);
            }
        } else if written {
            let sentence = "nobody is ever asked: no decision of this entry is `approve`".to_owned();
            self.note(&path, "approval_unused", sentence);
        }
    }

    fn effect(&mut self, path: &Path, entry: &Entry) {
        let Some(template) = &entry.effect else {
            if entry.can_be(Verdict::Allow) || entry.can_be(Verdict::Approve) {
                let sentence =
                    "without `effect`, the same effect of another action is not noticed".to_owned();
                self.note(path, "no_effect", sentence);
            }
            return;
        };
        let path = path.member("effect");
        if template.is_constant() {
            let sentence =
                "all actions of this name are one effect: after the first, the others are duplicates";
            self.warn(&path, "constant_effect", sentence.to_owned());
        }
        for argument in template.arguments() {
            if entry.incidental.iter().any(|incidental| incidental.covers(argument)) {
                let sentence =
                    format!("`{argument}` is incidental and in the effect key: one wish has many effects");
                self.warn(&path, "incidental_in_effect", sentence);
            }
        }
    }

    fn groups(&mut self, policy: &Policy) {
        let approvers = policy.actions.values().filter_map(|entry| entry.approval.approvers.as_ref());
        let used: BTreeSet<&String> = approvers.chain(&policy.groups.operators).flatten().collect();
        for group in policy.groups.members.keys().filter(|group| !used.contains(group)) {
            let path = Path::default().member("groups").member(group);
            self.note(&path, "group_unused", "no entry and no `operators` names this group".to_owned());
        }
    }

    fn note(&mut self, path: &Path, code: &'static str, sentence: String) {
        self.push(Severity::Note, path, code, sentence);
    }

    fn warn(&mut self, path: &Path, code: &'static str, sentence: String) {
        self.push(Severity::Warning, path, code, sentence);
    }

    fn push(&mut self, severity: Severity, path: &Path, code: &'static str, sentence: String) {
        self.0.push(Finding { severity, code, path: path.clone(), sentence });
    }
}

#[cfg(test)]
mod tests;
