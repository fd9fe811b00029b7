//! SQL through `psql`, which needs no client of ours to be right.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crate::{chance, program};

/// A server as `psql` reaches it: an address without the database's name.
#[derive(Debug)]
pub(crate) struct Psql {
    program: PathBuf,
    before: String,
    after: String,
}

impl Psql {
    /// By what stands before the database's name in an address, and after it.
    pub(crate) fn new(before: &str, after: &str) -> Psql {
        let program = program::postgres_directory().join("psql");
        Psql { program, before: before.to_owned(), after: after.to_owned() }
    }

    /// The address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("{}{database}{}", self.before, self.after)
    }

    /// Runs statements one by one: their rows, with `|` between columns, or
    /// what was said of the first that failed.
    pub(crate) fn run(&self, database: &str, text: &str) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)]);
        command.env("PGCONNECT_TIMEOUT", "20").env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stdin = child.stdin.take().expect("a pipe");
        let output = thread::scope(|scope| {
            // It stops reading where it fails, so this may not be read.
            scope.spawn(move || stdin.write_all(text.as_bytes()).ok());
            child.wait_with_output().expect("psql")
        });
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// The same, of what must not fail.
    #[track_caller]
    pub(crate) fn sql(&self, database: &str, text: &str) -> String {
        self.run(database, text).unwrap_or_else(|said| panic!("{text}: {said}"))
    }

    /// Makes an empty database of a name that no other has.
    #[track_caller]
    pub(crate) fn new_database(&self) -> String {
        let name = format!("test_{}", chance::text());
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        name
    }
}
