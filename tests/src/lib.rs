//! Tests of Onceseal as a whole. What they share stands here.

pub mod armed;
pub mod bench;
pub mod chance;
pub mod history;
pub mod job;
pub mod nemesis;
pub mod outage;
pub mod place;
pub mod program;
pub mod promise;
pub mod refold;
pub mod shop;
pub mod vfs;
pub mod workers;
pub mod workload;
