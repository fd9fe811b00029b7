//! Commands that wait for locks, and the threads that wait for them.
//!
//! A batch never waits for a lock: a command that somebody else is in the way of
//! is put aside, to be run by a lane, which does. One lane waits for one
//! command's locks at a time; what the other lanes wait for it leaves alone, so
//! that a lock held long delays only those that need it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use onceseal_core::code::Code;
use onceseal_core::lock::Locks;

use crate::desk::Desk;
use crate::error::StoreError;
use crate::queue::{BATCH_MAX, Batch, Job, QUEUE_MAX, Queue};

/// Commands that were put aside.
pub(crate) struct Lobby {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

struct Inner {
    jobs: VecDeque<Job>,
    /// What each lane that is at work waits for, or has.
    lanes: Vec<Option<Locks>>,
    closed: bool,
}

impl Lobby {
    pub(crate) fn new(lanes: usize) -> Lobby {
        let inner = Inner { jobs: VecDeque::new(), lanes: vec![None; lanes], closed: false };
        Lobby { inner: Mutex::new(inner), arrived: Condvar::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes jobs in. One that has waited too long, or for which there is no room, is
    /// answered instead.
    pub(crate) fn put(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut inner = self.inner();
        for job in jobs {
            if inner.closed {
                job.refuse(Code::StoreClosed);
            } else if job.is_late(now) || inner.jobs.len() >= QUEUE_MAX {
                job.refuse(Code::StoreBusy);
            } else {
                inner.jobs.push_back(job);
            }
        }
        drop(inner);
        self.arrived.notify_all();
    }

    /// The next batch of a lane: the first job whose locks no other lane waits for,
    /// and others that may be tried with it. `None` once the lobby is closed.
    fn next(&self, lane: usize) -> Option<Batch> {
        let mut inner = self.inner();
        inner.lanes[lane] = None;
        // What this lane waited for is free for others.
        self.arrived.notify_all();
        loop {
            let mut batch = inner.take(lane);
            if !batch.commands().is_empty() {
                return Some(batch);
            }
            if inner.closed && inner.jobs.is_empty() {
                return None;
            }
            inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes nothing in any more; what is there is still tried once.
    pub(crate) fn close(&self) {
        self.inner().closed = true;
        self.arrived.notify_all();
    }

    fn gone(&self) {
        let mut inner = self.inner();
        inner.closed = true;
        for job in inner.jobs.drain(..) {
            job.refuse(Code::StoreClosed);
        }
        drop(inner);
        self.arrived.notify_all();
    }
}

impl Inner {
    fn take(&mut self, lane: usize) -> Batch {
        let mut batch = Batch::default();
        let mut first: Option<Locks> = None;
        let is_last_idle = self.lanes.iter().enumerate().all(|(n, locks)| n == lane || locks.is_some());
        let mut left = VecDeque::with_capacity(self.jobs.len());
        let now = Instant::now();
        for job in self.jobs.drain(..) {
            if job.is_late(now) {
                job.refuse(Code::StoreBusy);
                continue;
            }
            let locks = job.locks();
            let elsewhere = self.lanes.iter().flatten().any(|others| locks.conflict(others));
            let is_mine = match &first {
                None => !elsewhere,
                // Another lane may be free for what is not in this one's way.
                Some(first) => !elsewhere && (is_last_idle || locks.conflict(first)),
            };
            if !is_mine || batch.commands().len() >= BATCH_MAX {
                left.push_back(job);
                continue;
            }
            let locks = first.is_none().then(|| locks.clone());
            if batch.begin(job) {
                first = first.or(locks);
            }
        }
        self.jobs = left;
        self.lanes[lane] = first;
        batch
    }
}

/// The threads that wait.
pub(crate) struct Lanes {
    lobby: Arc<Lobby>,
    desks: Vec<Arc<Desk>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Lanes {
    /// One thread for each of these desks. When one goes, so does the queue: whoever
    /// needs no waiting is not to go on alone.
    pub(crate) fn start(desks: Vec<Arc<Desk>>, queue: &Arc<Queue>) -> Result<Lanes, StoreError> {
        let lobby = Arc::new(Lobby::new(desks.len()));
        let lanes = Lanes { lobby, desks, threads: Mutex::default() };
        for (n, desk) in lanes.desks.iter().enumerate() {
            let (lobby, desk, queue) = (lanes.lobby.clone(), desk.clone(), queue.clone());
            let thread = std::thread::Builder::new()
                .name(format!("onceseal-lane-{n}"))
                .spawn(move || batches(n, &lobby, &desk, &queue))?;
            lanes.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(lanes)
    }

    pub(crate) fn lobby(&self) -> &Lobby {
        &self.lobby
    }

    /// A desk that waits for locks.
    pub(crate) fn desk(&self) -> Option<&Desk> {
        self.desks.first().map(AsRef::as_ref)
    }

    pub(crate) fn desks(&self) -> impl Iterator<Item = &Desk> {
        self.desks.iter().map(AsRef::as_ref)
    }

    pub(crate) fn close(&self) {
        self.lobby.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // One that panicked has answered nobody; its callers know that.
            drop(thread.join());
        }
    }
}

fn batches(lane: usize, lobby: &Lobby, desk: &Desk, queue: &Queue) {
    while let Some(mut batch) = lobby.next(lane) {
        let mut place = desk.lock();
        while !batch.commands().is_empty() {
            let Some(ran) = desk.run(&mut place, batch.commands()) else {
                drop(place);
                // Whoever is still waiting in this batch learns that it is not known.
                drop(batch);
                lobby.gone();
                queue.close();
                return;
            };
            lobby.put(batch.answer(ran));
        }
    }
    *desk.lock() = None;
}
