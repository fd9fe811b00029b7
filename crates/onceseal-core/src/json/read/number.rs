//! Numbers: the grammar of RFC 8259 §6, then what [`Numbers`] admits.

use super::super::{JsonError, JsonErrorKind, Numbers, SAFE_INTEGER, Value, canonical};
use super::Reader;

impl Reader<'_> {
    /// Reads the number that begins here.
    pub(super) fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        let integral = self.number_literal()?;
        let literal = &self.text[start..self.at];
        if integral
            && let Ok(n) = literal.parse::<i64>()
            && n.unsigned_abs() <= SAFE_INTEGER.unsigned_abs()
        {
            return Ok(Value::Integer(n));
        }
        admit(literal, integral, self.limits.numbers).map_err(|kind| JsonError::at(start, kind))
    }

    /// Steps over a number; says whether it has neither fraction nor exponent.
    fn number_literal(&mut self) -> Result<bool, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if self.rest_starts("Infinity") {
            return Err(JsonError::at(start, JsonErrorKind::NotFinite));
        }
        let zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && zero {
            return Err(JsonError::at(start, JsonErrorKind::LeadingZero));
        }
        let mut integral = true;
        if self.eat(b'.') {
            integral = false;
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            integral = false;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(integral)
    }

    /// Steps over digits, at least one; says how many.
    fn digits(&mut self) -> Result<usize, JsonError> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.expected("a digit"));
        }
        self.at += count;
        Ok(count)
    }
}

/// A number that is not a safe integer literal, if it is one of `numbers`.
fn admit(literal: &str, integral: bool, numbers: Numbers) -> Result<Value, JsonErrorKind> {
    if numbers == Numbers::Integers {
        return Err(if integral { JsonErrorKind::BeyondSafe } else { JsonErrorKind::Fraction });
    }
    // The standard library rounds correctly, so this is the nearest double.
    let nearest = literal.parse().ok().and_then(Value::number).ok_or(JsonErrorKind::Overflow)?;
    match numbers {
        Numbers::Decimals if integral || is_beyond_safe(&nearest) => Err(JsonErrorKind::BeyondSafe),
        Numbers::Any if integral && canonical(&nearest) != literal => Err(JsonErrorKind::Inexact),
        _ => Ok(nearest),
    }
}

fn is_beyond_safe(number: &Value) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "2^53 − 1 is exact in an f64")]
    let limit = SAFE_INTEGER as f64;
    matches!(number, Value::Float(x) if x.abs() > limit)
}
