//! What waits for a person, counted in one picture of the store: no list can
//! be clear while something waits in another.

use onceseal_core::approval::Status;
use onceseal_core::effect::EffectState;
use onceseal_core::journal::Index;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::Timestamp;
use onceseal_store::StoreError;
use onceseal_store::read::{Page, Rows};

use crate::control::Control;
use crate::error::Error;

/// Keys counted at once.
const PAGE: usize = 1_000;

/// How much of each kind there is, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attention {
    /// Requests that nobody has answered.
    pub pending: Waiting,
    /// Approvals that nobody has used: they expire.
    pub granted: Waiting,
    /// Effects of which nobody knows whether they happened.
    pub unknown: Waiting,
}

/// Things of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// How many.
    pub count: u64,
    /// When the oldest was made.
    pub oldest: Option<Timestamp>,
}

impl Attention {
    /// How many things wait for a person.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.pending.count + self.granted.count + self.unknown.count
    }
}

impl Control {
    /// What waits for a person now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn attention(&self) -> Result<Attention, Error> {
        let found = self.store().read_rows(|snapshot| {
            let approvals = |status: Status| count(snapshot, StreamKind::Approval, status.number());
            Ok(Attention {
                pending: approvals(Status::Pending)?,
                granted: approvals(Status::Granted)?,
                unknown: count(snapshot, StreamKind::Effect, EffectState::Ambiguous.number())?,
            })
        });
        Ok(found?)
    }
}

fn count(snapshot: &dyn Rows, kind: StreamKind, state: u8) -> Result<Waiting, StoreError> {
    let mut waiting = Waiting::default();
    let mut after = None;
    loop {
        let page = Page {
            index: Index::State,
            from: vec![kind.number(), state],
            to: vec![kind.number(), state + 1],
            after,
            newest_first: false,
            limit: PAGE,
        };
        let found = snapshot.keys(&page)?;
        if let (None, Some(first)) = (waiting.oldest, found.first()) {
            let made = first.key.last_chunk().map(|bytes| i64::from_be_bytes(*bytes));
            waiting.oldest = made.and_then(Timestamp::from_micros);
        }
        waiting.count += found.len() as u64;
        match found.into_iter().last() {
            Some(last) => after = Some((last.key, last.stream)),
            None => return Ok(waiting),
        }
    }
}
