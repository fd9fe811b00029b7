//! From a document to a policy: closed key sets, bounds, references.
//!
//! Whatever passes here can be judged without an error.

use std::collections::BTreeMap;

use super::argument::ArgumentPath;
use super::condition::Condition;
use super::error::{PolicyError, PolicyErrorKind, nearest};
use super::evaluate::Verdict;
use super::groups::{Groups, Member};
use super::model::{ApprovalTerms, Entry, Rule, Ruling};
use super::node::Node;
use super::template::{Template, TemplateKind};
use super::{Policy, SCHEMA};
use crate::approval::Proof;
use crate::json::Value;
use crate::limits;
use crate::time::Span;

const TOP_KEYS: &[&str] = &["actions", "groups", "operators", "schema"];
/// With what stands beside a policy in its file, and was taken out of it.
const FILE_KEYS: &[&str] = &["actions", "groups", "operators", "runs", "schema", "settings", "tools"];
const ENTRY_KEYS: &[&str] = &[
    "approval",
    "deadline",
    "decision",
    "effect",
    "floats",
    "incidental",
    "lease",
    "max_attempts",
    "redact",
    "resource",
    "rules",
];
const APPROVAL_KEYS: &[&str] = &["approvers", "proof", "quorum", "ttl"];
const RULE_KEYS: &[&str] = &["decision", "when"];

pub(super) fn compile(document: &Value) -> Result<Policy, PolicyError> {
    let root = Node::root(document);
    root.object()?;
    required(&root, "schema")?.word(&[SCHEMA])?;
    root.closed_among(TOP_KEYS, FILE_KEYS)?;
    let groups = groups(&root)?;
    let mut actions = BTreeMap::new();
    let mut reader = EntryReader { groups: &groups, patterns: 0 };
    for (name, node) in required(&root, "actions")?.members()? {
        node.check_name(name)?;
        actions.insert(name.to_owned(), reader.entry(&node)?);
    }
    Ok(Policy { actions, groups, document: document.clone() })
}

fn required<'a>(node: &'a Node<'a>, key: &'static str) -> Result<Node<'a>, PolicyError> {
    node.get(key).ok_or_else(|| node.fail(PolicyErrorKind::MissingKey(key)))
}

fn groups(root: &Node<'_>) -> Result<Groups, PolicyError> {
    let mut groups = Groups::default();
    if let Some(node) = root.get("groups") {
        for (name, node) in node.members()? {
            node.check_name(name)?;
            groups.members.insert(name.to_owned(), members(&node)?);
        }
    }
    if let Some(node) = root.get("operators") {
        groups.operators = Some(group_names(&node, &groups)?);
    }
    Ok(groups)
}

fn members(node: &Node<'_>) -> Result<Vec<Member>, PolicyError> {
    let mut members: Vec<Member> = Vec::new();
    for node in node.some_items("the group")? {
        let text = node.name()?;
        let member = Member::parse(text)
            .ok_or_else(|| node.fail(PolicyErrorKind::Member { member: text.to_owned() }))?;
        distinct(&node, &members, &member, Member::covers)?;
        members.push(member);
    }
    Ok(members)
}

fn group_names(node: &Node<'_>, groups: &Groups) -> Result<Vec<String>, PolicyError> {
    let mut names: Vec<String> = Vec::new();
    for node in node.some_items("the list of groups")? {
        let name = node.name()?.to_owned();
        if !groups.members.contains_key(&name) {
            let suggestion = nearest(&name, groups.members.keys().map(String::as_str));
            return Err(node.fail(PolicyErrorKind::UndefinedGroup { group: name, suggestion }));
        }
        distinct(&node, &names, &name, String::eq)?;
        names.push(name);
    }
    Ok(names)
}

/// Refuses an item that an earlier one covers or that covers an earlier one,
/// and lists too long to compare so.
fn distinct<T: ToString>(
    node: &Node<'_>,
    earlier: &[T],
    item: &T,
    covers: fn(&T, &T) -> bool,
) -> Result<(), PolicyError> {
    if earlier.len() == limits::NAMES {
        return Err(node.fail(PolicyErrorKind::TooMany { what: "names in one list", limit: limits::NAMES }));
    }
    let overlap = earlier.iter().find(|earlier| covers(earlier, item) || covers(item, earlier));
    overlap.map_or(Ok(()), |earlier| {
        let (item, earlier) = (item.to_string(), earlier.to_string());
        Err(node.fail(PolicyErrorKind::Overlap { item, earlier }))
    })
}

struct EntryReader<'a> {
    groups: &'a Groups,
    patterns: usize,
}

impl EntryReader<'_> {
    fn entry(&mut self, node: &Node<'_>) -> Result<Entry, PolicyError> {
        node.closed(ENTRY_KEYS)?;
        let redact = argument_paths(node.get("redact"))?;
        let lease = node
            .get("lease")
            .map(|node| span(&node, "lease", limits::LEASE_MIN, limits::LEASE_MAX))
            .transpose()?;
        Ok(Entry {
            effect: template(node.get("effect"), TemplateKind::Effect, &redact)?,
            resource: template(node.get("resource"), TemplateKind::Resource, &redact)?,
            incidental: argument_paths(node.get("incidental"))?,
            redact,
            approval: node
                .get("approval")
                .map_or(Ok(ApprovalTerms::default()), |node| self.approval(&node))?,
            lease,
            deadline: node.get("deadline").map(|node| deadline(&node, lease)).transpose()?,
            max_attempts: node
                .get("max_attempts")
                .map(|node| count(&node, "max_attempts", limits::ATTEMPTS_MAX))
                .transpose()?,
            floats: node.get("floats").map(|node| node.word(&["allow"])).transpose()?.is_some(),
            ruling: self.ruling(node)?,
        })
    }

    fn approval(&self, node: &Node<'_>) -> Result<ApprovalTerms, PolicyError> {
        node.closed(APPROVAL_KEYS)?;
        let mut terms = ApprovalTerms::default();
        if let Some(node) = node.get("ttl") {
            terms.ttl = span(&node, "ttl", limits::TTL_MIN, limits::TTL_MAX)?;
        }
        if let Some(node) = node.get("approvers") {
            terms.approvers = Some(group_names(&node, self.groups)?);
        }
        if let Some(node) = node.get("quorum") {
            terms.quorum = count(&node, "quorum", limits::QUORUM_MAX)?;
        }
        if let Some(node) = node.get("proof") {
            terms.proof = Some(proofs(&node)?);
        }
        Ok(terms)
    }

    fn ruling(&mut self, node: &Node<'_>) -> Result<Ruling, PolicyError> {
        match (node.get("decision"), node.get("rules")) {
            (Some(decision), None) => verdict(&decision).map(Ruling::Always),
            (None, Some(rules)) => self.rules(&rules).map(Ruling::Rules),
            (Some(_), Some(_)) => Err(node.fail(PolicyErrorKind::DecisionOrRules("both"))),
            (None, None) => Err(node.fail(PolicyErrorKind::DecisionOrRules("neither"))),
        }
    }

    fn rules(&mut self, node: &Node<'_>) -> Result<Vec<Rule>, PolicyError> {
        let mut rules = Vec::new();
        for node in node.some_items("the list of rules")? {
            if rules.len() == limits::RULES {
                return Err(
                    node.fail(PolicyErrorKind::TooMany { what: "rules in one entry", limit: limits::RULES })
                );
            }
            node.closed(RULE_KEYS)?;
            let when = node.get("when").map_or(Ok(Vec::new()), |node| self.conditions(&node))?;
            rules.push(Rule { when, decision: verdict(&required(&node, "decision")?)? });
        }
        Ok(rules)
    }

    fn conditions(&mut self, node: &Node<'_>) -> Result<Vec<Condition>, PolicyError> {
        let mut conditions = Vec::new();
        for (key, node) in node.members()? {
            let condition = Condition::parse(key, &node)?;
            self.patterns += usize::from(condition.is_pattern());
            conditions.push(condition);
            for (count, what, limit) in [
                (conditions.len(), "conditions in one rule", limits::CONDITIONS),
                (self.patterns, "patterns in one policy", limits::PATTERNS),
            ] {
                if count > limit {
                    return Err(node.fail(PolicyErrorKind::TooMany { what, limit }));
                }
            }
        }
        if conditions.is_empty() {
            return Err(node.fail(PolicyErrorKind::Empty("`when`")));
        }
        Ok(conditions)
    }
}

fn verdict(node: &Node<'_>) -> Result<Verdict, PolicyError> {
    Ok(Verdict::ALL[node.word(Verdict::NAMES)?])
}

fn proofs(node: &Node<'_>) -> Result<Vec<Proof>, PolicyError> {
    let mut proofs: Vec<Proof> = Vec::new();
    for node in node.some_items("the list of proofs")? {
        let proof = Proof::ALL[node.word(Proof::NAMES)?];
        if proofs.contains(&proof) {
            let item = proof.as_str().to_owned();
            return Err(node.fail(PolicyErrorKind::Overlap { earlier: item.clone(), item }));
        }
        proofs.push(proof);
    }
    Ok(proofs)
}

fn argument_paths(node: Option<Node<'_>>) -> Result<Vec<ArgumentPath>, PolicyError> {
    let mut paths: Vec<ArgumentPath> = Vec::new();
    let Some(node) = node else { return Ok(paths) };
    for node in node.some_items("the list of arguments")? {
        let text = node.text()?;
        let path = ArgumentPath::parse(text)
            .ok_or_else(|| node.fail(PolicyErrorKind::ArgumentPath { text: text.to_owned() }))?;
        distinct(&node, &paths, &path, ArgumentPath::covers)?;
        paths.push(path);
    }
    Ok(paths)
}

fn template(
    node: Option<Node<'_>>,
    kind: TemplateKind,
    redact: &[ArgumentPath],
) -> Result<Option<Template>, PolicyError> {
    let Some(node) = node else { return Ok(None) };
    let template =
        Template::parse(node.text()?, kind).map_err(|e| node.fail(PolicyErrorKind::Template(e)))?;
    let shown = template
        .arguments()
        .find(|path| redact.iter().any(|redacted| redacted.covers(path) || path.covers(redacted)));
    match shown {
        Some(path) => Err(node.fail(PolicyErrorKind::RedactedInTemplate { argument: path.to_string() })),
        None => Ok(Some(template)),
    }
}

fn span(node: &Node<'_>, what: &'static str, least: Span, most: Span) -> Result<Span, PolicyError> {
    let text = node.text()?;
    let span =
        Span::parse(text).ok_or_else(|| node.fail(PolicyErrorKind::Duration { text: text.to_owned() }))?;
    bounded(node, what, span, least, most)
}

fn deadline(node: &Node<'_>, lease: Option<Span>) -> Result<Span, PolicyError> {
    let (what, least) = match lease {
        Some(lease) => ("deadline, which must not be below the lease,", lease),
        None => ("deadline", limits::LEASE_MIN),
    };
    span(node, what, least, limits::DEADLINE_MAX)
}

fn count(node: &Node<'_>, what: &'static str, most: u32) -> Result<u32, PolicyError> {
    let count = node.integer()?;
    let in_range = u32::try_from(count).unwrap_or(if count < 0 { 0 } else { u32::MAX });
    bounded(node, what, in_range, 1, most)
}

fn bounded<T: PartialOrd + ToString>(
    node: &Node<'_>,
    what: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<T, PolicyError> {
    if value >= low && value <= high {
        return Ok(value);
    }
    Err(node.fail(PolicyErrorKind::OutOfRange { what, low: low.to_string(), high: high.to_string() }))
}

#[cfg(test)]
mod tests;
