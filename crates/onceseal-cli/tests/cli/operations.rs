//! Operations: dispatched by one program, carried out by another.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use crate::base::Project;

const POLICY: &str = "actions:
  refund:
    effect: \"refund:{payment}\"
    rules:
      - when: { amount_lte: 1000 }
        decision: allow
      - decision: approve
";

/// A project in which a shell script carries refunds out.
fn scripted(script: &str, contract: &str) -> Project {
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

fn dispatch<'a>(payment: &'a str, amount: &'a str, key: &'a str) -> Vec<&'a str> {
    vec!["operations", "dispatch", "refund", "--arg", payment, "--arg", amount, "--idempotency-key", key]
}

fn state(project: &Project, reference: &str) -> String {
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
        ("refund: { recovery: sometimes, command: { run: [sh] } }", "must be never, same_key or ask"),
        ("refund: { recovery: same_key, command: { run: [sh] } }", "key_ttl"),
        ("refund: { lease: 10s, command: { run: [sh] } }", "request_timeout must be shorter"),
        ("refund: { colour: red, command: { run: [sh] } }", "`colour` is not known"),
        ("refund: { input: { type: nonsense }, command: { run: [sh] } }", "input: "),
        ("refund: { input: { $ref: \"http://x/y\" }, command: { run: [sh] } }", "input: "),
        ("refund: { business_rule: x, command: { run: [sh] } }", "`business_rule` is not known"),
        ("refund: { recovery: ask, settle: 1m, command: { run: [sh] } }", "a command cannot be asked"),
        ("refund: { recovery: ask, settle: 1m, http: { url: \"https://x/y\" } }", "needs http.status"),
        ("refund: { key_ttl: 1h, command: { run: [sh] } }", "key_ttl: belongs to another recovery"),
        ("refund: { revisions: { inptu: v2 }, command: { run: [sh] } }", "has input, output and effect"),
        ("refund: { http: { method: 'A B', url: \"https://x/y\" } }", "http: "),
        ("refund: { http: { url: \"https://x:99999/y\" } }", "http: "),
        ("refund: { command: { run: [sh, --, \"{secret:KEY}\"] } }", "everybody sees"),
        ("refund: {}", "one of command and http is needed"),
        ("refund: { destination: [], command: { run: [sh] } }", "destination: must be one line"),
        ("refund: { http: { url: \"https://{host}/x\" } }", "a host without placeholders"),
        ("refund: { http: { url: \"ftp://x/y\" } }", "begins with https:// or http://"),
        ("refund: { http: { url: \"https://x/{a\" } }", "a { without its }"),
    ] {
        project.set_policy(&format!("{POLICY}tools: {{ {tool} }}\n"));
        let ran = project.run(&["worker", "--until-dry", "--json"]);
        let error = ran.error();
        assert_eq!((ran.code, error["code"].as_str()), (2, Some("tool_invalid")), "{tool}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(reason), "{tool}: {message}");
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

/// What reached the remote: how often each key was performed.
type Ledger = Arc<Mutex<BTreeMap<String, u32>>>;

/// A remote that performs a key once. Each key's first answer is lost.
fn remote() -> (String, Ledger) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let ledger = Ledger::default();
    let own = ledger.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"), &own);
        }
    });
    (address, ledger)
}

fn serve(mut stream: TcpStream, ledger: &Ledger) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut key, mut length, mut request) = (String::new(), 0, String::new());
    reader.read_line(&mut request).expect("a request");
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        match header.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => key = value.to_owned(),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().expect("a length");
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let mut ledger = ledger.lock().expect("whole");
    let asks = request.starts_with("GET ");
    let (status, body) = match ledger.get_mut(&key) {
        None if asks => ("404 Not Found", "{}".to_owned()),
        None => {
            ledger.insert(key, 1);
            return;
        }
        Some(_) => ("200 OK", format!("{{\"id\":\"re_{}\"}}", &key[4..10])),
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    // Whoever asked may have gone.
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn ua_029_lost_answers_of_an_http_remote_are_recovered_by_its_key_or_by_asking_it() {
    for recovery in ["recovery: same_key\n    key_ttl: 1h", "recovery: ask\n    settle: 1s500ms"] {
        let (address, ledger) = remote();
        let project = Project::new();
        let settle = recovery.replace("1s500ms", "1500ms");
        project.set_policy(&format!(
            "{POLICY}
tools:
  refund:
    {settle}
    lease: 2s
    request_timeout: 1s
    http:
      url: http://{address}/refunds/{{payment}}
      body: {{ amount: \"{{amount}}\" }}
      receipt: /id
      status: {{ url: \"http://{address}/refunds/{{payment}}\" }}
"
        ));
        // Fewer than open a circuit.
        for n in 0..4 {
            project.ok(&dispatch(&format!("payment=p{n}"), "amount:=1", &format!("k{n}")));
        }
        let mut worker = project.command(&["worker"]).stderr(Stdio::piped()).spawn().expect("a worker");
        line(&mut worker);
        while project.items(&["operations", "list", "--state", "committed"]).len() < 4 {
            assert!(worker.try_wait().expect("it runs").is_none());
        }
        let pid = rustix::process::Pid::from_child(&worker);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        assert!(worker.wait().expect("it ends").success());
        let performed = ledger.lock().expect("whole").clone();
        assert_eq!((performed.len(), performed.values().sum::<u32>()), (4, 4), "{recovery}");
        let committed = project.items(&["operations", "list", "--state", "committed"]);
        let receipt = committed[0]["receipt"].as_str().expect("a receipt");
        let document = project.json(&["receipts", "show", receipt]);
        let value = document["value"]["receipt"].as_str().expect("the remote's receipt");
        assert!(value.starts_with("re_"), "{value}");
        assert_eq!(project.json(&["audit"])["clean"], true);
    }
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
    while state(&project, &reference) != "committed" {
        assert!(next.try_wait().expect("it runs").is_none());
    }
    next.kill().expect("killed");
    next.wait().expect("gone");
    // The first program is still there: nobody could stop it.
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
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
        .set_policy(&format!("{POLICY}\ntools:\n  refund:\n    http:\n      url: {url}\n      body: {{}}\n"));
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
