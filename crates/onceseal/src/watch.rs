//! Waiting for what others do.
//!
//! This process's changes wake whoever waits for them at once. While anybody
//! waits, one of the waiters looks for other processes' changes, and wakes the
//! rest: now and then, and where a server tells of commits, as soon as it does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onceseal_core::action::{ActionRow, ActionState};
use onceseal_core::approval::Status;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::Row;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_store::read::row_of;
use onceseal_store::{Store, StoreError};
use tokio::sync::Notify;

use crate::control::blocking;
use crate::error::Error;

/// The shortest and longest pause between two looks at the log.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// A wait longer than this is as good as one for ever.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Whoever waits in this process, by the stream they wait for.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<BTreeMap<StreamId, Arc<Notify>>>);

impl Waiters {
    fn all(&self) -> MutexGuard<'_, BTreeMap<StreamId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This stream changed.
    pub(crate) fn wake(&self, stream: &StreamId) {
        if let Some(waiting) = self.all().get(stream) {
            waiting.notify_waiters();
        }
    }

    /// Anything may have changed.
    pub(crate) fn wake_all(&self) {
        self.all().values().for_each(|waiting| waiting.notify_waiters());
    }

    fn join(&self, stream: StreamId) -> Waiting<'_> {
        let notify = self.all().entry(stream).or_default().clone();
        Waiting { waiters: self, stream, notify: Some(notify) }
    }
}

/// One that waits for a stream.
struct Waiting<'a> {
    waiters: &'a Waiters,
    stream: StreamId,
    notify: Option<Arc<Notify>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = self.waiters.all();
        self.notify = None;
        if all.get(&self.stream).is_some_and(|notify| Arc::strong_count(notify) == 1) {
            all.remove(&self.stream);
        }
    }
}

/// Wakes and looks.
pub(crate) struct Watch {
    store: Arc<Store>,
    waiters: Arc<Waiters>,
    /// What was seen of the log; whoever holds it looks for more.
    seen: tokio::sync::Mutex<Seen>,
    pauses: (Duration, Duration),
}

/// What was seen of the log.
#[derive(Default)]
struct Seen {
    /// The newest position.
    newest: u64,
    /// How many hints had come before it was looked at.
    hints: u64,
}

/// What is waited for.
enum Look {
    /// It is there.
    Done,
    /// Not yet; it ends by itself at this time, though nobody may record that.
    Until(Option<Timestamp>),
}

/// This far from now.
pub(crate) fn from_now(wait: Duration) -> Instant {
    Instant::now() + wait.min(LONGEST)
}

impl Watch {
    pub(crate) fn new(store: Arc<Store>, waiters: Arc<Waiters>) -> Watch {
        Watch { store, waiters, seen: tokio::sync::Mutex::default(), pauses: PAUSES }
    }

    /// This process changed a stream.
    pub(crate) fn changed(&self, stream: &StreamId) {
        self.waiters.wake(stream);
    }

    /// Waits until a request is no longer pending. `false`: it still was at
    /// `until`.
    pub(crate) async fn answered(&self, approval: ApprovalId, until: Instant) -> Result<bool, Error> {
        self.wait(StreamId::approval(approval), until, |row| match row {
            Some(Row::Approval(row)) if row.status == Status::Pending => Look::Until(Some(row.expires_at)),
            _ => Look::Done,
        })
        .await
    }

    /// Waits until no attempt holds an effect. `false`: one still did at `until`.
    pub(crate) async fn effect_ended(&self, effect: StreamId, until: Instant) -> Result<bool, Error> {
        self.wait(effect, until, |row| match row {
            Some(Row::Effect(row)) if row.held() => Look::Until(row.lease_until),
            _ => Look::Done,
        })
        .await
    }

    /// Waits until an operation is neither queued nor running. `false`: it still
    /// was at `until`.
    pub(crate) async fn carried_out(&self, action: ActionId, until: Instant) -> Result<bool, Error> {
        self.wait(StreamId::action(action), until, |row| match row {
            Some(Row::Action(ActionRow {
                state: ActionState::Queued { .. } | ActionState::Running { .. },
                ..
            })) => Look::Until(None),
            _ => Look::Done,
        })
        .await
    }

    /// Waits until somebody ended the lease of this fence on a resource.
    pub(crate) async fn lease_ended(&self, lease: StreamId, fence: u64) -> Result<(), Error> {
        let ended = self.wait(lease, from_now(LONGEST), |row| match row {
            Some(Row::Lease(row)) if row.lease(fence).is_some() => Look::Until(None),
            _ => Look::Done,
        });
        ended.await.map(drop)
    }

    async fn wait(
        &self,
        stream: StreamId,
        until: Instant,
        look: impl Fn(Option<Row>) -> Look,
    ) -> Result<bool, Error> {
        let waiting = self.waiters.join(stream);
        let Some(notify) = &waiting.notify else { return Err(Error::Unexpected) };
        loop {
            // Listening before looking: a change in between is not missed.
            let changed = notify.notified();
            let store = self.store.clone();
            let row = blocking(move || -> Result<Option<Row>, StoreError> {
                store.read_rows(|snapshot| Ok(row_of(snapshot.stream(&stream)?).map(|stored| stored.row)))
            });
            let row = match row.await {
                // Whoever waits for a person does not give up for a server that restarts.
                Err(error) if is_away(&error) && Instant::now() < until => {
                    tokio::time::sleep_until(until.min(Instant::now() + self.pauses.1).into()).await;
                    continue;
                }
                row => row?,
            };
            let ends = match look(row) {
                Look::Done => return Ok(true),
                Look::Until(ends) => ends,
            };
            let now = self.store.now();
            if ends.is_some_and(|ends| ends < now) {
                return Ok(true);
            }
            if until <= Instant::now() {
                return Ok(false);
            }
            let ends = ends.map_or(until, |ends| from_now(ends.since(now).to_std() + PAUSES.0));
            tokio::select! {
                () = changed => {}
                grown = self.grown() => grown?,
                () = tokio::time::sleep_until(until.min(ends).into()) => {}
            }
        }
    }

    /// Waits until the log has grown since anybody looked, and wakes the other
    /// waiters. One waiter does so; when it leaves, the next.
    async fn grown(&self) -> Result<(), Error> {
        let mut seen = self.seen.lock().await;
        let mut pause = self.pauses.0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.store.hints().beyond(seen.hints) => {}
            }
            let hints = self.store.hints().count();
            let store = self.store.clone();
            let newest = match blocking(move || store.read(|snapshot| snapshot.newest())).await {
                Err(error) if is_away(&error) => seen.newest,
                newest => newest?,
            };
            seen.hints = hints;
            if newest != seen.newest {
                seen.newest = newest;
                self.waiters.wake_all();
                return Ok(());
            }
            pause = (pause * 2).min(self.pauses.1);
        }
    }
}

/// Whether the store's server does not answer for now, or has too much to do.
fn is_away(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_away())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_gone_is_not_kept_in_the_list() {
        let waiters = Waiters::default();
        let stream = StreamId::action(ActionId([1; 16]));
        let (one, other) = (waiters.join(stream), waiters.join(stream));
        drop(one);
        assert_eq!(waiters.all().len(), 1, "the other still waits");
        drop(other);
        assert_eq!(waiters.all().len(), 0);
    }

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn who_listens_need_not_look_to_see_what_another_host_committed() {
        use onceseal_core::command::Command;
        use onceseal_core::store::Note;

        const HOUR: Duration = Duration::from_secs(3_600);
        let database = onceseal_servers::server().new_database();
        let open = |address: String| {
            let url = address.parse().expect("an address");
            Arc::new(Store::postgres(url, &onceseal_store::Options::default()).expect("opened"))
        };
        let (here, there) = (open(format!("{}?listen=yes", database.url())), open(database.url()));
        let watch = Watch { pauses: (HOUR, HOUR), ..Watch::new(here, Arc::default()) };
        let grown = || tokio::time::timeout(Duration::from_secs(60), watch.grown());
        // Who begins to listen looks.
        grown().await.expect("in time").expect("looked");
        for n in 0..3 {
            let note = Note { body: n.to_string(), source: "a test".to_owned() };
            there.submit(Command::Note(note)).expect("submitted").await.expect("committed");
            grown().await.expect("in time").expect("looked");
        }
    }
}
