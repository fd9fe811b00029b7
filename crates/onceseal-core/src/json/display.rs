//! Texts as people see them: which ones could deceive, and how to show them.
//!
//! Invariant: two different texts are never shown as the same text, except
//! where letters merely look alike. Nothing here changes what is stored or
//! hashed.

use std::cmp::Ordering;

use unicode_normalization::is_nfc;

use super::Value;

/// Characters that are not seen, or change how others are seen: general
/// categories Cc, Cf, Zl and Zp; Zs except the space and the ideographic
/// space, which is visibly wide; private use and noncharacters, which have no
/// agreed picture; default-ignorable code points (among them Hangul fillers,
/// variation selectors and tags); and the blank Braille pattern. Unicode 16,
/// sorted.
const UNSEEN: &[(char, char)] = &[
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{200f}'),
    ('\u{2028}', '\u{202f}'),
    ('\u{205f}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{1fffe}', '\u{1ffff}'),
    ('\u{2fffe}', '\u{2ffff}'),
    ('\u{3fffe}', '\u{3ffff}'),
    ('\u{4fffe}', '\u{4ffff}'),
    ('\u{5fffe}', '\u{5ffff}'),
    ('\u{6fffe}', '\u{6ffff}'),
    ('\u{7fffe}', '\u{7ffff}'),
    ('\u{8fffe}', '\u{8ffff}'),
    ('\u{9fffe}', '\u{9ffff}'),
    ('\u{afffe}', '\u{affff}'),
    ('\u{bfffe}', '\u{bffff}'),
    ('\u{cfffe}', '\u{cffff}'),
    ('\u{dfffe}', '\u{e0fff}'),
    ('\u{efffe}', '\u{10ffff}'),
];

/// Whether a text is not in normalization form C, or has characters that are
/// not seen or change how others are seen: control, bidirectional, zero-width
/// and other invisible ones.
///
/// Such a text is accepted; whoever shows it says so beside it.
#[must_use]
pub fn is_suspicious(text: &str) -> bool {
    text.chars().any(is_unseen) || !is_nfc(text)
}

/// Whether any text or member name in a value [`is_suspicious`].
#[must_use]
pub fn is_suspicious_value(value: &Value) -> bool {
    match value {
        Value::Text(text) => is_suspicious(text),
        Value::List(items) => items.iter().any(is_suspicious_value),
        Value::Object(object) => {
            object.iter().any(|(name, member)| is_suspicious(name) || is_suspicious_value(member))
        }
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => false,
    }
}

/// The text with each unseen character written as `\u{XXXX}`, its code point
/// in hexadecimal. A backslash that already stands before `u{` is written in
/// the same way, so that what looks like an escape is one.
#[must_use]
pub fn escape_for_display(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        if is_unseen(char) || text[at..].starts_with("\\u{") {
            out.extend(char.escape_unicode());
        } else {
            out.push(char);
        }
    }
    out
}

fn is_unseen(char: char) -> bool {
    if (' '..='~').contains(&char) {
        return false;
    }
    UNSEEN
        .binary_search_by(|&(first, last)| match (first <= char, char <= last) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, _) => Ordering::Greater,
        })
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unseen_characters_are_those_of_their_unicode_properties() {
        let properties = regex::Regex::new(concat!(
            r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Co}\p{Noncharacter_Code_Point}",
            r"\p{Default_Ignorable_Code_Point}\x{2800}--[\x{20}\x{3000}]]"
        ))
        .expect("a valid pattern");
        for char in '\0'..=char::MAX {
            assert_eq!(is_unseen(char), properties.is_match(char.encode_utf8(&mut [0; 4])), "{char:?}");
        }
    }

    #[test]
    fn readable_texts_of_any_script_are_shown_as_they_are() {
        for text in ["", "pay 20.00 €", "C:\\users\\u", "日本語　住所", "שלום", "Ω≈ç", "e\u{301}"]
        {
            assert_eq!(escape_for_display(text), text);
        }
    }

    #[test]
    fn texts_that_are_not_nfc_are_flagged_and_stay_readable() {
        assert!(is_suspicious("e\u{301}"));
        assert!(is_suspicious("\u{212B}"));
        assert!(!is_suspicious("é Å ½"));
    }

    #[test]
    fn what_looks_like_an_escape_is_one() {
        assert_eq!(escape_for_display("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(escape_for_display("a\\u{202e}b"), "a\\u{5c}u{202e}b");
        assert_eq!(escape_for_display("\\\\u{202e}"), "\\\\u{5c}u{202e}");
    }

    #[test]
    fn a_value_is_flagged_for_a_name_or_text_at_any_depth() {
        let nested = |name: &str, text: &str| {
            let mut object = super::super::Object::new();
            object.insert(name, text);
            Value::List(vec![Value::Null, Value::Object(object)])
        };
        assert!(!is_suspicious_value(&nested("to", "bob")));
        assert!(is_suspicious_value(&nested("to\u{200b}", "bob")));
        assert!(is_suspicious_value(&nested("to", "bob\u{202e}")));
    }

    #[test]
    fn ua_073_zero_width_and_bidi_characters_are_shown_escaped_and_flagged() {
        for (text, shown) in [
            ("rm -rf ./tm\u{200b}p", "rm -rf ./tm\\u{200b}p"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("ok\r\n\u{1b}[2K", "ok\\u{d}\\u{a}\\u{1b}[2K"),
            ("a\u{3164}b\u{2800}c", "a\\u{3164}b\\u{2800}c"),
            ("hi\u{e0041}\u{fe0f}", "hi\\u{e0041}\\u{fe0f}"),
            ("a\u{2028}b\u{feff}", "a\\u{2028}b\\u{feff}"),
        ] {
            assert_eq!(escape_for_display(text), shown);
            assert!(is_suspicious(text), "{shown}");
        }
    }
}
