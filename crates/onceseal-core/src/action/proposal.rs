//! From a call to a proposal: canonical bytes, hashes, resource and effect key.

use std::fmt;

use crate::action::event::Proposed;
use crate::action::redact::{redact, remove};
use crate::code::Code;
use crate::hash::Hash;
use crate::id::ActionId;
use crate::json::{self, JsonError, Limits, Object, Value};
use crate::limits;
use crate::policy::{ActivePolicy, Entry, Facts};
use crate::stream::Tenant;

/// Who acts, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The program or model that acts.
    pub agent: String,
    /// The person it acts for.
    pub user: Option<String>,
}

impl Principal {
    /// Whether both are names.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        limits::is_name(&self.agent) && self.user.as_ref().is_none_or(|user| limits::is_name(user))
    }

    /// An agent that acts for nobody in particular.
    #[must_use]
    pub fn agent(agent: impl Into<String>) -> Principal {
        Principal { agent: agent.into(), user: None }
    }

    /// The same, on behalf of a person.
    #[must_use]
    pub fn on_behalf_of(self, user: impl Into<String>) -> Principal {
        Principal { user: Some(user.into()), ..self }
    }
}

/// What a caller wants done, before anything is checked.
#[derive(Clone, PartialEq)]
pub struct Action {
    /// The action's name, as the policy lists it.
    pub name: String,
    /// Its arguments.
    pub arguments: Object,
    /// Who acts.
    pub principal: Principal,
    /// Where: `production`, `staging`, …
    pub environment: String,
    /// The resource, where the policy entry has no template for it.
    pub resource: Option<String>,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Action { name, principal, environment, resource, .. } = self;
        f.debug_struct("Action")
            .field("name", name)
            .field("principal", principal)
            .field("environment", environment)
            .field("resource", resource)
            .finish_non_exhaustive()
    }
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proposal")
            .field("name", &self.name)
            .field("principal", &self.principal)
            .field("effect_key", &self.effect_key)
            .field("action_hash", &self.action_hash)
            .finish_non_exhaustive()
    }
}

impl Action {
    /// What stands before the action id in the key of an action that names no effect.
    pub const OWN_KEY_PREFIX: &'static str = "act:";

    /// What stands before the scope's hash in the key of an operation that names no effect.
    pub const OPERATION_KEY_PREFIX: &'static str = "op:";

    /// The environment when none is given.
    pub const DEFAULT_ENVIRONMENT: &'static str = "production";
}

/// An action checked, made canonical and hashed under one policy. All that is
/// judged, shown and executed is parsed back from its canonical bytes.
#[derive(Clone)]
pub struct Proposal {
    name: String,
    arguments: Object,
    text: String,
    principal: Principal,
    environment: String,
    resource: Option<String>,
    effect_key: Option<String>,
    action_hash: Hash,
    intent_hash: Hash,
    policy: Hash,
    rule: Option<Hash>,
    unfit: Option<Code>,
}

/// Why a call cannot be a proposal. Nothing is recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// A name or text is missing or outside its bounds.
    #[error("{field} must be one line of 1 to 255 characters without control characters")]
    Text {
        /// Which: `name`, `agent`, `user`, `environment`, `resource`.
        field: &'static str,
    },
    /// The arguments cannot be taken.
    #[error("arguments: {0}")]
    Arguments(#[from] JsonError),
    /// Both the caller and the policy name a resource.
    #[error("resource is given by the policy entry's template; leave it out of the call")]
    ResourceTwice,
}

impl Proposal {
    /// Checks, canonicalises and hashes an action under the active policy.
    ///
    /// # Errors
    /// [`ProposalError`]: the call is malformed and nothing is to be recorded.
    /// A template that cannot be filled is not such an error: the proposal is
    /// made, and refused when it is decided.
    pub fn prepare(
        tenant: &Tenant,
        policy: &ActivePolicy,
        action: Action,
    ) -> Result<Proposal, ProposalError> {
        let Action { name, arguments, principal, environment, resource } = action;
        let texts =
            [("name", Some(&name)), ("agent", Some(&principal.agent)), ("environment", Some(&environment))];
        for (field, text) in texts.into_iter().chain([("user", principal.user.as_ref())]) {
            if text.is_some_and(|text| !limits::is_name(text)) {
                return Err(ProposalError::Text { field });
            }
        }
        let entry = policy.policy.entry(&name);
        let rule = policy.rule(&name);
        let arguments = Value::Object(arguments);
        let text = json::canonical(&arguments);
        arguments.discard();
        let Value::Object(arguments) = json::read(text.as_bytes(), &policy.policy.argument_limits(&name))?
        else {
            unreachable!("the canonical text of an object reads as one")
        };
        let mut unfit = None;
        let resource = match entry.and_then(|entry| entry.resource.as_ref()) {
            Some(_) if resource.is_some() => return Err(ProposalError::ResourceTwice),
            Some(template) => match template.resolve(&arguments, None) {
                Ok(resource) => Some(resource),
                Err(_) => {
                    unfit = Some(Code::ResourceError);
                    None
                }
            },
            None => resource,
        };
        if resource.as_ref().is_some_and(|resource| !limits::is_long_name(resource)) {
            return Err(ProposalError::Text { field: "resource" });
        }
        let effect_key = match entry
            .and_then(|entry| entry.effect.as_ref())
            .map(|t| t.resolve(&arguments, resource.as_deref()))
        {
            Some(Ok(key)) => Some(key),
            Some(Err(_)) => {
                unfit = unfit.or(Some(Code::EffectKeyError));
                None
            }
            None => None,
        };
        let mut proposal = Proposal {
            name,
            arguments,
            text,
            principal,
            environment,
            resource,
            effect_key,
            action_hash: Hash([0; 32]),
            intent_hash: Hash([0; 32]),
            policy: policy.hash,
            rule,
            unfit,
        };
        proposal.hash(tenant, entry);
        Ok(proposal)
    }

    /// A recorded action's proposal, prepared again under the active policy
    /// from its stored arguments; its hashes stay those it was proposed with.
    ///
    /// # Errors
    /// As [`Proposal::prepare`].
    pub fn restore(
        tenant: &Tenant,
        policy: &ActivePolicy,
        proposed: &Proposed,
        text: &str,
    ) -> Result<Proposal, ProposalError> {
        let Value::Object(arguments) = json::read(text.as_bytes(), &Limits::DATA)? else {
            return Err(ProposalError::Text { field: "arguments" });
        };
        let entry = policy.policy.entry(&proposed.name);
        let by_template = entry.is_some_and(|entry| entry.resource.is_some());
        let action = Action {
            name: proposed.name.clone(),
            arguments,
            principal: Principal { agent: proposed.agent.clone(), user: proposed.user.clone() },
            environment: proposed.environment.clone(),
            resource: if by_template { None } else { proposed.resource.clone() },
        };
        let mut proposal = Proposal::prepare(tenant, policy, action)?;
        proposal.action_hash = proposed.action_hash;
        proposal.intent_hash = proposed.intent_hash;
        Ok(proposal)
    }

    /// Whether both ask for the same under one policy, whatever their hashes:
    /// those of a recorded action may have been taken under another.
    #[must_use]
    pub fn is_same_call(&self, other: &Proposal) -> bool {
        let Proposal { name, text, principal, environment, resource, .. } = self;
        (name, text, principal) == (&other.name, &other.text, &other.principal)
            && (environment, resource) == (&other.environment, &other.resource)
    }

    fn hash(&mut self, tenant: &Tenant, entry: Option<&Entry>) {
        let redacted = redact(&tenant.key, entry.map_or(&[], |entry| &entry.redact), &self.arguments);
        let shown = redacted.as_ref().unwrap_or(&self.arguments);
        self.action_hash = Hash::of("onceseal.action.v1\n", &[self.form(tenant, shown, true).as_bytes()]);
        let incidental = entry.map_or(&[][..], |entry| &entry.incidental);
        let mut intended = std::borrow::Cow::Borrowed(shown);
        for path in incidental {
            remove(intended.to_mut(), path);
        }
        self.intent_hash =
            Hash::of("onceseal.intent.v1\n", &[self.form(tenant, &intended, false).as_bytes()]);
    }

    /// The canonical object that is hashed, its members in canonical order.
    fn form(&self, tenant: &Tenant, arguments: &Object, with_principal: bool) -> String {
        let mut out = String::with_capacity(self.text.len() + 256);
        out.push_str("{\"arguments\":");
        out.push_str(&json::canonical(&Value::Object(arguments.clone())));
        out.push_str(",\"environment\":");
        json::write_text(&self.environment, &mut out);
        out.push_str(",\"name\":");
        json::write_text(&self.name, &mut out);
        if with_principal {
            out.push_str(",\"principal\":{\"agent\":");
            json::write_text(&self.principal.agent, &mut out);
            out.push_str(",\"user\":");
            write_optional(self.principal.user.as_deref(), &mut out);
            out.push('}');
        }
        out.push_str(",\"resource\":");
        write_optional(self.resource.as_deref(), &mut out);
        out.push_str(",\"tenant\":");
        json::write_text(&tenant.name, &mut out);
        out.push('}');
        out
    }

    /// The action's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments, parsed back from their canonical text.
    #[must_use]
    pub const fn arguments(&self) -> &Object {
        &self.arguments
    }

    /// The canonical text of the arguments.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Who acts.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The hash an approval binds.
    #[must_use]
    pub const fn action_hash(&self) -> Hash {
        self.action_hash
    }

    /// The hash that makes two attempts the same wish.
    #[must_use]
    pub const fn intent_hash(&self) -> Hash {
        self.intent_hash
    }

    /// The effect key; `None` if the policy entry declares none.
    #[must_use]
    pub fn effect_key(&self) -> Option<&str> {
        self.effect_key.as_deref()
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// Hash of the policy it was prepared under.
    #[must_use]
    pub const fn policy(&self) -> Hash {
        self.policy
    }

    /// Digest of its policy entry; `None` if the policy has none.
    #[must_use]
    pub const fn rule(&self) -> Option<Hash> {
        self.rule
    }

    /// Which template could not be filled.
    #[must_use]
    pub const fn unfit(&self) -> Option<Code> {
        self.unfit
    }

    /// The stable key that the attempt is made under.
    #[must_use]
    pub fn key_for(&self, id: ActionId) -> String {
        self.effect_key.clone().unwrap_or_else(|| crate::stream::own_effect_key(id))
    }

    /// What the policy judges.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            name: &self.name,
            arguments: &self.arguments,
            environment: &self.environment,
            agent: &self.principal.agent,
            user: self.principal.user.as_deref(),
        }
    }

    /// What is recorded of it; `arguments` is the reference of its payload.
    #[must_use]
    pub fn proposed(&self, arguments: Hash) -> Proposed {
        Proposed {
            action_hash: self.action_hash,
            agent: self.principal.agent.clone(),
            arguments,
            effect_key: self.effect_key.clone(),
            environment: self.environment.clone(),
            intent_hash: self.intent_hash,
            name: self.name.clone(),
            resource: self.resource.clone(),
            user: self.principal.user.clone(),
        }
    }
}

fn write_optional(text: Option<&str>, out: &mut String) {
    match text {
        Some(text) => json::write_text(text, out),
        None => out.push_str("null"),
    }
}
