//! The repository's own rules, as `ARCHITECTURE.md` states them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Every file below a directory with this ending, with its text.
fn files(below: &str, ending: &str) -> Vec<(PathBuf, String)> {
    fn walk(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in
            fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
        {
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            if entry.is_dir() && !name.starts_with('.') && name != "target" {
                walk(&entry, ending, found);
            } else if name.ends_with(ending) {
                found.push(entry);
            }
        }
    }
    let mut found = Vec::new();
    let directory = root().join(below);
    if directory.is_file() {
        found.push(directory);
    } else if directory.exists() {
        walk(&directory, ending, &mut found);
    }
    found.sort();
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

/// The text without comments and without what stands under `#[cfg(test)]`.
fn shipped(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn assert_absent(below: &str, words: &[&str], why: &str) {
    let mut found = Vec::new();
    for (path, text) in files(below, ".rs").into_iter().filter(|(path, _)| !path.ends_with("tests.rs")) {
        let text = shipped(&text);
        for word in words {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
                found.push(format!("{}:{}: {} ({word})", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn core_knows_no_clock_randomness_io_thread_async_database_or_unsafe() {
    let words = [
        "std::fs",
        "std::net",
        "std::io",
        "std::thread",
        "std::env",
        "SystemTime",
        "Instant::",
        "jiff::Timestamp::now",
        "Zoned::now",
        "async ",
        ".await",
        "tokio",
        "rusqlite",
        "getrandom",
        "HashMap",
        "HashSet",
        "unsafe ",
        "println!",
        "eprintln!",
    ];
    assert_absent("crates/onceseal-core/src", &words, "core is pure");
}

#[test]
fn sql_stands_only_in_the_store() {
    let words = ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "rusqlite"];
    assert_absent("crates/onceseal/src", &words, "no SQL in the engine");
    assert_absent("crates/onceseal-core/src", &words, "no SQL in core");
}

#[test]
fn the_store_has_no_rule() {
    let words = ["EffectState::", "ActionState::", "Status::", "Verdict::", "lease_until", "expires_at"];
    for part in [
        "executor.rs",
        "queue.rs",
        "memory.rs",
        "backend.rs",
        "store.rs",
        "read.rs",
        "sqlite",
        "desk.rs",
        "lanes.rs",
        "postgres",
    ] {
        assert_absent(&format!("crates/onceseal-store/src/{part}"), &words, "the store moves bytes");
    }
    for (path, text) in files("crates/onceseal-store/src", ".sql") {
        let statements: String = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        for column in ["state", "status", "lease", "expires"] {
            assert!(!statements.contains(column), "{}: a rule could read {column}", path.display());
        }
    }
}

#[test]
fn nothing_shipped_in_the_library_crates_is_unsafe() {
    for crate_name in ["onceseal-core", "onceseal-store", "onceseal", "onceseal-cli"] {
        let words = ["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe_code)"];
        assert_absent(&format!("crates/{crate_name}/src"), &words, "no unsafe");
    }
}

#[test]
fn arrows_between_crates_point_downward() {
    let order = ["onceseal-core", "onceseal-store", "onceseal", "onceseal-cli"];
    for (at, name) in order.iter().enumerate() {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(&manifest) else { panic!("{} is missing", manifest.display()) };
        let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = section.split("\n[").next().unwrap_or_default();
        for above in &order[at..] {
            let named = dependencies.lines().any(|line| line.split(['.', ' ', '=']).next() == Some(above));
            assert!(!named, "{name} names {above}, which stands above it");
        }
    }
}

#[test]
fn files_are_read_in_one_sitting() {
    const MOST: usize = 450;
    let mut long = Vec::new();
    for (path, text) in files("crates", ".rs").into_iter().chain(files("servers", ".rs")) {
        let lines = text.lines().count();
        if path.components().any(|part| part.as_os_str() == "src") && lines > MOST {
            long.push(format!("{} has {lines} lines", path.display()));
        }
    }
    assert!(long.is_empty(), "split by concept:\n{}", long.join("\n"));
}

#[test]
fn words_are_those_of_the_glossary() {
    // What our words never are, in what people read: see docs/concepts.md.
    let never =
        ["exactly once", "exactly-once", "guaranteed delivery", "idempotency token", "timed out by a human"];
    let mut found = Vec::new();
    for (path, text) in files("crates", ".rs").into_iter().chain(files("docs", ".md")) {
        for word in never {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| line.to_lowercase().contains(word))
            {
                // Saying that it cannot be promised is the one permitted use.
                if !line.contains("not ") && !line.contains("cannot") && !line.contains("never") {
                    found.push(format!("{}:{}: {word}", path.display(), at + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<_> = files("crates", ".rs")
        .into_iter()
        .chain(files("servers", ".rs"))
        .filter(|(path, text)| {
            let source = path.components().any(|part| part.as_os_str() == "src");
            source && !path.ends_with("tests.rs") && !text.starts_with("//!")
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "no `//!` header:\n{}", silent.join("\n"));
}

#[test]
fn no_test_is_switched_off_and_no_lint_without_a_reason() {
    let mut found = Vec::new();
    let tools = ["servers", "tests"].into_iter().flat_map(|below| files(below, ".rs"));
    for (path, text) in files("crates", ".rs").into_iter().chain(tools) {
        if path.ends_with("tidy.rs") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let bare_ignore = line.trim() == "#[ignore]";
            let allow =
                line.trim_start().starts_with("#[allow(") || line.trim_start().starts_with("#![allow(");
            let expect =
                line.contains("[expect(") && !line.contains("reason") && line.trim_end().ends_with(")]");
            if bare_ignore || allow || expect {
                found.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_dependency_is_justified() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let ours: BTreeSet<&str> = ["onceseal-core", "onceseal-store", "onceseal"].into();
    for (path, manifest) in files("crates", "Cargo.toml").into_iter().chain(files("servers", "Cargo.toml")) {
        for section in manifest.split("\n[").filter(|section| section.starts_with("dependencies]")) {
            for line in section.lines().skip(1).filter(|line| !line.starts_with(['#', '[', ' ', '"', ']'])) {
                let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
                if name.is_empty() || ours.contains(name) {
                    continue;
                }
                assert!(page.contains(&format!("`{name}`")), "{}: {name} is not justified", path.display());
            }
        }
    }
}
