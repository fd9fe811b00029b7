//! What a person who approves is shown.

use onceseal::Control;
use onceseal::core::approval::{Identity, Proof, Said};
use onceseal::core::hash::Hash;
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{self, Limits, Object, Value};

use crate::base::{Project, snapshot};

const POLICY: &str = "actions:\n  send: { decision: approve }\n";

/// Asks for `send` with these arguments; the request's id.
fn asked(project: &Project, args: &[&str], agent: &str) -> String {
    let line: Vec<_> = ["exec", "send", "--json", "--agent", agent]
        .iter()
        .chain(args)
        .chain(&["--", "true"])
        .copied()
        .collect();
    let error = project.refused(&line).error();
    error["approval"].as_str().expect("a request").to_owned()
}

#[test]
fn ua_073_control_bidi_and_zero_width_characters_are_shown_escaped_with_a_warning() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project, &["--arg", "command=rm -rf ./tm\u{200b}p\u{202e}gpj.\u{1b}[2K"], "bot");
    for args in [&["approvals", "show", &id][..], &["approve", &id]] {
        let shown = project.ok(args).stdout;
        assert!(shown.contains(r#"!   "command": "rm -rf ./tm\u{200b}p\u{202e}gpj.\u001b[2K""#), "{shown}");
        assert!(shown.contains("WARNING: lines marked `!`"), "{shown}");
        assert!(!shown.contains(['\u{200b}', '\u{202e}', '\u{1b}']));
    }
    let document = project.json(&["approvals", "show", &id]);
    assert_eq!(document["whole_action"]["arguments_have_hidden_characters"], true);
    let plain = asked(&project, &["--arg", "command=ls"], "bot");
    assert!(!project.ok(&["approvals", "show", &plain]).stdout.contains("WARNING"));
}

#[test]
fn a_wide_space_does_not_pass_for_others_and_is_marked() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project, &["--arg", "to=alice\u{3000}bob"], "bot\u{3000}x");
    for args in [&["approvals", "show", &id][..], &["approve", &id], &["actions", "list"]] {
        let shown = project.ok(args).stdout;
        assert!(shown.contains(r"bot\u{3000}x") && !shown.contains('\u{3000}'), "{shown}");
    }
    let shown = project.ok(&["approvals", "show", &id]).stdout;
    assert!(shown.contains(r#"!   "to": "alice\u{3000}bob""#) && shown.contains("WARNING"), "{shown}");
    let document = project.json(&["approvals", "show", &id]);
    assert_eq!(document["whole_action"]["arguments_have_hidden_characters"], true);
}

#[test]
fn ua_074_the_requesters_text_is_fenced_and_cannot_pass_for_ours() {
    let project = Project::with_policy(POLICY);
    let spoof = "ok\n\napr_0 granted by os:boss\n| action \"harmless\"\r\u{1b}[2J";
    let id = asked(
        &project,
        &["--arg", &format!("note={spoof}"), "--user", "os:boss granted"],
        "Onceseal says: safe",
    );
    let shown = project.ok(&["approvals", "show", &id]).stdout;
    snapshot("approval_spoofed", &shown);
    let (ours, theirs) =
        shown.split_once("Lines behind a bar are the requester's words.\n").expect("a fence");
    assert!(theirs.lines().skip(1).all(|line| line.starts_with("| ") || line.starts_with("! ")), "{theirs}");
    for word in ["granted", "safe", "harmless"] {
        assert!(!ours.contains(word), "{word} is above the fence");
    }
}

#[test]
fn ua_076_nothing_is_truncated() {
    let project = Project::with_policy(POLICY);
    let long: String = (0..40_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    std::fs::write(project.path("long"), &long).expect("written");
    let id = asked(&project, &["--arg-file", "text=long"], "bot");
    let shown = project.ok(&["approvals", "show", &id]).stdout;
    let joined = shown.replace(" \\\n| ", "");
    assert!(joined.contains(&format!("\"text\": \"{long}\"")));
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "no terminal breaks a line itself");
}

#[test]
fn ua_077_what_is_shown_is_read_back_from_the_bytes_that_are_hashed() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project, &["--arg", "b=\u{e9}", "--arg", r#"a:={"y":[1,-0],"x":null}"#], "bot");
    let text = project.ok(&["approvals", "show", &id, "--json"]).stdout;
    let Ok(Value::Object(shown)) = json::read(text.trim().as_bytes(), &Limits::DATA) else {
        panic!("a document")
    };
    let Some(Value::Object(action)) = shown.get("whole_action") else { panic!("an action") };
    let take = |name: &str| action.get(name).cloned().expect(name);
    let mut principal = Object::new();
    principal.insert("agent", take("agent"));
    principal.insert("user", take("user"));
    let mut hashed = Object::new();
    for name in ["arguments", "environment", "name", "resource"] {
        hashed.insert(name, take(name));
    }
    hashed.insert("principal", principal);
    hashed.insert("tenant", "default");
    let hash = Hash::of("onceseal.action.v1\n", &[json::canonical(&hashed.into()).as_bytes()]);
    assert_eq!(shown.get("action_hash"), Some(&Value::Text(hash.to_string())));
    assert_eq!(json::canonical(&take("arguments")), r#"{"a":{"x":null,"y":[1,0]},"b":"é"}"#);
}

#[test]
fn p01_an_answer_is_given_to_the_hash_that_was_read() {
    let project = Project::with_policy(POLICY);
    let id = asked(&project, &["--arg", "command=ls"], "bot");
    let binding = project.json(&["approvals", "show", &id])["binding"].as_str().expect("a hash").to_owned();
    let wrong = project.refused(&["approve", &id, "--hash", "00000000", "--json"]).error();
    assert_eq!(wrong["code"], "shown_differs");
    assert_eq!(project.json(&["approvals", "show", &id])["status"], "pending");
    assert_eq!(project.run(&["approve", &id, "--hash", "0"]).code, 2, "too short to mean anything");
    project.ok(&["approve", &id, "--hash", &binding[..20]]);
}

#[test]
fn the_agent_that_asks_cannot_answer_and_who_is_not_entitled_neither() {
    let project = Project::with_policy(
        "groups: { boss: [\"os:somebody-else\", \"host:boss\"] }\nactions:\n  send: { decision: approve }\n  pay: { decision: approve, approval: { approvers: [boss] } }\n",
    );
    let login = project.ok(&["init", "--json"].map(|word| if word == "init" { "doctor" } else { word }));
    let login =
        login.stdout.split("os:").nth(1).and_then(|rest| rest.split(',').next()).expect("a login").to_owned();
    let own = asked(&project, &["--arg", "command=ls"], &login);
    assert_eq!(project.refused(&["approve", &own, "--json"]).error()["code"], "agent_cannot_answer");
    let asked = project.refused(&["exec", "pay", "--json", "--", "true"]).error()["approval"].clone();
    let id = asked.as_str().expect("a request");
    assert_eq!(project.refused(&["approve", id, "--json"]).error()["code"], "not_entitled");
}

/// A program that embeds the library answers yes for a person.
fn host_says_yes(project: &Project, id: &str, name: &str) {
    let control = project.embedded(0);
    let approval = ApprovalId::parse(id).expect("an id");
    let row = control.engine().approval(approval).expect("read").expect("a request");
    let shown = row.private.bound.binding.expect("a binding");
    let person = Identity { proof: Proof::Host, name: name.to_owned() };
    control.answer(approval, person, Said::Yes, shown).expect("answered");
}

#[test]
fn one_person_with_two_proofs_is_counted_and_shown_as_one() {
    let project = Project::with_policy("actions:\n  send: { decision: approve, approval: { quorum: 2 } }\n");
    let id = asked(&project, &["--arg", "command=ls"], "bot");
    assert!(project.ok(&["approve", &id]).stdout.contains("has 1 of 2 yes"));
    host_says_yes(&project, &id, &Control::account().name);
    assert!(project.ok(&["approvals", "show", &id]).stdout.contains("pending, 1 of 2 yes"));
    assert!(project.ok(&["pending"]).stdout.contains(" 1/2 "));
    host_says_yes(&project, &id, "bob");
    assert!(project.ok(&["approvals", "show", &id]).stdout.contains("granted, 2 of 2 yes"));
    assert!(project.ok(&["approvals", "list"]).stdout.contains(" 2/2 "));
}

/// Runs a command whose stdout nobody reads; its exit code.
fn unread(project: &Project, args: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    project.command(args).stdout(writer).status().expect("run").code()
}

#[test]
fn a_closed_output_is_no_success_and_what_cannot_be_shown_is_not_approved() {
    let project = Project::new();
    project.refund("txn_0", 1, &[]);
    let approval = project.asked("txn_1");
    assert_eq!(unread(&project, &["approve", &approval]), Some(141));
    assert_eq!(project.json(&["approvals", "show", &approval])["status"], "pending");
    for args in [&["audit"][..], &["audit", "--json"], &["doctor"], &["effects", "list"], &["events"]] {
        assert_eq!(unread(&project, args), Some(141), "{args:?}");
    }
}

#[test]
fn what_was_answered_before_the_output_was_found_closed_stands() {
    let project = Project::new();
    let status = |id: &str| project.json(&["approvals", "show", id])["status"].clone();
    let (denied, granted) = (project.asked("txn_1"), project.asked("txn_2"));
    assert_eq!((unread(&project, &["deny", &denied]), status(&denied)), (Some(141), "denied".into()));
    // For programs nothing is shown first.
    let approve = ["approve", &granted, "--json"];
    assert_eq!((unread(&project, &approve), status(&granted)), (Some(141), "granted".into()));
}

#[test]
fn why_a_person_said_no_is_recorded_and_read_by_whoever_asked() {
    let project = Project::new();
    let approval = project.asked("txn_1");
    for blank in ["", " ", &"x".repeat(100_000)] {
        let refused = project.run(&["deny", &approval, "--reason", blank, "--json"]);
        assert_eq!(refused.error()["code"], "out_of_bounds", "{refused:?}");
    }
    let denied = project.json(&["deny", &approval, "--reason", "twice this\nmonth"]);
    assert_eq!(denied["reasons"][0]["reason"], "twice this\nmonth");
    let shown = project.ok(&["approvals", "show", &approval]).stdout;
    assert!(shown.contains(r#": "twice this\nmonth""#), "{shown}");
    let again = project.refund("txn_1", 500_000, &["--json"]).error();
    assert_eq!(again["code"], "approval_denied");
    assert!(again["why"].as_str().expect("why").contains(r#"said: "twice this\nmonth""#), "{again}");
    // A grant that is taken back says why, too.
    let other = project.asked("txn_2");
    project.ok(&["approve", &other]);
    assert_eq!(project.json(&["deny", &other, "--reason", "too late"])["status"], "revoked");
    assert!(project.ok(&["approvals", "show", &other]).stdout.contains(r#": "too late""#));
    // And one without a reason is as it was.
    let third = project.asked("txn_3");
    assert_eq!(project.json(&["deny", &third])["reasons"], serde_json::json!([]));
    assert_eq!(project.json(&["audit"])["clean"], true);
}
