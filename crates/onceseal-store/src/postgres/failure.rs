//! What can go wrong with a statement, by what is to be done about it.

use std::io::ErrorKind;

use onceseal_core::code::Code;
use tokio_postgres::error::SqlState;

use super::numbers::taken;
use crate::error::StoreError;
use crate::raw::Misshapen;

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Somebody else was in the way: the same again, on the same connection.
    Again(&'static str),
    /// What it was decided on had changed: the last word on who was first.
    Stale(Clash),
    /// A lock was waited for and not had.
    Locked,
    /// The server has no room for as many locks.
    Full,
    /// The connection is good for nothing more, and what became of a statement
    /// without an answer is not known.
    Lost(StoreError),
    /// It was answered, and nothing happened.
    Failed(StoreError),
}

/// What was in the way of what was to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// A row that was there already, or was not as it was read.
    Row,
    /// An event that was to be put into the log is in it.
    Placed,
    /// A number that the server gave is taken.
    Number,
}

impl Clash {
    /// By the constraint that was violated.
    fn of(constraint: Option<&str>) -> Clash {
        match constraint {
            Some("log_stream_sequence_key") => Clash::Placed,
            Some("streams_pkey" | "tenants_pkey" | "unsequenced_pkey") => Clash::Number,
            _ => Clash::Row,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Failed(error)
    }
}

const STANDBY: &str = "it is a standby, or takes no writes";

impl From<Misshapen> for Failure {
    fn from(misshapen: Misshapen) -> Failure {
        Failure::Failed(misshapen.into())
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        let Some(state) = error.code() else {
            // What the system says of the network has no secret in it; what else there
            // is may quote the address.
            let source = std::error::Error::source(&error);
            let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
            let detail = match io {
                None => "the connection was closed".to_owned(),
                // The driver's own answer, where none of the hosts takes writes.
                Some(io) if io.kind() == ErrorKind::PermissionDenied && io.raw_os_error().is_none() => {
                    STANDBY.to_owned()
                }
                Some(io) => io.kind().to_string(),
            };
            return Failure::Lost(unreachable(detail));
        };
        let failed = |code, what: &str| Failure::Failed(StoreError::with(code, what));
        if let Some(what) = closed_door(state.code()) {
            return failed(Code::StoreRefused, what);
        }
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE => Failure::Again("serialization failure"),
            SqlState::T_R_DEADLOCK_DETECTED => Failure::Again("deadlock"),
            SqlState::LOCK_NOT_AVAILABLE => Failure::Locked,
            SqlState::OUT_OF_MEMORY => Failure::Full,
            // A row was there already, or one was not as it was.
            SqlState::UNIQUE_VIOLATION => {
                Failure::Stale(Clash::of(error.as_db_error().and_then(|error| error.constraint())))
            }
            SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED => Failure::Failed(taken()),
            SqlState::QUERY_CANCELED => Failure::Again("it took the server too long"),
            // The second is what a standby answers to a transaction that is to write.
            SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::FEATURE_NOT_SUPPORTED => {
                Failure::Lost(unreachable(STANDBY))
            }
            SqlState::DISK_FULL => failed(Code::StoreFailed, "the server's disk is full"),
            SqlState::INSUFFICIENT_PRIVILEGE => {
                failed(Code::StoreFailed, "the role may not do this; `onceseal doctor` says what to grant")
            }
            SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::INVALID_SCHEMA_NAME => {
                failed(Code::StoreForeign, "its tables are not there any more")
            }
            // Of our own function.
            ref other if other.code() == "OS001" => Failure::Stale(Clash::Row),
            // 08 connection exception, 57P shutting down or starting up, 53300 too many
            // connections, 25P03 idle for too long in a transaction.
            ref other if is_lost(other.code()) => Failure::Lost(unreachable(words(other.code()))),
            ref other => failed(Code::StoreFailed, &format!("the server answered {}", other.code())),
        }
    }
}

/// What is wrong with who asks, and not with the server.
fn closed_door(state: &str) -> Option<&'static str> {
    Some(match state {
        "28P01" => "it does not take the password, or has no such role",
        "3D000" => "it has no such database",
        _ if state.starts_with("28") => {
            "it lets this role in from here not at all, or not so: see its pg_hba.conf, and whether it wants encryption"
        }
        _ => return None,
    })
}

fn is_lost(state: &str) -> bool {
    state.starts_with("08")
        || state.starts_with("57P")
        || matches!(state, "53300" | "25P03" | "25P04" | "XX000" | "58030")
}

fn words(state: &str) -> String {
    let what = match state {
        "57P01" | "57P02" => "it is shutting down",
        "57P03" => "it is starting up",
        "53300" => "it has no connection left",
        "25P03" => "a transaction was left open for too long",
        _ => return format!("it answered {state}"),
    };
    what.to_owned()
}

pub(super) fn unreachable(what: impl Into<String>) -> StoreError {
    StoreError::with(Code::StoreUnreachable, what)
}

impl Failure {
    /// The failure as whoever asked is told.
    pub(super) fn told(self) -> StoreError {
        match self {
            Failure::Again(what) => StoreError::with(Code::StoreBusy, what),
            Failure::Locked => StoreError::new(Code::StoreBusy),
            Failure::Full => StoreError::with(Code::StoreBusy, "the server has no room for more locks"),
            Failure::Stale(Clash::Row) => {
                StoreError::with(Code::Internal, "it was decided on a row that had changed")
            }
            Failure::Stale(Clash::Placed) => {
                StoreError::with(Code::Corrupt, "what waits for its place in the log is there already")
            }
            Failure::Stale(Clash::Number) => taken(),
            Failure::Lost(error) | Failure::Failed(error) => error,
        }
    }
}
