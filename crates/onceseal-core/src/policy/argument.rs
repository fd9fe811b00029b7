//! Paths to arguments: a name, with dots into objects.
//!
//! A dot always leads into an object, so an argument whose own name has a dot
//! cannot be addressed; a path that leads nowhere is an absent argument.

use std::fmt;

use crate::json::{Object, Value};
use crate::limits::is_name;

/// The path of an argument, as in `amount` or `customer.id`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArgumentPath(Vec<String>);

impl ArgumentPath {
    /// Reads a path; `None` if a part of it is empty, longer than 255
    /// characters or has control characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<ArgumentPath> {
        text.split('.')
            .map(|name| is_name(name).then(|| name.to_owned()))
            .collect::<Option<_>>()
            .map(ArgumentPath)
    }

    /// The names on the way, outermost first; there is at least one.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The value it leads to; `None` if a name is absent or something on the
    /// way is no object.
    #[must_use]
    pub fn find<'a>(&self, arguments: &'a Object) -> Option<&'a Value> {
        let (last, way) = self.0.split_last()?;
        let mut object = arguments;
        for name in way {
            object = object.get(name)?.as_object()?;
        }
        object.get(last)
    }

    /// Whether `other` is this path or leads into it.
    #[must_use]
    pub fn covers(&self, other: &ArgumentPath) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
