//! Ends what has ended by itself: lapsed leases, expired requests, proposals
//! that were never started. It only proposes; `decide` looks again.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use onceseal_core::approval::Status;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Index, Key, Row, moment};
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::Timestamp;
use onceseal_store::executor::is_general;
use onceseal_store::read::{Page, row_of};
use onceseal_store::{Store, StoreError, Ticket};

use crate::watch::Waiters;

/// How often, from the opening on; each time up to a quarter more, so that
/// processes part.
const EVERY: Duration = Duration::from_secs(5);
/// Streams whose lapses are submitted together.
const AT_ONCE: usize = 256;

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

    pub(crate) fn start(store: Arc<Store>, waiters: Arc<Waiters>) -> Result<Sweeper, StoreError> {
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let own = stop.clone();
        let thread = std::thread::Builder::new().name("onceseal-sweeper".to_owned()).spawn(move || {
            let (stopped, wake) = &*own;
            let mut rounds = Rounds::default();
            loop {
                // A sweep that fails is repeated at the next turn; whoever meets
                // what has lapsed records it meanwhile.
                if rounds.sweep(&store).is_ok_and(|ended| ended > 0) {
                    waiters.wake_all();
                }
                let pause = EVERY + EVERY / 4 * u32::from(jitter()) / 255;
                let guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
                let stop = wake.wait_timeout_while(guard, pause, |stopped| !*stopped);
                if *stop.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
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

/// Submits a lapse for everything that is due, and for every request that the
/// active policy does not know, unless another process is sweeping. Returns how
/// many streams ended. It blocks: not for async code.
///
/// A stream that cannot be decided or saved does not hold up the others:
/// whoever meets it is told.
///
/// # Errors
/// The store cannot be read, or takes no command at all.
pub fn sweep(store: &Store) -> Result<usize, StoreError> {
    Rounds::default().sweep(store)
}

/// What one process has swept.
#[derive(Default)]
struct Rounds {
    /// The policy under which every request has been looked at.
    policy: Option<Hash>,
}

impl Rounds {
    fn sweep(&mut self, store: &Store) -> Result<usize, StoreError> {
        let (policy, now) = (store.tenant().policy(), moment(store.now()).to_vec());
        let due = page(Index::Due, Vec::new(), now.clone());
        let (is_due, active) = store.read_rows(|snapshot| {
            let is_due = !snapshot.keys(&Page { limit: 1, ..due })?.is_empty();
            let active = match row_of(snapshot.stream(&policy)?).map(|stored| stored.row) {
                Some(Row::Policy(row)) => Some(row.active),
                _ => None,
            };
            Ok((is_due, active))
        })?;
        // Most of the time there is nothing to do, and nobody need be asked.
        if !is_due && self.policy == active {
            return Ok(0);
        }
        let swept = store.try_sweep(|| {
            let Lapsed { mut ended, .. } = lapse(store, page(Index::Due, Vec::new(), now))?;
            if self.policy != active {
                let pending = |at| Key::state(StreamKind::Approval, Status::Pending.number(), at).bytes;
                let pending = page(Index::State, pending(Timestamp::MIN), pending(Timestamp::MAX));
                let asked = lapse(store, pending)?;
                ended += asked.ended;
                if !asked.again {
                    self.policy = active;
                }
            }
            Ok(ended)
        })?;
        Ok(swept.unwrap_or_default())
    }
}

fn page(index: Index, from: Vec<u8>, to: Vec<u8>) -> Page {
    Page { index, from, to, after: None, newest_first: false, limit: AT_ONCE }
}

/// What became of a range.
#[derive(Default)]
struct Lapsed {
    /// How many streams ended.
    ended: usize,
    /// Whether one is to be tried again.
    again: bool,
}

/// Submits a lapse for every stream in a range of an index; a page of them
/// shares a batch.
fn lapse(store: &Store, mut page: Page) -> Result<Lapsed, StoreError> {
    let mut lapsed = Lapsed::default();
    loop {
        let found = store.read_rows(|snapshot| snapshot.keys(&page))?;
        let submitted: Result<Vec<Ticket>, StoreError> =
            found.iter().map(|hit| store.submit(Command::Lapse(hit.stream))).collect();
        for answer in submitted?.into_iter().map(Ticket::wait) {
            match answer {
                Ok(reply) => lapsed.ended += usize::from(reply == Reply::Done { changed: true }),
                Err(error) if is_general(&error) => return Err(error),
                Err(error) => lapsed.again |= error.may_pass(),
            }
        }
        match found.into_iter().last() {
            Some(last) => page.after = Some((last.key, last.stream)),
            None => return Ok(lapsed),
        }
    }
}

fn jitter() -> u8 {
    let mut byte = [0];
    // Without randomness processes sweep in step, which only costs fairness.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests;
