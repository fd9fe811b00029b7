//! What is told of an operation: one half for the model that called, one for
//! whoever audits, bound to each other and to the call.

use std::fmt;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::effect::RemoteReceipt;
use onceseal_core::hash::Hash;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::operation::result::{Delivery, Downstream, News, Told, ToolIdentity};
use onceseal_core::operation::{CallIdentity, ModelCode, Scope};
use onceseal_core::reply::{OperationNow, Standing};
use onceseal_core::time::Timestamp;

use super::checked::is_withheld;
use super::{Dispatching, Tool};
use crate::control::Control;
use crate::error::Error;
use crate::permit::secrets_under;

/// Who asked for what, by which call.
pub(super) struct Asked {
    pub(super) tenant: String,
    pub(super) subject: String,
    pub(super) call: CallIdentity,
    pub(super) arguments: Object,
    pub(super) request: Hash,
    /// None for one that nobody knows.
    pub(super) tool: Option<Tool>,
    pub(super) name: String,
    /// The reference that was asked by.
    pub(super) status_ref: Option<String>,
}

/// What is told of a call.
pub struct Package {
    asked: Asked,
    identity: ToolIdentity,
    document: Value,
    /// The result as the tool returned it, where it can be held against the
    /// contract again: nothing of it is redacted.
    whole: Option<Value>,
    code: Option<ModelCode>,
    answer: Result<OperationNow, Error>,
}

/// Without what was asked for: some may be redacted.
impl fmt::Debug for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Package")
            .field("code", &self.code)
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

impl Package {
    /// Both halves: `model_result` and `protected_audit`.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The half that the model may see.
    #[must_use]
    pub fn model_result(&self) -> &Value {
        self.half("model_result")
    }

    /// The half for whoever audits; it never goes into a model's context.
    #[must_use]
    pub fn protected_audit(&self) -> &Value {
        self.half("protected_audit")
    }

    /// What the model is told; `None`: it was done.
    #[must_use]
    pub const fn code(&self) -> Option<ModelCode> {
        self.code
    }

    /// Where the operation stands, or why there is none, for the program: it may
    /// name an approval to be asked for, which no model is told.
    pub const fn answer(&self) -> Result<&OperationNow, &Error> {
        self.answer.as_ref()
    }

    /// The model's half as the interface of the call's provider takes it. `None`
    /// for a call that no model made.
    #[must_use]
    pub fn payload(&self) -> Option<Value> {
        self.told().payload(&self.document)
    }

    /// Holds the package against the call, the tool and the digests anew: where
    /// it is not what it would be, as JSON pointers. A result of a call that has
    /// redacted arguments was held against its contract when it was stored, and
    /// cannot be again.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let fits = |told: &Value| {
            let Some(whole) = &self.whole else { return true };
            let tool = self.asked.tool.as_ref();
            let fits = tool.is_some_and(|tool| tool.handler().returns(&self.asked.arguments, whole).is_ok());
            fits && *told == data(whole.clone())
        };
        self.told().problems(&self.document, fits)
    }

    fn half(&self, name: &str) -> &Value {
        self.document.as_object().and_then(|document| document.get(name)).unwrap_or(&Value::Null)
    }

    fn told(&self) -> Told<'_> {
        self.asked.told(&self.identity)
    }
}

/// What was done, as far as it is told.
struct Outcome {
    value: Value,
    remote: RemoteReceipt,
    settled_at: Timestamp,
    /// The policy that decided it.
    policy: Option<Hash>,
}

impl Asked {
    fn told<'a>(&'a self, tool: &'a ToolIdentity) -> Told<'a> {
        let Asked { tenant, subject, call, request, .. } = self;
        Told { tenant, subject, call, tool, request: *request }
    }

    /// What is asked for, as it is known before a policy has looked at it.
    pub(super) fn request(
        tenant: &str,
        principal: &Principal,
        tool: Option<&Tool>,
        name: &str,
        arguments: &Object,
    ) -> Hash {
        let scope = Scope { tenant, subject: &principal.subject(), tool: name, key: "" };
        let text = json::canonical(&Value::Object(arguments.clone()));
        scope.request(&text, Asked::identity(tool, name).revisions())
    }

    fn identity(tool: Option<&Tool>, name: &str) -> ToolIdentity {
        match tool {
            Some(tool) => tool.contract().identity.clone(),
            None => ToolIdentity::unregistered(name),
        }
    }

    /// The package of an answer. `delivery`: how it came about, if it was done.
    ///
    /// # Errors
    /// An answer that is not about the call, but about this program or its store.
    pub(super) async fn tell(
        self,
        control: &Control,
        answer: Result<OperationNow, Error>,
        delivery: fn(&OperationNow) -> Delivery,
    ) -> Result<Package, Error> {
        let answer = match answer {
            Err(error) if told_of(&error).is_none() => return Err(error),
            answer => answer,
        };
        let identity = Asked::identity(self.tool.as_ref(), &self.name);
        let mut downstream = Downstream::default();
        let mut observed_at = control.store().now();
        let mut whole = None;
        let news = match &answer {
            Ok(now) => {
                downstream.status_ref = Some(now.status_ref.clone());
                match (ModelCode::of_standing(&now.standing), outcome(control, now).await?) {
                    (Some(code), _) => News::No(code),
                    (None, Outcome { value, .. }) if is_withheld(&value) => {
                        News::No(ModelCode::OutputContractViolation)
                    }
                    (None, Outcome { value, remote, settled_at, policy }) => {
                        if let (Some(policy), Some(tool)) = (policy, &self.tool) {
                            let secrets =
                                secrets_under(control, policy, tool.name(), &self.arguments).await?;
                            whole = secrets.is_empty().then(|| value.clone());
                        }
                        observed_at = remote.observed_at.unwrap_or(settled_at);
                        downstream.receipt_id = remote.receipt_id;
                        downstream.request_id = remote.request_id;
                        let (data, delivery) = (data(value), delivery(now));
                        News::Done { data, resource_revision: remote.revision, delivery }
                    }
                }
            }
            Err(error) => {
                let code = told_of(error).unwrap_or(ModelCode::ToolError);
                if code == ModelCode::StatusConflict {
                    downstream.status_ref.clone_from(&self.status_ref);
                }
                News::No(code)
            }
        };
        let code = match news {
            News::Done { .. } => None,
            News::No(code) => Some(code),
        };
        let document = self.told(&identity).package(&news, &downstream, &second(observed_at));
        Ok(Package { asked: self, identity, document, whole, code, answer })
    }
}

impl Dispatching {
    /// Sends it as [`Dispatching::send`] does, and tells the model of it.
    ///
    /// # Errors
    /// Only what is the program's to look into: a call that is not in form, a
    /// store that fails. Every "no" is told.
    pub async fn tell(self) -> Result<Package, Error> {
        let (control, asked) = (self.control().clone(), self.asked());
        let answer = self.send().await;
        let delivery = |now: &OperationNow| match now.repeated {
            true => Delivery::LocalReplay,
            false => Delivery::Fresh,
        };
        asked.tell(&control, answer, delivery).await
    }
}

/// What is known of its outcome.
async fn outcome(control: &Control, now: &OperationNow) -> Result<Outcome, Error> {
    let stored = match now.standing {
        Standing::Ended { stored, .. } => stored,
        _ => None,
    };
    let action = now.action;
    let read = move |control: &Control| {
        let value = control.stored_value(stored)?.unwrap_or(Value::Null);
        let row = control.action_row(action)?;
        let policy = row.as_ref().map(|row| row.decided.policy);
        let operation = row.and_then(|row| row.operation);
        let effect = match operation {
            Some(operation) => control.effect_at(&operation.effect)?,
            None => None,
        };
        let settled_at = effect.as_ref().map_or(Timestamp::MIN, |effect| effect.updated_at);
        let remote = effect.and_then(|effect| effect.private.remote).unwrap_or(RemoteReceipt::NONE);
        Ok(Outcome { value, remote, settled_at, policy })
    };
    control.aside(read).await
}

/// What a model is told of an error; `None`: nothing, it is the program's.
fn told_of(error: &Error) -> Option<ModelCode> {
    match error {
        Error::Refused(refusal) | Error::Ended(refusal) if refusal.code == Code::CallInvalid => None,
        Error::Refused(refusal) | Error::Ended(refusal) => Some(ModelCode::of(refusal.code)),
        Error::ApprovalNeeded { .. } => Some(ModelCode::ApprovalRequired),
        Error::Arguments(_) => Some(ModelCode::InvalidArguments),
        _ => None,
    }
}

/// Data are an object, whatever the tool returned.
fn data(value: Value) -> Value {
    match value {
        Value::Null => Value::Object(Object::new()),
        Value::Object(object) => Value::Object(object),
        value => {
            let mut object = Object::new();
            object.insert("value", value);
            Value::Object(object)
        }
    }
}

/// A moment as packages name it: to the second.
fn second(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    format!("{seconds}Z")
}
