//! The thread that drives connections.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

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
