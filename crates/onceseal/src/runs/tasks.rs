//! Reading tasks, plans and what stands in the way. Nothing here changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::id::RunId;
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::Object;
use onceseal_core::lease::{Holder, LeaseRow, Resource};
use onceseal_core::run::{Definition, RunRow};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{self, Blocker, PlanRow, TaskRow, TaskState, blockers};
use onceseal_core::view::Loaded;
use onceseal_store::StoreError;
use onceseal_store::read::{self, Page, Rows, row_of};

use super::reading::run_row;
use super::{Run, corrupt};
use crate::control::{Control, refused};
use crate::error::Error;
use crate::views::Cursor;

/// Keys read at once: as many as may be at work.
const PAGE: usize = 256;

/// Which tasks of a run to list.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only those in this state. Without one, those that the plan has no more are
    /// left out.
    pub state: Option<TaskState>,
    /// Only what comes after this place.
    pub after: Option<Cursor>,
}

/// One page of a run's tasks, in the order of its plan.
#[derive(Debug, Clone, Default)]
pub struct ListedTasks {
    /// The tasks.
    pub items: Vec<TaskView>,
    /// Streams whose rows do not decode.
    pub unreadable: Vec<StreamId>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}

/// A task with all that is known of it.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Its stream.
    pub stream: StreamId,
    /// The number of its newest event.
    pub sequence: u64,
    /// Its row.
    pub row: TaskRow,
    /// Who works on it at the moment, if anybody does.
    pub holder: Option<Holder>,
    /// Whose lease on it is over though nobody has recorded that: whoever takes the
    /// next task does, and it is attempted again.
    pub lapsed: Option<Holder>,
    /// Ids of the tasks that it waits for; of one that is pending only.
    pub waits_for: Vec<String>,
    /// Why it does not go on, if it does not.
    pub blocker: Option<Blocker>,
}

impl TaskView {
    /// Its id; `None` if that is erased.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.row.private.id.as_deref()
    }
}

/// Something that stands in the way of a run, with the task that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTheWay {
    /// What it is.
    pub blocker: Blocker,
    /// The id of the task, if it is about one and that is not erased.
    pub task: Option<String>,
}

impl Run {
    /// All tasks of its plan, in the plan's order.
    ///
    /// # Errors
    /// `run_unknown`, or the store cannot be read.
    pub async fn tasks(&self) -> Result<Vec<TaskView>, Error> {
        let id = self.id;
        let listed = self.control.aside(move |control| {
            if control.run(id)?.is_none() {
                return Err(refused(Code::RunUnknown.into()));
            }
            control.list_tasks(id, &TaskFilter::default(), usize::MAX)
        });
        Ok(listed.await?.items)
    }

    /// One task of it; `None` if no plan of it ever had one with this id.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub async fn task(&self, task: &str) -> Result<Option<TaskView>, Error> {
        let (id, task) = (self.id, task.to_owned());
        self.control.aside(move |control| control.task(id, &task)).await
    }

    /// Everything that stands in its way at once, the run itself first.
    ///
    /// # Errors
    /// `run_unknown`, or the store cannot be read.
    pub async fn blockers(&self) -> Result<Vec<InTheWay>, Error> {
        let id = self.id;
        let found = self.control.aside(move |control| control.blockers(id)).await?;
        found.ok_or_else(|| refused(Code::RunUnknown.into()))
    }
}

impl Control {
    /// A page of a run's tasks: as many as are asked for, if there are so many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list_tasks(&self, run: RunId, filter: &TaskFilter, limit: usize) -> Result<ListedTasks, Error> {
        let mut listed = ListedTasks::default();
        let after =
            filter.after.map(|cursor| (task::number_key(run, cursor.number()).bytes, cursor.stream()));
        let mut page = Page { after, ..of_run(run) };
        loop {
            let hits = self.store().read_rows(|snapshot| {
                let hits = snapshot.keys(&page)?;
                let reader = Reader::new(self, snapshot, run)?;
                for hit in &hits {
                    let is_in = |row: &TaskRow| match filter.state {
                        Some(state) => row.state == state,
                        None => row.state != TaskState::Closed,
                    };
                    match reader.view(&hit.stream) {
                        Ok(Some(view)) if is_in(&view.row) => {
                            if listed.items.len() == limit {
                                let last = listed.items.last();
                                listed.next = last.map(|last| Cursor::numbered(last.row.number, last.stream));
                                return Ok(Vec::new());
                            }
                            listed.items.push(view);
                        }
                        Ok(Some(_)) => {}
                        Ok(None) => listed.unreadable.push(hit.stream),
                        Err(error) if error.code() == Code::Corrupt => listed.unreadable.push(hit.stream),
                        Err(error) => return Err(error),
                    }
                }
                Ok(hits)
            })?;
            match hits.into_iter().last() {
                Some(last) => page.after = Some((last.key, last.stream)),
                None => return Ok(listed),
            }
        }
    }

    /// A task of a run; `None` if no plan of the run ever had one with this id.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn task(&self, run: RunId, task: &str) -> Result<Option<TaskView>, Error> {
        let stream = self.store().tenant().task(run, task);
        Ok(self.store().read_rows(|snapshot| Reader::new(self, snapshot, run)?.view(&stream))?)
    }

    /// What a task is, as its plan says it.
    ///
    /// # Errors
    /// The store cannot be read, `erased`, or `corrupt`.
    pub fn task_spec(&self, task: &TaskView) -> Result<Object, Error> {
        let payload = self.store().read_rows(|snapshot| snapshot.payload(&task.stream, task.row.spec_at))?;
        let payload = payload.ok_or_else(|| StoreError::new(Code::Erased))?;
        super::object(&payload.text)
    }

    /// The plan of a run, if it has one.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn plan(&self, run: RunId) -> Result<Option<PlanRow>, Error> {
        match self.row(&self.store().tenant().plan(run))? {
            Some(Row::Plan(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// Everything that stands in the way of a run at once, the run itself first;
    /// `None` if there is no such run.
    ///
    /// # Errors
    /// The store cannot be read, `erased` for the run's definition, or `corrupt`.
    pub fn blockers(&self, run: RunId) -> Result<Option<Vec<InTheWay>>, Error> {
        let Some(view) = self.run(run)? else { return Ok(None) };
        let definition = view.definition.ok_or_else(|| StoreError::new(Code::Erased))?;
        let listed = self.list_tasks(run, &TaskFilter::default(), usize::MAX)?;
        if !listed.unreadable.is_empty() {
            return Err(corrupt());
        }
        let rows: Vec<_> = listed.items.into_iter().map(|task| task.row).collect();
        let ids: BTreeMap<u32, &String> =
            rows.iter().filter_map(|task| Some((task.number, task.private.id.as_ref()?))).collect();
        let found = blockers(&view.row, &definition, &rows).into_iter().map(|blocker| {
            let task = blocker.task.and_then(|number| ids.get(&number)).map(|id| (*id).clone());
            InTheWay { blocker, task }
        });
        Ok(Some(found.collect()))
    }

    /// Whether any task of a run is at work, or in line with attempts left: if not,
    /// nothing goes on before somebody says so.
    ///
    /// # Errors
    /// The store cannot be read, or a row does not decode.
    pub fn has_tasks_to_do(&self, run: RunId) -> Result<bool, Error> {
        let mut page = Page::of(task::at_work_or_in_line(run), PAGE);
        loop {
            let (hits, any) = self.store().read_rows(|snapshot| {
                let hits = snapshot.keys(&page)?;
                let reader = Reader::new(self, snapshot, run)?;
                for hit in &hits {
                    let goes_on = |row: &TaskRow| row.state.is_worked_on() || row.attempts_left() > 0;
                    if reader.stored(&hit.stream)?.is_some_and(|(_, row)| goes_on(&row)) {
                        return Ok((Vec::new(), true));
                    }
                }
                Ok((hits, false))
            })?;
            match hits.into_iter().last() {
                Some(last) => page.after = Some((last.key, last.stream)),
                None => return Ok(any),
            }
        }
    }

    /// The leases on tasks of a run that are at work and whose holders are gone.
    pub(super) fn lapsed_tasks(&self, run: RunId) -> Result<Vec<StreamId>, Error> {
        let page = Page::of(task::at_work(run), PAGE);
        let found = self.store().read_rows(|snapshot| {
            let mut found = Vec::new();
            let reader = Reader::new(self, snapshot, run)?;
            for hit in snapshot.keys(&page)? {
                let Some(view) = reader.view(&hit.stream)? else { continue };
                let over = view.holder.is_none() && view.lapsed.is_some();
                found.extend(view.id().filter(|_| over).map(|id| reader.lease_stream(id)));
            }
            Ok(found)
        });
        Ok(found?)
    }
}

/// Every task that was ever in a plan of the run.
pub(super) fn of_run(run: RunId) -> Page {
    Page::of(task::of_run(run), PAGE)
}

/// Reads tasks of one run from one picture of the store.
struct Reader<'a> {
    control: &'a Control,
    snapshot: &'a dyn Rows,
    run: RunId,
    row: Option<RunRow>,
    definition: Option<Definition>,
}

impl<'a> Reader<'a> {
    fn new(control: &'a Control, snapshot: &'a dyn Rows, run: RunId) -> Result<Reader<'a>, StoreError> {
        let row = run_row(snapshot, run)?.map(|(_, row)| row);
        let definition = match row.as_ref().map(|row| read::definition(snapshot, row.definition)) {
            None => None,
            Some(Err(error)) if error.code() == Code::Erased => None,
            Some(definition) => definition?,
        };
        Ok(Reader { control, snapshot, run, row, definition })
    }

    fn lease_stream(&self, task: &str) -> StreamId {
        self.control.store().tenant().lease(&Resource::Task(self.run, task.to_owned()).to_string())
    }

    fn lease(&self, task: &str) -> Result<Option<LeaseRow>, StoreError> {
        Ok(match row_of(self.snapshot.stream(&self.lease_stream(task))?).map(|stored| stored.row) {
            Some(Row::Lease(row)) => Some(row),
            _ => None,
        })
    }

    fn stored(&self, stream: &StreamId) -> Result<Option<(u64, TaskRow)>, StoreError> {
        match self.snapshot.stream(stream)? {
            Loaded::Absent => Ok(None),
            Loaded::Unreadable => Err(StoreError::new(Code::Corrupt)),
            Loaded::Row(stored) => match Arc::unwrap_or_clone(stored) {
                Stored { head, row: Row::Task(row) } => Ok(Some((head.sequence, row))),
                _ => Err(StoreError::new(Code::Corrupt)),
            },
        }
    }

    fn view(&self, stream: &StreamId) -> Result<Option<TaskView>, StoreError> {
        let Some((sequence, row)) = self.stored(stream)? else { return Ok(None) };
        let now = self.control.store().now();
        let lease = match row.private.id.as_deref() {
            Some(id) if row.state.is_worked_on() => self.lease(id)?,
            _ => None,
        };
        let (holder, lapsed) = match &lease {
            Some(lease) => (lease.live(now).next().cloned(), lease.lapsed(now).next().cloned()),
            None => (None, None),
        };
        let mut waits_for = Vec::new();
        if row.state == TaskState::Pending {
            for on in &row.depends_on {
                let Some((_, on)) = self.stored(on)? else { continue };
                waits_for.extend(on.private.id.filter(|_| on.state != TaskState::Verified));
            }
        }
        let blocker = match (&self.row, &self.definition) {
            (Some(run), Some(definition)) => {
                let found = blockers(run, definition, std::slice::from_ref(&row));
                found.into_iter().find(|blocker| blocker.task.is_some())
            }
            _ => None,
        };
        Ok(Some(TaskView { stream: *stream, sequence, row, holder, lapsed, waits_for, blocker }))
    }
}
