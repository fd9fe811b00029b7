//! Texts for a terminal: escaped, quoted, and lengths of time.

use onceseal::core::json::{self, Object, Value, escape_for_display, is_suspicious};
use onceseal::core::time::Span;

/// The one space that is seen as wide, and passes for two others. The core
/// counts it as readable, as it is in the scripts that use it.
const WIDE_SPACE: char = '\u{3000}';

/// A text as it may be shown: on one line, nothing unseen in it, and no space
/// but the usual one.
pub(crate) fn shown(text: &str) -> String {
    escape_for_display(text).replace(WIDE_SPACE, &WIDE_SPACE.escape_unicode().to_string())
}

/// As much of a text that somebody typed as an error repeats.
const REPEATED: usize = 120;

/// A text as an error repeats it: shown, and cut where it is long.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(REPEATED) {
        None => shown(text),
        Some((at, _)) => format!("{}… ({} characters)", shown(&text[..at]), text.chars().count()),
    }
}

/// A value as JSON on one line, with what is not seen escaped.
pub(crate) fn literal(value: &Value) -> String {
    shown(&json::canonical(value))
}

/// Whether a text has what is shown escaped, or is not in normal form.
pub(crate) fn deceives(text: &str) -> bool {
    is_suspicious(text) || text.contains(WIDE_SPACE)
}

/// Whether any text or member name in a value [`deceives`].
pub(crate) fn value_deceives(value: &Value) -> bool {
    match value {
        Value::Text(text) => deceives(text),
        Value::List(items) => items.iter().any(value_deceives),
        Value::Object(object) => object_deceives(object),
        _ => false,
    }
}

/// The same of an object.
pub(crate) fn object_deceives(object: &Object) -> bool {
    object.iter().any(|(name, member)| deceives(name) || value_deceives(member))
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

    #[test]
    fn no_space_but_the_usual_one_is_shown_as_it_is() {
        let spaces = "\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}";
        for space in spaces.chars() {
            assert_eq!(shown(&format!("a{space}b c")), format!("a{}b c", space.escape_unicode()));
            assert!(deceives(&format!("a{space}b")));
            let mut object = Object::new();
            object.insert(space.to_string(), 1);
            assert!(value_deceives(&Value::List(vec![object.into()])));
        }
        assert!(!deceives("a b"));
        assert_eq!(shown("a\\u{3000}b"), "a\\u{5c}u{3000}b", "what looks like an escape is one");
    }
}
