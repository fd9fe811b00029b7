//! What executors return.

use onceseal_core::effect::RemoteReceipt;
use onceseal_core::json::Value;

use crate::secrets::Secrets;

/// What an executor returns.
pub type Executed = Result<Value, Failure>;

/// What a tool's handler returns.
pub type Performed = Result<Done, Failure>;

/// It was done: what the remote returned, and what it calls what it did.
///
/// ```
/// use onceseal::Done;
/// use onceseal::core::json::Value;
///
/// let plain: Done = Value::from("ok").into();
/// let proven = plain.clone().receipt("re_1").request("req_7");
/// assert_eq!(proven.remote.receipt_id.as_deref(), Some("re_1"));
/// assert_eq!(plain.remote, onceseal::core::effect::RemoteReceipt::NONE);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The result.
    pub value: Value,
    /// The remote's receipt, its name of the request, the state of the resource
    /// that resulted, and when it saw that. A receipt that proves another
    /// operation of the tool makes the outcome unknown.
    pub remote: RemoteReceipt,
}

impl Done {
    /// Names the remote's receipt.
    #[must_use]
    pub fn receipt(mut self, id: impl Into<String>) -> Done {
        self.remote.receipt_id = Some(id.into());
        self
    }

    /// Names the remote's request.
    #[must_use]
    pub fn request(mut self, id: impl Into<String>) -> Done {
        self.remote.request_id = Some(id.into());
        self
    }
}

impl From<Value> for Done {
    fn from(value: Value) -> Done {
        Done { value, remote: RemoteReceipt::NONE }
    }
}

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
