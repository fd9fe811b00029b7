use super::*;
use crate::policy::{Document, Facts, Truth};

const HEAD: &str = "schema: onceseal.policy/v1\n";

fn findings(body: &str, owner: Option<&str>) -> String {
    let document = Document::read(format!("{HEAD}{body}").as_bytes()).expect("YAML");
    let policy = Policy::from_document(&document).expect("valid");
    let line = |finding: Finding| {
        let at = document.position(&finding.path);
        format!("{}[{}] {} at {at}: {}", finding.severity, finding.code, finding.path, finding.sentence)
    };
    policy.check(owner).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The codes found in the rules of one entry, by index.
fn of_rules(rules: &str) -> Vec<(usize, &'static str)> {
    let file = format!("{HEAD}actions:\n  a.b:\n    effect: 'e:{{id}}'\n    rules:\n{rules}");
    let policy = Policy::from_yaml(file.as_bytes()).expect("valid");
    let index = |finding: &Finding| match finding.path.steps() {
        [_, _, _, crate::policy::Step::Index(index)] => *index,
        other => panic!("no rule: {other:?}"),
    };
    policy.check(None).iter().map(|finding| (index(finding), finding.code)).collect()
}

#[test]
fn a_sound_policy_has_no_findings() {
    let body = "
groups: { finance: [ada, bob] }
actions:
  stripe.refund:
    effect: 'refund:{payment_id}'
    approval: { approvers: [finance], quorum: 2 }
    rules:
      - when: { amount_gte: 0, amount_lte: 50000 }
        decision: allow
      - when: { amount_gte: 0, amount_lte: 1000000 }
        decision: approve
      - decision: deny
";
    assert_eq!(findings(body, None), "");
}

#[test]
fn everything_else_is_found_where_it_stands() {
    let body = "
groups: { finance: [ada, 'host:bob'], unused: [eve], ops: [ada] }
operators: [ops]
actions:
  a.always:
    effect: 'e:{id}'
    rules:
      - decision: approve
      - when: { x_eq: 1 }
        decision: deny
  b.constant: { effect: once, decision: allow }
  c.incidental: { effect: 'e:{meta.note}', incidental: [meta], decision: allow }
  d.unused: { effect: 'e:{id}', approval: { quorum: 2 }, decision: deny }
  e.none: { decision: approve }
  f.quorum: { effect: 'e:{id}', approval: { approvers: [finance], quorum: 3 }, decision: approve }
  g.os: { effect: 'e:{id}', approval: { proof: [os], quorum: 2 }, decision: approve }
  h.host: { effect: 'e:{id}', approval: { proof: [host], approvers: [ops], quorum: 1 }, decision: approve }
";
    insta::assert_snapshot!(findings(body, Some("ada")));
    assert_eq!(
        findings("actions: {}", None),
        "note[no_actions] actions at line 2, column 1: no action is listed, so every action is denied"
    );
}

#[test]
fn rules_that_never_hold_first_are_found() {
    const UNREACHABLE: &[(usize, &str)] = &[(1, "rule_unreachable")];
    const NEVER: &[(usize, &str)] = &[(1, "rule_never_holds")];
    const NONE: &[(usize, &str)] = &[];
    for (first, second, expected) in [
        ("x_eq: 1", "x_eq: 1", UNREACHABLE),
        ("x_eq: 1", "x_eq: 1, y_eq: 2", UNREACHABLE),
        ("x_eq: 1, y_eq: 2", "x_eq: 1", NONE),
        ("x_lte: 10", "x_lte: 5", UNREACHABLE),
        ("x_lte: 10", "x_lt: 11", UNREACHABLE),
        ("x_lte: 10", "x_lte: 11", NONE),
        ("x_gte: 0, x_lte: 10", "x_gt: 0, x_lt: 10", UNREACHABLE),
        ("x_gte: 0, x_lte: 10", "x_lte: 10", NONE),
        ("x_lte: 10", "x_eq: 7", UNREACHABLE),
        ("x_lte: 10", "x_in: [1, 2]", UNREACHABLE),
        ("x_lte: 10", "x_in: [1, 'a']", NONE),
        ("x_in: [1, 2, 3]", "x_in: [3, 1]", UNREACHABLE),
        ("x_in: [1, 2, 3]", "x_in: [3, 4]", NONE),
        ("x_in: [1, 2, 3]", "x_in: [3, 4], x_lt: 4", UNREACHABLE),
        ("x_neq: 1", "x_eq: 2", UNREACHABLE),
        ("x_neq: 1", "x_eq: 1", NONE),
        ("x_prefix: a", "x_eq: abc", UNREACHABLE),
        ("x_prefix: a", "x_prefix: ab", NONE),
        ("x_matches: 'a+'", "x_eq: aaa", UNREACHABLE),
        ("x_exists: true", "x_lte: 5", UNREACHABLE),
        ("x_exists: true", "x_exists: false", NONE),
        ("x_exists: true", "y_lte: 5", NONE),
        ("x_lte: 9007199254740991", "x_gte: 5", UNREACHABLE),
        ("x_lte: 9007199254740991", "x_neq: 5", NONE),
        ("environment_in: [a, b]", "environment_eq: a", UNREACHABLE),
        ("environment_eq: a", "x_eq: a", NONE),
        ("a.b_lte: 5", "a.b_lte: 4", UNREACHABLE),
        ("y_eq: 0", "x_gt: 5, x_lt: 6", NEVER),
        ("y_eq: 0", "x_gte: 5, x_lte: 5", NONE),
        ("y_eq: 0", "x_eq: 5, x_lt: 5", NEVER),
        ("y_eq: 0", "x_eq: 5, x_prefix: a", NEVER),
        ("y_eq: 0", "x_in: []", NEVER),
        ("y_eq: 0", "x_in: [1, 2], x_not_in: [1, 2, 3]", NEVER),
        ("y_eq: 0", "x_exists: false, x_eq: 1", NEVER),
        ("y_eq: 0", "x_lt: -9007199254740991", NEVER),
    ] {
        let rule = |when| format!("      - when: {{ {when} }}\n        decision: allow\n");
        assert_eq!(of_rules(&(rule(first) + &rule(second))), expected, "{first} | {second}");
    }
}

/// Each claim of the check, tried out on every value that could refute it.
#[test]
fn what_is_said_to_never_hold_first_never_does() {
    let tests = [
        "x_eq: 1",
        "x_eq: a",
        "x_neq: 1",
        "x_neq: a",
        "x_lt: 1",
        "x_lte: 1",
        "x_gt: 0",
        "x_gte: 2",
        "x_in: [0, 1]",
        "x_in: [a, 1]",
        "x_not_in: [1, a]",
        "x_prefix: a",
        "x_suffix: b",
        "x_contains: b",
        "x_matches: '[a-b]+'",
        "x_exists: true",
        "x_exists: false",
        "x_decimal_lt: '1'",
        "x_in: []",
    ];
    let texts = ["a", "ab", "b", "0", "1", ""].map(Value::from);
    let others = [Value::Null, Value::Bool(true), Value::List(vec![Value::from("b")])];
    let values: Vec<Option<Value>> =
        (-1..4).map(Value::Integer).chain(texts).chain(others).map(Some).chain([None]).collect();
    let mut claims = 0;
    for first in tests {
        for one in tests {
            for two in tests.into_iter().filter(|two| two.split(':').next() != one.split(':').next()) {
                let rules = format!(
                    "rules: [{{when: {{{first}}}, decision: deny}}, {{when: {{{one}, {two}}}, decision: allow}}]"
                );
                let policy = Policy::from_yaml(format!("{HEAD}actions: {{a.b: {{{rules}}}}}").as_bytes());
                let policy = policy.expect("valid");
                let found = policy.check(None);
                let Ruling::Rules(rules) = &policy.entry("a.b").expect("listed").ruling else {
                    panic!("rules")
                };
                for (index, code) in found.iter().filter_map(|finding| match finding.path.steps() {
                    [.., crate::policy::Step::Index(index)] => Some((*index, finding.code)),
                    _ => None,
                }) {
                    claims += 1;
                    for value in &values {
                        let arguments = value.iter().map(|value| ("x".to_owned(), value.clone())).collect();
                        let arguments = crate::json::Object::from_members(arguments).expect("one member");
                        let facts = Facts {
                            name: "a.b",
                            arguments: &arguments,
                            environment: "e",
                            agent: "a",
                            user: None,
                        };
                        let holds = |at: usize| rules[at].judge(&facts) == Truth::True;
                        let first_to_hold = holds(index) && (code == "rule_never_holds" || !holds(0));
                        assert!(!first_to_hold, "{code} {first} | {one}, {two} for {value:?}");
                    }
                }
            }
        }
    }
    assert!(claims > 1000, "{claims}");
}
