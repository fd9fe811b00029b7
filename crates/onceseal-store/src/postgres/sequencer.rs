//! The order of the log, given to what has been committed.
//!
//! A commit that finds the sequencer's lock free appends what others have left
//! and then its own events. One that does not leaves its own, for the next. What
//! is left is appended commit by commit, in the order of their numbers: of two
//! that changed one stream the later has the higher number, since it was given
//! under that stream's lock, and the events of one command stay together.

use futures_util::future::join;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::{Link, Parameter};
use super::rows::Rows;
use super::statements::{BEGIN, WAIT_FOR_LOCKS};
use crate::columns::integer;
use crate::raw::Misshapen;

/// Commits that are appended at once at most.
pub(super) const AT_ONCE: i64 = 1024;

/// Bytes of a place, as it is left.
const PLACE: usize = 16;

/// Where an event stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: i64,
    pub(super) sequence: i64,
}

/// What others have left, for whoever holds the sequencer's lock.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) ids: Vec<i64>,
    pub(super) places: Vec<Place>,
    /// Whether that is all of it: then this commit's own events may follow.
    pub(super) is_all: bool,
}

impl Left {
    /// Reads it from the facts of a transaction.
    pub(super) fn of(facts: &Row) -> Result<Left, Failure> {
        let ids: Vec<i64> = facts.try_get::<_, Option<_>>(4)?.unwrap_or_default();
        let events: Vec<&[u8]> = facts.try_get::<_, Option<_>>(5)?.unwrap_or_default();
        let mut left = Left { is_all: (ids.len() as i64) < AT_ONCE, ids, ..Left::default() };
        for bytes in events {
            // Nothing of it may be passed over: it would be in no log for good.
            if bytes.is_empty() || bytes.len() % PLACE != 0 {
                return Err(Misshapen("unsequenced.events").into());
            }
            left.places.extend(bytes.chunks_exact(PLACE).map(|place| {
                let number = |at: usize| {
                    let mut eight = [0; 8];
                    eight.copy_from_slice(&place[at..at + 8]);
                    i64::from_be_bytes(eight)
                };
                Place { stream: number(0), sequence: number(8) }
            }));
        }
        Ok(left)
    }
}

/// What a transaction is to know once it has its locks.
pub(super) async fn facts(link: &Link, tenant: i32) -> Result<Row, Failure> {
    let parameters: [Parameter<'_>; 2] = [(&tenant, Type::INT4), (&AT_ONCE, Type::INT8)];
    let rows = link.rows(&link.sql.facts, &parameters).await?;
    let row = rows.into_iter().next().ok_or(Misshapen("facts"))?;
    link.leads_to(integer(&row, 6, "since")?)?;
    Ok(row)
}

/// Events as a commit leaves them for the sequencer.
pub(super) fn packed(places: &[Place]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(places.len() * PLACE);
    for place in places {
        bytes.extend(place.stream.to_be_bytes());
        bytes.extend(place.sequence.to_be_bytes());
    }
    bytes
}

/// Appends everything that had been left, in transactions of its own. What is left
/// meanwhile is for whoever asks after that.
pub(super) async fn sequence(link: &Link, tenant: i32, numbers: [i64; 2]) -> Result<(), Failure> {
    loop {
        link.run(BEGIN).await?;
        match once(link, tenant, numbers).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(failure) => {
                // What it failed with says more than this would.
                let _ = link.run("ROLLBACK").await;
                return Err(failure);
            }
        }
    }
}

/// One transaction of it; whether that was all.
async fn once(link: &Link, tenant: i32, [schema, sequencer]: [i64; 2]) -> Result<bool, Failure> {
    let (numbers, alone) = (vec![schema, sequencer], vec![false, true]);
    link.rows(WAIT_FOR_LOCKS, &[(&numbers, Type::INT8_ARRAY), (&alone, Type::BOOL_ARRAY)]).await?;
    let facts = facts(link, tenant).await?;
    let newest = integer(&facts, 3, "log.position")?;
    let Left { ids, places, is_all } = Left::of(&facts)?;
    if ids.is_empty() {
        link.run("ROLLBACK").await?;
        return Ok(true);
    }
    let rows = Rows { newest, log: places, sequenced: ids, ..Rows::default() };
    let (appended, committed) = join(rows.save(link, tenant), link.run("COMMIT")).await;
    appended.and(committed)?;
    Ok(is_all)
}

#[cfg(test)]
mod tests {
    use onceseal_servers::server;

    use super::*;
    use crate::postgres::connect::Connector;
    use crate::postgres::schema;

    #[test]
    fn a_connection_that_leads_to_another_server_than_before_is_lost() {
        let database = server().new_database();
        let connector = Connector::new(database.url().parse().expect("an address")).expect("a connector");
        let link = connector.connect().expect("connected");
        schema::migrate(&connector, &link, 0).expect("the schema");
        link.wait(facts(&link, 1)).expect("the same server");
        // As behind a pooler, where nothing else tells.
        link.looked_at(1);
        assert!(matches!(link.wait(facts(&link, 1)), Err(Failure::Lost(_))));
    }
}
