//! What the reader refuses, where it says so, and its limits.

use std::thread;

use onceseal_core::json::{
    JsonErrorKind, Limits, MAX_DEPTH, Numbers, Value, canonical, read, read_canonical,
};

use JsonErrorKind as Kind;

const UNLIMITED: Limits = Limits { bytes: usize::MAX, depth: usize::MAX, ..Limits::DATA };

fn expected(expected: &'static str) -> Kind {
    Kind::Expected { expected }
}

#[test]
fn each_refusal_names_its_kind_its_byte_and_its_place() {
    let cases: &[(&str, Kind, usize, &str)] = &[
        ("", expected("a value"), 0, ""),
        (" \n", expected("a value"), 2, ""),
        ("[1,]", expected("a value"), 3, "/1"),
        ("[,1]", expected("a value"), 1, "/0"),
        ("[1 2]", expected("',' or ']'"), 3, ""),
        ("[1", expected("',' or ']'"), 2, ""),
        ("[1}", expected("',' or ']'"), 2, ""),
        (r#"{"a":1,}"#, expected("a name in double quotes"), 7, "/#1"),
        (r#"{'a':1}"#, expected("a name in double quotes"), 1, "/#0"),
        (r#"{a:1}"#, expected("a name in double quotes"), 1, "/#0"),
        (r#"{"a" 1}"#, expected("':'"), 5, "/#0"),
        (r#"{"a":}"#, expected("a value"), 5, "/#0"),
        (r#"{"a":1"#, expected("',' or '}'"), 6, ""),
        (r#"{"a":1/**/}"#, expected("',' or '}'"), 6, ""),
        ("tru", expected("true"), 0, ""),
        ("[nul]", expected("null"), 1, "/0"),
        ("TRUE", expected("a value"), 0, ""),
        ("\u{a0}1", expected("a value"), 0, ""),
        ("None", expected("a value"), 0, ""),
        ("[If]", expected("a value"), 1, "/0"),
        ("+1", expected("a value"), 0, ""),
        (".5", expected("a value"), 0, ""),
        ("1.", expected("a digit"), 2, ""),
        ("-", expected("a digit"), 1, ""),
        ("1e", expected("a digit"), 2, ""),
        ("1e+", expected("a digit"), 3, ""),
        ("1e+-1", expected("a digit"), 3, ""),
        ("-.1", expected("a digit"), 1, ""),
        ("1.e1", expected("a digit"), 2, ""),
        ("01", Kind::LeadingZero, 0, ""),
        ("[-00.5]", Kind::LeadingZero, 1, "/0"),
        ("0x1", Kind::TrailingText, 1, ""),
        ("1 2", Kind::TrailingText, 2, ""),
        ("{}{}", Kind::TrailingText, 2, ""),
        ("1\0", Kind::TrailingText, 1, ""),
        ("[NaN]", Kind::NotFinite, 1, "/0"),
        ("Infinity", Kind::NotFinite, 0, ""),
        (r#"{"a":-Infinity}"#, Kind::NotFinite, 5, "/#0"),
        ("[1e400]", Kind::Overflow, 1, "/0"),
        ("-1e400", Kind::Overflow, 0, ""),
        (r#""a"#, expected("a closing quote"), 2, ""),
        (r#""a\"#, expected("an escape and a closing quote"), 2, ""),
        (r#""a\q""#, Kind::BadEscape, 2, ""),
        (r#""\x41""#, Kind::BadEscape, 1, ""),
        (r#""\u12""#, expected("four hexadecimal digits after \\u"), 1, ""),
        (r#""\u+123""#, expected("four hexadecimal digits after \\u"), 1, ""),
        (r#""\u12é""#, expected("four hexadecimal digits after \\u"), 1, ""),
        (r#""\ud800\u12""#, expected("four hexadecimal digits after \\u"), 7, ""),
        (r#""\ud800\n""#, Kind::LoneSurrogate, 1, ""),
        ("\"a\tb\"", Kind::ControlCharacter, 2, ""),
        ("\"a\u{1f}\"", Kind::ControlCharacter, 2, ""),
        ("\u{feff}{}", Kind::ByteOrderMark, 0, ""),
        (r#"{"a":1,"b":2,"a":3}"#, Kind::DuplicateName, 13, "/#2"),
        (r#"[0,{"x":{"a":1,"\u0061":2}}]"#, Kind::DuplicateName, 15, "/1/#0/#1"),
        (r#"{"":1,"":1}"#, Kind::DuplicateName, 6, "/#1"),
    ];
    for &(text, kind, offset, pointer) in cases {
        let error = read(text.as_bytes(), &Limits::DATA).expect_err(text);
        assert_eq!((error.kind, error.offset, error.pointer.as_str()), (kind, offset, pointer), "{text:?}");
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused_where_they_begin() {
    for (bytes, offset) in [
        (&b"\"\xff\""[..], 1),
        (b"\"\xc0\xaf\"", 1),
        (b"\"ab\xe9\"", 3),
        (b"\"\xf4\x90\x80\x80\"", 1),
        (b"\xfe\xff\x00{", 0),
        (b"\"\xe2\x82\"", 1),
    ] {
        let error = read(bytes, &Limits::DATA).expect_err("not UTF-8");
        assert_eq!((error.kind, error.offset), (Kind::NotUtf8, offset));
    }
}

#[test]
fn an_error_never_shows_a_name_or_a_value() {
    let text = r#"{"secret-name": {"secret-name": "secret-value", "secret-name": 1}}"#;
    let error = read(text.as_bytes(), &Limits::ACTION).expect_err("a name twice");
    assert!(!format!("{error} {error:?}").contains("secret"));
    assert_eq!(error.to_string(), "an object has the same name twice: keep one of them (byte 48, at /#0/#1)");
}

#[test]
fn errors_say_what_to_write_instead() {
    let said = |text: &str, numbers| {
        read(text.as_bytes(), &Limits { numbers, ..Limits::ACTION }).expect_err(text).to_string()
    };
    assert_eq!(
        said(r#"{"amount":20.00}"#, Numbers::Integers),
        "numbers with a fraction or an exponent are not accepted here: use minor units or a decimal string (byte 10, at /#0)"
    );
    assert_eq!(
        said("9007199254740992", Numbers::Integers),
        "numbers beyond ±9007199254740991 are not exact everywhere: send this one as text (byte 0)"
    );
    assert_eq!(
        said("18446744073709551615", Numbers::Any),
        "this integer would lose digits: send it as text (byte 0)"
    );
}

#[test]
fn integers_alone_are_accepted_within_2_53_without_fraction_and_exponent() {
    let read = |text: &str| read(text.as_bytes(), &Limits::ACTION).map_err(|error| error.kind);
    for (text, n) in [
        ("0", 0),
        ("-0", 0),
        ("9007199254740991", 9_007_199_254_740_991),
        ("-9007199254740991", -9_007_199_254_740_991),
    ] {
        assert_eq!(read(text), Ok(Value::Integer(n)));
    }
    for text in ["1.0", "1e3", "1E0", "0.5", "-0.0", "0e0", "1e400"] {
        assert_eq!(read(text), Err(Kind::Fraction), "{text}");
    }
    for text in ["9007199254740992", "-9007199254740992", "9223372036854775808", &"9".repeat(5000)] {
        assert_eq!(read(text), Err(Kind::BeyondSafe), "{text}");
    }
}

#[test]
fn decimals_are_accepted_within_2_53_and_integral_ones_become_integers() {
    let limits = Limits { numbers: Numbers::Decimals, ..Limits::ACTION };
    let read = |text: &str| read(text.as_bytes(), &limits).map_err(|error| error.kind);
    for (text, n) in [("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("9007199254740991.0", 9_007_199_254_740_991)] {
        assert_eq!(read(text), Ok(Value::Integer(n)));
    }
    assert_eq!(read("0.1"), Ok(Value::Float(0.1)));
    for text in ["9007199254740992", "9007199254740992.0", "-1e16", "1e308"] {
        assert_eq!(read(text), Err(Kind::BeyondSafe), "{text}");
    }
    assert_eq!(read("1e400"), Err(Kind::Overflow));
}

#[test]
fn every_limit_is_inclusive() {
    let limits = Limits { bytes: 40, depth: 2, members: 3, text_chars: 4, numbers: Numbers::Any };
    let kind = |text: &str| read(text.as_bytes(), &limits).err().map(|error| error.kind);
    assert_eq!(kind(&format!("1{}", " ".repeat(39))), None);
    assert_eq!(kind(&format!("1{}", " ".repeat(40))), Some(Kind::TooLarge { limit: 40 }));
    assert_eq!(kind("[{}]"), None);
    assert_eq!(kind("[[[]]]"), Some(Kind::TooDeep { limit: 2 }));
    assert_eq!(kind(r#"{"a":{"b":[]}}"#), Some(Kind::TooDeep { limit: 2 }));
    assert_eq!(kind("[1,2,3]"), None);
    assert_eq!(kind("[1,2,3,4]"), Some(Kind::TooManyMembers { limit: 3 }));
    assert_eq!(kind(r#"{"a":1,"b":1,"c":1}"#), None);
    assert_eq!(kind(r#"{"a":1,"b":1,"c":1,"d":1}"#), Some(Kind::TooManyMembers { limit: 3 }));
    assert_eq!(kind(r#""€😀\n\u0041""#), None);
    assert_eq!(kind(r#""€😀\n\u0041b""#), Some(Kind::TextTooLong { limit: 4 }));
    assert_eq!(kind(r#"{"abcde":1}"#), Some(Kind::TextTooLong { limit: 4 }));
}

/// Runs on a quarter of the stack that a thread has by default; a build without
/// optimisation takes most of it.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(512 * 1024).spawn(test).expect("a thread");
    assert!(thread.join().is_ok());
}

#[test]
fn ten_megabytes_of_brackets_are_refused_without_using_the_stack() {
    on_a_small_stack(|| {
        for opening in ["[", r#"{"":"#, r#"[{"":"#] {
            let text = opening.repeat(10_000_000 / opening.len());
            let error = read(text.as_bytes(), &UNLIMITED).expect_err("too deep");
            assert_eq!(error.kind, Kind::TooDeep { limit: MAX_DEPTH });
            assert!(error.offset <= MAX_DEPTH * opening.len());
        }
    });
}

#[test]
fn the_deepest_value_is_read_written_cloned_compared_and_dropped_on_a_small_stack() {
    on_a_small_stack(|| {
        let text = format!("{}{}{}", r#"{"a":["#.repeat(MAX_DEPTH / 2), 1, "]}".repeat(MAX_DEPTH / 2));
        let value = read_canonical(&text, &UNLIMITED).expect("the deepest value");
        assert_eq!(value.clone(), value);
        assert_eq!(canonical(&value), text);
    });
}

#[test]
fn stored_text_that_does_not_encode_to_itself_is_refused_at_the_first_difference() {
    assert!(read_canonical(r#"{"a":[1,"é\n"],"b":null}"#, &Limits::ACTION).is_ok());
    for (text, offset) in [
        (r#"{"b":1,"a":2}"#, 2),
        (r#"{"a": 1}"#, 5),
        (" 1", 0),
        ("1\n", 1),
        (r#""\u00e9""#, 1),
        (r#""\/""#, 1),
        (r#""\u000A""#, 2),
        (r#""\u001F""#, 6),
        ("-0", 0),
        ("1e0", 1),
        ("1.50", 3),
        ("1e21", 2),
    ] {
        let error = read_canonical(text, &Limits::DATA).expect_err(text);
        assert_eq!((error.kind, error.offset), (Kind::NotCanonical, offset), "{text}");
    }
    let broken = read_canonical("[1", &Limits::DATA).expect_err("not JSON");
    assert_ne!(broken.kind, Kind::NotCanonical);
}

#[test]
fn a_value_outside_its_one_form_is_written_as_text_that_reads_as_corrupt() {
    for value in [Value::Float(f64::NAN), Value::Float(1e300 * 1e10), Value::Integer(i64::MAX)] {
        assert!(read_canonical(&canonical(&value), &Limits::DATA).is_err(), "{value:?}");
    }
}
