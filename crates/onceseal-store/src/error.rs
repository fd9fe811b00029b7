//! What a store itself can fail with. What a rule refuses is a reply instead.

use onceseal_core::code::Code;
use onceseal_core::pack::Corrupt;

use crate::place::PlaceError;

/// A failure of the store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{sentence}{}", .detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default())]
pub struct StoreError {
    code: Code,
    sentence: &'static str,
    detail: Option<String>,
}

impl StoreError {
    /// A failure with this code, told in the code's words.
    #[must_use]
    pub const fn new(code: Code) -> StoreError {
        StoreError { code, sentence: code.sentence(), detail: None }
    }

    /// A failure with this code and what the operating system or database said
    /// of it, which never has a value or a path in it.
    #[must_use]
    pub fn with(code: Code, detail: impl Into<String>) -> StoreError {
        StoreError { code, sentence: code.sentence(), detail: Some(detail.into()) }
    }

    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }
}

impl From<Corrupt> for StoreError {
    fn from(corrupt: Corrupt) -> StoreError {
        StoreError::with(Code::Corrupt, corrupt.to_string())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let code = match error.sqlite_error_code() {
            // A column does not hold what we write there.
            None if is_unreadable(&error) => Code::Corrupt,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Code::StoreBusy,
            Some(rusqlite::ErrorCode::NotADatabase) => Code::StoreForeign,
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Code::Corrupt,
            _ => Code::StoreFailed,
        };
        // SQLite's own name of the failure: messages may quote SQL or paths.
        let detail =
            error.sqlite_error().map_or_else(|| "database".to_owned(), |error| format!("{:?}", error.code));
        StoreError::with(code, detail)
    }
}

const fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    matches!(
        error,
        E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..)
            | E::Utf8Error(..)
    )
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::TimedOut => StoreError::new(Code::StoreBusy),
            kind => StoreError::with(Code::StoreFailed, kind.to_string()),
        }
    }
}

impl From<PlaceError> for StoreError {
    fn from(error: PlaceError) -> StoreError {
        StoreError::with(Code::StoreFailed, error.to_string())
    }
}
