//! The suite that every store passes: one promise a case, told in its name.
//!
//! A case knows a store only by what the store offers to everybody. It must
//! fail where the promise is broken: the tests of this crate hold for each case
//! a rule or backend that is broken so that this case catches it.

mod approvals;
mod attempts;
mod batches;
mod consuming;
mod contention;
mod deliveries;
mod effects;
mod gate;
mod handoffs;
mod journal;
mod leases;
mod lifecycle;
mod lists;
mod operations;
mod outcomes;
mod own;
mod policies;
mod reading;
mod receipts;
mod routes;
mod runs;
pub mod tamper;
mod tasks;
mod world;

use std::fmt;
use std::path::PathBuf;

use crate::error::StoreError;
use crate::parts::{Options, Parts};

pub use gate::Gate;

/// What is put to the test.
pub trait Subject: Sync {
    /// The parts of the store with these options. Of a durable subject they are
    /// the same store's whenever they are asked for, and tenants share it.
    ///
    /// # Errors
    /// The store cannot be opened.
    fn parts(&self, options: &Options) -> Result<Parts, StoreError>;

    /// Whether what was acknowledged is there when it is opened again.
    fn is_durable(&self) -> bool;
}

/// Stores in memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct InMemory;

impl Subject for InMemory {
    fn parts(&self, options: &Options) -> Result<Parts, StoreError> {
        Parts::memory(options)
    }

    fn is_durable(&self) -> bool {
        false
    }
}

/// The store in one SQLite file, which exists and is empty.
#[derive(Debug, Clone)]
pub struct InFile(pub PathBuf);

impl Subject for InFile {
    fn parts(&self, options: &Options) -> Result<Parts, StoreError> {
        Parts::sqlite(self.0.clone(), options)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// The store in one schema of PostgreSQL, which is not there yet.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone)]
pub struct OnServer(pub crate::PostgresUrl);

#[cfg(feature = "postgres")]
impl Subject for OnServer {
    fn parts(&self, options: &Options) -> Result<Parts, StoreError> {
        Parts::postgres(self.0.clone(), options)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// Why a case failed: the promise that does not hold, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    pub(super) fn new(what: impl fmt::Display) -> Failure {
        Failure(what.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure(format!("the store failed: {error}"))
    }
}

/// What a case comes to.
pub type Verdict = Result<(), Failure>;

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The part of the suite it belongs to.
    pub group: &'static str,
    /// The promise, in words.
    pub name: &'static str,
    /// Whether it says something of durable subjects only.
    pub durable: bool,
    check: fn(&dyn Subject) -> Verdict,
}

impl Case {
    /// Puts a new and empty subject to the test.
    ///
    /// # Errors
    /// The promise does not hold.
    pub fn run(&self, subject: &dyn Subject) -> Verdict {
        if self.durable && !subject.is_durable() {
            return Ok(());
        }
        (self.check)(subject)
    }
}

/// Fails the case unless this holds.
macro_rules! ensure {
    ($holds:expr, $($promise:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Failure::new(format_args!($($promise)+)));
        }
    };
}

/// Fails the case unless what was found is what was expected.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($promise:tt)+) => {
        match (&$found, &$expected) {
            (found, expected) if *found == *expected => {}
            (found, expected) => {
                return Err($crate::conformance::Failure::new(format_args!(
                    "{}: found {found:?}, expected {expected:?}",
                    format_args!($($promise)+)
                )));
            }
        }
    };
}

/// Fails the case unless the value has this shape; gives what is named in it.
macro_rules! take {
    ($found:expr, $shape:pat $(if $and:expr)? => $value:expr, $($promise:tt)+) => {
        match $found {
            $shape $(if $and)? => $value,
            found => {
                return Err($crate::conformance::Failure::new(format_args!(
                    "{}: found {found:?}",
                    format_args!($($promise)+)
                )));
            }
        }
    };
}

/// The cases of one module.
macro_rules! suite {
    ($group:literal: $($name:ident)* $(; durable: $($lasting:ident)*)?) => {
        pub(super) const CASES: &[$crate::conformance::Case] = &[
            $($crate::conformance::Case {
                group: $group, name: stringify!($name), durable: false, check: $name,
            },)*
            $($($crate::conformance::Case {
                group: $group, name: stringify!($lasting), durable: true, check: $lasting,
            },)*)?
        ];
    };
}

use {ensure, ensure_eq, suite, take};

/// Every case.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        effects::CASES,
        attempts::CASES,
        outcomes::CASES,
        operations::CASES,
        routes::CASES,
        runs::CASES,
        leases::CASES,
        own::CASES,
        deliveries::CASES,
        tasks::CASES,
        handoffs::CASES,
        approvals::CASES,
        consuming::CASES,
        policies::CASES,
        receipts::CASES,
        reading::CASES,
        lists::CASES,
        journal::CASES,
        batches::CASES,
        lifecycle::CASES,
        contention::CASES,
    ]
    .concat()
}
