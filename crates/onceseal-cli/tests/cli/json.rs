//! The `--json` forms: a contract.

use crate::base::{Project, refund, snapshot};

/// A document over several lines, for reading a difference.
fn pretty(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
    serde_json::to_string_pretty(&value).expect("JSON")
}

/// One of each: a committed, an unknown and a waiting effect.
fn project() -> (Project, String) {
    let project = Project::new();
    project.refund("txn_1", 50_000, &[]);
    let approval = project.asked("txn_2");
    project.unknown("txn_3");
    (project, approval)
}

#[test]
fn documents_of_every_command_that_prints_data() {
    let (project, approval) = project();
    let receipt = project.items(&["receipts", "list"])[0]["receipt"].as_str().expect("an id").to_owned();
    let action = project.items(&["actions", "list"])[0]["action"].as_str().expect("an id").to_owned();
    for (name, args) in [
        ("actions_list", &["actions", "list", "--limit", "1"][..]),
        ("actions_show", &["actions", "show", &action]),
        ("approvals_show", &["approvals", "show", &approval]),
        ("pending", &["pending"]),
        ("effects_list", &["effects", "list"]),
        ("effects_show", &["effects", "show", "refund:txn_3"]),
        ("receipts_list", &["receipts", "list", "--limit", "1"]),
        ("receipts_show", &["receipts", "show", &receipt]),
        ("events", &["events", "--limit", "2"]),
        ("policy_check", &["policy", "check"]),
        ("policy_explain", &["policy", "explain", "stripe.refund", "--arg", "amount:=1"]),
        ("policy_apply", &["policy", "apply"]),
        ("doctor", &["doctor"]),
        ("approve", &["approve", &approval]),
        ("resolve", &["resolve", "refund:txn_3", "--failed", "--reason", "looked"]),
    ] {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        let ran = project.ok(&args);
        assert_eq!(ran.stdout.lines().count(), 1, "one document is one line: {name}");
        snapshot(&format!("json_{name}"), &pretty(&ran.stdout));
    }
    let done = project.ok(&refund("txn_2", 500_000, &["--json"], "true").each());
    snapshot("json_exec", &pretty(&done.stdout));
}

#[test]
fn every_command_prints_a_document_where_there_is_nothing_to_tell_too() {
    let project = Project::new();
    for args in [
        &["actions", "list"][..],
        &["approvals", "list"],
        &["pending"],
        &["effects", "list"],
        &["receipts", "list"],
        &["events"],
        &["operations", "list"],
        &["operations", "routes"],
        &["doctor"],
        &["doctor", "--accept-went-back", "--reason", "x"],
        &["policy", "check"],
        &["policy", "explain", "a"],
        &["bench", "--callers", "1", "--seconds", "0.01", "--rounds", "1"],
        &["bench", "--processes", "1", "--seconds", "0.01"],
        &["bench", "runs", "--callers", "2", "--seconds", "0.01", "--events", "1000"],
        &["project", "adopt"],
        &["project", "new", "--forget"],
        &["policy", "apply"],
    ] {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        let ran = project.ok(&args);
        assert_eq!(ran.stdout.lines().count(), 1, "{args:?} {ran:?}");
        let schema = ran.document()["schema"].as_str().expect("a schema").to_owned();
        let expected = if args[0] == "audit" { "onceseal.audit/v1" } else { "onceseal.cli/v1" };
        assert_eq!(schema, expected, "{args:?}");
    }
    let project = Project::new();
    let audit = project.run(&["audit", "--json"]);
    assert_eq!((audit.code, &audit.error()["code"]), (3, &serde_json::json!("store_missing")), "{audit:?}");
}

#[test]
fn error_objects_say_what_why_and_what_next() {
    let (project, _) = project();
    for (name, line) in [
        ("duplicate", refund("txn_1", 50_000, &["--json"], "true")),
        ("key_conflict", refund("txn_1", 40_000, &["--json"], "true")),
        ("approval_needed", refund("txn_2", 500_000, &["--json"], "true")),
        ("ambiguous", refund("txn_3", 1, &["--json"], "true")),
        ("denied", refund("txn_4", 5_000_000, &["--json"], "true")),
        ("unknown", refund("txn_5", 1, &["--json"], "exit 7")),
    ] {
        let ran = project.refused(&line.each());
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{name}");
        snapshot(&format!("json_error_{name}"), &pretty(&ran.stderr));
    }
}

#[test]
fn the_same_errors_for_people() {
    let (project, _) = project();
    let mut text = String::new();
    for line in [
        refund("txn_1", 50_000, &[], "true"),
        refund("txn_1", 40_000, &[], "true"),
        refund("txn_2", 500_000, &[], "true"),
        refund("txn_3", 1, &[], "true"),
        refund("txn_4", 5_000_000, &[], "true"),
        refund("txn_5", 1, &[], "exit 7"),
    ] {
        text.push_str(&project.refused(&line.each()).stderr);
        text.push('\n');
    }
    snapshot("errors_for_people", &text);
}

#[test]
fn exports_are_json_lines_in_the_order_of_the_log_and_can_be_gone_on_with() {
    let (project, _) = project();
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let text = project.ok(args).stdout;
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    };
    let events = lines(&["export", "events"]);
    let listed = project.items(&["events"]);
    assert_eq!(events, listed);
    assert_eq!(lines(&["export", "events", "--after", "3"]), listed[3..]);
    let receipts = lines(&["export", "receipts"]);
    assert_eq!(receipts.len(), 2);
    let first = receipts[0]["position"].as_u64().expect("a position");
    assert_eq!(lines(&["export", "receipts", "--after", &first.to_string()]), receipts[1..]);
    let id = receipts[1]["receipt"]["receipt"].as_str().expect("an id");
    assert_eq!(receipts[1]["receipt"], project.json(&["receipts", "show", id]));
}

#[test]
fn a_follower_is_given_what_is_recorded_while_it_waits() {
    use std::io::{BufRead, BufReader};
    let project = Project::new();
    let mut command = project.command(&["events", "--follow", "--json"]);
    let mut follower = command.stdout(std::process::Stdio::piped()).spawn().expect("a run");
    let mut lines = BufReader::new(follower.stdout.take().expect("stdout")).lines();
    // There is not even a store when it begins.
    project.refund("txn_1", 1, &[]);
    let kinds: Vec<String> = lines
        .by_ref()
        .map(|line| serde_json::from_str::<serde_json::Value>(&line.expect("a line")).expect("JSON"))
        .map(|event| event["open"]["kind"].as_str().expect("a kind").to_owned())
        .take(6)
        .collect();
    follower.kill().and_then(|()| follower.wait()).expect("its end");
    assert_eq!(kinds.first().map(String::as_str), Some("store.created"));
    assert_eq!(kinds.last().map(String::as_str), Some("action.ended"));
}
