//! `demo`: every failure it shows is really stopped.

use std::fs;

use crate::base::Project;

#[test]
fn every_failure_is_stopped_by_what_it_should_be_and_nothing_is_left() {
    let project = Project::empty();
    let demo = project.json(&["demo"]);
    let scenes: Vec<_> = demo["scenes"]
        .as_array()
        .expect("scenes")
        .iter()
        .map(|scene| (scene["name"].as_str().expect("a name"), scene["by"].as_str().unwrap_or("nothing")))
        .collect();
    assert_eq!(
        scenes,
        [
            ("lost answer", "ambiguous"),
            ("mutated approval", "approval_mismatch"),
            ("two agents on one effect", "in_progress"),
            ("replayed approval", "approval_used"),
            ("late worker", "fenced"),
            ("crash in the middle", "ambiguous"),
            ("tampered journal", "payload_differs"),
        ]
    );
    for (directory, what) in [("tmp", "a temporary file"), ("state", "state"), ("project", "a file")] {
        let left = fs::read_dir(project.base().join(directory)).expect("a directory").count();
        assert_eq!(left, 0, "{what} was left");
    }
}

#[test]
fn the_store_of_a_demo_can_be_kept_and_looked_at() {
    let project = Project::empty();
    let demo = project.json(&["demo", "--keep"]);
    let state = demo["kept"].as_str().expect("a directory").to_owned();
    let run = |args: &[&str]| {
        let output = project.command(args).env("ONCESEAL_STATE", &state).output().expect("a run");
        crate::base::ran(output)
    };
    let effects = run(&["effects", "list"]);
    assert!(effects.stdout.contains("refund:txn_5  committed  2"), "{effects:?}");
    assert_eq!(run(&["audit"]).code, 0);
}
