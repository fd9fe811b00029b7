//! Runs: long jobs that survive their process.
//!
//! A run is a stream of its own, and goes through the states of a definition,
//! which is data. Which moves are legal, what interruption does and what an
//! operator is offered all come from that data, and from nowhere else.

mod definition;
mod delivery;
pub(crate) mod document;
pub mod event;
mod kept;
mod moving;
pub mod name;
mod request;
mod row;
mod start;

pub use definition::{Definition, Gate, Proving, State};
pub use delivery::{
    ACTION as BIND_DELIVERY, BindDeliveries, Delivery, DeliveryPrivate, DeliveryRow, bound_to,
    evolve as evolve_delivery,
};
pub use document::DocumentError;
pub use kept::{DefinitionRow, evolve as evolve_definition};
pub use moving::{Towards, Transition};
pub use request::{RequestPrivate, RequestRow, evolve as evolve_request};
pub use row::{GateNow, Life, RunPrivate, RunRow, Standing, evolve, former_range, living_key};
pub use start::{BindChange, StartRun, Subject, lookup};

pub(crate) use delivery::{bind as bind_deliveries, reads as delivery_reads};
pub(crate) use moving::{INTERRUPTED, interrupt, met, reads as moving_reads, transition, unliving};
pub(crate) use request::{Request, run as known_run};
pub(crate) use start::{bind_change, start, start_reads};
