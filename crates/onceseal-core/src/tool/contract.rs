//! A tool's contract: what of it decides, and its canonical text.

use crate::hash::Hash;
use crate::json::{self, Limits, Object, Value};
use crate::limits;
use crate::operation::Revisions;
use crate::operation::result::ToolIdentity;
use crate::pack::Corrupt;
use crate::policy::DEFAULT_DEADLINE;
use crate::time::Span;

/// How long an operation waits for a worker where its contract does not say.
const DELIVER_WITHIN: Span = Span::hours(24);
/// How long one request may take where the contract does not say.
const REQUEST_TIMEOUT: Span = Span::seconds(20);
/// An attempt's lease where the contract does not say.
const LEASE: Span = Span::seconds(30);

/// What of a tool has revisions.
const REVISIONS: [&str; 6] = ["input", "output", "effect", "handler", "producer", "policy"];

/// What may be done about an attempt that began and whose outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: the remote's word or a person's is waited for.
    Never,
    /// It may be made again with the same provider key, as long as the remote
    /// remembers the key.
    SameKey {
        /// How long the remote remembers a key, from its first use.
        key_ttl: Span,
    },
    /// The remote is asked first.
    Ask {
        /// How long after a lease the remote may still carry the attempt out.
        settle: Span,
    },
}

/// What of a contract decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// What the tool is: its name, which is the name of its action in the policy,
    /// and its revisions.
    pub identity: ToolIdentity,
    /// What may be done about an unknown outcome.
    pub recovery: Recovery,
    /// Not attempted any more so long after it was accepted.
    pub deliver_within: Span,
    /// An attempt's lease.
    pub lease: Span,
    /// However often renewed, an attempt's lease ends here.
    pub deadline: Span,
    /// Whether a business rule is asked before it is accepted and before each
    /// attempt.
    pub business_rule: bool,
    /// How long one request may take.
    pub request_timeout: Span,
    /// What its attempts depend on: those at one destination share a circuit.
    pub destination: Option<String>,
}

impl Contract {
    /// The revisions that decide what a request means.
    #[must_use]
    pub fn revisions(&self) -> Revisions<'_> {
        self.identity.revisions()
    }

    /// Whether an attempt may still be due when the remote has forgotten the key
    /// of the one before. It is not made then, and what became of the one before
    /// stays unknown.
    #[must_use]
    pub fn outlives_its_key(&self) -> bool {
        matches!(self.recovery, Recovery::SameKey { key_ttl } if key_ttl < self.deliver_within)
    }
}

/// A contract with its digest and the canonical text that was hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// SHA-256(`onceseal.tool.v1\n` ‖ text).
    pub digest: Hash,
    /// Canonical text of the whole contract, schemas and executor included.
    pub text: String,
    /// What of it decides.
    pub contract: Contract,
}

/// Why a document is no contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// A member is missing, or is not of this form.
    #[error("{0}: {1}")]
    Member(&'static str, &'static str),
    /// A request may outlast the time in which its outcome could be told.
    #[error(
        "request_timeout, 20s unless said, must be shorter than the lease, 30s unless said, and than settle where the remote is asked"
    )]
    TimeoutTooLong,
}

impl Tool {
    /// Reads what decides out of a contract's document. Members that the engine
    /// alone reads, like schemas and the executor, are kept in the text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(document: &Object) -> Result<Tool, ContractError> {
        let name = text(document, "name", None)?;
        let revisions = match document.get("revisions") {
            None => &Object::new(),
            Some(Value::Object(revisions)) => revisions,
            Some(_) => return Err(ContractError::Member("revisions", "must be a mapping")),
        };
        if revisions.iter().any(|(name, _)| !REVISIONS.contains(&name)) {
            let has = "has input, output, effect, handler, producer and policy";
            return Err(ContractError::Member("revisions", has));
        }
        let revision = |of| text(revisions, of, Some("v1"));
        let recovery = match text(document, "recovery", Some("never"))?.as_str() {
            "never" => Recovery::Never,
            "same_key" => Recovery::SameKey { key_ttl: span(document, "key_ttl", None)? },
            "ask" => Recovery::Ask { settle: span(document, "settle", None)? },
            _ => return Err(ContractError::Member("recovery", "must be never, same_key or ask")),
        };
        for (member, of) in [("key_ttl", "same_key"), ("settle", "ask")] {
            let used = matches!(
                (of, recovery),
                ("same_key", Recovery::SameKey { .. }) | ("ask", Recovery::Ask { .. })
            );
            if document.get(member).is_some() && !used {
                return Err(ContractError::Member(member, "belongs to another recovery"));
            }
        }
        let identity = ToolIdentity {
            input: revision("input")?,
            output: revision("output")?,
            effect: revision("effect")?,
            handler: revision("handler")?,
            producer: revision("producer")?,
            policy: revision("policy")?,
            source: text(document, "source", Some(&name))?,
            name,
        };
        let contract = Contract {
            identity,
            recovery,
            deliver_within: span(document, "deliver_within", Some(DELIVER_WITHIN))?,
            lease: span(document, "lease", Some(LEASE))?,
            deadline: span(document, "deadline", Some(DEFAULT_DEADLINE))?,
            business_rule: document.get("business_rule").is_some(),
            request_timeout: span(document, "request_timeout", Some(REQUEST_TIMEOUT))?,
            destination: destination(document)?,
        };
        let asks_too_early =
            matches!(recovery, Recovery::Ask { settle } if contract.request_timeout >= settle);
        if contract.request_timeout >= contract.lease || asks_too_early {
            return Err(ContractError::TimeoutTooLong);
        }
        let text = json::canonical(&Value::Object(document.clone()));
        Ok(Tool { digest: Hash::of("onceseal.tool.v1\n", &[text.as_bytes()]), text, contract })
    }

    /// Compiles a stored text again.
    ///
    /// # Errors
    /// [`Corrupt`] if it is not canonical or no longer compiles.
    pub fn restore(text: &str) -> Result<Tool, Corrupt> {
        const WRONG: Corrupt = Corrupt("tool contract");
        match json::read_canonical(text, &Limits::DATA) {
            Ok(Value::Object(document)) => Tool::compile(&document).map_err(|_| WRONG),
            _ => Err(WRONG),
        }
    }
}

fn text(object: &Object, name: &'static str, default: Option<&str>) -> Result<String, ContractError> {
    match (object.get(name), default) {
        (None, Some(default)) => Ok(default.to_owned()),
        (Some(Value::Text(text)), _) if limits::is_name(text) && !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(ContractError::Member(name, "must be one line of 1 to 255 characters")),
    }
}

fn destination(document: &Object) -> Result<Option<String>, ContractError> {
    match document.get("destination") {
        None => Ok(None),
        Some(Value::Text(text)) if limits::is_long_name(text) && !text.trim().is_empty() => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(ContractError::Member("destination", "must be one line of at most 1024 bytes")),
    }
}

fn span(object: &Object, name: &'static str, default: Option<Span>) -> Result<Span, ContractError> {
    if (object.get(name), default) == (None, None) {
        return Err(ContractError::Member(name, "is needed by this recovery: a time between 1s and 30d"));
    }
    let span = match (object.get(name), default) {
        (None, Some(default)) => Some(default),
        (Some(Value::Text(text)), _) => Span::parse(text),
        _ => None,
    };
    let fits = span.filter(|span| (limits::LEASE_MIN..=limits::DEADLINE_MAX).contains(span));
    fits.ok_or(ContractError::Member(name, "must be a time between 1s and 30d, as in 90s, 15m or 2h"))
}
