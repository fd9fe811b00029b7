//! Policy: which actions are allowed, which a person must approve, which are
//! denied.
//!
//! A policy is loaded whole or not at all, and what it does not list is denied.
//! It is compiled from plain data, so the text that a store keeps means exactly
//! what the file meant. Judging is total: it reads nothing but its arguments
//! and has no errors.

mod active;
mod argument;
mod check;
mod condition;
mod error;
mod evaluate;
pub mod event;
mod explain;
mod groups;
mod model;
mod node;
mod parse;
mod template;
mod yaml;

use std::collections::BTreeMap;

use crate::approval::Identity;
use crate::json::{Limits, Numbers, Object, Value};

pub use active::{Activate, ActivePolicy, PolicyRow, evolve};
pub use argument::ArgumentPath;
pub use check::{Finding, Severity};
pub use condition::{Condition, Subject, Truth};
pub use error::nearest;
pub use error::{Path, PolicyError, PolicyErrorKind, Position, Step};
pub use evaluate::{Decision, Facts, Reason, Verdict};
pub use explain::{ExplainedCondition, ExplainedRule, Explanation, Shown, UnknownAction};
pub use groups::{Member, Unanswerable};
pub use model::{ApprovalTerms, DEFAULT_DEADLINE, DEFAULT_LEASE, DEFAULT_TTL, Entry, Rule, Ruling};
pub use template::{Template, TemplateError, TemplateKind, TemplateProblem};
pub use yaml::Document;

pub(crate) use active::activate;

/// The schema of a policy document.
pub const SCHEMA: &str = "onceseal.policy/v1";

/// A policy that was checked as a whole.
#[derive(Debug, Clone)]
pub struct Policy {
    actions: BTreeMap<String, Entry>,
    groups: groups::Groups,
    document: Value,
}

impl Policy {
    /// Reads and compiles a file that holds a policy and nothing else.
    ///
    /// # Errors
    /// The first thing wrong with it, and where it stands.
    pub fn from_yaml(file: &[u8]) -> Result<Policy, PolicyError> {
        Policy::from_document(&Document::read(file)?)
    }

    /// Compiles what is left of a file when other sections were taken out.
    ///
    /// # Errors
    /// The first thing wrong with it, and where it stands.
    pub fn from_document(document: &Document) -> Result<Policy, PolicyError> {
        Policy::compile(document.value())
            .map_err(|error| PolicyError { position: Some(document.position(&error.path)), ..error })
    }

    /// Compiles `{actions, groups?, operators?, schema}`.
    ///
    /// # Errors
    /// The first thing wrong with it, without a place in a file.
    pub fn compile(document: &Value) -> Result<Policy, PolicyError> {
        parse::compile(document)
    }

    /// What the policy was compiled from; its canonical text is the policy.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The entry of an action, by its exact name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.actions.get(name)
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &Entry)> {
        self.actions.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// How the arguments of an action are read: numbers have fractions only
    /// where its entry says so.
    #[must_use]
    pub fn argument_limits(&self, name: &str) -> Limits {
        let floats = self.entry(name).is_some_and(|entry| entry.floats);
        Limits { numbers: if floats { Numbers::Decimals } else { Numbers::Integers }, ..Limits::ACTION }
    }

    /// What an approval binds of an entry: `{entry, name, schema}` with the
    /// entry as written, no defaults and no members of groups.
    #[must_use]
    pub fn rule_document(&self, name: &str) -> Option<Value> {
        let entry = self.document.as_object()?.get("actions")?.as_object()?.get(name)?;
        let mut rule = Object::new();
        rule.insert("entry", entry.clone());
        rule.insert("name", name);
        rule.insert("schema", SCHEMA);
        Some(Value::Object(rule))
    }

    /// Whether an answer of this person counts for an entry.
    #[must_use]
    pub fn entitles(&self, entry: &Entry, person: &Identity) -> bool {
        self.groups.entitle(entry, person)
    }

    /// Whether this person is an operator; anybody proven, if the policy names
    /// no operators.
    #[must_use]
    pub fn is_operator(&self, person: &Identity) -> bool {
        self.groups.is_operator(person)
    }

    /// Whether enough people exist to approve what an entry asks for. `owner`
    /// is the login that owns the store, the only one that `os` can prove;
    /// without it, one login that an entry wants is taken for it.
    ///
    /// # Errors
    /// How many people there are, if they are too few.
    pub fn answerable(&self, entry: &Entry, owner: Option<&str>) -> Result<(), Unanswerable> {
        self.groups.answerable(entry, owner)
    }
}

#[cfg(test)]
mod tests;
