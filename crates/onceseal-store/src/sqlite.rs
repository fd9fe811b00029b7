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
pub(crate) use writer::SqliteBackend;
