//! Whether a value passes a test: true, false, or not to be judged.

use std::cmp::Ordering;

use super::Test;
use super::decimal::Decimal;
use crate::json::Value;

/// What is known of a condition or a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The argument is absent, or of a type that the operator does not take.
    Unjudged,
}

impl Truth {
    /// A rule's truth from its conditions': false if any is false, else
    /// unjudged if any is, else true.
    pub fn all(conditions: impl IntoIterator<Item = Truth>) -> Truth {
        conditions.into_iter().fold(Truth::True, |rule, condition| match (rule, condition) {
            (Truth::False, _) | (_, Truth::False) => Truth::False,
            (Truth::Unjudged, _) | (_, Truth::Unjudged) => Truth::Unjudged,
            (Truth::True, Truth::True) => Truth::True,
        })
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Truth {
        if holds { Truth::True } else { Truth::False }
    }
}

/// An order to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }
}

impl Test {
    /// Judges the value of the subject, `None` if it is absent.
    ///
    /// Equality is strict about types and goes into lists and objects, so it
    /// is judged for a value of any type.
    pub(in crate::policy) fn judge(&self, value: Option<&Value>) -> Truth {
        if let Test::Exists(wanted) = self {
            return Truth::from(value.is_some() == *wanted);
        }
        let Some(value) = value else { return Truth::Unjudged };
        Truth::from(match (self, value) {
            (Test::Equal(operand), value) => value == operand,
            (Test::NotEqual(operand), value) => value != operand,
            (Test::In(operands), value) => operands.contains(value),
            (Test::NotIn(operands), value) => !operands.contains(value),
            (Test::Integer(comparison, operand), Value::Integer(n)) => comparison.holds(n.cmp(operand)),
            (Test::Decimal(comparison, operand), Value::Text(text)) => match Decimal::parse(text) {
                Some(decimal) => comparison.holds(decimal.cmp(operand)),
                None => return Truth::Unjudged,
            },
            (Test::Prefix(operand), Value::Text(text)) => text.starts_with(operand),
            (Test::Suffix(operand), Value::Text(text)) => text.ends_with(operand),
            (Test::Contains(Value::Text(operand)), Value::Text(text)) => text.contains(operand),
            (Test::Contains(operand), Value::List(items)) => items.contains(operand),
            (Test::Matches(pattern), Value::Text(text)) => pattern.is_match(text),
            _ => return Truth::Unjudged,
        })
    }
}
