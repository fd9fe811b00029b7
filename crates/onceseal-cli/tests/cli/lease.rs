//! Leases from the shell: taken, renewed, given up, taken away, and held while a
//! program runs.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::base::{Project, ran, snapshot};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// Looks again and again, as a person would.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < late, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn held(project: &Project, resource: &str) -> bool {
    project.json(&["lease", "inspect", resource])["held"] == json!(true)
}

/// A program under a lease, which has begun.
fn running(project: &Project, args: &[&str], script: &str) -> Child {
    let script = format!("echo $$ > begun; {script}");
    let line: Vec<&str> =
        ["lease", "run"].iter().chain(args).copied().chain(["--", "sh", "-c", &script]).collect();
    let child = project.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    until("the program begins", || !project.read("begun").is_empty());
    child
}

fn alive(project: &Project) -> bool {
    Path::new(&format!("/proc/{}", project.read("begun").trim())).exists()
}

#[test]
fn a_lease_is_taken_renewed_and_given_up_with_an_outcome() {
    let project = Project::new();
    let taken = project.json(&["lease", "acquire", "deploy", "--for", "1h", "--to", "lease.json"]);
    assert_eq!(
        (&taken["resource"], &taken["fence"], &taken["token"]),
        (&json!("name/deploy"), &json!(1), &Value::Null)
    );
    let mode = fs::metadata(project.path("lease.json")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "whoever reads it holds the lease");
    let error = project.refused(&["lease", "acquire", "name/deploy", "--json"]).error();
    assert_eq!((&error["code"], &error["retry"]), (&json!("lease_held"), &json!("later")));
    assert_eq!(error["holder"]["holder"], taken["holder"]);
    let renewed = project.json(&["lease", "renew", "--lease", "lease.json", "--for", "2h"]);
    assert!(renewed["until"].as_str() > taken["until"].as_str(), "{renewed}");
    let shorter = project.json(&["lease", "renew", "--lease", "lease.json", "--for", "1m"]);
    assert!(shorter["until"].as_str() < taken["until"].as_str(), "{shorter}");
    let commit = ["lease", "commit", "--lease", "lease.json", "--outcome", r#"{"version":"1.4"}"#];
    assert_eq!(project.json(&commit)["repeated"], false);
    assert_eq!(project.json(&commit)["repeated"], true);
    let other =
        project.refused(&["lease", "commit", "--lease", "lease.json", "--outcome", "{}", "--json"]).error();
    assert_eq!(other["code"], "outcome_final");
    for verb in ["renew", "interrupt"] {
        let error = project.refused(&["lease", verb, "--lease", "lease.json", "--json"]).error();
        assert_eq!(error["code"], "lease_fenced");
    }
    let free = project.json(&["lease", "inspect", "deploy"]);
    assert_eq!((&free["held"], &free["last_outcome"]["outcome"]["version"]), (&json!(false), &json!("1.4")));
    assert_eq!(project.json(&["lease", "acquire", "deploy"])["fence"], 2);
}

#[test]
fn what_programs_and_people_read_of_leases_is_a_contract() {
    let project = Project::new();
    snapshot("json_lease_acquire", &pretty(&project.json(&["lease", "acquire", "deploy", "--for", "1h"])));
    snapshot("json_lease_inspect", &pretty(&project.json(&["lease", "inspect", "deploy"])));
    let preempted =
        project.json(&["lease", "preempt", "deploy", "--reason", "it hangs", "--to", "lease.json"]);
    snapshot("json_lease_preempt", &pretty(&preempted));
    snapshot("text_lease_inspect", &project.ok(&["lease", "inspect", "deploy"]).all());
    let interrupted = project.json(&["lease", "interrupt", "--lease", "lease.json"]);
    snapshot("json_lease_interrupt", &pretty(&interrupted));
    snapshot("text_lease_free", &project.ok(&["lease", "inspect", "deploy"]).all());
    snapshot("help_lease_run", &project.ok(&["lease", "run", "--help"]).all());
}

#[test]
fn looking_at_a_lease_changes_nothing_and_makes_no_store() {
    let project = Project::new();
    assert_eq!(project.json(&["lease", "inspect", "deploy"])["held"], false);
    assert_eq!(fs::metadata(project.database()).expect("a file").len(), 0);
    project.ok(&["lease", "acquire", "deploy"]);
    let events = project.items(&["events"]).len();
    project.ok(&["lease", "inspect", "deploy"]);
    assert_eq!(project.items(&["events"]).len(), events);
}

#[test]
fn resources_of_the_project_are_named_shortly_and_contain_each_other() {
    let project = Project::new();
    let source = project.json(&["lease", "acquire", "path/src"]);
    let text = source["resource"].as_str().expect("a resource").to_owned();
    assert!(text.starts_with("root/root_") && text.ends_with("/path/src"), "{text}");
    project.refused(&["lease", "acquire", "path/src/lib.rs"]);
    for around in ["path/src/lib.rs", "path/src/a/b"] {
        let seen = project.json(&["lease", "inspect", around]);
        assert_eq!((&seen["held"], &seen["in_the_way"][0]["resource"]), (&json!(false), &json!(text)));
    }
    project.ok(&["lease", "acquire", "path/a/b"]);
    let above = project.json(&["lease", "inspect", "path/a"]);
    assert_eq!(above["in_the_way"][0]["holders"][0]["fence"], 1, "who takes it meets what is below: {above}");
    assert!(project.ok(&["lease", "inspect", "path/a"]).stdout.contains("above or below"));
    project.ok(&["lease", "acquire", "path/docs"]);
    project.ok(&["lease", "acquire", "workspace@host.example"]);
    assert!(held(&project, &text));
    project.ok(&["lease", "acquire", "queue", "--shared"]);
    project.ok(&["lease", "acquire", "queue", "--shared"]);
    project.refused(&["lease", "acquire", "queue"]);
    let me = format!("holderkey_{}", "7".repeat(32));
    let first = project.json(&["lease", "acquire", "mine", "--holder", &me]);
    assert_eq!(project.json(&["lease", "acquire", "mine", "--holder", &me])["token"], first["token"]);
    // What everybody may read of a holder gives nobody its lease.
    let shown = first["holder"].as_str().expect("a holder");
    assert_ne!(shown.trim_start_matches("holder_"), "7".repeat(32));
    assert_eq!(project.run(&["lease", "acquire", "mine", "--holder", shown]).code, 2);
    let guessed = shown.replace("holder_", "holderkey_");
    let refused = project.refused(&["lease", "acquire", "mine", "--holder", &guessed, "--json"]);
    assert_eq!(refused.error()["code"], "lease_held", "{refused:?}");
}

#[test]
fn a_program_runs_under_a_lease_and_its_exit_code_is_passed_on() {
    let project = Project::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let ran = project.run(&["lease", "run", "deploy", "--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(!held(&project, "deploy"));
    }
    let last = project.json(&["lease", "inspect", "deploy"]);
    assert_eq!(last["last_outcome"], json!({"fence": 3, "outcome": {"exit": null, "signal": 15}}));
    let ran = project.run(&["lease", "run", "deploy", "--json", "--", "./nothing-here"]);
    assert_eq!((ran.code, &ran.error()["code"]), (2, &json!("lease_unused")), "{ran:?}");
    assert!(!held(&project, "deploy"));
    let ran = project.ok(&["lease", "run", "deploy", "--", "cat", "onceseal.yaml"]);
    assert_eq!(ran.stdout, project.read("onceseal.yaml"), "its output is its own");
}

#[test]
fn a_program_works_on_its_run_under_the_lease_that_it_is_told() {
    let project = Project::new();
    let run = project.json(&["runs", "start", "simple", "c"])["run"].as_str().expect("an id").to_owned();
    let program = env!("CARGO_BIN_EXE_onceseal");
    let script = format!(
        "{program} runs transition {run} running && {program} lease renew --for 1h && {program} runs show {run} --json"
    );
    let ran = project.ok(&["lease", "run", &run, "--", "sh", "-c", &script]);
    let view: Value = serde_json::from_str(ran.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&view["state"], &view["holder"]["fence"]), (&json!("running"), &json!(1)));
    assert_eq!(project.json(&["runs", "show", &run])["holder"], Value::Null);
    // A lease that has ended moves nothing.
    project.ok(&["lease", "acquire", &run, "--to", "lease.json"]);
    project.ok(&["lease", "interrupt", "--lease", "lease.json"]);
    let late = project
        .refused(&["runs", "transition", &run, "completed", "--lease", "lease.json", "--json"])
        .error();
    assert_eq!(late["code"], "lease_fenced");
}

#[test]
fn a_lease_outlasts_its_length_while_the_program_runs_and_others_wait_for_it() {
    let project = Project::new();
    let child =
        running(&project, &["deploy", "--for", "1s"], "while [ ! -e go ]; do sleep 0.05; done; exit 3");
    let began = Instant::now();
    until("three lengths pass", || began.elapsed() > Duration::from_secs(3));
    assert!(held(&project, "deploy") && alive(&project));
    let waiting = project
        .command(&["lease", "run", "deploy", "--wait", "1m", "--", "sh", "-c", "echo after >> order"])
        .spawn()
        .expect("a run");
    let refused =
        project.refused(&["lease", "run", "deploy", "--json", "--", "sh", "-c", "echo no >> order"]);
    assert_eq!(refused.error()["code"], "lease_held");
    fs::write(project.path("go"), "").expect("written");
    assert_eq!(ran(child.wait_with_output().expect("its end")).code, 3);
    assert!(waiting.wait_with_output().expect("its end").status.success());
    assert_eq!(project.read("order"), "after\n");
}

#[test]
fn a_program_whose_lease_is_taken_by_an_operator_is_stopped() {
    let project = Project::new();
    project.ok(&["policy", "apply"]);
    let stubborn = "trap 'echo asked > asked' TERM; while :; do sleep 0.05; done";
    let child = running(&project, &["deploy", "--for", "1s", "--json"], stubborn);
    project.ok(&["lease", "preempt", "deploy", "--for", "1h", "--reason", "it hangs"]);
    let ended = ran(child.wait_with_output().expect("its end"));
    assert_eq!((ended.code, &ended.error()["code"]), (1, &json!("lease_lost")), "{ended:?}");
    assert_eq!(project.read("asked"), "asked\n", "it was asked first, and killed after the grace");
    assert!(!alive(&project));
    assert!(held(&project, "deploy"), "it is the operator's");
}

#[test]
fn what_a_killed_holder_leaves_lapses_and_its_run_is_interrupted() {
    let project = Project::new();
    let run = project.json(&["runs", "start", "simple", "c"])["run"].as_str().expect("an id").to_owned();
    project.ok(&["runs", "transition", &run, "running"]);
    let mut child = running(&project, &[&run, "--for", "4s"], "while [ ! -e go ]; do sleep 0.05; done");
    // SIGKILL: nothing is given back, nothing said.
    child.kill().expect("killed");
    child.wait().expect("its end");
    let check = |doctor: &Value| {
        let checks = doctor["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["name"] == "leases").expect("the check")["status"].clone()
    };
    let held_still = project.refused(&["lease", "acquire", &run, "--json"]).error();
    assert_eq!(held_still["code"], "lease_held");
    until("the lease ends", || project.json(&["runs", "show", &run])["lapsed"] != Value::Null);
    assert_eq!(check(&project.json(&["doctor"])), "warn");
    let shown = project.ok(&["runs", "show", &run]).all();
    assert!(
        shown.contains("by nobody: the lease of holder_") && shown.contains("next: whoever takes it"),
        "{shown}"
    );
    let next = project.ok(&["lease", "run", &run, "--wait", "30s", "--", "sh", "-c", "echo taken over"]);
    assert_eq!(next.stdout, "taken over\n");
    let view = project.json(&["runs", "show", &run]);
    assert_eq!((&view["state"], &view["code"]), (&json!("paused"), &json!("operation-interrupted")));
    let events = project.ok(&["runs", "events", &run]).stdout;
    assert!(events.contains("running > paused (interrupted)"), "{events}");
    assert_eq!(check(&project.json(&["doctor"])), "ok");
    assert_eq!(project.json(&["audit"])["clean"], true);
    fs::write(project.path("go"), "").expect("written");
}

#[test]
fn a_signal_to_the_command_reaches_the_program() {
    let project = Project::new();
    let mut child =
        running(&project, &["deploy"], "trap 'exit 9' TERM; echo x > trapped; while :; do sleep 0.05; done");
    until("it would hear", || !project.read("trapped").is_empty());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    assert_eq!(child.wait().expect("its end").code(), Some(9));
    let mut said = String::new();
    child.stderr.take().expect("its words").read_to_string(&mut said).expect("text");
    assert!(said.contains("name/deploy is yours while the program runs, fence 1"), "{said}");
}

#[test]
fn hostile_input_is_refused_and_no_token_is_taken_from_a_command_line() {
    let project = Project::new();
    project.ok(&["lease", "acquire", "deploy", "--to", "lease.json"]);
    let forged = project.read("lease.json").replace("\"token\":\"", "\"token\":\"0").replacen("0\"", "\"", 1);
    fs::write(project.path("forged"), "{\"token\":1}").expect("written");
    fs::write(project.path("cut"), forged).expect("written");
    let long = "a".repeat(5_000);
    let control = "a\u{1b}[2Jb";
    for args in [
        &["lease", "acquire", ""][..],
        &["lease", "acquire", "name/"],
        &["lease", "acquire", control],
        &["lease", "acquire", &long],
        &["lease", "acquire", "run/x"],
        &["lease", "acquire", "path/../etc"],
        &["lease", "acquire", "path//a"],
        &["lease", "acquire", "other/Thing"],
        &["lease", "acquire", "a", "--for", "0s"],
        &["lease", "acquire", "a", "--for", "999ms"],
        &["lease", "acquire", "a", "--for", "25h"],
        &["lease", "acquire", "a", "--for", "-1s"],
        &["lease", "acquire", "a", "--for", "9223372036854775807d"],
        &["lease", "acquire", "a", "--for", "soon"],
        &["lease", "acquire", "a", "--holder", "me"],
        &["lease", "renew"],
        &["lease", "renew", "--lease", "gone.json"],
        &["lease", "renew", "--lease", "forged"],
        &["lease", "renew", "--lease", "onceseal.yaml"],
        &["lease", "commit", "--lease", "lease.json"],
        &["lease", "commit", "--lease", "lease.json", "--outcome", "[]"],
        &["lease", "commit", "--lease", "lease.json", "--outcome", "{"],
        &["lease", "commit", "--lease", "lease.json", "--outcome", r#"{"a":1,"a":2}"#],
        &["lease", "preempt", "deploy"],
        &["lease", "preempt", "deploy", "--reason", " "],
        &["lease", "run", "deploy"],
    ] {
        let ran = project.run(args);
        assert_eq!(ran.code, 2, "{args:?}\n{ran:?}");
        assert!(!ran.all().contains('\u{1b}'), "{ran:?}");
    }
    let unheard = project.run(&["lease", "acquire", "a", "--for", "25h"]);
    assert!(unheard.stderr.contains("--for is 25h, and a lease lasts 1s to 1d"), "{unheard:?}");
    let mut wrong: Value = serde_json::from_str(&project.read("lease.json")).expect("JSON");
    wrong["token"] = json!("0".repeat(32));
    fs::write(project.path("wrong"), wrong.to_string()).expect("written");
    for verb in ["renew", "interrupt"] {
        let error = project.refused(&["lease", verb, "--lease", "wrong", "--json"]).error();
        assert_eq!(error["code"], "lease_fenced", "whoever cannot name the token holds nothing");
    }
    assert!(held(&project, "deploy"));
    project.refused(&["lease", "acquire", &format!("run_{}", "0".repeat(32))]);
}

#[test]
fn what_only_looks_like_a_run_or_a_path_is_not_leased_as_a_name() {
    let project = Project::new();
    let long = "x".repeat(5_000);
    for text in [
        "run_0190b6f2",
        "RUN_0190B6F2",
        "run",
        "path",
        "workspace",
        "workspace@",
        "path/../a",
        "a/b/c",
        &long,
    ] {
        for verb in ["acquire", "inspect"] {
            let ran = project.run(&["lease", verb, text, "--json"]);
            let error = ran.error();
            assert_eq!((ran.code, &error["code"]), (2, &json!("usage")), "{text}: {ran:?}");
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("names no resource: ") && message.len() < 400, "{message}");
        }
    }
    assert_eq!(
        project.json(&["lease", "acquire", "name/run_0190b6f2"])["fence"],
        1,
        "a name, if that is said"
    );
}

#[test]
fn a_run_is_held_by_its_kind_and_change_too() {
    let project = Project::new();
    let none = project.refused(&["lease", "acquire", "simple/fix-1", "--json"]).error();
    assert_eq!(none["code"], "run_unknown");
    assert_eq!(
        project.refused(&["lease", "inspect", "simple/fix-1", "--json"]).error()["code"],
        "run_unknown"
    );
    let run = project.json(&["runs", "start", "simple", "fix-1"])["run"].as_str().expect("an id").to_owned();
    let taken = project.json(&["lease", "acquire", "simple/fix-1", "--for", "1h"]);
    assert_eq!(taken["resource"], json!(format!("run/{run}")));
    assert_eq!(project.refused(&["lease", "acquire", &run, "--json"]).error()["code"], "lease_held");
    let task = project.json(&["lease", "inspect", "simple/fix-1/task/form"]);
    assert_eq!(task["resource"], json!(format!("run/{run}/task/form")));
}

#[test]
fn what_is_held_is_listed_by_pages() {
    let project = Project::new();
    assert_eq!(project.json(&["lease", "list"])["items"], json!([]), "without a store too");
    for name in ["a", "b", "c"] {
        project.ok(&["lease", "acquire", name, "--shared", "--for", "1h", "--to", &format!("{name}.json")]);
    }
    project.ok(&["lease", "acquire", "c", "--shared", "--for", "1h"]);
    project.ok(&["lease", "interrupt", "--lease", "b.json"]);
    project.ok(&["lease", "acquire", "d", "--for", "1h"]);
    let names = |page: &Value| {
        let items = page["items"].as_array().expect("items");
        items.iter().map(|item| item["resource"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let first = project.json(&["lease", "list", "--limit", "2"]);
    assert_eq!(names(&first), ["name/a", "name/c"]);
    assert_eq!(first["items"][1]["holders"].as_array().map(Vec::len), Some(2));
    let rest = project.json(&["lease", "list", "--after", first["next"].as_str().expect("more")]);
    assert_eq!((names(&rest), &rest["next"]), (vec!["name/d".to_owned()], &Value::Null));
    assert_eq!(names(&project.json(&["lease", "list", "--newest"])), ["name/d", "name/c", "name/a"]);
    snapshot("text_lease_list", &project.ok(&["lease", "list"]).all());
    snapshot("json_lease_list", &pretty(&rest));
}

fn kill(pid: u32, signal: &str) {
    let sent = std::process::Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn no_signal_but_sigkill_ends_it_without_its_program() {
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM"] {
        let project = Project::new();
        let script = format!("trap 'exit 9' {signal}; touch ready; while :; do sleep 0.02; done");
        let child = running(&project, &["deploy"], &script);
        until("it listens", || project.path("ready").exists());
        kill(child.id(), signal);
        let ended = ran(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 9, "{signal}: {ended:?}");
        let last = project.json(&["lease", "inspect", "deploy"]);
        assert_eq!(last["last_outcome"]["outcome"]["exit"], 9, "{signal}");
    }
}

#[test]
fn what_was_begun_to_outlive_its_terminal_does() {
    let project = Project::new();
    let line = "trap '' HUP; exec \"$0\" lease run deploy -- sh -c 'echo $$ > begun; while [ ! -e go ]; do sleep 0.02; done'";
    let mut shell = project.command(&[]);
    let mut child = std::process::Command::new("sh");
    child.args(["-c", line, env!("CARGO_BIN_EXE_onceseal")]).current_dir(project.path("")).env_clear();
    child.envs(shell.stdin(Stdio::null()).get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    until("the program begins", || !project.read("begun").is_empty());
    kill(child.id(), "HUP");
    fs::write(project.path("go"), "").expect("written");
    assert_eq!(ran(child.wait_with_output().expect("it ends")).code, 0);
}
