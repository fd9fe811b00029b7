//! Where something stands in a document, and how it is printed.

use std::fmt;

/// A place in the file, counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The member of this name.
    Name(String),
    /// The item at this index, from 0.
    Index(usize),
}

/// The way to a value of a document, printed as `actions.stripe.refund.rules[0].when`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Step>);

impl Path {
    /// The path of these steps from the document's root.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Path {
        Path(steps)
    }

    /// The steps from the document's root.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// This path and one member further.
    #[must_use]
    pub fn member(&self, name: &str) -> Path {
        self.with(Step::Name(name.to_owned()))
    }

    /// This path and one item further.
    #[must_use]
    pub fn item(&self, index: usize) -> Path {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Path {
        Path(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) if is_plain(name) && at == 0 => f.write_str(name)?,
                Step::Name(name) if is_plain(name) => write!(f, ".{name}")?,
                Step::Name(name) => write!(f, "[{}]", Quoted(name, '"'))?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= Quoted::SHOWN
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Text of the file in a message: one line, escaped, at most 60 characters.
struct Quoted<'a>(&'a str, char);

impl Quoted<'_> {
    const SHOWN: usize = 60;
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quoted(text, mark) = self;
        let shown = text.char_indices().nth(Quoted::SHOWN).map_or(*text, |(end, _)| &text[..end]);
        write!(f, "{mark}{}", shown.escape_debug())?;
        write!(f, "{}{mark}", if shown.len() < text.len() { "…" } else { "" })
    }
}

/// `text` in backticks for a message.
pub(in crate::policy) fn quoted(text: &str) -> impl fmt::Display + '_ {
    Quoted(text, '`')
}

/// Place and path before a message, as far as they are known.
pub(super) fn prefix(position: Option<Position>, path: &Path) -> String {
    let place = position.map(|at| format!("{at}: ")).unwrap_or_default();
    let path = if path.0.is_empty() { String::new() } else { format!("{path}: ") };
    place + &path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_names_indexes_and_escapes_what_would_mislead() {
        let path = Path::default().member("actions").member("stripe.refund").member("rules").item(0);
        assert_eq!(path.to_string(), "actions.stripe.refund.rules[0]");
        assert_eq!(Path::default().member("a b\u{202e}\n").item(1).to_string(), "[\"a b\\u{202e}\\n\"][1]");
        let long = Path::default().member(&"x".repeat(1000)).to_string();
        assert!(long.chars().count() < 70, "{long}");
    }
}
