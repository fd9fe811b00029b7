//! A tool: its contract, and what carries it out.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::hash::Hash;
use onceseal_core::json::{Object, Value};
use onceseal_core::tool::{self, ContractError};

use crate::attempt::Call;
use crate::executed::{Executed, Failure};

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

    /// Whether the current principal may touch the resource: asked twice before
    /// an operation is accepted, and before each attempt if
    /// [`Handler::looks_again`].
    fn authorizes<'a>(
        &'a self,
        principal: &'a Principal,
        arguments: &'a Object,
    ) -> Answering<'a, Option<bool>> {
        let _ = (principal, arguments);
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
    fn perform(&self, job: Job) -> Answering<'_, Executed>;

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
    pub(super) provider_key: String,
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
    Committed(Value),
    /// It knows of none.
    Absent,
}

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
    /// The tool of this contract, carried out by this handler.
    ///
    /// # Errors
    /// What is wrong with the contract.
    pub fn new(contract: &Object, handler: impl Handler) -> Result<Tool, ContractError> {
        Ok(Tool { compiled: Arc::new(tool::Tool::compile(contract)?), handler: Arc::new(handler) })
    }

    /// A tool that a function carries out.
    ///
    /// # Errors
    /// As [`Tool::new`].
    pub fn function<F, Fut>(contract: &Object, perform: F) -> Result<Tool, ContractError>
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Executed> + Send + 'static,
    {
        Tool::new(contract, Function(perform))
    }

    /// Its name, which is its action's in the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.compiled.contract.name
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

impl<F, Fut> Handler for Function<F>
where
    F: Fn(Job) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Executed> + Send + 'static,
{
    fn perform(&self, job: Job) -> Answering<'_, Executed> {
        Box::pin((self.0)(job))
    }
}
