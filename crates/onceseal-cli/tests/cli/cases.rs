//! Case files: the command-line cases of the persistent tool runtime, played
//! against the same tool, whose remote is `onceseal sim`. Where Onceseal
//! departs, the reason stands beside the case.

mod behaviours;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::base::{Project, Ran};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../vectors/operations.json")).expect("vectors")
}

/// A project with the tool of the reference.
fn project() -> Project {
    let sim = |what: &str| {
        let program = env!("CARGO_BIN_EXE_onceseal");
        format!("[{program}, sim, {what}, --ledger, remote.jsonl, --id, draft_id=DRAFT]")
    };
    Project::with_policy(&format!(
        r#"
settings: {{ tenant: tenant-a }}
actions:
  create_refund_draft: {{ decision: approve, approval: {{ ttl: 60s }} }}
tools:
  create_refund_draft:
    source: refunds
    recovery: ask
    settle: 2s
    request_timeout: 1s
    deadline: 1m
    input:
      type: object
      additionalProperties: false
      required: [order_ref, reason]
      properties:
        order_ref: {{ type: string, maxLength: 64, pattern: '\S' }}
        reason: {{ enum: [damaged, duplicate, other] }}
    output:
      type: object
      additionalProperties: false
      required: [draft_id, order_ref, reason]
      properties:
        draft_id: {{ type: string, maxLength: 64, pattern: '^DRAFT-[1-9]\d*$' }}
        order_ref: {{ type: string, maxLength: 64 }}
        reason: {{ enum: [damaged, duplicate, other] }}
    output_bytes: 384
    output_depth: 1
    output_equals: {{ /order_ref: order_ref, /reason: reason }}
    command:
      run: {}
      result: /data
      receipt: /receipt_id
      request: /request_id
      status: {{ run: {}, absent_on: [44] }}
"#,
        sim("act"),
        sim("ask"),
    ))
}

/// The base case with one thing changed.
fn changed(base: &Value, change: &Value) -> Value {
    let mut case = base.clone();
    let path: Vec<&str> = change["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some((last, way)) = path.split_last() else { return case };
    let place = way.iter().fold(&mut case, |value, name| &mut value[*name]);
    match change["drop"].as_bool() {
        Some(true) => drop(place.as_object_mut().expect("an object").remove(*last)),
        _ => place[*last] = change["value"].clone(),
    }
    case
}

/// The bytes of a run's case file.
fn case_file(base: &Value, run: &Value) -> Vec<u8> {
    let whole = |size: usize| {
        let mut text = base.to_string();
        text.extend(std::iter::repeat_n(' ', size - text.len()));
        text.into_bytes()
    };
    match (run["raw"].as_str(), run["raw_hex"].as_str(), run["raw_note"].as_str()) {
        (Some(text), ..) => text.as_bytes().to_vec(),
        (_, Some("ff"), _) => vec![0xff],
        (.., Some(note)) if note.contains("65536") => whole(65_536),
        (.., Some(note)) if note.contains("65537") => whole(65_537),
        (.., Some(note)) if note.contains("4096 nested") => {
            ["[".repeat(4096), "]".repeat(4096)].concat().into_bytes()
        }
        (.., Some(note)) => panic!("no such file: {note}"),
        _ => changed(base, &run["change"]).to_string().into_bytes(),
    }
}

const IDS: &str = "workers draw their own ids (design 30)";
const TOOLS: &str = "any declared tool may be in a case; one that is not is told as unknown (design 30)";
const BOUNDS: &str = "what bounds a call holds in its case file too (design 30, dispatch order)";
const NAMES: &str = "a name has no control character (design 20)";
const PROVEN: &str = "approvals have ids of their own (design 20)";
const FOREIGN: &str = "opening or auditing never makes or changes a foreign file (design 30)";
const REFERENCES: &str = "no reference is malformed: one that is none is unknown (design 30)";
const FRAMES: &str = "frames and counts of the store are the audit's own (design 50)";

/// What is expected here instead: the exit status, and the code.
fn adapted(name: &str, at: usize) -> Option<(&'static str, i32, &'static str)> {
    Some(match (name, at) {
        ("worker id empty", 0) => (IDS, 0, "OK"),
        ("status of a malformed reference", 0) => (REFERENCES, 1, "NOT_FOUND"),
        ("fixture change: tool", 0) => (TOOLS, 1, "UNKNOWN_TOOL"),
        ("fixture change: key blank", 0) => (BOUNDS, 2, "case_invalid"),
        ("fixture change: key starts with NUL", 0) => (NAMES, 2, "case_invalid"),
        ("fixture change: call id 247: the derived approval id is too long", 0) => (PROVEN, 0, "OK"),
        ("database is not SQLite", 0) => (FOREIGN, 2, "store_foreign"),
        ("database parent missing", 0) | ("no --db", 0) => (FOREIGN, 0, "PASS"),
        ("old schema version", 1) => (FOREIGN, 2, "store_foreign"),
        ("damaged database: audit blocks, dispatch of another intent still passes", 1) => {
            (FRAMES, 1, "BLOCK")
        }
        _ => return None,
    })
}

/// What was done to the store before a run.
fn prepare(project: &Project, run: &Value) {
    match run["pre"].as_str() {
        None => {}
        Some("not_a_database") => {
            fs::write(project.database(), "not a database, but long enough to be read as one")
                .expect("written")
        }
        Some("schema_version_v1") => {
            let database = rusqlite::Connection::open(project.database()).expect("a database");
            database.execute_batch("PRAGMA application_id = 1").expect("changed");
        }
        Some("orphan_receipt") => {
            let database = rusqlite::Connection::open(project.database()).expect("a database");
            let sql = "UPDATE streams SET head = zeroblob(32) WHERE id = (SELECT max(id) FROM streams)";
            assert_eq!(database.execute(sql, []).expect(sql), 1);
        }
        Some(other) => panic!("no such change: {other}"),
    }
}

fn play(project: &Project, base: &Value, run: &Value, reference: &str) -> Ran {
    prepare(project, run);
    fs::write(project.path("case.json"), case_file(base, run)).expect("a case");
    let given: Vec<&str> =
        run["args"].as_array().expect("arguments").iter().filter_map(Value::as_str).collect();
    let mut args = vec!["operations"];
    let mut rest = given.iter().copied();
    while let Some(arg) = rest.next() {
        match arg {
            "--failure" => args.push("--fault"),
            // There is none to be given.
            "--worker-id" => drop(rest.next()),
            "@ref" => args.push(reference),
            other => args.push(other),
        }
    }
    if matches!(given.first(), Some(&"dispatch" | &"status")) {
        args.extend(["--case", "case.json"]);
    }
    args.push("--json");
    project.run(&args)
}

/// How a run differs from what is told of it, if it does.
fn differs(ran: &Ran, expect: &Value) -> Option<String> {
    if expect["exit"].as_i64() != Some(i64::from(ran.code)) {
        return Some(format!("exit {}, told {}: {}{}", ran.code, expect["exit"], ran.stdout, ran.stderr));
    }
    if expect["stdout"].is_null() {
        let error: Value = serde_json::from_str(ran.stderr.trim()).unwrap_or(Value::Null);
        return error["error"]["code"].is_null().then(|| format!("no error object: {}", ran.stderr));
    }
    let told = expect["stdout"].as_object().expect("an object");
    let came: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    told.iter().find_map(|(name, told)| match name.as_str() {
        // References are keyed.
        "status_ref" => (came[name].is_string() != told.is_string()).then(|| format!("{name}: {came}")),
        "passed" => (came["clean"] != *told).then(|| format!("{name}: {came}")),
        _ => (came[name] != *told).then(|| format!("{name} is {}, told {told}", came[name])),
    })
}

#[test]
fn the_command_line_cases_of_the_reference() {
    let vectors = vectors();
    let base = &vectors["fixture_base"];
    let (mut passed, mut reasons, mut wrong) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    for case in vectors["cli"].as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        let project = project();
        let mut reference = String::new();
        for (at, run) in case["runs"].as_array().expect("runs").iter().enumerate() {
            let ran = play(&project, base, run, &reference);
            let document: Value = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
            reference = document["status_ref"].as_str().unwrap_or(&reference).to_owned();
            match adapted(name, at) {
                None => match differs(&ran, &run["expect"]) {
                    None => passed += 1,
                    Some(differs) => wrong.push(format!("{name}, run {at}: {differs}")),
                },
                Some((reason, exit, word)) => {
                    *reasons.entry(reason).or_default() += 1;
                    let said = ran.stdout.contains(word) || ran.stderr.contains(word);
                    if ran.code != exit || !said {
                        wrong.push(format!("{name}, run {at}: {ran:?} instead of {exit}, {word}"));
                    }
                }
            }
            // Whatever was said, the remote never acts twice.
            assert!(
                project.read("remote.jsonl").lines().filter(|line| line.contains("\"key\"")).count() <= 2
            );
        }
    }
    println!("{passed} runs as they stand; adapted: {reasons:#?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_case_files_of_the_reference_are_taken_or_refused() {
    let vectors = vectors();
    let base = &vectors["fixture_base"];
    let project = project();
    let (mut passed, mut reasons) = (0, BTreeMap::<&str, usize>::new());
    for case in vectors["fixture_validation"].as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        let file = changed(base, &case["change"]);
        fs::write(project.path("case.json"), file.to_string()).expect("a case");
        let status = ["operations", "status", "--case", "case.json", "--status-ref", "none", "--json"];
        let ran = project.run(&status);
        let taken = !ran.stderr.contains("case_invalid");
        let departs = match name {
            "33 roles (no count limit at this level)"
            | "256 character tenant (no length limit at this level)"
            | "key blank is fine here" => Some((BOUNDS, false)),
            "tool get_order" => Some((TOOLS, true)),
            // Of another tenant than the store's, or with a moment beyond its own.
            "now max-30" => Some((BOUNDS, false)),
            _ => None,
        };
        match departs {
            Some((reason, expected)) => {
                *reasons.entry(reason).or_default() += 1;
                assert_eq!(taken, expected, "{name}: {ran:?}");
            }
            None => {
                // What escaped as another error is a case that is not in form.
                assert_eq!(taken, case["accepted"].as_bool().unwrap_or(false), "{name}: {ran:?}");
                passed += 1;
            }
        }
    }
    println!("{passed} as they stand; adapted: {reasons:#?}");
}

#[test]
fn a_case_that_gives_an_approval_of_something_else_has_nothing_else_done() {
    for decision in ["allow", "approve"] {
        for mode in ["mismatched", "expired"] {
            let project = project();
            let policy =
                project.read("onceseal.yaml").replace("decision: approve", &format!("decision: {decision}"));
            fs::write(project.path("onceseal.yaml"), policy).expect("a policy");
            let change = serde_json::json!({ "path": ["approval_mode"], "value": mode });
            let case = changed(&vectors()["fixture_base"], &change);
            fs::write(project.path("case.json"), case.to_string()).expect("a case");
            for _ in 0..2 {
                let ran = project.run(&["operations", "dispatch", "--case", "case.json"]);
                let code = ran.document()["code"].clone();
                assert_eq!(
                    code,
                    if decision == "allow" { "OK" } else { "APPROVAL_INVALID" },
                    "{decision}, {mode}"
                );
            }
            project.ok(&["worker", "--until-dry"]);
            let done = usize::from(decision == "allow");
            assert_eq!(project.read("remote.jsonl").lines().count(), done, "{decision}, {mode}");
            assert_eq!(project.items(&["operations", "list"]).len(), done, "{decision}, {mode}");
        }
    }
}

#[test]
fn a_case_is_taken_whatever_the_environment_says_of_agents_and_alone() {
    let project = project();
    fs::write(project.path("case.json"), vectors()["fixture_base"].to_string()).expect("a case");
    let mut command = project.command(&["operations", "dispatch", "--case", "case.json"]);
    let command = command.env("ONCESEAL_AGENT", "bob").env("ONCESEAL_ENVIRONMENT", "staging");
    assert_eq!(crate::base::ran(command.output().expect("a run")).code, 0);
    for more in [&["--user", "ann"][..], &["--arg", "a=b"], &["create_refund_draft"]] {
        let args = [&["operations", "dispatch", "--case", "case.json"], more].concat();
        let ran = project.run(&args);
        assert!(ran.code == 2 && ran.stderr.contains("cannot be used with"), "{ran:?}");
    }
    let alone = ["operations", "dispatch", "x", "--idempotency-key", "k", "--fault", "after_claim"];
    assert_eq!(project.run(&alone).code, 2);
}

#[test]
fn p14_what_is_no_file_is_neither_waited_for_as_a_case_nor_as_a_ledger() {
    let project = project();
    let made = std::process::Command::new("mkfifo").arg(project.path("pipe")).status();
    assert!(made.expect("mkfifo").success());
    for args in
        [&["operations", "dispatch", "--case", "pipe"][..], &["sim", "tell", "--ledger", "pipe", "refuse"]]
    {
        assert_eq!(project.run(args).code, 2, "{args:?}");
    }
    // A line that was cut off while it was written is no line.
    fs::write(project.path("torn.jsonl"), "{\"told\":\"lag\"}\n{\"ke").expect("written");
    project.ok(&["sim", "tell", "--ledger", "torn.jsonl", "catch-up"]);
    assert_eq!(project.read("torn.jsonl").lines().count(), 2);
}

#[test]
fn a_case_of_the_future_is_refused() {
    let project = project();
    let change = serde_json::json!({ "path": ["now"], "value": 253_000_000_000_i64 });
    fs::write(project.path("case.json"), changed(&vectors()["fixture_base"], &change).to_string())
        .expect("a case");
    let ran = project.run(&["operations", "dispatch", "--case", "case.json", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (2, Some("case_invalid")), "{ran:?}");
}
