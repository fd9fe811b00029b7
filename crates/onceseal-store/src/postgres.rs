//! The store for several hosts: PostgreSQL.
//!
//! Who decides holds advisory locks on everything its verdict may depend on, to
//! the end of its transaction: locks first, then the clock, then the rows, each
//! in a statement of its own, since a statement sees what was committed when it
//! began. Nothing depends on the session, so that a pooler may stand between.

mod clock;
mod columns;
mod connect;
mod failure;
mod link;
mod lock;
mod pool;
mod reading;
mod schema;
mod sequencer;
mod statements;
mod tenant;
mod transaction;
mod url;
mod wait;
mod writer;

pub(crate) use clock::DatabaseClock;
pub(crate) use connect::Connector;
pub(crate) use pool::Pool;
pub(crate) use tenant::Founded;
pub use url::{PostgresUrl, UrlError};
pub(crate) use writer::PostgresBackend;

/// Connections that wait for locks, beside the one that never does.
pub(crate) const LANES: usize = 3;
