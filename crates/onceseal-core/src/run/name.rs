//! Names of runs, of what is asked of them, and of their parts.

/// The longest name, in bytes.
const LONGEST: usize = 128;

/// Whether a text is a name of a change, a kind, a state or a gate: lower-case
/// ASCII letters, digits and hyphens, 1 to 128, both ends a letter or a digit.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    fits(text, is_end, |byte| is_end(byte) || byte == b'-')
}

/// Whether a text is a request id: ASCII letters, digits, `.`, `_`, `:` and `-`,
/// 1 to 128, both ends a letter or a digit.
#[must_use]
pub fn is_request(text: &str) -> bool {
    fits(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte),
    )
}

fn fits(text: &str, is_end: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    (1..=LONGEST).contains(&bytes.len())
        && [bytes.first(), bytes.last()].into_iter().flatten().all(|byte| is_end(*byte))
        && bytes.iter().all(|byte| is_inner(*byte))
}
