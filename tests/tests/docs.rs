//! Every shell block of the README and the docs, run as a newcomer would.

use std::fs::{self, File};
use std::net::TcpListener;
use std::process::Command;

use onceseal_servers::server;
use onceseal_tests::program::{build, root};

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

/// Builds these packages' programs; a `PATH` on which they come first.
fn path_of(packages: &[&str]) -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    for package in packages {
        let program = build(package);
        path = format!("{}:{path}", program.parent().expect("a directory").display());
    }
    path
}

#[test]
fn every_shell_block_of_the_pages_runs() {
    let path = path_of(&["onceseal-cli"]);
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).expect("docs") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    let databases = ["onceseal", "ours"].map(|name| (name, server().new_database()));
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
            let block = databases.iter().fold(block, |block, (name, database)| {
                let address = format!("postgres://onceseal:password@db.example/{name}'");
                block.replace(&address, &format!("{}'", database.url()))
            });
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

/// An example is followed in one terminal, and what was started in it ends with
/// it.
fn follow(example: &str, program: &str, path: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let project = home.path().join("project");
    fs::create_dir(&project).expect("a directory");
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address").port().to_string()
    };
    for entry in fs::read_dir(root().join("examples").join(example)).expect("an example") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_file() {
            let text = fs::read_to_string(entry.path()).expect("text").replace("4010", &port);
            let to = project.join(entry.file_name());
            fs::write(&to, text).expect("written");
            // A script is run as it is in the repository.
            let mode = entry.metadata().expect("a mode").permissions();
            fs::set_permissions(&to, mode).expect("as there");
        }
    }
    let script = blocks(&format!("examples/{example}/README.md")).concat();
    // The program has been built; running it from there is what cargo would do.
    let script = script.replace("cargo build --quiet\n", "");
    let script = script.replace("cargo run --quiet", &format!("{program} --port {port}"));
    // Into a file: what goes on in the background would keep a pipe open.
    let said = home.path().join("said");
    let log = File::create(&said).expect("a file");
    let ended = Command::new("bash")
        .args([
            "-xeuo",
            "pipefail",
            "-c",
            &format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"),
        ])
        .current_dir(&project)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .status()
        .expect("bash");
    let said = fs::read_to_string(said).expect("text");
    assert!(ended.success() && said.contains("\nintact; "), "{example}: {ended}\n{said}");
}

#[test]
fn the_example_over_http_is_followed_to_its_end() {
    follow("refunds", "refunds", &path_of(&["onceseal-cli", "onceseal-example-refunds"]));
}

#[test]
fn the_example_with_a_command_is_followed_to_its_end() {
    follow("letters", "none", &path_of(&["onceseal-cli"]));
}

#[test]
fn the_example_of_a_change_is_followed_to_its_end() {
    follow("changes", "none", &path_of(&["onceseal-cli"]));
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut pages =
        vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("SECURITY.md")];
    pages.extend(
        ["refunds", "letters", "changes"]
            .map(|example| root().join("examples").join(example).join("README.md")),
    );
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
