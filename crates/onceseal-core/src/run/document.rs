//! Documents that people write: what is wrong with one is told with its place.

use crate::json::Object;
use crate::policy::nearest;
use crate::run::name;

/// Why a document cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct DocumentError {
    /// Where, as `states.paused.to`.
    pub path: String,
    /// What is wrong there, and what is right.
    pub problem: String,
}

impl DocumentError {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> DocumentError {
        DocumentError { path: path.into(), problem: problem.into() }
    }
}

pub(crate) type Read<T> = Result<T, DocumentError>;

/// What a name is.
const NAME: &str = "is no name: lower-case letters, digits and hyphens, 1 to 128, no hyphen at either end";

pub(crate) fn named(path: &str, text: &str) -> Read<()> {
    if name::is_plain(text) { Ok(()) } else { Err(DocumentError::new(path, NAME)) }
}

pub(crate) fn known(object: &Object, path: &str, known: &[&str]) -> Read<()> {
    let Some((unknown, _)) = object.iter().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
    let dot = if path.is_empty() { "" } else { "." };
    let hint = match nearest(unknown, known.iter().copied()) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => format!("; known are {}", known.join(", ")),
    };
    Err(DocumentError::new(format!("{path}{dot}{unknown}"), format!("is not known{hint}")))
}

/// The word that was probably meant.
pub(crate) use crate::policy::nearest as nearest_of;

pub(crate) fn mapping(path: &str) -> DocumentError {
    DocumentError::new(path, "must be a mapping")
}
