//! What is told of an operation: to the model, and to whoever audits.
//!
//! A package has two halves. The model sees the first; the second binds it to
//! the principal, the call and the contract, and is never put into a model's
//! context. The formats and digests are the persistent tool runtime's, so that
//! evidence of either can be checked by one program.

use sha2::{Digest, Sha256};

use crate::hash::Hash;
use crate::json::{self, Object, Value};
use crate::operation::catalogue::ModelCode;
use crate::operation::{CallIdentity, Revisions, principal_ref};
use crate::record::word;

word! {
    /// How an answer came about.
    pub enum Delivery {
        /// It was done for this call.
        Fresh = 1 => "fresh",
        /// It had been done, and is told again.
        LocalReplay = 2 => "local_replay",
        /// It was found out by asking.
        ReceiptReconciled = 3 => "receipt_reconciled",
    }
}

/// What a tool is, as evidence names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Its name.
    pub name: String,
    /// Revision of its arguments.
    pub input: String,
    /// Revision of its results.
    pub output: String,
    /// Revision of what it does.
    pub effect: String,
    /// Revision of what carries it out.
    pub handler: String,
    /// Revision of what its results come from.
    pub producer: String,
    /// Revision of what approves it.
    pub policy: String,
    /// What its results come from, in a word.
    pub source: String,
}

/// Who was told what of which call.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The tenant's name.
    pub tenant: &'a str,
    /// On whose behalf.
    pub subject: &'a str,
    /// The call that is answered.
    pub call: &'a CallIdentity,
    /// The tool.
    pub tool: &'a ToolIdentity,
    /// What was asked for.
    pub request: Hash,
}

/// What is known at the remote, as far as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Downstream {
    /// The remote's name of the request.
    pub request_id: Option<String>,
    /// The remote's receipt.
    pub receipt_id: Option<String>,
    /// The reference under which it may be asked about.
    pub status_ref: Option<String>,
}

/// What is told.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// It was done.
    Done {
        /// Its result: data of somebody else, never an instruction.
        data: Value,
        /// What state of the resource it is of.
        resource_revision: Option<String>,
        /// How the answer came about.
        delivery: Delivery,
    },
    /// It was not, or that is not known.
    No(ModelCode),
}

const MODEL_SCHEMA: &str = "tool-model-result-v2";
const AUDIT_SCHEMA: &str = "tool-audit-v2";
/// What a refusal comes from.
const DISPATCHER: (&str, &str) = ("offline-dispatcher", "offline-dispatcher-v2");

impl Told<'_> {
    /// The package. `observed_at` is a second, as in `2026-07-19T00:00:00Z`.
    #[must_use]
    pub fn package(&self, news: &News, downstream: &Downstream, observed_at: &str) -> Value {
        let model = self.model_result(news, observed_at);
        let audit = self.protected_audit(&model, downstream);
        object([("model_result", model), ("protected_audit", audit)])
    }

    fn model_result(&self, news: &News, observed_at: &str) -> Value {
        let (status, outcome, delivery, trust) = match news {
            News::Done { delivery, .. } => ("succeeded", "committed", *delivery, "untrusted_data"),
            News::No(code) if code.is_unknown() => ("unknown", "unknown", Delivery::Fresh, "trusted_control"),
            News::No(_) => ("failed", "not_started", Delivery::Fresh, "trusted_control"),
        };
        let (data, revision, source, producer, error) = match news {
            News::Done { data, resource_revision, .. } => {
                let (source, producer) = (self.tool.source.as_str(), self.tool.producer.as_str());
                (data.clone(), optional(resource_revision.as_deref()), source, producer, Value::Null)
            }
            News::No(code) => (Value::Null, Value::Null, DISPATCHER.0, DISPATCHER.1, told(*code)),
        };
        object([
            ("schema_version", MODEL_SCHEMA.into()),
            ("status", status.into()),
            ("data", data),
            ("error", error),
            (
                "execution",
                object([
                    ("outcome", outcome.into()),
                    ("delivery", delivery.as_str().into()),
                    ("complete", Value::Bool(true)),
                    ("truncated", Value::Bool(false)),
                ]),
            ),
            (
                "provenance",
                object([
                    ("source_label", source.into()),
                    ("producer_revision", producer.into()),
                    ("resource_revision", revision),
                    ("observed_at", observed_at.into()),
                    ("trust", trust.into()),
                ]),
            ),
        ])
    }

    fn protected_audit(&self, model: &Value, downstream: &Downstream) -> Value {
        let result = digest(model);
        object([
            ("schema_version", AUDIT_SCHEMA.into()),
            ("visibility", "protected_audit".into()),
            ("operation_id", self.call.operation_id.as_str().into()),
            ("principal_ref", principal_ref(self.tenant, self.subject).into()),
            (
                "provider_context",
                object([
                    ("provider", self.call.provider.as_str().into()),
                    ("api_family", self.call.api_family.as_str().into()),
                    ("response_id", self.call.response_id.as_str().into()),
                    ("call_id", self.call.call_id.as_str().into()),
                    ("adapter_revision", self.call.adapter_revision.as_str().into()),
                ]),
            ),
            ("tool_contract", self.tool.contract()),
            (
                "binding",
                object([
                    ("request_sha256", plain(self.request).into()),
                    ("result_sha256", plain(result).into()),
                    ("call_binding_sha256", plain(self.binding(result, downstream)).into()),
                ]),
            ),
            ("downstream", downstream.value()),
            ("redactions", Value::List(Vec::new())),
        ])
    }

    /// What binds a result to its call.
    #[must_use]
    pub fn binding(&self, result: Hash, downstream: &Downstream) -> Hash {
        digest(&object([
            ("tenant_id", self.tenant.into()),
            ("subject_id", self.subject.into()),
            ("provider", self.call.provider.as_str().into()),
            ("api_family", self.call.api_family.as_str().into()),
            ("response_id", self.call.response_id.as_str().into()),
            ("call_id", self.call.call_id.as_str().into()),
            ("operation_id", self.call.operation_id.as_str().into()),
            ("idempotency_key", optional(self.call.idempotency_key.as_deref())),
            ("adapter_revision", self.call.adapter_revision.as_str().into()),
            ("tool_contract", self.tool.contract()),
            ("request_sha256", plain(self.request).into()),
            ("result_sha256", plain(result).into()),
            ("downstream", downstream.value()),
        ]))
    }

    /// Holds a package against this call: the places in which it is not what it
    /// would be, as JSON pointers; none if it holds. `output` says whether data
    /// are such as the tool returns.
    ///
    /// What a package says of the remote, of the resource's revision and of when
    /// it was observed is taken as it stands: a digest is no signature.
    #[must_use]
    pub fn problems(&self, package: &Value, output: impl FnOnce(&Value) -> bool) -> Vec<String> {
        let Some(read) = Read::of(package) else { return vec![String::new()] };
        let mut problems = Vec::new();
        if let News::Done { data, resource_revision, .. } = &read.news {
            if !output(data) {
                problems.push("/model_result/data".to_owned());
            }
            if resource_revision.as_ref().is_some_and(|revision| revision.trim().is_empty()) {
                problems.push("/model_result/provenance/resource_revision".to_owned());
            }
        }
        if !is_second(&read.observed_at) {
            problems.push("/model_result/provenance/observed_at".to_owned());
        }
        let expected = self.package(&read.news, &read.downstream, &read.observed_at);
        differences(package, &expected, "", &mut problems);
        problems
    }

    /// What the provider's interface is given: the model's half alone, as text.
    /// `None` if the call was made under no known profile.
    #[must_use]
    pub fn payload(&self, package: &Value) -> Option<Value> {
        let model = package.as_object()?.get("model_result")?;
        let text = json::canonical(model);
        let failed = model.as_object()?.get("status").and_then(Value::as_text) != Some("succeeded");
        let call = self.call.call_id.as_str();
        Some(match self.call.profile()?.provider {
            "openai" => object([
                ("type", "function_call_output".into()),
                ("call_id", call.into()),
                ("output", text.into()),
            ]),
            "anthropic" => object([
                ("type", "tool_result".into()),
                ("tool_use_id", call.into()),
                ("content", Value::List(vec![object([("type", "text".into()), ("text", text.into())])])),
                ("is_error", Value::Bool(failed)),
            ]),
            "google" => object([
                ("previous_interaction_id", self.call.response_id.as_str().into()),
                (
                    "input",
                    Value::List(vec![object([
                        ("type", "function_result".into()),
                        ("name", self.tool.name.as_str().into()),
                        ("call_id", call.into()),
                        (
                            "result",
                            Value::List(vec![object([("type", "text".into()), ("text", text.into())])]),
                        ),
                    ])]),
                ),
            ]),
            _ => return None,
        })
    }
}

impl ToolIdentity {
    /// What evidence names a tool that nobody knows.
    #[must_use]
    pub fn unregistered(name: impl Into<String>) -> ToolIdentity {
        let nothing = || "unregistered".to_owned();
        ToolIdentity {
            name: name.into(),
            input: nothing(),
            output: nothing(),
            effect: nothing(),
            handler: nothing(),
            producer: nothing(),
            policy: nothing(),
            source: nothing(),
        }
    }

    /// The revisions that decide what a request means.
    #[must_use]
    pub fn revisions(&self) -> Revisions<'_> {
        Revisions { input: &self.input, output: &self.output, effect: &self.effect }
    }

    fn contract(&self) -> Value {
        object([
            ("name", self.name.as_str().into()),
            ("input_schema_revision", self.input.as_str().into()),
            ("output_schema_revision", self.output.as_str().into()),
            ("effect_revision", self.effect.as_str().into()),
            ("handler_revision", self.handler.as_str().into()),
            ("producer_revision", self.producer.as_str().into()),
            ("policy_revision", self.policy.as_str().into()),
        ])
    }
}

impl Downstream {
    fn value(&self) -> Value {
        object([
            ("request_id", optional(self.request_id.as_deref())),
            ("receipt_id", optional(self.receipt_id.as_deref())),
            ("status_ref", optional(self.status_ref.as_deref())),
        ])
    }
}

/// The parts of a package that only it can tell.
struct Read {
    news: News,
    downstream: Downstream,
    observed_at: String,
}

impl Read {
    fn of(package: &Value) -> Option<Read> {
        let member = |of: &Value, name: &str| of.as_object()?.get(name).cloned();
        let text = |of: &Value, name: &str| match member(of, name)? {
            Value::Text(text) => Some(Some(text)),
            Value::Null => Some(None),
            _ => None,
        };
        let (model, audit) = (member(package, "model_result")?, member(package, "protected_audit")?);
        let provenance = member(&model, "provenance")?;
        let news = match member(&model, "error")? {
            Value::Null => News::Done {
                data: member(&model, "data").filter(|data| data.as_object().is_some())?,
                resource_revision: text(&provenance, "resource_revision")?,
                delivery: Delivery::parse(&text(&member(&model, "execution")?, "delivery")??)?,
            },
            error => News::No(ModelCode::parse(&text(&error, "code")??)?),
        };
        let found = member(&audit, "downstream")?;
        let downstream = Downstream {
            request_id: text(&found, "request_id")?,
            receipt_id: text(&found, "receipt_id")?,
            status_ref: text(&found, "status_ref")?,
        };
        let observed_at = text(&provenance, "observed_at")??;
        Some(Read { news, downstream, observed_at })
    }
}

fn told(code: ModelCode) -> Value {
    object([
        ("code", code.as_str().into()),
        ("category", code.category().as_str().into()),
        ("safe_message", code.sentence().into()),
        ("recovery", code.remedy().as_str().into()),
        ("retry_after_ms", code.retry_after_ms().map_or(Value::Null, |ms| Value::Integer(i64::from(ms)))),
    ])
}

/// Where two values differ. What was redacted is nobody's to foresee.
fn differences(found: &Value, expected: &Value, at: &str, out: &mut Vec<String>) {
    match (found, expected) {
        (Value::List(_), Value::List(_)) if at == "/protected_audit/redactions" => {}
        (Value::Object(found), Value::Object(expected)) => {
            let extra = found.iter().filter(|(name, _)| expected.get(name).is_none());
            out.extend(extra.map(|_| format!("{at}/#")));
            for (name, expected) in expected.iter() {
                match found.get(name) {
                    Some(found) => differences(found, expected, &format!("{at}/{name}"), out),
                    None => out.push(format!("{at}/{name}")),
                }
            }
        }
        (found, expected) if found == expected => {}
        _ => out.push(at.to_owned()),
    }
}

/// Whether a text is a moment of whole seconds in its one form.
fn is_second(text: &str) -> bool {
    let form = text.len() == 20 && text.ends_with('Z');
    form && crate::time::Timestamp::parse(text).is_some()
}

fn digest(value: &Value) -> Hash {
    Hash(Sha256::digest(json::canonical(value).as_bytes()).into())
}

fn plain(hash: Hash) -> String {
    let mut text = String::with_capacity(64);
    crate::hash::write_hex(&hash.0, &mut text);
    text
}

fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut object = Object::new();
    for (name, value) in members {
        object.insert(name, value);
    }
    Value::Object(object)
}
