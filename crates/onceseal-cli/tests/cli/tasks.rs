//! Tasks from the shell: planned, taken and moved on by hand, and read.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::base::{Project, snapshot};

pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// A run with this plan that is worked on, and a check that passes everything.
pub(crate) fn planned(plan: &str) -> Project {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c"]);
    project.ok(&["runs", "transition", "simple/c", "running"]);
    fs::write(project.path("plan.json"), plan).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "1", "plan.json"]);
    script(&project, "check.sh", "cat > /dev/null");
    project
}

pub(crate) fn script(project: &Project, name: &str, text: &str) {
    let path = project.path(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("to be run");
}

/// So many tasks that wait for nothing.
pub(crate) fn many(n: usize, more: &str) -> String {
    let tasks: Vec<String> = (0..n).map(|n| format!("{{\"id\":\"t{n}\"{more}}}")).collect();
    format!("{{\"capacity\":8,\"tasks\":[{}]}}", tasks.join(","))
}

pub(crate) fn work<'a>(more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let line = ["tasks", "work", "simple/c", "--check", "./check.sh", "--until-empty"];
    line.iter().copied().chain(more.iter().copied()).chain(["--", "sh", "-c", script]).collect()
}

pub(crate) fn task(project: &Project, id: &str) -> Value {
    project.json(&["tasks", "show", "simple/c", id])
}

#[test]
fn a_task_is_taken_done_checked_and_verified_by_hand() {
    let project =
        planned(r#"{"tasks":[{"id":"form","phases":["build","ship"]},{"id":"docs","depends_on":["form"]}]}"#);
    let taken = project.json(&["tasks", "take", "simple/c", "--for", "1h", "--to", "lease.json"]);
    assert_eq!(
        (&taken["task"], &taken["phase"], &taken["lease"]["token"]),
        (&json!("form"), &json!("build"), &Value::Null)
    );
    assert_eq!(taken["spec"]["id"], "form");
    let none = project.refused(&["tasks", "take", "simple/c", "--json"]).error();
    assert_eq!((&none["code"], &none["retry"]), (&json!("no_task"), &json!("later")));
    fs::write(project.path("build.log"), "built\n").expect("a log");
    let done = ["tasks", "produced", "work-done", "--evidence-file", "build.log", "--lease", "lease.json"];
    assert_eq!(
        project.json(&[&done[..], &["--agent", "me", "--request", "p1"]].concat())["state"],
        "validating"
    );
    assert_eq!(project.json(&[&done[..], &["--agent", "me", "--request", "p1"]].concat())["replayed"], true);
    let passed = |by: &'static str| {
        [
            "tasks",
            "passed",
            "tests-passed",
            "--by",
            by,
            "--evidence-file",
            "build.log",
            "--lease",
            "lease.json",
        ]
    };
    let own = taken["lease"]["holder"].as_str().expect("a holder");
    assert!(own.starts_with("holder_"));
    let worker = task(&project, "form")["worker"].as_str().expect("a worker").to_owned();
    let claimed = [
        "tasks",
        "passed",
        "tests-passed",
        "--by",
        &worker,
        "--evidence-file",
        "build.log",
        "--lease",
        "lease.json",
        "--json",
    ];
    assert_eq!(project.refused(&claimed).error()["code"], "fact_claimed");
    assert_eq!(project.json(&passed("ci"))["state"], "running", "on to the next phase");
    project.ok(&done);
    assert_eq!(project.json(&passed("ci"))["state"], "verified");
    assert_eq!(project.refused(&[&done[..], &["--json"]].concat()).error()["code"], "lease_fenced");
    let events = task(&project, "form")["events"].clone();
    let last = events.as_array().and_then(|events| events.last()).expect("an event");
    assert_eq!(
        last["hash"], "sha256:56f6e6304d02d413bb7d5d463ac5cdc58551266dc7269b467fc385815f39b913",
        "as sha256sum prints it"
    );
    let next = project.json(&["tasks", "take", "simple/c", "--to", "next.json"]);
    assert_eq!(next["task"], "docs");
    let stopped = ["tasks", "stopped", "paused", "no-words", "--lease", "next.json"];
    assert_eq!(project.json(&stopped)["state"], "paused");
    let blockers = project.items(&["runs", "blockers", "simple/c"]);
    assert_eq!(blockers, [json!({"blocking": "decision", "code": "no-words", "task": "docs"})]);
    assert_eq!(project.json(&["tasks", "queue", "simple/c", "docs", "--request", "q1"])["state"], "queued");
    assert_eq!(project.json(&["tasks", "queue", "simple/c", "docs", "--request", "q1"])["replayed"], true);
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn what_programs_and_people_read_of_tasks_is_a_contract() {
    let project = planned(
        r#"{"tasks":[{"id":"form","input":{"page":1}},{"id":"docs","depends_on":["form"]},{"id":"bad"}]}"#,
    );
    let taken = project.json(&["tasks", "take", "simple/c", "--for", "1h", "--to", "lease.json"]);
    snapshot("json_tasks_take", &pretty(&taken));
    project.ok(&["tasks", "stopped", "paused", "later", "--lease", "lease.json"]);
    project.ok(&["tasks", "queue", "simple/c", "form"]);
    let worked = project.run(&work(&["--failed-on", "9"], "test $ONCESEAL_TASK != bad || exit 9"));
    assert_eq!(worked.code, 1, "one is left: {worked:?}");
    snapshot("text_tasks_work", &worked.all());
    snapshot("text_tasks_list", &project.ok(&["tasks", "list", "simple/c"]).all());
    snapshot("json_tasks_list", &pretty(&project.json(&["tasks", "list", "simple/c", "--state", "failed"])));
    snapshot("text_tasks_show", &project.ok(&["tasks", "show", "simple/c", "form"]).all());
    snapshot("json_tasks_show", &pretty(&task(&project, "docs")));
    snapshot("text_runs_blockers", &project.ok(&["runs", "blockers", "simple/c"]).all());
    snapshot("text_runs_show_tasks", &project.ok(&["runs", "show", "simple/c"]).all());
    snapshot("help_tasks_work", &project.ok(&["tasks", "work", "--help"]).all());
    snapshot("help_runs_deliver", &project.ok(&["runs", "deliver", "--help"]).all());
}

#[test]
fn following_a_run_tells_of_its_tasks() {
    let project = planned(r#"{"tasks":[{"id":"form"},{"id":"docs","depends_on":["form"]}]}"#);
    project.run(&work(&["--paused-on", "3"], "exit 3"));
    project.ok(&["runs", "cancel", "simple/c"]);
    let watched = project.ok(&["runs", "watch", "simple/c"]);
    assert!(watched.stdout.contains("task form running > paused"), "{watched:?}");
    let lines = project.ok(&["runs", "watch", "simple/c", "--json"]).stdout;
    assert!(
        lines.lines().any(|line| line.contains(r#""part":"task""#) && line.contains("exit_3")),
        "{lines}"
    );
}

#[test]
fn what_is_no_plan_no_fact_and_no_task_is_refused_with_its_place() {
    let project = planned(&many(1, ""));
    for (plan, what) in [
        ("[]", "it is no mapping"),
        ("{", ""),
        (r#"{"tasks":[{"id":"a","depend_on":["b"]}]}"#, "did you mean `depends_on`?"),
        (
            r#"{"tasks":[{"id":"a","depends_on":["b"]},{"id":"b","depends_on":["a"]}]}"#,
            "depends on itself: a > b > a",
        ),
        (r#"{"tasks":[{"id":"a b"}]}"#, "tasks[0].id"),
        (r#"{"tasks":[{"id":"a","reads":["/etc/passwd"]}]}"#, "tasks[0].reads[0]"),
        ("tasks: &a [*a]", ""),
    ] {
        fs::write(project.path("plan.json"), plan).expect("a plan");
        let refused = project.run(&["tasks", "plan", "simple/c", "2", "plan.json", "--json"]);
        let error = refused.error();
        assert_eq!((refused.code, &error["code"]), (2, &json!("plan_invalid")), "{refused:?}");
        assert!(error["why"].as_str().expect("why").contains(what), "{error}");
    }
    fs::write(project.path("plan.yaml"), "tasks:\n  - { id: t0 }\n  - { id: new, depends_on: [t0] }\n")
        .expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "2", "plan.yaml"]);
    assert_eq!(
        project.refused(&["tasks", "plan", "simple/c", "1", "plan.yaml", "--json"]).error()["code"],
        "delivery_revision_old"
    );
    assert_eq!(
        project.refused(&["tasks", "show", "simple/c", "\u{202e}x", "--json"]).error()["code"],
        "task_unknown"
    );
    assert_eq!(project.run(&["tasks", "list", "simple/c", "--after", "zz"]).code, 2);
    project.ok(&["lease", "acquire", "deploy", "--to", "deploy.json"]);
    let other = project.run(&["tasks", "stopped", "paused", "x", "--lease", "deploy.json"]);
    assert_eq!(other.code, 2, "{other:?}");
    project.ok(&["tasks", "take", "simple/c", "--for", "1h", "--to", "lease.json"]);
    for fact in ["Not-A-Name", "a b", "\u{7}"] {
        let hash = format!("sha256:{}", "0".repeat(64));
        let line = ["tasks", "produced", fact, "--evidence", &hash, "--lease", "lease.json", "--json"];
        assert_eq!(project.run(&line).error()["code"], "out_of_bounds", "{fact:?}");
    }
    let blank = project.run(&["tasks", "work", "simple/c", "--check", "a\nb", "--", "true"]);
    assert_eq!(blank.code, 2);
}

#[test]
fn why_a_task_is_not_attempted_again_is_told_of_tasks_and_not_of_runs() {
    let project = planned(r#"{"tasks":[{"id":"a","attempts":1},{"id":"b","depends_on":["a"]}]}"#);
    let queue = |task: &str| project.refused(&["tasks", "queue", "simple/c", task, "--json"]).error();
    let error = queue("b");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("repairable, retryable, paused, approval_needed"), "{error}");
    assert_eq!(error["why"], "it is pending, and queued was asked for");
    let grant = ["tasks", "grant", "simple/c", "a", "--reason", "r"];
    assert_eq!(project.ok(&grant).stdout, "a has 1 attempt left, as before: its attempts were not spent\n");
    for _ in 0..2 {
        project.run(&work(&[], "exit 7"));
        if project.items(&["tasks", "list", "simple/c"])[0]["attempts_left"] == 0 {
            break;
        }
    }
    let shown = project.ok(&["tasks", "show", "simple/c", "a"]).stdout;
    assert!(shown.contains("0 of 1 left for exit_7"), "{shown}");
    assert_eq!(queue("a")["code"], "attempts_spent");
    assert_eq!(project.ok(&grant).stdout, "a has 1 attempt left\n");
}
