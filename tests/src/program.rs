//! The programs of the workspace, built as a newcomer would.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Builds the program of a package, in the profile that this was built in.
///
/// # Panics
/// If it does not build.
#[must_use]
pub fn build(package: &str) -> PathBuf {
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", package, "--bins", "--message-format=json", "--profile", profile])
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
    PathBuf::from(path)
}
