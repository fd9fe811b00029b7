//! A lease's row and its fold: who holds a resource.

use crate::hash::Hash;
use crate::id::HolderId;
use crate::journal::{Body, Event, Index, Key};
use crate::pack::{Corrupt, Pack};
use crate::record::{record, word};
use crate::stream::{StreamId, StreamKind};
use crate::time::Timestamp;

/// How many outcomes a row remembers: of older leases a repeated commit is
/// fenced.
const OUTCOMES_KEPT: usize = 64;

word! {
    /// Whether anybody holds a resource.
    pub enum Use {
        /// Somebody does.
        Held = 1 => "held",
        /// Nobody does.
        Free = 2 => "free",
    }
}

record! {
    /// One lease that has not ended.
    pub struct Holder {
        /// Its number.
        fence: u64,
        /// Whose it is.
        holder: HolderId,
        /// Whether others may hold the resource too.
        shared: bool,
        /// It ends here unless it is renewed.
        until: Timestamp,
    }
}

record! {
    /// Where a lease's outcome is kept.
    pub struct Outcome {
        /// The lease's number.
        fence: u64,
        /// The event that has it.
        sequence: u64,
    }
}

/// A resource's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseRow {
    /// The newest lease's number; never reused, never restarted.
    pub fence: u64,
    /// Who holds it, in the order in which they took it.
    pub holders: Vec<Holder>,
    /// What it is a part of, blinded.
    pub above: Vec<Hash>,
    /// The run or task that is interrupted when a lease ends without a word.
    pub interrupts: Option<StreamId>,
    /// The newest outcomes, the oldest first.
    pub outcomes: Vec<Outcome>,
    /// When it was first taken.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: LeasePrivate,
}

record! {
    /// The private half of a resource's row.
    pub struct LeasePrivate {
        /// The resource as it is printed.
        resource: Option<String>,
    }
}

impl Pack for LeaseRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.fence.pack(out);
        self.holders.pack(out);
        self.above.pack(out);
        self.interrupts.pack(out);
        self.outcomes.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<LeaseRow, Corrupt> {
        Ok(LeaseRow {
            fence: Pack::unpack(input)?,
            holders: Pack::unpack(input)?,
            above: Pack::unpack(input)?,
            interrupts: Pack::unpack(input)?,
            outcomes: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: LeasePrivate { resource: None },
        })
    }
}

/// The key under which resources that are held are found by what they are a
/// part of.
#[must_use]
pub fn below_key(above: Hash) -> Key {
    Key::of(Index::Below, &[&above.0[..16]])
}

impl LeaseRow {
    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        let held = if self.holders.is_empty() { Use::Free } else { Use::Held };
        let mut keys = vec![Key::state(StreamKind::Lease, held.number(), self.created_at)];
        if let Some(first) = self.holders.iter().map(|holder| holder.until).min() {
            keys.push(Key::due(first));
            keys.extend(self.above.iter().map(|above| below_key(*above)));
        }
        keys
    }

    /// The lease of this number, if it has not ended.
    #[must_use]
    pub fn lease(&self, fence: u64) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.fence == fence)
    }

    /// Those whose leases are over, though nobody has said so.
    pub fn lapsed(&self, now: Timestamp) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |holder| now > holder.until)
    }

    /// Those who hold it at this moment.
    pub fn live(&self, now: Timestamp) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |holder| now <= holder.until)
    }

    /// Whether leases are over that nobody has recorded as over, and none is live.
    pub(crate) fn is_abandoned(&self, now: Timestamp) -> bool {
        self.lapsed(now).next().is_some() && self.live(now).next().is_none()
    }

    /// Moves the end of the lease of this number: the one change without an event.
    pub fn renew(&mut self, fence: u64, until: Timestamp) {
        for holder in self.holders.iter_mut().filter(|holder| holder.fence == fence) {
            holder.until = until;
        }
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(
    row: Option<LeaseRow>,
    sequence: u64,
    at: Timestamp,
    event: &Event,
) -> Result<LeaseRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of a lease's events");
    let mut row = match (row, &event.body) {
        (Some(row), _) => row,
        (None, Body::LeaseTaken(data, sealed)) => LeaseRow {
            fence: 0,
            holders: Vec::new(),
            above: data.above.clone(),
            interrupts: data.interrupts,
            outcomes: Vec::new(),
            created_at: at,
            updated_at: at,
            private: LeasePrivate { resource: sealed.resource.clone() },
        },
        (None, _) => return Err(WRONG),
    };
    let ends = |row: &mut LeaseRow, fence: u64| {
        let before = row.holders.len();
        row.holders.retain(|holder| holder.fence != fence);
        if row.holders.len() < before { Ok(()) } else { Err(WRONG) }
    };
    match &event.body {
        Body::LeaseTaken(data, _) if data.fence == row.fence + 1 => {
            if row.holders.iter().any(|other| !(other.shared && data.shared)) {
                return Err(WRONG);
            }
            row.fence = data.fence;
            let (fence, holder, shared, until) = (data.fence, data.holder, data.shared, data.until);
            row.holders.push(Holder { fence, holder, shared, until });
        }
        Body::LeaseCommitted(data, _) => {
            ends(&mut row, data.fence)?;
            row.outcomes.push(Outcome { fence: data.fence, sequence });
            if row.outcomes.len() > OUTCOMES_KEPT {
                row.outcomes.remove(0);
            }
        }
        Body::LeaseInterrupted(data, _) | Body::LeaseLapsed(data, _) => ends(&mut row, data.fence)?,
        Body::LeasePreempted(..) if !row.holders.is_empty() => row.holders.clear(),
        _ => return Err(WRONG),
    }
    row.updated_at = at;
    Ok(row)
}
