//! The thread that drives connections, and waiting for it from any other.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::StoreError;

/// Drives the connections of one store. It ends with its last owner.
pub(crate) struct Driver {
    handle: Handle,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Driver {
    pub(crate) fn start() -> Result<Arc<Driver>, StoreError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("onceseal-postgres".to_owned()).spawn(move || {
            // Whether told to or left alone by whoever could tell.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Arc::new(Driver { handle, stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) }))
    }

    /// Has the thread drive this.
    pub(crate) fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // A panic there has nothing to tell here: its connections are gone.
            drop(thread.join());
        }
    }
}

/// Blocks this thread until the future is done; `None` if it is not by then. It
/// needs no runtime of this thread, and gets in the way of none.
pub(crate) fn wait_until<F: Future>(until: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

/// As [`wait_until`], for so long.
pub(crate) fn wait_for<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    wait_until(Instant::now() + time, future)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
