//! A lane: one connection, one transaction per batch.

use onceseal_core::code::Code;
use onceseal_core::lock::{Hold, Locks};
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::Failure;
use super::link::{Link, Parameter};
use super::lock::{Numbers, of_schema};
use super::patience::Patience;
use super::schema::version;
use super::statements::{BEGIN, SETTLE, WAIT_FOR_LOCKS};
use super::transaction::{Commit, LOCKS, Lane, Transaction, Unsaved};
use crate::backend::{Backend, Fault, Work};
use crate::columns;
use crate::error::StoreError;
use crate::time::BatchClock;

/// One lane of one tenant.
pub(crate) struct PostgresBackend {
    connector: Connector,
    link: Option<Link>,
    lane: Lane,
}

impl PostgresBackend {
    /// A lane; one that `waits` waits for the locks of its first command.
    pub(crate) fn new(
        connector: Connector,
        (tenant, tenant_id): (i32, [u8; 16]),
        clock: BatchClock,
        waits: bool,
    ) -> PostgresBackend {
        let schema = connector.url.schema.as_str();
        let (numbers, schema) = (Numbers::new(schema, tenant_id), of_schema(schema));
        let version = version(connector.migrations);
        let lane = Lane { numbers, schema, version, tenant, tenant_id, clock, waits, room: LOCKS, ids: 0..0 };
        PostgresBackend { connector, link: None, lane }
    }

    fn attempt(&mut self, work: &mut Work<'_>, waits: bool) -> Result<(), Attempt> {
        let link = match self.link.take().filter(|link| !link.is_closed()) {
            Some(link) => link,
            None => self.connector.connect_to_act()?,
        };
        let mut transaction = Transaction::new(&link, &mut self.lane, waits);
        let changes = match work(&mut transaction) {
            Ok(changes) => changes,
            Err(error) => {
                let failure = transaction.failure.take().unwrap_or(Failure::Failed(error));
                self.link = end(link, &failure);
                return Err(failure.into());
            }
        };
        let Some(changes) = changes else {
            if transaction.has_begun() {
                // One that cannot be rolled back ends with its connection.
                self.link = link.wait(link.run("ROLLBACK")).is_ok().then_some(link);
            } else {
                self.link = Some(link);
            }
            return Ok(());
        };
        match transaction.save(&changes) {
            Ok(last) => {
                if let Some(last) = last {
                    self.connector.committed(last);
                }
                self.link = Some(link);
                Ok(())
            }
            Err(Unsaved::Before(failure)) => {
                self.link = end(link, &failure);
                Err(failure.into())
            }
            Err(Unsaved::Unknown { failure, commit }) => {
                let held = transaction.held().clone();
                Err(Attempt::Unknown { failure, commit, held })
            }
        }
    }

    /// Whether a commit without an answer took place: once its transaction has ended, which
    /// holds its locks until then. They are shared, so that nobody else is kept from them;
    /// one that was only shared is had alone.
    fn look(&mut self, commit: &Commit, held: &Locks) -> Result<bool, Failure> {
        let link = self.connector.connect_to_act()?;
        let held = self.lane.numbers.sorted(held);
        let whole =
            held.iter().filter(|(_, hold)| *hold == Hold::Exclusive).map(|(number, _)| (*number, false));
        let mut waited: Vec<(i64, bool)> = [(self.lane.schema, false)].into_iter().chain(whole).collect();
        if waited.len() == 1 {
            waited.extend(held.first().map(|(number, _)| (*number, true)));
        }
        let (numbers, alone): (Vec<i64>, Vec<bool>) = waited.into_iter().unzip();
        let found = link.wait(async {
            link.run(BEGIN).await?;
            link.rows(WAIT_FOR_LOCKS, &[(&numbers, Type::INT8_ARRAY), (&alone, Type::BOOL_ARRAY)]).await?;
            let parameters: [Parameter<'_>; 2] =
                [(&commit.stream, Type::INT8), (&commit.sequence, Type::INT8)];
            let rows = link.rows(&link.sql.recorded, &parameters).await?;
            if !rows.is_empty() {
                // One that a standby was to have may be here, and not there.
                link.rows(SETTLE, &[]).await?;
            }
            link.run("COMMIT").await?;
            Ok(rows)
        })?;
        let is_there = match found.first() {
            Some(row) => columns::bytes(row, 0, "events.command")? == commit.command,
            None => false,
        };
        self.link = Some(link);
        Ok(is_there)
    }
}

/// The connection, unless it is good for nothing more. What it has begun is rolled
/// back.
fn end(link: Link, failure: &Failure) -> Option<Link> {
    match failure {
        Failure::Lost(_) => None,
        _ => link.wait(link.run("ROLLBACK")).is_ok().then_some(link),
    }
}

/// Why an attempt did not come to its end.
enum Attempt {
    Failed(Failure),
    /// COMMIT was not answered, or not with yes.
    Unknown {
        failure: Failure,
        commit: Option<Box<Commit>>,
        held: Locks,
    },
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Attempt {
        Attempt::Failed(failure)
    }
}

impl Backend for PostgresBackend {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let mut patience = Patience::new();
        let (mut waits, mut was_stale) = (self.lane.waits, false);
        loop {
            let failure = match self.attempt(work, waits) {
                Ok(()) => {
                    self.lane.room = (self.lane.room * 2).min(LOCKS);
                    return Ok(());
                }
                Err(Attempt::Failed(failure)) => failure,
                // Nobody but this transaction would tell, and a renewal is made again.
                Err(Attempt::Unknown { failure, commit: None, .. }) => failure,
                Err(Attempt::Unknown { failure, commit: Some(commit), held }) => loop {
                    match self.look(&commit, &held) {
                        Ok(true) => {
                            self.connector.committed(commit.last);
                            return Ok(());
                        }
                        Ok(false) => break failure,
                        Err(Failure::Failed(error)) if error.code() == Code::StoreWentBack => {
                            return Err(Fault::Nothing(error));
                        }
                        Err(_) if patience.is_left() => patience.pause(),
                        Err(_) => return Err(Fault::Unknown(StoreError::new(Code::CommitUnknown))),
                    }
                },
            };
            match failure {
                // Others that share its lane are not held up twice.
                Failure::Locked if waits => waits = false,
                // Once it may be a lock that was lost; twice it is what is to be saved.
                Failure::Stale(_) if !was_stale => was_stale = true,
                Failure::Again(_) | Failure::Locked if patience.is_left() => {}
                // Fewer commands have room, until it is one alone, which waits for some.
                Failure::Full if self.lane.room > 1 => self.lane.room /= 2,
                Failure::Lost(_) | Failure::Full if patience.is_left() => patience.pause(),
                failure => return Err(Fault::Nothing(failure.told())),
            }
        }
    }

    fn accept_clock(&mut self) {
        self.lane.clock.accept();
    }
}
