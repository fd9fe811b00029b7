//! The store for several hosts: PostgreSQL.
//!
//! Who decides holds advisory locks on everything its verdict may depend on, to
//! the end of its transaction: locks first, then the clock, then the rows, each
//! in a statement of its own, since a statement sees what was committed when it
//! began. Nothing depends on the session, so that a pooler may stand between.

mod announcing;
mod clock;
mod columns;
mod connect;
mod dialling;
mod driver;
mod failover;
mod failure;
mod hinting;
mod link;
mod listening;
mod lock;
mod numbers;
mod patience;
mod pool;
mod reading;
mod rights;
mod rows;
mod schema;
mod sequencer;
mod server;
mod statements;
mod sweeping;
mod tenant;
mod transaction;
mod transfer;
mod url;
mod writer;

use crate::error::StoreError;

pub(crate) use clock::DatabaseClock;
pub(crate) use connect::Connector;
pub use failover::Failover;
pub(crate) use pool::Pool;
pub use server::{Connections, LockRoom, SchemaState, Server, ServerState, Skew, Standby};
pub(crate) use tenant::Founded;
pub use transfer::{Halted, Moved, arrived, put_aside_before, transfer};
pub use url::{PostgresUrl, UrlError};
pub(crate) use writer::PostgresBackend;

/// Brings the schema at this address to this program's, and makes it if it is not
/// there. Two who do so at once are as good as one. Returns the version that was
/// found, 0 for none, and the one that is there now.
///
/// # Errors
/// The server cannot be used, or the schema is another program's or newer.
pub fn migrate(url: PostgresUrl) -> Result<(i64, i64), StoreError> {
    Connector::new(url)?.migrate()
}

/// Connections that wait for locks, beside the one that never does.
pub(crate) const LANES: usize = 3;
