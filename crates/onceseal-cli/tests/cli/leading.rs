//! What a person is told that leads on: the step that is meant, before those that end
//! something.

use std::fs;

use serde_json::json;

use crate::base::Project;
use crate::tasks::{planned, script, task, work};

/// Where a text stands in another.
fn at(text: &str, what: &str) -> usize {
    text.find(what).unwrap_or_else(|| panic!("{what} is not in: {text}"))
}

#[test]
fn what_goes_on_is_offered_before_what_ends_a_run() {
    let project = Project::new();
    project.ok(&["runs", "start", "delivery", "a"]);
    let shown = project.ok(&["runs", "show", "delivery/a"]).all();
    assert!(at(&shown, " cancel  (") < at(&shown, " discard  ("), "{shown}");
    project.ok(&["runs", "transition", "delivery/a", "paused"]);
    let joined = project.ok(&["runs", "start", "delivery", "a"]).all();
    assert!(joined.contains(" resume  (ready)"), "{joined}");
    let shown = project.ok(&["runs", "show", "delivery/a"]).all();
    assert!(at(&shown, " resume") < at(&shown, "runs deliver"), "{shown}");
    assert!(at(&shown, "rebind") < at(&shown, " discard  ("), "{shown}");
    for (word, meant) in [("resum", " resume"), ("discrd", " discard"), ("what", " resume")] {
        let error = project.refused(&["runs", "command", "delivery/a", word, "--json"]).error();
        let first = error["next"][0].as_str().expect("a step");
        assert!(first.ends_with(meant), "{error}");
        assert_eq!(first.contains("did you mean"), word != "what", "{error}");
    }
    let error = project.refused(&["runs", "transition", "delivery/a", "redy", "--json"]).error();
    assert!(error["next"][0].as_str().expect("a step").contains("did you mean ready?"), "{error}");
}

#[test]
fn a_kind_that_is_misspelt_is_none_and_the_one_that_is_meant_is_named() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "a"]);
    for line in [&["runs", "list", "--kind", "simpel"][..], &["runs", "show", "simpel/a"]] {
        let refused = project.run(&[line, &["--json"]].concat());
        let error = refused.error();
        assert_eq!((refused.code, &error["code"]), (2, &json!("kind_unknown")), "{error}");
        assert_eq!(error["next"][0], "did you mean simple?");
    }
    assert_eq!(project.refused(&["runs", "show", "simple/b", "--json"]).error()["code"], "run_unknown");
    assert!(project.items(&["runs", "list", "--kind", "design"]).is_empty());
    let told = project.run(&["runs", "pause", "simple/a"]).stderr;
    assert!(told.contains("onceseal runs command RUN pause"), "{told}");
    let told = project.run(&["lease", "release", "--json"]).error();
    assert!(told["next"].to_string().contains("onceseal lease interrupt"), "{told}");
    project.set_policy("actions: {}\nrun: {}\n");
    let told = project.run(&["policy", "check"]).all();
    assert!(told.contains("did you mean \"runs\"?") || told.contains("did you mean `runs`?"), "{told}");
}

#[test]
fn attempts_that_are_spent_are_granted_wherever_the_task_stands() {
    let plan = |n: u32| {
        format!(
            r#"{{"tasks":[{{"id":"a","attempts":1,"input":{{"n":{n}}}}},{{"id":"b","depends_on":["a"],"attempts":1}}]}}"#
        )
    };
    let project = planned(&plan(1));
    project.ok(&work(&[], "true"));
    fs::write(project.path("plan.json"), plan(2)).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "2", "plan.json"]);
    assert_eq!(
        (&task(&project, "a")["state"], &task(&project, "b")["state"]),
        (&json!("queued"), &json!("pending"))
    );
    let spent = |task: &str| json!({"blocking": "decision", "code": "attempts_spent", "task": task});
    assert_eq!(project.items(&["runs", "blockers", "simple/c"]), [spent("a"), spent("b")], "at once");
    for task in ["a", "b"] {
        let shown = project.ok(&["tasks", "show", "simple/c", task]).all();
        assert!(shown.contains("next: onceseal tasks grant run_"), "{shown}");
        let refused = project.refused(&["tasks", "queue", "simple/c", task]).stderr;
        assert!(refused.contains("tasks grant run_"), "{refused}");
    }
    project.ok(&["tasks", "grant", "simple/c", "b", "--reason", "r"]);
    let told = project.ok(&["runs", "blockers", "simple/c"]).all();
    assert!(told.contains("tasks grant run_") && told.contains(" a --reason"), "{told}");
    project.ok(&["tasks", "grant", "simple/c", "a", "--reason", "r"]);
    project.ok(&work(&[], "true"));
}

#[test]
fn a_lease_on_something_else_or_that_is_over_is_told_of_as_that() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "a"]);
    project.ok(&["lease", "acquire", "deploy", "--for", "1h", "--to", "lease.json"]);
    let moved =
        project.run(&["runs", "transition", "simple/a", "running", "--lease", "lease.json", "--json"]);
    assert_eq!(moved.code, 2, "{moved:?}");
    assert!(moved.error()["message"].as_str().expect("text").contains("on name/deploy"), "{moved:?}");
    project.ok(&["lease", "preempt", "deploy", "--for", "1h", "--reason", "r"]);
    for line in [&["renew"][..], &["interrupt"], &["commit", "--outcome", "{}"]] {
        let line = [&["lease"], line, &["--lease", "lease.json", "--json"]].concat();
        let error = project.refused(&line).error();
        assert_eq!(
            (&error["code"], &error["next"]),
            (&json!("lease_fenced"), &json!(["onceseal lease inspect name/deploy"]))
        );
    }
    let error = project.refused(&["lease", "acquire", "src/lib", "--json"]).error();
    assert!(error["next"].to_string().contains("path/src/lib if it is a path"), "{error}");
    let receipt = format!("sha256:{}", "1".repeat(64));
    project.ok(&["lease", "acquire", "selector", "--for", "1h", "--to", "own.json"]);
    let over = ["lease", "hand-over", "selector", &receipt, "--facts", "{}", "--lease", "own.json"];
    project.ok(&over);
    project.ok(&["lease", "withdraw", "selector", &receipt, "--lease", "own.json"]);
    let told = project.refused(&over).stderr;
    assert!(told.contains("another receipt") && told.contains("withdrawn"), "{told}");
    project.ok(&["lease", "acquire", "gone", "--for", "1s", "--to", "gone.json"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let told = project.ok(&["doctor"]).stdout;
    assert!(told.contains("as name/gone") && told.contains("onceseal lease inspect name/gone"), "{told}");
    let told = project.ok(&["lease", "inspect", "gone"]).stdout;
    assert!(told.contains("without a word"), "{told}");
    assert_ne!(project.json(&["lease", "inspect", "gone"])["lapsed"], json!(null));
}

#[test]
fn a_plan_and_a_check_that_cannot_be_used_are_named() {
    let project = planned(r#"{"tasks":[{"id":"a"}]}"#);
    let again = project.ok(&["tasks", "plan", "simple/c", "1", "plan.json"]).stdout;
    assert!(again.contains("1 task (as before)"), "{again}");
    fs::write(project.path("bad.json"), "{ tasks: [").expect("a plan");
    let told = project.run(&["tasks", "plan", "simple/c", "2", "bad.json"]).stderr;
    assert!(told.contains("bad.json") && told.contains("not valid JSON"), "{told}");
    fs::write(project.path("two.json"), r#"{"tasks":[{"id":"b"}]}"#).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "2", "two.json"]);
    let told = project.refused(&["tasks", "plan", "simple/c", "1", "plan.json"]).stderr;
    assert!(told.contains("revision 2 is planned") && !told.contains("bound"), "{told}");
    fs::remove_file(project.path("check.sh")).expect("removed");
    let told = project.run(&work(&[], "true"));
    assert!(told.code == 2 && told.stderr.contains("./check.sh"), "{told:?}");
    assert_eq!(task(&project, "b")["state"], "queued", "nothing was taken");
    script(&project, "check.sh", "true");
    project.ok(&["tasks", "take", "simple/c", "--for", "1h", "--to", "lease.json"]);
    fs::write(project.path("log"), "x").expect("a log");
    let fact = |fact: &'static str, more: &[&'static str]| {
        let line = ["tasks", "produced", fact, "--evidence-file", "log", "--lease", "lease.json"];
        project.run(&[&line[..], more].concat()).stderr
    };
    assert!(fact("work done", &[]).contains("lower-case letters, digits and hyphens"));
    assert!(fact("work-done", &["--agent", ""]).contains("--agent"));
}

#[test]
fn nobody_is_asked_at_a_gate_that_needs_no_proof() {
    let project = Project::new();
    let kind = "\nruns:\n  note:\n    initial: open\n    provisional: true\n    gates: { notes: { proof: none } }\n    states:\n      \
                open: { to: [open, closed], interrupted: open }\n      closed: { terminal: true }\n";
    let policy = project.read("onceseal.yaml") + kind;
    fs::write(project.path("onceseal.yaml"), policy).expect("a policy");
    let receipt = format!("sha256:{}", "1".repeat(64));
    let started = project.json(&["runs", "start", "note", "--provisional", &receipt]);
    let run = started["run"].as_str().expect("an id");
    let bound = project.ok(&["runs", "bind", run, "a"]).all();
    assert!(bound.contains("note/a"), "{bound}");
    let line = ["runs", "deliver", "note/a", "notes", "1", "--receipt", &receipt];
    let told = project.run(&[&line[..], &["--ask"]].concat()).stderr;
    assert!(told.contains("nobody need be asked") && told.contains("next: onceseal runs deliver"), "{told}");
    project.ok(&line);
}

#[test]
fn a_task_in_line_says_what_it_waits_for() {
    let project = planned(r#"{"capacity":1,"tasks":[{"id":"a"},{"id":"b"}]}"#);
    let listed = || project.ok(&["tasks", "list", "simple/c"]).stdout;
    assert_eq!(listed().matches("its turn").count(), 2, "{}", listed());
    project.ok(&["tasks", "take", "simple/c", "--for", "1h", "--to", "lease.json"]);
    assert!(listed().contains("capacity: 1 at work"), "{}", listed());
    project.ok(&["runs", "transition", "simple/c", "paused"]);
    let shown = project.ok(&["tasks", "show", "simple/c", "b"]).stdout;
    assert!(shown.contains("the run, idle: paused"), "{shown}");
}
