//! The embedded store: one SQLite file, write-ahead log, synchronous=FULL.
//!
//! One connection writes, one thread at a time; a few read. The file is
//! never opened by anything but SQLite, since closing it would drop SQLite's
//! locks.

mod identity;
mod open;
mod pool;
mod recent;
mod rows;
mod schema;
mod statements;
mod transaction;
mod writer;

pub(crate) use open::{Connector, Founded};
pub(crate) use pool::Pool;
pub use schema::{APPLICATION_ID, SCHEMA_VERSION};

/// Refuses a file that is not of this program's schema.
#[cfg(feature = "postgres")]
pub(crate) fn require_current(connection: &rusqlite::Connection) -> Result<(), crate::error::StoreError> {
    use onceseal_core::code::Code;
    match schema::is_current(connection)? {
        true => Ok(()),
        false => Err(crate::error::StoreError::with(
            Code::StoreForeign,
            "the file is of an older schema; act on it once with this program, which brings it to its own",
        )),
    }
}
pub(crate) use writer::SqliteBackend;
