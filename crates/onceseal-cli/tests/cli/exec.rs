//! `exec`: how programs are run, and what their ends mean.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::base::{Project, ran, refund};

#[test]
fn the_streams_and_the_last_word_of_the_command_pass_through() {
    let project = Project::new();
    let line = refund("txn_1", 1, &[], "cat; echo said; echo err >&2");
    let mut command = project.command(&line.each());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a run");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), b"in\n").expect("written");
    let ran = ran(child.wait_with_output().expect("its end"));
    assert_eq!(ran.stdout, "in\nsaid\n");
    assert!(ran.stderr.starts_with("err\n"), "{ran:?}");
    let effect = project.json(&["effects", "show", "refund:txn_1"]);
    assert!(!effect.to_string().contains("said"), "streams are not stored");
}

#[test]
fn p06_any_end_but_exit_0_and_the_named_codes_is_unknown() {
    let project = Project::new();
    for (script, more, code, state) in [
        ("exit 3", &[][..], "exit_3", "ambiguous"),
        ("exit 3", &["--not-executed-on", "3,4"], "exit_3", "failed"),
        ("exit 5", &["--not-executed-on", "3,4"], "exit_5", "ambiguous"),
        ("kill -15 $$", &["--not-executed-on", "15"], "signal_15", "ambiguous"),
        ("sleep 60", &["--deadline", "1s", "--lease", "1s"], "timed_out", "ambiguous"),
    ] {
        let payment = format!("{code}_{state}");
        let more: Vec<_> = more.iter().copied().chain(["--json"]).collect();
        let ran = project.run(&refund(&payment, 1, &more, script).each());
        assert_eq!(ran.code, 1, "{ran:?}");
        let error = ran.error();
        assert_eq!(error["child"]["code"], code, "{error}");
        let expected = if state == "failed" { "not_executed" } else { "outcome_unknown" };
        assert_eq!(error["code"], expected);
        let effect = project.json(&["effects", "show", &format!("refund:{payment}")]);
        assert_eq!((effect["state"].as_str(), effect["code"].as_str()), (Some(state), Some(code)));
    }
}

#[test]
fn a_program_that_cannot_be_started_was_not_executed_and_may_be_tried_again() {
    let project = Project::new();
    let call = ["exec", "stripe.refund", "--arg", "payment_id=a", "--arg", "amount:=1", "--json", "--"];
    let missing: Vec<_> = call.iter().copied().chain(["./no-such-program"]).collect();
    let error = project.refused(&missing).error();
    assert_eq!(
        (error["code"].as_str(), error["child"]["code"].as_str()),
        (Some("not_executed"), Some("program_not_found"))
    );
    let there: Vec<_> = call.iter().copied().chain(["true"]).collect();
    let done = project.ok(&there).document();
    assert_eq!((&done["attempt"], &done["result"]), (&json!(2), &json!("committed")));
    assert_eq!(done["child"], json!({"code": "exit_0", "exit": 0, "signal": null}));
}

#[test]
fn a_command_that_ran_and_whose_end_cannot_be_written_is_told_as_that() {
    for (end, resolve) in [
        ("exit 0", "--committed --reason 'the command exited with status 0'"),
        ("exit 75", "--failed --reason 'the program exited with status 75'"),
        ("exit 9", "--committed --reason '…'"),
    ] {
        let project = Project::new();
        let script = format!("rm -r '{}'; {end}", project.state().display());
        let more = ["--lease", "1s", "--not-executed-on", "75"];
        let people = project.refused(&refund("txn_1", 1, &more, &script).each()).stderr;
        let project = Project::new();
        let database = project.database();
        let script = format!("rm -r '{}'; {end}", project.state().display());
        let more: Vec<_> = more.iter().copied().chain(["--json"]).collect();
        let error = project.refused(&refund("txn_1", 1, &more, &script).each()).error();

        let status = end.rsplit(' ').next().and_then(|code| code.parse::<i32>().ok()).expect("a status");
        assert_eq!(
            (&error["code"], &error["retry"]),
            (&json!("outcome_unrecorded"), &json!("after_resolution"))
        );
        assert_eq!((&error["child"]["exit"], &error["attempt"]), (&json!(status), &json!(1)));
        assert_eq!(
            (&error["effect_key"], &error["cause"]),
            (&json!("refund:txn_1"), &json!("store_foreign"))
        );
        let action = error["action"].as_str().expect("an id");
        assert!(action.starts_with("act_") && error["why"].as_str().is_some_and(|why| why.contains(action)));
        assert_eq!(error["file"], json!(database));
        assert!(error["lease_ends_by"].as_str().is_some_and(|at| at.ends_with('Z')), "{error}");
        for says in [
            "error[outcome_unrecorded]: the command ran, and how it ended is not recorded",
            &format!("the program exited with status {status}; store_foreign: "),
            "the effect \"refund:txn_1\" of act_",
            "counts as in progress until its lease ends, 2",
            "and as ambiguous from then on",
            "onceseal effects show refund:txn_1\n",
            &format!("onceseal resolve refund:txn_1 --fence 1 {resolve}\n"),
        ] {
            assert!(people.contains(says), "{says}\n{people}");
        }
    }
}

#[test]
fn another_attempt_under_way_is_refused_at_once_with_the_end_of_its_lease() {
    let project = Project::new();
    let ours = project.path("ours");
    let script = format!("read line < '{}'", ours.display());
    assert!(std::process::Command::new("mkfifo").arg(&ours).status().expect("run").success());
    let mut first = project.command(&refund("txn_1", 1, &[], &script).each()).spawn().expect("a run");
    // Opens once the first one's command reads, so the attempt is under way.
    let pipe = fs::OpenOptions::new().write(true).open(&ours).expect("a pipe");
    let error = project.refused(&refund("txn_1", 1, &["--wait", "1h", "--json"], "true").each()).error();
    assert_eq!((&error["code"], &error["retry"]), (&json!("in_progress"), &json!("later")));
    let until = error["lease_until"].as_str().expect("a moment");
    let again = format!("the same command again after {until}, when its lease ends unless it is renewed");
    assert_eq!(error["next"], json!(["onceseal effects show refund:txn_1", again]));
    drop(pipe);
    first.wait().expect("its end");
}

#[test]
#[cfg(target_os = "linux")]
fn an_outcome_that_cannot_be_printed_is_told_on_stderr_as_what_it_was() {
    let project = Project::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let line = refund("txn_1", 1, &["--json"], "true");
    let ran = ran(project.command(&line.each()).stdout(full).output().expect("a run"));
    let error = ran.error();
    assert_eq!((ran.code, &error["code"]), (1, &json!("output_failed")));
    assert!(
        error["why"].as_str().is_some_and(|why| why.starts_with("committed \"refund:txn_1\", attempt 1"))
    );
}

#[test]
fn p04_a_command_that_outlives_its_lease_and_is_answered_for_is_told_so() {
    let project = Project::new();
    // The program that renews the lease stops, and the command ends.
    let line = refund("txn_1", 1, &["--lease", "1s", "--json"], "kill -STOP $PPID; echo > stopped");
    let child = project.command(&line.each()).stderr(Stdio::piped()).spawn().expect("a run");
    while !project.ok(&["effects", "list"]).stdout.contains("executing (over)") {}
    project.ok(&["resolve", "refund:txn_1", "--failed", "--reason", "nobody answers"]);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it goes on");
    let ran = ran(child.wait_with_output().expect("its end"));
    let error = ran.error();
    assert_eq!((ran.code, &error["code"], &error["child"]["exit"]), (1, &json!("fenced"), &json!(0)));
    assert_eq!(error["effect_key"], "refund:txn_1");
    let why = error["why"].as_str().expect("a reason");
    assert!(why.contains("is failed") && why.contains("the command ran: the program exited with status 0"));
    assert_eq!(error["next"], json!(["onceseal effects show refund:txn_1"]));
}

#[test]
fn the_command_learns_what_was_approved_action_attempt_and_effect_key() {
    let project = Project::new();
    let script = "echo $ONCESEAL_ARGUMENTS; echo $ONCESEAL_ACTION $ONCESEAL_ATTEMPT $ONCESEAL_EFFECT_KEY";
    let id = "act_000000000000700080000000000000aa";
    let ran = project.ok(&refund("txn_1", 1, &["--id", id], script).each());
    let arguments = r#"{"amount":1,"payment_id":"txn_1"}"#;
    assert_eq!(ran.stdout, format!("{arguments}\n{id} 1 refund:txn_1\n"));
    let none = project.ok(&["exec", "customer.read", "--", "sh", "-c", "echo [$ONCESEAL_EFFECT_KEY]"]);
    assert_eq!(none.stdout, "[]\n");
}

#[test]
fn p04_a_command_whose_lease_is_lost_is_stopped() {
    let project = Project::new();
    // As on a machine that is suspended for longer than the lease.
    let script = "kill -STOP $PPID; sleep 1.2; kill -CONT $PPID; sleep 60; echo late >> calls";
    let begun = std::time::Instant::now();
    let ran = project.run(&refund("txn_1", 1, &["--lease", "1s", "--json"], script).each());
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it is not waited for");
    assert_eq!((ran.code, project.read("calls").as_str()), (1, ""), "{ran:?}");
    assert_eq!(project.json(&["effects", "show", "refund:txn_1"])["state"], "ambiguous");
}

#[test]
fn the_same_id_and_content_is_answered_and_never_run_again_and_other_content_is_refused() {
    let project = Project::new();
    let id = "act_000000000000700080000000000000aa";
    project.ok(&refund("txn_1", 1, &["--id", id], "echo x >> calls").each());
    let again = project.ok(&refund("txn_1", 1, &["--id", id, "--json"], "echo x >> calls").each()).document();
    assert_eq!((&again["replayed"], &again["child"]), (&json!(true), &json!(null)));
    let other = project.refused(&refund("txn_1", 2, &["--id", id, "--json"], "echo x >> calls").each());
    assert_eq!(other.error()["code"], "id_reused");
    assert_eq!(project.read("calls"), "x\n");
}

#[test]
fn an_id_that_has_ended_with_a_passing_refusal_is_not_said_to_be_worth_repeating() {
    let project = Project::new();
    project.unknown("txn_1");
    let id = "act_000000000000700080000000000000ab";
    let line = refund("txn_1", 1, &["--id", id, "--json"], "true");
    let error = project.refused(&line.each()).error();
    assert_eq!(error["code"], "ambiguous");
    project.ok(&["resolve", "refund:txn_1", "--failed", "--reason", "looked"]);
    let again = project.refused(&line.each()).error();
    assert_eq!((&again["code"], &again["retry"]), (&json!("ambiguous"), &json!("never")));
    assert_eq!(error["retry"], "never", "as it was said from the first");
    project.ok(&refund("txn_1", 1, &[], "true").each());
}

#[test]
fn ua_065_a_timeout_a_denial_and_a_revocation_are_three_different_outcomes() {
    let project = Project::new();
    let code = |payment: &str, more: &[&str]| {
        let more: Vec<_> = more.iter().copied().chain(["--json"]).collect();
        let ran = project.refund(payment, 500_000, &more);
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.error()
    };
    let waited = code("txn_1", &["--wait", "100ms"]);
    assert_eq!((&waited["code"], &waited["retry"]), (&json!("wait_timeout"), &json!("after_approval")));
    let stays = waited["approval"].as_str().expect("an id").to_owned();
    assert_eq!(project.json(&["approvals", "show", &stays])["status"], "pending", "nobody has answered");

    let denied = project.asked("txn_2");
    project.ok(&["deny", &denied]);
    assert_eq!(code("txn_2", &[])["code"], "approval_denied");

    let revoked = project.asked("txn_3");
    let action = project.json(&["approvals", "show", &revoked])["action"].clone();
    project.ok(&["approvals", "revoke", &revoked]);
    let resumed = code("txn_3", &["--id", action.as_str().expect("an id")]);
    assert_eq!(resumed["code"], "approval_revoked");

    let told = |id: &str| -> Vec<String> {
        let events = project.items(&["events", "--stream", id]);
        events.iter().skip(1).map(|e| format!("{} {}", e["open"]["kind"], e["open"]["data"])).collect()
    };
    assert_eq!(told(&stays), Vec::<String>::new(), "the journal has no answer");
    assert_eq!(told(&denied), [r#""approval.answered" {"proof":"os","said":"no","status":"denied"}"#]);
    assert_eq!(told(&revoked), [r#""approval.revoked" {"proof":"os","reason":"operator"}"#]);
    assert_eq!(project.read("calls"), "");
}

#[test]
fn ua_094_an_approval_given_before_the_wait_begins_is_not_missed() {
    let project = Project::new();
    let id = project.asked("txn_1");
    project.ok(&["approve", &id]);
    project.ok(&refund("txn_1", 500_000, &["--wait", "1h"], "echo x >> calls").each());
    assert_eq!(project.read("calls"), "x\n");
}

#[test]
fn an_approval_given_while_the_call_waits_lets_it_run() {
    let project = Project::new();
    let line = refund("txn_1", 500_000, &["--wait", "1h"], "echo x >> calls");
    let mut child = project.command(&line.each()).stderr(Stdio::piped()).spawn().expect("a run");
    let mut said = String::new();
    BufReader::new(child.stderr.take().expect("stderr")).read_line(&mut said).expect("a line");
    let id = said.trim().rsplit(' ').next().expect("the command to type");
    project.ok(&["approve", id]);
    assert!(child.wait().expect("its end").success());
    assert_eq!(project.read("calls"), "x\n");
}

#[test]
fn ua_053_with_a_gate_that_is_broken_nothing_runs() {
    type Break = fn(&Project);
    let breaks: [(&str, Break); 5] = [
        ("store_foreign", |p| fs::write(p.database(), "garbage".repeat(1000)).expect("written")),
        ("state_not_private", |p| chmod(&p.state(), 0o755)),
        ("policy_invalid", |p| fs::write(p.path("onceseal.yaml"), "\u{1}garbage: [").expect("written")),
        ("config_missing", |p| fs::remove_file(p.path("onceseal.yaml")).expect("removed")),
        ("project_unreadable", |p| fs::write(p.path(".onceseal/project.json"), "{}").expect("written")),
    ];
    for (code, break_it) in breaks {
        let project = Project::new();
        project.refund("txn_0", 1, &[]);
        break_it(&project);
        let ran = project.refund("txn_1", 1, &["--json"]);
        assert_eq!((ran.code, ran.error()["code"].as_str()), (2, Some(code)), "{ran:?}");
        assert_eq!(project.read("calls"), "x\n", "{code}: the command ran");
    }
}

fn chmod(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

#[test]
fn arguments_are_text_or_json_as_the_policy_accepts_it() {
    let project = Project::with_policy(
        "actions:\n  whole: { decision: allow }\n  part: { decision: allow, floats: allow }\n",
    );
    let seen = |args: &[&str]| {
        let line: Vec<_> = args.iter().copied().chain(["--json", "--", "true"]).collect();
        let done = project.run(&line);
        if done.code != 0 {
            return (done.code, done.error()["message"].as_str().expect("a message").to_owned());
        }
        let action = done.document()["action"].as_str().expect("an id").to_owned();
        (0, project.json(&["actions", "show", &action])["arguments"].to_string())
    };
    let ok = |text: &str| (0, text.to_owned());
    assert_eq!(seen(&["exec", "whole", "--arg", "a=1", "--arg", "b:=1"]), ok(r#"{"a":"1","b":1}"#));
    assert_eq!(
        seen(&["exec", "whole", "--arg", r#"a:={"x":[null,true]}"#]),
        ok(r#"{"a":{"x":[null,true]}}"#)
    );
    assert_eq!(seen(&["exec", "part", "--arg", "a:=1.50"]), ok(r#"{"a":1.5}"#));
    for wrong in ["1.0", "1e3", "01", "{\"a\":1,\"a\":2}", "9007199254740992", "\"\\ud800\"", "1 2", "NaN"] {
        let (code, message) = seen(&["exec", "whole", "--arg", &format!("a:={wrong}")]);
        assert_eq!(code, 2, "{wrong}: {message}");
        assert!(message.starts_with("argument a: "), "{message}");
    }
    for (wrong, says) in [
        (&["--arg", "nothing"][..], "--arg is written NAME=TEXT or NAME:=JSON"),
        (&["--arg", "=x"], "--arg is written NAME=TEXT or NAME:=JSON"),
        (&["--arg", "a=1", "--arg", "a:=1"], "the argument a is given twice"),
        (&["--arg-file", "a=/nonexistent"], "the file of the argument a cannot be read: entity not found"),
    ] {
        let line: Vec<_> = ["exec", "whole"].iter().chain(wrong).copied().collect();
        assert_eq!(seen(&line), (2, says.to_owned()));
    }
}

#[test]
fn an_argument_can_come_from_a_file_or_from_stdin_without_or_with_its_last_line_end() {
    let project = Project::with_policy("actions:\n  send: { decision: allow }\n");
    fs::write(project.path("body"), "two\nlines\n").expect("written");
    fs::write(project.path("dos"), "two\r\nlines\r\n\r\n").expect("written");
    let files = ["--arg-file", "body=body", "--arg-file-raw", "raw=body", "--arg-file", "dos=dos"];
    let args = ["exec", "send", "--arg-file", "n:=-", "--json"];
    let args: Vec<_> = args.iter().chain(&files).chain(&["--", "true"]).copied().collect();
    let mut child = project
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), b" [1, 2]\n").expect("written");
    let done = ran(child.wait_with_output().expect("its end"));
    assert_eq!(done.code, 0, "{done:?}");
    let action = done.document()["action"].as_str().expect("an id").to_owned();
    let arguments = project.json(&["actions", "show", &action])["arguments"].clone();
    let expected =
        json!({"body": "two\nlines", "dos": "two\r\nlines\r\n", "n": [1, 2], "raw": "two\nlines\n"});
    assert_eq!(arguments, expected);
    let json = project.run(&["exec", "send", "--arg-file-raw", "n:=body", "--", "true"]);
    assert!(json.code == 2 && json.stderr.contains("--arg-file-raw is written NAME=FILE"), "{json:?}");
}

#[test]
fn a_value_in_a_file_and_on_the_command_line_are_one_effect() {
    let project = Project::new();
    fs::write(project.path("payment"), "txn_1\n").expect("written");
    let line =
        ["exec", "stripe.refund", "--arg-file", "payment_id=payment", "--arg", "amount:=1", "--", "true"];
    project.ok(&line);
    let again = project.refund("txn_1", 1, &["--json"]);
    assert_eq!((again.code, &again.error()["code"]), (1, &json!("duplicate")));
}

#[test]
fn agent_and_environment_come_from_flags_then_variables_then_defaults() {
    let project = Project::new();
    let who = |more: &[&str], variables: &[(&str, &str)]| {
        let line: Vec<_> =
            ["exec", "customer.read"].iter().chain(more).chain(&["--json", "--", "true"]).copied().collect();
        let done = ran(project.command(&line).envs(variables.iter().copied()).output().expect("a run"));
        assert_eq!(done.code, 0, "{done:?}");
        let id = done.document()["action"].as_str().expect("an id").to_owned();
        let action = project.json(&["actions", "show", &id]);
        (
            action["agent"].as_str().expect("one").to_owned(),
            action["environment"].as_str().expect("one").to_owned(),
        )
    };
    let set = [("ONCESEAL_AGENT", "nightly"), ("ONCESEAL_ENVIRONMENT", "staging")];
    let (agent, environment) = who(&[], &[]);
    assert!(agent.starts_with("cli:"), "{agent}");
    assert_eq!(environment, "production");
    assert_eq!(who(&[], &set), ("nightly".into(), "staging".into()));
    assert_eq!(who(&["--agent", "me", "--env", "test"], &set), ("me".into(), "test".into()));
    // Set but empty is nobody, not the default.
    let empty = project.command(&["exec", "customer.read", "--", "true"]).env("ONCESEAL_AGENT", "").output();
    assert_eq!(ran(empty.expect("a run")).code, 2);
}

#[test]
fn a_lease_or_deadline_can_be_shortened_and_not_lengthened() {
    let project = Project::with_policy("actions:\n  work: { lease: 30s, decision: allow }\n");
    let run = |more: &[&str]| {
        let line: Vec<_> = ["exec", "work"].iter().chain(more).chain(&["--", "true"]).copied().collect();
        project.run(&line)
    };
    assert_eq!(run(&["--lease", "5s", "--deadline", "1m"]).code, 0);
    assert_eq!(run(&["--lease", "soon"]).code, 2);
    for (wrong, says) in [
        (["--lease", "31s"], "--lease is 31s, and the policy permits 30s at most"),
        (["--lease", "999ms"], "--lease is 999ms, and a lease is 1s at least"),
        (["--deadline", "11m"], "--deadline is 11m, and the policy permits 10m at most"),
        (["--deadline", "0s"], "--deadline is 0s, and no command ends before it begins"),
    ] {
        let ran = run(&wrong);
        assert_eq!(ran.code, 2, "{wrong:?}");
        assert!(ran.stderr.contains("error[out_of_bounds]") && ran.stderr.contains(says), "{ran:?}");
    }
}
