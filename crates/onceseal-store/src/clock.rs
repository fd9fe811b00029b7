//! Two clocks: the wall's, which people set, and the boot clock, which only
//! runs. Where they part, the wall clock jumped, and times are not to be
//! trusted until somebody says so.

use std::sync::{Mutex, PoisonError};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The wall clock may leave the boot clock by this much since opening: one
/// hour, in microseconds. More than any correction of a clock that runs.
pub const JUMP_MAX_US: i64 = 60 * 60 * 1_000_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// UTC microseconds since 1970.
    pub wall_us: i64,
    /// Microseconds since the host started, its sleep included.
    pub boot_us: i64,
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// Both clocks now.
    fn now(&self) -> Reading;

    /// Both clocks, where a database's stands in for the wall's: its hosts may differ
    /// in theirs. Clocks that are moved by hand are asked themselves.
    fn of_database(&self, wall_us: i64) -> Reading {
        Reading { wall_us, ..self.now() }
    }
}

/// The host's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Reading {
        // Only Linux has a clock of this name; elsewhere the monotonic clock
        // counts sleep too (macOS: clock_gettime(3)).
        #[cfg(target_os = "linux")]
        const BOOT: ClockId = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        const BOOT: ClockId = ClockId::Monotonic;
        Reading {
            wall_us: microseconds(clock_gettime(ClockId::Realtime)),
            boot_us: microseconds(clock_gettime(BOOT)),
        }
    }
}

fn microseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
}

/// Clocks that stand still until they are moved: for tests and simulation.
#[derive(Debug)]
pub struct ManualClock(Mutex<Reading>);

impl ManualClock {
    /// Clocks that show this.
    #[must_use]
    pub fn new(reading: Reading) -> ManualClock {
        ManualClock(Mutex::new(reading))
    }

    /// Lets time pass: both clocks move by as many microseconds.
    pub fn advance(&self, us: i64) {
        self.change(|reading| {
            reading.wall_us += us;
            reading.boot_us += us;
        });
    }

    /// Sets the wall clock forward, or back, by as many microseconds.
    pub fn step_wall(&self, us: i64) {
        self.change(|reading| reading.wall_us += us);
    }

    fn change(&self, change: impl FnOnce(&mut Reading)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Reading {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_database(&self, _wall_us: i64) -> Reading {
        self.now()
    }
}

/// `clock_jump`: the wall clock left the boot clock by more than
/// [`JUMP_MAX_US`] since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the wall clock moved by {} s against the time that passed; check it, then start this program again",
    .by_us / 1_000_000
)]
pub struct ClockJump {
    /// By how much, in microseconds: positive if the wall clock is ahead.
    pub by_us: i64,
}

impl ClockJump {
    /// The stable name of the refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "clock_jump"
    }
}

/// Notices when the wall clock jumps.
///
/// Once it did, every later reading is refused, although the clock may be
/// right again: what was promised meanwhile was promised by a wrong clock.
#[derive(Debug)]
pub struct ClockWatch {
    opened: Reading,
    jumped: Option<ClockJump>,
}

impl ClockWatch {
    /// Watches from this reading on.
    #[must_use]
    pub fn new(opened: Reading) -> ClockWatch {
        ClockWatch { opened, jumped: None }
    }

    /// The wall time of a reading, if the clock never jumped.
    ///
    /// # Errors
    /// The first jump, until the watch is made anew or [`accept`](Self::accept)ed.
    pub fn check(&mut self, reading: Reading) -> Result<i64, ClockJump> {
        if let Some(jump) = self.jumped {
            return Err(jump);
        }
        let wall = reading.wall_us.saturating_sub(self.opened.wall_us);
        let boot = reading.boot_us.saturating_sub(self.opened.boot_us);
        let by_us = wall.saturating_sub(boot);
        if by_us.saturating_abs() > JUMP_MAX_US {
            let jump = ClockJump { by_us };
            self.jumped = Some(jump);
            return Err(jump);
        }
        Ok(reading.wall_us)
    }

    /// Takes the clocks as right from this reading on.
    pub fn accept(&mut self, reading: Reading) {
        *self = ClockWatch::new(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = JUMP_MAX_US;
    const START: Reading = Reading { wall_us: 1_700_000_000_000_000, boot_us: 5_000_000 };

    fn watched() -> (ManualClock, ClockWatch) {
        (ManualClock::new(START), ClockWatch::new(START))
    }

    #[test]
    fn time_that_passes_is_no_jump_however_long() {
        let (clock, mut watch) = watched();
        clock.advance(24 * 365 * HOUR);
        assert_eq!(watch.check(clock.now()), Ok(START.wall_us + 24 * 365 * HOUR));
    }

    #[test]
    fn the_wall_clock_may_leave_by_an_hour_and_no_more_in_either_direction() {
        for direction in [1, -1] {
            let (clock, mut watch) = watched();
            clock.advance(7);
            clock.step_wall(direction * HOUR);
            assert_eq!(watch.check(clock.now()), Ok(START.wall_us + 7 + direction * HOUR));
            clock.step_wall(direction);
            let jump = ClockJump { by_us: direction * (HOUR + 1) };
            assert_eq!(watch.check(clock.now()), Err(jump));
            assert_eq!(jump.code(), "clock_jump");
        }
    }

    #[test]
    fn small_steps_add_up_since_opening() {
        let (clock, mut watch) = watched();
        for _ in 0..4 {
            clock.step_wall(HOUR / 4);
            assert!(watch.check(clock.now()).is_ok());
        }
        clock.step_wall(1);
        assert!(watch.check(clock.now()).is_err());
    }

    #[test]
    fn a_jump_is_refused_until_it_is_accepted_even_if_the_clock_comes_back() {
        let (clock, mut watch) = watched();
        clock.step_wall(2 * HOUR);
        let jump = watch.check(clock.now());
        assert_eq!(jump, Err(ClockJump { by_us: 2 * HOUR }));
        clock.step_wall(-2 * HOUR);
        assert_eq!(watch.check(clock.now()), jump);
        watch.accept(clock.now());
        assert_eq!(watch.check(clock.now()), Ok(START.wall_us));
    }

    #[test]
    fn p08_what_helps_after_a_jump_is_named_and_nothing_that_another_process_does() {
        // Each process watches on its own, from when it opened the store.
        let (clock, mut running) = watched();
        clock.step_wall(2 * HOUR);
        let jump = running.check(clock.now()).expect_err("a jump");
        assert!(ClockWatch::new(clock.now()).check(clock.now()).is_ok(), "another one sees none");
        assert_eq!(running.check(clock.now()), Err(jump), "which does not help this one");
        let sentence = jump.to_string();
        assert!(sentence.contains("moved by 7200 s"), "{sentence}");
        assert!(sentence.ends_with("start this program again"), "{sentence}");
    }

    #[test]
    fn absurd_readings_are_jumps_not_overflows() {
        let mut watch = ClockWatch::new(Reading { wall_us: i64::MIN, boot_us: i64::MAX });
        assert!(watch.check(Reading { wall_us: i64::MAX, boot_us: i64::MIN }).is_err());
    }

    #[test]
    fn the_host_says_both_times() {
        let (first, second) = (SystemClock.now(), SystemClock.now());
        assert!(first.wall_us > START.wall_us, "it is after 2023");
        assert!(first.boot_us > 0 && second.boot_us >= first.boot_us);
        assert!(ClockWatch::new(first).check(second).is_ok());
    }
}
