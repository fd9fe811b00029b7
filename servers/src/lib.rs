//! Real servers for tests: started on loopback in a directory of their own,
//! stopped by pid. Linux only, since `/proc` tells which processes are whose.
//!
//! Whatever cannot be had panics and says why: these are tools of tests. What
//! was started ends with its value, and by a watchdog of its own when the
//! process that started it is killed.

mod account;
mod bouncer;
mod chance;
mod daemon;
mod host;
mod postgres;
mod program;
mod psql;
mod shared;
mod until;
mod watchdog;
mod wire;

pub use bouncer::Bouncer;
pub use host::{Host, Network};
pub use postgres::{Postgres, Setup, Shutdown, TEMPLATE, template};
pub use shared::{Database, SHARED, Shared, server};
pub use until::until;
pub use wire::{Direction, Wire};
