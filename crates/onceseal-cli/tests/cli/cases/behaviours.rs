//! The behaviours of the reference's case file and command line, by their ids.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{changed, project, vectors};
use crate::base::{Project, Ran};

/// What is said of a case file with these bytes: nothing if it is taken.
fn said_of(bytes: &[u8]) -> Option<String> {
    let project = project();
    fs::write(project.path("case.json"), bytes).expect("a case");
    let ran = project.run(&["operations", "status", "--case", "case.json", "--status-ref", "none", "--json"]);
    if ran.code != 2 {
        return None;
    }
    let error = ran.error();
    assert_eq!(error["code"], "case_invalid", "{error}");
    Some(error["message"].as_str().expect("a sentence").to_owned())
}

/// What is said of the base case with one thing changed.
fn said_with(path: &[&str], value: Value) -> Option<String> {
    let base = vectors()["fixture_base"].clone();
    said_of(changed(&base, &json!({ "path": path, "value": value })).to_string().as_bytes())
}

/// Complains, and names this.
fn complains(said: Option<String>, of: &str) {
    let said = said.expect("a complaint");
    assert!(said.contains(of), "{said}");
}

#[test]
fn f01_f02_the_case_of_the_reference_is_taken_and_names_its_tool() {
    assert_eq!(said_with(&["now"], json!(1_784_419_200)), None);
    assert_eq!(vectors()["fixture_base"]["proposal"]["name"], "create_refund_draft");
}

#[test]
fn f03_an_object_that_repeats_a_key_is_refused() {
    complains(said_of(br#"{"a":1,"a":2}"#), "twice");
}

#[test]
fn f04_what_is_no_number_is_refused() {
    let base = vectors()["fixture_base"].to_string().replace("1784419200", "NaN");
    complains(said_of(base.as_bytes()), "not in form");
}

#[test]
fn f05_what_is_no_utf_8_is_refused() {
    complains(said_of(&[0xff]), "not in form");
}

#[test]
fn f06_a_file_that_is_too_large_is_refused() {
    complains(said_of(&[b' '; 65_537]), "larger than 65,536 bytes");
}

#[test]
fn f07_a_file_that_nests_too_deep_is_refused_for_that() {
    complains(said_of(["[".repeat(4096), "]".repeat(4096)].concat().as_bytes()), "nest");
}

#[test]
fn f08_one_field_too_many_at_the_root_is_refused() {
    complains(said_with(&["extra"], json!(true)), "the root has");
}

#[test]
fn f09_roles_out_of_order_or_twice_are_refused() {
    complains(said_with(&["principal", "roles"], json!(["b", "a", "a"])), "roles");
}

#[test]
fn f10_a_moment_that_is_none_or_has_no_time_after_it_is_refused() {
    complains(said_with(&["now"], json!(true)), "now");
    complains(said_with(&["now"], json!(253_402_300_799_i64)), "now");
}

#[test]
fn f11_an_adapter_that_is_not_known_is_refused() {
    complains(said_with(&["execution_context", "adapter_revision"], json!("x")), "profile");
}

#[test]
fn f12_a_call_without_a_key_is_refused() {
    complains(said_with(&["execution_context", "idempotency_key"], Value::Null), "idempotency_key");
}

#[test]
fn f13_a_tool_that_is_not_declared_is_told_as_unknown() {
    let project = project();
    let change = json!({ "path": ["proposal", "name"], "value": "get_order" });
    let case = changed(&vectors()["fixture_base"], &change);
    fs::write(project.path("case.json"), case.to_string()).expect("a case");
    let ran = project.refused(&["operations", "dispatch", "--case", "case.json"]);
    assert_eq!(ran.document()["code"], "UNKNOWN_TOOL");
}

/// A dispatch of the base case, with these arguments besides.
fn dispatch(project: &Project, more: &[&str]) -> Ran {
    fs::write(project.path("case.json"), vectors()["fixture_base"].to_string()).expect("a case");
    let args = ["operations", "dispatch", "--case", "case.json"];
    project.run(&args.iter().chain(more).copied().collect::<Vec<_>>())
}

#[test]
fn l01_a_case_is_dispatched_and_passes() {
    let ran = dispatch(&project(), &[]);
    let document = ran.document();
    assert_eq!((ran.code, &document["gate"], &document["delivery"]), (0, &json!("PASS"), &json!("fresh")));
}

#[test]
fn l02_a_case_stopped_after_the_remote_acted_is_unknown_and_its_status_passes() {
    let project = project();
    let ran = dispatch(&project, &["--fault", "after_downstream_commit"]);
    let document = ran.document();
    assert_eq!((ran.code, &document["gate"], &document["status"]), (1, &json!("BLOCK"), &json!("unknown")));
    let reference = document["status_ref"].as_str().expect("a reference");
    let status = project.ok(&["operations", "status", "--case", "case.json", "--status-ref", reference]);
    assert_eq!(status.document()["gate"], json!("PASS"));
    assert_eq!(project.read("remote.jsonl").lines().count(), 1);
}

#[test]
fn l03_a_new_store_passes_the_audit() {
    let document = project().ok(&["operations", "audit"]).document();
    assert_eq!((&document["gate"], &document["clean"]), (&json!("PASS"), &json!(true)));
}

#[test]
fn l04_a_case_file_that_is_not_there_is_told_without_its_path() {
    let args = ["operations", "dispatch", "--case", "secret-place/case.json", "--json"];
    let ran = project().run(&args);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("case_unreadable") && !ran.stderr.contains("secret-place"), "{ran:?}");
}

#[test]
fn l05_a_case_file_that_nests_too_deep_is_told_and_nothing_else_happens() {
    let project = project();
    fs::write(project.path("case.json"), ["[".repeat(4096), "]".repeat(4096)].concat()).expect("a case");
    let ran = project.run(&["operations", "dispatch", "--case", "case.json", "--json"]);
    assert_eq!((ran.code, ran.stderr.contains("case_invalid")), (2, true), "{ran:?}");
}

/// The account that runs the program is told which file; no model and no other
/// account is.
#[test]
fn l06_a_state_below_a_plain_file_is_told_with_a_stable_code() {
    let project = project();
    fs::write(project.path("plain"), "no directory").expect("a file");
    fs::write(project.path("case.json"), vectors()["fixture_base"].to_string()).expect("a case");
    let mut command = project.command(&["operations", "dispatch", "--case", "case.json", "--json"]);
    let below = project.path("plain").join("below");
    let ran = crate::base::ran(command.env("ONCESEAL_STATE", below).output().expect("a run"));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.error()["code"].is_string() && ran.stdout.is_empty(), "{ran:?}");
}

#[test]
fn of_eight_processes_that_dispatch_one_case_one_does_it_and_the_others_are_told_what_stands() {
    let project = project();
    fs::write(project.path("case.json"), vectors()["fixture_base"].to_string()).expect("a case");
    let started: Vec<_> = (0..8)
        .map(|_| {
            let mut command = project.command(&["operations", "dispatch", "--case", "case.json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
        })
        .collect();
    let mut told = BTreeMap::<String, usize>::new();
    for process in started {
        let ran = crate::base::ran(process.wait_with_output().expect("it ends"));
        let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let word = match document["code"].as_str() {
            Some("OK") => document["delivery"].as_str().expect("a delivery"),
            code => code.expect("a code"),
        };
        *told.entry(word.to_owned()).or_default() += 1;
    }
    assert_eq!(told.get("fresh"), Some(&1), "{told:?}");
    assert!(
        told.keys().all(|word| ["fresh", "local_replay", "OUTCOME_UNKNOWN"].contains(&&**word)),
        "{told:?}"
    );
    assert_eq!(project.read("remote.jsonl").lines().count(), 1);
}
