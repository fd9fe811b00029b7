//! The signals that reach this process while the program runs.
//!
//! Invariant: they are listened to from before the program starts, so none
//! about it is missed.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// A child of this process changed its state.
    Child,
    /// To be passed on.
    Forward(Signal),
}

/// The listeners.
pub(super) struct Signals {
    child: unix::Signal,
    interrupt: unix::Signal,
    terminate: unix::Signal,
    suspend: unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            suspend: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    /// The next signal. Losing the future loses no signal.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            tokio::select! {
                _ = self.child.recv() => return Heard::Child,
                _ = self.interrupt.recv() => return Heard::Forward(Signal::INT),
                _ = self.terminate.recv() => return Heard::Forward(Signal::TERM),
                // An attempt is not suspended: it holds a lease.
                _ = self.suspend.recv() => {}
            }
        }
    }
}
