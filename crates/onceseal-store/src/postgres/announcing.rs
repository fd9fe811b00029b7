//! Telling others that something was committed: after the commit, beside it, and
//! not often. It delays nobody, and what fails is left to their next look.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connect::Connector;
use super::dialling::Dialling;
use super::link::Link;
use super::pool::Pool;
use super::statements::{Statements, announcement};
use crate::wait::wait_for;

/// Between two announcements: twenty a second.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take, and its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last one is waited for.
const LAST: Duration = Duration::from_secs(1);

/// What was committed and not told yet. Setting it is all that a commit does.
#[derive(Default)]
pub(super) struct News {
    is_untold: AtomicBool,
    is_closed: AtomicBool,
    came: Notify,
    closing: Notify,
}

impl News {
    /// Something was committed.
    pub(super) fn add(&self) {
        self.is_untold.store(true, Ordering::Release);
        self.came.notify_one();
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.closing.notify_one();
        self.came.notify_one();
    }
}

/// Tells the others.
pub(super) struct Announcer {
    news: Arc<News>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Announcer {
    pub(super) fn start(connector: &Connector, pool: Arc<Pool>, tenant: i32) -> Announcer {
        let news = connector.news.clone();
        let sql = announcement(&connector.url.schema, tenant);
        let (dialling, statements) = (connector.dialling(), connector.sql.clone());
        let teller = Teller { dialling, statements, pool, own: None, sql };
        let task = connector.driver.spawn(tell(news.clone(), teller));
        Announcer { news, task: Mutex::new(Some(task)) }
    }

    /// Tells of what is still untold, and ends.
    pub(super) fn close(&self) {
        let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let stop = task.abort_handle();
        self.news.close();
        if wait_for(LAST, task).is_none() {
            stop.abort();
        }
    }
}

/// The first commit is told of at once, those that follow on it together, and the
/// last one in any case.
async fn tell(news: Arc<News>, mut teller: Teller) {
    loop {
        news.came.notified().await;
        // Once more at the end, for what came while it told.
        loop {
            let is_last = news.is_closed.load(Ordering::Acquire);
            if news.is_untold.swap(false, Ordering::AcqRel) {
                teller.tell().await;
            }
            match (is_last, news.is_closed.load(Ordering::Acquire)) {
                (true, _) => return,
                (false, true) => {}
                (false, false) => break,
            }
        }
        // Over early where it is to end, which is all the same.
        let _ = timeout(PAUSE, news.closing.notified()).await;
    }
}

struct Teller {
    dialling: Dialling,
    statements: Arc<Statements>,
    pool: Arc<Pool>,
    /// Made where no reader had one to lend.
    own: Option<Link>,
    sql: String,
}

impl Teller {
    async fn tell(&mut self) {
        let own = self.own.take().filter(|link| !link.is_closed());
        let lent = if own.is_none() { self.pool.lend() } else { None };
        let is_lent = lent.is_some();
        if let Some(link) = own.or(lent)
            && self.said(&link).await
        {
            match is_lent {
                true => self.pool.give_back(link),
                false => self.own = Some(link),
            }
            return;
        }
        // None, or one that was dead.
        let dialled = Link::dial(&self.dialling, self.statements.clone());
        let Ok(Ok(link)) = timeout(PATIENCE, dialled).await else { return };
        self.own = self.said(&link).await.then_some(link);
    }

    async fn said(&self, link: &Link) -> bool {
        matches!(timeout(PATIENCE, link.run(&self.sql)).await, Ok(Ok(())))
    }
}
