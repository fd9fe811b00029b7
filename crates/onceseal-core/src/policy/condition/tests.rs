use super::*;
use crate::json::Object;

fn condition(key: &str, operand: &Value) -> Result<Condition, PolicyError> {
    Condition::parse(key, &Node::root(operand))
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(items.to_vec())
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(Object::from_members(vec![(name.to_owned(), value)]).expect("one member"))
}

fn judge(operator: &str, operand: &Value, value: Option<&Value>) -> Truth {
    let condition = condition(&format!("x_{operator}"), operand).expect("valid");
    let arguments = value.map(|value| vec![("x".to_owned(), value.clone())]).unwrap_or_default();
    let arguments = Object::from_members(arguments).expect("one member");
    condition.judge(&facts(&arguments))
}

fn facts(arguments: &Object) -> Facts<'_> {
    Facts { name: "a.b", arguments, environment: "production", agent: "bot", user: None }
}

/// One value of each type, and absent.
fn values() -> [(&'static str, Option<Value>); 9] {
    [
        ("absent", None),
        ("null", Some(Value::Null)),
        ("true", Some(Value::Bool(true))),
        ("5", Some(Value::Integer(5))),
        ("5.5", Some(Value::Float(5.5))),
        ("'5'", Some(text("5"))),
        ("'ab'", Some(text("ab"))),
        ("[5]", Some(list([Value::Integer(5)]))),
        ("{a: 5}", Some(object("a", Value::Integer(5)))),
    ]
}

/// `t` true, `f` false, `?` unjudged, in the order of [`values`].
#[test]
fn every_operator_judges_exactly_the_types_it_takes() {
    let five = Value::Integer(5);
    let table: &[(&str, Value, &str)] = &[
        //                                        absent null true 5 5.5 '5' 'ab' [5] {a: 5}
        ("eq", five.clone(), "?fftfffff"),
        ("eq", Value::Null, "?tfffffff"),
        ("eq", Value::Bool(true), "?ftffffff"),
        ("eq", text("5"), "?fffftfff"),
        ("eq", list([five.clone()]), "?fffffftf"),
        ("eq", object("a", five.clone()), "?fffffff t"),
        ("neq", five.clone(), "?ttfttttt"),
        ("neq", Value::Null, "?fttttttt"),
        ("lt", five.clone(), "???f?????"),
        ("lt", Value::Integer(6), "???t?????"),
        ("lte", five.clone(), "???t?????"),
        ("lte", Value::Integer(4), "???f?????"),
        ("gt", five.clone(), "???f?????"),
        ("gt", Value::Integer(4), "???t?????"),
        ("gte", five.clone(), "???t?????"),
        ("gte", Value::Integer(6), "???f?????"),
        ("in", list([five.clone(), text("ab")]), "?fftfftff"),
        ("in", list([]), "?ffffffff"),
        ("in", list([list([five.clone()])]), "?ffffff t f"),
        ("not_in", list([five.clone(), text("ab")]), "?ttfttftt"),
        ("not_in", list([]), "?tttttttt"),
        ("prefix", text("a"), "?????ft??"),
        ("suffix", text("b"), "?????ft??"),
        ("contains", text("b"), "?????ftf?"),
        ("contains", five.clone(), "???????t?"),
        ("contains", Value::Null, "???????f?"),
        ("matches", text("[a-z]+"), "?????ft??"),
        ("exists", Value::Bool(true), "ftttttttt"),
        ("exists", Value::Bool(false), "tffffffff"),
        ("decimal_lt", text("5.0"), "?????f???"),
        ("decimal_lt", text("5.0000000001"), "?????t???"),
        ("decimal_lte", text("5.0"), "?????t???"),
        ("decimal_gt", text("-5"), "?????t???"),
        ("decimal_gt", text("5"), "?????f???"),
        ("decimal_gte", text("5"), "?????t???"),
        ("decimal_gte", text("5.1"), "?????f???"),
    ];
    for (operator, operand, expected) in table {
        let expected = expected.replace(' ', "");
        for ((name, value), expected) in values().iter().zip(expected.chars()) {
            let truth = match judge(operator, operand, value.as_ref()) {
                Truth::True => 't',
                Truth::False => 'f',
                Truth::Unjudged => '?',
            };
            assert_eq!(truth, expected, "{operator} {operand:?} on {name}");
        }
    }
    for operator in operators() {
        assert!(table.iter().any(|(tested, ..)| *tested == operator), "{operator}");
    }
}

#[test]
fn equality_is_strict_about_types_at_any_depth() {
    let one = Value::Integer(1);
    let nested = |inner: Value| object("a", list([inner]));
    assert_eq!(judge("eq", &nested(one.clone()), Some(&nested(one.clone()))), Truth::True);
    for other in [Value::Bool(true), text("1"), Value::Float(1.5), Value::Null, list([one.clone()])] {
        assert_eq!(
            judge("eq", &nested(one.clone()), Some(&nested(other.clone()))),
            Truth::False,
            "{other:?}"
        );
        assert_eq!(
            judge("neq", &nested(one.clone()), Some(&nested(other.clone()))),
            Truth::True,
            "{other:?}"
        );
    }
    let (a, b) = (list([one.clone(), Value::Null]), list([Value::Null, one.clone()]));
    assert_eq!(judge("eq", &a, Some(&b)), Truth::False);
    assert_eq!(judge("eq", &list([]), Some(&Value::Object(Object::new()))), Truth::False);
}

#[test]
fn integers_compare_exactly_at_their_bounds() {
    let most = Value::Integer(crate::json::SAFE_INTEGER);
    let least = Value::Integer(-crate::json::SAFE_INTEGER);
    for (operator, operand, value, expected) in [
        ("gte", &most, &most, Truth::True),
        ("gt", &most, &most, Truth::False),
        ("lte", &least, &least, Truth::True),
        ("lt", &least, &most, Truth::False),
    ] {
        assert_eq!(judge(operator, operand, Some(value)), expected, "{operator}");
    }
}

#[test]
fn a_pattern_matches_the_whole_text_or_not_at_all() {
    for (pattern, value, expected) in [
        ("ab", "ab", Truth::True),
        ("ab", "xab", Truth::False),
        ("ab", "abx", Truth::False),
        ("ab", "ab\n", Truth::False),
        ("a|b", "ab", Truth::False),
        ("a|ab", "ab", Truth::True),
        ("(?m)^a$", "a\nb", Truth::False),
        ("(?i)AB", "ab", Truth::True),
        (".*", "a\nb", Truth::False),
        ("(?s).*", "a\nb", Truth::True),
        ("(?x)a b # both\n", "ab", Truth::True),
        ("a?", "", Truth::True),
    ] {
        assert_eq!(judge("matches", &text(pattern), Some(&text(value))), expected, "{pattern:?} {value:?}");
    }
}

#[test]
fn no_pattern_escapes_its_anchors_or_its_size() {
    for pattern in [
        "a)|(?:b",
        ")",
        "a(",
        "(?x)a # b",
        "\\",
        "[a",
        "(?=a)",
        "(a)\\1",
        "a{0,100000}",
        "\\w{1,255}",
        "(((a{99}){99}){99})",
    ] {
        let error = condition("x_matches", &text(pattern)).expect_err(pattern);
        assert!(matches!(error.kind, PolicyErrorKind::Pattern(_)), "{pattern}: {error}");
    }
}

#[test]
fn the_longest_operator_ends_the_key() {
    let path = |names: &str| Subject::Argument(ArgumentPath::parse(names).expect("valid"));
    for (key, operand, subject) in [
        ("amount_neq", Value::Integer(1), path("amount")),
        ("x_lte_gte", Value::Integer(1), path("x_lte")),
        ("x_not_in", list([]), path("x")),
        ("not_in", list([]), path("not")),
        ("x_decimal_lt", text("1"), path("x")),
        ("decimal_lt", Value::Integer(1), path("decimal")),
        ("_eq_eq", Value::Integer(1), path("_eq")),
        ("eq_eq", Value::Integer(1), path("eq")),
        ("a.b.c_eq", Value::Integer(1), path("a.b.c")),
        ("resource_id_eq", text("r"), path("resource_id")),
        ("environment_name_eq", text("p"), path("environment_name")),
        ("user.name_eq", text("u"), path("user.name")),
        ("é ü_eq", text("u"), path("é ü")),
        ("environment_eq", text("p"), Subject::Environment),
        ("agent_in", list([text("p")]), Subject::Agent),
        ("user_exists", Value::Bool(true), Subject::User),
    ] {
        assert_eq!(condition(key, &operand).map(|c| c.subject), Ok(subject), "{key}");
    }
}

#[test]
fn what_is_no_condition_is_refused_with_what_to_write() {
    let operands: &[(&str, Value)] = &[
        ("amount", Value::Integer(1)),
        ("amount_let", Value::Integer(1)),
        ("amount_matchs", text("a")),
        ("eq", Value::Integer(1)),
        ("_eq", Value::Integer(1)),
        ("_not_in", list([])),
        ("a..b_eq", Value::Integer(1)),
        (".a_eq", Value::Integer(1)),
        ("a\n_eq", Value::Integer(1)),
        ("action_id_eq", text("a")),
        ("principal_eq", text("a")),
        ("resource_exists", Value::Bool(true)),
        ("tenant_eq", text("a")),
        ("amount_lte", text("5")),
        ("amount_lte", Value::Bool(true)),
        ("amount_lte", Value::Null),
        ("amount_lte", Value::Float(1.5)),
        ("amount_eq", Value::Float(1.5)),
        ("amount_in", list([Value::Integer(1), Value::Float(2.5)])),
        ("amount_eq", object("a", list([Value::Float(0.1)]))),
        ("currency_in", text("EUR")),
        ("currency_not_in", object("a", Value::Null)),
        ("name_prefix", text("")),
        ("name_suffix", Value::Integer(1)),
        ("name_contains", text("")),
        ("name_matches", Value::Integer(1)),
        ("name_matches", text("a(")),
        ("name_matches", text("\\w{1,255}")),
        ("name_exists", text("true")),
        ("total_decimal_lte", Value::Integer(100)),
        ("total_decimal_lte", text("1e3")),
        ("environment_lte", Value::Integer(5)),
        ("agent_decimal_lte", text("5")),
        ("environment_eq", Value::Integer(1)),
        ("user_neq", Value::Null),
        ("environment_in", list([text("a"), Value::Null])),
        ("agent_contains", Value::Integer(1)),
    ];
    let sentences: Vec<String> = operands
        .iter()
        .map(|(key, operand)| match condition(key, operand) {
            Ok(condition) => format!("{key:?}: accepted as {condition:?}"),
            Err(error) => format!("{key:?}: {error}"),
        })
        .collect();
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn dots_lead_into_objects_and_nowhere_else() {
    let mut arguments = Object::new();
    arguments.insert("a", object("b", Value::Integer(1)));
    arguments.insert("c.d", Value::Integer(1));
    arguments.insert("e", list([object("f", Value::Integer(1))]));
    arguments.insert("n", Value::Null);
    let judge =
        |key: &str, operand: Value| condition(key, &operand).expect("valid").judge(&facts(&arguments));
    assert_eq!(judge("a.b_eq", Value::Integer(1)), Truth::True);
    assert_eq!(judge("a.x_eq", Value::Integer(1)), Truth::Unjudged);
    assert_eq!(judge("c.d_eq", Value::Integer(1)), Truth::Unjudged);
    assert_eq!(judge("e.f_eq", Value::Integer(1)), Truth::Unjudged);
    assert_eq!(judge("e.0_exists", Value::Bool(true)), Truth::False);
    assert_eq!(judge("n_exists", Value::Bool(true)), Truth::True);
    assert_eq!(judge("n.x_exists", Value::Bool(true)), Truth::False);
}

#[test]
fn conditions_see_environment_agent_and_user_and_no_argument_of_that_name() {
    let mut arguments = Object::new();
    for name in ["environment", "agent", "user"] {
        arguments.insert(name, "from the arguments");
    }
    let with_user = Facts { user: Some("ada"), ..facts(&arguments) };
    let judge =
        |facts: &Facts<'_>, key: &str, operand: Value| condition(key, &operand).expect("valid").judge(facts);
    for (key, operand) in [("environment_eq", "production"), ("agent_prefix", "bo"), ("user_eq", "ada")] {
        assert_eq!(judge(&with_user, key, text(operand)), Truth::True, "{key}");
    }
    let without = facts(&arguments);
    assert_eq!(judge(&without, "user_neq", text("ada")), Truth::Unjudged);
    assert_eq!(judge(&without, "user_exists", Value::Bool(false)), Truth::True);
    assert_eq!(judge(&with_user, "user_exists", Value::Bool(false)), Truth::False);
}
