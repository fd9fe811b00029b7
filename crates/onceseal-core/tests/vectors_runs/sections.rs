//! Every section of the cases, and where each is: so that none is forgotten.

use std::collections::BTreeMap;

use onceseal_core::id::RootId;
use onceseal_core::lease::Resource;
use serde_json::Value as Vector;

use crate::vectors;

/// Sections that are played, and where.
const PLAYED: &[(&str, &str)] = &[
    ("canonicalJson", "crates/onceseal-core/tests/vectors_json.rs"),
    ("identifierRegex", "crates/onceseal-core/tests/vectors_runs/main.rs"),
    ("changeRegex", "crates/onceseal-core/tests/vectors_runs/main.rs"),
    ("sha256Regex", "crates/onceseal-core/tests/vectors_runs/main.rs"),
    ("stateMachine", "crates/onceseal-core/tests/vectors_runs/main.rs"),
    ("lookupKeys", "crates/onceseal-core/tests/vectors_runs/playing.rs"),
    ("runIdentity", "crates/onceseal-core/tests/vectors_runs/playing.rs"),
    ("idempotency", "crates/onceseal-core/tests/vectors_runs/playing.rs"),
    ("leases", "crates/onceseal-core/tests/vectors_runs/leases.rs"),
    ("deliveryBindings", "crates/onceseal-core/tests/vectors_runs/deliveries.rs"),
    ("controlCommands", "crates/onceseal-core/tests/vectors_runs/commands.rs"),
    ("routeHealth", "crates/onceseal-core/tests/vectors_runs/circuits.rs"),
    ("eventChains", "crates/onceseal-core/tests/vectors_runs/chains.rs"),
    ("createEventHeader", "crates/onceseal-core/tests/vectors_runs/chains.rs"),
    ("chainVerification", "crates/onceseal-core/tests/vectors_runs/chains.rs"),
    ("relativePaths", "crates/onceseal-core/tests/vectors_runs/sections.rs"),
    ("stateRoot", "crates/onceseal-store/tests/vectors_place.rs"),
    ("stateRootContainment", "crates/onceseal-store/tests/vectors_place.rs"),
    ("satelliteHashes.rootHash", "crates/onceseal-store/tests/vectors_place.rs"),
    ("satelliteHashes.designFacts", "crates/onceseal-core/tests/vectors_runs/hashes.rs"),
    ("satelliteHashes.routeFingerprint", "crates/onceseal-core/tests/vectors_runs/hashes.rs"),
    ("satelliteHashes.bootstrap", "crates/onceseal-core/tests/vectors_runs/hashes.rs"),
    ("satelliteHashes.taskLedger", "crates/onceseal-core/tests/vectors_runs/hashes.rs"),
    ("satelliteHashes.lengthPrefixed", "crates/onceseal-core/tests/vectors_runs/hashes.rs"),
];

const ARTIFACTS: &str = "artifacts and workspace revisions are not kept yet";
const APPLY: &str = "nothing is written into a project yet";

/// Sections that are not played, with the number of their cases and the reason.
const OTHERS: &[(&str, usize, &str)] = &[
    ("about", 0, "it has no cases"),
    ("applyRecovery", 98, APPLY),
    ("satelliteHashes.applyJournal", 1, APPLY),
    ("satelliteHashes.claimNames", 3, APPLY),
    ("satelliteHashes.workspace", 3, ARTIFACTS),
    ("satelliteHashes.artifactPaths", 10, ARTIFACTS),
    (
        "satelliteHashes.engineIds",
        5,
        "ids are random, or blinded names of streams: nobody works them out from what is known",
    ),
];

/// How many cases a section of those has.
fn cases(name: &str, section: &Vector) -> usize {
    let list = |member: &str| section[member].as_array().map_or(0, Vec::len);
    match name {
        "applyRecovery" => list("forward") + list("rollback"),
        "satelliteHashes.applyJournal" => 1,
        "satelliteHashes.workspace" => list("revisions"),
        "satelliteHashes.artifactPaths" => {
            let grammar = &section["referenceFileGrammar"];
            let of = |member: &str| grammar[member].as_array().map_or(0, Vec::len);
            list("cases") + of("valid") + of("invalid")
        }
        _ => list("cases"),
    }
}

#[test]
fn every_section_is_played_or_belongs_elsewhere() {
    let vectors = vectors();
    let mut sections: BTreeMap<String, &Vector> = BTreeMap::new();
    for (name, section) in vectors.as_object().expect("sections") {
        match name.as_str() {
            "satelliteHashes" => {
                let parts = section.as_object().expect("parts").iter();
                sections.extend(parts.map(|(part, section)| (format!("{name}.{part}"), section)));
            }
            _ => drop(sections.insert(name.clone(), section)),
        }
    }
    for (name, file) in PLAYED {
        assert!(sections.remove(*name).is_some(), "{name}");
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let word = name.rsplit('.').next().expect("a word");
        assert!(text.contains(word), "{file} does not play {name}");
    }
    for (name, count, reason) in OTHERS {
        let section = sections.remove(*name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(cases(name, section), *count, "{name}");
        println!("{name}: {count} not played: {reason}");
    }
    assert!(sections.is_empty(), "{:?}", sections.keys());
}

/// What a task or a lease names as a path of a project, which our grammar reads
/// otherwise in these.
const PATHS: &[(&str, bool, &str)] = &[
    (".", false, "the whole project is its workspace"),
    ("a..b", true, "dots inside a step lead nowhere"),
    ("C:/x", true, "no host that has drives is served: it is a directory of that name"),
    ("c:/x", true, "no host that has drives is served: it is a directory of that name"),
];

#[test]
fn the_paths_of_the_reference() {
    let vectors = vectors();
    let list = vectors["relativePaths"]["cases"].as_array().expect("cases");
    let root = RootId([1; 16]);
    let (mut passed, mut adapted) = (0, 0);
    for case in list {
        let (path, told) = (case["path"].as_str().expect("a path"), case["valid"] == true);
        let found = Resource::parse(&format!("root/{root}/path/{path}")).is_some();
        match PATHS.iter().find(|(of, ..)| *of == path) {
            Some((_, here, reason)) => {
                assert_eq!(found, *here, "{path}: {reason}");
                assert_ne!(found, told, "{path} needs no adapting");
                adapted += 1;
            }
            None => {
                assert_eq!(found, told, "{path:?}");
                passed += 1;
            }
        }
    }
    println!("relativePaths: {passed} passed, {adapted} adapted");
    assert_eq!((passed, adapted), (11, PATHS.len()));
}
