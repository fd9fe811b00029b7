use crate::json;
use crate::policy::{Condition, Policy, PolicyErrorKind, Rule, Ruling};

/// A policy of one entry whose body is `entry`, indented by four.
fn entry(entry: &str) -> String {
    format!("schema: onceseal.policy/v1\ngroups: {{ops: [ada, os:bob]}}\nactions:\n  a.b:\n    {entry}\n")
}

fn sentences<'a>(files: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let sentence = |(shown, file): (&str, String)| match Policy::from_yaml(file.as_bytes()) {
        Ok(_) => format!("{shown}\n  accepted"),
        Err(error) => format!("{shown}\n  {error}"),
    };
    files.into_iter().map(sentence).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_key_of_the_design_is_read() {
    let file = include_str!("tests/full.yaml");
    let policy = Policy::from_yaml(file.as_bytes()).expect("valid");
    let entry = policy.entry("stripe.refund").expect("listed");
    let Ruling::Rules(rules) = &entry.ruling else { panic!("it has rules") };
    let keys = |rule: &Rule| rule.when.iter().map(Condition::key).collect::<Vec<_>>().join(", ");
    let rules = rules.iter().map(|rule| format!("{} if [{}]", rule.decision, keys(rule)));
    insta::assert_snapshot!(format!(
        "effect {:?}\nresource {:?}\nincidental {:?}\nredact {:?}\n{:?}\nlease {:?} deadline {:?} attempts {:?} floats {}\n{}",
        entry.effect,
        entry.resource,
        entry.incidental,
        entry.redact,
        entry.approval,
        entry.lease,
        entry.deadline,
        entry.max_attempts,
        entry.floats,
        rules.collect::<Vec<_>>().join("\n"),
    ));
    assert_eq!(
        policy.entries().map(|(name, _)| name).collect::<Vec<_>>(),
        ["customer.read", "stripe.refund"]
    );
}

#[test]
fn p08_a_malformed_document_is_refused_as_a_whole() {
    let files = [
        "",
        "hello",
        "[]",
        "actions: {}",
        "schema: onceseal.policy/v2\nactions: {}",
        "schema: 1\nactions: {}",
        "schema: onceseal.policy/v1",
        "schema: onceseal.policy/v1\nactions:",
        "schema: onceseal.policy/v1\nactions: []",
        "schema: onceseal.policy/v1\nactions: {}\ndefaults: {}",
        "schema: onceseal.policy/v1\nactions: {}\nGroups: {}",
        "schema: onceseal.policy/v1\nactions: {'': {decision: deny}}",
        "schema: onceseal.policy/v1\nactions: {\"a\\nb\": {decision: deny}}",
        "schema: onceseal.policy/v1\nactions: {a.b: }",
        "schema: onceseal.policy/v1\nactions: {a.b: allow}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: []}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: ada}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: [1]}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: ['']}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: ['os:']}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: ['oidc:ada']}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: [ada, ada]}",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: [os:ada, host:ada, ada]}",
        "schema: onceseal.policy/v1\nactions: {}\noperators: []",
        "schema: onceseal.policy/v1\nactions: {}\noperators: [ops]",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: [ada]}\noperators: [opps]",
        "schema: onceseal.policy/v1\nactions: {}\ngroups: {ops: [ada]}\noperators: [ops, ops]",
    ];
    insta::assert_snapshot!(sentences(files.map(|file| (file, file.to_owned()))));
}

#[test]
fn p08_a_malformed_entry_is_refused_with_what_to_write() {
    let entries = [
        "{}",
        "decision: ALLOW",
        "decision: yes",
        "decision: true",
        "decision:",
        "{decision: allow, rules: [{decision: deny}]}",
        "decison: allow",
        "{decision: approve, four_eyes: true}",
        "{decision: approve, replay: never}",
        "{decision: approve, budget: {}}",
        "rules:",
        "rules: {}",
        "rules: []",
        "rules: [allow]",
        "rules: [{when: {x_eq: 1}}]",
        "rules: [{unless: {x_eq: 1}, decision: allow}]",
        "rules: [{when: {}, decision: allow}]",
        "rules: [{when: , decision: allow}]",
        "rules: [{when: [], decision: allow}]",
        "rules: [{when: {path_within: /tmp}, decision: allow}]",
        "rules: [{when: {x_eq: 1}, decision: alow}]",
        "{decision: allow, effect: 1}",
        "{decision: allow, effect: 'act:{id}'}",
        "{decision: allow, effect: '{a}{b}'}",
        "{decision: allow, resource: '{a'}",
        "{decision: allow, redact: [card], effect: 'pay:{card}'}",
        "{decision: allow, redact: [card], resource: 'card:{card.number}'}",
        "{decision: allow, incidental: note}",
        "{decision: allow, incidental: []}",
        "{decision: allow, incidental: ['a..b']}",
        "{decision: allow, redact: [card, card.number]}",
        "{decision: allow, redact: [card.number, card]}",
        "{decision: allow, redact: [card, card]}",
        "{decision: approve, approval: {}}",
        "{decision: approve, approval: {ttl: 900}}",
        "{decision: approve, approval: {ttl: 15min}}",
        "{decision: approve, approval: {ttl: 0s}}",
        "{decision: approve, approval: {ttl: 31d}}",
        "{decision: approve, approval: {quorum: 0}}",
        "{decision: approve, approval: {quorum: -1}}",
        "{decision: approve, approval: {quorum: 17}}",
        "{decision: approve, approval: {quorum: '2'}}",
        "{decision: approve, approval: {approvers: ops}}",
        "{decision: approve, approval: {approvers: []}}",
        "{decision: approve, approval: {approvers: [opps]}}",
        "{decision: approve, approval: {approver: [ops]}}",
        "{decision: approve, approval: {proof: host}}",
        "{decision: approve, approval: {proof: []}}",
        "{decision: approve, approval: {proof: [oidc]}}",
        "{decision: approve, approval: {proof: [os, os]}}",
        "{decision: allow, lease: 25h}",
        "{decision: allow, lease: 999d}",
        "{decision: allow, deadline: 31d}",
        "{decision: allow, lease: 10m, deadline: 5m}",
        "{decision: allow, max_attempts: 0}",
        "{decision: allow, max_attempts: 1.5}",
        "{decision: allow, max_attempts: 1000001}",
        "{decision: allow, floats: true}",
        "{decision: allow, floats: deny}",
    ];
    insta::assert_snapshot!(sentences(entries.map(|body| (body, entry(body)))));
}

#[test]
fn bounds_are_inclusive() {
    for body in [
        "{decision: approve, approval: {ttl: 1s, quorum: 16}}",
        "{decision: approve, approval: {ttl: 30d, quorum: 1, approvers: [ops], proof: [os, host]}}",
        "{decision: allow, lease: 24h, deadline: 24h, max_attempts: 1}",
        "{decision: allow, lease: 1s, deadline: 30d, max_attempts: 1000000, floats: allow}",
    ] {
        assert!(Policy::from_yaml(entry(body).as_bytes()).is_ok(), "{body}");
    }
    for (length, valid) in [(255, true), (256, false)] {
        let file = entry("decision: deny").replace("a.b", &"é".repeat(length));
        assert_eq!(Policy::from_yaml(file.as_bytes()).is_ok(), valid, "{length}");
    }
}

#[test]
fn p14_rules_conditions_patterns_and_names_have_limits() {
    let repeat = |what: &dyn Fn(usize) -> String, count: usize| (0..count).map(what).collect::<String>();
    let rule = |_| "{decision: deny}, ".to_owned();
    let condition = |i| format!("x{i}_eq: 1, ");
    let pattern = |i| format!("{{decision: deny, when: {{x{i}_matches: a}}}}, ");
    let name = |i| format!("n{i}, ");
    let kind = |file: String| Policy::from_yaml(file.as_bytes()).map(|_| ()).map_err(|error| error.kind);
    let rules = |count| entry(&format!("rules: [{}]", repeat(&rule, count)));
    let conditions =
        |count| entry(&format!("rules: [{{decision: deny, when: {{{}}}}}]", repeat(&condition, count)));
    let patterns = |count: usize| {
        let half = repeat(&pattern, count / 2);
        entry(&format!("rules: [{half}]\n  c.d:\n    rules: [{half}]"))
    };
    let names = |count| entry(&format!("{{decision: deny, redact: [{}]}}", repeat(&name, count)));
    let too_many = |what, limit| Err(PolicyErrorKind::TooMany { what, limit });
    assert_eq!((kind(rules(1024)), kind(rules(1025))), (Ok(()), too_many("rules in one entry", 1024)));
    assert_eq!(
        (kind(conditions(64)), kind(conditions(65))),
        (Ok(()), too_many("conditions in one rule", 64))
    );
    assert_eq!(
        (kind(patterns(1024)), kind(patterns(1026))),
        (Ok(()), too_many("patterns in one policy", 1024))
    );
    assert_eq!((kind(names(1024)), kind(names(1025))), (Ok(()), too_many("names in one list", 1024)));
}

#[test]
fn the_stored_document_compiles_again_to_the_same_policy() {
    let policy = Policy::from_yaml(include_bytes!("tests/full.yaml")).expect("valid");
    let text = json::canonical(policy.document());
    let stored = json::read_canonical(&text, &json::Limits::DATA).expect("canonical");
    let again = Policy::compile(&stored).expect("valid");
    assert_eq!(format!("{policy:?}"), format!("{again:?}"));
}

#[test]
fn an_error_in_a_stored_document_has_a_path_and_no_place() {
    let document = crate::policy::Document::read(entry("lease: 25h").as_bytes()).expect("YAML");
    let error = Policy::compile(document.value()).expect_err("too long");
    assert_eq!(error.to_string(), "actions.a.b.lease: lease must be 1s to 1d");
}

#[test]
fn p13_no_template_shows_a_redacted_argument_nor_what_it_is_in_or_holds() {
    for (redact, placeholder) in [("card", "card"), ("card", "card.number"), ("card.number", "card")] {
        let file =
            entry(&format!("{{redact: [{redact}], effect: \"pay:{{{placeholder}}}\", decision: allow}}"));
        let file = file.replace("a.b:\n    {", "a.b: {");
        let error = Policy::from_yaml(file.as_bytes()).expect_err("it would be shown");
        assert!(matches!(error.kind, PolicyErrorKind::RedactedInTemplate { .. }), "{error}");
    }
    let beside = entry("{redact: [card.number], effect: \"pay:{card.id}\", decision: allow}");
    Policy::from_yaml(beside.replace("a.b:\n    {", "a.b: {").as_bytes()).expect("another part of it");
}
