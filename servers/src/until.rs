//! Waiting for what comes soon: short looks, and a deadline.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until a look finds something.
///
/// # Panics
/// If it found nothing for a minute.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited a minute: {what}");
        sleep(Duration::from_millis(3));
    }
}
