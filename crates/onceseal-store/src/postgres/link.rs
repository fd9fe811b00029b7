//! One connection: statements out, results in.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::dialling::Dialling;
use super::failure::{Clash, Failure, unreachable};
use super::statements::Statements;
use crate::wait::wait_for;

/// Longer than the server gives a statement of a transaction that writes: whoever has
/// not answered by then is not there.
const ANSWER: Duration = Duration::from_secs(7);
/// The same of a picture.
const PICTURE: Duration = Duration::from_secs(65);
/// What takes as long as there is much to do; that the server is there, the
/// connection's own signs of life tell.
const WORK: Duration = Duration::from_secs(24 * 3_600);

/// A parameter with its type, so that the server need not be asked for it.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// One connection. What is sent together, by futures that are polled together, is
/// answered in one round trip.
pub(super) struct Link {
    client: Client,
    pub(super) sql: Arc<Statements>,
    /// Whether an answer was given up.
    is_silent: AtomicBool,
    /// Since when the server runs that was looked at; 0: none was.
    since_us: AtomicI64,
}

impl Link {
    /// Makes one, which the runtime drives that this is polled on. It ends with its
    /// client.
    pub(super) async fn dial(dialling: &Dialling, sql: Arc<Statements>) -> Result<Link, Failure> {
        let (client, wire) = dialling.dial().await?;
        drop(tokio::spawn(wire.drive()));
        Ok(Link { client, sql, is_silent: AtomicBool::new(false), since_us: AtomicI64::new(0) })
    }

    /// Remembers which server was looked at.
    pub(super) fn looked_at(&self, since_us: i64) {
        self.since_us.store(since_us, Ordering::Relaxed);
    }

    /// Whether it leads to the server that was looked at: a pooler may have put another
    /// one in its place.
    pub(super) fn leads_to(&self, since_us: i64) -> Result<(), Failure> {
        match self.since_us.load(Ordering::Relaxed) {
            0 => Ok(()),
            known if known == since_us => Ok(()),
            _ => Err(Failure::Lost(unreachable("another server has taken its place"))),
        }
    }

    /// Whether it is good for nothing more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.is_silent()
    }

    /// Whether it answered nothing in time.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Waits for what was sent. After a failure to answer the connection counts as
    /// closed.
    pub(super) fn wait<T>(&self, sent: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.wait_at_most(ANSWER, sent)
    }

    /// As [`Link::wait`], for what is read of a picture.
    pub(super) fn wait_for_picture<T>(
        &self,
        sent: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.wait_at_most(PICTURE, sent)
    }

    /// As [`Link::wait`], for what the server gives any time.
    pub(super) fn wait_for_work<T>(
        &self,
        sent: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.wait_at_most(WORK, sent)
    }

    fn wait_at_most<T>(
        &self,
        time: Duration,
        sent: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        wait_for(time, sent).unwrap_or_else(|| {
            self.is_silent.store(true, Ordering::Relaxed);
            Err(Failure::Lost(unreachable("it does not answer")))
        })
    }

    /// The rows of a query.
    pub(super) async fn rows(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        Ok(self.client.query_typed(sql, parameters).await?)
    }

    /// The rows of a query, or nothing sent and none where it is for nothing.
    pub(super) async fn rows_for(
        &self,
        is_wanted: bool,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        if is_wanted { self.rows(sql, parameters).await } else { Ok(Vec::new()) }
    }

    /// Changes so many rows; for none nothing is sent. What is sent behind it may be
    /// COMMIT: a statement that may change fewer has to fail by itself.
    pub(super) async fn change(
        &self,
        rows: usize,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        match self.client.execute_typed(sql, parameters).await? {
            changed if changed == rows as u64 => Ok(()),
            // What it was decided on is not there any more.
            _ => Err(Failure::Stale(Clash::Row)),
        }
    }

    /// Statements without results.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(sql).await?)
    }
}
