//! Reading who holds what. Nothing here changes anything.

use onceseal_core::code::Code;
use onceseal_core::journal::{Index, Row};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::lease::{Holder, LeaseRow, Resource, Use, below_key};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_store::StoreError;
use onceseal_store::read::{Page, row_of};

use crate::control::Control;
use crate::error::Error;
use crate::views::{Cursor, Filter};

/// Rows looked at for one page of a list.
const PAGE: usize = 256;

/// A resource as it is held.
#[derive(Debug, Clone)]
pub struct LeaseView {
    /// The resource.
    pub resource: Resource,
    /// Its row.
    pub row: LeaseRow,
    /// When this was looked at.
    pub now: Timestamp,
}

impl LeaseView {
    /// Who holds it, in the order in which they took it.
    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.row.live(self.now)
    }
}

/// One page of what is held, in the order in which it was first taken.
#[derive(Debug, Clone)]
pub struct ListedLeases {
    /// The rows of the resources.
    pub items: Vec<LeaseRow>,
    /// Streams whose rows do not decode.
    pub unreadable: Vec<StreamId>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
    /// When this was looked at.
    pub now: Timestamp,
}

impl Control {
    /// How a resource is held; `None` if it never was.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn inspect_lease(&self, resource: &Resource) -> Result<Option<LeaseView>, Error> {
        let now = self.store().now();
        match self.row(&self.store().tenant().lease(&resource.to_string()))? {
            Some(Row::Lease(row)) => Ok(Some(LeaseView { resource: resource.clone(), row, now })),
            _ => Ok(None),
        }
    }

    /// The outcome with which the lease of this number was given up, if it was and
    /// is not too old to be known.
    ///
    /// # Errors
    /// The store cannot be read, `erased`, or `corrupt`.
    pub fn lease_outcome(&self, lease: &LeaseView, fence: u64) -> Result<Option<Object>, Error> {
        let Some(kept) = lease.row.outcomes.iter().find(|kept| kept.fence == fence) else { return Ok(None) };
        let stream = self.store().tenant().lease(&lease.resource.to_string());
        let payload = self.store().read_rows(|snapshot| snapshot.payload(&stream, kept.sequence))?;
        let payload = payload.ok_or_else(|| StoreError::new(Code::Erased))?;
        match json::read_canonical(&payload.text, &Limits::DATA) {
            Ok(Value::Object(outcome)) => Ok(Some(outcome)),
            _ => Err(StoreError::new(Code::Corrupt).into()),
        }
    }

    /// What is held above or below a resource, whose holders are in the way of whoever
    /// takes it: first what it is a part of. At most so many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn in_the_way(&self, resource: &Resource, limit: usize) -> Result<Vec<LeaseRow>, Error> {
        let (now, tenant) = (self.store().now(), self.store().tenant());
        let bytes = below_key(tenant.lookup(&resource.to_string())).bytes;
        let (from, to) = (bytes.clone(), bytes);
        let below = Page { index: Index::Below, from, to, after: None, newest_first: false, limit };
        let held = self.store().read_rows(|snapshot| {
            let mut streams: Vec<StreamId> =
                resource.above().map(|above| tenant.lease(&above.to_string())).collect();
            streams.extend(snapshot.keys(&below)?.into_iter().map(|hit| hit.stream));
            let mut held = Vec::new();
            for stream in streams {
                match row_of(snapshot.stream(&stream)?).map(|stored| stored.row) {
                    Some(Row::Lease(row)) if row.live(now).next().is_some() => held.push(row),
                    _ => {}
                }
            }
            held.truncate(limit);
            Ok(held)
        });
        Ok(held?)
    }

    /// A page of the resources that somebody holds: as many as are asked for, if there
    /// are so many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list_leases(
        &self,
        after: Option<Cursor>,
        newest_first: bool,
        limit: usize,
    ) -> Result<ListedLeases, Error> {
        let state = Some(Use::Held.number());
        let mut filter = Filter { state, after, newest_first, ..Filter::default() };
        let now = self.store().now();
        let mut listed = ListedLeases { items: Vec::new(), unreadable: Vec::new(), next: None, now };
        let mut last = None;
        loop {
            let page = self.list(StreamKind::Lease, &filter, PAGE)?;
            listed.unreadable.extend(page.unreadable);
            for (stream, row) in page.items {
                // One whose leases are over is held by nobody, though nobody said so.
                let Row::Lease(row) = row else { continue };
                if row.live(now).next().is_none() {
                    continue;
                }
                if listed.items.len() == limit {
                    listed.next = last;
                    return Ok(listed);
                }
                last = Some(Filter::after_lease(stream, &row));
                listed.items.push(row);
            }
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(listed);
            }
        }
    }
}
