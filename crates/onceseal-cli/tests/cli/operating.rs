//! Looking after operations and the workers that carry them out.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::base::{Project, ran};
use crate::operations::{POLICY, dispatch, scripted, state};

/// A worker whose errors are read line by line.
pub(crate) struct Working {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Working {
    pub(crate) fn start(project: &Project, args: &[&str]) -> Working {
        let args = [&["worker"], args].concat();
        let mut child = project.command(&args).stderr(Stdio::piped()).spawn().expect("a worker");
        let stderr = BufReader::new(child.stderr.take().expect("its errors"));
        Working { child, stderr }
    }

    /// The next line that it says which contains this.
    pub(crate) fn says(&mut self, what: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).expect("a line");
            assert!(read > 0, "it ended without saying {what}");
            if line.contains(what) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Whether it has not yet let go of what its program reads, which has begun.
    fn has_the_input(&self) -> bool {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let mut open =
            open.into_iter().flatten().flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
        open.any(|file| file.extension().is_some_and(|kind| kind == "input"))
    }

    pub(crate) fn told(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("told");
    }

    pub(crate) fn ends(mut self) -> i32 {
        self.child.wait().expect("it ends").code().expect("no signal ended it")
    }
}

fn fifos(project: &Project, names: &[&str]) {
    let paths = names.iter().map(|name| project.path(name));
    let made = std::process::Command::new("mkfifo").args(paths).status();
    assert!(made.expect("mkfifo").success());
}

/// A tool that a script of this name carries out.
fn tool(name: &str, script: &str) -> String {
    format!("  {name}:\n    command:\n      run: [sh, ./{script}.sh, --, \"{{payment}}\"]\n")
}

pub(crate) fn reference(dispatched: &Value) -> String {
    dispatched["operation"]["status_ref"].as_str().expect("a reference").to_owned()
}

#[test]
fn what_was_accepted_under_a_contract_that_was_edited_is_carried_out_under_it() {
    let project = Project::new();
    for script in ["one", "two"] {
        let text = format!("echo \"{script} $2 $SECRET\" >> calls\n");
        std::fs::write(project.path(&format!("{script}.sh")), text).expect("a script");
    }
    project.set_policy(&format!("{POLICY}tools:\n{}", tool("refund", "one")));
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    project.set_policy(&format!("{POLICY}tools:\n{}", tool("refund", "two")));
    project.ok(&dispatch("payment=p2", "amount:=1", "k2"));
    // Programs run beside the file, wherever the worker is.
    let config = project.path("onceseal.yaml");
    let worker = ["worker", "--until-dry", "--config", config.to_str().expect("UTF-8")];
    std::fs::create_dir(project.path("below")).expect("a directory");
    let mut command = project.command(&worker);
    let worked = ran(command.current_dir(project.path("below")).env("SECRET", "s3").output().expect("a run"));
    assert_eq!(worked.code, 0, "{worked:?}");
    let mut calls: Vec<String> = project.read("calls").lines().map(str::to_owned).collect();
    calls.sort();
    assert_eq!(calls, ["one p1 s3", "two p2 s3"]);
    assert!(!worked.stderr.contains("under contracts"), "{worked:?}");
}

#[test]
fn a_tool_that_is_no_longer_declared_is_not_carried_out_and_is_told_of() {
    let project = scripted("echo x >> calls\n", "recovery: never");
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    project.set_policy(&format!("{POLICY}tools:\n{}", tool("other", "refund")));
    let worked = project.ok(&["worker", "--until-dry"]);
    assert!(worked.stderr.contains("1 operations wait under contracts"), "{worked:?}");
    assert_eq!((project.read("calls"), project.items(&["operations", "list"]).len()), (String::new(), 1));
}

#[test]
fn a_worker_reads_the_configuration_anew_when_it_is_told_to_and_keeps_the_old_for_a_wrong_one() {
    let project = scripted("echo \"$2\" >> calls\n", "recovery: never");
    std::fs::write(project.path("other.sh"), "echo \"other $2\" >> calls\n").expect("a script");
    let mut worker = Working::start(&project, &[]);
    worker.says("carrying out: refund");
    let good = project.read("onceseal.yaml");
    std::fs::write(project.path("onceseal.yaml"), "schema: [").expect("written");
    worker.told(Signal::HUP);
    worker.says("policy_invalid");
    worker.says("the configuration that was read before stays");
    std::fs::write(project.path("onceseal.yaml"), &good).expect("written");
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    worker.says("refund committed");
    std::fs::write(project.path("onceseal.yaml"), format!("{good}{}", tool("stripe", "other")))
        .expect("written");
    worker.told(Signal::HUP);
    worker.says("carrying out: refund, stripe");
    worker.told(Signal::TERM);
    assert_eq!(worker.ends(), 0);
    assert_eq!(project.read("calls"), "p1\n");
}

#[test]
fn a_worker_that_is_told_to_stop_twice_waits_no_more() {
    let project = scripted("echo begun > begun\nread _ < go\n", "recovery: never");
    fifos(&project, &["begun", "go"]);
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    let mut worker = Working::start(&project, &["--drain", "1h"]);
    worker.says("carrying out");
    // Blocks until the script has begun.
    std::fs::read_to_string(project.path("begun")).expect("it begins");
    worker.told(Signal::TERM);
    // Whichever comes first counts as the first: two signals of one kind may be one.
    worker.told(Signal::INT);
    worker.says("1 were still under way");
    assert_eq!(worker.ends(), 1);
}

#[test]
fn a_worker_says_what_became_of_each_operation_and_no_argument_of_it() {
    for json in [false, true] {
        let project = scripted("test \"$2\" = hunter1 || exit 75\n", "recovery: never");
        for (payment, key) in [("payment=hunter1", "k1"), ("payment=hunter2", "k2")] {
            project.ok(&dispatch(payment, "amount:=1", key));
        }
        let line = ["worker", "--until-dry", "--at-once", "1"];
        let worked = match json {
            true => project.ok(&[&line[..], &["--json"]].concat()),
            false => project.ok(&line),
        };
        assert!(!worked.stderr.contains("hunter"), "{worked:?}");
        let said: Vec<(String, String)> = match json {
            true => worked
                .stderr
                .lines()
                .map(|line| {
                    let line: Value = serde_json::from_str(line).expect("JSON");
                    let member = |name: &str| line["operation"][name].as_str().unwrap_or("-").to_owned();
                    assert!(member("status_ref").starts_with("status_") && member("tool") == "refund");
                    (member("state"), member("code"))
                })
                .collect(),
            false => worked
                .stderr
                .lines()
                .map(|line| {
                    let (reference, rest) = line.split_once(" refund ").expect("a tool");
                    assert!(reference.starts_with("status_"));
                    let (state, code) = rest.split_once(": ").unwrap_or((rest, "-"));
                    (state.to_owned(), code.to_owned())
                })
                .collect(),
        };
        let pair = |state: &str, code: &str| (state.to_owned(), code.to_owned());
        let why = if json { "not_executed" } else { "not_executed (exit_75)" };
        assert_eq!(said, [pair("committed", "-"), pair("parked", why)]);
    }
}

#[test]
fn an_operation_is_found_by_its_key_with_its_result_and_what_was_said_of_it() {
    let project = scripted("test -e funds || exit 75\n", "recovery: never");
    project.ok(&dispatch("payment=p1", "amount:=1", "k 1"));
    let by_key = ["operations", "show", "--tool", "refund", "--idempotency-key", "k 1"];
    assert_eq!(project.json(&by_key)["said"], Value::Null);
    project.ok(&["worker", "--until-dry"]);
    std::fs::write(project.path("funds"), "").expect("funds");
    let found = reference(&project.json(&by_key));
    project.ok(&["operations", "retry", &found, "--reason", "funds are there"]);
    project.ok(&["worker", "--until-dry"]);
    let shown = project.json(&by_key);
    assert_eq!(shown["state"], "committed");
    assert_eq!(shown["value"]["exit"], 0, "{shown}");
    assert_eq!(
        (&shown["said"]["said"], &shown["said"]["reason"]),
        (&"retry".into(), &"funds are there".into())
    );
    assert!(shown["said"]["person"].as_str().expect("a person").starts_with("os:"));
    let text = project.ok(&by_key).stdout;
    assert!(text.contains("\"funds are there\"") && text.contains("{\"exit\":0}"), "{text}");
    // Another subject may use the same key: then both are named.
    let other = dispatch("payment=p2", "amount:=1", "k 1");
    project.ok(&[&other[..], &["--user", "ann"]].concat());
    let several = project.run(&[&by_key[..], &["--json"]].concat());
    assert_eq!((several.code, several.error()["next"].as_array().map(Vec::len)), (2, Some(2)));
    let unknown = ["operations", "show", "--tool", "refund", "--idempotency-key", "k2", "--json"];
    assert_eq!(project.refused(&unknown).error()["code"], "operation_unknown");
}

#[test]
fn a_dispatch_waits_for_whoever_carries_it_out() {
    let project = scripted("test \"$2\" = p1 || exit 75\n", "recovery: never");
    let waited =
        project.refused(&[&dispatch("payment=p0", "amount:=1", "k0")[..], &["--wait", "10ms"]].concat());
    assert!(waited.stdout.contains("queued") && waited.stderr.contains("in vain"), "{waited:?}");
    let mut worker = Working::start(&project, &[]);
    worker.says("carrying out");
    let done = project.json(&[&dispatch("payment=p1", "amount:=1", "k1")[..], &["--wait"]].concat());
    assert_eq!((&done["state"], &done["value"]["exit"]), (&"committed".into(), &0.into()), "{done}");
    let parked =
        project.refused(&[&dispatch("payment=p2", "amount:=1", "k2")[..], &["--wait", "1h"]].concat());
    assert!(parked.stdout.contains(" parked\n"), "{parked:?}");
    worker.told(Signal::TERM);
    assert_eq!(worker.ends(), 0);
}

#[test]
fn doctor_says_what_is_parked_and_what_nobody_takes() {
    let project = scripted("exit 75\n", "recovery: never");
    let check = |name: &str| {
        let document = project.json(&["doctor"]);
        let checks = document["checks"].as_array().expect("checks").clone();
        checks.into_iter().find(|check| check["name"] == name).expect("the check")
    };
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    assert_eq!((&check("parked")["status"], &check("overdue")["status"]), (&"ok".into(), &"ok".into()));
    project.ok(&["worker", "--until-dry"]);
    assert_eq!(check("parked")["status"], "warn");
    assert_eq!(check("parked")["next"], "onceseal operations list --state parked");
}

#[test]
fn ua_088_doctor_says_that_what_is_due_is_not_taken() {
    let project = scripted("true\n", "recovery: never");
    let control = project.embedded(5);
    let engine = control.engine().clone();
    let config = onceseal::config::Config::load(&project.path("onceseal.yaml")).expect("a configuration");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let tools = config.tools.iter().map(|tool| tool.tool().expect("a tool"));
        let operations = onceseal::operations::Operations::of(&engine, tools).await.expect("declared");
        let dispatch = operations.dispatch("refund").arg("payment", "p1").arg("amount", 1);
        dispatch.by(onceseal::Principal::agent("bot")).key("k1").send().await.expect("accepted");
    });
    drop((control, engine));
    let document = project.json(&["doctor"]);
    let checks = document["checks"].as_array().expect("checks");
    let overdue = checks.iter().find(|check| check["name"] == "overdue").expect("the check");
    assert_eq!(
        (&overdue["status"], &overdue["next"]),
        (&"warn".into(), &"onceseal operations list --state queued".into())
    );
    assert!(overdue["detail"].as_str().expect("a detail").contains("the oldest for 5m"), "{overdue}");
}

#[test]
fn an_effect_that_an_operation_waits_for_is_told_as_that() {
    let project = scripted("exit 75\n", "recovery: never");
    let found = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k1")));
    let exec = ["exec", "refund", "--arg", "payment=p1", "--arg", "amount:=1", "--json", "--", "true"];
    for why in ["is queued", "it is parked: not_executed"] {
        let error = project.refused(&exec).error();
        assert_eq!((&error["code"], &error["operation"]), (&"in_progress".into(), &found.as_str().into()));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("an operation waits") && !message.contains("attempt"), "{message}");
        assert!(error["why"].as_str().expect("why").contains(why), "{error}");
        assert_eq!(error["next"][0], format!("onceseal operations show {found}"));
        project.ok(&["worker", "--until-dry"]);
    }
    assert_eq!(state(&project, &found), "parked");
}

#[test]
fn what_would_carry_an_action_out_is_shown_with_what_is_approved() {
    let project = scripted("true\n", "recovery: never");
    let asked =
        project.refused(&[&dispatch("payment=p1", "amount:=5000", "k1")[..], &["--json"]].concat()).error();
    let approval = asked["approval"].as_str().expect("a request");
    let shown = project.json(&["approvals", "show", approval]);
    let digest = shown["contract"]["digest"].as_str().expect("a digest");
    assert_eq!(shown["contract"]["document"]["command"]["run"][1], "./refund.sh");
    let text = project.ok(&["approve", approval]).stdout;
    assert!(text.contains(digest) && text.contains("\"run\":[\"sh\",\"./refund.sh\""), "{text}");
    let queued = project.json(&dispatch("payment=p1", "amount:=5000", "k1"));
    assert_eq!(queued["operation"]["contract"], digest);
    let plain = project.refused(&[
        "exec",
        "refund",
        "--arg",
        "payment=p2",
        "--arg",
        "amount:=5000",
        "--json",
        "--",
        "true",
    ]);
    let shown = project.json(&["approvals", "show", plain.error()["approval"].as_str().expect("a request")]);
    assert_eq!(shown["contract"], Value::Null, "no worker carries it out");
}

/// Waits at a FIFO the first time it is run, and says so; later it does not wait.
const WAITS_ONCE: &str = "echo \"$ONCESEAL_PROVIDER_KEY\" >> keys\n\
    if mkdir first 2>/dev/null; then echo begun > begun; read _ < go; fi\n";

/// A project whose tool waits once, with an operation of it that has begun.
pub(crate) fn begun(recovery: &str) -> (Project, String, Working) {
    let project = scripted(WAITS_ONCE, &format!("{recovery}\n    lease: 2s\n    request_timeout: 1s"));
    fifos(&project, &["begun", "go"]);
    let reference = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k1")));
    let worker = Working::start(&project, &[]);
    std::fs::read_to_string(project.path("begun")).expect("it begins");
    while worker.has_the_input() {
        std::thread::yield_now();
    }
    (project, reference, worker)
}

#[test]
fn p04_a_worker_that_was_paused_and_wakes_after_it_was_taken_over_changes_nothing() {
    let (project, reference, mut paused) = begun("recovery: same_key\n    key_ttl: 1h");
    paused.told(Signal::STOP);
    // Its program ends, and it does not hear of that yet.
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
    let mut next = Working::start(&project, &[]);
    next.says("committed");
    let before = project.json(&["effects", "show", "refund:p1"]);
    paused.told(Signal::CONT);
    paused.told(Signal::TERM);
    paused.child.wait().expect("it ends");
    let after = project.json(&["effects", "show", "refund:p1"]);
    for member in ["state", "attempt", "answered_by"] {
        assert_eq!(before[member], after[member], "{member}");
    }
    assert_eq!((after["attempt"].as_u64(), state(&project, &reference)), (Some(2), "committed".to_owned()));
    let events = project.ok(&["events", "--json"]).stdout;
    assert_eq!(events.matches("effect.late").count(), 1, "its word came late, and is kept");
    let keys = project.read("keys");
    let keys: Vec<&str> = keys.lines().collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    next.told(Signal::TERM);
    next.child.wait().expect("it ends");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn p03_a_call_that_takes_longer_than_its_lease_is_not_taken_over() {
    let (project, reference, mut worker) = begun("recovery: same_key\n    key_ttl: 1h");
    let mut other = Working::start(&project, &[]);
    // A third of the lease passes between two of these, so several leases in all.
    let mut leases = BTreeSet::new();
    while leases.len() < 10 {
        assert!(worker.child.try_wait().expect("it runs").is_none());
        let effect = project.json(&["effects", "show", "refund:p1"]);
        leases.insert(effect["lease_until"].as_str().expect("a lease").to_owned());
    }
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
    worker.says("committed");
    for working in [&mut worker, &mut other] {
        working.told(Signal::TERM);
        working.child.wait().expect("it ends");
    }
    assert_eq!(
        (state(&project, &reference), project.read("keys").lines().count()),
        ("committed".to_owned(), 1)
    );
}
