//! At a terminal: what is approved is shown, then asked for.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::base::Project;

/// A terminal: the person's end, and the program's.
fn terminal() -> (File, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).and_then(|()| unlockpt(&person)).expect("a terminal");
    let name = ptsname(&person, Vec::new()).expect("its name");
    let program =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
    (File::from(person), program)
}

/// Runs the program at a terminal where somebody types `answer` when they are
/// asked; its exit status and what it printed.
fn at_terminal(project: &Project, args: &[&str], answer: &str) -> (Option<i32>, String) {
    run_at_terminal(project.command(args), answer)
}

fn run_at_terminal(mut command: Command, answer: &str) -> (Option<i32>, String) {
    let (mut person, program) = terminal();
    let end = || Stdio::from(program.try_clone().expect("a copy"));
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("a run");
    drop(command);
    drop(program);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut asked = false;
    // Reading fails once the program's end is closed: it has exited.
    while let Ok(n @ 1..) = person.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..n]);
        if !asked && String::from_utf8_lossy(&shown).contains("[y/N] ") {
            asked = true;
            person.write_all(answer.as_bytes()).expect("typed");
        }
    }
    let code = child.wait().expect("its end").code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}

const POLICY: &str = "actions:\n  send: { decision: approve, redact: [pin] }\n";

fn asked(project: &Project) -> String {
    std::fs::write(project.path("pin"), "7731").expect("written");
    let error = project.refused(&["exec", "send", "--arg-file", "pin=pin", "--json", "--", "true"]).error();
    error["approval"].as_str().expect("a request").to_owned()
}

#[test]
fn a_person_is_shown_the_action_then_asked_and_only_yes_is_yes() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project);
    for answer in ["n\n", "\n", "yeah\n"] {
        let (code, shown) = at_terminal(&project, &["approve", &id], answer);
        assert_eq!(code, Some(1), "{shown}");
        let (action, question) = (shown.find("\"send\""), shown.find("[y/N]"));
        assert!(action.is_some() && action < question, "shown first: {shown}");
        assert_eq!(project.json(&["approvals", "show", &id])["status"], "pending");
    }
    let (code, shown) = at_terminal(&project, &["approve", &id], "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("granted"), "{shown}");
    assert_eq!(project.json(&["approvals", "show", &id])["status"], "granted");
}

#[test]
fn whoever_names_the_hash_is_not_asked() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project);
    let binding = project.json(&["approvals", "show", &id])["binding"].as_str().expect("a hash").to_owned();
    let (code, shown) = at_terminal(&project, &["approve", &id, "--hash", &binding], "");
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("[y/N]"), "{shown}");
}

#[test]
fn redacted_values_are_shown_at_a_terminal_and_elsewhere_only_when_revealed() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project);
    let show = ["approvals", "show", &id];
    assert!(at_terminal(&project, &show, "").1.contains("\"pin\": \"7731\""));
    assert!(project.ok(&show).stdout.contains("\"pin\": \"[redacted]\""));
    assert!(project.ok(&["approvals", "show", &id, "--reveal"]).stdout.contains("\"pin\": \"7731\""));
}

#[test]
fn runs_that_live_are_watched_with_their_ages() {
    let project = Project::new();
    for change in ["one", "two"] {
        project.ok(&["runs", "start", "simple", change]);
    }
    project.ok(&["runs", "cancel", "simple/two"]);
    let (mut person, program) = terminal();
    let end = || Stdio::from(program.try_clone().expect("a copy"));
    let mut command = project.command(&["runs", "watch"]);
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("a run");
    drop(command);
    drop(program);
    let (mut shown, mut buffer) = (String::new(), [0; 4096]);
    let pictures = |shown: &str| shown.matches("1 living run; Ctrl-C ends").count();
    while pictures(&shown) < 2 {
        let n = person.read(&mut buffer).expect("it goes on");
        shown.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    child.kill().expect("stopped");
    child.wait().expect("its end");
    assert!(shown.contains("AGE") && shown.contains("one") && !shown.contains("two"), "{shown}");
}

#[test]
fn a_terminal_has_colour_unless_no_color_is_set() {
    let project = Project::with_policy(POLICY);
    asked(&project);
    let shown = |set: &[(&str, &str)], args: &[&str]| {
        let mut command = project.command(args);
        command.env("TERM", "xterm").envs(set.iter().copied());
        run_at_terminal(command, "").1
    };
    assert!(shown(&[], &["pending"]).contains('\u{1b}'));
    assert!(!shown(&[("NO_COLOR", "1")], &["pending"]).contains('\u{1b}'));
    assert!(!shown(&[], &["pending", "--color", "never"]).contains('\u{1b}'));
    assert!(!shown(&[], &["pending", "--json"]).contains('\u{1b}'));
}
