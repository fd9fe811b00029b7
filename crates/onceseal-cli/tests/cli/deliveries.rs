//! Deliveries from the shell: asked for, approved, and bound by that approval.

use std::fs;

use serde_json::{Value, json};

use crate::base::{Project, snapshot};
use crate::tasks::pretty;

/// A kind whose gate asks for no proof.
const OPEN: &str = "actions:
  run.bind_delivery: { approval: { ttl: 24h }, decision: approve }
runs:
  open:
    initial: open
    gates: { design: { proof: none } }
    states:
      open: { to: [open, closed], interrupted: open }
      closed: { terminal: true }
";

#[test]
fn a_delivery_is_asked_for_approved_and_bound_by_that_approval_alone() {
    let project = Project::new();
    project.ok(&["runs", "start", "delivery", "add-login"]);
    fs::write(project.path("design.md"), "a form\n").expect("a design");
    let deliver = ["runs", "deliver", "delivery/add-login", "gate-a", "1", "--receipt-file", "design.md"];
    let line = |more: &[&'static str]| [&deliver[..], more].concat();
    let refused = project.refused(&line(&["--json"])).error();
    assert_eq!(refused["code"], "proof_required");
    let next = refused["next"][0].as_str().expect("a next step").to_owned();
    assert!(next.ends_with(" --ask") && next.contains("--receipt sha256:"), "{next}");
    // What is said is what can be typed.
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    let asked = project.json(&words);
    let approval = asked["items"][0]["approval"].as_str().expect("a request").to_owned();
    let again = project.json(&line(&["--ask"]));
    assert_eq!(again["items"][0]["approval"], json!(approval), "it is one request");
    snapshot("json_runs_deliver_ask", &pretty(&again));
    let shown = project.ok(&["approvals", "show", &approval]).stdout;
    assert!(shown.contains("run.bind_delivery") && shown.contains("gate-a"), "{shown}");
    let bind = [&deliver[..], &["--approval", &approval]].concat();
    let early = project.refused(&[&bind[..], &["--json"]].concat()).error();
    assert_eq!(early["code"], "approval_pending");
    project.ok(&["approve", &approval]);
    let granted = project.json(&line(&["--ask"]));
    assert_eq!(
        (&granted["items"][0]["status"], &granted["items"][0]["approval"]),
        (&json!("granted"), &json!(approval))
    );
    fs::write(project.path("design.md"), "another form\n").expect("a design");
    let other = project.refused(&[&bind[..], &["--json"]].concat()).error();
    assert_eq!(other["code"], "approval_mismatch");
    fs::write(project.path("design.md"), "a form\n").expect("a design");
    let bound = project.json(&[&bind[..], &["--request", "bind-1"]].concat());
    assert_eq!(bound["replayed"], false);
    assert_eq!(project.json(&[&bind[..], &["--request", "bind-1"]].concat())["replayed"], true);
    let again = project.ok(&line(&["--ask"]));
    assert!(again.stderr.contains("gate-a 1 is bound"), "{again:?}");
    let run = project.json(&["runs", "show", "delivery/add-login"]);
    assert_eq!(run["deliveries"][0]["approval"], json!(approval));
    assert_eq!(run["blockers"][1]["code"], "unbound:gate-b");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn several_deliveries_are_bound_at_once_from_a_file_or_none() {
    let project = Project::new();
    project.ok(&["runs", "start", "delivery", "c"]);
    let hash = format!("sha256:{}", "a".repeat(64));
    let file = |approvals: [&str; 2]| {
        let one = |gate: &str, approval: &str| match approval {
            "" => json!({"gate": gate, "revision": 1, "receipt": hash}),
            approval => json!({"gate": gate, "revision": 1, "receipt": hash, "approval": approval}),
        };
        let list = json!([one("gate-a", approvals[0]), one("gate-b", approvals[1])]);
        fs::write(project.path("deliveries.json"), list.to_string()).expect("a file");
    };
    file(["", ""]);
    let deliver = ["runs", "deliver", "delivery/c", "--file", "deliveries.json"];
    let asked = project.json(&[&deliver[..], &["--ask"]].concat());
    let approvals: Vec<&str> = asked["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|item| item["approval"].as_str())
        .collect();
    project.ok(&["approve", approvals[0]]);
    file([approvals[0], approvals[1]]);
    project.refused(&deliver);
    assert_eq!(project.json(&["runs", "show", "delivery/c"])["deliveries"], json!([]), "all or none");
    project.ok(&["approve", approvals[1]]);
    project.ok(&deliver);
    assert_eq!(
        project.json(&["runs", "show", "delivery/c"])["blockers"][0]["code"],
        "idle:created",
        "nothing is unbound"
    );
    fs::write(project.path("deliveries.json"), r#"[{"gate":"gate-a"}]"#).expect("a file");
    assert_eq!(project.run(&deliver).code, 2);
    let unlisted =
        project.refused(&["runs", "deliver", "delivery/c", "gate-z", "1", "--receipt", &hash, "--ask"]);
    assert!(unlisted.stderr.contains("gate-a, gate-b"), "{unlisted:?}");
}

#[test]
fn who_is_asked_reads_to_which_run_and_gate_something_would_be_bound() {
    let project = Project::new();
    let run =
        project.json(&["runs", "start", "delivery", "add-login"])["run"].as_str().expect("an id").to_owned();
    let [contract, record] = ["c", "d"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    fs::write(project.path("design.md"), "a form\n").expect("a design");
    let ask = ["runs", "deliver", &run, "gate-a", "2", "--receipt-file", "design.md", "--ask"];
    let more = ["--contract", &contract, "--record", &record];
    let asked = project.json(&[&ask[..], &more].concat());
    let approval = asked["items"][0]["approval"].as_str().expect("a request").to_owned();
    let listed = project.ok(&["pending"]).stdout;
    assert!(listed.contains("run.bind_delivery gate-a 2 of delivery/add-login"), "{listed}");
    snapshot("text_approvals_show_delivery", &project.ok(&["approvals", "show", &approval]).stdout);
    snapshot(
        "json_approvals_show_delivery",
        &pretty(&project.json(&["approvals", "show", &approval])["delivery"]),
    );
    // Words that anybody can write are not taken for a delivery.
    let receipt = format!("receipt_hash=sha256:{}", "e".repeat(64));
    let unknown = format!("run=run_{}", "0".repeat(32));
    for (run, gate) in [(unknown, "gate-a"), (format!("run={run}"), "gate-x")] {
        let gate = format!("gate={gate}");
        let args = ["--arg", &run, "--arg", &gate, "--arg", "revision:=3", "--arg", &receipt];
        let line = [&["exec", "run.bind_delivery"], &args[..], &["--json", "--", "true"]].concat();
        let forged = project.refused(&line).error()["approval"].as_str().expect("a request").to_owned();
        let shown = project.ok(&["approvals", "show", &forged]).stdout;
        assert!(!shown.contains("to bind") || shown.contains("but          gate_unknown"), "{shown}");
    }
}

#[test]
fn nobody_is_asked_about_a_delivery_that_can_never_be_bound() {
    let project = Project::with_policy(OPEN);
    project.ok(&["runs", "start", "open", "c"]);
    let receipt = format!("sha256:{}", "a".repeat(64));
    let ask = |gate, revision| {
        let line = ["runs", "deliver", "open/c", gate, revision, "--receipt", &receipt, "--ask", "--json"];
        project.refused(&line).error()
    };
    project.ok(&["runs", "deliver", "open/c", "design", "7", "--receipt", &receipt]);
    let old = ask("design", "6");
    assert_eq!(
        (&old["code"], &old["why"]),
        (&json!("delivery_revision_old"), &json!("revision 6 was given, and the newest of design is 7"))
    );
    assert_eq!(ask("plan", "8")["why"], "its gates: design");
    project.ok(&["runs", "transition", "open/c", "closed"]);
    assert_eq!(ask("design", "8")["code"], "run_ended");
    assert!(project.items(&["pending"]).is_empty());
}

#[test]
fn who_starts_a_run_and_binds_to_it_is_told_what_was_done_and_what_is_next() {
    let project = Project::with_policy(OPEN);
    let started = project.ok(&["runs", "start", "open", "c"]);
    let run = started.stdout.split(' ').next().expect("an id").to_owned();
    assert!(started.stderr.contains(&format!("onceseal runs show {run}")), "{started:?}");
    let receipt = format!("sha256:{}", "a".repeat(64));
    let bind = ["runs", "deliver", "open/c", "design", "3", "--receipt", &receipt, "--request", "b"];
    let bound = project.ok(&bind);
    assert_eq!(bound.stdout, format!("{run} has bound design 3: {receipt}\n"));
    assert!(bound.stderr.contains(&format!("next: onceseal tasks plan {run} 3 FILE")), "{bound:?}");
    assert!(project.ok(&bind).stdout.ends_with(" (asked before)\n"));
    assert_eq!(project.json(&bind)["deliveries"][0]["receipt"], json!(receipt));
    // Each step is what can be typed.
    fs::write(project.path("plan.json"), r#"{"tasks":[{"id":"form"}]}"#).expect("a plan");
    project.ok(&["tasks", "plan", &run, "3", "plan.json"]);
    let shown = project.ok(&["runs", "show", "open/c"]).stderr;
    assert!(shown.contains(&format!("next: onceseal tasks work {run} --check")), "{shown}");
    let gated = project.ok(&["runs", "start", "delivery", "d"]).stderr;
    assert!(gated.contains("next: onceseal runs deliver run_") && gated.contains(" gate-a 1 "), "{gated}");
    let simple = project.ok(&["runs", "start", "simple", "s"]).stderr;
    let step = simple.lines().find_map(|line| line.strip_prefix("next: onceseal ")).expect("a step");
    project.ok(&step.split(' ').collect::<Vec<_>>());
    assert_eq!(project.json(&["runs", "show", "simple/s"])["state"], "running");
}

#[test]
fn nobody_is_asked_about_a_revision_that_cannot_be_bound() {
    let project = Project::new();
    project.ok(&["runs", "start", "design", "c"]);
    let receipt = format!("sha256:{}", "b".repeat(64));
    let ask = |revision: &str| {
        project.run(&[
            "runs",
            "deliver",
            "design/c",
            "gate-a",
            revision,
            "--receipt",
            &receipt,
            "--ask",
            "--json",
        ])
    };
    for (revision, code) in [("10000000000001", "out_of_bounds"), ("9007199254740991", "out_of_bounds")] {
        let refused = ask(revision);
        assert_eq!((refused.code, &refused.error()["code"]), (1, &json!(code)), "{refused:?}");
    }
    let asked = ask("2").document();
    let approval = asked["items"][0]["approval"].as_str().expect("an id").to_owned();
    project.ok(&["approve", &approval]);
    let line = ["runs", "deliver", "design/c", "gate-a", "2", "--receipt", &receipt, "--approval", &approval];
    project.ok(&line);
    let refused = ask("1");
    assert_eq!(refused.error()["code"], "delivery_revision_old", "{refused:?}");
    assert_eq!(project.items(&["pending"]), [] as [Value; 0]);
}

#[test]
fn the_doctor_tells_of_runs_that_wait_for_a_person() {
    let project = Project::new();
    let told = || {
        let report = project.run(&["doctor"]).stdout;
        report.lines().find(|line| line.contains(" runs ")).map(str::to_owned).unwrap_or_default()
    };
    project.ok(&["runs", "start", "simple", "s"]);
    assert!(told().contains("1 run living, none waits"), "{}", told());
    project.ok(&["runs", "start", "delivery", "d"]);
    assert!(told().starts_with("warn") && told().contains("2 runs living, 1 of them"), "{}", told());
}

#[test]
fn a_request_id_that_was_given_is_not_told_again() {
    let project = Project::new();
    assert!(project.ok(&["runs", "start", "simple", "s"]).stderr.contains("--request req-"));
    let given = project.ok(&["runs", "start", "simple", "s", "--request", "mine"]).stderr;
    assert!(!given.contains("--request"), "{given}");
}
