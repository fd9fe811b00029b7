//! The active policy is state: a stream with one row, and texts found by hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::approval::Identity;
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::journal::{Body, Event, Refs};
use crate::json::{self, Limits, Value};
use crate::pack::Corrupt;
use crate::policy::event::{Activated, ActivatedSealed};
use crate::policy::{Policy, PolicyError};
use crate::record::record;
use crate::reply::Reply;
use crate::time::Timestamp;
use crate::view::Halt;

/// A policy with its hash and the canonical text that was hashed.
#[derive(Debug)]
pub struct ActivePolicy {
    /// SHA-256(`onceseal.policy.v1\n` ‖ text).
    pub hash: Hash,
    /// Canonical text of `{actions, groups, operators, schema}`.
    pub text: String,
    /// What it compiles to.
    pub policy: Policy,
    rules: BTreeMap<String, Hash>,
}

impl ActivePolicy {
    /// Compiles a policy document.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn compile(document: &Value) -> Result<ActivePolicy, PolicyError> {
        let policy = Policy::compile(document)?;
        let text = json::canonical(document);
        let digest = |rule: &Value| Hash::of("onceseal.rule.v1\n", &[json::canonical(rule).as_bytes()]);
        let rules = policy
            .entries()
            .filter_map(|(name, _)| Some((name.to_owned(), digest(&policy.rule_document(name)?))))
            .collect();
        Ok(ActivePolicy { hash: Hash::of("onceseal.policy.v1\n", &[text.as_bytes()]), text, policy, rules })
    }

    /// The rule digest of an action's entry: SHA-256(`onceseal.rule.v1\n` ‖
    /// canonical{entry as written, name, schema}). It has no defaults and no
    /// members of groups.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<Hash> {
        self.rules.get(name).copied()
    }

    /// Compiles a stored text again.
    ///
    /// # Errors
    /// [`Corrupt`] if it is not canonical or no longer compiles.
    pub fn restore(text: &str) -> Result<ActivePolicy, Corrupt> {
        const WRONG: Corrupt = Corrupt("policy text");
        let document = json::read_canonical(text, &Limits::DATA).map_err(|_| WRONG)?;
        ActivePolicy::compile(&document).map_err(|_| WRONG)
    }
}

record! {
    /// The row of the active policy.
    pub struct PolicyRow {
        /// Its hash.
        active: Hash,
        /// When it was made active.
        updated_at: Timestamp,
    }
}

/// Make a policy the active one.
#[derive(Debug, Clone)]
pub struct Activate {
    /// The policy.
    pub policy: Arc<ActivePolicy>,
    /// Make it active even if it was active before and is not now.
    pub again: bool,
    /// Who does it.
    pub person: Option<Identity>,
}

pub(crate) fn activate(case: &mut Case<'_>, activate: &Activate) -> Result<Reply, Halt> {
    if let Some(person) = &activate.person {
        if !person.is_valid() {
            return Ok(Code::PersonInvalid.into());
        }
        if !case.proves(person) {
            return Ok(Code::NotEntitled.into());
        }
    }
    let hash = activate.policy.hash;
    let previous = case.view.policy(case.pinned)?.map(|row| row.active);
    if previous == Some(hash) {
        return Ok(Reply::Policy { active: hash, changed: false });
    }
    if !activate.again && case.pinned.policy(hash)?.is_some() {
        return Ok(Code::PolicyFileOld.into());
    }
    let payload = case.payload(&activate.policy.text);
    let person = activate.person.as_ref();
    let sealed = ActivatedSealed { person: person.map(Identity::to_string), text: Some(payload.hash()) };
    let data = Activated { policy: hash, previous, proof: person.map(|person| person.proof) };
    let body = Body::PolicyActivated(data, sealed);
    case.record_with(case.pinned.policy_stream, Refs::NONE, body, Some(payload));
    Ok(Reply::Policy { active: hash, changed: true })
}

/// The row after one more activation.
///
/// # Errors
/// [`Corrupt`] for any other event.
pub fn evolve(row: Option<PolicyRow>, at: Timestamp, event: &Event) -> Result<PolicyRow, Corrupt> {
    match &event.body {
        Body::PolicyActivated(data, _) if data.previous == row.map(|row| row.active) => {
            Ok(PolicyRow { active: data.policy, updated_at: at })
        }
        _ => Err(Corrupt("sequence of policy events")),
    }
}
