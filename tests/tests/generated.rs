//! Pages that are generated from the program. `UPDATE=1 cargo nextest run -p
//! onceseal-tests -E 'binary(generated)'` writes them anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use onceseal_core::code::{Code, Retry};
use onceseal_core::journal::KINDS;
use onceseal_core::run::{Definition, Proving, State};
use onceseal_core::task::TaskState;

#[path = "../../crates/onceseal-cli/src/codes.rs"]
mod codes;

/// What an executor says of its own end: `error_code` of a receipt, `code` of
/// an effect, `child.code` of `exec`. No error has one.
const ENDS: &[(&str, &str)] = &[
    ("exit_N", "the program exited with status N"),
    ("signal_N", "signal N ended the program"),
    ("timed_out", "the program was still running at the deadline and was stopped"),
    ("status_lost", "the program ended and its status was collected by somebody else"),
    ("program_not_found", "not run: there is no such program, or its interpreter is missing"),
    ("permission_denied", "not run: the file may not be executed"),
    ("no_such_directory", "not run: the working directory is not a directory"),
    ("nul_byte", "not run: program, argument or environment contains a NUL byte"),
    ("deadline_passed", "not run: the deadline had passed before the start"),
    ("not_started", "not run: the system refused for another reason"),
    (
        "still_running",
        "not run: the program of an earlier attempt still runs here under the same provider key",
    ),
    ("no_place", "not run: what the program would read and write cannot be made"),
    ("deadline", "the executor had not returned at the attempt's deadline"),
    ("cancelled", "the call was dropped while its executor ran"),
    ("dropped", "not run: the call was dropped before its executor started"),
    ("panic", "the executor panicked"),
    (
        "lease_too_short",
        "not run: when the store had answered, less than half of the lease was left, or of an operation less than \
         `request_timeout`",
    ),
    ("invalid_request", "HTTP, not sent: the request is not valid"),
    ("no_root_certificates", "HTTP, not sent: this machine has no root certificates"),
    ("name_lookup", "HTTP: the host's name could not be looked up"),
    ("local_destination", "HTTP, not sent: the host leads to this machine or its link and is not in `allow`"),
    ("connect", "HTTP: no connection could be made"),
    ("connect_timeout", "HTTP: no connection could be made in time"),
    ("timeout", "HTTP: the attempt took longer than allowed"),
    ("proxy_refused", "HTTP: the proxy refused to open a tunnel"),
    ("tls", "HTTP: the TLS handshake failed"),
    ("broken_exchange", "HTTP: the exchange broke off"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of every Rust file below a directory.
fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let hidden = entry.file_name().is_some_and(|name| name == "target");
        if entry.is_dir() && !hidden {
            sources(&entry, text);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&fs::read_to_string(&entry).expect("text"));
        }
    }
}

fn check(page: &str, text: &str) {
    let path = root().join(page);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, text).expect("written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{page} is not what the program says; run with UPDATE=1");
}

#[test]
fn the_page_of_codes_is_what_the_program_says() {
    let mut page = "# Codes\n\nGenerated from the program. A code never changes its meaning.\n".to_owned();
    let core: Vec<_> =
        Code::ALL.iter().map(|code| (code.as_str(), code.retry().as_str(), code.sentence())).collect();
    for (title, about, entries) in [
        ("Refusals", "What the rules answer, and how a store fails.", &core[..]),
        (
            "Calls and configuration",
            "What a call can come to besides, and what can be wrong with its file.",
            codes::ENGINE,
        ),
        (
            "The place of the state",
            "Why the state, the project or the mark cannot be used as they lie.",
            codes::STORE,
        ),
        ("The command line", "What the program says of itself.", codes::PROGRAM),
    ] {
        write!(page, "\n## {title}\n\n{about}\n\n| code | retry | meaning |\n|---|---|---|\n").expect("text");
        for (code, retry, meaning) in entries {
            writeln!(page, "| `{code}` | `{retry}` | {meaning} |").expect("text");
        }
    }
    page.push_str("\n## Ends of executors\n\nIn `child.code` of `exec`, and in the evidence of an effect and its receipt.\n\n");
    page.push_str("| code | meaning |\n|---|---|\n");
    for (code, meaning) in ENDS {
        writeln!(page, "| `{code}` | {meaning} |").expect("text");
    }
    check("docs/codes.md", &page);
}

/// The codes that the `code` methods of a crate's errors answer.
fn answered(crate_name: &str) -> BTreeSet<String> {
    let mut source = String::new();
    sources(&root().join("crates").join(crate_name).join("src"), &mut source);
    let methods = source.split("fn code(").filter(|rest| rest.starts_with(['&', 's']));
    let bodies = methods.filter_map(|rest| rest.split("\n    }\n").next());
    bodies.flat_map(literals).collect()
}

/// The texts in quotes that look like a code.
fn literals(code: &str) -> Vec<String> {
    let is_code = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    code.split('"').skip(1).step_by(2).filter(is_code).map(str::to_owned).collect()
}

#[test]
fn every_code_of_an_error_is_on_the_page_once_and_none_that_is_not_one() {
    let listed = |entries: &[codes::Entry]| -> BTreeSet<String> {
        entries.iter().map(|(code, ..)| (*code).to_owned()).collect()
    };
    let core: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let store: BTreeSet<_> = answered("onceseal-store").difference(&core).cloned().collect();
    assert_eq!(listed(codes::STORE), store);
    let ends: BTreeSet<_> = ENDS.iter().map(|(code, _)| (*code).to_owned()).collect();
    let answered = answered("onceseal");
    let elsewhere: BTreeSet<_> = ends.union(&store).cloned().collect();
    let engine: BTreeSet<_> = answered.difference(&elsewhere).cloned().collect();
    assert_eq!(listed(codes::ENGINE), engine);
    let mut executors = String::new();
    sources(&root().join("crates/onceseal/src"), &mut executors);
    for end in ends.iter().filter(|end| !end.ends_with("_N")) {
        assert!(executors.contains(&format!("\"{end}\"")), "nothing ends as {end}");
    }

    let mut program = String::new();
    sources(&root().join("crates/onceseal-cli/src"), &mut program);
    let made = program.split("CliError::new(").skip(1).filter_map(|rest| rest.split(',').next());
    let made: BTreeSet<_> = made.flat_map(literals).collect();
    let known: BTreeSet<_> = listed(codes::PROGRAM).union(&engine).cloned().collect();
    assert_eq!(made.difference(&known).count(), 0, "{:?}", made.difference(&known));
    assert!(listed(codes::PROGRAM).is_subset(&made), "{:?}", listed(codes::PROGRAM).difference(&made));

    let retries: BTreeSet<_> = Retry::ALL.iter().map(|retry| retry.as_str()).collect();
    let entries = [codes::PROGRAM, codes::ENGINE, codes::STORE].concat();
    assert!(entries.iter().all(|(_, retry, _)| retries.contains(retry)));
    let all: BTreeSet<_> = listed(&entries).union(&core).cloned().collect();
    assert_eq!(all.len(), entries.len() + core.len(), "no code is listed twice");
}

#[test]
fn the_page_of_event_kinds_is_what_the_program_says() {
    let mut page =
        "# Event kinds\n\nGenerated from the program. All are version 1. `refs` may name an action, an \
                    approval and a receipt. A member without a value is absent.\n"
            .to_owned();
    for info in KINDS {
        writeln!(page, "\n## {}\n\n{}\n", info.kind, info.about).expect("text");
        for (part, fields) in [("data", info.data), ("sealed", info.sealed)] {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, kind)| {
                    format!("`{name}`: {}", kind.replace("Option < ", "Option<").replace(" >", ">"))
                })
                .collect();
            let fields = if fields.is_empty() { "nothing".to_owned() } else { fields.join(", ") };
            writeln!(page, "- {part}: {fields}").expect("text");
        }
    }
    check("crates/onceseal-core/src/journal/kinds.md", &page);
}

/// A diagram of states, each with a name that the language of diagrams takes.
fn diagram<'a>(
    first: &[&str],
    states: impl Iterator<Item = &'a str>,
    edges: impl Iterator<Item = (&'a str, &'a str)>,
    last: &[&str],
) -> String {
    let id = |state: &str| state.replace('-', "_");
    let mut text = "```mermaid\nstateDiagram-v2\n".to_owned();
    for state in states {
        writeln!(text, "    state \"{state}\" as {}", id(state)).expect("text");
    }
    first.iter().for_each(|first| writeln!(text, "    [*] --> {}", id(first)).expect("text"));
    for (from, to) in edges {
        writeln!(text, "    {} --> {}", id(from), id(to)).expect("text");
    }
    last.iter().for_each(|last| writeln!(text, "    {} --> [*]", id(last)).expect("text"));
    text.push_str("```\n");
    text
}

/// A section about the definition of a kind of runs.
fn section(definition: &Definition) -> String {
    let states = definition.states();
    let mut text = format!("\n## Runs: `{}`\n\n", definition.kind());
    for (gate, of) in definition.gates() {
        let proof = match of.proof {
            Proving::Required => "takes only what a person approved",
            Proving::None => "takes what is bound to it",
        };
        writeln!(text, "The gate `{gate}` {proof}.").expect("text");
    }
    let ends: Vec<_> =
        states.keys().map(String::as_str).filter(|state| definition.is_terminal(state)).collect();
    let names = states.keys().map(String::as_str);
    let gap = if definition.gates().is_empty() { "" } else { "\n" };
    write!(text, "{gap}{}", diagram(&[definition.initial()], names, definition.edges(), &ends))
        .expect("text");
    text.push_str(
        "\n| state | may follow | interrupted | its tasks are taken | commands |\n|---|---|---|---|---|\n",
    );
    for (name, state) in states {
        let State::Living { to, interrupted, idle, commands } = state else {
            writeln!(text, "| `{name}` | nothing: it has ended | | no | |").expect("text");
            continue;
        };
        let to = to.iter().map(|to| format!("`{to}`")).collect::<Vec<_>>().join(", ");
        let taken = if *idle { "no" } else { "yes" };
        let command = |(name, to): (&String, &Option<String>)| match to {
            Some(to) => format!("`{name}`: `{to}`"),
            None => format!("`{name}`"),
        };
        let commands = commands.iter().map(command).collect::<Vec<_>>().join(", ");
        writeln!(text, "| `{name}` | {to} | `{interrupted}` | {taken} | {commands} |").expect("text");
    }
    text
}

#[test]
fn the_page_of_states_is_what_the_definitions_say() {
    let mut page = "# States\n\nGenerated from the definitions that are built in. What each means: \
                    [runs](runs.md), [tasks](tasks.md).\n"
        .to_owned();
    // A design goes through what a delivery does.
    let built_in = Definition::built_in();
    let shown = built_in.iter().filter(|definition| definition.kind() != "design");
    shown.for_each(|definition| page.push_str(&section(definition)));
    page.push_str(
        "\nA `design` goes through the states of a `delivery`, and may begin before its change has a name.\n",
    );
    page.push_str("\n## Tasks\n\n");
    let names = || TaskState::ALL.iter().map(|state| state.as_str());
    let edges =
        TaskState::ALL.iter().flat_map(|from| from.next().iter().map(|to| (from.as_str(), to.as_str())));
    page.push_str(&diagram(&["pending", "queued"], names(), edges, &["verified", "closed"]));
    page.push_str("\n| state | may follow | somebody is at it | it stopped |\n|---|---|---|---|\n");
    for state in TaskState::ALL {
        let next = state.next().iter().map(|next| format!("`{next}`")).collect::<Vec<_>>().join(", ");
        let next = if next.is_empty() { "a new plan alone".to_owned() } else { next };
        let word = |is: bool| if is { "yes" } else { "no" };
        let (at_it, stopped) = (word(state.is_worked_on()), word(state.is_stop()));
        writeln!(page, "| `{state}` | {next} | {at_it} | {stopped} |").expect("text");
    }
    page.push_str("\nA new plan may put any task back to `pending` or `queued`, or close it.\n");
    check("docs/states.md", &page);
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let mut source = String::new();
    sources(&root().join("crates"), &mut source);
    sources(&root().join("tests"), &mut source);
    let page = fs::read_to_string(root().join("docs/guarantees.md")).expect("the page");
    let names = page
        .split('`')
        .filter(|name| name.starts_with('p') && name.as_bytes().get(1).is_some_and(u8::is_ascii_digit));
    let missing: Vec<_> = names.filter(|name| !source.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
