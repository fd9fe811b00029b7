//! Why a command did not do what it was asked: what happened, why, and what to
//! type next.

use anstyle::{AnsiColor, Style};
use onceseal::Error;
use onceseal::config::ConfigError;
use onceseal::core::code::{Code, Retry};
use onceseal::core::json::{Object, Value};
use onceseal::store::StoreError;
use onceseal::store::place::PlaceError;

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
    why: Option<String>,
    next: Vec<String>,
    retry: Retry,
    about: Object,
    /// The exit status.
    pub(crate) exit: u8,
    silent: bool,
}

impl CliError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, exit: u8) -> CliError {
        CliError {
            code,
            message: message.into(),
            why: None,
            next: Vec::new(),
            retry: Retry::Never,
            about: Object::new(),
            exit,
            silent: false,
        }
    }

    /// A command line that cannot be understood.
    pub(crate) fn usage(message: impl Into<String>) -> CliError {
        CliError::new("usage", message, UNUSABLE)
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

    pub(crate) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Exits with this status.
    #[must_use]
    pub(crate) fn exit(self, exit: u8) -> CliError {
        CliError { exit, ..self }
    }

    /// Says why.
    #[must_use]
    pub(crate) fn because(mut self, why: impl Into<String>) -> CliError {
        self.why = Some(why.into());
        self
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

    /// For programs: code, message, retry, and what it is about.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = self.about.clone();
        object.insert("code", self.code);
        object.insert("message", self.message.as_str());
        object.insert("retry", self.retry.as_str());
        if let Some(why) = &self.why {
            object.insert("why", why.as_str());
        }
        let next = self.next.iter().map(|next| Value::from(next.as_str())).collect();
        object.insert("next", Value::List(next));
        object
    }

    /// For people: one block.
    pub(crate) fn to_block(&self) -> String {
        let (bold, dim) = (AnsiColor::Red.on_default().bold(), Style::new().dimmed());
        let mut block = format!("{bold}error[{}]{bold:#}: {}\n", self.code, shown(&self.message));
        if let Some(why) = &self.why {
            block.push_str(&format!("  {dim}why:{dim:#}  {}\n", shown(why)));
        }
        for (at, next) in self.next.iter().enumerate() {
            let label = if at == 0 { "next:" } else { "     " };
            block.push_str(&format!("  {dim}{label}{dim:#} {}\n", shown(next)));
        }
        block
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        let code = error.code();
        let base = CliError::new(code.as_str(), error.to_string(), UNUSABLE).retry(code.retry());
        match code {
            Code::StoreWentBack => base.next("onceseal doctor"),
            Code::ClockJump => base.next("onceseal doctor --accept-clock"),
            Code::PolicyMissing => base.next("onceseal init").next("onceseal policy apply"),
            Code::StoreForeign | Code::Corrupt => base.next("onceseal doctor"),
            _ => base,
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        let base = CliError::new(error.code(), error.to_string(), UNUSABLE);
        match error {
            ConfigError::Missing => base.next("onceseal init"),
            ConfigError::Policy(_) => base.next("correct the file, then `onceseal policy check`"),
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
