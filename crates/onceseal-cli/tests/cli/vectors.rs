//! The command-line cases of ctrlrun that Onceseal follows; where it departs,
//! the reason stands beside the case.

use std::fs;

use serde_json::Value;

use crate::base::{Project, Ran, ran};

/// What a case expects here.
enum Expected {
    /// The exit status of the vector.
    Same,
    /// Another one, for this reason.
    Exit(i32, &'static str),
}

fn departures(case: &str) -> Expected {
    const USAGE: &str = "a state that cannot be used exits 2, apart from refusals, which exit 1";
    match case {
        "CTRLRUN_STATE empty" | "CTRLRUN_STATE=:memory:" | "CTRLRUN_STATE names a non-database" => {
            Expected::Exit(2, USAGE)
        }
        "approve twice" => Expected::Exit(0, "repeating one's own answer changes nothing and succeeds"),
        "deny granted" => Expected::Exit(0, "an entitled person's no after the grant takes it back"),
        _ => Expected::Same,
    }
}

/// A granted request.
fn granted(project: &Project) -> String {
    let id = project.asked("txn_1");
    project.ok(&["approve", &id]);
    id
}

fn in_state(project: &Project, state: &str) -> Ran {
    ran(project.command(&["receipts", "list"]).env("ONCESEAL_STATE", state).output().expect("a run"))
}

const RESOLVE: [&str; 5] = ["resolve", "refund:txn_1", "--failed", "--reason", "looked"];

/// Plays a case in our words: `effects` is `effects list`, `receipts --last 1`
/// is `receipts list --newest --limit 1`, and `resolve` needs a reason.
fn play(case: &str, project: &Project) -> Ran {
    match case {
        "effects on a fresh directory" => project.run(&["effects", "list"]),
        "effects filtered" => project.run(&["effects", "list", "--state", "ambiguous"]),
        "effects bad state" => project.run(&["effects", "list", "--state", "bogus"]),
        "resolve without flag" => project.run(&["resolve", "k", "--reason", "x"]),
        "resolve with both flags" => {
            project.run(&["resolve", "k", "--committed", "--failed", "--reason", "x"])
        }
        "init" => Project::empty().run(&["init"]),
        "init again" => project.run(&["init"]),
        "demo" => project.run(&["demo"]),
        "receipts --last 1 --json" => {
            project.refund("txn_1", 1, &[]);
            project.run(&["receipts", "list", "--newest", "--limit", "1", "--json"])
        }
        "resolve ambiguous --failed" => {
            project.unknown("txn_1");
            project.run(&RESOLVE)
        }
        "resolve twice" => {
            project.unknown("txn_1");
            project.ok(&RESOLVE);
            project.run(&RESOLVE)
        }
        "CTRLRUN_STATE empty" => in_state(project, ""),
        "CTRLRUN_STATE=:memory:" => in_state(project, ":memory:"),
        "CTRLRUN_STATE names a non-database" => {
            project.refund("txn_1", 1, &[]);
            fs::write(project.database(), "no database ".repeat(500)).expect("written");
            project.run(&["receipts", "list"])
        }
        "approve pending" => {
            let id = project.asked("txn_1");
            project.run(&["approve", &id])
        }
        "approve twice" => {
            let id = granted(project);
            project.run(&["approve", &id])
        }
        "deny granted" => {
            let id = granted(project);
            project.run(&["deny", &id])
        }
        "deny pending" => {
            let id = project.asked("txn_1");
            project.run(&["deny", &id])
        }
        case => panic!("a case nobody plays: {case}"),
    }
}

/// What the vector says was observed, in our form.
fn observed(case: &str, ran: &Ran) -> bool {
    let lines = |text: &str| text.lines().count();
    match case {
        "effects on a fresh directory" => (ran.stdout.as_str(), ran.stderr.as_str()) == ("", "no effects\n"),
        "effects filtered" => ran.stderr == "no ambiguous effects\n",
        "effects bad state" => ran.stderr.contains("reserved, executing, committed, failed, ambiguous"),
        "init" => ["policy", "project", "state"].iter().all(|word| ran.stdout.contains(word)),
        "init again" => ran.stderr.contains("already_initialised"),
        "demo" => ran.stdout.matches("STOPPED").count() >= 4 && !ran.stdout.contains("NOT STOPPED"),
        "receipts --last 1 --json" => {
            lines(&ran.stdout) == 1 && ran.document()["items"].as_array().is_some_and(|i| i.len() == 1)
        }
        "resolve ambiguous --failed" => {
            ran.stdout.contains("failed by os:") && ran.stderr.contains("a new attempt is possible")
        }
        "resolve twice" => ran.stderr.contains("not_ambiguous"),
        "CTRLRUN_STATE names a non-database" => ran.stderr.contains("store_foreign"),
        "approve pending" => {
            ran.stdout.contains("action hash  sha256:") && ran.stdout.contains("usable once, until 2")
        }
        "approve twice" => ran.stdout.contains("granted, as before"),
        "deny granted" => ran.stdout.contains("revoked"),
        "deny pending" => ran.stdout.contains("denied"),
        _ => true,
    }
}

#[test]
fn every_command_line_case_is_played() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/approvals-effects.json");
    let vectors: Value = serde_json::from_slice(&fs::read(path).expect("the vectors")).expect("JSON");
    let cases = vectors["cli"].as_array().expect("cases");
    let (mut same, mut adapted) = (0, 0);
    for case in cases {
        let name = case["case"].as_str().expect("a name");
        let ran = play(name, &Project::new());
        let expected = match departures(name) {
            Expected::Same => {
                same += 1;
                case["exit"].as_i64().expect("a status")
            }
            Expected::Exit(code, reason) => {
                assert_ne!(case["exit"], i64::from(code), "{name}: nothing departs ({reason})");
                adapted += 1;
                i64::from(code)
            }
        };
        assert_eq!(i64::from(ran.code), expected, "{name}: {ran:?}");
        assert!(observed(name, &ran), "{name}: {ran:?}");
    }
    println!("{} cases: {same} as they are, {adapted} adapted", cases.len());
    assert_eq!((same, adapted), (13, 5));
}
