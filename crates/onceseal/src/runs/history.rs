//! What the events of a run come to: at a moment of it, between two, and now.

use onceseal_core::code::Code;
use onceseal_core::decide::evolve;
use onceseal_core::id::RunId;
use onceseal_core::journal::Row;
use onceseal_core::json::Value;
use onceseal_core::run::RunRow;
use onceseal_core::stream::StreamId;
use onceseal_store::StoreError;
use onceseal_store::read::Snapshot;

use super::reading::run_row;
use crate::audit::{self, AuditReport};
use crate::control::Control;
use crate::error::Error;
use crate::render;

/// Events read at once.
const PAGE: usize = 256;

/// One member of a run that differs between two moments of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, as [`render::run`] has it.
    pub member: String,
    /// What it was.
    pub before: Value,
    /// What it became.
    pub after: Value,
}

/// A run rebuilt from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// What the events come to.
    pub row: RunRow,
    /// How many there are.
    pub sequence: u64,
    /// Whether it is what is stored.
    pub same: bool,
}

impl Control {
    /// The run as it was after its event of this number; `None` if it has none of
    /// that number.
    ///
    /// # Errors
    /// The store cannot be read, or `corrupt` if its events do not come to a run.
    pub fn run_at(&self, id: RunId, sequence: u64) -> Result<Option<RunRow>, Error> {
        let folded = self.store().read(|snapshot| fold(snapshot, id, sequence))?;
        Ok(folded.filter(|(last, _)| *last == sequence).map(|(_, row)| row))
    }

    /// What changed of a run between two of its events, in the order of the members'
    /// names; `None` if it has no event of one of these numbers.
    ///
    /// # Errors
    /// As [`Control::run_at`].
    pub fn run_changes(&self, id: RunId, from: u64, to: u64) -> Result<Option<Vec<Change>>, Error> {
        let (Some(before), Some(after)) = (self.run_at(id, from)?, self.run_at(id, to)?) else {
            return Ok(None);
        };
        let (Value::Object(before), Value::Object(after)) =
            (render::run(id, &before), render::run(id, &after))
        else {
            return Ok(None);
        };
        let differs = |(name, after): (&str, &Value)| {
            let before = before.get(name)?;
            (before != after).then(|| Change {
                member: name.to_owned(),
                before: before.clone(),
                after: after.clone(),
            })
        };
        Ok(Some(after.iter().filter_map(differs).collect()))
    }

    /// Folds a run's events anew, and compares with what is stored. Nothing is
    /// written. `None` if there is no such run.
    ///
    /// # Errors
    /// As [`Control::run_at`].
    pub fn rebuild_run(&self, id: RunId) -> Result<Option<Rebuilt>, Error> {
        let rebuilt = self.store().read(|snapshot| {
            let folded = fold(snapshot, id, u64::MAX)?;
            let stored = match run_row(snapshot, id) {
                Err(error) if error.code() == Code::Corrupt => None,
                stored => stored?,
            };
            let same = folded == stored;
            Ok(folded.map(|(sequence, row)| Rebuilt { row, sequence, same }))
        });
        Ok(rebuilt?)
    }

    /// Audits one run: its chain, seals and texts, what its events come to, and
    /// its keys.
    ///
    /// # Errors
    /// The store cannot be read at all: nothing is said of it.
    pub fn verify_run(&self, id: RunId) -> Result<AuditReport, Error> {
        audit::stream_alone(self, &StreamId::run(id))
    }
}

/// What a run's events come to, up to one of this number, and the last one's.
fn fold(snapshot: &dyn Snapshot, id: RunId, to: u64) -> Result<Option<(u64, RunRow)>, StoreError> {
    const WRONG: Code = Code::Corrupt;
    let stream = StreamId::run(id);
    let (mut last, mut row) = (0, None);
    loop {
        let page = snapshot.events(&stream, last + 1, PAGE)?;
        if page.is_empty() || last >= to {
            break;
        }
        for stored in page.into_iter().take_while(|stored| stored.stamp.sequence <= to) {
            let event = stored.event.ok_or_else(|| StoreError::new(WRONG))?;
            let (sequence, at) = (stored.stamp.sequence, stored.stamp.at);
            row = Some(evolve(&stream, row, sequence, at, &event)?);
            last = sequence;
        }
        if last == 0 {
            break;
        }
    }
    match row {
        None => Ok(None),
        Some(Row::Run(row)) => Ok(Some((last, row))),
        Some(_) => Err(StoreError::new(WRONG)),
    }
}
