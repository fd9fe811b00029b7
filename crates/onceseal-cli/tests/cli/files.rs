//! Files that a person names: what is read of them, and what is written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

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

fn mode(project: &Project, name: &str) -> u32 {
    fs::metadata(project.path(name)).expect("a file").permissions().mode() & 0o777
}

fn fence(project: &Project, resource: &str) -> Value {
    project.json(&["lease", "inspect", resource])["fence"].clone()
}

#[test]
fn what_proves_a_lease_takes_the_place_of_nothing() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c"]);
    project.ok(&["runs", "transition", "simple/c", "running"]);
    fs::write(project.path("plan.json"), r#"{"tasks":[{"id":"a"}]}"#).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "1", "plan.json"]);
    fs::write(project.path("mine"), "notes").expect("a file");
    symlink("elsewhere", project.path("link")).expect("a link");
    fs::create_dir(project.path("directory")).expect("a directory");
    project.ok(&["lease", "acquire", "other", "--for", "1h", "--to", "other.json"]);
    let other = project.read("other.json");
    for name in ["mine", "link", "directory", "other.json", "/dev/null"] {
        for line in [
            &["lease", "acquire", "deploy", "--to", name][..],
            &["lease", "preempt", "deploy", "--reason", "r", "--to", name],
            &["tasks", "take", "simple/c", "--to", name],
        ] {
            assert_eq!(misused(&project, line)["code"], "output_exists", "{line:?}");
        }
    }
    let error = misused(&project, &["lease", "acquire", "deploy", "--to", "not/here.json"]);
    assert_eq!(error["code"], "output_failed", "{error}");
    assert_eq!((project.read("mine"), project.read("other.json")), ("notes".to_owned(), other));
    assert_eq!((fence(&project, "deploy"), project.path("elsewhere").exists()), (json!(0), false));
    assert_eq!(project.items(&["tasks", "list", "simple/c"])[0]["state"], "queued", "nothing was taken");
}

#[test]
fn the_same_lease_is_written_again_and_stays_private() {
    let project = Project::new();
    let me = format!("holderkey_{}", "7".repeat(32));
    let line = ["lease", "acquire", "deploy", "--for", "1h", "--holder", &me, "--to", "lease.json"];
    project.ok(&line);
    let first = project.read("lease.json");
    fs::set_permissions(project.path("lease.json"), fs::Permissions::from_mode(0o666)).expect("its mode");
    project.ok(&line);
    assert_eq!((project.read("lease.json"), mode(&project, "lease.json")), (first, 0o600));
    let error = misused(&project, &["lease", "acquire", "deploy", "--to", "lease.json"]);
    assert_eq!(error["code"], "output_exists", "nobody says that it is the same holder");
    let hidden = fs::read_dir(project.path("")).expect("listed");
    let hidden = hidden.map(|entry| entry.expect("an entry").file_name());
    assert!(
        hidden.into_iter().all(|name| !name.to_string_lossy().starts_with(".lease")),
        "nothing is left over"
    );
}

#[test]
fn a_lease_that_could_not_be_printed_is_got_again() {
    let project = Project::new();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    for json in [&[][..], &["--json"]] {
        let line = [&["lease", "acquire", "deploy", "--for", "1h"][..], json].concat();
        let told = project.command(&line).stdout(full()).output().expect("a run");
        let told = String::from_utf8(told.stderr).expect("text");
        let holder = told.split_whitespace().find(|word| word.starts_with("holderkey_")).expect("a key");
        project.ok(&["lease", "acquire", "deploy", "--holder", holder, "--to", "lease.json"]);
        project.ok(&["lease", "interrupt", "--lease", "lease.json"]);
        fs::remove_file(project.path("lease.json")).expect("a file");
    }
    let line = ["lease", "acquire", "deploy", "--for", "1h", "--to", "lease.json"];
    let told = project.command(&line).stdout(full()).output().expect("a run");
    assert!(String::from_utf8_lossy(&told.stderr).contains("is in lease.json"), "{told:?}");
    project.ok(&["lease", "renew", "--lease", "lease.json"]);
}

#[test]
fn a_task_whose_answer_was_lost_is_taken_again_by_the_same_command() {
    let project = Project::new();
    project.ok(&["runs", "start", "simple", "c"]);
    project.ok(&["runs", "transition", "simple/c", "running"]);
    fs::write(project.path("plan.json"), r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#).expect("a plan");
    project.ok(&["tasks", "plan", "simple/c", "1", "plan.json"]);
    let me = format!("holderkey_{}", "7".repeat(32));
    let line = ["tasks", "take", "simple/c", "--for", "1h", "--holder", &me];
    let lost = project.json(&line);
    let again = project.json(&[&line[..], &["--to", "lease.json"]].concat());
    assert_eq!((&again["task"], &again["lease"]["fence"]), (&json!("a"), &lost["lease"]["fence"]));
    let kept: Value = serde_json::from_str(&project.read("lease.json")).expect("JSON");
    assert_eq!(kept["token"], lost["lease"]["token"]);
    project.ok(&[&line[..], &["--to", "lease.json"]].concat());
    let digest = RECEIPT;
    project.ok(&[
        "tasks",
        "produced",
        "done",
        "--evidence",
        digest,
        "--lease",
        "lease.json",
        "--agent",
        "me",
    ]);
    assert_eq!(project.json(&line)["state"], "validating");
    project.ok(&["tasks", "passed", "right", "--by", "ci", "--evidence", digest, "--lease", "lease.json"]);
    assert_eq!(project.json(&line)["task"], "b", "it is at none any more");
}

#[test]
fn a_file_that_may_not_get_longer_is_told_of() {
    let project = Project::new();
    project.ok(&["lease", "acquire", "deploy"]);
    let mut command = project.command(&[]);
    let line = "ulimit -f 16; exec \"$0\" lease acquire other --json";
    let mut shell = Command::new("sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_onceseal")]).current_dir(project.path("")).env_clear();
    shell.envs(
        command
            .stdin(std::process::Stdio::null())
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let refused = crate::base::ran(shell.output().expect("a run"));
    let error = refused.error();
    assert_eq!(error["code"], "store_failed", "{refused:?}");
    assert!(error["why"].as_str().expect("why").contains("ulimit -f"), "{error}");
    assert_eq!(fence(&project, "other"), json!(0), "nothing was recorded");
}
