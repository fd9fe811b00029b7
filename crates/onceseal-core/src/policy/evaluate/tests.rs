use proptest::prelude::*;

use super::*;
use crate::json::Value;
use crate::policy::{Policy, SCHEMA};

const TRUTHS: [Truth; 3] = [Truth::True, Truth::False, Truth::Unjudged];

/// What the design says, rule by rule, without the shortcut of [`first`].
fn as_designed(rules: &[(Truth, Verdict)]) -> String {
    let mut unjudged_approve = None;
    for (i, rule) in rules.iter().enumerate() {
        match rule {
            (Truth::False, _) => continue,
            (Truth::Unjudged, Verdict::Allow) => continue,
            (Truth::Unjudged, Verdict::Deny) => return format!("deny rule[{i}]_unjudged"),
            (Truth::Unjudged, Verdict::Approve) => {
                if unjudged_approve.is_none() {
                    unjudged_approve = Some(i);
                }
            }
            (Truth::True, Verdict::Deny) => return format!("deny rule[{i}]"),
            (Truth::True, Verdict::Approve) => return format!("approve rule[{i}]"),
            (Truth::True, Verdict::Allow) => {
                return match unjudged_approve {
                    Some(j) => format!("approve rule[{j}]_unjudged"),
                    None => format!("allow rule[{i}]"),
                };
            }
        }
    }
    "deny no_matching_rule".to_owned()
}

#[test]
fn a_rule_is_false_before_it_is_unjudged_before_it_holds() {
    for a in TRUTHS {
        for b in TRUTHS {
            for c in TRUTHS {
                let has = |truth| [a, b, c].contains(&truth);
                let expected = if has(Truth::False) {
                    Truth::False
                } else if has(Truth::Unjudged) {
                    Truth::Unjudged
                } else {
                    Truth::True
                };
                assert_eq!(Truth::all([a, b, c]), expected, "{a:?} {b:?} {c:?}");
            }
        }
    }
    assert_eq!(Truth::all([]), Truth::True);
}

/// All 9 + 81 + 729 + 6,561 lists of up to four rules.
#[test]
fn p08_what_cannot_be_judged_never_loosens_a_decision() {
    let cells: Vec<_> = TRUTHS
        .into_iter()
        .flat_map(|truth| Verdict::ALL.iter().map(move |verdict| (truth, *verdict)))
        .collect();
    let mut lists: Vec<Vec<(Truth, Verdict)>> = vec![Vec::new()];
    for _ in 0..4 {
        let longer =
            lists.iter().flat_map(|list| cells.iter().map(|cell| [list.as_slice(), &[*cell]].concat()));
        lists = longer.collect();
        for rules in &lists {
            let decision = first(rules.iter().copied());
            assert_eq!(format!("{} {}", decision.verdict, decision.reason), as_designed(rules), "{rules:?}");
            for judged in judged_in_every_way(rules) {
                assert!(decision.verdict <= first(judged.iter().copied()).verdict, "{rules:?} as {judged:?}");
            }
        }
    }
}

/// The list with each unjudged rule taken for true and for false.
fn judged_in_every_way(rules: &[(Truth, Verdict)]) -> Vec<Vec<(Truth, Verdict)>> {
    rules.iter().fold(vec![Vec::new()], |lists, (truth, verdict)| {
        let ways = match truth {
            Truth::Unjudged => vec![Truth::True, Truth::False],
            known => vec![*known],
        };
        let add = |list: &Vec<_>, way| [list.as_slice(), &[(way, *verdict)]].concat();
        lists.iter().flat_map(|list| ways.iter().map(move |way| add(list, *way))).collect()
    })
}

/// The reference: a condition that cannot be judged is false, the first rule
/// whose conditions are all true decides. Shares no code with the policy.
fn reference(rules: &[(Vec<(String, Value)>, Verdict)], arguments: &Object, environment: &str) -> Verdict {
    let holds = |(key, operand): &(String, Value)| {
        let (name, operator) = key.split_once('_').expect("generated so");
        let value = match name {
            "environment" => Some(Value::from(environment)),
            "o.p" => arguments.get("o").and_then(Value::as_object).and_then(|o| o.get("p")).cloned(),
            _ => arguments.get(name).cloned(),
        };
        if operator == "exists" {
            return Value::Bool(value.is_some()) == *operand;
        }
        let Some(value) = value else { return false };
        let listed = || operand.as_list().expect("generated so").contains(&value);
        let cents = |v: &Value| v.as_text().and_then(|t| t.parse::<f64>().ok());
        match (operator, &value, operand) {
            ("eq", ..) => value == *operand,
            ("neq", ..) => value != *operand,
            ("in", ..) => listed(),
            ("not_in", ..) => !listed(),
            ("lt", Value::Integer(a), Value::Integer(b)) => a < b,
            ("lte", Value::Integer(a), Value::Integer(b)) => a <= b,
            ("gt", Value::Integer(a), Value::Integer(b)) => a > b,
            ("gte", Value::Integer(a), Value::Integer(b)) => a >= b,
            ("prefix", Value::Text(a), Value::Text(b)) => a.as_bytes().starts_with(b.as_bytes()),
            ("suffix", Value::Text(a), Value::Text(b)) => a.as_bytes().ends_with(b.as_bytes()),
            ("contains", Value::Text(a), Value::Text(b)) => a.split(b.as_str()).count() > 1,
            ("contains", Value::List(a), b) => a.iter().any(|item| item == b),
            ("decimal_lte", a, b) => cents(a).zip(cents(b)).is_some_and(|(a, b)| a <= b),
            ("decimal_gt", a, b) => cents(a).zip(cents(b)).is_some_and(|(a, b)| a > b),
            _ => false,
        }
    };
    let decides = rules.iter().find(|(when, _)| when.iter().all(holds));
    decides.map_or(Verdict::Deny, |(_, verdict)| *verdict)
}

fn value() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::Integer),
        "[ab]{0,2}|[0-2](\\.5)?".prop_map(Value::from),
    ];
    prop_oneof![
        4 => leaf.clone(),
        1 => proptest::collection::vec(leaf.clone(), 0..3).prop_map(Value::List),
        1 => leaf.prop_map(|inner| object(vec![("p", inner)])),
    ]
}

fn condition() -> impl Strategy<Value = (String, Value)> {
    let name = prop_oneof!["[xyo]", Just("o.p".to_owned())];
    let integer = (-2_i64..3).prop_map(Value::Integer);
    let text = "[ab]{1,2}".prop_map(Value::from);
    let decimal = "[0-2](\\.5)?".prop_map(Value::from);
    let test = prop_oneof![
        ("(eq|neq)", value()),
        ("(lt|lte|gt|gte)", integer),
        ("(in|not_in)", proptest::collection::vec(value(), 0..3).prop_map(Value::List)),
        ("(prefix|suffix|contains)", text.clone()),
        ("decimal_(lte|gt)", decimal),
        ("exists", any::<bool>().prop_map(Value::Bool)),
    ];
    let on_argument =
        (name, test).prop_map(|(name, (operator, operand))| (format!("{name}_{operator}"), operand));
    prop_oneof![6 => on_argument, 1 => ("environment_(eq|neq)", text)]
}

fn object(members: Vec<(&str, Value)>) -> Value {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Object(Object::from_members(members).expect("distinct names"))
}

fn policy(rules: &[(Vec<(String, Value)>, Verdict)]) -> Policy {
    let rule = |(when, verdict): &(Vec<(String, Value)>, Verdict)| {
        let when_object = Object::from_members(when.clone()).expect("distinct names");
        let decision = ("decision", Value::from(verdict.as_str()));
        object(if when.is_empty() { vec![decision] } else { vec![("when", when_object.into()), decision] })
    };
    let entry = object(vec![("rules", Value::List(rules.iter().map(rule).collect()))]);
    let document = object(vec![("schema", Value::from(SCHEMA)), ("actions", object(vec![("a.b", entry)]))]);
    Policy::compile(&document).expect("valid")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any policy and any action, the decision is at least as strict as
    /// that of an evaluator for which "cannot be judged" is false.
    #[test]
    fn p08_no_policy_decides_looser_than_its_two_valued_reading(
        rules in proptest::collection::vec(
            (proptest::collection::btree_map(".*", condition(), 0..4), proptest::sample::select(Verdict::ALL)),
            1..5,
        ),
        arguments in proptest::collection::btree_map("[xyo]", value(), 0..4),
        environment in "[ab]{1,2}",
    ) {
        let distinct = |when: std::collections::BTreeMap<String, (String, Value)>| {
            when.into_values().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect::<Vec<_>>()
        };
        let rules: Vec<_> = rules.into_iter().map(|(when, verdict)| (distinct(when), verdict)).collect();
        let arguments = Object::from_members(arguments.into_iter().collect()).expect("distinct names");
        let facts = Facts { name: "a.b", arguments: &arguments, environment: &environment, agent: "bot", user: None };
        let ours = policy(&rules).decide(&facts);
        let theirs = reference(&rules, &arguments, &environment);
        prop_assert!(ours.verdict <= theirs, "{:?} is looser than {:?}", ours, theirs);
        let unjudged = matches!(ours.reason, Reason::RuleUnjudged(_));
        prop_assert!(ours.verdict == theirs || unjudged, "{:?} differs from {:?}", ours, theirs);
    }
}

#[test]
fn a_reason_prints_as_its_code() {
    let codes = [
        (Reason::Decision, "decision"),
        (Reason::Rule(0), "rule[0]"),
        (Reason::RuleUnjudged(12), "rule[12]_unjudged"),
        (Reason::NoMatchingRule, "no_matching_rule"),
        (Reason::UnknownAction, "unknown_action"),
    ];
    for (reason, code) in codes {
        assert_eq!(reason.to_string(), code);
    }
}
