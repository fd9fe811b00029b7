//! Hints that something was committed elsewhere: whoever waits looks at once
//! instead of at its next turn. Nobody may rely on one.

use std::time::Duration;

use tokio::sync::watch;

/// Hears of commits, and tells of them. A store that hears of none gives no hint.
pub struct Hints {
    heard: watch::Sender<u64>,
    wire: Option<Box<dyn Wire>>,
}

/// What hints come and go by.
pub(crate) trait Wire: Send + Sync {
    /// Begins to hear, if it has not.
    fn listen(&self);
    /// Tells of what was committed last, and ends.
    fn close(&self);
}

impl Hints {
    /// None, ever.
    #[must_use]
    pub fn none() -> Hints {
        Hints { heard: watch::Sender::new(0), wire: None }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn new(heard: watch::Sender<u64>, wire: Box<dyn Wire>) -> Hints {
        Hints { heard, wire: Some(wire) }
    }

    /// How many there have been. Whoever waits asks before it looks, so that it misses
    /// none in between.
    #[must_use]
    pub fn count(&self) -> u64 {
        if let Some(wire) = &self.wire {
            wire.listen();
        }
        *self.heard.borrow()
    }

    /// Waits until there have been more than so many: for ever, where there are none.
    pub async fn beyond(&self, count: u64) {
        if self.count() > count {
            return;
        }
        // Its sender is here, so it does not end without one.
        let _ = self.heard.subscribe().wait_for(|heard| *heard > count).await;
    }

    /// As [`Hints::beyond`], at most so long, for a thread that may block. Not for
    /// async code.
    pub fn wait(&self, count: u64, at_most: Duration) {
        // Either way it is time to look.
        let _ = crate::wait::wait_for(at_most, self.beyond(count));
    }

    pub(crate) fn close(&self) {
        if let Some(wire) = &self.wire {
            wire.close();
        }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.close();
    }
}
