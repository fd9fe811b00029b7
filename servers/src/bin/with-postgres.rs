//! Runs a command with a PostgreSQL that all of its processes share:
//! `with-postgres cargo nextest run`. Its exit code is the command's.

use std::env;
use std::process::{Command, ExitCode};

use onceseal_servers::{Postgres, SHARED, TEMPLATE, template};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: with-postgres COMMAND [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    // What `cargo run` says of this package is nothing to a command that is
    // cargo itself: it would build again what looks at it.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    // Whoever named a server already means that one.
    let _server = env::var_os(SHARED).is_none().then(|| {
        let server = Postgres::with(&[("max_connections", "200")]).start();
        command.env(SHARED, server.url("postgres")).env(TEMPLATE, template());
        server
    });
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
