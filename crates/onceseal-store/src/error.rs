//! What a store itself can fail with. What a rule refuses is a reply instead.

use std::io::ErrorKind;

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

    /// What the operating system or database said of it.
    #[cfg(feature = "postgres")]
    pub(crate) fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.sentence)
    }

    /// Whether the store's server is not there for now, lets nobody in, or has too much to
    /// do: whoever stays goes on once it is back.
    #[must_use]
    pub const fn is_away(&self) -> bool {
        matches!(self.code, Code::StoreUnreachable | Code::StoreRefused | Code::StoreBusy)
    }

    /// Whether the same may be asked again, and answered, once whatever is in the way
    /// has passed.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(
            self.code,
            Code::CommitUnknown
                | Code::StoreBusy
                | Code::StoreFailed
                | Code::StoreUnreachable
                | Code::StoreRefused
        )
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
        let detail = error.sqlite_error().map_or_else(|| "database".to_owned(), name);
        StoreError::with(code, detail)
    }
}

/// What failed, in words where a person can do something about it.
fn name(error: &rusqlite::ffi::Error) -> String {
    use rusqlite::ffi;
    let words = match (error.code, error.extended_code) {
        (rusqlite::ErrorCode::DiskFull, _) => FULL,
        (_, ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMMAP) => {
            "no room for the index of the log, as on a full disk"
        }
        (_, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE) => "it cannot be written",
        (_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => "it cannot be written to disk",
        (_, ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ) => "it cannot be read",
        (code, _) => return format!("{code:?}"),
    };
    words.to_owned()
}

const FULL: &str = "the disk is full";

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
            ErrorKind::TimedOut => StoreError::new(Code::StoreBusy),
            ErrorKind::StorageFull => StoreError::with(Code::StoreFailed, FULL),
            kind => StoreError::with(Code::StoreFailed, kind.to_string()),
        }
    }
}

impl From<PlaceError> for StoreError {
    fn from(error: PlaceError) -> StoreError {
        StoreError::with(Code::StoreFailed, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_in_words() {
        for (extended, words) in [
            (rusqlite::ffi::SQLITE_FULL, FULL),
            (rusqlite::ffi::SQLITE_IOERR_SHMSIZE, "as on a full disk"),
            (rusqlite::ffi::SQLITE_IOERR_WRITE, "cannot be written"),
        ] {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(extended), None);
            let told = StoreError::from(error);
            assert_eq!(told.code(), Code::StoreFailed);
            assert!(told.to_string().contains(words), "{told}");
        }
        let told = StoreError::from(std::io::Error::from(ErrorKind::StorageFull));
        assert!(told.to_string().contains(FULL), "{told}");
    }
}
