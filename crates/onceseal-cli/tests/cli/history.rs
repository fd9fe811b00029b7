//! What happened to a run with all that it is made of, as people and programs
//! read it.

use std::fs;

use serde_json::{Value, json};

use crate::base::{Project, snapshot};

const OPEN: &str = "actions: {}
runs:
  change:
    initial: open
    provisional: true
    gates: { design: { proof: none } }
    states:
      open: { to: [closed, open], interrupted: open }
      closed: { terminal: true }
";

fn line<'a>(words: &[&'a str], request: &'a str) -> Vec<&'a str> {
    [words, &["--request", request, "--agent", "bot"]].concat()
}

/// A run to which everything happened that can happen to one.
fn lived() -> (Project, String) {
    let project = Project::with_policy(OPEN);
    let digest = format!("sha256:{}", "a".repeat(64));
    let started = project.json(&line(&["runs", "start", "change", "--provisional", &digest], "start"));
    let run = started["run"].as_str().expect("an id").to_owned();
    project.ok(&line(&["runs", "bind", &run, "add-login"], "name"));
    fs::write(project.path("design.md"), "a form\n").expect("a design");
    let deliver = |revision, request| {
        let bind = ["runs", "deliver", &run, "design", revision, "--receipt-file", "design.md"];
        project.ok(&line(&bind, request));
    };
    deliver("1", "bind-1");
    let plan = |revision, tasks: &str, request| {
        fs::write(project.path("plan.json"), format!("{{\"tasks\":[{tasks}]}}")).expect("a plan");
        project.ok(&line(&["tasks", "plan", &run, revision, "plan.json"], request));
    };
    plan("1", r#"{"id":"form","attempts":1},{"id":"docs"},{"id":"old"}"#, "plan-1");
    let take = |lease| {
        project.ok(&["tasks", "take", &run, "--for", "1h", "--to", lease, "--agent", "bot"]);
    };
    let stop = |lease, request| {
        project.ok(&line(&["tasks", "stopped", "retryable", "flaky", "--lease", lease], request));
    };
    take("form.json");
    stop("form.json", "stop-1");
    project.ok(&line(&["tasks", "queue", &run, "form"], "queue"));
    // Those that waited longer go first.
    ["docs.json", "old.json", "again.json"].into_iter().for_each(take);
    stop("again.json", "stop-2");
    project.ok(&["tasks", "grant", &run, "form", "--reason", "the network was down"]);
    let task = format!("run/{run}/task/docs");
    project.ok(&["lease", "preempt", &task, "--reason", "it hangs", "--for", "1h", "--to", "v.json"]);
    project.ok(&["lease", "interrupt", "--lease", "v.json"]);
    deliver("2", "bind-2");
    plan("2", r#"{"id":"docs","attempts":9},{"id":"form","attempts":1},{"id":"new"}"#, "plan-2");
    project.ok(&["lease", "acquire", &run, "--for", "1h", "--to", "run.json"]);
    let receipt = format!("sha256:{}", "b".repeat(64));
    let over = ["lease", "hand-over", &run, &receipt, "--facts", "{}", "--reason", "a new host"];
    project.ok(&[&over[..], &["--agent", "bot"]].concat());
    project.ok(&["lease", "accept", &run, &receipt, "--for", "1h", "--to", "new.json", "--agent", "heir"]);
    project.ok(&line(&["runs", "transition", &run, "closed", "--code", "merged"], "close"));
    (project, run)
}

#[test]
fn everything_that_happened_to_a_run_is_told_in_order_with_who_and_why() {
    let (project, run) = lived();
    snapshot("text_runs_events_all", &project.ok(&["runs", "events", &run]).stdout);
    snapshot("text_runs_diff_all", &project.ok(&["runs", "diff", &run]).stdout);
    let all = project.items(&["runs", "events", &run]);
    snapshot("json_runs_events_all", &serde_json::to_string_pretty(&all).expect("JSON"));
    let shown = project.ok(&["runs", "show", &run]).stdout;
    let digest =
        all.iter().find(|event| event["kind"] == "run.bound").expect("bound")["details"]["receipt"].clone();
    let digest = digest.as_str().expect("a digest");
    assert!(shown.contains(&format!("design 1: {digest}")), "{shown}");
    assert!(
        project.ok(&["runs", "watch", &run]).stdout.contains("task docs taken from its holder: it hangs")
    );
}

#[test]
fn what_happened_is_read_page_by_page_as_it_is_at_once() {
    let (project, run) = lived();
    let all = project.items(&["runs", "events", &run]);
    let positions: Vec<i64> = all.iter().map(|event| event["position"].as_i64().expect("a number")).collect();
    assert!(positions.is_sorted(), "{positions:?}");
    let (mut after, mut paged) = ("0".to_owned(), Vec::new());
    loop {
        let page = project.json(&["runs", "events", &run, "--after", &after, "--limit", "4"]);
        paged.extend(page["items"].as_array().expect("items").clone());
        match &page["next"] {
            Value::String(next) => after.clone_from(next),
            other => break assert_eq!(other, &Value::Null),
        }
    }
    assert_eq!(json!(paged), json!(all));
}
