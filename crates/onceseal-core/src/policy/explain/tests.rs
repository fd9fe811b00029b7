use super::*;
use crate::json::Object;
use crate::policy::{ArgumentPath, Reason};

const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  pay.out:
    redact: [card, owner.email, tags.secret]
    rules:
      - when: { amount_lte: 100, card_prefix: '4' }
        decision: allow
      - when: { owner_eq: {}, owner.email_suffix: '@example.com', owner.name_eq: ada, tags_contains: x, card.bin_eq: 1 }
        decision: approve
      - when: { environment_eq: staging, user_eq: ada, gone_exists: true }
        decision: deny
  pay.back: { decision: approve }
  true: { decision: deny }
";

fn policy() -> Policy {
    Policy::from_yaml(POLICY.replace("  true:", "  \"true\":").as_bytes()).expect("valid")
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Object {
    let members = members.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Object::from_members(members).expect("distinct names")
}

fn facts<'a>(name: &'a str, arguments: &'a Object) -> Facts<'a> {
    Facts { name, arguments, environment: "production", agent: "bot", user: None }
}

#[test]
fn ua_160_an_explanation_shows_each_rule_and_condition_with_what_it_saw() {
    let owner = object([("name", "ada".into()), ("email", "ada@secret.example".into())]);
    let arguments = object([
        ("amount", Value::Integer(500)),
        ("card", "4111-secret".into()),
        ("owner", owner.into()),
        ("tags", Value::List(vec!["secret-tag".into()])),
    ]);
    let policy = policy();
    let explanation = policy.explain(&facts("pay.out", &arguments));
    let conditions = |rule: &ExplainedRule<'_>| {
        let line = |c: &ExplainedCondition<'_>| {
            format!(
                "    {}: {:?} is {:?} for {:?}",
                c.condition.key(),
                c.condition.operand(),
                c.truth,
                c.value
            )
        };
        rule.conditions.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let rules = explanation
        .rules
        .iter()
        .map(|rule| format!("  {} if {:?}\n{}", rule.decision, rule.truth, conditions(rule)));
    let text = format!(
        "{} {}\n{}",
        explanation.decision.verdict,
        explanation.decision.reason,
        rules.collect::<Vec<_>>().join("\n")
    );
    assert!(!text.contains("secret"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_explanation_decides_as_the_policy_does() {
    let policy = policy();
    for name in ["pay.out", "pay.back", "true", "nothing"] {
        for amount in [Value::Integer(5), Value::Null] {
            let arguments = object([("amount", amount), ("card", "4".into())]);
            let facts = facts(name, &arguments);
            assert_eq!(policy.explain(&facts).decision, policy.decide(&facts), "{name}");
        }
    }
}

#[test]
fn ua_161_an_unknown_action_is_denied_with_the_line_to_add() {
    let policy = policy();
    let none = Object::new();
    for (name, similar) in
        [("pay.bakc", Some("pay.back")), ("iam.elevate", None), ("on", None), ("a: b\n", None)]
    {
        let explanation = policy.explain(&facts(name, &none));
        assert_eq!(explanation.decision.verdict, Verdict::Deny);
        assert_eq!(explanation.decision.reason, Reason::UnknownAction);
        let unknown = explanation.unknown.expect("not listed");
        assert_eq!(unknown.similar.as_deref(), similar, "{name}");
        let line = unknown.line_to_add;
        assert_eq!(line.lines().count(), 1);
        if name == "a: b\n" {
            continue;
        }
        let file = format!("schema: onceseal.policy/v1\nactions:\n{line}\n");
        let with_line = Policy::from_yaml(file.as_bytes()).expect("the line is valid");
        assert_eq!(with_line.decide(&facts(name, &none)).verdict, Verdict::Approve, "{line}");
    }
}

#[test]
fn p13_a_redacted_value_is_hidden_from_every_side() {
    let text = |text: &str| Value::from(text);
    let path = |text: &str| ArgumentPath::parse(text).expect("valid");
    let inner = object([("b", text("secret")), ("c", text("open"))]);
    let arguments =
        object([("a", inner.into()), ("l", Value::List(vec![text("secret")])), ("n", Value::Null)]);
    let hidden = |b: &str| object([("b", text(b)), ("c", text("open"))]);
    let cases = [
        ("a.b", "a.b", Shown::Redacted),
        ("a.b", "a", Shown::Value(hidden("[redacted]").into())),
        ("a", "a.b", Shown::Redacted),
        ("a.c", "a.b", Shown::Value(text("secret"))),
        ("a.b.x", "a", Shown::Value(hidden("[redacted]").into())),
        ("l.x", "l", Shown::Value(text("[redacted]"))),
        ("a.x", "a", Shown::Value(hidden("secret").into())),
        ("n", "n", Shown::Redacted),
        ("gone", "gone", Shown::Absent),
    ];
    for (redact, looked_at, expected) in cases {
        let file = format!(
            "schema: onceseal.policy/v1\nactions:\n  a.b: {{ redact: [{redact}], decision: deny }}\n"
        );
        let policy = Policy::from_yaml(file.as_bytes()).expect("valid");
        let entry = policy.entry("a.b").expect("listed");
        let value = shown(&Subject::Argument(path(looked_at)), entry, &facts("a.b", &arguments));
        assert_eq!(value, expected, "redact {redact}, look at {looked_at}");
    }
}
