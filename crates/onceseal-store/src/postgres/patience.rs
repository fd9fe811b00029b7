//! How long a server that is gone is waited for.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// So long something is tried again.
const BOUND: Duration = Duration::from_secs(10);
/// Before further attempts, at first and at most: a server that is gone tells nobody
/// when it is back. One that only lost the connection is there at once.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// What is left of the time of the attempts that follow on one that failed. It begins
/// with the first failure: a host that is cut off is noticed only after a while.
pub(super) struct Patience {
    until: Option<Instant>,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience { until: None, pause: Duration::ZERO }
    }

    /// Whether there is time for another attempt.
    pub(super) fn is_left(&mut self) -> bool {
        let now = Instant::now();
        now < *self.until.get_or_insert(now + BOUND)
    }

    /// Before the next attempt: the first comes at once.
    pub(super) fn pause(&mut self) {
        sleep(self.pause);
        self.pause = (self.pause * 2).clamp(PAUSES.0, PAUSES.1);
    }
}
