//! The engine as its users meet it, on stores in memory and in SQLite.

mod approvals;
mod blocking;
mod clocks;
#[cfg(feature = "fault")]
mod deliveries;
mod duplicates;
mod endpoints;
mod executor;
#[cfg(feature = "fault")]
mod faults;
mod handoffs;
mod journal;
#[cfg(feature = "fault")]
mod leases;
mod lists;
mod marks;
#[cfg(feature = "fault")]
mod operations;
mod packages;
#[cfg(feature = "fault")]
mod policies;
mod processes;
mod receipts;
mod results;
mod routes;
mod run_leases;
mod runs;
mod secrets;
mod support;
mod sweeping;
#[cfg(feature = "fault")]
mod tasks;
mod unknown;
#[cfg(feature = "fault")]
mod unwritten;
mod user_cases;
mod waits;
