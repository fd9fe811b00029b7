//! Named points at which a test may stop, fail or kill the process. Without
//! the feature `fault` a point is nothing.

use crate::error::StoreError;

/// Says that this point has been reached.
///
/// # Errors
/// What a test asked for.
#[cfg(not(feature = "fault"))]
#[inline]
pub(crate) fn reach(_point: &str) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(feature = "fault")]
pub use armed::{Action, arm, disarm, reach};

#[cfg(feature = "fault")]
mod armed {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use onceseal_core::code::Code;

    use super::StoreError;

    /// What happens at a point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Action {
        /// The process ends at once, as by SIGKILL.
        Kill,
        /// The operation fails.
        Fail,
        /// The thread panics.
        Panic,
    }

    static ARMED: Mutex<BTreeMap<String, (u64, Action)>> = Mutex::new(BTreeMap::new());
    /// Whether anything was ever armed: nobody else pays for a look.
    static EVER: AtomicBool = AtomicBool::new(false);

    fn armed() -> MutexGuard<'static, BTreeMap<String, (u64, Action)>> {
        ARMED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms a point: the action happens when it is reached for the `nth` time
    /// from now, counted from 1.
    pub fn arm(point: &str, nth: u64, action: Action) {
        armed().insert(point.to_owned(), (nth.max(1), action));
        EVER.store(true, Ordering::Release);
    }

    /// Disarms every point.
    pub fn disarm() {
        armed().clear();
    }

    /// Says that this point has been reached; for points of whoever is built on
    /// the store.
    ///
    /// # Errors
    /// What a test asked for.
    pub fn reach(point: &str) -> Result<(), StoreError> {
        if !EVER.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut armed = armed();
        let Some((left, action)) = armed.get_mut(point) else { return Ok(()) };
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        let action = *action;
        armed.remove(point);
        match action {
            Action::Kill => {
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                Ok(())
            }
            Action::Fail => Err(StoreError::with(Code::StoreFailed, "a test asked for it")),
            Action::Panic => panic!("a test asked for it"),
        }
    }
}
