//! Help, version and completions.

use crate::base::{Project, snapshot};

/// Every command, as its words.
pub(crate) const COMMANDS: &[&[&str]] = &[
    &[],
    &["init"],
    &["demo"],
    &["exec"],
    &["policy"],
    &["policy", "check"],
    &["policy", "explain"],
    &["policy", "apply"],
    &["actions"],
    &["actions", "submit"],
    &["actions", "list"],
    &["actions", "show"],
    &["approvals"],
    &["approvals", "list"],
    &["approvals", "show"],
    &["approvals", "approve"],
    &["approvals", "deny"],
    &["approvals", "revoke"],
    &["pending"],
    &["approve"],
    &["deny"],
    &["effects"],
    &["effects", "list"],
    &["effects", "show"],
    &["effects", "resolve"],
    &["resolve"],
    &["receipts"],
    &["receipts", "list"],
    &["receipts", "show"],
    &["events"],
    &["export"],
    &["export", "receipts"],
    &["export", "events"],
    &["operations"],
    &["operations", "dispatch"],
    &["operations", "status"],
    &["operations", "audit"],
    &["operations", "list"],
    &["operations", "show"],
    &["operations", "wait"],
    &["operations", "retry"],
    &["operations", "cancel"],
    &["operations", "routes"],
    &["operations", "close-route"],
    &["worker"],
    &["runs"],
    &["runs", "list"],
    &["runs", "start"],
    &["runs", "show"],
    &["runs", "events"],
    &["runs", "diff"],
    &["runs", "verify"],
    &["runs", "rebuild"],
    &["runs", "export"],
    &["runs", "watch"],
    &["runs", "transition"],
    &["runs", "bind"],
    &["runs", "command"],
    &["runs", "deliver"],
    &["runs", "blockers"],
    &["runs", "cancel"],
    &["runs", "discard"],
    &["runs", "definitions"],
    &["tasks"],
    &["tasks", "plan"],
    &["tasks", "list"],
    &["tasks", "show"],
    &["tasks", "take"],
    &["tasks", "produced"],
    &["tasks", "passed"],
    &["tasks", "stopped"],
    &["tasks", "queue"],
    &["tasks", "grant"],
    &["tasks", "work"],
    &["lease"],
    &["lease", "acquire"],
    &["lease", "renew"],
    &["lease", "commit"],
    &["lease", "interrupt"],
    &["lease", "preempt"],
    &["lease", "hand-over"],
    &["lease", "accept"],
    &["lease", "withdraw"],
    &["lease", "inspect"],
    &["lease", "list"],
    &["lease", "run"],
    &["sim"],
    &["sim", "act"],
    &["sim", "ask"],
    &["sim", "tell"],
    &["audit"],
    &["bench"],
    &["bench", "runs"],
    &["doctor"],
    &["migrate"],
    &["project"],
    &["project", "adopt"],
    &["project", "new"],
    &["completions"],
];

pub(crate) fn help(project: &Project, words: &[&str]) -> String {
    let line: Vec<_> = words.iter().copied().chain(["--help"]).collect();
    project.ok(&line).stdout
}

#[test]
fn help_of_the_program_and_of_what_is_used_most() {
    let project = Project::empty();
    for words in [&[][..], &["exec"], &["approve"], &["resolve"], &["events"], &["doctor"], &["bench"]] {
        let name = words.first().map_or("help".to_owned(), |word| format!("help_{word}"));
        snapshot(&name, &help(&project, words));
    }
}

#[test]
fn every_command_is_listed_here() {
    let project = Project::empty();
    for words in COMMANDS {
        let text = help(&project, words);
        let listed = text.split("Commands:\n").nth(1).unwrap_or_default();
        let names =
            listed.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
        for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
            let inner: Vec<_> = words.iter().copied().chain([name]).collect();
            assert!(COMMANDS.contains(&&inner[..]), "{inner:?} is not in COMMANDS");
        }
    }
}

#[test]
fn ua_155_no_flag_takes_a_secret_as_its_value() {
    let project = Project::empty();
    for words in COMMANDS {
        let text = help(&project, words);
        for line in text.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
            let flag = line.split_whitespace().find(|word| word.starts_with("--")).unwrap_or_default();
            // A name of the caller's own, which opens nothing.
            let flag = flag.replace("--idempotency-key", "--idempotency");
            for secret in ["token", "password", "secret", "key", "credential", "cookie", "bearer"] {
                assert!(!flag.contains(secret), "{words:?} {flag}");
            }
        }
        assert!(!text.contains("[env: ONCESEAL_AGENT="), "values of variables are not printed");
    }
}

#[test]
fn the_version_names_the_schema_too() {
    let ran = Project::empty().ok(&["--version"]);
    assert_eq!(ran.stdout, format!("onceseal {}\nstore schema 2\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_printed_for_every_shell() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = project.ok(&["completions", shell]).stdout;
        assert!(script.contains("onceseal") && script.contains("resolve"), "{shell}");
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_exits_2() {
    let project = Project::empty();
    for args in [&[][..], &["nonsense"], &["exec"], &["exec", "a"], &["approve", "act_1"], &["resolve", "k"]]
    {
        let ran = project.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(!ran.stderr.is_empty());
    }
    let error = project.run(&["nonsense", "--json"]).error();
    assert_eq!((error["code"].as_str(), error["retry"].as_str()), (Some("usage"), Some("never")));
}

#[test]
fn a_program_is_told_as_much_of_a_wrong_command_line_as_a_person() {
    let project = Project::empty();
    let error = |args: &[&str]| project.run(args).error();
    let missing = error(&["resolve", "k", "--json"]);
    assert_eq!(
        missing["message"],
        "the following required arguments were not provided: --reason <TEXT>, <--committed|--failed>"
    );
    assert!(
        missing["usage"].as_str().is_some_and(|usage| usage.starts_with("onceseal resolve ")),
        "{missing}"
    );
    let value = error(&["effects", "list", "--state", "lost", "--json"]);
    assert_eq!(
        value["message"],
        "invalid value 'lost' for '--state <STATE>' [possible values: reserved, executing, committed, failed, ambiguous, queued, released]"
    );
    let similar = error(&["docter", "--json"]);
    assert_eq!(similar["next"], serde_json::json!(["a similar subcommand exists: 'doctor'"]));
    let people = project.run(&["exec", "a", "--no-such", "--", "prog", "--json"]);
    assert!(people.stderr.starts_with("error: unexpected argument"), "the command's own flags are its own");
}

#[test]
fn a_reader_that_has_read_enough_is_told_nothing() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = project.command(&["events", "--json"]).stdout(writer).output().expect("a run");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]));
}
