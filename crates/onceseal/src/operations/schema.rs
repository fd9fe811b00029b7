//! Arguments and results held against JSON Schemas (2020-12).
//!
//! Schemas are compiled when they are read: no reference leads out of them, and
//! patterns are matched in linear time.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use onceseal_core::json::{self, Object, Value};

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

    /// Whether these arguments are such as the tool takes.
    ///
    /// # Errors
    /// Where they are not and what is wrong, without any value.
    pub(super) fn takes(&self, arguments: &Object) -> Result<(), String> {
        let Some(schema) = &self.input else { return Ok(()) };
        fits(schema, &Value::Object(arguments.clone()))
    }

    /// Whether this result is such as the tool returns.
    ///
    /// # Errors
    /// As [`Schemas::takes`].
    pub(super) fn returns(&self, result: &Value) -> Result<(), String> {
        let Some(schema) = &self.output else { return Ok(()) };
        fits(schema, result)
    }
}

fn fits(schema: &Validator, value: &Value) -> Result<(), String> {
    let value = foreign(value);
    let problem = schema.iter_errors(&value).next();
    match problem.map(|error| (error.instance_path().to_string(), error.masked().to_string())) {
        Some((at, what)) => Err(if at.is_empty() { what } else { format!("{at}: {what}") }),
        None => Ok(()),
    }
}

/// The value as the validator takes it.
fn foreign(value: &Value) -> serde_json::Value {
    // Canonical text is JSON.
    serde_json::from_str(&json::canonical(value)).unwrap_or(serde_json::Value::Null)
}
