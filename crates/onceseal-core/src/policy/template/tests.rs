use proptest::prelude::*;

use super::*;

fn effect(text: &str) -> Result<Template, TemplateProblem> {
    Template::parse(text, TemplateKind::Effect)
}

fn arguments<const N: usize>(members: [(&str, Value); N]) -> Object {
    let members = members.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Object::from_members(members).expect("distinct names")
}

fn key(template: &str, members: &Object) -> Result<String, TemplateError> {
    effect(template).expect("valid").resolve(members, Some("payment:1"))
}

#[test]
fn values_are_escaped_and_literals_are_not() {
    let members = arguments([
        ("id", Value::from("txn_1-A")),
        ("n", Value::Integer(-42)),
        ("odd", Value::from("a:b/ %{é}\n")),
        ("o", arguments([("p", arguments([("q", Value::from("deep"))]).into())]).into()),
        ("é", Value::from("x")),
    ]);
    for (template, expected) in [
        ("refund:{id}", "refund:txn_1-A"),
        ("{n}", "-42"),
        ("é /%:{odd}", "é /%:a%3Ab%2F%20%25%7B%C3%A9%7D%0A"),
        ("{o.p.q}.{é}", "deep.x"),
        ("{id}:{id}", "txn_1-A:txn_1-A"),
        ("r:{resource}", "r:payment%3A1"),
        ("constant", "constant"),
    ] {
        assert_eq!(key(template, &members), Ok(expected.to_owned()), "{template}");
    }
}

#[test]
fn what_has_no_text_refuses_the_action() {
    let long = "x".repeat(EFFECT_KEY_BYTES + 1);
    let escaped = " ".repeat(EFFECT_KEY_BYTES / 3 + 1);
    let members = arguments([
        ("null", Value::Null),
        ("yes", Value::Bool(true)),
        ("half", Value::Float(0.5)),
        ("list", Value::List(vec![Value::from("a")])),
        ("object", Object::new().into()),
        ("empty", Value::from("")),
        ("text", Value::from("secret-value")),
        ("act", Value::from("act")),
        ("long", Value::from(long)),
        ("escaped", Value::from(escaped)),
    ]);
    let templates =
        ["{missing}", "{text.inner}", "{null}", "{yes}", "{half}", "{list}", "{object}", "{empty}"];
    let templates = templates.iter().chain(&["{act}:{text}", "{long}", "{escaped}"]);
    let mut sentences: Vec<String> = templates
        .map(|template| match key(template, &members) {
            Ok(key) => format!("{template}: accepted as {key}"),
            Err(error) => format!("{template}: {error}"),
        })
        .collect();
    let of_resource = effect("r:{resource}").expect("valid");
    let none = Object::new();
    let named = arguments([("resource", Value::Null)]);
    for (members, resource) in [(&none, None), (&none, Some("")), (&named, Some("payment:1"))] {
        sentences.push(match of_resource.resolve(members, resource) {
            Ok(key) => format!("{resource:?}: accepted as {key}"),
            Err(error) => format!("{resource:?}: {error}"),
        });
    }
    let sentences = sentences.join("\n");
    assert!(!sentences.contains("secret-value"));
    insta::assert_snapshot!(sentences);
}

#[test]
fn a_key_of_exactly_the_longest_length_is_made() {
    let members = arguments([("a", Value::from("x".repeat(EFFECT_KEY_BYTES - 2)))]);
    assert_eq!(key("k:{a}", &members).map(|key| key.len()), Ok(EFFECT_KEY_BYTES));
    assert_eq!(key("kk:{a}", &members), Err(TemplateError::TooLong { kind: TemplateKind::Effect }));
}

#[test]
fn what_is_no_template_is_refused_with_what_to_write() {
    let long = "x".repeat(EFFECT_KEY_BYTES + 1);
    let sentences: Vec<String> = [
        "",
        "refund:}",
        "refund:{",
        "refund:{a",
        "{{a}}",
        "{a}}",
        "{}",
        "{1a}",
        "{a b}",
        "{a!r}",
        "{a:>3}",
        "{a-b}",
        "{a[0]}",
        "{.a}",
        "{a.}",
        "{a..b}",
        "{a}{b}",
        "{a}x_-9{b}",
        "{a}%{b}",
        "{a}:{b}{c.d}",
        "{resource}{a}",
        "{resource.id}",
        "act:{a}",
        "op:x",
        "a\nb",
        "a\u{7f}",
        &long,
    ]
    .map(|text| {
        let shown = if text.len() > 40 { "(too long)" } else { text };
        match effect(text) {
            Ok(template) => format!("{shown:?}: accepted as {template:?}"),
            Err(problem) => format!("{shown:?}: {problem}"),
        }
    })
    .into();
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn a_resource_template_takes_resource_for_an_argument() {
    let template = Template::parse("r:{resource}/{resource_id}", TemplateKind::Resource).expect("valid");
    let members = arguments([("resource", Value::from("x")), ("resource_id", Value::Integer(1))]);
    assert_eq!(template.resolve(&members, None), Ok("r:x/1".to_owned()));
    assert_eq!(
        template.arguments().map(ToString::to_string).collect::<Vec<_>>(),
        ["resource", "resource_id"]
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a:%/0-2 é]{1,3}", 1 => "\\PC{1,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn p03_two_different_value_tuples_never_make_one_key(
        literals in proptest::collection::vec("[a:%/0-2]{0,3}", 4),
        one in (text(), text(), text()),
        two in (text(), text(), text()),
    ) {
        let [a, b, c, d] = &literals[..] else { unreachable!("four of them") };
        if let Ok(template) = effect(&format!("{a}{{x}}{b}{{y}}{c}{{z}}{d}")) {
            let tuple = |(x, y, z): &(String, String, String)| {
                arguments([("x", x.clone().into()), ("y", y.clone().into()), ("z", z.clone().into())])
            };
            let keys = (template.resolve(&tuple(&one), None), template.resolve(&tuple(&two), None));
            if let (Ok(first), Ok(second)) = keys {
                prop_assert_eq!(first == second, one == two);
            }
        }
    }

    #[test]
    fn any_text_is_a_template_or_a_problem(text in "[{}a.:%\\PC]{0,12}") {
        let _ = effect(&text);
    }
}

/// Every template of a literal between two placeholders, with every pair of
/// short values: those that are accepted never make one key of two tuples.
#[test]
fn p03_no_accepted_literal_lets_values_run_into_each_other() {
    let alphabet = ['2', '0', 'A', '%', ':', ' '];
    let words: Vec<String> = alphabet
        .iter()
        .flat_map(|a| [a.to_string()].into_iter().chain(alphabet.iter().map(move |b| format!("{a}{b}"))))
        .collect();
    let mut accepted = 0;
    for between in words.iter().map(String::as_str).chain([""]) {
        let Ok(template) = effect(&format!("k{{x}}{between}{{y}}")) else { continue };
        accepted += 1;
        let mut seen = std::collections::HashSet::new();
        for x in &words {
            for y in &words {
                let members = arguments([("x", x.as_str().into()), ("y", y.as_str().into())]);
                let key = template.resolve(&members, None).expect("short text");
                assert!(seen.insert(key), "{between:?} {x:?} {y:?}");
            }
        }
    }
    assert_eq!(accepted, 22, "with `:` or a space");
}
