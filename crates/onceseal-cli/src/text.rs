//! Texts for a terminal: escaped, quoted, and lengths of time.

use onceseal::core::json::{self, Value, escape_for_display};
use onceseal::core::time::Span;

/// A text as it may be shown: on one line, nothing unseen in it.
pub(crate) fn shown(text: &str) -> String {
    escape_for_display(text)
}

/// A value as JSON on one line, with what is not seen escaped.
pub(crate) fn literal(value: &Value) -> String {
    escape_for_display(&json::canonical(value))
}

/// A text as one word of a shell command.
pub(crate) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How long, in one unit: `4s`, `12m`, `3h`, `9d`.
pub(crate) fn age(span: Span) -> String {
    let seconds = span.as_micros() / 1_000_000;
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `1 event`, `2 events`.
pub(crate) fn counted(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_shell_command_cannot_end_early() {
        assert_eq!(shell("refund:txn_1"), "refund:txn_1");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's $(rm)"), r"'it'\''s $(rm)'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn an_age_is_one_number_and_one_unit() {
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_800, "2d")]
        {
            assert_eq!(age(Span::seconds(seconds)), text);
        }
    }

    #[test]
    fn ua_073_what_is_not_seen_is_escaped_in_literals_too() {
        assert_eq!(literal(&Value::from("a\u{202e}b\n")), "\"a\\u{202e}b\\n\"");
        assert_eq!(literal(&Value::from("a\\u{202e}")), "\"a\\\\u{5c}u{202e}\"");
    }
}
