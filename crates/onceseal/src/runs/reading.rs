//! Reading runs and leases. Nothing here changes anything.

use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::id::{RootId, RunId};
use onceseal_core::journal::{Row, Stored};
use onceseal_core::lease::{Holder, Resource};
use onceseal_core::run::{Definition, Life, RunRow};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;
use onceseal_store::StoreError;
use onceseal_store::read::{self, Rows, row_of};

use crate::control::Control;
use crate::error::Error;
use crate::views::{Cursor, Filter};

/// Rows looked at for one page of a list.
const PAGE: usize = 256;

/// Where a run stands, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// Something may follow.
    Living,
    /// Nothing does.
    Ended,
    /// In this state of its definition.
    In(String),
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only those of this kind.
    pub kind: Option<String>,
    /// Only those that stand so.
    pub stand: Option<Stand>,
    /// Only those of this project.
    pub root: Option<RootId>,
    /// Only those started at or before this moment.
    pub until: Option<Timestamp>,
    /// Only what comes after this place.
    pub after: Option<Cursor>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
}

impl RunFilter {
    fn fits(&self, row: &RunRow) -> bool {
        let stands = match &self.stand {
            Some(Stand::In(state)) => row.state == *state,
            // The index says so.
            Some(Stand::Living | Stand::Ended) | None => true,
        };
        stands
            && self.kind.as_ref().is_none_or(|kind| row.kind == *kind)
            && self.root.is_none_or(|root| row.root == root)
    }

    fn rows(&self) -> Filter {
        let life = match self.stand {
            Some(Stand::Living) => Some(Life::Living.number()),
            Some(Stand::Ended) => Some(Life::Ended.number()),
            Some(Stand::In(_)) | None => None,
        };
        let RunFilter { until, after, newest_first, .. } = *self;
        Filter { state: life, until, after, newest_first, ..Filter::default() }
    }
}

/// One page of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct ListedRuns {
    /// The runs.
    pub items: Vec<(RunId, RunRow)>,
    /// Streams whose rows do not decode.
    pub unreadable: Vec<StreamId>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

/// A run with all that is known of it.
#[derive(Debug, Clone)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The number of its newest event.
    pub sequence: u64,
    /// Its row.
    pub row: RunRow,
    /// What it goes by; `None` if that is erased.
    pub definition: Option<Arc<Definition>>,
    /// Who holds it at the moment, if anybody does.
    pub holder: Option<Holder>,
    /// Whose lease on it is over though nobody has recorded that: whoever takes the
    /// run, or sweeps, does, and interrupts it.
    pub lapsed: Option<Holder>,
}

impl RunView {
    /// What an operator may ask for now, with the state that follows; `None` where
    /// the program that works on the run says which.
    pub fn commands(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.definition.iter().flat_map(|definition| definition.commands(&self.row.state))
    }

    /// The states that may follow.
    pub fn next(&self) -> impl Iterator<Item = &str> {
        let edges = self.definition.iter().flat_map(|definition| definition.edges());
        edges.filter(|(from, _)| *from == self.row.state).map(|(_, to)| to)
    }
}

impl Control {
    /// A page of runs: as many as are asked for, if there are so many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list_runs(&self, filter: &RunFilter, limit: usize) -> Result<ListedRuns, Error> {
        let (mut rows, mut listed) = (filter.rows(), ListedRuns::default());
        loop {
            let page = self.list(StreamKind::Run, &rows, PAGE)?;
            listed.unreadable.extend(page.unreadable);
            for (stream, row) in page.items {
                let Row::Run(row) = row else { continue };
                if !filter.fits(&row) {
                    continue;
                }
                if listed.items.len() == limit {
                    listed.next = listed.items.last().map(|(id, row)| Filter::after_run(*id, row));
                    return Ok(listed);
                }
                listed.items.push((RunId(stream.name), row));
            }
            rows.after = page.next;
            if rows.after.is_none() {
                return Ok(listed);
            }
        }
    }

    /// A run with all that is known of it, as one picture of the store has it.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn run(&self, id: RunId) -> Result<Option<RunView>, Error> {
        let now = self.store().now();
        let held = self.store().tenant().lease(&Resource::Run(id).to_string());
        let view = self.store().read_rows(|snapshot| {
            let Some((sequence, row)) = run_row(snapshot, id)? else { return Ok(None) };
            let definition = match read::definition(snapshot, row.definition) {
                Err(error) if error.code() == Code::Erased => None,
                definition => definition?.map(Arc::new),
            };
            let (holder, lapsed) = match row_of(snapshot.stream(&held)?).map(|stored| stored.row) {
                Some(Row::Lease(row)) => (row.live(now).next().cloned(), row.lapsed(now).next().cloned()),
                _ => (None, None),
            };
            Ok(Some(RunView { id, sequence, row, definition, holder, lapsed }))
        });
        Ok(view?)
    }
}

/// A run's row with the number of its newest event.
pub(super) fn run_row(snapshot: &dyn Rows, id: RunId) -> Result<Option<(u64, RunRow)>, StoreError> {
    match snapshot.stream(&StreamId::run(id))? {
        Loaded::Absent => Ok(None),
        Loaded::Unreadable => Err(StoreError::new(Code::Corrupt)),
        Loaded::Row(stored) => match Arc::unwrap_or_clone(stored) {
            Stored { head, row: Row::Run(row) } => Ok(Some((head.sequence, row))),
            _ => Err(StoreError::new(Code::Corrupt)),
        },
    }
}
