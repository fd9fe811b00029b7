//! A tool's contract before a person's eyes: by what the action would be
//! carried out.

use onceseal::core::hash::Hash;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::tool::Tool;

use crate::command::list::corrupt;
use crate::error::CliError;
use crate::text::literal;

/// A contract, as far as a person can tell something by it.
pub(crate) struct Contract {
    digest: Hash,
    /// The whole of it; absent if it was never active.
    document: Option<Object>,
}

impl Contract {
    pub(crate) fn of(digest: Hash, tool: Option<Tool>) -> Result<Contract, CliError> {
        let document = match tool.map(|tool| json::read_canonical(&tool.text, &Limits::DATA)) {
            None => None,
            Some(Ok(Value::Object(document))) => Some(document),
            Some(_) => return Err(corrupt()),
        };
        Ok(Contract { digest, document })
    }

    /// For programs: all of it.
    pub(crate) fn object(&self) -> Object {
        let mut object = Object::new();
        object.insert("digest", self.digest.to_string());
        object.insert("document", self.document.clone().map_or(Value::Null, Value::Object));
        object
    }

    /// For people: its digest, and what would be run or sent.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let member = |name: &str| self.document.as_ref().and_then(|document| document.get(name));
        let by = match (&self.document, member("command"), member("http")) {
            (None, ..) => ("by", "unknown: the store has not its text".to_owned()),
            (_, Some(command), _) => ("runs", literal(command)),
            (_, _, Some(http)) => ("sends", literal(http)),
            _ => ("by", "a function of the program that carries it out".to_owned()),
        };
        vec![("contract", self.digest.to_string()), by]
    }
}
