//! Workers of tasks from the shell: what their programs are told and how they end,
//! what shows their work, and what is gone on with after one was killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::base::{Project, ran};
use crate::tasks::{many, planned, script, task, work};

/// Looks again and again, as a person would.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < late, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn times(text: &str) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    text.lines().for_each(|line| *times.entry(line.to_owned()).or_default() += 1);
    times
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
fn a_worker_of_a_run_without_a_plan_has_done_nothing_and_says_so() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c"]);
    project.ok(&["runs", "transition", "simple/c", "running"]);
    script(&project, "check.sh", "true");
    let worked = project.run(&work(&[], "true"));
    assert_eq!(worked.code, 1, "{worked:?}");
    assert!(worked.stderr.contains("the run has no plan") && worked.stderr.contains("tasks plan run_"));
    let worked = project.run(&work(&["--json"], "true"));
    assert_eq!((worked.code, &worked.document()["planned"]), (1, &json!(false)));
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
    // A check that is gone when it is needed.
    assert_eq!(project.run(&work(&[], "rm check.sh")).code, 2);
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

/// With leases of an hour: nobody waits for a renewal.
#[test]
fn a_program_is_stopped_at_once_by_a_new_plan_and_by_the_end_of_its_run() {
    let project = planned(&many(1, ""));
    let hour = ["--for", "1h", "--json"];
    let worker = begun(&project, &hour, "exec sleep 600");
    let program = |project: &Project| format!("/proc/{}", project.read("begun").trim());
    let (first, changed) = (program(&project), r#"{"tasks":[{"id":"t0","input":{"n":2}}]}"#);
    fs::write(project.path("begun"), "").expect("emptied");
    fs::write(project.path("plan.json"), changed).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "2", "plan.json"]);
    until("the program is stopped", || !std::path::Path::new(&first).exists());
    until("it is begun anew", || !project.read("begun").trim().is_empty());
    let second = program(&project);
    let ended = project.ok(&["runs", "cancel", "simple/c"]);
    assert!(ended.stderr.contains("1 of 1 task not verified"), "{ended:?}");
    until("the program is stopped", || !std::path::Path::new(&second).exists());
    let ended = ran(worker.wait_with_output().expect("it ends, since nothing can be taken any more"));
    let told: Vec<Value> = ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let lost: Vec<_> = told.iter().filter(|line| line["task"]["became"] == "lease_lost").collect();
    let why: Vec<_> = lost.iter().map(|line| &line["task"]["code"]).collect();
    assert_eq!(why, [&json!("plan_changed"), &json!("run_ended")], "{ended:?}");
    assert_eq!(project.json(&["audit"])["clean"], true);
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
