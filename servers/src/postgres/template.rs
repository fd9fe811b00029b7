//! The data of a new server: made once, and copied, which takes a tenth of the
//! time.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::SUPERUSER;
use super::setup::memory;
use crate::daemon::Daemon;
use crate::{chance, program};

/// The environment variable by which processes share a [`template`].
pub const TEMPLATE: &str = "ONCESEAL_TEST_POSTGRES_TEMPLATE";

/// A directory with the data of a server that never ran, and the password of
/// its superuser: what [`TEMPLATE`] names, or else made once by this process.
///
/// # Panics
/// If PostgreSQL's `initdb` does not do it.
pub fn template() -> PathBuf {
    static MADE: OnceLock<Daemon> = OnceLock::new();
    if let Some(named) = env::var_os(TEMPLATE) {
        return named.into();
    }
    let made = MADE.get_or_init(|| {
        let daemon = Daemon::new(&memory(), "template");
        initialize(&daemon);
        daemon
    });
    made.directory().to_owned()
}

/// Makes the data of a new server: the password of its superuser.
pub(super) fn initialize(daemon: &Daemon) -> String {
    let password = chance::text();
    let file = daemon.write("password", &password);
    let program = program::postgres_directory().join("initdb");
    let mut command = daemon.command(&program);
    command
        .args(["-D", "data", "-U", SUPERUSER, "-A", "scram-sha-256", "--no-sync"])
        .arg("--pwfile")
        .arg(file);
    command.args(["-E", "UTF8", "--locale=C.UTF-8"]);
    // Texts are to be ordered as no program orders bytes, so that who relies
    // on the order of bytes must say so.
    if program::run(Command::new(&program).arg("--help")).contains("--icu-locale") {
        command.args(["--locale-provider=icu", "--icu-locale=en-US"]);
    }
    program::run(&mut command);
    password
}

/// Copies the template: the password of its superuser.
pub(super) fn copy(daemon: &Daemon) -> String {
    let template = template();
    program::run(Command::new("cp").arg("-a").arg(template.join("data")).arg(daemon.directory()));
    read(&template.join("password"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
