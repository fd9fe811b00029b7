//! A gate in front of a backend: while it is shut the writer waits, and what is
//! submitted gathers into one batch.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Fault, Work};

#[derive(Debug, Default)]
struct Inner {
    shut: bool,
    waiting: bool,
}

/// The gate; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<Inner>, Condvar)>);

impl Gate {
    /// The backend behind this gate.
    #[must_use]
    pub fn before(&self, backend: Box<dyn Backend>) -> Box<dyn Backend> {
        Box::new(Gated { gate: self.clone(), backend })
    }

    /// From now on the writer waits before its next batch.
    pub fn shut(&self) {
        self.inner().shut = true;
    }

    /// Waits until the writer stands before the gate.
    pub fn await_writer(&self) {
        let mut inner = self.inner();
        while !inner.waiting {
            inner = self.0.1.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the writer go on.
    pub fn open(&self) {
        self.inner().shut = false;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut inner = self.inner();
        while inner.shut {
            inner.waiting = true;
            self.0.1.notify_all();
            inner = self.0.1.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.waiting = false;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Gated {
    gate: Gate,
    backend: Box<dyn Backend>,
}

impl Backend for Gated {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.gate.pass();
        self.backend.batch(work)
    }

    fn accept_clock(&mut self) {
        self.backend.accept_clock();
    }
}
