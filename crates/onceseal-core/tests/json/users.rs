//! Public reports by users of such systems, as far as reading and writing go.

use std::collections::HashSet;

use onceseal_core::json::{
    JsonErrorKind, Limits, Numbers, canonical, escape_for_display, is_suspicious_value, read, read_canonical,
};

fn refusal(text: &str, limits: &Limits) -> (JsonErrorKind, String) {
    let error = read(text.as_bytes(), limits).expect_err(text);
    (error.kind, error.pointer)
}

#[test]
fn ua_040_absent_null_empty_object_and_empty_list_stay_different() {
    let texts = [r#"{}"#, r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":[]}"#, r#"{"a":""}"#, r#"{"a":[null]}"#];
    let written: HashSet<_> = texts
        .iter()
        .map(|text| canonical(&read(text.as_bytes(), &Limits::ACTION).expect("an action")))
        .collect();
    assert_eq!(written.len(), texts.len());
}

#[test]
fn ua_077_what_is_shown_comes_from_the_canonical_text() {
    // Two spellings of one command with a hidden zero-width space.
    let escaped = r#"{ "cmd": "rm -rf ./tm\u200Bp" }"#;
    let plain = "{\"cmd\":\"rm -rf ./tm\u{200b}p\"}";
    let stored = canonical(&read(escaped.as_bytes(), &Limits::ACTION).expect("an action"));
    assert_eq!(stored, plain);
    let value = read_canonical(&stored, &Limits::ACTION).expect("stored text");
    assert!(is_suspicious_value(&value));
    assert_eq!(escape_for_display(&stored), r#"{"cmd":"rm -rf ./tm\u{200b}p"}"#);
}

#[test]
fn ua_115_u_0000_is_refused_with_its_path() {
    for limits in [Limits::ACTION, Limits::RESULT, Limits::DATA] {
        assert_eq!(refusal(r#"{"a":1,"b":["x","y\u0000"]}"#, &limits), (JsonErrorKind::Nul, "/#1/1".into()));
        assert_eq!(refusal(r#"{"a":1,"\u0000":2}"#, &limits), (JsonErrorKind::Nul, "/#1".into()));
        assert_eq!(refusal("{\"a\":\"\0\"}", &limits), (JsonErrorKind::Nul, "/#0".into()));
    }
}

#[test]
fn ua_116_lone_surrogates_are_refused_with_their_path() {
    let lone = |pointer: &str| (JsonErrorKind::LoneSurrogate, pointer.to_owned());
    for limits in [Limits::ACTION, Limits::RESULT, Limits::DATA] {
        assert_eq!(refusal(r#"{"a":{"b":"\ud83d"}}"#, &limits), lone("/#0/#0"));
        assert_eq!(refusal(r#"["\ude00\ud83d"]"#, &limits), lone("/0"));
        assert_eq!(refusal(r#"["\ud83dx"]"#, &limits), lone("/0"));
        assert_eq!(refusal(r#"["\ud83d\u0041"]"#, &limits), lone("/0"));
        assert_eq!(refusal(r#"{"a":1,"\udfff":2}"#, &limits), lone("/#1"));
    }
    let encoded = read(b"[\"\xED\xA0\x80\"]", &Limits::ACTION).expect_err("an encoded surrogate");
    assert_eq!((encoded.kind, encoded.offset), (JsonErrorKind::NotUtf8, 2));
}

#[test]
fn ua_139_a_64_bit_integer_is_refused_rather_than_changed() {
    let text = r#"{"id":18446744073709551615}"#;
    assert_eq!(refusal(text, &Limits::ACTION), (JsonErrorKind::BeyondSafe, "/#0".into()));
    let decimals = Limits { numbers: Numbers::Decimals, ..Limits::ACTION };
    assert_eq!(refusal(text, &decimals), (JsonErrorKind::BeyondSafe, "/#0".into()));
    for limits in [Limits::RESULT, Limits::DATA] {
        assert_eq!(refusal(text, &limits), (JsonErrorKind::Inexact, "/#0".into()));
        assert_eq!(refusal("9007199254740993", &limits).0, JsonErrorKind::Inexact);
        // The double nearest to it has one text, and that one passes unchanged.
        assert!(read_canonical("18446744073709552000", &limits).is_ok());
    }
}

#[test]
fn ua_140_edges_of_numbers_and_names() {
    let written = |text: &str| read(text.as_bytes(), &Limits::DATA).map(|value| canonical(&value));
    for (text, expected) in [
        ("-0", "0"),
        ("-0.0", "0"),
        ("1e21", "1e+21"),
        ("1E-7", "1e-7"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
        (r#"{"\uffee":1,"\ud83d\ude00":2}"#, "{\"😀\":2,\"\u{ffee}\":1}"),
    ] {
        assert_eq!(written(text).as_deref(), Ok(expected));
    }
    assert_eq!(refusal(r#""\ud800""#, &Limits::DATA).0, JsonErrorKind::LoneSurrogate);
    assert_eq!(refusal("1e400", &Limits::DATA).0, JsonErrorKind::Overflow);
}

#[test]
fn ua_142_pretty_and_compact_texts_have_one_canonical_text() {
    let pretty = "{\r\n  \"b\" : [ 1 , 2 ] ,\n\t\"a\" : \"\\u0041\"\n}\n";
    let compact = r#"{"b":[1,2],"a":"A"}"#;
    let written = |text: &str| canonical(&read(text.as_bytes(), &Limits::ACTION).expect("an action"));
    assert_eq!(written(pretty), written(compact));
    assert_eq!(written(pretty), r#"{"a":"A","b":[1,2]}"#);
}
