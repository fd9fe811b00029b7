//! Why a command did not do what it was asked: what happened, why, and what to
//! type next.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use onceseal::Error;
use onceseal::config::ConfigError;
use onceseal::core::code::{Code, Retry};
use onceseal::core::id::ReceiptId;
use onceseal::core::json::{Object, Value};
use onceseal::store::StoreError;
use onceseal::store::place::PlaceError;

use crate::codes;
use crate::files;
use crate::text::shown;

/// Exit status: refused, blocked, unknown or broken.
pub(crate) const REFUSED: u8 = 1;
/// Exit status: usage, configuration, storage.
pub(crate) const UNUSABLE: u8 = 2;
/// Exit status: could not be checked.
pub(crate) const UNCHECKED: u8 = 3;
/// Exit status: stdout was closed, as a shell reports of a program that SIGPIPE ended.
const CLOSED: u8 = 128 + 13;

/// An error as it is shown.
#[derive(Debug)]
pub(crate) struct CliError {
    code: &'static str,
    message: String,
    why: Vec<String>,
    next: Vec<String>,
    retry: Retry,
    about: Object,
    /// The exit status.
    pub(crate) exit: u8,
    silent: bool,
    /// Whether the store's server is not there for now.
    is_away: bool,
}

impl CliError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, exit: u8) -> CliError {
        debug_assert!(is_listed(code), "{code} is not on the page of codes");
        CliError {
            code,
            message: message.into(),
            why: Vec::new(),
            next: Vec::new(),
            retry: Retry::Never,
            about: Object::new(),
            exit,
            silent: false,
            is_away: false,
        }
    }

    /// A command line that cannot be understood.
    pub(crate) fn usage(message: impl Into<String>) -> CliError {
        CliError::new("usage", message, UNUSABLE)
    }

    /// What the parser says of a command line, in paragraphs: what is wrong,
    /// tips, and how the command is used.
    pub(crate) fn misused(text: &str) -> CliError {
        let mut error = CliError::usage("");
        for (at, paragraph) in text.trim().split("\n\n").enumerate() {
            let mut lines = paragraph.lines().map(str::trim);
            let first = lines.next().unwrap_or_default();
            let rest: Vec<&str> = lines.collect();
            let gap = if rest.is_empty() { "" } else { " " };
            match (at, first.strip_prefix("Usage: "), first.strip_prefix("tip: ")) {
                (0, ..) => {
                    let first = first.trim_start_matches("error: ");
                    error.message = format!("{first}{gap}{}", rest.join(", "));
                }
                (_, Some(usage), _) => {
                    error = error.about("usage", format!("{usage}{gap}{}", rest.join(" ")))
                }
                (.., Some(tip)) => error = error.next(tip),
                _ => {}
            }
        }
        error
    }

    /// Something named on the command line that does not exist.
    pub(crate) fn missing(code: Code) -> CliError {
        CliError::new(code.as_str(), code.sentence(), REFUSED)
    }

    /// The output was closed before all was said: nobody listens, so nothing is
    /// said of it, but it must not look like success either.
    pub(crate) fn closed() -> CliError {
        CliError { silent: true, ..CliError::new("output_closed", "", CLOSED) }
    }

    /// Says it also where nobody reads the output: something is left to be done.
    #[must_use]
    pub(crate) fn aloud(self) -> CliError {
        match self.silent {
            true => CliError { silent: false, ..self }
                .in_words("standard output was closed before all was written"),
            false => self,
        }
    }

    /// What is wrong with a configuration file.
    pub(crate) fn of_file(error: ConfigError, file: &Path) -> CliError {
        let names_it = matches!(error, ConfigError::Unreadable { .. } | ConfigError::TooLarge { .. });
        let mistakes = match &error {
            ConfigError::Run(errors) => errors.0.clone(),
            _ => Vec::new(),
        };
        let mut error = CliError::from(error).about("file", file.display().to_string());
        if let Some((first, others)) = mistakes.split_first() {
            error = error.in_words(first.to_string());
            error = others.iter().fold(error, |error, other| error.because(other.to_string()));
            let mistakes = mistakes.iter().map(|mistake| {
                let mut object = Object::new();
                object.insert("position", mistake.position.map_or(Value::Null, |at| at.to_string().into()));
                object.insert("kind", mistake.kind.as_str());
                object.insert("path", mistake.error.path.as_str());
                object.insert("message", mistake.error.problem.as_str());
                object.into()
            });
            error = error.about("mistakes", Value::List(mistakes.collect()));
        }
        if names_it { error } else { error.because(format!("it stands in {}", file.display())) }
    }

    /// Whether it is about the store, and where that is.
    pub(crate) fn concerns_store(&self) -> bool {
        const CODES: [Code; 11] = [
            Code::StoreFailed,
            Code::StoreBusy,
            Code::CommitUnknown,
            Code::StoreForeign,
            Code::StoreWentBack,
            Code::StoreUnreachable,
            Code::StoreRefused,
            Code::SchemaOld,
            Code::StoreArriving,
            Code::StandbyMayLose,
            Code::Corrupt,
        ];
        self.code == "outcome_unrecorded" || CODES.iter().any(|code| self.is(*code))
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether it has this code.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }

    /// Names the store's file.
    pub(crate) fn of_store(self, database: &Path) -> CliError {
        let error = match files::room(database) {
            Some(why) if self.is(Code::StoreFailed) || self.is(Code::CommitUnknown) => self.because(why),
            _ => self,
        };
        let database = database.display().to_string();
        error.because(format!("the store is {database}")).about("file", database)
    }

    /// Names the store's server, without what is secret.
    pub(crate) fn of_server(self, address: &str) -> CliError {
        let error = match self.is(Code::StoreWentBack) {
            true => self
                .next(
                    "where this is not the address that was used before, correct `store`, or ONCESEAL_STORE",
                )
                .next(
                    "where the project has a file, `onceseal migrate --from sqlite:` moves it to the server",
                ),
            false => self,
        };
        error.because(format!("the store is {address}")).about("store", address)
    }

    /// Whether the store's server is not there for now.
    pub(crate) const fn is_away(&self) -> bool {
        self.is_away
    }

    /// What it is and what happened, on one line.
    pub(crate) fn summary(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    pub(crate) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Exits with this status.
    #[must_use]
    pub(crate) fn exit(self, exit: u8) -> CliError {
        CliError { exit, ..self }
    }

    /// Exits as what did not come before anything was decided.
    #[must_use]
    pub(crate) fn ran(self) -> CliError {
        if self.silent { self } else { self.exit(REFUSED) }
    }

    /// Says why; a further reason is added to those before it.
    #[must_use]
    pub(crate) fn because(mut self, why: impl Into<String>) -> CliError {
        self.why.push(why.into());
        self
    }

    /// Says why, instead of what was said before.
    #[must_use]
    pub(crate) fn because_instead(self, why: impl Into<String>) -> CliError {
        CliError { why: vec![why.into()], ..self }
    }

    /// Says what happened in other words.
    #[must_use]
    pub(crate) fn in_words(self, message: impl Into<String>) -> CliError {
        CliError { message: message.into(), ..self }
    }

    /// Says what to type, or do, next.
    #[must_use]
    pub(crate) fn next(mut self, next: impl Into<String>) -> CliError {
        self.next.push(next.into());
        self
    }

    /// Says when the same command may succeed.
    #[must_use]
    pub(crate) fn retry(mut self, retry: Retry) -> CliError {
        self.retry = retry;
        self
    }

    /// Names what it is about, for programs.
    #[must_use]
    pub(crate) fn about(mut self, name: &str, value: impl Into<Value>) -> CliError {
        self.about.insert(name, value);
        self
    }

    /// Names the receipt, if there is one.
    #[must_use]
    pub(crate) fn about_receipt(self, receipt: Option<ReceiptId>) -> CliError {
        match receipt {
            Some(receipt) => self.about("receipt", receipt.to_string()),
            None => self,
        }
    }

    /// For programs: code, message, retry, and what it is about.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = self.about.clone();
        object.insert("code", self.code);
        object.insert("message", self.message.as_str());
        object.insert("retry", self.retry.as_str());
        if !self.why.is_empty() {
            object.insert("why", self.why.join("; "));
        }
        // What a sentence says to do stands after its last semicolon.
        let said = self.message.rsplit_once("; ").map(|(_, next)| next);
        let next: Vec<&str> = match self.next.is_empty() {
            true => said.into_iter().collect(),
            false => self.next.iter().map(String::as_str).collect(),
        };
        object.insert("next", Value::List(next.into_iter().map(Value::from).collect()));
        object
    }

    /// For people: one block.
    pub(crate) fn to_block(&self) -> String {
        let (bold, dim) = (AnsiColor::Red.on_default().bold(), Style::new().dimmed());
        let mut block = format!("{bold}error[{}]{bold:#}: {}\n", self.code, shown(&self.message));
        for (label, lines) in [("why: ", &self.why), ("next:", &self.next)] {
            for (at, line) in lines.iter().enumerate() {
                let label = if at == 0 { label } else { "     " };
                block.push_str(&format!("  {dim}{label}{dim:#} {}\n", shown(line)));
            }
        }
        block
    }
}

/// Whether a code is on the page of codes.
fn is_listed(code: &str) -> bool {
    let mut others = [codes::PROGRAM, codes::ENGINE, codes::STORE].into_iter().flatten();
    others.any(|(listed, ..)| *listed == code) || Code::ALL.iter().any(|listed| listed.as_str() == code)
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        let code = error.code();
        let base = CliError::new(code.as_str(), error.to_string(), UNUSABLE).retry(code.retry());
        let base = CliError { is_away: error.is_away(), ..base };
        match code {
            Code::StoreWentBack => base.next("onceseal doctor"),
            Code::ClockJump => base.next("check the clock, then start the program again"),
            Code::PolicyMissing => base.next("onceseal init").next("onceseal policy apply"),
            Code::StoreForeign | Code::Corrupt => base.next("onceseal doctor"),
            Code::StoreFailed => base.next("onceseal doctor").next("then the same command again"),
            Code::CommitUnknown => base.next("onceseal events says what was recorded"),
            _ => base,
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        let base = CliError::new(error.code(), error.to_string(), UNUSABLE);
        match error {
            ConfigError::Missing => base.next("onceseal init"),
            ConfigError::Unreadable { .. } => {
                base.next("put a file there, or name another one with --config")
            }
            ConfigError::Policy(_) | ConfigError::Tool(_) | ConfigError::Run(_) => {
                base.next("correct the file, then `onceseal policy check`")
            }
            _ => base,
        }
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> CliError {
        let mut base = CliError::new(error.code(), error.to_string(), UNUSABLE);
        if let Some(path) = error.path() {
            base = base.because(format!("it is about {}", path.display()));
        }
        match (error.command(), error.code()) {
            (Some(command), _) => base.next(command),
            (None, "project_missing") => base.next("onceseal init"),
            (None, "state_missing") => base.next("onceseal project new"),
            (None, "project_in_use") => base.next("onceseal project new --forget"),
            (None, "project_copied") => base.next("onceseal project new").next("onceseal project adopt"),
            (None, _) => base,
        }
    }
}

/// Errors that concern no action; [`crate::command::exec`] tells of those.
impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        match error {
            Error::Store(error) => error.into(),
            Error::Config(error) => error.into(),
            Error::Place(error) => error.into(),
            Error::Refused(refusal) => crate::command::refused::plain(&refusal),
            Error::Ended(refusal) => crate::command::refused::plain(&refusal).retry(Retry::Never),
            Error::Unsettled { because, .. } => (*because).into(),
            Error::Proposal(_) => CliError::new(error.code(), error.to_string(), UNUSABLE),
            Error::Mark(_) => {
                CliError::new(error.code(), error.to_string(), UNUSABLE).next("onceseal doctor")
            }
            error => {
                let retry = error.retry();
                CliError::new(error.code(), error.to_string(), UNUSABLE).retry(retry)
            }
        }
    }
}
