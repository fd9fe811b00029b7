//! Pages that are generated from the program. `UPDATE=1 cargo nextest run -p
//! onceseal-tests -E 'binary(generated)'` writes them anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use onceseal_core::code::Code;
use onceseal_core::journal::KINDS;

fn check(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, text).expect("written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{page} is not what the program says; run with UPDATE=1");
}

#[test]
fn the_page_of_codes_is_what_the_program_says() {
    let mut page = "# Codes\n\nGenerated from the program. A code never changes its meaning.\n\n\
                    | code | retry | meaning |\n|---|---|---|\n"
        .to_owned();
    for code in Code::ALL {
        writeln!(page, "| `{code}` | `{}` | {} |", code.retry(), code.sentence()).expect("text");
    }
    check("docs/codes.md", &page);
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

#[test]
fn every_test_that_the_guarantees_name_exists() {
    fn sources(directory: &Path, text: &mut String) {
        for entry in
            fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
        {
            let hidden = entry.file_name().is_some_and(|name| name == "target");
            if entry.is_dir() && !hidden {
                sources(&entry, text);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&fs::read_to_string(&entry).expect("text"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut source = String::new();
    sources(&root.join("crates"), &mut source);
    sources(&root.join("tests"), &mut source);
    let page = fs::read_to_string(root.join("docs/guarantees.md")).expect("the page");
    let names = page
        .split('`')
        .filter(|name| name.starts_with('p') && name.as_bytes().get(1).is_some_and(u8::is_ascii_digit));
    let missing: Vec<_> = names.filter(|name| !source.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
