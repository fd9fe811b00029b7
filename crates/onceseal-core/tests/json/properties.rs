//! What holds for all values and all texts.

use onceseal_core::json::{
    Limits, Object, Value, canonical, compare_names, escape_for_display, read, read_canonical,
};
use proptest::prelude::*;

use crate::messy::Random;

const ANY: Limits = Limits::DATA;

fn char() -> impl Strategy<Value = char> {
    prop_oneof![
        any::<char>().prop_filter("U+0000 is no text", |char| *char != '\0'),
        prop::char::range('\u{1}', '~'),
        prop::char::range('\u{d000}', '\u{ffff}'),
        prop::char::range('\u{10000}', char::MAX),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(char(), 0..12).prop_map(String::from_iter)
}

fn number() -> impl Strategy<Value = Value> {
    let any_double = any::<u64>().prop_map(f64::from_bits);
    let rounded = any::<i64>().prop_map(|n| n as f64);
    let money = (any::<i32>(), 0..5_i32).prop_map(|(n, scale)| f64::from(n) / 10_f64.powi(scale));
    prop_oneof![any_double, rounded, money].prop_filter_map("a number is finite", Value::number)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        text().prop_map(Value::Text),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec((text(), inner), 0..6).prop_map(|members| {
                let mut object = Object::new();
                for (name, value) in members {
                    object.insert(name, value);
                }
                Value::Object(object)
            }),
        ]
    })
}

/// Pieces of text that mean something to a JSON reader.
const PIECES: &str = r#"{ } [ ] : , " \ \u \" d800 dc00 0000 \u0000 true null NaN \u{ \u{202e} - 0 1 . e + é 😀 "a": 9007199254740993 1e400"#;

fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<_> = PIECES.split(' ').chain([" ", "\n"]).collect();
    prop_oneof![prop::sample::select(pieces).prop_map(str::to_owned), text()]
}

/// Text that is nearly JSON: a value with one part replaced by a piece.
fn nearly_json() -> impl Strategy<Value = String> {
    let part = (any::<prop::sample::Index>(), 0..4_usize);
    (value(), any::<u64>(), part, piece()).prop_map(|(value, origin, (start, length), piece)| {
        let spelled: Vec<char> = Random(origin).spell(&value).chars().collect();
        let (before, rest) = spelled.split_at(start.index(spelled.len() + 1));
        let after = &rest[length.min(rest.len())..];
        before.iter().copied().chain(piece.chars()).chain(after.iter().copied()).collect()
    })
}

fn oracle(text: &str) -> Result<String, serde_json::Error> {
    serde_json_canonicalizer::to_string(&serde_json::from_str::<serde_json::Value>(text)?)
}

proptest! {
    #[test]
    fn a_value_is_read_back_from_its_canonical_text(value in value()) {
        prop_assert_eq!(read(canonical(&value).as_bytes(), &ANY), Ok(value));
    }

    #[test]
    fn canonical_text_is_a_fixed_point(value in value()) {
        prop_assert!(read_canonical(&canonical(&value), &ANY).is_ok());
    }

    #[test]
    fn every_spelling_of_a_value_has_its_canonical_text(value in value(), origin in any::<u64>()) {
        let spelled = Random(origin).spell(&value);
        prop_assert_eq!(read(spelled.as_bytes(), &ANY), Ok(value));
    }

    #[test]
    fn names_are_in_the_order_of_their_utf_16_code_units(a in text(), b in text()) {
        prop_assert_eq!(compare_names(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn names_with_a_common_start_are_in_that_order_too(start in text(), a in text(), b in text()) {
        let (a, b) = (start.clone() + &a, start + &b);
        prop_assert_eq!(compare_names(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn the_reader_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = read(&bytes, &ANY) {
            prop_assert!(read_canonical(&canonical(&value), &ANY).is_ok());
        }
    }

    #[test]
    fn what_is_accepted_is_json_to_another_reader_with_the_same_value(text in nearly_json()) {
        if let Ok(value) = read(text.as_bytes(), &ANY) {
            prop_assert_eq!(oracle(&text).ok(), Some(canonical(&value)));
        }
    }

    #[test]
    fn another_implementation_writes_the_same_text(value in value(), origin in any::<u64>()) {
        let spelled = Random(origin).spell(&value);
        prop_assert_eq!(oracle(&spelled).ok(), Some(canonical(&value)));
    }

    #[test]
    fn an_offset_is_within_the_text_and_on_a_character(text in nearly_json()) {
        if let Err(error) = read(text.as_bytes(), &ANY) {
            prop_assert!(text.is_char_boundary(error.offset), "{error:?}");
        }
    }

    #[test]
    fn what_is_shown_says_which_text_it_is(pieces in prop::collection::vec(piece(), 0..8)) {
        let text = pieces.concat();
        let shown = escape_for_display(&text);
        let escape = regex::Regex::new(r"\\u\{([0-9a-f]+)\}").expect("a valid pattern");
        let back = escape.replace_all(&shown, |found: &regex::Captures<'_>| {
            let code = u32::from_str_radix(&found[1], 16).expect("hexadecimal");
            char::from_u32(code).expect("a character").to_string()
        });
        prop_assert_eq!(&back, &text);
        prop_assert!(!shown.chars().any(|char| char.is_control()));
    }
}
