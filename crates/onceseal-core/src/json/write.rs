//! The canonical writer (RFC 8785).
//!
//! Invariant: equal values are written as equal text, and reading that text
//! gives the value again. The same set of characters, `"`, `\` and those below
//! U+0020, must be escaped here and may not stand plain in the reader.

use super::{MAX_DEPTH, Value};

/// Room for most values that are hashed, so that their text is not moved while
/// it grows.
const USUAL_LENGTH: usize = 512;

/// The canonical text of a value.
///
/// For a value that has a number outside its one form (see [`Value`]), which
/// neither [`read`](super::read) nor [`Value::number`] makes, and for one that
/// nests deeper than [`MAX_DEPTH`], the text is one that
/// [`read_canonical`](super::read_canonical) refuses.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::with_capacity(USUAL_LENGTH);
    write(value, &mut out);
    out
}

/// Appends the canonical text of a value.
pub fn write(value: &Value, out: &mut String) {
    write_within(MAX_DEPTH, value, out);
}

fn write_within(depth: usize, value: &Value, out: &mut String) {
    let Some(below) = depth.checked_sub(usize::from(matches!(value, Value::List(_) | Value::Object(_))))
    else {
        // No text of a value: this one is left to whoever built it.
        out.push('!');
        return;
    };
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(n) => write_integer(*n, out),
        // `format` rather than `format_finite`: NaN becomes text that no
        // reader accepts, not some number.
        Value::Float(x) => out.push_str(ryu_js::Buffer::new().format(*x)),
        Value::Text(text) => write_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                write_comma(place, out);
                write_within(below, item, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (place, (name, member)) in object.iter().enumerate() {
                write_comma(place, out);
                write_text(name, out);
                out.push(':');
                write_within(below, member, out);
            }
            out.push('}');
        }
    }
}

fn write_comma(place: usize, out: &mut String) {
    if place > 0 {
        out.push(',');
    }
}

/// Appends a text as a JSON string (RFC 8785 §3.2.2.2).
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, escaped) = rest.split_at(plain_run(rest.as_bytes()));
        out.push_str(plain);
        let Some(&byte) = escaped.as_bytes().first() else { break };
        write_escape(byte, out);
        rest = &escaped[1..];
    }
    out.push('"');
}

/// How many bytes from the first on stand for themselves in a JSON string.
pub(super) fn plain_run(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * place + special.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    8 * words.len() + tail.iter().take_while(|&&byte| is_plain(byte)).count()
}

/// The high bits of those of eight bytes that do not stand for themselves.
/// Bits above the lowest one may be wrong, because subtractions borrow.
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (EACH << 7)
}

fn write_escape(byte: u8, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        _ => {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 0xF)]));
            return;
        }
    };
    out.push('\\');
    out.push(char::from(short));
}

/// Appends an integer in decimal.
pub fn write_integer(n: i64, out: &mut String) {
    if n < 0 {
        out.push('-');
    }
    // The last digit first; 19 are enough for 2^63.
    let mut digits = ['0'; 19];
    let mut from = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        from -= 1;
        let digit = (rest % 10) as u8;
        digits[from] = char::from(b'0' + digit);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(&digits[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_standard_library_does() {
        for n in [0, 1, -1, 9, 10, -10, 99, 100, i64::MAX, i64::MIN, 1 << 53, -(1 << 53)] {
            let mut out = String::new();
            write_integer(n, &mut out);
            assert_eq!(out, n.to_string());
        }
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        for char in (0..=0x2100_u32).filter_map(char::from_u32) {
            let mut out = String::new();
            write_text(&char.to_string(), &mut out);
            let expected = match char {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\t' => "\\t".to_owned(),
                '\n' => "\\n".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                '\r' => "\\r".to_owned(),
                c if c < ' ' => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            };
            assert_eq!(out, format!("\"{expected}\""));
        }
    }
}
