//! Every shell block of the README and the docs, run as a newcomer would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The `sh` blocks of a page, in order.
fn blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).expect("a page");
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line.trim()) {
            (None, "```sh") => open = Some(String::new()),
            (Some(_), "```") => blocks.extend(open.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

/// Builds the program and gives its directory.
fn program() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "onceseal-cli", "--message-format=json"])
        .current_dir(root())
        .output()
        .expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).expect("text");
    let path = messages
        .lines()
        .filter_map(|line| line.split("\"executable\":\"").nth(1))
        .filter_map(|rest| rest.split('"').next())
        .next_back()
        .expect("an executable");
    Path::new(path).parent().expect("a directory").to_owned()
}

#[test]
fn every_shell_block_of_the_pages_runs() {
    let program = program();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.display());
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).expect("docs") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    let mut ran = 0;
    for page in pages {
        // One directory a page: a page is read from top to bottom.
        let home = tempfile::tempdir().expect("a directory");
        let project = home.path().join("project");
        fs::create_dir(&project).expect("a directory");
        for (at, block) in blocks(&page).into_iter().enumerate() {
            // The two set-up commands: `./test` is what runs this test, and the
            // demonstration is run from the program that was just built.
            let block = block
                .replace("cargo run --release -p onceseal-cli -- demo", "onceseal demo")
                .replace("./test\n", "");
            let output = Command::new("bash")
                .args(["-euo", "pipefail", "-c", &block])
                .current_dir(&project)
                .env_clear()
                .env("PATH", &path)
                .env("HOME", home.path())
                .output()
                .expect("bash");
            assert!(
                output.status.success(),
                "{page}, block {}:\n{block}\n--- stdout\n{}\n--- stderr\n{}",
                at + 1,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            ran += 1;
        }
    }
    println!("{ran} blocks");
    assert!(ran >= 7, "the README's path has seven blocks");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut pages =
        vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("SECURITY.md")];
    pages.extend(
        fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("an entry").path()),
    );
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.contains("://") && !link.starts_with('#') {
                let target =
                    page.parent().expect("a directory").join(link.split('#').next().unwrap_or_default());
                assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            }
        }
    }
}
