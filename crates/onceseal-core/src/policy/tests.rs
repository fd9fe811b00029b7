use super::*;
use crate::approval::Proof;

fn policy(body: &str) -> Policy {
    Policy::from_yaml(format!("schema: onceseal.policy/v1\n{body}").as_bytes()).expect("valid")
}

fn person(text: &str) -> Identity {
    let (proof, name) = text.split_once(':').expect("proof:name");
    let proof = if proof == "os" { Proof::Os } else { Proof::Host };
    Identity { proof, name: name.to_owned() }
}

const PEOPLE: [&str; 8] =
    ["os:ada", "host:ada", "os:bob", "host:bob", "os:carol", "host:carol", "host:Ada", "host:x:y"];

fn entitled(approval: &str) -> String {
    let policy = policy(&format!(
        "groups: {{ one: [ada, 'os:bob'], two: ['host:carol', 'host:x:y'] }}
actions: {{ a.b: {{ decision: approve, approval: {approval} }} }}"
    ));
    let entry = policy.entry("a.b").expect("listed");
    PEOPLE.into_iter().filter(|who| policy.entitles(entry, &person(who))).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_entry_entitles_whom_its_proofs_and_groups_name() {
    for (approval, expected) in [
        ("{}", "os:ada host:ada os:bob host:bob os:carol host:carol host:Ada host:x:y"),
        ("{ proof: [os] }", "os:ada os:bob os:carol"),
        ("{ approvers: [one] }", "os:ada host:ada os:bob"),
        ("{ approvers: [two] }", "host:carol host:x:y"),
        ("{ approvers: [one, two] }", "os:ada host:ada os:bob host:carol host:x:y"),
        ("{ approvers: [one], proof: [host] }", "host:ada"),
        ("{ approvers: [one], proof: [os] }", "os:ada os:bob"),
        ("{ approvers: [two], proof: [os] }", ""),
    ] {
        assert_eq!(entitled(approval), expected, "{approval}");
    }
}

#[test]
fn operators_are_a_group_or_anybody_proven() {
    let anybody = policy("actions: {}");
    assert!(PEOPLE.iter().all(|who| anybody.is_operator(&person(who))));
    let some = policy("groups: { ops: [ada, 'host:bob'] }\noperators: [ops]\nactions: {}");
    let operators: Vec<_> = PEOPLE.into_iter().filter(|who| some.is_operator(&person(who))).collect();
    assert_eq!(operators, ["os:ada", "host:ada", "host:bob"]);
}

#[test]
fn a_request_needs_as_many_different_people_as_its_quorum() {
    for (approval, owner, people) in [
        ("{ quorum: 16 }", None, None),
        ("{ quorum: 2, proof: [host] }", None, None),
        ("{ quorum: 2, proof: [os] }", Some("ada"), Some(1)),
        ("{ quorum: 1, proof: [os] }", None, None),
        ("{ quorum: 1, proof: [os], approvers: [one] }", Some("ada"), None),
        ("{ quorum: 1, proof: [os], approvers: [one] }", Some("carol"), Some(0)),
        ("{ quorum: 1, proof: [os], approvers: [two] }", None, Some(0)),
        ("{ quorum: 2, approvers: [one] }", Some("bob"), None),
        ("{ quorum: 2, approvers: [one] }", Some("ada"), Some(1)),
        ("{ quorum: 2, approvers: [one] }", None, None),
        ("{ quorum: 3, approvers: [one, two] }", Some("eve"), None),
        ("{ quorum: 4, approvers: [one, two] }", Some("eve"), Some(3)),
        ("{ quorum: 2, approvers: [same] }", Some("eve"), Some(1)),
        ("{ quorum: 2, approvers: [same] }", Some("ada"), Some(1)),
        ("{ quorum: 1, proof: [host], approvers: [logins] }", Some("ada"), Some(0)),
    ] {
        let policy = policy(&format!(
            "groups:
  one: [ada, 'os:bob']
  two: ['host:carol', 'host:x:y']
  same: ['os:ada', 'host:ada']
  logins: ['os:ada', 'os:bob']
actions: {{ a.b: {{ decision: approve, approval: {approval} }} }}"
        ));
        let entry = policy.entry("a.b").expect("listed");
        let expected =
            people.map_or(Ok(()), |people| Err(Unanswerable { quorum: entry.approval.quorum, people }));
        assert_eq!(policy.answerable(entry, owner), expected, "{approval} {owner:?}");
    }
}

#[test]
fn lease_and_deadline_never_contradict_each_other() {
    let times = |body: &str| {
        let policy = policy(&format!("actions: {{ a.b: {{ decision: deny, {body} }} }}"));
        let entry = policy.entry("a.b").expect("listed");
        let lease = entry.lease_or(DEFAULT_LEASE);
        (lease.to_string(), entry.deadline_for(lease).to_string())
    };
    for (body, lease, deadline) in [
        ("floats: allow", "5m", "10m"),
        ("lease: 2m", "2m", "10m"),
        ("lease: 1h", "1h", "1h"),
        ("deadline: 1m", "1m", "1m"),
        ("deadline: 1h", "5m", "1h"),
        ("lease: 1m, deadline: 2m", "1m", "2m"),
    ] {
        assert_eq!(times(body), (lease.to_owned(), deadline.to_owned()), "{body}");
    }
}

#[test]
fn what_an_approval_binds_is_the_entry_as_written() {
    let rule = |body: &str| policy(body).rule_document("a.b").expect("listed");
    let bound =
        rule("actions: { a.b: { decision: approve, approval: { approvers: [g] } } }\ngroups: { g: [ada] }");
    let names: Vec<_> = bound.as_object().expect("object").iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["entry", "name", "schema"]);
    let other_members =
        rule("groups: { g: [bob] }\nactions: { a.b: { approval: { approvers: [g] }, decision: approve } }");
    assert_eq!(bound, other_members);
    let with_a_default = rule(
        "groups: { g: [bob] }\nactions: { a.b: { approval: { approvers: [g], ttl: 15m }, decision: approve } }",
    );
    assert_ne!(bound, with_a_default);
    assert_eq!(policy("actions: {}").rule_document("a.b"), None);
}

#[test]
fn the_document_is_what_the_file_says_and_nothing_more() {
    let names = |body: &str| {
        let policy = policy(body);
        let members = policy.document().as_object().expect("object").iter();
        members.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("actions: {}"), ["actions", "schema"]);
    assert_eq!(
        names("groups: { g: [a] }\nactions: {}\noperators: [g]"),
        ["actions", "groups", "operators", "schema"]
    );
}

#[test]
fn other_sections_of_the_file_are_taken_out_before_it_is_compiled() {
    let file = b"schema: onceseal.policy/v1\nsettings: { store: x }\nactions: { a.b: { decision: alow } }\n";
    let mut document = Document::read(file).expect("YAML");
    let refused = Policy::from_document(&document).expect_err("settings are no policy");
    assert!(matches!(refused.kind, PolicyErrorKind::UnknownKey { .. }), "{refused}");
    assert!(document.take("settings").is_some());
    let refused = Policy::from_document(&document).expect_err("alow");
    assert_eq!(refused.position, Some(Position { line: 3, column: 19 }));
}
