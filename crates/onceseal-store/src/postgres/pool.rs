//! Connections that read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use onceseal_core::code::Code;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failover::Failover;
use super::failure::Failure;
use super::link::{Link, Parameter};
use super::lock::{Numbers, of_schema};
use super::patience::Patience;
use super::reading::PostgresSnapshot;
use super::schema;
use super::sequencer::sequence;
use super::statements::{BEGIN_READING, Statements};
use crate::error::StoreError;
use crate::read::{Readers, Rows, Snapshot};

/// So many read at once; others wait, so that few connections are enough.
const READERS: usize = 3;
/// How long they wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a picture is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// All that is committed is to be in the log.
    AtLog,
    /// Where it is in the log makes no difference.
    AtRows,
}

/// Connections of one tenant that only read.
pub(crate) struct Pool {
    connector: Connector,
    pub(super) tenant: i32,
    /// The locks of whoever gives the log its order.
    numbers: [i64; 2],
    idle: Mutex<Idle>,
    /// How many read now.
    reading: Mutex<usize>,
    ended: Condvar,
    sequencing: Sequencing,
}

/// One reader at a time sees to the log, for all that came before it began.
#[derive(Default)]
struct Sequencing {
    asked: AtomicU64,
    /// Whoever asked up to here has been served.
    served: Mutex<u64>,
}

/// That one may read.
pub(super) struct Turn<'a>(&'a Pool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.reading() -= 1;
        self.0.ended.notify_one();
    }
}

#[derive(Default)]
struct Idle {
    links: Vec<Link>,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(connector: Connector, (tenant, tenant_id): (i32, [u8; 16])) -> Pool {
        let schema = connector.url.schema.as_str();
        let numbers = [of_schema(schema), Numbers::new(schema, tenant_id).sequencer()];
        Pool {
            connector,
            tenant,
            numbers,
            idle: Mutex::default(),
            reading: Mutex::default(),
            ended: Condvar::new(),
            sequencing: Sequencing::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self) -> MutexGuard<'_, usize> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer read than may.
    pub(super) fn turn(&self) -> Result<Turn<'_>, StoreError> {
        let is_full = |reading: &mut usize| *reading >= READERS;
        let waited = self.ended.wait_timeout_while(self.reading(), PATIENCE, is_full);
        let (mut reading, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(StoreError::with(Code::StoreBusy, "too many read at once"));
        }
        *reading += 1;
        drop(reading);
        Ok(Turn(self))
    }

    pub(super) fn schema(&self) -> &str {
        &self.connector.url.schema
    }

    pub(super) fn statements(&self) -> &Statements {
        &self.connector.sql
    }

    pub(super) fn link(&self) -> Result<Link, Failure> {
        self.lend().map_or_else(|| self.connector.connect(), Ok)
    }

    /// An idle connection, to be given back: also of a pool that is closed, whose last
    /// one waits for what is to be told at the end.
    pub(super) fn lend(&self) -> Option<Link> {
        self.idle().links.pop().filter(|link| !link.is_closed())
    }

    pub(super) fn give_back(&self, link: Link) {
        let mut idle = self.idle();
        if !idle.closed && idle.links.len() < READERS && !link.is_closed() {
            idle.links.push(link);
        }
    }

    /// A picture. A server that is gone is waited for, as by whoever writes.
    fn picture(&self, mut looks: Looks) -> Result<PostgresSnapshot<'_>, StoreError> {
        let mut patience = Patience::new();
        loop {
            let failure = match self.attempt(looks) {
                Ok(Some(picture)) => return Ok(picture),
                // It stays so where somebody keeps the sequencer's lock for long, and for
                // whoever may not write.
                Ok(None) => {
                    looks = Looks::AtRows;
                    continue;
                }
                Err(failure) => failure,
            };
            if matches!(failure, Failure::Failed(_)) || !patience.is_left() || self.idle().closed {
                return Err(failure.told());
            }
            patience.pause();
        }
    }

    /// A picture, on a connection that may have been idle for long. None where somebody
    /// has committed what is not in the log, and may never look at it again: then that
    /// has been seen to.
    fn attempt(&self, looks: Looks) -> Result<Option<PostgresSnapshot<'_>>, Failure> {
        let turn = self.turn()?;
        let link = self.link()?;
        if !self.begin(&link, looks)? {
            return Ok(Some(PostgresSnapshot::new(self, turn, link, self.tenant)));
        }
        link.wait(link.run("ROLLBACK"))?;
        self.give_back(link);
        // Others read meanwhile.
        drop(turn);
        match self.sequence() {
            Err(Failure::Lost(why)) => Err(Failure::Lost(why)),
            Ok(()) | Err(_) => Ok(None),
        }
    }

    /// Appends what is not in the log; one for all that wait.
    fn sequence(&self) -> Result<(), Failure> {
        let Sequencing { asked, served } = &self.sequencing;
        let own = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
        if *served >= own {
            return Ok(());
        }
        let up_to = asked.load(Ordering::Relaxed);
        let link = self.link()?;
        link.wait(sequence(&link, self.tenant, self.numbers))?;
        self.give_back(link);
        *served = up_to;
        Ok(())
    }

    /// Takes a picture; says whether something is missing in the log that is looked at.
    fn begin(&self, link: &Link, looks: Looks) -> Result<bool, Failure> {
        let at_log = looks == Looks::AtLog;
        let one: [Parameter<'_>; 2] = [(&self.tenant, Type::INT4), (&1_i64, Type::INT8)];
        link.wait(async {
            link.run(BEGIN_READING).await?;
            // The first statement takes it.
            let (rows, left) = join(
                link.rows(&link.sql.migrations, &[]),
                link.rows_for(at_log, &link.sql.unsequenced, &one),
            )
            .await;
            let version =
                rows?.last().map_or(Ok(0), |row| crate::columns::integer(row, 0, "schema_migrations.id"))?;
            schema::check_version(version, schema::version(self.connector.migrations))?;
            Ok(!left?.is_empty())
        })
    }
}

impl Readers for Arc<Pool> {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(self.picture(Looks::AtLog)?))
    }

    fn rows(&self) -> Result<Box<dyn Rows + '_>, StoreError> {
        Ok(Box::new(self.picture(Looks::AtRows)?))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        let _turn = self.turn()?;
        let link = self.link().map_err(Failure::told)?;
        let server = self.connector.server(&link).map_err(Failure::told)?;
        let mut faults = server.faults();
        if server.failover() == Failover::Asynchronous {
            faults.push(
                "commits do not wait for a standby that follows, or not for each (synchronous_standby_names), so \
                 one that takes over may lack what was acknowledged"
                    .to_owned(),
            );
        }
        self.give_back(link);
        Ok(faults)
    }

    fn close(&self) {
        let mut idle = self.idle();
        idle.closed = true;
        idle.links.truncate(1);
    }
}
