//! Arguments and results held against JSON Schemas (2020-12).
//!
//! Schemas are compiled when they are read: no reference leads out of them, and
//! patterns are matched in linear time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::{PatternOptions, Validator};
use onceseal_core::action::Principal;
use onceseal_core::json::{self, Object, Value};

use super::tool::{Answering, Handler, Job, Question, Word};
use crate::executed::{Executed, Failure};

/// The schemas of a tool.
#[derive(Clone, Default)]
pub(super) struct Schemas {
    input: Option<Arc<Validator>>,
    output: Option<Arc<Validator>>,
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (input, output) = (self.input.is_some(), self.output.is_some());
        f.debug_struct("Schemas").field("input", &input).field("output", &output).finish()
    }
}

impl Schemas {
    /// Compiles the members `input` and `output` of a contract.
    ///
    /// # Errors
    /// What is wrong with one of them, in a sentence.
    pub(super) fn parse(contract: &Object) -> Result<Schemas, String> {
        let schema = |name: &str| -> Result<Option<Arc<Validator>>, String> {
            let Some(schema) = contract.get(name) else { return Ok(None) };
            let built = jsonschema::draft202012::options()
                .with_pattern_options(PatternOptions::regex())
                .should_validate_formats(true)
                .build(&foreign(schema));
            built.map(Arc::new).map(Some).map_err(|error| format!("{name}: {}", error.masked()))
        };
        Ok(Schemas { input: schema("input")?, output: schema("output")? })
    }

    /// The handler, with its arguments and results checked.
    pub(super) fn around<H: Handler>(&self, handler: H) -> Checked<H> {
        Checked { handler, schemas: self.clone() }
    }
}

/// A handler whose arguments and results are checked.
pub(super) struct Checked<H> {
    handler: H,
    schemas: Schemas,
}

impl<H: Handler> Handler for Checked<H> {
    fn takes(&self, arguments: &Object) -> Result<(), String> {
        let Some(schema) = &self.schemas.input else { return self.handler.takes(arguments) };
        let arguments_value = foreign(&Value::Object(arguments.clone()));
        // Where and what, without any value.
        let problem = schema.iter_errors(&arguments_value).next();
        match problem.map(|error| (error.instance_path().to_string(), error.masked().to_string())) {
            Some((at, what)) => Err(if at.is_empty() { what } else { format!("{at}: {what}") }),
            None => self.handler.takes(arguments),
        }
    }

    fn authorizes<'a>(
        &'a self,
        principal: &'a Principal,
        arguments: &'a Object,
    ) -> Answering<'a, Option<bool>> {
        self.handler.authorizes(principal, arguments)
    }

    fn permits<'a>(&'a self, principal: &'a Principal, arguments: &'a Object) -> Answering<'a, Option<bool>> {
        self.handler.permits(principal, arguments)
    }

    fn looks_again(&self) -> bool {
        self.handler.looks_again()
    }

    fn perform(&self, job: Job) -> Answering<'_, Executed> {
        Box::pin(async move { self.handler.perform(job).await.map(|result| self.shown(result)) })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        Box::pin(async move {
            match self.handler.ask(question).await? {
                Word::Committed(result) => Some(Word::Committed(self.shown(result))),
                Word::Absent => Some(Word::Absent),
            }
        })
    }

    fn again(&self, failure: &Failure, attempts: u64) -> Option<Duration> {
        self.handler.again(failure, attempts)
    }

    fn reached(&self, failure: &Failure) -> Option<bool> {
        self.handler.reached(failure)
    }
}

impl<H> Checked<H> {
    /// The result, or what stands in for one that is not such as the tool
    /// returns: it was done, and nobody should read that.
    fn shown(&self, result: Value) -> Value {
        let Some(schema) = &self.schemas.output else { return result };
        if schema.is_valid(&foreign(&result)) {
            return result;
        }
        let bytes = json::canonical(&result).len();
        let mut stand_in = Object::new();
        stand_in.insert("unstorable", "output_contract_violation");
        stand_in.insert("bytes", Value::Integer(i64::try_from(bytes).unwrap_or(json::SAFE_INTEGER)));
        stand_in.into()
    }
}

/// The value as the validator takes it.
fn foreign(value: &Value) -> serde_json::Value {
    // Canonical text is JSON.
    serde_json::from_str(&json::canonical(value)).unwrap_or(serde_json::Value::Null)
}
