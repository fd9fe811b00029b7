//! Where Onceseal keeps what it knows.
//!
//! Nothing here decides: the rules are `onceseal-core`'s, this crate moves
//! their bytes. [`Store`] takes commands and gives snapshots; behind it stand
//! the batch executor and the backends.

pub mod backend;
pub mod clock;
mod columns;
#[cfg(feature = "conformance")]
pub mod conformance;
mod desk;
mod error;
pub mod executor;
pub mod fault;
mod hints;
mod lanes;
pub mod mark;
mod memory;
mod own;
mod parts;
pub mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
pub mod raw;
pub mod read;
mod sqlite;
mod store;
mod sweeps;
mod time;
pub mod turnstile;
mod wait;
mod writer;
pub mod yardstick;

pub use error::StoreError;
pub use hints::Hints;
pub use own::{OWN_BYTES, OWN_TIME, OwnChange, OwnError, OwnRows};
pub use parts::{Options, Parts};
#[cfg(feature = "postgres")]
pub use postgres::{
    Connections, Failover, Halted, LockRoom, Moved, PostgresUrl, SchemaState, Server, ServerState, Skew,
    Standby, UrlError, arrived, migrate, put_aside_before, transfer,
};
pub use queue::Ticket;
pub use sqlite::{APPLICATION_ID, SCHEMA_VERSION};
pub use store::Store;
pub use sweeps::Sweeps;
