//! Where the programs of the servers are, and running those that end.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian puts daemons where only root looks.
    let directories = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    directories.map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// A program by its name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    in_path(name)
}

/// The same, which must be there.
pub(crate) fn need(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| panic!("`{name}` is not installed; ./test installs what tests need"))
}

/// Where PostgreSQL's programs are: `ONCESEAL_PGBIN`, or beside the `postgres`
/// in `PATH`, or the newest of Debian's.
pub(crate) fn postgres_directory() -> PathBuf {
    if let Some(directory) = env::var_os("ONCESEAL_PGBIN") {
        return directory.into();
    }
    // A link leads to where the others are, past Debian's slow wrapper of psql.
    let linked = in_path("postgres").and_then(|program| fs::canonicalize(program).ok());
    let beside = linked.and_then(|program| program.parent().map(Path::to_owned));
    beside.or_else(newest).expect("no PostgreSQL is installed; ./test installs what tests need")
}

fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let numbered = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let directory = entry.path().join("bin");
        directory.join("postgres").is_file().then_some((version, directory))
    });
    numbered.max().map(|(_, directory)| directory)
}

/// Runs a program to its end, and gives back what it printed.
///
/// # Panics
/// If it failed: with what it said.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
