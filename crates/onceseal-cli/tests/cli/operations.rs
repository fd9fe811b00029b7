//! Operations: dispatched by one program, carried out by another.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use onceseal_example_refunds::{Faults, Options, Service};

use crate::base::Project;

pub(crate) const POLICY: &str = "actions:
  refund:
    effect: \"refund:{payment}\"
    rules:
      - when: { amount_lte: 1000 }
        decision: allow
      - decision: approve
";

/// A project in which a shell script carries refunds out.
pub(crate) fn scripted(script: &str, contract: &str) -> Project {
    let project = Project::new();
    project.set_policy(&format!(
        "{POLICY}
tools:
  refund:
    {contract}
    command:
      run: [sh, ./refund.sh, --, \"{{payment}}\", \"{{amount}}\"]
      not_executed_on: [75]
"
    ));
    std::fs::write(project.path("refund.sh"), script).expect("a script");
    project
}

pub(crate) fn dispatch<'a>(payment: &'a str, amount: &'a str, key: &'a str) -> Vec<&'a str> {
    vec!["operations", "dispatch", "refund", "--arg", payment, "--arg", amount, "--idempotency-key", key]
}

pub(crate) fn state(project: &Project, reference: &str) -> String {
    let shown = project.json(&["operations", "show", reference]);
    shown["state"].as_str().expect("a state").to_owned()
}

#[test]
fn an_operation_is_dispatched_once_and_carried_out_by_a_worker() {
    let project = scripted("echo \"$2 $3 $ONCESEAL_PROVIDER_KEY\" >> calls\n", "recovery: never");
    let first = project.json(&dispatch("payment=p1", "amount:=500", "k1"));
    let reference = first["operation"]["status_ref"].as_str().expect("a reference").to_owned();
    assert_eq!((first["state"].as_str(), first["repeated"].as_bool()), (Some("queued"), Some(false)));
    let again = project.json(&dispatch("payment=p1", "amount:=500", "k1"));
    assert_eq!(
        (again["operation"]["status_ref"].as_str(), again["repeated"].as_bool()),
        (Some(&*reference), Some(true))
    );
    assert_eq!(project.read("calls"), "", "nothing is done by dispatching");
    assert_eq!(project.items(&["operations", "list", "--state", "queued"]).len(), 1);
    project.ok(&["worker", "--until-dry"]);
    project.ok(&["worker", "--until-dry"]);
    let calls = project.read("calls");
    assert!(calls.starts_with("p1 500 osl_") && calls.lines().count() == 1, "{calls}");
    assert_eq!(state(&project, &reference), "committed");
    let other = [&dispatch("payment=p1", "amount:=501", "k1")[..], &["--json"]].concat();
    assert_eq!(project.refused(&other).error()["code"], "idempotency_conflict");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn actions_that_are_no_operations_do_not_hide_those_that_are() {
    let project = scripted("true\n", "recovery: never");
    for payment in ["payment=a", "payment=b", "payment=c"] {
        project.ok(&["exec", "refund", "--arg", payment, "--arg", "amount:=1", "--", "true"]);
    }
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    assert_eq!(project.items(&["operations", "list", "--limit", "1"]).len(), 1);
}

#[test]
fn what_a_person_must_approve_goes_on_with_the_same_dispatch() {
    let project = scripted("echo x >> calls\n", "recovery: never");
    let line = dispatch("payment=p1", "amount:=5000", "k1");
    let asked = project.refused(&[&line[..], &["--json"]].concat()).error();
    assert_eq!(asked["code"], "approval_needed");
    project.ok(&["approve", asked["approval"].as_str().expect("a request")]);
    assert_eq!(project.json(&line)["state"], "queued");
    project.ok(&["worker", "--until-dry"]);
    assert_eq!(project.read("calls"), "x\n");
}

#[test]
fn a_definite_no_is_parked_listed_retried_and_cancelled() {
    let project = scripted("test -e funds || exit 75\necho x >> calls\n", "recovery: never");
    for (payment, key) in [("payment=p1", "k1"), ("payment=p2", "k2")] {
        project.ok(&dispatch(payment, "amount:=1", key));
    }
    project.ok(&["worker", "--until-dry"]);
    let parked = project.items(&["operations", "list", "--state", "parked"]);
    assert_eq!(parked.len(), 2);
    assert!(parked.iter().all(|operation| operation["code"] == "not_executed"), "{parked:?}");
    let reference =
        |at: usize| parked[at]["operation"]["status_ref"].as_str().expect("a reference").to_owned();
    project.ok(&["operations", "cancel", &reference(0), "--reason", "not wanted"]);
    std::fs::write(project.path("funds"), "").expect("funds");
    project.ok(&["operations", "retry", "--all", "--reason", "funds are there"]);
    project.ok(&["worker", "--until-dry"]);
    assert_eq!(
        (state(&project, &reference(0)), state(&project, &reference(1))),
        ("cancelled".into(), "committed".into())
    );
    assert_eq!(project.read("calls"), "x\n");
    let again = project.refused(&["operations", "retry", &reference(1), "--reason", "x", "--json"]).error();
    assert_eq!(again["code"], "invalid_transition");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn tools_that_cannot_be_are_refused_with_the_reason() {
    let project = Project::new();
    for (tool, reason) in [
        ("refund: { command: { run: [sh, \"{a}\"] } }", "a placeholder stands after `--`"),
        ("refund: { command: { run: [sh, --, \"x{a}\"] } }", "a placeholder is a whole argument"),
        ("refund: { command: { run: [] } }", "run names a program"),
        ("refund: { command: { run: [\"{a}\"] } }", "which no placeholder stands for"),
        (
            "refund: { command: { run: [sh], not_executed_on: [75], retry_on: [75] } }",
            "75 is in not_executed_on",
        ),
        (
            "refund: { recovery: ask, settle: 1m, http: { url: \"https://x/y\", status: { url: \"https://x/y\", absent_on: [204] } } }",
            "absent_on is a list of numbers from 300 to 599",
        ),
        ("refund: { recovery: sometimes, command: { run: [sh] } }", "must be never, same_key or ask"),
        ("refund: { recovery: same_key, command: { run: [sh] } }", "key_ttl"),
        ("refund: { lease: 10s, command: { run: [sh] } }", "must be shorter than the lease"),
        ("refund: { colour: red, command: { run: [sh] } }", "`colour` is not known"),
        ("refund: { input: { type: nonsense }, command: { run: [sh] } }", "input: "),
        ("refund: { input: { $ref: \"http://x/y\" }, command: { run: [sh] } }", "input: "),
        ("refund: { business_rule: x, command: { run: [sh] } }", "`business_rule` is not known"),
        ("refund: { recovery: ask, settle: 1m, command: { run: [sh] } }", "a command needs command.status"),
        ("refund: { recovery: ask, settle: 1m, http: { url: \"https://x/y\" } }", "needs http.status"),
        (
            "refund: { recovery: same_key, key_ttl: 7s, lease: 2s, request_timeout: 1s, command: { run: [sh] } }",
            "key_ttl: a command needs",
        ),
        ("refund: { key_ttl: 1h, command: { run: [sh] } }", "key_ttl: belongs to another recovery"),
        (
            "refund: { revisions: { inptu: v2 }, command: { run: [sh] } }",
            "has input, output, effect, handler, producer and policy",
        ),
        ("refund: { http: { method: 'A B', url: \"https://x/y\" } }", "http: "),
        ("refund: { http: { url: \"https://x:99999/y\" } }", "http: "),
        ("refund: { command: { run: [sh, --, \"{secret:KEY}\"] } }", "everybody sees"),
        ("refund: {}", "one of command and http is needed"),
        ("refund: { destination: [], command: { run: [sh] } }", "destination: must be one line"),
        ("refund: { http: { url: \"https://{host}/x\" } }", "a host without placeholders"),
        ("refund: { http: { url: \"http://127.0.0.1:1/y\" } }", "127.0.0.1 is this machine or on its link"),
        ("refund: { http: { url: \"http://LocalHost/y\" } }", "LocalHost is this machine"),
        ("refund: { http: { url: \"http://[::ffff:7f00:1]/y\" } }", "is this machine or on its link"),
        (
            "refund: { http: { url: \"https://x/y\", status: { url: \"http://169.254.169.254/y\" } } }",
            "169.254.169.254 is this machine or on its link",
        ),
        ("refund: { http: { url: \"http://[::1]/y\", allow: [127.0.0.1] } }", "::1 is this machine"),
        ("refund: { http: { url: \"https://x/y\", allow: [\"x:443\"] } }", "`x:443` is the host of no url"),
        ("refund: { http: { url: \"https://x/y\", allow: x } }", "allow is a list of hosts"),
        ("refund: { http: { url: \"ftp://x/y\" } }", "begins with https:// or http://"),
        ("refund: { http: { url: \"https://x/{a\" } }", "a { without its }"),
    ] {
        project.set_policy(&format!("{POLICY}tools: {{ {tool} }}\n"));
        let ran = project.run(&["worker", "--until-dry", "--json"]);
        let error = ran.error();
        assert_eq!((ran.code, error["code"].as_str()), (2, Some("tool_invalid")), "{tool}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(reason), "{tool}: {message}");
        assert!(message.starts_with("line 9, column "), "{tool}: {message}");
        assert!(error["next"][0].as_str().expect("a next step").contains("policy check"), "{tool}");
    }
    project.set_policy(POLICY);
    assert_eq!(project.run(&["worker", "--until-dry", "--json"]).error()["code"], "usage");
}

#[test]
fn arguments_are_held_against_the_tools_schema_and_no_value_is_told() {
    let schema = "input:
      type: object
      required: [payment, amount]
      additionalProperties: false
      properties:
        payment: { type: string, pattern: \"^p[0-9]+$\" }
        amount: { type: integer, minimum: 1 }";
    let project = scripted("echo x >> calls\n", schema);
    for (payment, amount) in
        [("payment=hunter2", "amount:=1"), ("payment=p1", "amount:=0"), ("payment=p1", "other:=1")]
    {
        let line = dispatch(payment, amount, "k1");
        let ran = project.run(&[&line[..], &["--json"]].concat());
        assert_eq!((ran.code, ran.error()["code"].as_str()), (2, Some("invalid_argument")), "{ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    assert_eq!(project.items(&["actions", "list"]).len(), 0);
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    project.ok(&["worker", "--until-dry"]);
    assert_eq!(project.read("calls"), "x\n");
}

#[test]
fn a_result_that_is_not_such_as_the_tool_returns_is_withheld_and_the_effect_stays_committed() {
    let schema = "output: { type: object, required: [receipt] }";
    let project = scripted("echo x >> calls\n", schema);
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    project.ok(&["worker", "--until-dry"]);
    let committed = project.items(&["operations", "list", "--state", "committed"]);
    let receipt = project.json(&["receipts", "show", committed[0]["receipt"].as_str().expect("a receipt")]);
    assert_eq!(receipt["value"]["unstorable"], "output_contract_violation");
}

/// A line that the program prints.
fn line(child: &mut Child) -> String {
    let mut text = String::new();
    let stderr = child.stderr.as_mut().expect("its errors");
    BufReader::new(stderr).read_line(&mut text).expect("a line");
    text
}

#[test]
fn ua_083_a_worker_that_is_told_to_stop_claims_nothing_more_and_waits_for_what_is_under_way() {
    let project = scripted("echo begun > begun\nread _ < go\necho x >> calls\n", "recovery: never");
    let made =
        std::process::Command::new("mkfifo").args([project.path("begun"), project.path("go")]).status();
    assert!(made.expect("mkfifo").success());
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    let mut worker =
        project.command(&["worker", "--at-once", "1"]).stderr(Stdio::piped()).spawn().expect("a worker");
    assert!(line(&mut worker).starts_with("carrying out: refund"));
    // Blocks until the script has begun.
    std::fs::read_to_string(project.path("begun")).expect("it begins");
    project.ok(&dispatch("payment=p2", "amount:=1", "k2"));
    let pid = rustix::process::Pid::from_child(&worker);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
    assert!(worker.wait().expect("it ends").success());
    assert_eq!(project.read("calls"), "x\n");
    let queued = project.items(&["operations", "list", "--state", "queued"]);
    assert_eq!(queued.len(), 1, "the other one waits for the next worker");
    assert_eq!(queued[0]["operation"]["idempotency_key"], "k2");
}

#[test]
fn a_worker_that_says_that_it_works_can_be_told_to_stop() {
    let project = scripted("true\n", "recovery: never");
    // What is due is looked for before anything is waited for.
    for n in 0..20 {
        project.ok(&dispatch(&format!("payment=p{n}"), "amount:=1", &format!("k{n}")));
    }
    for _ in 0..10 {
        let mut worker = project.command(&["worker"]).stderr(Stdio::piped()).spawn().expect("a worker");
        assert!(line(&mut worker).starts_with("carrying out: refund"));
        let pid = rustix::process::Pid::from_child(&worker);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        let status = worker.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
    assert_eq!(project.json(&["audit"])["clean"], true);
}

/// A provider of refunds, with its ledger in this project.
fn provider(project: &Project) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let options = Options {
        ledger: project.path("ledger"),
        faults: Faults::default(),
        takes: Duration::ZERO,
        tell: |_| (),
    };
    Service::start(listener, options).expect("a provider")
}

#[test]
fn ua_029_lost_answers_of_an_http_remote_are_recovered_by_its_key_or_by_asking_it() {
    for recovery in ["recovery: same_key\n    key_ttl: 1h", "recovery: ask\n    settle: 1500ms"] {
        let project = Project::new();
        let service = provider(&project);
        let address = service.address();
        project.set_policy(&format!(
            "{POLICY}
tools:
  refund:
    {recovery}
    lease: 2s
    request_timeout: 1s
    http:
      url: http://{address}/refunds
      body: {{ payment_id: \"{{payment}}\", amount: \"{{amount}}\" }}
      receipt: /id
      status: {{ url: \"http://{address}/refunds?key={{provider:key}}\" }}
      allow: [127.0.0.1]
"
        ));
        // Fewer than open a circuit.
        for n in 0..4 {
            project.ok(&dispatch(&format!("payment=lose{n}"), "amount:=1", &format!("k{n}")));
        }
        let mut worker = project.command(&["worker"]).stderr(Stdio::piped()).spawn().expect("a worker");
        line(&mut worker);
        while project.items(&["operations", "list", "--state", "committed"]).len() < 4 {
            assert!(worker.try_wait().expect("it runs").is_none());
        }
        let pid = rustix::process::Pid::from_child(&worker);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        assert!(worker.wait().expect("it ends").success());
        let paid = service.paid();
        let payments: BTreeSet<_> = paid.iter().map(|entry| entry.payment.clone()).collect();
        assert_eq!((paid.len(), payments.len(), service.counts().lost), (4, 4, 4), "{recovery}");
        let committed = project.items(&["operations", "list", "--state", "committed"]);
        let receipt = committed[0]["receipt"].as_str().expect("a receipt");
        let document = project.json(&["receipts", "show", receipt]);
        let value = document["remote"]["receipt_id"].as_str().expect("the remote's receipt");
        assert!(value.starts_with("re_"), "{value}");
        assert_eq!(project.json(&["audit"])["clean"], true);
    }
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_sent_to_and_the_operation_is_parked() {
    let project = Project::new();
    let service = provider(&project);
    // An address to whoever looks it up, and a name to whoever reads the URL.
    let url = format!("http://127.1:{}/refunds", service.address().port());
    let tool = format!("tools: {{ refund: {{ http: {{ url: \"{url}\" }} }} }}\n");
    project.set_policy(&format!("{POLICY}{tool}"));
    project.ok(&dispatch("payment=p1", "amount:=1", "k1"));
    for _ in 0..2 {
        project.ok(&["worker", "--until-dry"]);
        let listed = project.ok(&["operations", "list", "--state", "parked"]);
        assert!(listed.stdout.contains("not_executed (local_destination)"), "{listed:?}");
    }
    assert_eq!(project.json(&["effects", "show", "refund:p1"])["attempt"], 1, "it was not tried again");
    assert_eq!(service.counts().requests, 0);
}

/// What was last said of the effect.
fn effect_code(project: &Project) -> String {
    let effect = project.json(&["effects", "show", "refund:p1"]);
    effect["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn ua_011_what_a_killed_worker_was_doing_is_done_by_the_next_with_the_same_key() {
    let script = "echo \"$ONCESEAL_PROVIDER_KEY\" >> keys\nif mkdir first 2>/dev/null; then echo begun > begun; read _ < go; fi\n";
    let project =
        scripted(script, "recovery: same_key\n    key_ttl: 1h\n    lease: 2s\n    request_timeout: 1s");
    let made =
        std::process::Command::new("mkfifo").args([project.path("begun"), project.path("go")]).status();
    assert!(made.expect("mkfifo").success());
    let dispatched = project.json(&dispatch("payment=p1", "amount:=1", "k1"));
    let reference = dispatched["operation"]["status_ref"].as_str().expect("a reference").to_owned();
    let mut killed = project.command(&["worker"]).stderr(Stdio::null()).spawn().expect("a worker");
    std::fs::read_to_string(project.path("begun")).expect("it begins");
    killed.kill().expect("killed");
    killed.wait().expect("gone");
    let mut next = project.command(&["worker"]).stderr(Stdio::null()).spawn().expect("a worker");
    // The first program is still there, so no second one is started.
    while effect_code(&project) != "still_running" {
        assert!(next.try_wait().expect("it runs").is_none());
    }
    assert_eq!(project.read("keys").lines().count(), 1);
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
    while state(&project, &reference) != "committed" {
        assert!(next.try_wait().expect("it runs").is_none());
    }
    next.kill().expect("killed");
    next.wait().expect("gone");
    let keys = project.read("keys");
    let keys: Vec<&str> = keys.lines().collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn what_goes_to_a_destination_that_does_not_answer_waits_and_a_person_may_say_that_it_does() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Nobody listens there any more.
    drop(listener);
    let project = Project::new();
    let url = format!("http://{address}/refunds/{{payment}}");
    project
        .set_policy(&format!("{POLICY}\ntools:\n  refund:\n    http:\n      url: {url}\n      body: {{}}\n      allow: [127.0.0.1]\n"));
    for n in 0..6 {
        project.ok(&dispatch(&format!("payment=p{n}"), "amount:=1", &format!("k{n}")));
    }
    assert!(project.ok(&["operations", "routes"]).all().contains("no destinations that do not answer"));
    project.ok(&["worker", "--until-dry", "--at-once", "1"]);
    let queued = project.items(&["operations", "list", "--state", "queued"]);
    assert_eq!(queued.len(), 6, "nothing is parked, and nothing has failed");
    let last = &queued[5];
    assert_eq!((last["code"].as_str(), last["attempt"].as_u64()), (Some("route_open"), None));
    let shown = project.ok(&["operations", "show", last["action"].as_str().expect("an action")]).stdout;
    assert!(shown.contains("route_open: its destination did not answer"), "{shown}");
    assert!(project.ok(&["operations", "list"]).stdout.contains("route_open"));

    let destination = format!("http://{address}");
    let routes = project.items(&["operations", "routes"]);
    assert_eq!((routes.len(), routes[0]["destination"].as_str()), (1, Some(&*destination)));
    assert_eq!((routes[0]["state"].as_str(), routes[0]["times"].as_u64()), (Some("open"), Some(1)));
    let told = project.ok(&["operations", "routes"]).all();
    assert!(told.contains(&format!("close-route {destination}")), "{told}");
    assert!(project.ok(&["doctor"]).stdout.contains("1 destination not answering"));

    let close = |destination: &str, reason| {
        project.run(&["operations", "close-route", destination, "--reason", reason, "--json"])
    };
    assert_eq!(close("http://elsewhere", "seen").error()["code"], "route_unknown");
    assert_eq!(close(&destination, " ").error()["code"], "out_of_bounds");
    assert_eq!(close(&destination, "it is up").document()["changed"], true);
    assert_eq!(close(&destination, "it is up").document()["changed"], false);
    assert_eq!(project.items(&["operations", "routes"]).len(), 0);
    assert_eq!(project.json(&["audit"])["clean"], true);
}
