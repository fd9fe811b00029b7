use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Value, PolicyError> {
    Document::read(text.as_bytes()).map(|document| document.value)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Value::Object(Object::from_members(members).expect("distinct names"))
}

#[test]
fn a_document_becomes_plain_data() {
    let text = "# a comment\n---\nb: [1, two, null, {c: true}]\na:\n  - x: 'one'\n    y: \"2\"\n  -\nlong: |\n  1\n  2\n";
    let list = Value::List(vec![
        Value::Integer(1),
        Value::from("two"),
        Value::Null,
        object([("c", Value::Bool(true))]),
    ]);
    let a = Value::List(vec![object([("x", Value::from("one")), ("y", Value::from("2"))]), Value::Null]);
    assert_eq!(read(text), Ok(object([("a", a), ("b", list), ("long", Value::from("1\n2\n"))])));
    for empty in ["", "\n\n", "# nothing\n", "---\n", "~"] {
        assert_eq!(read(empty), Ok(Value::Null), "{empty:?}");
    }
}

#[test]
fn what_has_two_meanings_is_refused_where_it_stands() {
    let sentences: Vec<String> = [
        "a: &x 1",
        "a: &x [1]",
        "a: {&x b: 1}",
        "a: 1\nb: *a",
        "*a",
        "a: &x 1\nb: *x",
        "a: !!str 1",
        "a: !mine {b: 1}",
        "a: ! 1",
        "a: !!binary aGk=",
        "b: {<<: {a: 1}}",
        "b:\n  <<: {a: 1}",
        "a: 1\n---\nb: 2",
        "a: 1\n...\nb: 2",
        "%YAML 1.1\n---\na: 1",
        "%TAG ! tag:x,2000:\n---\na: 1",
        "a: 1\nb: 2\n'a': 3",
        "a: {\"b\": 1, b: 2}",
        "1: a",
        "true: a",
        "~: a",
        ": a",
        "1.5: a",
        "x:\n  ? [a]\n  : 1",
        "? {a: 1}\n: 1",
        "[[a]: 1]",
        "a: 1.0",
        "a: [1e3]",
        "a: .nan",
        "a: 9007199254740992",
        "a: \"x\\0\"",
        "a:\n\t- b",
        "a: [1, 2",
        "a: 'x",
        "a: b: c",
        "a: \"\\ud800\"",
        "@a",
    ]
    .map(|text| match read(text) {
        Ok(value) => format!("{text:?}: accepted as {value:?}"),
        Err(error) => format!("{text:?}\n  {error}"),
    })
    .into();
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn quoted_keys_and_quoted_values_are_always_text() {
    let text = "'1': '1'\n\"true\": \"null\"\n'<<': '&x *y !z'\n'': ''\n";
    let expected = object([
        ("1", Value::from("1")),
        ("true", Value::from("null")),
        ("<<", Value::from("&x *y !z")),
        ("", Value::from("")),
    ]);
    assert_eq!(read(text), Ok(expected));
}

#[test]
fn a_byte_order_mark_and_other_encodings_are_refused() {
    for file in [&b"\xEF\xBB\xBFa: 1"[..], b"a: \xFF", b"a: \xED\xA0\x80", b"\xFF\xFEa\0"] {
        let error = Document::read(file).expect_err("not accepted");
        assert!(matches!(error.kind, PolicyErrorKind::Encoding(_)), "{error}");
    }
}

#[test]
fn positions_are_those_of_keys_and_items() {
    let text =
        "actions:\n  \"a.b\":\n    rules:\n      - when: {é_eq: 1, x_eq: 2}\n      -   decision: deny\n";
    let document = Document::read(text.as_bytes()).expect("valid");
    let entry = Path::default().member("actions").member("a.b");
    let rules = entry.member("rules");
    for (path, line, column) in [
        (Path::default(), 1, 1),
        (entry.clone(), 2, 3),
        (rules.clone(), 3, 5),
        (rules.item(0).member("when").member("x_eq"), 4, 25),
        (rules.item(1), 5, 11),
        (rules.item(1).member("decision"), 5, 11),
        (rules.item(7), 3, 5),
        (entry.item(0), 2, 3),
    ] {
        assert_eq!(document.position(&path), Position { line, column }, "{path}");
    }
}

#[test]
fn a_section_that_was_taken_out_is_gone() {
    let mut document = Document::read(b"a: 1\nsettings: {x: 2}\n").expect("valid");
    assert_eq!(document.take("settings"), Some(object([("x", Value::Integer(2))])));
    assert_eq!(document.take("settings"), None);
    assert_eq!(document.value(), &object([("a", Value::Integer(1))]));
    assert_eq!(document.position(&Path::default().member("settings")), Position { line: 2, column: 1 });
}

#[test]
fn sixty_four_levels_are_read_and_one_more_is_not() {
    fn flow(depth: usize) -> String {
        "[".repeat(depth) + &"]".repeat(depth)
    }
    fn block(depth: usize) -> String {
        (0..depth).map(|i| format!("{}a:\n", " ".repeat(i))).collect()
    }
    fn mixed(depth: usize) -> String {
        "- ".repeat(depth / 2) + &flow(depth - depth / 2)
    }
    for document in [flow, block, mixed] {
        assert!(read(&document(POLICY_DEPTH)).is_ok());
        assert_eq!(
            read(&document(POLICY_DEPTH + 1)).map_err(|error| error.kind),
            Err(PolicyErrorKind::TooDeep)
        );
    }
}

/// Every megabyte is answered in time that grows with its length only; a
/// quadratic reader needs minutes for any of them.
#[test]
fn hostile_files_are_answered_quickly() {
    let of = |unit: &str| unit.repeat(POLICY_BYTES / unit.len());
    let started = Instant::now();
    for unit in [
        "[",
        "{",
        "- ",
        "? ",
        "&a ",
        "!a ",
        "*a ",
        "[a,",
        "a,",
        "\"",
        "\n",
        "#\n",
        "a\n",
        " \n",
        "---\n",
        "...\n",
        "%a\n",
        ":",
        ": ",
        "-",
        "?\n",
        "\t",
        "\0",
        "\\",
        "'",
        "|\n",
        ">\n",
        "a: b\r\n",
        "\u{1F600}",
        "\"a\": 1\n",
        "[]",
        "{}",
        "]",
        "}",
        "- - ",
        "- a: ",
        "~",
        "\u{85}",
        "a: |\n b\n",
        "- {a: 1}\n",
    ] {
        let _ = Document::read(of(unit).as_bytes());
        let _ = Document::read(format!("[{}", &of(unit)[..POLICY_BYTES - 4]).as_bytes());
    }
    let keys: String = (0..POLICY_BYTES / 10).map(|i| format!("k{i:06}: \n")).collect();
    assert!(Document::read(keys.as_bytes()).is_ok());
    let ladder: String = (0..1400).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert_eq!(read(&ladder).map_err(|error| error.kind), Err(PolicyErrorKind::TooDeep));
    for (unit, bytes) in [("[", 10 << 20), ("a: 1\n", POLICY_BYTES + 5)] {
        let error = Document::read(unit.repeat(bytes / unit.len()).as_bytes()).expect_err("too long");
        assert!(matches!(error.kind, PolicyErrorKind::TooLarge { .. }), "{error}");
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(120), "{took:?}");
}

#[test]
fn a_name_becomes_a_key_that_reads_as_that_name() {
    for (name, expected) in [
        ("stripe.refund", "stripe.refund"),
        ("refund", "refund"),
        ("on", "\"on\""),
        ("true", "\"true\""),
        ("a b", "\"a b\""),
        ("1", "\"1\""),
        ("a: b", "\"a: b\""),
        ("a\"\\\n\u{202e}", "\"a\\\"\\\\\\u000A\\u202E\""),
    ] {
        assert_eq!(key(name), expected);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::read(&bytes);
    }

    #[test]
    fn any_yaml_like_text_is_answered(text in "([\\[\\]{}:,?&*!|>'\"%@#~<. \n\t-]|[ab01]|: |- |\n  |---\n){0,80}") {
        let _ = Document::read(text.as_bytes());
    }

    #[test]
    fn a_name_as_a_key_reads_back(name in "\\PC{1,20}|[\\x01-\u{10FFFF}&&[^\u{85}]]{1,8}") {
        let text = format!("{}: 1\n", key(&name));
        prop_assert_eq!(read(&text), Ok(object([(name.as_str(), Value::Integer(1))])));
    }
}
