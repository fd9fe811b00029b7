//! Definitions as `onceseal.yaml` has them.

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

    fn sentence(&self) -> String {
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
        self.error.path.split('.').fold(way, |way, step| way.member(step))
    }
}

/// Reads the section `runs`: a mapping from kinds to definitions.
pub(crate) fn section(section: &Value) -> Result<Vec<Arc<Definition>>, DefinedError> {
    let wrong =
        |path: &str, problem: &str| DocumentError { path: path.to_owned(), problem: problem.to_owned() };
    let Value::Object(kinds) = section else {
        return Err(DefinedError::new("", wrong(WHOLE, "must be a mapping from kinds to definitions")));
    };
    let built_in = Definition::built_in();
    let one = |(kind, value): (&str, &Value)| {
        let Value::Object(document) = value else {
            return Err(DefinedError::new(
                kind,
                wrong(WHOLE, "must be a mapping with `initial` and `states`"),
            ));
        };
        if built_in.iter().any(|known| known.kind() == kind) {
            let problem = "is built in; give a definition of your own another name";
            return Err(DefinedError::new(kind, wrong("kind", problem)));
        }
        let compiled = Definition::compile(kind, document);
        compiled.map(Arc::new).map_err(|error| DefinedError::new(kind, error))
    };
    kinds.iter().map(one).collect()
}
