//! The `policy` and `effect_template` cases of the reference, all of them.
//!
//! A case passes when it comes out as the reference says. A case that the
//! design changes stands in a table below with what comes out here and why;
//! a case that stands there although nothing changes fails the test.

use onceseal_core::json::{self, Object, Value};
use onceseal_core::policy::{Facts, Policy, Template, TemplateKind};
use serde_json::Value as Json;

const YAML_1_2: &str = "YAML 1.2 core types, not YAML 1.1";
const NO_ALIASES: &str = "strict YAML: no aliases or merge keys";
const NO_DUPLICATES: &str = "strict YAML: duplicate keys are refused (the reference too, since 0.6.1)";
const FIELDS: &str = "environment, agent and user conditions";
const OPERATORS: &str = "contains is an operator";
const EFFECT: &str = "an entry may have an effect template";
const ESCAPED: &str = "templates escape";
const APART: &str = "two placeholders need a literal between them";
const BOUNDED: &str = "integers are bounded";
const DOTTED: &str = "dotted paths in templates";

const REFUSED: &str = "refused";
const LOADED: &str = "loaded";

/// Case, what comes out here, and the design's reason.
const POLICY_ADAPTED: &[(&str, &str, &str)] = &[
    ("po-072-yaml-0o17-is-string-in-yaml11", "deny no_matching_rule", YAML_1_2),
    ("po-073-yaml11-octal-017-is-15", "deny no_matching_rule", YAML_1_2),
    ("po-074-yaml11-underscore-int", "deny no_matching_rule", YAML_1_2),
    ("po-075-yaml11-yes-is-true", "deny no_matching_rule", YAML_1_2),
    ("po-077-yaml11-sexagesimal", "deny no_matching_rule", YAML_1_2),
    ("po-078-condition-cannot-see-environment-arg-name-reserved", LOADED, FIELDS),
    ("po-095-datetime-operand", LOADED, YAML_1_2),
    ("po-098-unknown-op", LOADED, OPERATORS),
    ("po-117-entry-v2-effect-key", LOADED, EFFECT),
    ("po-142-duplicate-action-key", REFUSED, NO_DUPLICATES),
    ("po-143-duplicate-decision-key", REFUSED, NO_DUPLICATES),
    ("po-144-duplicate-condition-key", REFUSED, NO_DUPLICATES),
    ("po-145-yaml-alias", REFUSED, NO_ALIASES),
    ("po-146-yaml-merge-key", REFUSED, NO_ALIASES),
];

/// Case, what comes out here, and the design's reason.
const TEMPLATE_ADAPTED: &[(&str, &str, &str)] = &[
    ("et-004", "arguments refused", BOUNDED),
    ("et-012", "parse", APART),
    ("et-015", "payment%3Atxn_1", ESCAPED),
    ("et-020", "refund:acme:evil%3Ap1", ESCAPED),
    ("et-021", "refund:%20", ESCAPED),
    ("et-022", "refund:a%0Ab", ESCAPED),
    ("et-023", "refund:%7Bx%7D", ESCAPED),
    ("et-032", "refund:1", DOTTED),
];

fn cases(section: &str) -> Vec<Json> {
    let vectors: Json =
        serde_json::from_str(include_str!("../../../vectors/approvals-effects.json")).expect("JSON");
    vectors[section].as_array().expect("a section").clone()
}

/// `None` where the strict reader refuses them.
fn arguments(text: &Json) -> Option<Object> {
    let text = text.as_str().expect("text");
    match json::read(text.as_bytes(), &json::Limits::ACTION).ok()? {
        Value::Object(arguments) => Some(arguments),
        other => panic!("arguments are an object: {other:?}"),
    }
}

fn text<'a>(json: &'a Json, member: &str) -> Option<&'a str> {
    json[member].as_str()
}

/// What this project does with a policy case.
fn policy_outcome(case: &Json) -> String {
    let file = text(case, "policy_yaml").expect("text").replace("ctrlrun.policy/", "onceseal.policy/");
    let Ok(policy) = Policy::from_yaml(file.as_bytes()) else { return REFUSED.to_owned() };
    let action = &case["action"];
    let Some(name) = text(action, "name") else { return LOADED.to_owned() };
    let arguments = arguments(&action["arguments_json"]).expect("safe integers only");
    let decision = policy.decide(&Facts {
        name,
        arguments: &arguments,
        environment: text(action, "environment").unwrap_or("production"),
        agent: text(action, "agent").unwrap_or("agent"),
        user: text(action, "user"),
    });
    format!("{} {}", decision.verdict, decision.reason)
}

/// What the reference does with a policy case, in the same words.
fn policy_expected(case: &Json) -> String {
    match text(&case["expect"], "stage") {
        Some(_) => REFUSED.to_owned(),
        None => {
            let word = |member| text(&case["expect"], member).expect("text");
            format!("{} {}", word("decision"), word("reason"))
        }
    }
}

fn template_outcome(case: &Json) -> String {
    let kind = match text(case, "kind") {
        Some("effect") => TemplateKind::Effect,
        Some("resource") => TemplateKind::Resource,
        other => panic!("unknown kind {other:?}"),
    };
    let Ok(template) = Template::parse(text(case, "template").expect("text"), kind) else {
        return "parse".to_owned();
    };
    let Some(arguments) = arguments(&case["arguments_json"]) else { return "arguments refused".to_owned() };
    template.resolve(&arguments, text(case, "resource")).unwrap_or_else(|_| "resolve".to_owned())
}

fn template_expected(case: &Json) -> String {
    let expect = &case["expect"];
    let word = ["stage", "key", "resource"].into_iter().find_map(|member| text(expect, member));
    word.expect("an outcome").to_owned()
}

/// Runs a section and prints how many cases passed and how many are adapted.
fn run(
    section: &str,
    adapted: &[(&str, &str, &str)],
    outcome: fn(&Json) -> String,
    expected: fn(&Json) -> String,
) -> (usize, usize) {
    let cases = cases(section);
    let mut passed = 0;
    for case in &cases {
        let id = text(case, "id").expect("an id");
        let (ours, theirs) = (outcome(case), expected(case));
        match adapted.iter().find(|(adapted, ..)| *adapted == id) {
            None => {
                assert_eq!(ours, theirs, "{id}");
                passed += 1;
            }
            Some((_, here, why)) => {
                assert_eq!(ours, *here, "{id}: {why}");
                assert_ne!(ours, theirs, "{id} comes out as in the reference; take it from the table");
            }
        }
    }
    let known = |id: &str| cases.iter().any(|case| text(case, "id") == Some(id));
    assert!(adapted.iter().all(|(id, ..)| known(id)), "the table names a case that is not there");
    println!("{section}: {} cases, {passed} passed, {} adapted", cases.len(), adapted.len());
    for (id, here, why) in adapted {
        println!("  adapted {id}: {here} ({why})");
    }
    (passed, adapted.len())
}

#[test]
fn the_policy_cases_of_the_reference() {
    let (passed, adapted) = run("policy", POLICY_ADAPTED, policy_outcome, policy_expected);
    assert_eq!(passed + adapted, 98);
}

#[test]
fn the_template_cases_of_the_reference() {
    let (passed, adapted) = run("effect_template", TEMPLATE_ADAPTED, template_outcome, template_expected);
    assert_eq!(passed + adapted, 28);
}

/// Nothing is looser here than in the reference: what it refuses to load and
/// is loaded here decides no action of the cases.
#[test]
fn p08_no_adapted_case_is_looser() {
    let strictness = |outcome: &str| match outcome.split(' ').next() {
        Some("allow") => 2,
        Some("approve") => 1,
        _ => 0,
    };
    for case in cases("policy") {
        let (ours, theirs) = (policy_outcome(&case), policy_expected(&case));
        assert!(strictness(&ours) <= strictness(&theirs), "{}: {ours} is looser than {theirs}", case["id"]);
    }
}
