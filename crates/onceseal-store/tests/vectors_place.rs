//! The cases of the run store that Onceseal follows, as far as they are about
//! where state lives; where it departs, the reason stands beside the case.

#[path = "place/base.rs"]
mod base;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use onceseal_store::place::{DATABASE, Surroundings};
use serde_json::Value;

use base::{Base, chmod, find, mode, refusal};

const ID: &str = "00112233445566778899aabbccddeeff";

/// What a case expects here.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// What the vector says.
    Same,
    /// A refusal with this code, for this reason.
    Refused(&'static str, &'static str),
    /// The state directory is accepted below this base, for this reason.
    Accepted(&'static str, &'static str),
    /// Not run, for this reason.
    Skipped(&'static str),
}

/// Every case that does not expect the same.
fn departures(name: &str) -> Expected {
    match name {
        "existing base keeps its mode, deeper directories are tightened" => Expected::Refused(
            "state_ancestor_writable",
            "anybody could replace what lies in a base of mode 0777",
        ),
        "existing database file mode is tightened" => Expected::Refused(
            "state_not_private",
            "who read it meanwhile? the command to type is shown instead",
        ),
        "an ancestor of the state base is a symlink" => Expected::Accepted(
            "<base>/real/deep",
            "links above the base are resolved once, and everything passed is judged",
        ),
        "base inside the consumer under a name that starts with two dots slips through (quirk)" => {
            Expected::Refused("state_inside_project", "whole path components are compared")
        }
        "artifacts directory is a symlink" => Expected::Skipped("artifacts are another store's directory"),
        "prepare with a changed root directory" => {
            Expected::Skipped("a place cannot be changed between looking and preparing")
        }
        _ => Expected::Same,
    }
}

/// The codes of the vectors in our words.
fn code(theirs: &str, case: &str) -> &'static str {
    match theirs {
        "consumer-root-unavailable" => "project_unavailable",
        "state-component-symlink" => "state_symlink",
        "state-component-type" => "state_wrong_kind",
        "state-root-inside-consumer" => "state_inside_project",
        other => panic!("no word for {other} in {case}"),
    }
}

fn vectors(section: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/runs.json");
    let whole: Value = serde_json::from_slice(&fs::read(path).expect("the vectors")).expect("JSON");
    whole.pointer(section).and_then(|found| found.as_array()).expect("cases").clone()
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).map(|found| found.as_str().expect("text"))
}

/// A path of a vector, below the base, in our layout.
fn path(base: &Base, theirs: &str) -> PathBuf {
    let state = format!("<base>/xdg/onceseal/{ID}");
    let ours = match theirs {
        "control.sqlite3" => format!("{state}/{DATABASE}"),
        "roots/<hash>" => state,
        other => other.replace("abel-cadence", "onceseal"),
    };
    PathBuf::from(ours.replace("<base>", base.path.to_str().expect("text")))
}

/// Makes what a case is given.
fn give(base: &Base, given: &str) {
    let make = |theirs: &str| {
        let path = path(base, theirs);
        for parent in [base.join("xdg/onceseal"), base.join("xdg/onceseal").join(ID)] {
            if path.starts_with(&parent) && path != parent && !parent.exists() {
                fs::create_dir(&parent).expect("a directory");
                chmod(&parent, 0o700);
            }
        }
        path
    };
    let as_mode = |text: &str| u32::from_str_radix(text, 8).expect("a mode");
    if let Some((link, target)) = given.split_once(" -> ") {
        let target = path(base, target);
        if !target.exists() {
            fs::create_dir(&target).expect("a directory");
        }
        symlink(target, make(link)).expect("a link");
    } else if let Some((file, wanted)) = given.split_once(" exists, mode ") {
        fs::write(make(file), "").expect("a file");
        chmod(&make(file), as_mode(wanted));
    } else if let Some((directory, wanted)) = given.split_once(" mode ") {
        fs::create_dir_all(make(directory)).expect("a directory");
        chmod(&make(directory), as_mode(wanted));
    } else if let Some(file) = given.strip_suffix(" is a file") {
        let path = make(file);
        if path.is_dir() {
            fs::remove_dir(&path).expect("removed");
        }
        fs::write(path, "").expect("a file");
    } else if let Some(directory) = given.strip_suffix(" is a directory") {
        fs::create_dir(make(directory)).expect("a directory");
    } else {
        panic!("unknown ground: {given}");
    }
}

/// Sets a case up, with a project file where its project is a directory.
fn surroundings(base: &Base, case: &Value) -> Surroundings {
    for given in case["given"].as_array().expect("a list") {
        give(base, given.as_str().expect("text"));
    }
    let options = &case["options"];
    let place = |name| text(options, name).map(|theirs| path(base, theirs));
    let project = place("consumerRoot").expect("a project");
    if project.is_dir() {
        fs::create_dir(project.join(".onceseal")).expect("a directory");
        let file = format!("{{\"id\":\"{ID}\",\"schema\":\"onceseal.project/v1\"}}");
        fs::write(project.join(".onceseal/project.json"), file).expect("a file");
    }
    // A relative or empty value stays as it is.
    let xdg = text(options, "xdgStateHome").map(|theirs| path(base, theirs).into());
    Surroundings {
        state: None,
        xdg_state_home: xdg,
        home: place("homeDir").map(Into::into),
        working_directory: project,
        ..base.surroundings()
    }
}

fn check(case: &Value, name: &str, expected: Expected) {
    let base = Base::new();
    let surroundings = surroundings(&base, case);
    let accepted = |theirs: &str| {
        let place = find(&surroundings).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(place.directory(), path(&base, theirs).join("onceseal").join(ID), "{name}");
        place.prepare().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((mode(place.directory()), mode(place.database())), (0o700, 0o600), "{name}");
    };
    match (expected, text(&case["expect"], "error")) {
        (Expected::Same, Some(theirs)) => {
            assert_eq!(refusal(find(&surroundings)).0, code(theirs, name), "{name}")
        }
        (Expected::Same, None) => accepted(case["expect"]["ok"]["base"].as_str().expect("a base")),
        (Expected::Refused(ours, _), _) => assert_eq!(refusal(find(&surroundings)).0, ours, "{name}"),
        (Expected::Accepted(place, _), _) => accepted(place),
        (Expected::Skipped(_), _) => {}
    }
}

#[test]
fn state_root_cases() {
    let (mut same, mut adapted, mut skipped) = (0, 0, 0);
    for case in vectors("/stateRoot/cases") {
        let name = text(&case, "name").expect("a name");
        let expected = departures(name);
        match expected {
            Expected::Same => same += 1,
            Expected::Refused(_, reason) | Expected::Accepted(_, reason) => {
                adapted += 1;
                println!("adapted: {name}: {reason}");
            }
            Expected::Skipped(reason) => {
                skipped += 1;
                println!("skipped: {name}: {reason}");
                continue;
            }
        }
        check(&case, name, expected);
    }
    println!("stateRoot: {same} the same, {adapted} adapted, {skipped} skipped");
    assert_eq!((same, adapted, skipped), (8, 4, 2));
}

#[test]
fn containment_cases() {
    let (mut same, mut adapted) = (0, 0);
    for case in vectors("/stateRootContainment/cases") {
        let base = Base::new();
        let place = |name| base.join(text(&case, name).expect("a path").trim_start_matches('/'));
        let (project, state) = (place("consumerRoot"), place("rootDir"));
        fs::create_dir_all(&project).expect("a directory");
        fs::create_dir_all(&state).expect("a directory");
        chmod(&state, 0o700);
        fs::create_dir(project.join(".onceseal")).expect("a directory");
        let file = format!("{{\"id\":\"{ID}\",\"schema\":\"onceseal.project/v1\"}}");
        fs::write(project.join(".onceseal/project.json"), file).expect("a file");
        let surroundings = Surroundings {
            state: Some(state.clone().into()),
            xdg_state_home: None,
            home: None,
            working_directory: project,
            ..base.surroundings()
        };
        let inside = find(&surroundings).map_err(|error| error.code()).map(drop);
        let really = case["reallyInside"] == true;
        assert_eq!(inside, if really { Err("state_inside_project") } else { Ok(()) }, "{state:?}");
        if case["treatedAsInside"] == case["reallyInside"] {
            same += 1;
        } else {
            adapted += 1;
            println!("adapted: {}: whole path components are compared", case["rootDir"]);
        }
    }
    println!("stateRootContainment: {same} the same, {adapted} adapted, 0 skipped");
    assert_eq!((same, adapted), (3, 2));
}

/// A project is named by a random id that it carries, not by its path.
#[test]
fn no_path_of_a_project_leads_to_its_state() {
    let cases = vectors("/satelliteHashes/rootHash/cases");
    for case in &cases {
        assert_ne!(text(case, "rootHash"), Some(ID), "needs no adapting");
    }
    println!("rootHash: 0 the same, {} adapted: a project's id is random", cases.len());
    assert_eq!(cases.len(), 3);
}
