//! The cases of the cadence run store that are about names, states, who finds
//! which run, what is answered twice, leases, deliveries, commands, circuits and
//! chains of events.
//!
//! A case is run as it stands, or it is adapted with the reason beside it.

#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/calls.rs"]
mod calls;
mod chains;
mod circuits;
mod commands;
mod deliveries;
#[path = "../support/executor.rs"]
mod executor;
mod hashes;
mod leases;
#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../promises/operating.rs"]
mod operating;
mod playing;
mod sections;
#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/world.rs"]
mod world;

use std::collections::BTreeMap;

use onceseal_core::hash::Hash;
use onceseal_core::run::{Definition, name};
use serde_json::Value as Vector;

fn vectors() -> Vector {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/runs.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the vectors")).expect("JSON")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn grammar(section: &str, is_valid: impl Fn(&str) -> bool, adapted: &[&str]) {
    let vectors = vectors();
    let cases = vectors[section]["cases"].as_array().expect("cases");
    let mut tally = (0, 0);
    for case in cases {
        let (label, value) =
            (case["label"].as_str().expect("a label"), case["value"].as_str().expect("a value"));
        let expected = case["valid"].as_bool().expect("a verdict");
        let is_adapted = adapted.contains(&label);
        assert_eq!(is_valid(value), expected != is_adapted, "{section}: {label}: {value:?}");
        if is_adapted { tally.1 += 1 } else { tally.0 += 1 }
    }
    println!("{section}: {} passed, {} adapted", tally.0, tally.1);
    assert_eq!((tally.0 + tally.1, tally.1), (cases.len(), adapted.len()), "no case is skipped");
}

#[test]
fn the_names_of_the_reference() {
    // Request ids are ASCII: the reference folds two other characters to letters.
    grammar("identifierRegex", name::is_request, &["long s U+017F", "Kelvin sign U+212A"]);
    grammar("changeRegex", name::is_plain, &[]);
    grammar("sha256Regex", |text| Hash::parse(&format!("sha256:{text}")).is_some(), &[]);
}

#[test]
fn the_state_machine_of_the_reference() {
    let vectors = vectors();
    let machine = &vectors["stateMachine"];
    let names = |value: &Vector| -> Vec<String> {
        value
            .as_array()
            .expect("a list")
            .iter()
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect()
    };
    let mut legal: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, to) in machine["legal"].as_object().expect("edges") {
        legal.insert(from.clone(), names(to));
    }
    for kind in ["design", "delivery"] {
        let definition =
            Definition::built_in().into_iter().find(|found| found.kind() == kind).expect("built in");
        let states = names(&machine["states"]);
        assert_eq!((definition.states().len(), definition.initial()), (states.len(), "created"));
        let mut edges = 0;
        for from in &states {
            for to in &states {
                let expected = legal.get(from).is_some_and(|next| next.contains(to));
                assert_eq!(definition.permits(from, to), expected, "{from} to {to}");
                edges += usize::from(expected);
            }
            assert_eq!(definition.is_terminal(from), names(&machine["terminal"]).contains(from), "{from}");
            let interrupted = machine["interruptionTarget"].get(from).and_then(Vector::as_str);
            assert_eq!(definition.interrupted(from), interrupted, "{from}");
            // Looking is offered always.
            let mut offered: Vec<_> = definition.commands(from).map(|(name, _)| name.to_owned()).collect();
            offered.push("status".to_owned());
            let mut expected = names(&machine["legalCommands"][from]);
            offered.sort();
            expected.sort();
            assert_eq!(offered, expected, "{from}");
        }
        assert_eq!(Some(edges), machine["legalCount"].as_u64().and_then(|count| usize::try_from(count).ok()));
        println!("stateMachine as {kind}: {} pairs passed, 0 adapted", states.len() * states.len());
    }
}
