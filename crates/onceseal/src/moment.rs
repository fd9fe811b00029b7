//! Moments of this process, by two clocks.

use std::time::{Duration, Instant};

use onceseal_store::clock::Clock;

/// A moment by the clock that threads wait by, which stands still while the
/// host sleeps, and by the store's boot clock, which does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: Instant,
    /// Microseconds of the boot clock.
    pub(crate) boot_us: i64,
}

impl Moment {
    pub(crate) fn now(clock: &dyn Clock) -> Moment {
        Moment { instant: Instant::now(), boot_us: clock.now().boot_us }
    }

    /// So much later.
    pub(crate) fn after(self, span: Duration) -> Moment {
        let us = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Moment { instant: self.instant + span, boot_us: self.boot_us.saturating_add(us) }
    }

    /// The earlier one.
    pub(crate) fn min(self, other: Moment) -> Moment {
        let (instant, boot_us) = (self.instant.min(other.instant), self.boot_us.min(other.boot_us));
        Moment { instant, boot_us }
    }

    /// Whether either clock is past it.
    pub(crate) fn is_over(self, clock: &dyn Clock) -> bool {
        let now = Moment::now(clock);
        now.instant > self.instant || now.boot_us > self.boot_us
    }
}
