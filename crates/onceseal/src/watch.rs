//! Waiting for what others do: this process's changes wake waiters at once,
//! other processes' are looked for while somebody waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::approval::Status;
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::Row;
use onceseal_core::stream::StreamId;
use onceseal_store::read::row_of;
use onceseal_store::{Store, StoreError};
use tokio::sync::Notify;

use crate::control::{PAUSES, blocking};
use crate::error::Error;

/// Wakes and looks.
pub(crate) struct Watch {
    store: Arc<Store>,
    changed: Arc<Notify>,
}

impl Watch {
    pub(crate) fn new(store: Arc<Store>) -> Watch {
        Watch { store, changed: Arc::default() }
    }

    /// Something changed that somebody may wait for.
    pub(crate) fn changed(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until a request is no longer pending. `false`: it still was at
    /// `until`.
    pub(crate) async fn answered(&self, approval: ApprovalId, until: Instant) -> Result<bool, Error> {
        let stream = StreamId::approval(approval);
        self.wait(stream, until, |row| match row {
            Some(Row::Approval(row)) => row.status != Status::Pending,
            _ => true,
        })
        .await
    }

    /// Waits until no attempt holds an effect. `false`: one still did at `until`.
    pub(crate) async fn effect_ended(&self, effect: StreamId, until: Instant) -> Result<bool, Error> {
        self.wait(effect, until, |row| match row {
            Some(Row::Effect(row)) => !row.held(),
            _ => true,
        })
        .await
    }

    /// Waits until `done` holds of a stream's row.
    async fn wait(
        &self,
        stream: StreamId,
        until: Instant,
        done: impl Fn(Option<Row>) -> bool,
    ) -> Result<bool, Error> {
        let mut pause = PAUSES.0;
        loop {
            // Listening before looking: a change in between is not missed.
            let changed = self.changed.notified();
            let store = self.store.clone();
            let look = move || -> Result<Option<Row>, StoreError> {
                store.read(|snapshot| Ok(row_of(snapshot.stream(&stream)?).map(|stored| stored.row)))
            };
            if done(blocking(look).await?) {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Ok(false);
            }
            tokio::select! {
                () = changed => pause = PAUSES.0,
                () = tokio::time::sleep(pause.min(left)) => pause = (pause * 2).min(PAUSES.1),
            }
        }
    }
}
