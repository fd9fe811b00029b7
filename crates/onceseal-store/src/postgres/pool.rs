//! Connections that read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::Failure;
use super::link::{Link, Parameter};
use super::lock::{Numbers, of_schema};
use super::reading::PostgresSnapshot;
use super::schema;
use super::sequencer::sequence;
use super::server::Failover;
use super::statements::{BEGIN_READING, Statements};
use crate::error::StoreError;
use crate::read::{Readers, Snapshot};

/// Idle connections kept; more are made when needed and closed after use.
const IDLE: usize = 2;

/// Connections of one tenant that only read.
pub(crate) struct Pool {
    connector: Connector,
    pub(super) tenant: i32,
    /// The locks of whoever gives the log its order.
    numbers: [i64; 2],
    idle: Mutex<Idle>,
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
        Pool { connector, tenant, numbers, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
        if !idle.closed && idle.links.len() < IDLE && !link.is_closed() {
            idle.links.push(link);
        }
    }

    /// A picture, on a connection that may have been idle for long. A server that was
    /// started again has forgotten the connection, which is no fault.
    fn open(&self) -> Result<PostgresSnapshot<'_>, Failure> {
        let link = self.link()?;
        if self.begin(&link)? {
            // Somebody has committed what is not in the log, and may never look at it
            // again. It stays so where somebody keeps the sequencer's lock for long, and
            // for whoever may not write.
            link.wait(link.run("ROLLBACK"))?;
            match link.wait(sequence(&link, self.tenant, self.numbers)) {
                Err(Failure::Lost(why)) => return Err(Failure::Lost(why)),
                Ok(()) | Err(_) => self.begin(&link)?,
            };
        }
        Ok(PostgresSnapshot::new(self, link, self.tenant))
    }

    /// Takes a picture; says whether something in it is not in the log yet.
    fn begin(&self, link: &Link) -> Result<bool, Failure> {
        let one: [Parameter<'_>; 2] = [(&self.tenant, Type::INT4), (&1_i64, Type::INT8)];
        link.wait(async {
            link.run(BEGIN_READING).await?;
            // The first statement takes it.
            let (rows, left) =
                join(link.rows(&link.sql.migrations, &[]), link.rows(&link.sql.unsequenced, &one)).await;
            let version =
                rows?.last().map_or(Ok(0), |row| crate::columns::integer(row, 0, "schema_migrations.id"))?;
            schema::check_version(version, schema::version(self.connector.migrations))?;
            Ok(!left?.is_empty())
        })
    }
}

impl Readers for Arc<Pool> {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        let opened = match self.open() {
            Err(Failure::Lost(_) | Failure::Again(_) | Failure::Locked | Failure::Full | Failure::Stale) => {
                self.open()
            }
            opened => opened,
        };
        Ok(Box::new(opened.map_err(Failure::told)?))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        let link = self.link().map_err(Failure::told)?;
        let server = self.connector.server(&link).map_err(Failure::told)?;
        let mut faults = server.faults();
        if server.failover() == Failover::Asynchronous {
            faults.push(
                "commits do not wait for a standby (synchronous_standby_names is empty), so one that takes over \
                 may lack what was acknowledged"
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
