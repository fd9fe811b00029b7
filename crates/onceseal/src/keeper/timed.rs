//! Tasks with their times, for a thread that does them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::PAUSES;

/// A wait without anything to do; a change ends it.
const IDLE: Duration = Duration::from_secs(3_600);

/// When a task is to be done, and the pause before it is tried again.
pub(super) type Time = (Instant, Duration);

struct Work<T> {
    tasks: BTreeMap<u64, (Time, T)>,
    due: BTreeSet<(Instant, u64)>,
    next: u64,
    /// Until when the thread sleeps: what is due later need not wake it, and most
    /// of what is added is gone by then.
    wakes: Instant,
    stopped: bool,
}

/// Tasks by number.
pub(super) struct Timed<T> {
    work: Mutex<Work<T>>,
    changed: Condvar,
}

impl<T> Default for Timed<T> {
    fn default() -> Timed<T> {
        let wakes = Instant::now();
        let work = Work { tasks: BTreeMap::new(), due: BTreeSet::new(), next: 0, wakes, stopped: false };
        Timed { work: Mutex::new(work), changed: Condvar::new() }
    }
}

impl<T> Timed<T> {
    fn work(&self) -> MutexGuard<'_, Work<T>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task, and returns its number.
    pub(super) fn add(&self, at: Instant, task: T) -> u64 {
        self.add_with((at, PAUSES.0), task)
    }

    /// As [`Timed::add`], with the pause before it is tried again.
    pub(super) fn add_with(&self, time: Time, task: T) -> u64 {
        let mut work = self.work();
        let number = work.next;
        work.next += 1;
        work.put(number, time, task);
        let sooner = time.0 < work.wakes;
        drop(work);
        if sooner {
            self.changed.notify_one();
        }
        number
    }

    /// Takes a task out, if it is still there.
    pub(super) fn take(&self, number: u64) -> Option<(Duration, T)> {
        self.work().take(number)
    }

    /// Looks at a task, if it is still there.
    pub(super) fn look<R>(&self, number: u64, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.work().tasks.get(&number).map(|(_, task)| look(task))
    }

    /// Gives a task that is still there another time, or takes it out.
    pub(super) fn again(&self, number: u64, when: impl FnOnce(Duration, &mut T) -> Option<Time>) {
        let mut work = self.work();
        if let Some((pause, mut task)) = work.take(number)
            && let Some(time) = when(pause, &mut task)
        {
            work.put(number, time, task);
        }
    }

    /// Waits until something is due; once stopped, everything is, and whether.
    pub(super) fn due(&self) -> (Vec<u64>, bool) {
        let mut work = self.work();
        loop {
            if work.stopped {
                return (work.tasks.keys().copied().collect(), true);
            }
            let now = Instant::now();
            let due: Vec<u64> =
                work.due.iter().take_while(|(at, _)| *at <= now).map(|(_, number)| *number).collect();
            if !due.is_empty() {
                return (due, false);
            }
            let wait = work.due.first().map_or(IDLE, |(at, _)| *at - now);
            work.wakes = now + wait;
            work = self.changed.wait_timeout(work, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn stop(&self) {
        self.work().stopped = true;
        self.changed.notify_all();
    }
}

impl<T> Work<T> {
    fn put(&mut self, number: u64, time: Time, task: T) {
        self.tasks.insert(number, (time, task));
        self.due.insert((time.0, number));
    }

    fn take(&mut self, number: u64) -> Option<(Duration, T)> {
        let ((at, pause), task) = self.tasks.remove(&number)?;
        self.due.remove(&(at, number));
        Some((pause, task))
    }
}
