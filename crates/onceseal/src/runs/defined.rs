//! Definitions as `onceseal.yaml` has them.

use std::fmt;
use std::sync::Arc;

use onceseal_core::json::Value;
use onceseal_core::policy::{Path as Way, Position};
use onceseal_core::run::{Definition, DocumentError};

/// What is wrong with a definition of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}runs: {}", position.map(|at| format!("{at}: ")).unwrap_or_default(), self.sentence())]
pub struct DefinedError {
    /// The kind that it would define; empty for the section itself.
    pub kind: String,
    /// Where it stands in the file.
    pub position: Option<Position>,
    /// What is wrong.
    pub error: DocumentError,
}

/// What is wrong with a definition as a whole stands nowhere in it.
const WHOLE: &str = "";

impl DefinedError {
    fn new(kind: &str, error: DocumentError) -> DefinedError {
        DefinedError { kind: kind.to_owned(), position: None, error }
    }

    /// Where in the section, and what is wrong there.
    #[must_use]
    pub fn sentence(&self) -> String {
        let steps = [self.kind.as_str(), &self.error.path];
        let way = steps.into_iter().filter(|step| !step.is_empty()).collect::<Vec<_>>().join(".");
        match way.is_empty() {
            true => self.error.problem.clone(),
            false => format!("{way}: {}", self.error.problem),
        }
    }

    /// The way to what is wrong.
    pub(crate) fn way(&self) -> Way {
        let way = Way::default().member("runs").member(&self.kind);
        self.error.path.split('.').fold(way, |way, step| {
            let item = step.strip_suffix(']').and_then(|step| step.split_once('['));
            match item.and_then(|(name, at)| Some((name, at.parse().ok()?))) {
                Some((name, at)) => way.member(name).item(at),
                None => way.member(step),
            }
        })
    }
}

/// Everything that is wrong with the definitions of a file, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedErrors(pub Vec<DefinedError>);

impl std::error::Error for DefinedErrors {}

impl fmt::Display for DefinedErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// Reads the section `runs`: a mapping from kinds to definitions.
pub(crate) fn section(section: &Value) -> Result<Vec<Arc<Definition>>, DefinedErrors> {
    let wrong =
        |path: &str, problem: &str| DocumentError { path: path.to_owned(), problem: problem.to_owned() };
    let Value::Object(kinds) = section else {
        let error = wrong(WHOLE, "must be a mapping from kinds to definitions");
        return Err(DefinedErrors(vec![DefinedError::new("", error)]));
    };
    let built_in = Definition::built_in();
    let (mut definitions, mut errors) = (Vec::new(), Vec::new());
    for (kind, value) in kinds.iter() {
        let found = match value {
            Value::Object(_) if built_in.iter().any(|known| known.kind() == kind) => {
                vec![wrong("kind", "is built in; give a definition of your own another name")]
            }
            Value::Object(document) => match Definition::compile(kind, document) {
                Ok(definition) => {
                    definitions.push(Arc::new(definition));
                    continue;
                }
                Err(found) => found,
            },
            _ => vec![wrong(WHOLE, "must be a mapping with `initial` and `states`")],
        };
        errors.extend(found.into_iter().map(|error| DefinedError::new(kind, error)));
    }
    if errors.is_empty() { Ok(definitions) } else { Err(DefinedErrors(errors)) }
}
