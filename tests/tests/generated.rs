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
