//! How a call, a request and a scope are named.
//!
//! The digests stand in evidence that others check, so their formulas are the
//! persistent tool runtime's: lower-case SHA-256 over canonical JSON (RFC 8785)
//! of exactly the named members. What is only ours, the scope and the status
//! reference, is keyed: nobody can guess a key from it.

use sha2::{Digest, Sha256};

use crate::hash::{BlindingKey, Hash, write_hex};
use crate::json;
use crate::limits;
use crate::record::{Json, word};
use crate::stream::Tenant;

word! {
    /// What a call's identity is used for, once and for ever.
    pub enum Purpose {
        /// To have an operation carried out.
        Dispatch = 1 => "dispatch",
        /// To ask what became of one.
        QueryStatus = 2 => "query_status",
    }
}

/// What is wrong with what the host says of a call. Nothing is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostContextError {
    /// A text is missing, blank or too long.
    #[error("{0} must be 1 to 255 characters and not blank")]
    Text(&'static str),
    /// No such provider profile.
    #[error("provider, api_family and adapter_revision are not one of the known profiles")]
    Profile,
}

/// A way of calling that adapters exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Who runs the model.
    pub provider: &'static str,
    /// Which of its interfaces.
    pub api_family: &'static str,
    /// The revision of our adapter for it.
    pub adapter_revision: &'static str,
}

impl Profile {
    /// Every known profile.
    pub const ALL: [Profile; 4] = [
        Profile { provider: "anthropic", api_family: "messages", adapter_revision: "anthropic-messages-v1" },
        Profile {
            provider: "google",
            api_family: "interactions",
            adapter_revision: "gemini-interactions-v1",
        },
        Profile::OWN,
        Profile { provider: "openai", api_family: "responses", adapter_revision: "openai-responses-v1" },
    ];

    /// A program's own calls, which no model made.
    pub const OWN: Profile =
        Profile { provider: "onceseal", api_family: "direct", adapter_revision: "onceseal-direct-v1" };
}

/// A model's call, as its provider and the host name it. Provider, interface and
/// adapter are those of a known [`Profile`]: `openai` `responses`
/// `openai-responses-v1`, `anthropic` `messages` `anthropic-messages-v1`, `google`
/// `interactions` `gemini-interactions-v1`, or a program's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallIdentity {
    /// Who runs the model.
    pub provider: String,
    /// Which of its interfaces.
    pub api_family: String,
    /// The revision of the adapter that read the call.
    pub adapter_revision: String,
    /// The response that the call stands in.
    pub response_id: String,
    /// The call.
    pub call_id: String,
    /// The host's name for what is going on.
    pub operation_id: String,
    /// What makes two calls the same wish; without one nothing is dispatched.
    pub idempotency_key: Option<String>,
}

impl CallIdentity {
    /// Checks every text, then the profile.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), HostContextError> {
        let texts = [
            ("call_id", Some(&self.call_id)),
            ("operation_id", Some(&self.operation_id)),
            ("provider", Some(&self.provider)),
            ("api_family", Some(&self.api_family)),
            ("response_id", Some(&self.response_id)),
            ("adapter_revision", Some(&self.adapter_revision)),
            ("idempotency_key", self.idempotency_key.as_ref()),
        ];
        for (name, text) in texts {
            if text.is_some_and(|text| !is_identifier(text)) {
                return Err(HostContextError::Text(name));
            }
        }
        self.profile().map(drop).ok_or(HostContextError::Profile)
    }

    /// A program's own call, which no model made.
    #[must_use]
    pub fn own(call_id: &str, operation_id: &str, key: Option<String>) -> CallIdentity {
        CallIdentity {
            provider: Profile::OWN.provider.to_owned(),
            api_family: Profile::OWN.api_family.to_owned(),
            adapter_revision: Profile::OWN.adapter_revision.to_owned(),
            response_id: call_id.to_owned(),
            call_id: call_id.to_owned(),
            operation_id: operation_id.to_owned(),
            idempotency_key: key,
        }
    }

    /// The profile it was made under, if it is a known one.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        Profile::ALL.into_iter().find(|profile| {
            (profile.provider, profile.api_family, profile.adapter_revision)
                == (self.provider.as_str(), self.api_family.as_str(), self.adapter_revision.as_str())
        })
    }

    /// The clear name of its stream: canonical [subject, provider, `api_family`,
    /// `response_id`, `call_id`].
    pub(crate) fn name(&self, subject: &str) -> String {
        list(&[subject, &self.provider, &self.api_family, &self.response_id, &self.call_id])
    }

    /// What the call is bound to by its first use: another purpose, request or
    /// key under the same identity is another fingerprint.
    #[must_use]
    pub fn fingerprint(&self, purpose: Purpose, request: Hash) -> Hash {
        digest(&[
            ("adapter_revision", Member::Text(&self.adapter_revision)),
            ("api_family", Member::Text(&self.api_family)),
            ("call_id", Member::Text(&self.call_id)),
            ("idempotency_key", self.idempotency_key.as_deref().map_or(Member::Null, Member::Text)),
            ("operation_id", Member::Text(&self.operation_id)),
            ("provider", Member::Text(&self.provider)),
            ("purpose", Member::Text(purpose.as_str())),
            ("request_sha256", Member::Digest(request)),
            ("response_id", Member::Text(&self.response_id)),
        ])
    }

    /// The call identity under which the status of what this call dispatched may
    /// be asked: derived, so that asking again is the same call.
    #[must_use]
    pub fn status_query(&self, status_ref: &str) -> CallIdentity {
        let hash = digest(&[
            ("api_family", Member::Text(&self.api_family)),
            ("call_id", Member::Text(&self.call_id)),
            ("provider", Member::Text(&self.provider)),
            ("response_id", Member::Text(&self.response_id)),
            ("status_ref", Member::Text(status_ref)),
        ]);
        let mut suffix = String::with_capacity(24);
        write_hex(&hash.0[..12], &mut suffix);
        CallIdentity {
            call_id: format!("status-call-{suffix}"),
            response_id: format!("status-response-{suffix}"),
            ..self.clone()
        }
    }
}

/// The revisions of a tool's contract that decide what a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revisions<'a> {
    /// Of its arguments.
    pub input: &'a str,
    /// Of its results.
    pub output: &'a str,
    /// Of what it does.
    pub effect: &'a str,
}

/// Where an idempotency key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The tenant's name.
    pub tenant: &'a str,
    /// On whose behalf.
    pub subject: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The key.
    pub key: &'a str,
}

impl Scope<'_> {
    /// What is asked for under this scope: everything but the key. `arguments`
    /// is canonical text.
    #[must_use]
    pub fn request(&self, arguments: &str, revisions: Revisions<'_>) -> Hash {
        digest(&[
            ("arguments", Member::Json(arguments)),
            ("effect_revision", Member::Text(revisions.effect)),
            ("input_schema_revision", Member::Text(revisions.input)),
            ("output_schema_revision", Member::Text(revisions.output)),
            ("subject_id", Member::Text(self.subject)),
            ("tenant_id", Member::Text(self.tenant)),
            ("tool", Member::Text(self.tool)),
        ])
    }

    /// The name under which the scope is looked for:
    /// HMAC-SHA-256(blinding key, `onceseal.scope.v1\n` ‖ canonical[tenant,
    /// subject, tool, key]).
    #[must_use]
    pub fn blinded(&self, key: &BlindingKey) -> Hash {
        Hash(key.mac(&[b"onceseal.scope.v1\n", self.text().as_bytes()]))
    }

    /// The opaque reference under which the caller may ask: `status_` and the
    /// first 32 hex digits of HMAC-SHA-256(blinding key, `onceseal.status.v1\n` ‖
    /// canonical scope ‖ request).
    #[must_use]
    pub fn status_ref(&self, key: &BlindingKey, request: Hash) -> String {
        let mac = key.mac(&[b"onceseal.status.v1\n", self.text().as_bytes(), &request.0]);
        let mut reference = String::with_capacity(39);
        reference.push_str("status_");
        write_hex(&mac[..16], &mut reference);
        reference
    }

    fn text(&self) -> String {
        list(&[self.tenant, self.subject, self.tool, self.key])
    }
}

/// The canonical list of these texts.
fn list(parts: &[&str]) -> String {
    let mut text = String::with_capacity(128);
    for (place, part) in parts.iter().enumerate() {
        text.push(if place == 0 { '[' } else { ',' });
        json::write_text(part, &mut text);
    }
    text.push(']');
    text
}

/// How evidence names a principal without naming the person.
#[must_use]
pub fn principal_ref(tenant: &str, subject: &str) -> String {
    digest(&[("subject_id", Member::Text(subject)), ("tenant_id", Member::Text(tenant))]).to_string()
}

/// The key that the remote tells attempts of one wish by: `osl_` and the lower-case
/// base32 (RFC 4648, no padding) of SHA-256(`onceseal.provider-key.v1\n` ‖
/// canonical {effect_key, generation, tenant, tenant_id}). The tenant's random
/// id is in it, or two stores that know nothing of each other would share keys.
#[must_use]
pub fn provider_key(tenant: &Tenant, effect_key: &str, generation: u64) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut text = String::from("{\"effect_key\":");
    json::write_text(effect_key, &mut text);
    text.push_str(",\"generation\":");
    generation.json(&mut text);
    text.push_str(",\"tenant\":");
    json::write_text(&tenant.name, &mut text);
    text.push_str(",\"tenant_id\":");
    tenant.id.json(&mut text);
    text.push('}');
    let hash = Hash::of("onceseal.provider-key.v1\n", &[text.as_bytes()]);
    let mut key = String::from("osl_");
    let (mut bits, mut held) = (0_u32, 0);
    for byte in hash.0 {
        bits = bits << 8 | u32::from(byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            key.push(char::from(ALPHABET[(bits >> held) as usize & 31]));
        }
    }
    key.push(char::from(ALPHABET[(bits << (5 - held)) as usize & 31]));
    key
}

/// Whether a text names something in a call: not blank, at most 255 characters.
fn is_identifier(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= limits::NAME_CHARS
}

/// A member of a preimage.
enum Member<'a> {
    Text(&'a str),
    Digest(Hash),
    Json(&'a str),
    Null,
}

/// SHA-256 over the canonical object of these members, which stand in canonical
/// order.
fn digest(members: &[(&str, Member<'_>)]) -> Hash {
    debug_assert!(members.is_sorted_by_key(|(name, _)| *name), "canonical order");
    let mut text = String::with_capacity(512);
    for (place, (name, member)) in members.iter().enumerate() {
        text.push(if place == 0 { '{' } else { ',' });
        json::write_text(name, &mut text);
        text.push(':');
        match member {
            Member::Text(value) => json::write_text(value, &mut text),
            Member::Json(value) => text.push_str(value),
            Member::Null => text.push_str("null"),
            Member::Digest(hash) => {
                text.push('"');
                write_hex(&hash.0, &mut text);
                text.push('"');
            }
        }
    }
    text.push('}');
    Hash(Sha256::digest(text.as_bytes()).into())
}
