//! Handoffs from the shell: a resource passes on once, with its facts.

use serde_json::json;

use crate::base::{Project, snapshot};
use crate::tasks::pretty;

#[test]
fn a_resource_is_handed_over_with_its_facts_once() {
    let project = Project::new();
    let receipt = format!("sha256:{}", "b".repeat(64));
    project.ok(&["lease", "acquire", "selector", "--for", "1h", "--to", "old.json"]);
    let over = ["lease", "hand-over", "selector", &receipt, "--facts", r#"{"at":7}"#, "--lease", "old.json"];
    let prepared = project.json(&over);
    assert_eq!(
        (&prepared["state"], &prepared["facts"]["at"], &prepared["repeated"]),
        (&json!("prepared"), &json!(7), &json!(false))
    );
    assert_eq!(project.json(&over)["repeated"], true);
    snapshot("json_lease_hand_over", &pretty(&prepared));
    let other = format!("sha256:{}", "c".repeat(64));
    let second = ["lease", "hand-over", "selector", &other, "--facts", "{}", "--reason", "mine", "--json"];
    assert_eq!(project.refused(&second).error()["code"], "handoff_prepared");
    let inspected = project.json(&["lease", "inspect", "selector"]);
    assert_eq!(inspected["handoff"]["state"], "prepared");
    let accepted = project.ok(&["lease", "accept", "selector", &receipt, "--for", "1h", "--to", "new.json"]);
    assert!(accepted.stderr.contains(r#"facts: {"at":7}"#), "{accepted:?}");
    assert_eq!(
        project.refused(&["lease", "renew", "--lease", "old.json", "--json"]).error()["code"],
        "lease_fenced"
    );
    project.ok(&["lease", "renew", "--lease", "new.json"]);
    let late = project.refused(&["lease", "accept", "selector", &receipt, "--json"]).error();
    assert_eq!((&late["code"], &late["why"]), (&json!("handoff_over"), &json!("it is accepted")));
    project.ok(&["lease", "hand-over", "selector", &other, "--facts", "{}", "--reason", "the new one hangs"]);
    assert_eq!(
        project.json(&["lease", "withdraw", "selector", &other, "--lease", "new.json"])["state"],
        "withdrawn"
    );
    assert_eq!(
        project.refused(&["lease", "accept", "selector", &other, "--json"]).error()["code"],
        "handoff_over"
    );
    let unknown = format!("sha256:{}", "d".repeat(64));
    assert_eq!(
        project.refused(&["lease", "withdraw", "selector", &unknown, "--reason", "x", "--json"]).error()["code"],
        "handoff_unknown"
    );
    let bad = project.run(&[
        "lease",
        "hand-over",
        "selector",
        &unknown,
        "--facts",
        "[]",
        "--reason",
        "x",
        "--json",
    ]);
    assert_eq!((bad.code, &bad.error()["code"]), (2, &json!("facts_invalid")));
    assert_eq!(
        project.run(&["lease", "hand-over", "selector", &unknown, "--facts", "{}"]).code,
        2,
        "on nobody's word"
    );
    assert_eq!(project.json(&["audit"])["clean"], true);
}
