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
fn a_worker_tells_its_program_what_it_works_on_and_keeps_what_shows_it() {
    let project = planned(r#"{"tasks":[{"id":"form","phases":["build","ship"],"input":{"page":7}}]}"#);
    let program = r#"cat > "spec.$ONCESEAL_TASK_PHASE"; echo "$ONCESEAL_RUN $ONCESEAL_TASK $ONCESEAL_FENCE" >> told; echo "$ONCESEAL_LEASE" > lease; printf evidence > "$ONCESEAL_EVIDENCE""#;
    script(&project, "check.sh", r#"cat > checked; test -z "$ONCESEAL_LEASE""#);
    let worked = project.ok(&work(&["--environment", "ci", "--json"], program)).document();
    assert_eq!((&worked["verified"], &worked["left"]), (&json!(1), &json!(0)));
    let spec: Value = serde_json::from_str(&project.read("spec.ship")).expect("JSON");
    assert_eq!(spec["input"]["page"], 7);
    assert_eq!(project.read("checked"), project.read("spec.ship"));
    assert!(project.read("told").lines().all(|line| line.ends_with(" form 1")), "{}", project.read("told"));
    assert_eq!(project.read("lease").trim(), "", "it could pass its own work with it");
    let events = task(&project, "form")["events"].clone();
    // What sha256sum prints of what was written.
    let hash = "sha256:ee8250fb76e094b34b471f13a73dbbe51d1ae142e9df59d7c0d31ec20f0a0a8e";
    let facts: Vec<_> =
        events.as_array().expect("events").iter().filter(|event| event["fact"] == "work-done").collect();
    assert_eq!((facts.len(), &facts[0]["environment"]), (2, &json!("ci")));
    assert!(facts.iter().all(|fact| fact["hash"] == hash), "{facts:?}");
    let checked = events.as_array().expect("events").iter().find(|event| event["fact"] == "check-passed");
    assert_eq!(checked.map(|event| &event["by"]), Some(&json!("check:./check.sh")));
    assert_eq!(fs::read_dir(project.base().join("tmp")).expect("readable").count(), 0, "nothing is left");
}

#[test]
fn how_a_program_ends_says_where_its_task_goes() {
    let project = planned(
        r#"{"tasks":[{"id":"t1","attempts":2},{"id":"t2"},{"id":"t3"},{"id":"t4"},{"id":"t5"},{"id":"t6"}]}"#,
    );
    script(&project, "check.sh", "test $ONCESEAL_TASK != t5");
    let program = r#"echo $ONCESEAL_TASK >> ran; case $ONCESEAL_TASK in t1) exit 1;; t2) exit 2;; t3) exit 3;; t4) exit 4;; t6) exit 5;; esac"#;
    let codes =
        ["--repairable-on", "2", "--paused-on", "3", "--approval-needed-on", "4", "--failed-on", "5,6"];
    assert_eq!(project.run(&work(&codes, program)).code, 1);
    // One that is attempted again and again stops once its attempts are spent.
    let t1 = task(&project, "t1");
    assert_eq!((&t1["state"], &t1["attempts_left"]), (&json!("retryable"), &json!(0)), "{t1}");
    for (id, state, code) in [
        ("t2", "repairable", json!("exit_2")),
        ("t3", "paused", json!("exit_3")),
        ("t4", "approval_needed", json!("exit_4")),
        ("t5", "repairable", json!("check_exit_1")),
        ("t6", "failed", json!("exit_5")),
    ] {
        let task = task(&project, id);
        assert_eq!((&task["state"], &task["code"]), (&json!(state), &code), "{id}");
    }
    let ran = times(&project.read("ran"));
    assert_eq!(ran.get("t1"), Some(&3), "first, and twice for exit_1: {ran:?}");
    let spent = project.refused(&["tasks", "queue", "simple/c", "t1", "--json"]).error();
    assert_eq!(spent["code"], "attempts_spent");
    assert!(spent["next"][0].as_str().expect("a next step").contains("tasks grant"), "{spent}");
    assert_eq!(project.json(&["tasks", "grant", "simple/c", "t1", "--reason", "mended"])["granted"], true);
    assert_eq!(project.json(&["tasks", "grant", "simple/c", "t1", "--reason", "mended"])["granted"], false);
    project.ok(&["tasks", "queue", "simple/c", "t1"]);
    project.ok(&["tasks", "queue", "simple/c", "t5"]);
    assert_eq!(
        project.refused(&["tasks", "queue", "simple/c", "t6", "--json"]).error()["code"],
        "transition_forbidden"
    );
    script(&project, "check.sh", "true");
    project.run(&work(&codes, "true"));
    assert_eq!(
        (&task(&project, "t1")["state"], &task(&project, "t5")["state"]),
        (&json!("verified"), &json!("verified"))
    );
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn what_shows_the_work_must_be_a_file_that_can_be_read() {
    for instead in [
        "rm $ONCESEAL_EVIDENCE",
        "rm $ONCESEAL_EVIDENCE; mkfifo $ONCESEAL_EVIDENCE",
        "rm $ONCESEAL_EVIDENCE; ln -s /dev/zero $ONCESEAL_EVIDENCE",
    ] {
        let project = planned(&many(1, ""));
        assert_eq!(project.run(&work(&[], instead)).code, 1);
        assert_eq!(task(&project, "t0")["code"], "evidence_unreadable", "{instead}");
    }
}

#[test]
fn a_program_that_is_not_there_spends_no_attempts() {
    let project = planned(&many(2, ""));
    let missing =
        ["tasks", "work", "simple/c", "--check", "./check.sh", "--until-empty", "--json", "--", "./nothing"];
    let error = project.run(&missing);
    assert_eq!((error.code, &error.error()["child"]), (2, &json!("program_not_found")));
    assert_eq!(task(&project, "t0")["state"], "paused");
    assert_eq!(task(&project, "t1")["state"], "queued");
    fs::remove_file(project.path("check.sh")).expect("removed");
    assert_eq!(project.run(&work(&[], "true")).code, 2);
    assert_eq!(task(&project, "t1")["code"], "check_program_not_found");
}

#[test]
fn p03_two_workers_never_run_one_task() {
    let project = planned(&many(60, ""));
    let worker = || {
        let line = work(&["--json"], "cat > /dev/null; echo $ONCESEAL_TASK >> done");
        project.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a worker")
    };
    let workers = [worker(), worker()];
    for worker in workers {
        let ended = ran(worker.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let times = times(&project.read("done"));
    assert_eq!(times.len(), 60);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

/// A worker whose program has begun.
fn begun(project: &Project, more: &[&str], script: &str) -> Child {
    let script = format!("echo $$ > begun; {script}");
    let child = project.command(&work(more, &script)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    until("the program begins", || !project.read("begun").is_empty());
    child.expect("a worker")
}

fn kill(pid: &str, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, pid.trim()]).status().expect("kill");
    assert!(sent.success());
}

#[test]
fn the_task_of_a_worker_that_was_killed_is_done_by_the_next() {
    let project = planned(&many(2, ""));
    let mut worker = begun(&project, &["--for", "1s"], "exec sleep 600");
    worker.kill().expect("killed");
    worker.wait().expect("gone");
    kill(&project.read("begun"), "-9");
    // The next one takes it once the lease of the first has ended; nothing sweeps.
    let ended = project.ok(&work(&["--json"], "echo $ONCESEAL_TASK >> done")).document();
    assert_eq!((&ended["verified"], &ended["left"]), (&json!(2), &json!(0)));
    assert_eq!(times(&project.read("done")).values().copied().collect::<Vec<_>>(), [1, 1]);
    let spent = task(&project, "t0")["spent"].clone();
    assert_eq!(spent[1]["cause"], "operation-interrupted", "{spent}");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn a_program_is_stopped_when_its_task_is_taken_away() {
    let project = planned(&many(1, ""));
    let worker = begun(&project, &["--for", "2s", "--json"], "exec sleep 600");
    let run = project.json(&["runs", "show", "simple/c"])["run"].as_str().expect("an id").to_owned();
    let resource = format!("run/{run}/task/t0");
    project.ok(&["lease", "preempt", &resource, "--reason", "it hangs", "--for", "1s", "--to", "mine.json"]);
    let program = format!("/proc/{}", project.read("begun").trim());
    until("the program is stopped", || !std::path::Path::new(&program).exists());
    // It would go on with this one, once the other lease has ended.
    kill(&worker.id().to_string(), "-TERM");
    let ended = ran(worker.wait_with_output().expect("it ends"));
    assert!(ended.code == 1 && ended.stderr.contains(r#""became":"lease_lost""#), "{ended:?}");
}

#[test]
fn a_worker_that_is_told_to_stop_tells_its_program_and_takes_nothing_more() {
    let project = planned(&many(2, ""));
    let worker = begun(&project, &["--json"], "trap 'exit 0' HUP; while :; do sleep 0.05; done");
    kill(&worker.id().to_string(), "-HUP");
    let ended = ran(worker.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, &ended.document()["verified"]), (1, &json!(1)), "{ended:?}");
    assert_eq!(task(&project, "t1")["state"], "queued");
}

#[test]
fn a_run_that_is_paused_or_over_has_no_work_for_anybody() {
    let project = planned(&many(1, ""));
    project.ok(&["runs", "command", "simple/c", "pause", "--code", "lunch"]);
    assert_eq!(project.run(&work(&[], "echo x >> done")).code, 1);
    let none = project.refused(&["tasks", "take", "simple/c"]);
    assert!(none.stderr.contains("the run is idle"), "{none:?}");
    project.ok(&["runs", "cancel", "simple/c"]);
    assert_eq!(project.run(&work(&[], "echo x >> done")).code, 1);
    assert_eq!(project.read("done"), "");
}

#[test]
fn following_a_run_tells_of_its_tasks_and_of_what_is_in_the_way() {
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
