//! The core schema of YAML 1.2 for plain scalars (YAML 1.2.2 §10.3.2).
//!
//! Words and numbers of YAML 1.1 (`yes`, `1_000`, `1:30`, dates) are text here,
//! and `017` is seventeen.

use crate::json::{SAFE_INTEGER, Value};
use crate::policy::error::PolicyErrorKind;

/// The value of a plain scalar.
///
/// # Errors
/// A number with a fraction or exponent, infinite or not a number, or an
/// integer beyond ±(2^53 − 1).
pub(super) fn resolve(text: &str) -> Result<Value, PolicyErrorKind> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    if let Some((negative, radix, digits)) = integer(text) {
        return magnitude(digits, radix)
            .map(|n| Value::Integer(if negative { -n } else { n }))
            .ok_or_else(|| PolicyErrorKind::IntegerRange { text: text.to_owned() });
    }
    if is_float(text) {
        return Err(PolicyErrorKind::Fraction { text: text.to_owned() });
    }
    Ok(Value::Text(text.to_owned()))
}

/// Sign, base and digits of an integer.
fn integer(text: &str) -> Option<(bool, u32, &str)> {
    let (negative, radix, digits) = if let Some(octal) = text.strip_prefix("0o") {
        (false, 8, octal)
    } else if let Some(hexadecimal) = text.strip_prefix("0x") {
        (false, 16, hexadecimal)
    } else {
        (text.starts_with('-'), 10, text.strip_prefix(['-', '+']).unwrap_or(text))
    };
    let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    valid.then_some((negative, radix, digits))
}

fn magnitude(digits: &str, radix: u32) -> Option<i64> {
    digits.chars().try_fold(0_i64, |n, c| {
        let next = n.checked_mul(i64::from(radix))?.checked_add(i64::from(c.to_digit(radix)?))?;
        (next <= SAFE_INTEGER).then_some(next)
    })
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, `.inf` and `.nan`.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_have_the_core_types_of_yaml_1_2() {
        let integers = [
            ("0", 0),
            ("-0", 0),
            ("+7", 7),
            ("-12", -12),
            ("017", 17),
            ("0o17", 15),
            ("0x1F", 31),
            ("0xff", 255),
            ("9007199254740991", SAFE_INTEGER),
            ("-9007199254740991", -SAFE_INTEGER),
            ("0x1FFFFFFFFFFFFF", SAFE_INTEGER),
        ];
        for (text, expected) in integers {
            assert_eq!(resolve(text), Ok(Value::Integer(expected)), "{text}");
        }
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(resolve(text), Ok(Value::Null), "{text}");
        }
        for (text, expected) in
            [("true", true), ("True", true), ("TRUE", true), ("false", false), ("FALSE", false)]
        {
            assert_eq!(resolve(text), Ok(Value::Bool(expected)), "{text}");
        }
    }

    #[test]
    fn what_was_special_in_yaml_1_1_is_text() {
        let texts = [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "tRUE",
            "nULL",
            "1_000",
            "1:30",
            "2026-01-01",
            "0b1",
            "0o8",
            "0o",
            "0x",
            "0xg",
            "-0x1",
            "+0o7",
            "-",
            "+",
            ".",
            "e1",
            "1e",
            "1e+",
            "..5",
            "1.2.3",
            "1..",
            "+.nan",
            "-.NaN",
            "inf",
            ".iNf",
            "0O17",
            "0X1F",
            "<<",
            "=",
            "１２",
        ];
        for text in texts {
            assert_eq!(resolve(text), Ok(Value::from(text)), "{text}");
        }
    }

    #[test]
    fn fractions_and_unsafe_integers_are_refused() {
        let fractions = [
            "1.0", "1.", ".5", "-.5", "+1.5", "1e3", "1E-3", "1.5e+10", ".inf", "-.INF", "+.Inf", ".nan",
            "1e999", "00.0",
        ];
        for text in fractions {
            assert_eq!(resolve(text), Err(PolicyErrorKind::Fraction { text: text.to_owned() }), "{text}");
        }
        let long = "9".repeat(100_000);
        for text in ["9007199254740992", "-9007199254740992", "0x20000000000000", &long] {
            assert_eq!(resolve(text), Err(PolicyErrorKind::IntegerRange { text: text.to_owned() }), "{text}");
        }
    }
}
