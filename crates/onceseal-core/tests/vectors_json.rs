//! The JSON cases of the three systems that Onceseal unites, all of them.
//!
//! A case is run as it stands, or it is listed below as adapted, with what
//! happens here instead and why. An adaptation that is not needed, or has no
//! case, fails the test.

use std::collections::HashMap;
use std::fmt::Write;

use onceseal_core::json::{JsonError, JsonErrorKind, Limits, Value, canonical, read, read_canonical};
use serde_json::Value as Vector;
use sha2::{Digest, Sha256};

/// What reading a text comes to.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Canonical(String),
    Accepted,
    Refused,
}

/// One case as the reference has it; without a text if it is no JSON text.
struct Case {
    id: String,
    text: Option<Vec<u8>>,
    reference: Outcome,
}

/// A case that goes differently here: its id; what is read instead, if not its
/// own text; the canonical text, `accepted`, or the refusal; and why.
type Adapted = (&'static str, Option<&'static str>, &'static str, &'static str);

const NUL: &str = "U+0000 is refused, because not every store can keep it";
const RFC_8785: &str = "numbers are written as RFC 8785 says";
const UTF_16: &str = "names are ordered by UTF-16 code units (RFC 8785)";
const BOUNDED: &str = "integers beyond ±(2^53−1) are refused";
const NOT_TEXT: &str = "a host value that no JSON text can say; its nearest spelling is refused";
const SAID: &str = "a host value; the JSON text that says the same is read";
const UNDEFINED: &str = "JSON has no undefined, function, symbol or prototype; its canonical text is read";
const OTHER_FIELD: &str = "the refusal is of another field of the action; the arguments are accepted";

fn vectors(file: &str) -> Vector {
    serde_json::from_slice(&bytes(file)).expect("a vector file is JSON")
}

fn bytes(file: &str) -> Vec<u8> {
    let path = format!("{}/../../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cases<'v>(section: &'v Vector, case: impl Fn(&'v Vector) -> Case) -> Vec<Case> {
    section.as_array().expect("a section is a list").iter().map(case).collect()
}

fn text(case: &Vector, member: &str) -> String {
    case[member].as_str().unwrap_or_else(|| panic!("{member} is text in {case}")).to_owned()
}

fn accepted(case: &Vector, member: &str) -> Outcome {
    let yes = case[member].as_bool().unwrap_or_else(|| panic!("{member} is boolean in {case}"));
    if yes { Outcome::Accepted } else { Outcome::Refused }
}

/// Runs a section: every case as the reference has it, or as adapted.
fn run(section: &str, read: impl Fn(&[u8]) -> Result<Value, JsonError>, cases: &[Case], adapted: &[Adapted]) {
    let mut left: HashMap<&str, &Adapted> = adapted.iter().map(|entry| (entry.0, entry)).collect();
    assert_eq!(left.len(), adapted.len(), "{section}: an adaptation is listed twice");
    let mut reasons = String::new();
    for case in cases {
        let Some(&(id, instead, expected, why)) = left.remove(case.id.as_str()) else {
            let text = case.text.as_ref().unwrap_or_else(|| panic!("{section}: {} has no text", case.id));
            assert!(agrees(&read(text), &case.reference), "{section}: {}: {:?}", case.id, read(text));
            continue;
        };
        if let Some(text) = case.text.as_ref().filter(|_| instead.is_none()) {
            assert!(!agrees(&read(text), &case.reference), "{section}: {id} needs no adaptation");
        }
        let text = instead.map(|text| text.as_bytes().to_vec()).or_else(|| case.text.clone());
        let here = match read(&text.expect("an adapted case has a text")) {
            Ok(_) if expected == "accepted" => expected.to_owned(),
            Ok(value) => canonical(&value),
            Err(error) => format!("{:?}", error.kind),
        };
        assert_eq!(here, expected, "{section}: {id}");
        writeln!(reasons, "  adapted {id}: {here}, because {why}").expect("a string takes it");
    }
    assert!(left.is_empty(), "{section}: no such case: {:?}", left.keys());
    let passed = cases.len() - adapted.len();
    println!("{section}: {} cases, {passed} passed, {} adapted\n{reasons}", cases.len(), adapted.len());
}

fn agrees(here: &Result<Value, JsonError>, reference: &Outcome) -> bool {
    match (here, reference) {
        (Ok(value), Outcome::Canonical(text)) => canonical(value) == *text,
        (Ok(_), Outcome::Accepted) | (Err(_), Outcome::Refused) => true,
        _ => false,
    }
}

fn result(bytes: &[u8]) -> Result<Value, JsonError> {
    read(bytes, &Limits::RESULT)
}

#[test]
fn canonical_json_accept() {
    let operations = vectors("operations.json");
    let cases = cases(&operations["canonical_json_accept"], |case| {
        let canonical = text(case, "canonical");
        assert_eq!(hex(canonical.as_bytes()), text(case, "canonical_utf8_hex"));
        assert_eq!(hex(&Sha256::digest(&canonical)), text(case, "sha256"));
        let json = text(case, "json_text");
        Case { id: json.clone(), text: Some(json.into_bytes()), reference: Outcome::Canonical(canonical) }
    });
    run(
        "canonical_json_accept",
        result,
        &cases,
        &[
            ("1.0", None, "1", RFC_8785),
            ("1E+2", None, "100", RFC_8785),
            ("1e15", None, "1000000000000000", RFC_8785),
            ("1e16", None, "10000000000000000", RFC_8785),
            ("123456789012345680.0", None, "123456789012345680", RFC_8785),
            ("0.00001", None, "0.00001", RFC_8785),
            (r#""\u0000\u001f\b\t\n\f\r\u000b""#, None, "Nul", NUL),
            (
                r#"{"\u00e9":1,"z":2,"\ud83d\ude00":3,"\uffee":4}"#,
                None,
                "{\"z\":2,\"é\":1,\"😀\":3,\"\u{ffee}\":4}",
                UTF_16,
            ),
        ],
    );
}

#[test]
fn canonical_json_reject() {
    let operations = vectors("operations.json");
    let cases = cases(&operations["canonical_json_reject"], |case| Case {
        id: text(case, "why"),
        text: case["json_text"].as_str().map(|text| text.as_bytes().to_vec()),
        reference: Outcome::Refused,
    });
    let adapted = [
        // An integer that is exact as a double has one canonical text.
        ("int above safe", None, "9007199254740992", "2^53 is what its double is written as"),
        ("int below safe", None, "-9007199254740992", "−2^53 is what its double is written as"),
        ("Infinity", Some("Infinity"), "NotFinite", NOT_TEXT),
        ("tuple", Some("(1,2)"), "Expected { expected: \"a value\" }", NOT_TEXT),
        ("bytes", Some(r#"b"x""#), "Expected { expected: \"a value\" }", NOT_TEXT),
        ("set", Some(r#"{"x"}"#), "Expected { expected: \"':'\" }", NOT_TEXT),
        ("non-string key", Some("{1:2}"), "Expected { expected: \"a name in double quotes\" }", NOT_TEXT),
    ];
    run("canonical_json_reject", result, &cases, &adapted);
    let integers = Limits { numbers: onceseal_core::json::Numbers::Integers, ..Limits::RESULT };
    for case in cases.iter().filter_map(|case| case.text.as_ref()) {
        assert!(read(case, &integers).is_err(), "an action refuses all of them");
    }
}

/// A text that a vector file describes instead of holding it.
fn generated(generator: &Vector) -> String {
    let number = |member: &str| {
        let n = generator[member].as_u64().unwrap_or_else(|| panic!("{member} in {generator}"));
        usize::try_from(n).expect("a length")
    };
    let leaf =
        || if generator["innermost_empty"] == true { String::new() } else { generator["leaf"].to_string() };
    match generator["kind"].as_str().expect("a kind") {
        "nest_array" => {
            let depth = number("containers");
            format!("{}{}{}", "[".repeat(depth), leaf(), "]".repeat(depth))
        }
        "nest_object" => {
            let depth = number("containers");
            let outer = r#"{"a":"#.repeat(depth - 1);
            let inner = if leaf().is_empty() { "{}".to_owned() } else { format!("{{\"a\":{}}}", leaf()) };
            format!("{outer}{inner}{}", "}".repeat(depth - 1))
        }
        "string_x" => format!("\"{}\"", "x".repeat(number("chars"))),
        "text" => text(generator, "value"),
        "object_a_string_x" => format!("{{\"a\":\"{}\"}}", "x".repeat(number("total_bytes") - 8)),
        "object_a_string_eacute" => format!("{{\"a\":\"{}\"}}", "é".repeat((number("total_bytes") - 8) / 2)),
        "object_a_digit_9" => format!("{{\"a\":{}}}", "9".repeat(number("digits"))),
        other => panic!("unknown generator {other}"),
    }
}

#[test]
fn json_limits() {
    let operations = vectors("operations.json");
    let section = |outcome: &'static str| {
        cases(&operations["json_limits"], move |case| {
            let text = generated(&case["generator"]);
            assert_eq!(case["text_bytes"].as_u64(), Some(text.len() as u64));
            Case {
                id: self::text(case, "why"),
                text: Some(text.into_bytes()),
                reference: accepted(case, outcome),
            }
        })
    };
    run("json_limits (text)", result, &section("strict_text_accepts"), &[]);
    let unbounded = |bytes: &[u8]| read(bytes, &Limits { bytes: usize::MAX, ..Limits::RESULT });
    run(
        "json_limits (value)",
        unbounded,
        &section("domain_accepts"),
        &[(
            "33 arrays, innermost empty",
            None,
            "TooDeep { limit: 32 }",
            "one reader has one depth: lists and objects that are open at once, empty or not",
        )],
    );
}

#[test]
fn strict_json() {
    let operations = vectors("operations.json");
    let stored: Vec<Vector> = operations["strict_json"].as_array().expect("a list").clone();
    let texts = Vector::Array(stored.iter().filter(|case| case["bytes_hex"].is_null()).cloned().collect());
    let case_bytes = |case: &Vector| match (&case["generator"], &case["bytes_hex"]) {
        (Vector::Null, Vector::Null) => text(case, "text").into_bytes(),
        (Vector::Null, _) => unhex(&text(case, "bytes_hex")),
        (generator, _) => generated(generator).into_bytes(),
    };
    let section = |from: &Vector, outcome: &'static str| {
        cases(from, |case| Case {
            id: text(case, "name"),
            text: Some(case_bytes(case)),
            reference: accepted(case, outcome),
        })
    };
    let nul = [("escaped NUL", None, "Nul", NUL)];
    run("strict_json (parse)", result, &section(&texts, "stored_strict_parse"), &nul);
    run("strict_json (file)", result, &section(&operations["strict_json"], "fixture_bytes_parse"), &nul);
    let canonical_object = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).expect("a stored text");
        let value = read_canonical(&text, &Limits::RESULT)?;
        // That a root is an object is its caller's rule, so it is applied here.
        let not_object = JsonErrorKind::Expected { expected: "an object" };
        let error = JsonError { kind: not_object, offset: 0, pointer: String::new() };
        value.as_object().cloned().map(Value::Object).ok_or(error)
    };
    run("strict_json (canonical)", canonical_object, &section(&texts, "stored_canonical_object"), &nul);
}

#[test]
fn canonical_json_of_runs() {
    let runs = vectors("runs.json");
    let cases = cases(&runs["canonicalJson"]["cases"], |case| Case {
        id: text(case, "name"),
        text: (!case["input"].is_null()).then(|| case["input"].to_string().into_bytes()),
        reference: case["canonical"].as_str().map_or(Outcome::Refused, |text| {
            assert_eq!(hex(&Sha256::digest(text)), self::text(case, "sha256"));
            Outcome::Canonical(text.to_owned())
        }),
    });
    let no_null = "NaN and infinities are refused, not written as null";
    run(
        "canonicalJson",
        result,
        &cases,
        &[
            ("string escapes", None, "Nul", NUL),
            ("undefined member dropped", Some(r#"{"b":1}"#), r#"{"b":1}"#, UNDEFINED),
            ("undefined element becomes null", Some("[null]"), "[null]", UNDEFINED),
            ("NaN", Some("NaN"), "NotFinite", no_null),
            ("Infinity member", Some(r#"{"a":Infinity,"b":-Infinity}"#), "NotFinite", no_null),
            ("negative zero", Some("-0"), "0", SAID),
            ("function member becomes null, not dropped", Some(r#"{"a":null}"#), r#"{"a":null}"#, UNDEFINED),
            ("date loses its value", Some("{}"), "{}", UNDEFINED),
            ("toJSON ignored", Some(r#"{"toJSON":null,"a":2}"#), r#"{"a":2,"toJSON":null}"#, UNDEFINED),
            ("boxed string", Some(r#"{"1":"b","0":"a"}"#), r#"{"0":"a","1":"b"}"#, UNDEFINED),
            ("bigint throws", Some("10n"), "TrailingText", NOT_TEXT),
            ("symbol keys ignored", Some(r#"{"a":1}"#), r#"{"a":1}"#, UNDEFINED),
            ("prototype members ignored", Some("{}"), "{}", UNDEFINED),
        ],
    );
}

#[test]
fn arguments_of_action_hash() {
    let effects = vectors("approvals-effects.json");
    let cases = cases(&effects["action_hash"], |case| Case {
        id: text(case, "id"),
        text: case["input"]["arguments_json"].as_str().map(|text| text.as_bytes().to_vec()),
        reference: case["expect"]["canonical"].as_str().map_or(Outcome::Refused, |action| {
            let from = action.strip_prefix("{\"arguments\":").expect("arguments come first");
            Outcome::Canonical(
                from[..from.rfind(",\"environment\":").expect("then the environment")].to_owned(),
            )
        }),
    });
    let value = "Expected { expected: \"a value\" }";
    let comma = "Expected { expected: \"',' or '}'\" }";
    run(
        "action_hash (arguments)",
        |bytes| read(bytes, &Limits::ACTION),
        &cases,
        &[
            ("ah-025-int-2e53", None, "BeyondSafe", BOUNDED),
            ("ah-026-int64-max", None, "BeyondSafe", BOUNDED),
            ("ah-027-int64-overflow", None, "BeyondSafe", BOUNDED),
            ("ah-028-uint64-overflow", None, "BeyondSafe", BOUNDED),
            ("ah-030-big-negative", None, "BeyondSafe", BOUNDED),
            ("ah-032-big-4301-digits", Some("{\"n\":1e4300}"), "Fraction", SAID),
            ("ah-043-bytes", Some(r#"{"a":b"x"}"#), value, NOT_TEXT),
            (
                "ah-044-set",
                Some(r#"{"a":{1}}"#),
                "Expected { expected: \"a name in double quotes\" }",
                NOT_TEXT,
            ),
            ("ah-045-datetime", Some(r#"{"a":2026-01-01T00:00:00Z}"#), comma, NOT_TEXT),
            ("ah-046-date", Some(r#"{"a":2026-01-01}"#), comma, NOT_TEXT),
            ("ah-047-uuid", Some(r#"{"a":UUID(1)}"#), value, NOT_TEXT),
            ("ah-048-object", Some(r#"{"a":object()}"#), value, NOT_TEXT),
            (
                "ah-049-non-str-key",
                Some(r#"{"a":{1:"x"}}"#),
                "Expected { expected: \"a name in double quotes\" }",
                NOT_TEXT,
            ),
            (
                "ah-051-none-key",
                Some(r#"{"a":{null:"x"}}"#),
                "Expected { expected: \"a name in double quotes\" }",
                NOT_TEXT,
            ),
            (
                "ah-054-arguments-not-mapping",
                Some(r#"[["a",1]]"#),
                "accepted",
                "that arguments are an object is a rule of actions, not of the reader",
            ),
            ("ah-057-unicode-nfd", Some("{\"note\":\"cafe\u{301}\"}"), "{\"note\":\"cafe\u{301}\"}", SAID),
            ("ah-063-control-chars", None, "Nul", NUL),
            ("ah-072-duplicate-json-key", None, "DuplicateName", "a name twice is refused, not resolved"),
            ("ah-080-name-empty", None, "accepted", OTHER_FIELD),
            ("ah-081-agent-empty", None, "accepted", OTHER_FIELD),
            ("ah-082-user-empty", None, "accepted", OTHER_FIELD),
            ("ah-083-resource-empty", None, "accepted", OTHER_FIELD),
            ("ah-085-environment-none", None, "accepted", OTHER_FIELD),
            ("ah-091-ordered-dict", Some(r#"{"b":1,"a":2}"#), r#"{"a":2,"b":1}"#, SAID),
            ("ah-093-str-enum", Some(r#"{"a":"x"}"#), r#"{"a":"x"}"#, SAID),
            ("ah-094-int-enum", Some(r#"{"a":7}"#), r#"{"a":7}"#, SAID),
            ("ah-096-generator", Some(r#"{"a":(x for x in y)}"#), value, NOT_TEXT),
            ("ah-099-bytearray", Some(r#"{"a":bytearray(b"x")}"#), value, NOT_TEXT),
        ],
    );
}

#[test]
fn the_vector_files_are_read_by_our_own_reader_or_refused_for_u_0000() {
    let own = |file: &str| read(&bytes(file), &Limits::DATA);
    let oracle = serde_json_canonicalizer::to_string(&vectors("approvals-effects.json")).expect("an oracle");
    assert_eq!(own("approvals-effects.json").map(|value| canonical(&value)), Ok(oracle));
    for file in ["operations.json", "runs.json"] {
        assert_eq!(own(file).map_err(|error| error.kind), Err(JsonErrorKind::Nul), "{file}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}
