//! What a server is like: what is looked at on every connection, and what an
//! operator may want to know.

use onceseal_core::code::Code;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failover::{Failover, Waited};
use super::failure::{Clash, Failure, unreachable};
use super::link::Link;
use super::lock::of_schema;
use super::rights;
use super::schema::{self, Found};
use super::sequencer::AT_ONCE;
use super::statements::{CLOCK, CONNECTIONS, LOCKS, MAY_MAKE, SERVER, STANDBYS};
use super::url::PostgresUrl;
use crate::clock::Clock;
use crate::error::StoreError;

/// The oldest server that has all that is used.
const OLDEST: i64 = 13;
/// Clocks farther apart than this, in microseconds, are not kept right by anybody.
const SKEW_US: i64 = 5_000_000;
/// A standby is this far behind where it does not keep up.
const LAG: (i64, i64) = (16 * 1024 * 1024, 10_000_000);
/// A transaction that waits for locks longer than this will hardly get them.
const WAIT_US: i64 = 5_000_000;

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its major and minor version.
    pub version: (i64, i64),
    /// Whether it waits for its disk.
    pub fsync: bool,
    /// Whether a torn page can be put right.
    pub full_page_writes: bool,
    /// How the database encodes text.
    pub encoding: String,
    /// The standbys that commits wait for, `synchronous_standby_names`; empty: none.
    pub synchronous: String,
    /// What the standbys are called that follow it.
    pub standbys: Vec<String>,
    /// Since when it runs, in microseconds since 1970.
    pub(super) since_us: i64,
    /// What all are called that follow it, also those that cannot take over.
    followers: Vec<String>,
    /// Its clock, in microseconds since 1970.
    pub(super) clock_us: i64,
}

/// How a server is, as far as its role may see: `None` where it may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// What it says of itself.
    pub server: Server,
    /// Whether this connection is encrypted.
    pub is_encrypted: bool,
    /// Whether every host of the address is this machine.
    pub is_here: bool,
    /// How many hosts the address names.
    pub hosts: usize,
    /// What is in the schema of the address.
    pub schema: SchemaState,
    /// Whether commits can be listened for, and why not, where the address says that
    /// somebody does.
    pub listening: Option<Result<(), String>>,
    /// How far its clock is from this host's.
    pub skew: Skew,
    /// Commits that have no place in the log yet.
    pub unsequenced: Option<i64>,
    /// Events that wait for a place in the log and have one: nobody gets past them.
    pub stuck: Option<i64>,
    /// Who follows it.
    pub standbys: Option<Vec<Standby>>,
    /// Its locks.
    pub locks: Option<LockRoom>,
    /// Its connections.
    pub connections: Option<Connections>,
}

/// What is in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// Nothing, and whether the role may make it.
    Absent {
        /// It owns the schema, or may make it.
        may_make: bool,
    },
    /// Tables of ours, of the first version and of this program's newest.
    Ours {
        /// Theirs.
        version: i64,
        /// This program's.
        newest: i64,
        /// Statements that grant what the role lacks to act; none where it lacks nothing.
        lacks: Vec<String>,
    },
    /// Tables of ours which the role may not even look into, and what it lacks to act.
    Closed {
        /// Statements that grant it.
        lacks: Vec<String>,
    },
    /// Something that is not to be used, and why.
    Foreign(String),
}

/// How far a server's clock is ahead of this host's, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// By so much: negative where it is behind.
    pub ahead_us: i64,
    /// Within so much: half of the time that the answer took.
    pub error_us: i64,
}

/// A standby, and how far it is behind with what it has on its disk: `None` where
/// the role may not see it, or the server does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standby {
    /// What it calls itself.
    pub name: String,
    /// In bytes of the log of writes.
    pub bytes: Option<i64>,
    /// In microseconds, when it last said so.
    pub lag_us: Option<i64>,
}

/// Advisory locks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRoom {
    /// So many are held, by whomever.
    pub held: i64,
    /// There is room for so many locks, of all kinds.
    pub room: i64,
    /// So many transactions of this store wait for one.
    pub waiting: i64,
    /// The longest for so many microseconds, of those that the role may look into.
    pub longest_us: Option<i64>,
}

/// Connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// So many are open, by whomever.
    pub open: i64,
    /// There may be so many.
    pub most: i64,
}

impl Server {
    /// What becomes of acknowledged commits where it is lost.
    #[must_use]
    pub fn failover(&self) -> Failover {
        match (self.unwaited().is_empty(), self.synchronous.is_empty()) {
            (false, _) => Failover::Asynchronous,
            (true, true) => Failover::None,
            (true, false) => Failover::Synchronous,
        }
    }

    /// The standbys that may take over without what was acknowledged: those that commits
    /// do not wait for, and where they wait for some of several, each of these.
    #[must_use]
    pub fn unwaited(&self) -> Vec<&str> {
        let waited = Waited::of(&self.synchronous);
        let all = self.standbys.iter().map(String::as_str);
        let (named, mut unwaited): (Vec<&str>, Vec<&str>) = all.partition(|name| waited.may_be(name));
        if named.len() > waited.most {
            unwaited.extend(named);
        }
        unwaited
    }

    /// Whether commits wait for more than are there: until they are back, none ends.
    #[must_use]
    pub fn waits_in_vain(&self) -> bool {
        let waited = Waited::of(&self.synchronous);
        self.followers.iter().filter(|name| waited.may_be(name)).count() < waited.most
    }

    /// One sentence for each setting that protects and is not as it has to be.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.forbids().into_iter().map(str::to_owned).collect();
        if !self.full_page_writes {
            faults.push("full_page_writes is off, which only some file systems make up for".to_owned());
        }
        faults
    }

    /// Why it cannot be used at all.
    fn forbids(&self) -> Option<&'static str> {
        match () {
            () if self.version.0 < OLDEST => Some("the server is older than PostgreSQL 13"),
            () if !self.fsync => Some("the server's fsync is off: it would forget what it acknowledged"),
            () if self.encoding != "UTF8" => Some("the database's encoding is not UTF8"),
            () => None,
        }
    }

    /// Refuses a server that cannot be used.
    pub(super) fn or_refuse(&self) -> Result<(), StoreError> {
        self.forbids().map_or(Ok(()), |what| Err(StoreError::with(Code::StoreFailed, what)))
    }

    /// Refuses one whose standby may lose commits, unless that is accepted.
    pub(super) fn or_accepted(&self, accepts: bool) -> Result<(), StoreError> {
        match self.failover() {
            Failover::Asynchronous if !accepts => Err(StoreError::new(Code::StandbyMayLose)),
            _ => Ok(()),
        }
    }
}

impl Skew {
    /// Whether the clocks are so far apart that nobody keeps them right. Nothing
    /// here is decided by the host's.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.ahead_us.saturating_abs().saturating_sub(self.error_us) > SKEW_US
    }
}

impl Standby {
    /// Whether it does not keep up; `None` where that is not known.
    #[must_use]
    pub fn is_behind(&self) -> Option<bool> {
        self.bytes.map(|bytes| bytes > LAG.0 || self.lag_us.is_some_and(|lag| lag > LAG.1))
    }
}

impl LockRoom {
    /// Whether more than half of the room is taken: batches soon have too little.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.held > self.room / 2
    }

    /// Whether somebody waits in vain.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.longest_us.is_some_and(|longest| longest > WAIT_US)
    }
}

impl Connections {
    /// Whether fewer than a tenth are left.
    #[must_use]
    pub fn are_short(&self) -> bool {
        self.open > self.most - self.most / 10
    }
}

impl ServerState {
    /// So many commits are given a place in the log at once: where more have none,
    /// nobody can.
    pub const UNSEQUENCED: i64 = AT_ONCE;

    /// Looks at the server at this address, and at what is there of this tenant;
    /// changes nothing, and refuses no server that answers.
    ///
    /// # Errors
    /// `store_unreachable`.
    pub fn of(url: PostgresUrl, tenant: &str, clock: &dyn Clock) -> Result<ServerState, StoreError> {
        let connector = Connector::new(url)?;
        look(&connector, tenant, clock).map_err(Failure::told)
    }
}

impl Connector {
    /// What the server says of itself.
    pub(super) fn server(&self, link: &Link) -> Result<Server, Failure> {
        let rows = link.wait(link.rows(SERVER, &[]))?;
        let row = rows.first().ok_or_else(|| Failure::Lost(unreachable("it says nothing of itself")))?;
        let is_on = |at| row.try_get::<_, &str>(at).is_ok_and(|value| value == "on");
        let version: i64 = row.try_get(0)?;
        Ok(Server {
            version: (version / 10_000, version % 10_000),
            fsync: is_on(1),
            full_page_writes: is_on(2),
            encoding: row.try_get(3)?,
            synchronous: row.try_get(4)?,
            standbys: row.try_get(5)?,
            clock_us: row.try_get(6)?,
            followers: row.try_get(7)?,
            since_us: row.try_get(8)?,
        })
    }
}

fn look(connector: &Connector, tenant: &str, clock: &dyn Clock) -> Result<ServerState, Failure> {
    const UNSEQUENCED: i64 = ServerState::UNSEQUENCED;
    let link = connector.bare()?;
    let server = connector.server(&link)?;
    Ok(ServerState {
        is_encrypted: connector.url.tls.is_some(),
        is_here: connector.url.is_here(),
        hosts: connector.url.hosts().len(),
        schema: schema(connector, &link, tenant)?,
        listening: connector.direct().map(|direct| connector.reaches(direct)),
        skew: skew(&link, clock)?,
        unsequenced: visible(waiting(
            &link,
            &link.sql.count_unsequenced,
            tenant,
            UNSEQUENCED.saturating_mul(100),
        ))?,
        stuck: visible(waiting(&link, &link.sql.stuck, tenant, UNSEQUENCED))?,
        standbys: visible(standbys(&link))?,
        locks: visible(locks(&link, of_schema(&connector.url.schema)))?,
        connections: visible(connections(&link))?,
        server,
    })
}

fn schema(connector: &Connector, link: &Link, tenant: &str) -> Result<SchemaState, Failure> {
    let lacking = |makes| link.wait(rights::lacking(link, &connector.url.schema, makes));
    match link.wait(schema::look(connector, link)) {
        Ok(Found::Ours(version)) => {
            let newest = schema::version(connector.migrations);
            let tenant = visible(link.wait(link.rows(&link.sql.tenant, &[(&tenant, Type::TEXT)])))?;
            let makes = tenant.is_none_or(|found| found.is_empty());
            Ok(SchemaState::Ours { version, newest, lacks: lacking(makes)? })
        }
        Ok(Found::Empty) => {
            let rows = link.wait(link.rows(MAY_MAKE, &[(&connector.url.schema, Type::TEXT)]))?;
            let may_make = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
            Ok(SchemaState::Absent { may_make })
        }
        Err(Failure::Failed(error)) => {
            let lacks = if error.code() == Code::StoreFailed { lacking(true)? } else { Vec::new() };
            if lacks.is_empty() {
                return Ok(SchemaState::Foreign(error.detail().to_owned()));
            }
            Ok(SchemaState::Closed { lacks })
        }
        Err(other) => Err(other),
    }
}

/// What the server does not tell this role, or does not have, is not there.
fn visible<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Lost(why)) => Err(Failure::Lost(why)),
        Err(_) => Ok(None),
    }
}

/// Around one round trip, on a connection that has answered before.
fn skew(link: &Link, clock: &dyn Clock) -> Result<Skew, Failure> {
    let asked = clock.now();
    let rows = link.wait(link.rows(CLOCK, &[]))?;
    let told = clock.now();
    let server: i64 = rows.first().map_or(Ok(asked.wall_us), |row| row.try_get(0))?;
    let error_us = told.boot_us.saturating_sub(asked.boot_us) / 2;
    Ok(Skew { ahead_us: server.saturating_sub(asked.wall_us.saturating_add(error_us)), error_us })
}

/// Counts of what a tenant has left for the sequencer, up to so many.
fn waiting(link: &Link, sql: &str, tenant: &str, most: i64) -> Result<i64, Failure> {
    let rows = link.wait(link.rows(sql, &[(&tenant, Type::TEXT), (&most, Type::INT8)]))?;
    Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
}

fn standbys(link: &Link) -> Result<Vec<Standby>, Failure> {
    let rows = link.wait(link.rows(STANDBYS, &[]))?;
    let read = |row: &tokio_postgres::Row| {
        Ok(Standby { name: row.try_get(0)?, bytes: row.try_get(1)?, lag_us: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

fn locks(link: &Link, schema: i64) -> Result<LockRoom, Failure> {
    let rows = link.wait(link.rows(LOCKS, &[(&schema, Type::INT8)]))?;
    let row = rows.first().ok_or(Failure::Stale(Clash::Row))?;
    Ok(LockRoom {
        held: row.try_get(0)?,
        room: row.try_get(1)?,
        waiting: row.try_get(2)?,
        longest_us: row.try_get(3)?,
    })
}

fn connections(link: &Link) -> Result<Connections, Failure> {
    let rows = link.wait(link.rows(CONNECTIONS, &[]))?;
    let row = rows.first().ok_or(Failure::Stale(Clash::Row))?;
    Ok(Connections { open: row.try_get(0)?, most: row.try_get(1)? })
}
