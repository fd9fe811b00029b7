//! What happens at the points, as a test asked for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceseal_store::StoreError;
use onceseal_store::clock::{ManualClock, Reading};

type Hook = Arc<dyn Fn() -> Result<(), StoreError> + Send + Sync>;

static HOOKS: Mutex<BTreeMap<String, Hook>> = Mutex::new(BTreeMap::new());
static TURN: Mutex<()> = Mutex::new(());
/// Whether anything was ever asked for: nobody else pays for a look.
static ARMED: AtomicBool = AtomicBool::new(false);

fn hooks() -> MutexGuard<'static, BTreeMap<String, Hook>> {
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does this each time the point is reached, where it is reached: it may block
/// that thread, change what it likes, or fail. Not for the store's own points.
///
/// ```
/// use onceseal::core::code::Code;
/// use onceseal::fault::{self, point};
/// use onceseal::store::StoreError;
///
/// let _alone = fault::alone();
/// // Every try to record an outcome fails, as on a full disk.
/// fault::on(point::BEFORE_SETTLE, || Err(StoreError::new(Code::StoreFailed)));
/// ```
pub fn on(point: &str, hook: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static) {
    hooks().insert(point.to_owned(), Arc::new(hook));
    ARMED.store(true, Ordering::Release);
}

/// Whoever reaches this point next stops there until it is released. Not for
/// the store's own points.
///
/// ```
/// use onceseal::fault::{self, point};
///
/// let _alone = fault::alone();
/// let stop = fault::stop(point::AFTER_RESERVE);
/// // … another thread makes a call …
/// // stop.reached();
/// // … look at the store: the attempt is there, its executor has not started …
/// stop.release();
/// ```
#[must_use]
pub fn stop(point: &str) -> Stop {
    let (reached, at) = sync_channel(1);
    let (go, released) = sync_channel::<()>(1);
    let once = Mutex::new(Some((reached, released)));
    on(point, move || {
        let taken = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((reached, released)) = taken {
            // Whoever set the stop may have gone; then there is nothing to wait for.
            let _ = reached.send(());
            let _ = released.recv();
        }
        Ok(())
    });
    Stop { at, go }
}

/// A point at which somebody stops.
#[derive(Debug)]
pub struct Stop {
    at: Receiver<()>,
    go: SyncSender<()>,
}

impl Stop {
    /// Blocks this thread until somebody has stopped there.
    pub fn reached(&self) {
        // An error means that the hook was replaced: nobody stops there any more.
        let _ = self.at.recv();
    }

    /// Lets whoever stopped there, or comes there, go on.
    pub fn release(self) {
        let _ = self.go.send(());
    }
}

/// Says that a point has been reached.
pub(crate) fn reach(point: &str) -> Result<(), StoreError> {
    if ARMED.load(Ordering::Acquire) {
        let hook = hooks().get(point).cloned();
        if let Some(hook) = hook {
            hook()?;
        }
    }
    onceseal_store::fault::reach(point)
}

/// Nothing happens at any point from here on.
pub fn disarm() {
    hooks().clear();
    onceseal_store::fault::disarm();
}

/// The points belong to this thread until the guard is dropped; then nothing
/// happens at them.
#[must_use]
pub fn alone() -> Alone {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    disarm();
    Alone { _turn: turn }
}

/// The turn of one test.
#[derive(Debug)]
pub struct Alone {
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        disarm();
    }
}

/// A clock that stands still at 2026-01-01T00:00:00Z until it is moved.
///
/// ```
/// use onceseal::fault::{self, Clock};
///
/// let clock = fault::clock();
/// clock.advance(60_000_000);
/// assert_eq!(clock.now().wall_us, 1_767_225_660_000_000);
/// ```
#[must_use]
pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Reading { wall_us: 1_767_225_600_000_000, boot_us: 0 }))
}
