//! Files that a person names: what is read of them, and what is written.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::base::{Project, Ran};

const RECEIPT: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A run that cannot be understood.
fn misused(project: &Project, args: &[&str]) -> Value {
    let ran: Ran = project.run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, 2, "{args:?}\n{ran:?}");
    ran.error()
}

#[test]
fn what_is_no_file_is_named_as_it_was_typed_and_not_waited_for() {
    let project = Project::new();
    project.ok(&["runs", "start", "delivery", "c"]);
    assert!(Command::new("mkfifo").arg(project.path("pipe")).status().expect("run").success());
    fs::create_dir(project.path("directory")).expect("a directory");
    symlink("/dev/zero", project.path("endless")).expect("a link");
    for (name, why) in [
        ("pipe", "it is a pipe"),
        ("directory", "it is a directory"),
        ("endless", "it is a device"),
        ("not/here", "there is no such file"),
    ] {
        for line in [
            &["runs", "deliver", "delivery/c", "gate-a", "1", "--receipt-file", name][..],
            &["runs", "deliver", "delivery/c", "--file", name],
            &["lease", "renew", "--lease", name],
            &["lease", "hand-over", "x", RECEIPT, "--facts-file", name, "--reason", "r"],
            &["tasks", "plan", "delivery/c", "1", name],
        ] {
            let error = misused(&project, line);
            let message = error["message"].as_str().expect("a message");
            assert!(message.starts_with(&format!("{name} cannot be read: {why}")), "{line:?}: {message}");
        }
    }
}

#[test]
fn what_a_killed_worker_left_is_removed_by_the_next() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c"]);
    project.ok(&["runs", "transition", "simple/c", "running"]);
    fs::write(project.path("plan.json"), r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "1", "plan.json"]);
    let names = || {
        let entries = fs::read_dir(project.base().join("tmp")).expect("listed");
        entries.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    // The program kills its worker, as a machine that runs out of memory does.
    let killed = project
        .command(&[
            "tasks",
            "work",
            "simple/c",
            "--check",
            "true",
            "--for",
            "1s",
            "--",
            "sh",
            "-c",
            "kill -9 $PPID",
        ])
        .status()
        .expect("a run");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed), Some(9));
    assert!(!names().is_empty(), "what it wanted to read");
    fs::write(project.base().join("tmp/onceseal-wanted-mine"), "").expect("somebody else's");
    let ran = project.ok(&["tasks", "work", "simple/c", "--check", "true", "--until-empty", "--", "true"]);
    assert!(ran.stderr.contains("2 tasks verified"), "{ran:?}");
    assert_eq!(names(), ["onceseal-wanted-mine"]);
}
