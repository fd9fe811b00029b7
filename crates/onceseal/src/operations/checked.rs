//! What a tool takes and returns, held against its contract.

use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::json::{self, Object, Value};

use super::directory::Current;
use super::returned::Returned;
use super::schema::Schemas;
use super::tool::{Answering, Handler, Job, Question, Tool, Word};
use crate::executed::{Done, Failure, Performed};
use crate::outcome::stand_in;

/// What a contract says of arguments and results.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    schemas: Schemas,
    returned: Returned,
}

impl Rules {
    /// # Errors
    /// What is wrong with the contract, in a sentence.
    pub(super) fn parse(contract: &Object) -> Result<Rules, String> {
        Ok(Rules { schemas: Schemas::parse(contract)?, returned: Returned::parse(contract)? })
    }

    /// The handler, held to them.
    pub(super) fn around<H: Handler>(self, handler: H) -> Checked<H> {
        Checked { handler, rules: self }
    }
}

/// A handler whose arguments and results are checked.
pub(super) struct Checked<H> {
    handler: H,
    rules: Rules,
}

impl<H: Handler> Handler for Checked<H> {
    fn takes(&self, arguments: &Object) -> Result<(), String> {
        self.rules.schemas.takes(arguments)?;
        self.handler.takes(arguments)
    }

    fn returns(&self, arguments: &Object, result: &Value) -> Result<(), String> {
        self.rules.schemas.returns(result)?;
        self.rules.returned.fits(arguments, result)?;
        self.handler.returns(arguments, result)
    }

    fn authorizes<'a>(&'a self, who: Current<'a>, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        self.handler.authorizes(who, arguments)
    }

    fn permits<'a>(&'a self, principal: &'a Principal, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        self.handler.permits(principal, arguments)
    }

    fn looks_again(&self) -> bool {
        self.handler.looks_again()
    }

    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        self.handler.perform(job)
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        self.handler.ask(question)
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        self.handler.again(failure, attempts)
    }

    fn reached(&self, failure: &Failure) -> Option<bool> {
        self.handler.reached(failure)
    }
}

/// What is kept of a result: itself, or what stands in for one that is not such
/// as the tool returns. It was done, and nobody should read that.
pub(super) fn shown(tool: &Tool, arguments: &Object, done: Done) -> Done {
    let Err(because) = tool.handler().returns(arguments, &done.value) else { return done };
    let mut value = stand_in(WITHHELD, json::canonical(&done.value).len());
    if let Value::Object(stand_in) = &mut value {
        stand_in.insert("because", because);
    }
    Done { value, ..done }
}

/// Why a result was not kept.
const WITHHELD: &str = "output_contract_violation";

/// Whether this stands in for a result that was not such as the tool returns.
pub(super) fn is_withheld(result: &Value) -> bool {
    let reason = result.as_object().and_then(|stand_in| stand_in.get("unstorable"));
    reason.and_then(Value::as_text) == Some(WITHHELD)
}
