//! Where output goes: data on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use onceseal::core::json::{self, Object, Value};

use crate::cli::Color;
use crate::error::CliError;

/// The schema of every JSON document that is not a receipt.
pub(crate) const SCHEMA: &str = "onceseal.cli/v1";

/// Both streams of the program.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    json: bool,
    color: anstream::ColorChoice,
}

impl Out {
    pub(crate) const fn new(json: bool, color: Color) -> Out {
        let color = match color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        Out { json, color }
    }

    /// Whether programs read the output.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person reads it, at a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.is_terminal() && io::stdin().is_terminal()
    }

    /// Writes text for people, or lines of data.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        let mut stream = AutoStream::new(io::stdout(), self.color);
        stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).map_err(unwritten)
    }

    /// Clears a terminal, and goes on at its top: also where there is no colour.
    pub(crate) fn clear(&self) -> Result<(), CliError> {
        let mut stdout = io::stdout();
        stdout.write_all(b"\x1b[H\x1b[2J").and_then(|()| stdout.flush()).map_err(unwritten)
    }

    /// Writes one JSON document of ours, on one line.
    pub(crate) fn document(&self, mut members: Object) -> Result<(), CliError> {
        members.insert("schema", SCHEMA);
        self.line(&members.into())
    }

    /// Writes a value as one line of canonical JSON.
    pub(crate) fn line(&self, value: &Value) -> Result<(), CliError> {
        let text = json::canonical(value) + "\n";
        let mut stdout = io::stdout();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(unwritten)
    }

    /// Tells a person something that is no data.
    pub(crate) fn note(&self, text: &str) {
        // A stderr that is gone has nobody to tell.
        let _ = writeln!(AutoStream::new(io::stderr(), self.color), "{text}");
    }

    /// Tells a program something that is no data: a line of JSON.
    pub(crate) fn json_note(&self, mut members: Object) {
        members.insert("schema", SCHEMA);
        self.note(&json::canonical(&members.into()));
    }

    /// Tells why the command did not do what it was asked.
    pub(crate) fn error(&self, error: &CliError) {
        if error.is_silent() {
            return;
        }
        if self.json {
            let mut members = Object::new();
            members.insert("error", error.to_object());
            self.json_note(members);
        } else {
            self.note(error.to_block().trim_end());
        }
    }
}

fn unwritten(error: io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::closed(),
        kind => CliError::new("output_failed", format!("stdout cannot be written: {kind}"), 2),
    }
}
