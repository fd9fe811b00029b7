//! What can be wrong with a policy, where, and what to write instead.
//!
//! A policy is the owner's file, so messages may quote it; they never quote an
//! action.

use std::fmt;

use super::template::TemplateProblem;
use crate::json::Value;

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
pub(super) fn quoted(text: &str) -> impl fmt::Display + '_ {
    Quoted(text, '`')
}

/// Why a policy was not loaded, and where.
///
/// Nothing of a policy with an error is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{kind}", prefix(*position, path))]
pub struct PolicyError {
    /// The value at fault.
    pub path: Path,
    /// Where it stands in the file; absent for a stored policy.
    pub position: Option<Position>,
    /// What is wrong.
    pub kind: PolicyErrorKind,
}

fn prefix(position: Option<Position>, path: &Path) -> String {
    let place = position.map(|at| format!("{at}: ")).unwrap_or_default();
    let path = if path.0.is_empty() { String::new() } else { format!("{path}: ") };
    place + &path
}

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// The file is longer than 1 MiB.
    #[error(
        "the policy has {bytes} bytes and may have {} at most; split the tenant or shorten lists",
        super::yaml::MAX_BYTES
    )]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// Not UTF-8, or it starts with a byte-order mark.
    #[error("{0}; save the file as UTF-8 without a byte-order mark")]
    Encoding(&'static str),
    /// Not YAML 1.2.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// Lists and mappings inside each other deeper than 64.
    #[error("nested deeper than {} levels", super::yaml::MAX_DEPTH)]
    TooDeep,
    /// Valid YAML that could mean something else to another reader, or hides what is meant.
    #[error("{what}; {instead}")]
    Refused {
        /// What stands there.
        what: &'static str,
        /// What to write instead.
        instead: &'static str,
    },
    /// A key stands twice in one mapping.
    #[error("the key {} stands here again, after {first}; keep one of them", quoted(key))]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands first.
        first: Position,
    },
    /// A key that YAML reads as something else than text.
    #[error("the key {} is not text; write it in quotes", quoted(key))]
    KeyNotText {
        /// The key as written.
        key: String,
    },
    /// A number with a fraction or an exponent.
    #[error(
        "the number {} is not an integer; write an integer of minor units, or a decimal in quotes for the decimal operators",
        quoted(text)
    )]
    Fraction {
        /// The number as written.
        text: String,
    },
    /// An integer beyond ±(2^53 − 1).
    #[error(
        "the integer {} is beyond ±9007199254740991; write it in quotes to compare it as text",
        quoted(text)
    )]
    IntegerRange {
        /// The integer as written.
        text: String,
    },
    /// Text with U+0000.
    #[error("text with the character U+0000, which no store can keep; remove it")]
    NulCharacter,
    /// A key that does not exist here.
    #[error("unknown key {}{}", quoted(key), did_you_mean(suggestion.as_deref(), known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The known key most like it.
        suggestion: Option<String>,
        /// All keys that exist here.
        known: &'static [&'static str],
    },
    /// A key that must be there.
    #[error("the key `{0}` is missing")]
    MissingKey(&'static str),
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What is wanted.
        expected: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// A word that does not exist here.
    #[error("unknown word {}{}", quoted(word), did_you_mean(suggestion.as_deref(), known))]
    UnknownWord {
        /// The word.
        word: String,
        /// The known word most like it.
        suggestion: Option<String>,
        /// All words that exist here.
        known: &'static [&'static str],
    },
    /// A list, mapping or text without content where there must be some.
    #[error("{0} is empty; fill it or leave it out")]
    Empty(&'static str),
    /// Items of a list that say the same, in whole or in part.
    #[error("{} repeats or overlaps {}; keep one of them", quoted(item), quoted(earlier))]
    Overlap {
        /// The later item.
        item: String,
        /// The earlier item.
        earlier: String,
    },
    /// More of something than is allowed.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A name that is empty, longer than 255 characters or has control characters.
    #[error("a name must have 1 to 255 characters and no control characters")]
    Name,
    /// Text that is not a duration.
    #[error("{} is not a duration; write a number and s, m, h or d, as in 30s or 15m", quoted(text))]
    Duration {
        /// The text.
        text: String,
    },
    /// A number or duration outside its bounds.
    #[error("{what} must be {low} to {high}")]
    OutOfRange {
        /// Of what.
        what: &'static str,
        /// The least.
        low: String,
        /// The most.
        high: String,
    },
    /// Both of `decision` and `rules`, or neither.
    #[error("an entry has exactly one of `decision` and `rules`, this one has {0}")]
    DecisionOrRules(&'static str),
    /// A path to an argument that cannot be read.
    #[error("{} is not the path of an argument; write its name, with dots into objects", quoted(text))]
    ArgumentPath {
        /// The text.
        text: String,
    },
    /// A condition that names no operator.
    #[error(
        "the condition {} ends in no operator{}",
        quoted(key),
        did_you_mean(suggestion.as_deref(), &super::condition::operators().collect::<Vec<_>>())
    )]
    NoOperator {
        /// The condition.
        key: String,
        /// The condition most like it that has one.
        suggestion: Option<String>,
    },
    /// A condition that is an operator only.
    #[error("the condition {} names no argument before its operator", quoted(key))]
    NoArgument {
        /// The condition.
        key: String,
    },
    /// A condition on a word that looks like a field of the action and is not one.
    #[error("conditions cannot look at {}; they see arguments, environment, agent and user", quoted(word))]
    ReservedWord {
        /// The word.
        word: String,
    },
    /// An operand that its operator does not take.
    #[error("`{operator}` takes {expected}, found {found}")]
    Operand {
        /// The operator.
        operator: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// An operator that can never be judged on the field it is used on.
    #[error("`{operator}` cannot be judged on `{field}`, which is text")]
    FieldOperator {
        /// The field.
        field: &'static str,
        /// The operator.
        operator: &'static str,
    },
    /// A pattern that is not a regular expression, or too large a one.
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    /// A template that cannot be used.
    #[error("{0}")]
    Template(TemplateProblem),
    /// A redacted argument in a template: the key would show it.
    #[error(
        "the template shows the redacted argument {}; use another argument, or do not redact it",
        quoted(argument)
    )]
    RedactedInTemplate {
        /// The argument.
        argument: String,
    },
    /// A group that is not under `groups`.
    #[error("the group {} is not defined under `groups`{}", quoted(group), did_you_mean(suggestion.as_deref(), &[]))]
    UndefinedGroup {
        /// The group.
        group: String,
        /// The defined group most like it.
        suggestion: Option<String>,
    },
    /// A member of a group that names no identity.
    #[error("{} names no identity; write os:<login>, host:<name> or a bare name", quoted(member))]
    Member {
        /// The member.
        member: String,
    },
}

/// The type of a value in the words of YAML.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "mapping",
        other => other.type_name(),
    }
}

fn did_you_mean(suggestion: Option<&str>, known: &[&str]) -> String {
    match suggestion {
        Some(word) => format!("; did you mean {}?", quoted(word)),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// The candidate most like `word`, if one is like it at all.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const LONGEST: usize = 64;
    let word: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    let allowed = word.len() / 3 + usize::from(word.len() < 3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's distance: insertions, deletions and replacements of characters.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, c) in candidate.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, w) in word.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(*w != c)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_a_far_one_is_not() {
        let known = ["decision", "rules", "when", "lease"];
        for (word, expected) in [
            ("decison", Some("decision")),
            ("Rules", Some("rules")),
            ("wen", Some("when")),
            ("leese", Some("lease")),
            ("four_eyes", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known).as_deref(), expected, "{word}");
        }
        assert_eq!(nearest(&"decision".repeat(100), known), None);
    }

    #[test]
    fn a_path_prints_names_indexes_and_escapes_what_would_mislead() {
        let path = Path::default().member("actions").member("stripe.refund").member("rules").item(0);
        assert_eq!(path.to_string(), "actions.stripe.refund.rules[0]");
        assert_eq!(Path::default().member("a b\u{202e}\n").item(1).to_string(), "[\"a b\\u{202e}\\n\"][1]");
        let long = Path::default().member(&"x".repeat(1000)).to_string();
        assert!(long.chars().count() < 70, "{long}");
    }
}
