//! Ends what has ended by itself: lapsed leases, expired requests, proposals
//! that were never started. It only proposes; `decide` looks again.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use onceseal_core::command::Command;
use onceseal_core::journal::Index;
use onceseal_store::read::Page;
use onceseal_store::{Store, StoreError};

/// How often; each time up to a quarter more, so that processes part.
const EVERY: Duration = Duration::from_secs(5);
/// Streams looked at in one sweep.
const SWEEP_MAX: usize = 1_000;

/// The sweeping thread's handle.
pub(crate) struct Sweeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sweeper {
    /// No sweeping: for programs that run one command.
    pub(crate) fn none() -> Sweeper {
        Sweeper { stop: Arc::default(), thread: Mutex::new(None) }
    }

    pub(crate) fn start(store: Arc<Store>) -> Result<Sweeper, StoreError> {
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let own = stop.clone();
        let thread = std::thread::Builder::new().name("onceseal-sweeper".to_owned()).spawn(move || {
            let (stopped, wake) = &*own;
            let mut guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                let pause = EVERY + EVERY / 4 * u32::from(jitter()) / 255;
                guard = wake.wait_timeout(guard, pause).unwrap_or_else(PoisonError::into_inner).0;
                if *guard {
                    return;
                }
                drop(guard);
                // A sweep that fails is repeated at the next turn; whoever meets
                // what has lapsed records it meanwhile.
                let _ = sweep(&store);
                guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
            }
        })?;
        Ok(Sweeper { stop, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn stop(&self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

/// Submits a lapse for everything that is due, unless another process is
/// sweeping. Returns how many streams ended.
///
/// # Errors
/// The store cannot be used.
pub fn sweep(store: &Store) -> Result<usize, StoreError> {
    let swept = store.try_sweep(|| {
        let now = store.now().micros().to_be_bytes().to_vec();
        let page = Page {
            index: Index::Due,
            from: Vec::new(),
            to: now,
            after: None,
            newest_first: false,
            limit: SWEEP_MAX,
        };
        let due = store.read(|snapshot| snapshot.keys(&page))?;
        let mut ended = 0;
        for hit in due {
            let reply = store.run(Command::Lapse(hit.stream))?;
            ended += usize::from(reply == onceseal_core::reply::Reply::Done { changed: true });
        }
        Ok(ended)
    })?;
    Ok(swept.unwrap_or_default())
}

fn jitter() -> u8 {
    let mut byte = [0];
    // Without randomness processes sweep in step, which only costs fairness.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}
