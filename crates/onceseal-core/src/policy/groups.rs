//! Who is who: identities as they are proven, groups that name them, and
//! whether enough of them exist to answer.
//!
//! The words of a group never widen what an entry accepts: the kind of proof is
//! looked at first, membership second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::model::Entry;
use crate::approval::{Identity, Proof};

/// A member of a group: an identity, or a bare name that any proof may prove.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The kind of proof it must have; any if absent.
    pub proof: Option<Proof>,
    /// The login or name.
    pub name: String,
}

impl Member {
    /// Reads `os:<login>`, `host:<name>` or a bare name without `:`.
    pub(super) fn parse(text: &str) -> Option<Member> {
        let (proof, name) = match text.split_once(':') {
            None => (None, text),
            Some((kind, name)) => (Some(*Proof::ALL.iter().find(|proof| proof.as_str() == kind)?), name),
        };
        (!name.is_empty()).then(|| Member { proof, name: name.to_owned() })
    }

    fn may_have(&self, proof: Proof) -> bool {
        self.proof.is_none_or(|needed| needed == proof)
    }

    fn is(&self, identity: &Identity) -> bool {
        self.may_have(identity.proof) && self.name == identity.name
    }

    /// Whether whoever is `other` is this member too.
    pub(super) fn covers(&self, other: &Member) -> bool {
        self.name == other.name && (self.proof.is_none() || self.proof == other.proof)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.proof {
            Some(proof) => write!(f, "{}:{}", proof.as_str(), self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The groups of a policy, and which of them are operators.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    pub(super) members: BTreeMap<String, Vec<Member>>,
    pub(super) operators: Option<Vec<String>>,
}

/// Too few people can answer for an entry, so nobody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it needs {quorum} different people and {people} can answer; widen approvers or proof, or lower the quorum"
)]
pub struct Unanswerable {
    /// How many different people it needs.
    pub quorum: u32,
    /// How many there are.
    pub people: usize,
}

impl Groups {
    /// The members of these groups; an undefined group has none.
    fn of<'a>(&'a self, groups: &'a [String]) -> impl Iterator<Item = &'a Member> {
        groups.iter().filter_map(|group| self.members.get(group)).flatten()
    }

    pub(super) fn entitle(&self, entry: &Entry, identity: &Identity) -> bool {
        entry.approval.accepts(identity.proof)
            && match &entry.approval.approvers {
                None => true,
                Some(groups) => self.of(groups).any(|member| member.is(identity)),
            }
    }

    pub(super) fn is_operator(&self, identity: &Identity) -> bool {
        match &self.operators {
            None => true,
            Some(groups) => self.of(groups).any(|member| member.is(identity)),
        }
    }

    /// Whether enough people exist; looks no further than to the quorum.
    pub(super) fn answerable(&self, entry: &Entry, owner: Option<&str>) -> Result<(), Unanswerable> {
        let quorum = entry.approval.quorum;
        let enough = |people: usize| people >= quorum as usize;
        let too_few =
            |people: usize| if enough(people) { Ok(()) } else { Err(Unanswerable { quorum, people }) };
        let (os, host) = (entry.approval.accepts(Proof::Os), entry.approval.accepts(Proof::Host));
        let Some(groups) = &entry.approval.approvers else {
            return if host { Ok(()) } else { too_few(1) };
        };
        let named = |proof| self.of(groups).filter(move |m| m.may_have(proof)).map(|m| m.name.as_str());
        let mut people = BTreeSet::new();
        for name in named(Proof::Host).filter(|_| host) {
            people.insert(name);
            if enough(people.len()) {
                return Ok(());
            }
        }
        if os {
            let is_owner = |name: &&str| owner.is_none_or(|owner| owner == *name);
            let owner = named(Proof::Os).filter(is_owner).find(|name| !people.contains(name));
            people.extend(owner);
        }
        too_few(people.len())
    }
}
