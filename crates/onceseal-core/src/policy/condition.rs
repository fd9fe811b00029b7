//! Conditions: what a rule asks of an action.
//!
//! A condition is `<argument>_<operator>: operand`. Everything about it but the
//! action is checked when the policy is loaded, so judging it cannot fail: it
//! is true, false, or cannot be judged.

mod decimal;
mod judge;

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use super::argument::ArgumentPath;
use super::error::{PolicyError, PolicyErrorKind, nearest, type_name};
use super::evaluate::Facts;
use super::node::Node;
use crate::json::Value;
use crate::limits::PATTERN_BYTES;
use decimal::Decimal;
pub(super) use judge::Comparison;
pub use judge::Truth;

type Build = fn(&Operand<'_>) -> Result<Test, PolicyError>;

/// Every operator: its name, and the test it makes of an operand.
const OPERATORS: &[(&str, Build)] = &[
    ("eq", |operand| Ok(Test::Equal(operand.any()?))),
    ("neq", |operand| Ok(Test::NotEqual(operand.any()?))),
    ("lt", |operand| Ok(Test::Integer(Comparison::Less, operand.integer()?))),
    ("lte", |operand| Ok(Test::Integer(Comparison::AtMost, operand.integer()?))),
    ("gt", |operand| Ok(Test::Integer(Comparison::Greater, operand.integer()?))),
    ("gte", |operand| Ok(Test::Integer(Comparison::AtLeast, operand.integer()?))),
    ("in", |operand| Ok(Test::In(operand.list()?))),
    ("not_in", |operand| Ok(Test::NotIn(operand.list()?))),
    ("prefix", |operand| Ok(Test::Prefix(operand.text()?.to_owned()))),
    ("suffix", |operand| Ok(Test::Suffix(operand.text()?.to_owned()))),
    ("contains", |operand| Ok(Test::Contains(operand.content()?))),
    ("matches", |operand| Ok(Test::Matches(operand.pattern()?))),
    ("exists", |operand| Ok(Test::Exists(operand.boolean()?))),
    ("decimal_lt", |operand| Ok(Test::Decimal(Comparison::Less, operand.decimal()?))),
    ("decimal_lte", |operand| Ok(Test::Decimal(Comparison::AtMost, operand.decimal()?))),
    ("decimal_gt", |operand| Ok(Test::Decimal(Comparison::Greater, operand.decimal()?))),
    ("decimal_gte", |operand| Ok(Test::Decimal(Comparison::AtLeast, operand.decimal()?))),
];

/// The names of the operators.
pub(super) fn operators() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

/// Words that look like fields of the action and are not offered to conditions.
const RESERVED: [&str; 4] = ["action_id", "principal", "resource", "tenant"];

/// One condition of a rule.
#[derive(Debug, Clone)]
pub struct Condition {
    key: String,
    pub(super) subject: Subject,
    pub(super) test: Test,
    operand: Value,
}

/// What a condition looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An argument.
    Argument(ArgumentPath),
    /// The action's environment.
    Environment,
    /// The action's agent.
    Agent,
    /// The action's user; absent when the agent acts for nobody.
    User,
}

/// An operator with its operand, checked.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Equal(Value),
    NotEqual(Value),
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Integer(Comparison, i64),
    Decimal(Comparison, Decimal),
    Prefix(String),
    Suffix(String),
    Contains(Value),
    Matches(Regex),
    Exists(bool),
}

impl Condition {
    /// The condition `key` with the operand at `node`.
    pub(super) fn parse(key: &str, node: &Node<'_>) -> Result<Condition, PolicyError> {
        let Some((argument, operator, build)) = split(key) else {
            let suggestion = key.rsplit_once('_').and_then(|(argument, word)| {
                nearest(word, operators()).map(|operator| format!("{argument}_{operator}"))
            });
            return Err(node.fail(PolicyErrorKind::NoOperator { key: key.to_owned(), suggestion }));
        };
        if argument.is_empty() {
            return Err(node.fail(PolicyErrorKind::NoArgument { key: key.to_owned() }));
        }
        let subject = Subject::parse(argument, node)?;
        let operand = Operand { node, operator };
        let test = build(&operand)?;
        if let Some(field) = subject.field() {
            operand.suits_text(field, &test)?;
        }
        Ok(Condition { key: key.to_owned(), subject, test, operand: node.value.clone() })
    }

    /// The condition's key as written.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it looks at.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The operand as written.
    #[must_use]
    pub fn operand(&self) -> &Value {
        &self.operand
    }

    pub(super) fn is_pattern(&self) -> bool {
        matches!(self.test, Test::Matches(_))
    }

    /// Whether it holds for these facts.
    #[must_use]
    pub fn judge(&self, facts: &Facts<'_>) -> Truth {
        self.test.judge(self.subject.find(facts).as_deref())
    }
}

/// Argument and operator of a key, by the longest operator it ends in.
fn split(key: &str) -> Option<(&str, &'static str, Build)> {
    let ends_in = |(operator, build): &(&'static str, Build)| {
        let argument = key.strip_suffix(operator)?.strip_suffix('_')?;
        Some((argument, *operator, *build))
    };
    OPERATORS.iter().filter_map(ends_in).max_by_key(|(_, operator, _)| operator.len())
}

impl Subject {
    fn parse(argument: &str, node: &Node<'_>) -> Result<Subject, PolicyError> {
        if RESERVED.contains(&argument) {
            return Err(node.fail(PolicyErrorKind::ReservedWord { word: argument.to_owned() }));
        }
        match argument {
            "environment" => Ok(Subject::Environment),
            "agent" => Ok(Subject::Agent),
            "user" => Ok(Subject::User),
            _ => ArgumentPath::parse(argument)
                .map(Subject::Argument)
                .ok_or_else(|| node.fail(PolicyErrorKind::ArgumentPath { text: argument.to_owned() })),
        }
    }

    /// The name of the field it is, which is always text.
    fn field(&self) -> Option<&'static str> {
        match self {
            Subject::Argument(_) => None,
            Subject::Environment => Some("environment"),
            Subject::Agent => Some("agent"),
            Subject::User => Some("user"),
        }
    }

    /// The value it has in these facts.
    pub(super) fn find<'a>(&self, facts: &Facts<'a>) -> Option<Cow<'a, Value>> {
        let field = |text: &str| Some(Cow::Owned(Value::from(text)));
        match self {
            Subject::Argument(path) => path.find(facts.arguments).map(Cow::Borrowed),
            Subject::Environment => field(facts.environment),
            Subject::Agent => field(facts.agent),
            Subject::User => field(facts.user?),
        }
    }
}

/// An operand on the way to a test.
struct Operand<'a> {
    node: &'a Node<'a>,
    operator: &'static str,
}

impl Operand<'_> {
    /// `environment`, `agent` and `user` are text: a test that could never be
    /// judged on text, or never be met by it, is a mistake.
    fn suits_text(&self, field: &'static str, test: &Test) -> Result<(), PolicyError> {
        let is_text = |value: &Value| value.as_text().is_some();
        match test {
            Test::Integer(..) | Test::Decimal(..) => {
                Err(self.node.fail(PolicyErrorKind::FieldOperator { field, operator: self.operator }))
            }
            Test::Equal(value) | Test::NotEqual(value) | Test::Contains(value) if !is_text(value) => {
                Err(self.wrong("text here", type_name(value)))
            }
            Test::In(values) | Test::NotIn(values) if !values.iter().all(is_text) => {
                Err(self.wrong("a list of text here", "a list with other items"))
            }
            _ => Ok(()),
        }
    }

    /// A value of any type. Fractions can only come from a stored policy; the
    /// YAML reader refuses them earlier.
    fn any(&self) -> Result<Value, PolicyError> {
        if has_fraction(self.node.value) {
            return Err(self.wrong("no number with a fraction or exponent", "one"));
        }
        Ok(self.node.value.clone())
    }

    fn list(&self) -> Result<Vec<Value>, PolicyError> {
        match self.any()? {
            Value::List(items) => Ok(items),
            other => Err(self.wrong("a list", type_name(&other))),
        }
    }

    /// What a list or a text may contain; empty text is in every text.
    fn content(&self) -> Result<Value, PolicyError> {
        match self.any()? {
            Value::Text(_) => self.text().map(Value::from),
            other => Ok(other),
        }
    }

    fn text(&self) -> Result<&str, PolicyError> {
        match self.node.value {
            Value::Text(text) if text.is_empty() => Err(self.wrong("text that is not empty", "empty text")),
            Value::Text(text) => Ok(text),
            other => Err(self.wrong("text", type_name(other))),
        }
    }

    fn boolean(&self) -> Result<bool, PolicyError> {
        match self.node.value {
            Value::Bool(wanted) => Ok(*wanted),
            other => Err(self.wrong("true or false", type_name(other))),
        }
    }

    fn integer(&self) -> Result<i64, PolicyError> {
        let value = self.node.value;
        value.as_integer().ok_or_else(|| self.wrong("an integer", type_name(value)))
    }

    fn decimal(&self) -> Result<Decimal, PolicyError> {
        const WANTED: &str = "decimal text in quotes, as \"12.50\"";
        let text = self.node.value.as_text().ok_or_else(|| self.wrong(WANTED, type_name(self.node.value)))?;
        Decimal::parse(text).ok_or_else(|| self.wrong(WANTED, "other text"))
    }

    /// The pattern as a whole must match the whole text. It is compiled alone
    /// first, so that no part of it can end the group around it.
    fn pattern(&self) -> Result<Regex, PolicyError> {
        let text = self.text()?;
        let compile = |pattern: &str| {
            RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES)
                .build()
                .map_err(|error| {
                    self.node.fail(PolicyErrorKind::Pattern(match error {
                        regex::Error::CompiledTooBig(_) => {
                            "it is too large; narrow \\w, \\d and counts, as in [a-z0-9]{1,40}".to_owned()
                        }
                        other => last_line(&other.to_string()),
                    }))
                })
        };
        compile(text)?;
        compile(&format!(r"\A(?:{text})\z"))
    }

    fn wrong(&self, expected: &'static str, found: &'static str) -> PolicyError {
        self.node.fail(PolicyErrorKind::Operand { operator: self.operator, expected, found })
    }
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Float(_) => true,
        Value::List(items) => items.iter().any(has_fraction),
        Value::Object(members) => members.iter().any(|(_, item)| has_fraction(item)),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Text(_) => false,
    }
}

/// The sentence of a syntax error, without the drawing before it.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests;
