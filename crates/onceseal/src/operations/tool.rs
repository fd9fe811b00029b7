//! A tool: its contract, and what carries it out.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::hash::Hash;
use onceseal_core::json::{Object, Value};
use onceseal_core::policy::{Path as Way, Position};
use onceseal_core::stream::StreamId;
use onceseal_core::tool::{self, ContractError};

use super::checked::Rules;
use super::directory::Current;
use crate::attempt::Call;
use crate::executed::{Done, Failure, Performed};

/// An answer that is being looked for.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What carries a tool out. Only [`Handler::perform`] is needed.
///
/// Where a method answers `None` it cannot tell now, and is asked again later.
pub trait Handler: Send + Sync + 'static {
    /// Whether these arguments are such as the tool takes; else why not.
    ///
    /// # Errors
    /// What is wrong, in a sentence for whoever calls.
    fn takes(&self, arguments: &Object) -> Result<(), String> {
        let _ = arguments;
        Ok(())
    }

    /// Whether this result is such as the tool returns for these arguments. If
    /// not it was done all the same, and its result is withheld.
    ///
    /// # Errors
    /// What is wrong, in a sentence for whoever runs this program, without any
    /// value.
    fn returns(&self, arguments: &Object, result: &Value) -> Result<(), String> {
        let _ = (arguments, result);
        Ok(())
    }

    /// Whether the principal, as it is now, may touch the resource: asked twice
    /// before an operation is accepted, and before each attempt if
    /// [`Handler::looks_again`] or a [`Directory`](super::Directory) is asked.
    fn authorizes<'a>(&'a self, who: Current<'a>, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        let _ = (who, arguments);
        Box::pin(std::future::ready(Some(true)))
    }

    /// Whether the business rule permits it now; asked only where the contract
    /// names one.
    fn permits<'a>(&'a self, principal: &'a Principal, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        let _ = (principal, arguments);
        Box::pin(std::future::ready(Some(true)))
    }

    /// Whether [`Handler::authorizes`] has anything to say: then each attempt is
    /// claimed first, and begun once it has said yes.
    fn looks_again(&self) -> bool {
        false
    }

    /// Carries the operation out, once for each attempt.
    fn perform(&self, job: Job) -> Answering<'_, Performed>;

    /// Asks the remote what it knows of the last attempt.
    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        let _ = question;
        Box::pin(std::future::ready(None))
    }

    /// When an attempt that was not executed is made again by itself, after so
    /// many attempts. `None`: it is parked until a person says so.
    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        let _ = (failure, attempts);
        None
    }

    /// Whether a failed attempt reached the contract's `destination`: `true` if
    /// that answered, be it with a no, `false` if it could not be reached or
    /// could take on no more. `None`: it says neither, as what was not executed
    /// unless this says otherwise.
    fn reached(&self, failure: &Failure) -> Option<bool> {
        match failure {
            Failure::Unknown { .. } => Some(false),
            Failure::NotExecuted { .. } => None,
        }
    }
}

/// What a handler carries out.
#[derive(Debug, Clone)]
pub struct Job {
    pub(super) call: Call,
    pub(super) principal: Principal,
    pub(super) key: String,
    pub(super) provider_key: String,
    /// How long one request may take.
    pub(super) patience: Duration,
    /// Where the store is.
    pub(super) directory: Option<PathBuf>,
}

impl Job {
    /// The attempt, with the arguments as they were accepted.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// The arguments as they were accepted.
    #[must_use]
    pub const fn args(&self) -> &Object {
        self.call.args()
    }

    /// Who asked for it.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The idempotency key under which it was asked for.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key to give to the remote, which tells attempts of one wish by it.
    #[must_use]
    pub fn provider_key(&self) -> &str {
        &self.provider_key
    }
}

/// What a remote is asked about.
#[derive(Clone)]
pub struct Question {
    /// The arguments as they were accepted.
    pub arguments: Object,
    /// Who asked for it.
    pub principal: Principal,
    /// The key that the attempt was made with.
    pub provider_key: String,
    /// The attempt.
    pub fence: u64,
    /// How long may be asked for: the contract's `request_timeout`.
    pub patience: Duration,
    /// The effect.
    pub(super) effect: StreamId,
    /// Where the store is.
    pub(super) directory: Option<PathBuf>,
}

/// Without the arguments: some may be redacted.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// What a remote says of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// It happened; with its result.
    Committed(Done),
    /// It knows of none.
    Absent,
}

/// What is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}tools: {tool}: {problem}", position.map(|at| format!("{at}: ")).unwrap_or_default())]
pub struct ToolError {
    /// Which tool.
    pub tool: String,
    /// Where it stands in the file, if it was read from one.
    pub position: Option<Position>,
    /// What is wrong, in a sentence.
    pub problem: String,
}

impl ToolError {
    pub(super) fn new(tool: &str, problem: impl Into<String>) -> ToolError {
        ToolError { tool: tool.to_owned(), position: None, problem: problem.into() }
    }

    /// The way to what is wrong: the member that the problem begins with, or else
    /// the tool.
    pub(crate) fn way(&self) -> Way {
        let member = self.problem.trim_start_matches('`').split([':', '`']).next().unwrap_or_default();
        Way::default().member("tools").member(&self.tool).member(member)
    }
}

fn is_known(member: &str) -> bool {
    ["name", "business_rule"].contains(&member) || SHARED.contains(&member)
}

/// What of a contract is the same wherever it is written.
pub(super) const SHARED: [&str; 15] = [
    "revisions",
    "source",
    "recovery",
    "key_ttl",
    "settle",
    "deliver_within",
    "lease",
    "deadline",
    "request_timeout",
    "destination",
    "input",
    "output",
    "output_bytes",
    "output_depth",
    "output_equals",
];

/// A contract and what carries it out. Cheap to clone.
#[derive(Clone)]
pub struct Tool {
    compiled: Arc<tool::Tool>,
    handler: Arc<dyn Handler>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("contract", &self.compiled.contract).finish_non_exhaustive()
    }
}

impl Tool {
    /// The tool of this contract, carried out by this handler. A contract has the
    /// members that a tool has in the file but `command` and `http`, its `name`,
    /// and `business_rule` if a rule is to be asked. What it says of arguments and
    /// results (`input`, `output`, `output_bytes`, `output_depth`,
    /// `output_equals`) is checked around the handler.
    ///
    /// # Errors
    /// What is wrong with the contract.
    pub fn new(contract: &Object, handler: impl Handler) -> Result<Tool, ToolError> {
        let name = contract.get("name").and_then(Value::as_text).unwrap_or("-");
        let failed = |problem: String| ToolError::new(name, problem);
        if let Some((unknown, _)) = contract.iter().find(|(member, _)| !is_known(member)) {
            let known = SHARED.join(", ");
            return Err(failed(format!("`{unknown}` is not known; known are name, business_rule, {known}")));
        }
        let rules = Rules::parse(contract).map_err(failed)?;
        Tool::ruled(contract, rules, handler).map_err(|error| failed(error.to_string()))
    }

    /// The same, with what the contract says of arguments and results.
    pub(super) fn ruled(
        contract: &Object,
        rules: Rules,
        handler: impl Handler,
    ) -> Result<Tool, ContractError> {
        let compiled = Arc::new(tool::Tool::compile(contract)?);
        Ok(Tool { compiled, handler: Arc::new(rules.around(handler)) })
    }

    /// A tool that a function carries out.
    ///
    /// # Errors
    /// As [`Tool::new`].
    pub fn function<F, Fut, D>(contract: &Object, perform: F) -> Result<Tool, ToolError>
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<D, Failure>> + Send + 'static,
        D: Into<Done>,
    {
        Tool::new(contract, Function(perform))
    }

    /// Its name, which is its action's in the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.compiled.contract.identity.name
    }

    /// The digest of its contract.
    #[must_use]
    pub fn digest(&self) -> Hash {
        self.compiled.digest
    }

    /// Its contract.
    #[must_use]
    pub fn contract(&self) -> &tool::Contract {
        &self.compiled.contract
    }

    pub(super) fn compiled(&self) -> &Arc<tool::Tool> {
        &self.compiled
    }

    pub(super) fn handler(&self) -> &dyn Handler {
        self.handler.as_ref()
    }

    /// Whether something is asked between claiming an attempt and beginning it.
    pub(super) fn asks_before(&self) -> bool {
        self.contract().business_rule || self.handler().looks_again()
    }
}

struct Function<F>(F);

impl<F, Fut, D> Handler for Function<F>
where
    F: Fn(Job) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<D, Failure>> + Send + 'static,
    D: Into<Done>,
{
    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        let performing = (self.0)(job);
        Box::pin(async move { performing.await.map(D::into) })
    }
}
