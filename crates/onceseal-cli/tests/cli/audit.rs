//! `audit`: intact, broken, or could not be checked.

use std::fs;

use serde_json::json;

use crate::base::Project;

fn project() -> Project {
    let project = Project::new();
    project.refund("txn_1", 50_000, &[]);
    project.asked("txn_2");
    project.unknown("txn_3");
    project
}

/// Changes bytes of the database file, as many as they were.
fn rewrite(project: &Project, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(project.database()).expect("the database");
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "{from} is there");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    fs::write(project.database(), bytes).expect("written");
}

#[test]
fn ua_149_intact_broken_and_not_checkable_are_three_exit_codes() {
    let project = project();
    let intact = project.ok(&["audit"]);
    assert!(intact.stdout.contains("intact; 12 events in 8 streams"), "{intact:?}");

    rewrite(&project, "\"amount\":50000", "\"amount\":10000");
    let broken = project.refused(&["audit"]);
    assert!(broken.stdout.contains("[payload_differs]"), "{broken:?}");
    let document = project.refused(&["audit", "--json"]).document();
    assert_eq!((&document["schema"], &document["clean"]), (&json!("onceseal.audit/v1"), &json!(false)));
    assert_eq!(document["findings"][0]["code"], "payload_differs");

    fs::write(project.database(), "no database ".repeat(500)).expect("written");
    let unknown = project.run(&["audit", "--json"]);
    assert_eq!((unknown.code, unknown.error()["code"].clone()), (3, json!("store_foreign")));
}

#[test]
fn a_store_that_went_back_is_not_intact_although_it_is_consistent() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let backup = fs::read(project.database()).expect("a backup");
    project.refund("txn_2", 1, &[]);
    fs::write(project.database(), backup).expect("restored");
    let audit = project.refused(&["audit"]);
    assert!(audit.stdout.contains("[went_back]"), "{audit:?}");
}

#[test]
fn an_audit_can_begin_after_a_position_and_says_what_that_leaves_out() {
    let project = project();
    let document = project.json(&["audit", "--since", "10"]);
    assert_eq!((&document["since"], &document["clean"]), (&json!(10), &json!(true)));
    let notes: Vec<_> =
        document["notes"].as_array().expect("notes").iter().map(|n| n["code"].clone()).collect();
    assert_eq!(notes, ["not_covered", "not_covered"]);
}

#[test]
fn without_a_store_there_is_nothing_to_audit() {
    let ran = Project::new().run(&["audit"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (3, "", "error[store_missing]: there is no store to audit\n")
    );
}
