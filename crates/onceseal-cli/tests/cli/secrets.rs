//! Nothing leaks: a secret argument is with the approver and the executor, and
//! nowhere else.

use std::fs;

use crate::base::Project;

const CANARY: &str = "4111-canary-7731";
const POLICY: &str = r#"actions:
  charge:
    effect: "charge:{order}"
    redact: [card, nested.pin]
    rules:
      - when: { amount_lte: 10 }
        decision: allow
      - when: { card_prefix: "5" }
        decision: deny
      - decision: approve
"#;

fn project() -> Project {
    let project = Project::with_policy(POLICY);
    fs::write(project.path("card"), CANARY).expect("written");
    fs::write(project.path("nested"), format!("{{\"pin\":\"{CANARY}\"}}")).expect("written");
    fs::write(project.path("broken"), format!("{{\"pin\":\"{CANARY}\",}}")).expect("written");
    project
}

fn call<'a>(order: &'a str, amount: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let call = ["charge", "--arg", order, "--arg", amount];
    let secrets = ["--arg-file", "card=card", "--arg-file", "nested:=nested"];
    call.iter().chain(&secrets).chain(rest).copied().collect()
}

#[test]
fn ua_154_a_redacted_argument_is_in_no_output_error_event_receipt_or_explanation() {
    let project = project();
    let mut said = String::new();
    let mut run = |args: &[&str]| {
        for more in [&[][..], &["--json"]] {
            let split = args.iter().position(|word| *word == "--").unwrap_or(args.len());
            let line: Vec<_> = args[..split].iter().chain(more).chain(&args[split..]).copied().collect();
            said.push_str(&project.run(&line).all());
        }
    };
    let exec = |order, amount, script| {
        let line: Vec<_> =
            ["exec"].iter().copied().chain(call(order, amount, &["--", "sh", "-c", script])).collect();
        line
    };
    run(&exec("order=1", "amount:=1", "exit 0"));
    run(&exec("order=1", "amount:=2", "exit 0"));
    run(&exec("order=2", "amount:=1", "exit 7"));
    run(&exec("order=3", "amount:=1", "kill -9 $$"));
    run(&exec("order=4", "amount:=500", "exit 0"));
    let id = project.items(&["pending"])[0]["approval"].as_str().expect("an id").to_owned();
    run(&["approvals", "show", &id]);
    run(&["approve", &id]);
    run(&exec("order=4", "amount:=500", "exit 0"));
    run(&["exec", "charge", "--arg", "order=5", "--arg-file", "card:=card", "--", "true"]);
    run(&["exec", "charge", "--arg", "order=5", "--arg-file", "nested:=broken", "--", "true"]);
    run(&["exec", "charge", "--arg", CANARY, "--", "true"]);
    let explain: Vec<_> =
        ["policy", "explain"].iter().copied().chain(call("order=6", "amount:=500", &[])).collect();
    run(&explain);
    let action = project.items(&["actions", "list"])[0]["action"].as_str().expect("an id").to_owned();
    let receipt = project.items(&["receipts", "list"])[0]["receipt"].as_str().expect("an id").to_owned();
    for args in [
        &["actions", "list"][..],
        &["actions", "show", &action],
        &["approvals", "list"],
        &["effects", "list"],
        &["effects", "show", "charge:1"],
        &["receipts", "list"],
        &["receipts", "show", &receipt],
        &["events"],
        &["export", "events"],
        &["export", "receipts"],
        &["doctor"],
        &["policy", "check"],
    ] {
        run(args);
    }
    assert!(said.contains("[redacted]"), "redactions are marked");
    assert!(!said.contains(CANARY), "{said}");
    // The approver sees it, when they ask for it.
    assert!(project.ok(&["approvals", "show", &id, "--reveal"]).stdout.contains(CANARY));
}

#[test]
fn ua_154_in_the_database_it_is_in_the_payload_alone() {
    let project = project();
    let line: Vec<_> =
        ["exec"].iter().copied().chain(call("order=1", "amount:=1", &["--", "true"])).collect();
    project.ok(&line);
    let database = rusqlite::Connection::open(project.database()).expect("the database");
    let tables: Vec<String> = texts(&database, "SELECT name FROM sqlite_schema WHERE type = 'table'");
    let mut found = Vec::new();
    for table in tables {
        for column in texts(&database, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!(
                "SELECT count(*) FROM \"{table}\" WHERE instr(CAST(\"{column}\" AS BLOB), CAST(?1 AS BLOB)) > 0"
            );
            let rows: i64 = database.query_row(&sql, [CANARY], |row| row.get(0)).expect("a count");
            if rows > 0 {
                found.push((format!("{table}.{column}"), rows));
            }
        }
    }
    assert_eq!(found, [("payloads.text".to_owned(), 1)]);
    drop(database);
    for file in fs::read_dir(project.state()).expect("the state").map(|entry| entry.expect("an entry").path())
    {
        let bytes = fs::read(&file).expect("a file");
        let times = bytes.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count();
        let expected = if file.ends_with("onceseal.db") { 2 } else { 0 };
        assert_eq!(times, expected, "{}: card and pin, once each in the payload", file.display());
    }
}

fn texts(database: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut statement = database.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|text| text.expect("a text")).collect()
}

#[test]
fn a_receipt_that_withholds_an_argument_withholds_the_hashes_over_it() {
    let project = project();
    let line: Vec<_> =
        ["exec"].iter().copied().chain(call("order=1", "amount:=1", &["--", "true"])).collect();
    project.ok(&line);
    let receipt = project.items(&["receipts", "list"])[0].clone();
    assert_eq!(receipt["arguments"]["card"], "[redacted]");
    assert_eq!(receipt["arguments"]["nested"]["pin"], "[redacted]");
    assert!(receipt["action_hash"].is_null() && receipt["intent_hash"].is_null(), "{receipt}");
}

#[test]
fn a_secret_on_the_command_line_is_warned_of() {
    let project = project();
    let ran = project.run(&[
        "exec",
        "charge",
        "--arg",
        "order=1",
        "--arg",
        "amount:=1",
        "--arg",
        "card=x",
        "--",
        "true",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("warning: the policy redacts card"), "{ran:?}");
}

#[test]
fn a_secret_under_a_mistyped_name_is_not_shown_and_whoever_sent_it_is_told() {
    let project = project();
    let call = ["exec", "chrage", "--arg-file", "card=card", "--", "true"];
    let refused = project.refused(&call);
    assert!(refused.stderr.contains("did you mean charge?"), "{refused:?}");
    assert!(refused.stderr.contains("its arguments are recorded as they are"), "{refused:?}");
    let id = project.items(&["actions", "list"])[0]["action"].as_str().expect("an id").to_owned();
    assert_eq!(project.json(&["actions", "show", &id])["arguments"]["card"], "[unlisted]");
    let shown = project.ok(&["actions", "show", &id]).stdout;
    assert!(shown.contains(r#"arguments    {"card":"[unlisted]"}"#), "{shown}");
    let without = project.refused(&["exec", "chrage", "--", "true"]);
    assert!(!without.stderr.contains("recorded as they are"), "{without:?}");
}
