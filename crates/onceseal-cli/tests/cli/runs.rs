//! Runs from the shell: a whole life, what is told of it, and what is refused.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::base::{Project, snapshot};

const REVIEW: &str = "actions: {}
runs:
  review:
    initial: open
    states:
      open: { to: [closed, open], interrupted: open, commands: { close: closed, ask: null } }
      closed: { terminal: true }
";

fn start(project: &Project, change: &str) -> String {
    project.json(&["runs", "start", "simple", change])["run"].as_str().expect("an id").to_owned()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

#[test]
fn a_run_lives_from_its_start_to_its_end_and_the_next_one_names_it() {
    let project = Project::new();
    let first = project.json(&["runs", "start", "simple", "add-login", "--request", "s1"]);
    let id = first["run"].as_str().expect("an id").to_owned();
    assert_eq!(
        (&first["joined"], &first["state"], &first["request"]),
        (&json!(false), &json!("created"), &json!("s1"))
    );
    let joined = project.json(&["runs", "start", "simple", "add-login"]);
    assert_eq!((&joined["joined"], &joined["run"]), (&json!(true), &json!(id)));
    let drawn = joined["request"].as_str().expect("drawn").to_owned();
    let again = project.json(&["runs", "start", "simple", "add-login", "--request", &drawn]);
    assert_eq!((&again["replayed"], &again["joined"]), (&json!(true), &json!(true)));
    project.ok(&["runs", "transition", &id, "running", "--request", "m1"]);
    let paused = project.ok(&["runs", "command", "simple/add-login", "pause", "--code", "lunch"]);
    assert!(
        paused.stdout.contains(&format!("{id} paused")) && paused.stderr.contains("--request req-"),
        "{paused:?}"
    );
    let view = project.json(&["runs", "show", "simple/add-login"]);
    assert_eq!(
        (&view["state"], &view["code"], &view["holder"]),
        (&json!("paused"), &json!("lunch"), &Value::Null)
    );
    project.ok(&["runs", "transition", &id, "completed"]);
    let late = project.json(&["runs", "transition", &id, "running", "--request", "m1"]);
    assert_eq!((&late["replayed"], &late["state"]), (&json!(true), &json!("running")));
    assert_eq!(late["now"]["state"], "completed");
    let next = start(&project, "add-login");
    assert_ne!(next, id);
    assert_eq!(project.json(&["runs", "show", &next])["previous"], json!(id));
    assert_eq!(project.json(&["runs", "show", "simple/add-login"])["run"], json!(next));
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn what_programs_read_of_runs_is_a_contract() {
    let project = Project::new();
    let started =
        project.json(&["runs", "start", "simple", "c", "--request", "s", "--agent", "bot", "--user", "ann"]);
    snapshot("json_runs_start", &pretty(&started));
    project.ok(&[
        "runs",
        "cancel",
        "simple/c",
        "--code",
        "no-longer-wanted",
        "--request",
        "x",
        "--agent",
        "bot",
    ]);
    for (name, args) in [
        ("list", &["runs", "list"][..]),
        ("show", &["runs", "show", "simple/c"]),
        ("events", &["runs", "events", "simple/c"]),
        ("diff", &["runs", "diff", "simple/c"]),
        ("verify", &["runs", "verify", "simple/c"]),
        ("rebuild", &["runs", "rebuild", "simple/c"]),
    ] {
        snapshot(&format!("json_runs_{name}"), &pretty(&project.json(args)));
    }
    let error =
        project.refused(&["runs", "transition", "simple/c", "running", "--json", "--request", "y"]).error();
    snapshot("json_error_run_ended", &pretty(&error));
}

#[test]
fn people_see_ages_and_who_asked_by_which_request() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c", "--request", "s", "--agent", "bot"]);
    project.ok(&[
        "runs",
        "transition",
        "simple/c",
        "running",
        "--request",
        "m",
        "--agent",
        "bot",
        "--user",
        "ann",
    ]);
    for (name, args) in [
        ("list", &["runs", "list"][..]),
        ("show", &["runs", "show", "simple/c"]),
        ("events", &["runs", "events", "simple/c"]),
        ("diff", &["runs", "diff", "simple/c", "1", "2"]),
        ("verify", &["runs", "verify", "simple/c"]),
        ("rebuild", &["runs", "rebuild", "simple/c"]),
        ("definitions", &["runs", "definitions"]),
    ] {
        snapshot(&format!("text_runs_{name}"), &project.ok(args).all());
    }
}

#[test]
fn a_store_without_runs_says_so_and_is_not_made_by_looking() {
    let project = Project::new();
    for args in [&["runs", "list"][..], &["runs", "definitions"]] {
        project.ok(args);
    }
    assert_eq!(std::fs::metadata(project.database()).expect("a file").len(), 0);
    for args in [
        &["runs", "show", "simple/c"][..],
        &["runs", "events", "simple/c"],
        &["runs", "diff", "simple/c"],
        &["runs", "verify", "simple/c"],
        &["runs", "rebuild", "simple/c"],
        &["runs", "export", "simple/c"],
        &["runs", "watch", "simple/c"],
        &["runs", "transition", "simple/c", "running"],
        &["runs", "bind", "simple/c", "d"],
        &["runs", "cancel", "simple/c"],
    ] {
        let ran = project.refused(args);
        assert!(
            ran.stderr.contains("error[run_unknown]") && ran.stderr.contains("onceseal runs list"),
            "{ran:?}"
        );
    }
    assert_eq!(std::fs::metadata(project.database()).expect("a file").len(), 0);
}

#[test]
fn what_cannot_follow_is_refused_with_what_can() {
    let project = Project::with_policy(REVIEW);
    let id = project.json(&["runs", "start", "review", "c"])["run"].as_str().expect("an id").to_owned();
    let error = |args: &[&str]| {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        project.refused(&args).error()
    };
    let unknown = error(&["runs", "transition", &id, "running"]);
    assert_eq!(unknown["code"], "state_unknown");
    assert!(
        unknown["why"].as_str().expect("why").contains("what may follow on open: closed, open"),
        "{unknown}"
    );
    let forbidden = error(&["runs", "cancel", &id]);
    assert_eq!(forbidden["code"], "command_forbidden");
    assert_eq!(forbidden["next"], json!([format!("onceseal runs command {id} close")]));
    assert_eq!(error(&["runs", "command", &id, "ask"])["code"], "command_elsewhere");
    project.ok(&["runs", "transition", &id, "closed", "--request", "m"]);
    let conflict = error(&["runs", "transition", &id, "open", "--request", "m"]);
    assert_eq!((&conflict["code"], &conflict["retry"]), (&json!("request_id_conflict"), &json!("never")));
    let ended = error(&["runs", "transition", &id, "open"]);
    assert!(
        ended["code"] == "run_ended" && ended["request"].as_str().is_some_and(|id| id.starts_with("req-"))
    );
    // The run goes by what it was started with, whatever the file says now.
    let other = project.json(&["runs", "start", "review", "d"])["run"].as_str().expect("an id").to_owned();
    project.set_policy("actions: {}\n");
    project.ok(&["runs", "command", &other, "close"]);
    let gone = project.run(&["runs", "start", "review", "e", "--json"]);
    assert_eq!((gone.code, &gone.error()["code"]), (2, &json!("kind_unknown")));
    assert_eq!(gone.error()["next"], json!(["onceseal runs definitions"]));
}

#[test]
fn ua_170_a_changed_program_that_repeats_its_steps_is_told_which_one_differs_and_the_run_stands() {
    let project = Project::new();
    let id = start(&project, "c");
    let step = |state: &str, step: &str| {
        project.run(&["runs", "transition", &id, state, "--request", step, "--json"])
    };
    for (state, name) in [("running", "step-1"), ("paused", "step-2"), ("running", "step-3")] {
        assert_eq!(step(state, name).code, 0);
    }
    // It begins anew: what it did before is answered as then, up to what it does otherwise now.
    assert_eq!(step("running", "step-1").document()["replayed"], true);
    let differs = step("completed", "step-2");
    let error = differs.error();
    assert_eq!(
        (differs.code, &error["code"], &error["sequence"]),
        (1, &json!("request_id_conflict"), &json!(3))
    );
    assert_eq!(error["request"], "step-2");
    assert_eq!(error["why"], "event 3 of the run answered it, and left the run paused");
    let view = project.json(&["runs", "show", &id]);
    assert_eq!((&view["state"], &view["sequence"]), (&json!("running"), &json!(4)), "nothing became of it");
}

#[test]
fn a_definition_with_a_mistake_is_refused_with_its_place() {
    let project = Project::with_policy(&REVIEW.replace("interrupted: open", "interrupted: gone"));
    let ran = project.run(&["runs", "start", "review", "c", "--json"]);
    let error = ran.error();
    assert_eq!((ran.code, &error["code"]), (2, &json!("definition_invalid")), "{ran:?}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("line 7") && message.contains("review.states.open.interrupted"), "{message}");
    project.set_policy(REVIEW);
    let kinds: Vec<_> = project.items(&["runs", "definitions"]);
    let own: Vec<_> = kinds.iter().filter(|kind| kind["built_in"] == json!(false)).collect();
    assert!(own.len() == 1 && own[0]["kind"] == "review", "{own:?}");
}

#[test]
fn a_design_begins_by_a_digest_and_is_named_later() {
    let project = Project::new();
    let digest = format!("sha256:{}", "07".repeat(32));
    let run = project.json(&["runs", "start", "design", "--provisional", &digest])["run"].clone();
    let id = run.as_str().expect("an id");
    let view = project.json(&["runs", "show", id]);
    assert_eq!(
        (&view["provisional"], &view["key"]),
        (&json!(true), &json!(format!("provisional:{}", "07".repeat(32))))
    );
    project.ok(&["runs", "bind", id, "add-login", "--request", "b"]);
    assert_eq!(project.json(&["runs", "bind", id, "add-login", "--request", "b"])["replayed"], true);
    assert_eq!(project.json(&["runs", "show", "design/add-login"])["run"], run);
    assert!(project.refused(&["runs", "bind", id, "other"]).stderr.contains("change_bound"));
    assert!(project.ok(&["runs", "events", id]).stdout.contains("named "));
}

#[test]
fn lists_are_filtered_and_gone_on_with() {
    let project = Project::new();
    for n in 0..5 {
        start(&project, &format!("c{n}"));
    }
    project.ok(&["runs", "cancel", "simple/c1"]);
    project.ok(&["runs", "start", "delivery", "d"]);
    let keys = |args: &[&str]| -> Vec<String> {
        let items = project.items(args);
        items.iter().map(|run| run["key"].as_str().expect("a key").replace("change:", "")).collect()
    };
    assert_eq!(keys(&["runs", "list"]), ["c0", "c1", "c2", "c3", "c4", "d"]);
    assert_eq!(keys(&["runs", "list", "--newest", "--limit", "2"]), ["d", "c4"]);
    assert_eq!(keys(&["runs", "list", "--state", "ended"]), ["c1"]);
    assert_eq!(keys(&["runs", "list", "--state", "living", "--kind", "simple"]), ["c0", "c2", "c3", "c4"]);
    assert_eq!(keys(&["runs", "list", "--state", "cancelled"]), ["c1"]);
    assert!(keys(&["runs", "list", "--older-than", "1h"]).is_empty());
    let page = project.json(&["runs", "list", "--kind", "simple", "--limit", "3"]);
    let next = page["next"].as_str().expect("there is more");
    assert_eq!(keys(&["runs", "list", "--kind", "simple", "--limit", "3", "--after", next]), ["c3", "c4"]);
    let root = page["items"][0]["root"].as_str().expect("a project").to_owned();
    assert_eq!(keys(&["runs", "list", "--root", &root, "--limit", "1"]), ["c0"]);
    assert!(keys(&["runs", "list", "--root", &format!("root_{}", "0".repeat(32))]).is_empty());
}

#[test]
fn the_export_of_a_run_is_that_of_the_journal() {
    let project = Project::new();
    let id = start(&project, "c");
    project.ok(&["runs", "transition", &id, "running"]);
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    };
    let all = lines(&project.ok(&["export", "events"]).stdout);
    let own = lines(&project.ok(&["runs", "export", &id]).stdout);
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|event| all.contains(event)));
    assert_eq!(project.items(&["events", "--stream", &id]), own);
}

#[test]
fn a_run_is_watched_to_its_end() {
    let project = Project::new();
    let id = start(&project, "c");
    let mut watch =
        project.command(&["runs", "watch", &id, "--json"]).stdout(Stdio::piped()).spawn().expect("a run");
    let mut lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
    let mut next =
        || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    assert_eq!(next()["kind"], "run.started");
    assert_eq!(next()["blockers"][0]["code"], "idle:created");
    project.ok(&["runs", "transition", &id, "running", "--request", "m"]);
    let moved = next();
    assert_eq!((&moved["request"], &moved["data"]["to"]), (&json!("m"), &json!("running")));
    assert_eq!(next()["blockers"], json!([]), "it goes on");
    project.ok(&["runs", "cancel", &id]);
    assert_eq!(next()["data"]["terminal"], true);
    assert!(watch.wait().expect("its end").success());
}

#[test]
fn all_runs_are_watched_as_they_go_on() {
    let project = Project::new();
    start(&project, "before");
    let mut watch = project
        .command(&["runs", "watch", "--after", "0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
    let mut next =
        || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    assert_eq!(next()["kind"], "run.started");
    let id = start(&project, "after");
    assert_eq!(next()["run"], json!(id));
    watch.kill().expect("stopped");
    watch.wait().expect("its end");
}

#[test]
fn processes_that_start_one_change_at_once_get_one_run() {
    let project = Project::new();
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut command = project.command(&["runs", "start", "simple", "c", "--json"]);
            command.stdout(Stdio::piped()).spawn().expect("a run")
        })
        .collect();
    let mut runs = Vec::new();
    for child in children {
        let ran = crate::base::ran(child.wait_with_output().expect("its end"));
        assert_eq!(ran.code, 0, "{ran:?}");
        runs.push(ran.document());
    }
    assert_eq!(runs.iter().filter(|run| run["joined"] == json!(false)).count(), 1);
    assert!(runs.iter().all(|run| run["run"] == runs[0]["run"]));
}

#[test]
fn a_tampered_run_is_found_by_verify_and_rebuild() {
    let project = Project::new();
    let (id, other) = (start(&project, "c"), start(&project, "d"));
    project.ok(&["runs", "transition", &id, "running"]);
    // The row of another run in its place.
    let database = rusqlite::Connection::open(project.database()).expect("the database");
    let sql =
        "UPDATE streams SET open = (SELECT open FROM streams WHERE hex(name) = ?2) WHERE hex(name) = ?1";
    let name = |id: &str| id.trim_start_matches("run_").to_uppercase();
    assert_eq!(database.execute(sql, [name(&id), name(&other)]).expect("changed"), 1);
    drop(database);
    let verified = project.refused(&["runs", "verify", &id]);
    assert!(verified.stdout.contains("[row_differs]"), "{verified:?}");
    let rebuilt = project.run(&["runs", "rebuild", &id, "--json"]);
    assert_eq!((rebuilt.code, &rebuilt.document()["same"]), (1, &json!(false)));
    assert_eq!(rebuilt.document()["state"], "running");
    project.ok(&["runs", "verify", &other]);
}

#[test]
fn hostile_input_is_refused_before_anything_is_recorded() {
    let project = Project::new();
    let id = start(&project, "c");
    let long = "a".repeat(129);
    for (args, code) in [
        (vec!["runs", "start", "simple", "A b"], "change_invalid"),
        (vec!["runs", "start", "simple", "-"], "change_invalid"),
        (vec!["runs", "start", "simple", "a\u{1b}[2Jb"], "change_invalid"),
        (vec!["runs", "start", "simple", &long], "change_invalid"),
        (vec!["runs", "start", "simple", "../../etc"], "change_invalid"),
        (vec!["runs", "start", "simple", "x", "--request", "a b"], "request_id_invalid"),
        (vec!["runs", "start", "simple", "x", "--request", ""], "request_id_invalid"),
        (vec!["runs", "start", "simple", "x", "--request", &long], "request_id_invalid"),
        (vec!["runs", "transition", &id, "\u{202e}running"], "out_of_bounds"),
        (vec!["runs", "transition", &id, "running", "--code", "a\nb"], "out_of_bounds"),
        (vec!["runs", "command", &id, "rm -rf"], "out_of_bounds"),
        (vec!["runs", "start", "simple", "x", "--agent", "a\u{1b}b"], "out_of_bounds"),
        (vec!["runs", "show", "simple/\u{1b}[2J"], "run_unknown"),
    ] {
        let ran = project.run(&args);
        assert!(
            (1..=2).contains(&ran.code) && ran.stderr.contains(&format!("error[{code}]")),
            "{args:?}\n{ran:?}"
        );
        assert!(!ran.all().contains('\u{1b}') && !ran.all().contains('\u{202e}'), "{args:?}\n{ran:?}");
    }
    for args in [
        &["runs", "show", "nonsense"][..],
        &["runs", "show", "run_12"],
        &["runs", "list", "--after", "xyz"],
        &["runs", "list", "--root", "x"],
        &["runs", "list", "--older-than", "99999999999999999999d"],
        &["runs", "start", "simple"],
        &["runs", "start", "design", "--provisional", "sha256:12"],
        &["runs", "diff", &id, "0"],
        &["runs", "diff", &id, "1", "18446744073709551615"],
        &["runs", "events", &id, "--limit", "0"],
    ] {
        assert_eq!(project.run(args).code, 2, "{args:?}");
    }
    assert!(project.json(&["runs", "events", &id, "--after", "18446744073709551615"])["items"] == json!([]));
    assert_eq!(project.items(&["runs", "list"]).len(), 1);
    assert_eq!(project.items(&["runs", "events", &id]).len(), 1);
}

#[test]
fn tenants_have_runs_of_their_own() {
    let project = Project::new();
    start(&project, "c");
    project.set_policy("actions: {}\nsettings: { tenant: other }\n");
    assert!(project.items(&["runs", "list"]).is_empty());
    project.refused(&["runs", "show", "simple/c"]);
    assert_eq!(project.json(&["runs", "start", "simple", "c"])["joined"], false);
}

#[test]
fn a_request_of_a_run_that_ended_does_nothing_to_the_one_that_followed() {
    let project = Project::new();
    let first = start(&project, "a");
    project.ok(&["runs", "cancel", "simple/a", "--request", "c1"]);
    let second = start(&project, "a");
    assert_ne!(first, second);
    let again = project.json(&["runs", "cancel", "simple/a", "--request", "c1"]);
    assert_eq!((&again["run"], &again["replayed"]), (&json!(first), &json!(true)));
    let lives = project.json(&["runs", "show", &second]);
    assert_eq!(lives["state"], "created", "nobody asked it for anything");
    let ended = project.json(&["runs", "cancel", "simple/a", "--request", "c2"]);
    assert_eq!(ended["run"], json!(second), "a new request is of the one that lives");
}

#[test]
fn a_state_that_no_run_is_ever_in_is_refused_with_those_there_are() {
    let project = Project::new();
    for known in ["living", "ended", "paused", "recovering"] {
        assert_eq!(project.json(&["runs", "list", "--state", known])["items"], json!([]));
    }
    for line in [&["--state", "pausd"][..], &["--state", "recovering", "--kind", "simple"]] {
        let refused = project.run(&[&["runs", "list"], line, &["--json"]].concat());
        let error = refused.error();
        assert_eq!((refused.code, &error["code"]), (2, &json!("usage")));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("living") && message.contains("paused"), "{message}");
    }
}
