//! What a transaction saves, and its COMMIT: one round trip.

use std::collections::HashMap;

use futures_util::join;
use onceseal_core::code::Code;
use onceseal_core::stream::StreamId;
use tokio_postgres::types::Type;

use super::Transaction;
use crate::backend::{Changes, RowChange};
use crate::error::StoreError;
use crate::postgres::connect::Committed;
use crate::postgres::failure::Failure;
use crate::postgres::link::{Link, Parameter};
use crate::postgres::numbers::{BLOCK, next_block};
use crate::postgres::rows::{Rows, integer};
use crate::postgres::sequencer::{Left, Place, packed};

/// Where saving failed.
pub(in crate::postgres) enum Unsaved {
    /// Before COMMIT was sent, or with an answer that means nothing happened.
    Before(Failure),
    /// After COMMIT was sent, without its answer. Nothing that another sees would tell
    /// where no event was to be recorded.
    Unknown { failure: Failure, commit: Option<Box<Commit>> },
}

/// A commit whose answer is missing: whether its first event is there tells what
/// became of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct Commit {
    pub(in crate::postgres) stream: i64,
    pub(in crate::postgres) sequence: i64,
    pub(in crate::postgres) command: [u8; 16],
    pub(in crate::postgres) last: Committed,
}

impl Transaction<'_> {
    /// Saves everything and commits. It is committed if every statement changed what
    /// it should, the last one before COMMIT too, and COMMIT was answered: an
    /// aborted transaction answers each of them with an error. Returns the last event.
    pub(in crate::postgres) fn save(&mut self, changes: &Changes) -> Result<Option<Committed>, Unsaved> {
        self.reserve(changes).map_err(Unsaved::Before)?;
        let mut new = self.columns(changes).map_err(|error| Unsaved::Before(error.into()))?;
        let places: Vec<Place> = (0..new.events.streams.len())
            .map(|n| Place { stream: new.events.streams[n], sequence: new.events.sequences[n] })
            .collect();
        let nothing = Left::default();
        let (newest, left) = self.sequencer.as_ref().map_or((0, &nothing), |(newest, left)| (*newest, left));
        let is_sequenced = self.sequencer.is_some() && left.is_all;
        (new.newest, new.log, new.sequenced) = (newest, left.places.clone(), left.ids.clone());
        match is_sequenced {
            true => new.log.extend(&places),
            false => new.unsequenced = packed(&places),
        }
        let (link, tenant) = (self.link, self.lane.tenant);
        let commit = commit(&new, changes).map(Box::new);
        let unknown = |failure: Failure| Unsaved::Unknown { failure, commit: commit.clone() };
        let saving = async {
            let (saved, own) = join!(new.save(link, tenant), own_rows(link, tenant, changes));
            saved.and(own)
        };
        crate::fault::reach("before_commit").map_err(|error| Unsaved::Before(error.into()))?;
        let (saved, committed) =
            link.wait(async { Ok(join!(saving, link.run("COMMIT"))) }).map_err(unknown)?;
        match (saved, committed) {
            (Ok(()), Ok(())) => {}
            // An error that was answered aborted the transaction, whatever COMMIT said.
            (Err(failure), _) if !matches!(failure, Failure::Lost(_)) => {
                return Err(Unsaved::Before(failure));
            }
            (Err(failure), _) | (Ok(()), Err(failure)) => return Err(unknown(failure)),
        }
        crate::fault::reach("after_commit").map_err(|error| unknown(Failure::Lost(error)))?;
        Ok(commit.as_ref().map(|commit| commit.last))
    }

    /// Numbers for the streams that are new.
    fn reserve(&mut self, changes: &Changes) -> Result<(), Failure> {
        let new = changes.rows.iter().filter(|change| change.before.is_none()).count() as i64;
        if self.lane.ids.end - self.lane.ids.start >= new {
            return Ok(());
        }
        // What is left of the last block stays unused: the order of numbers is the order
        // in which streams were made.
        let blocks = usize::try_from(new.div_euclid(BLOCK) + 1).unwrap_or(usize::MAX);
        let link = self.link;
        let first = link.wait(async {
            let mut first = None;
            let mut next = None;
            for _ in 0..blocks {
                let block = next_block(link).await?;
                // Blocks have to follow on each other; where another took one in between,
                // the count begins anew.
                if next != Some(block) {
                    first = Some(block);
                }
                next = Some(block + 1);
            }
            Ok(first.zip(next))
        })?;
        let Some((first, next)) = first else { return Err(Failure::Again("no numbers")) };
        self.lane.ids = first * BLOCK..next * BLOCK;
        if self.lane.ids.end - self.lane.ids.start < new {
            return Err(Failure::Again("another took the numbers"));
        }
        Ok(())
    }

    fn columns<'c>(&mut self, changes: &'c Changes) -> Result<Rows<'c>, StoreError> {
        let mut new = Rows::default();
        let mut ids: HashMap<StreamId, i64> = HashMap::new();
        for change in &changes.rows {
            let id = self.row(change, &mut new)?;
            ids.insert(change.stream, id);
        }
        let id = |stream: &StreamId| ids.get(stream).copied().ok_or_else(|| StoreError::new(Code::Internal));
        for event in &changes.events {
            new.event(event, id(&event.stamp.stream)?)?;
        }
        for change in &changes.rows {
            let (gone, added) = change.keys();
            let id = id(&change.stream)?;
            gone.into_iter().for_each(|key| new.gone.push(key, id, 0));
            added.into_iter().for_each(|key| new.keys.push(key, id, 0));
        }
        Ok(new)
    }

    fn row(&mut self, change: &RowChange, new: &mut Rows<'_>) -> Result<i64, StoreError> {
        let known = self.rows.get(&change.stream).and_then(|(id, _)| *id);
        let (id, before, streams) = match (&change.before, known) {
            (Some(before), Some(id)) => (id, integer(before.head.sequence)?, &mut new.moved),
            (Some(_), None) => return Err(StoreError::new(Code::Internal)),
            // Two that made the same stream at once meet in its unique name.
            (None, _) => {
                let id = self.lane.ids.next().ok_or_else(|| StoreError::new(Code::Internal))?;
                (id, 0, &mut new.made)
            }
        };
        let (open, private) = change.after.row.packed();
        streams.ids.push(id);
        streams.before.push(before);
        streams.kinds.push(i16::from(change.stream.kind.number()));
        streams.names.push(change.stream.name.to_vec());
        streams.sequences.push(integer(change.after.head.sequence)?);
        streams.heads.push(change.after.head.hash.0.to_vec());
        streams.open.push(open);
        streams.private.push(private);
        Ok(id)
    }
}

/// What tells whether it was committed.
fn commit(new: &Rows<'_>, changes: &Changes) -> Option<Commit> {
    let (streams, sequences) = (&new.events.streams, &new.events.sequences);
    let (first, last) = (changes.events.first()?, changes.events.last()?);
    let last = Committed { stream: *streams.last()?, sequence: *sequences.last()?, hash: last.hash };
    let command = first.stamp.command;
    Some(Commit { stream: *streams.first()?, sequence: *sequences.first()?, command, last })
}

async fn own_rows(link: &Link, tenant: i32, changes: &Changes) -> Result<(), Failure> {
    let mut gone: Vec<&str> = Vec::new();
    let (mut keys, mut values): (Vec<&str>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for (key, value) in &changes.own {
        match value {
            Some(value) => {
                keys.push(key);
                values.push(value);
            }
            None => gone.push(key),
        }
    }
    let deleting: [Parameter<'_>; 2] = [(&tenant, Type::INT4), (&gone, Type::TEXT_ARRAY)];
    let putting: [Parameter<'_>; 3] =
        [(&tenant, Type::INT4), (&keys, Type::TEXT_ARRAY), (&values, Type::BYTEA_ARRAY)];
    let (deleted, put) = join!(
        // Taking out what was not there changes nothing.
        link.rows_for(!gone.is_empty(), &link.sql.delete_own, &deleting),
        link.change(keys.len(), &link.sql.put_own, &putting),
    );
    deleted?;
    put
}
