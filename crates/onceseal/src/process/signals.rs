//! The signals that reach this process while the program runs.
//!
//! Invariant: they are listened to from before the program starts, so none
//! about it is missed.

use std::future::poll_fn;
use std::io;
use std::sync::OnceLock;
use std::task::Poll;

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
    others: Vec<(Signal, unix::Signal)>,
}

/// What else ends a process that does not listen to it.
const OTHERS: [Signal; 5] = [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM];

/// Whether a signal with this number was ignored when this was first asked, as by
/// `nohup`; also where that cannot be known. Whoever listens to it undoes that, and the
/// programs that it starts are ended by it.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // Once somebody listens the system says no more what was before.
    static AT_FIRST: OnceLock<Option<u64>> = OnceLock::new();
    let mask = AT_FIRST.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

impl Signals {
    pub(super) fn listen(to_all: bool) -> io::Result<Self> {
        let mut others = Vec::new();
        for other in OTHERS.into_iter().filter(|other| to_all && !is_ignored(other.as_raw())) {
            others.push((other, signal(SignalKind::from_raw(other.as_raw()))?));
        }
        Ok(Self {
            others,
            child: signal(SignalKind::child())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            suspend: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    /// The next signal. Losing the future loses no signal.
    pub(super) async fn next(&mut self) -> Heard {
        let others = &mut self.others;
        loop {
            let other = poll_fn(|context| {
                let heard = others
                    .iter_mut()
                    .find_map(|(signal, of)| of.poll_recv(context).is_ready().then_some(*signal));
                heard.map_or(Poll::Pending, Poll::Ready)
            });
            tokio::select! {
                _ = self.child.recv() => return Heard::Child,
                _ = self.interrupt.recv() => return Heard::Forward(Signal::INT),
                _ = self.terminate.recv() => return Heard::Forward(Signal::TERM),
                signal = other => return Heard::Forward(signal),
                // An attempt is not suspended: it holds a lease.
                _ = self.suspend.recv() => {}
            }
        }
    }
}
