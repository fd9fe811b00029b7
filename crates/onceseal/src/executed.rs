//! What executors return.

use onceseal_core::json::Value;

use crate::secrets::Secrets;

/// What an executor returns.
pub type Executed = Result<Value, Failure>;

/// How an executor ends without success.
///
/// Any `std::error::Error` becomes [`Failure::Unknown`]: what is not known not
/// to have happened counts as unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nothing was done, and the executor knows it.
    NotExecuted {
        /// A short code, open in the journal.
        code: Option<String>,
        /// Text for people, sealed; cut after 1,024 characters.
        message: String,
    },
    /// It may have been done.
    Unknown {
        /// A short code, open in the journal.
        code: Option<String>,
        /// Text for people, sealed; cut after 1,024 characters.
        message: String,
    },
}

impl Failure {
    /// Nothing was done.
    #[must_use]
    pub fn not_executed(message: impl Into<String>) -> Failure {
        Failure::NotExecuted { code: None, message: message.into() }
    }

    /// It may have been done.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Failure {
        Failure::Unknown { code: None, message: message.into() }
    }

    /// The same without the redacted values of its call.
    pub(crate) fn without(self, secrets: &Secrets) -> Failure {
        let hide =
            |code: Option<String>, message| (code.map(|code| secrets.hide(code)), secrets.hide(message));
        match self {
            Failure::NotExecuted { code, message } => {
                let (code, message) = hide(code, message);
                Failure::NotExecuted { code, message }
            }
            Failure::Unknown { code, message } => {
                let (code, message) = hide(code, message);
                Failure::Unknown { code, message }
            }
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Unknown { code: None, message: error.to_string() }
    }
}

/// What the end of a program, or of a request, says about the effect. The
/// codes are short, lower case, and the same for the same end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It happened.
    Committed,
    /// It did not happen.
    NotExecuted {
        /// Why, such as `exit_75`, `status_409` or `connect`.
        code: String,
    },
    /// Nobody knows whether it happened.
    Unknown {
        /// Why, such as `signal_9`, `status_500` or `timeout`.
        code: String,
    },
}

impl Outcome {
    /// As an executor returns it: `value` if it happened, else why not, with a
    /// `message` for people.
    ///
    /// # Errors
    /// [`Failure`], if it did not happen or nobody knows.
    pub fn executed(self, value: impl Into<Value>, message: impl Into<String>) -> Executed {
        match self {
            Outcome::Committed => Ok(value.into()),
            Outcome::NotExecuted { code } => {
                Err(Failure::NotExecuted { code: Some(code), message: message.into() })
            }
            Outcome::Unknown { code } => Err(Failure::Unknown { code: Some(code), message: message.into() }),
        }
    }
}
