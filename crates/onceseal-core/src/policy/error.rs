//! What can be wrong with a policy, where, and what to write instead.
//!
//! A policy is the owner's file, so messages may quote it; they never quote an
//! action.

mod nearest;
mod path;

use super::template::TemplateProblem;
use crate::json::Value;
pub use nearest::nearest;
use path::prefix;
pub(super) use path::quoted;
pub use path::{Path, Position, Step};

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

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// The file is longer than 1 MiB.
    #[error(
        "the policy has {bytes} bytes and may have {} at most; split the tenant or shorten lists",
        crate::limits::POLICY_BYTES
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
    #[error("nested deeper than {} levels", crate::limits::POLICY_DEPTH)]
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
