//! The page of user cases tells the truth: what it names exists, and what has
//! been proven is not for later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The names of all functions of the repository.
fn functions() -> BTreeSet<String> {
    fn walk(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
                found.extend(names.map(str::to_owned));
            }
        }
    }
    let mut found = BTreeSet::new();
    for part in ["crates", "tests"] {
        walk(&root().join(part), &mut found);
    }
    found
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The ids in a name: `ua_106_ua_107_…` has two.
fn ids(name: &str) -> Vec<u32> {
    name.split("ua_").skip(1).filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

/// Each id of the page with the names beside it; none where it is for later.
fn page() -> BTreeMap<u32, Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs/user-cases.md")).expect("the page");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| UA-")) {
        let mut cells = line.split(" | ");
        let id: u32 = cells.next().and_then(|id| id.parse().ok()).expect("an id");
        let proof = cells.nth(1).expect("a proof");
        let names: Vec<_> = proof.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert!(names.is_empty() == proof.starts_with("later: "), "UA-{id}: {proof}");
        assert!(rows.insert(id, names).is_none(), "UA-{id} is there twice");
    }
    rows
}

#[test]
fn every_test_that_the_page_of_user_cases_names_exists_and_carries_the_id() {
    let (page, functions) = (page(), functions());
    assert!(page.len() >= 114, "{} cases", page.len());
    for (id, names) in page {
        for name in names {
            assert!(functions.contains(&name), "UA-{id}: {name} does not exist");
            assert!(ids(&name).contains(&id), "UA-{id}: {name} carries another id");
        }
    }
}

#[test]
fn no_case_that_a_test_carries_is_said_to_be_for_later() {
    let page = page();
    for name in functions() {
        for id in ids(&name) {
            let named = page.get(&id).is_some_and(|names| !names.is_empty());
            assert!(named, "name {name} at UA-{id:03} in docs/user-cases.md");
        }
    }
}
