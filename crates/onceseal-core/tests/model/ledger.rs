//! Rows without history: what a state of the model keeps of a store.
//!
//! Everything that no rule reads is made equal (receipts, error texts, past
//! moments), and the clock stands still: a tick moves the moments in the rows
//! instead. So two histories that permit the same are one state.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use onceseal_core::action::{ActionRow, ActionState};
use onceseal_core::approval::ApprovalRow;
use onceseal_core::effect::{EffectRow, EffectState};
use onceseal_core::hash::Hash as Sha;
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::journal::{Head, Key, Row, Stored};
use onceseal_core::policy::Verdict;
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};

/// One step of the clock.
pub(crate) const TICK: Span = Span::minutes(1);

/// The moment at which the clock stands.
pub(crate) fn now() -> Timestamp {
    crate::noon()
}

/// Ticks until a moment; −1 for any that is past.
pub(crate) fn ticks(at: Timestamp) -> i8 {
    let left = at.micros() - now().micros();
    i8::try_from(left.div_euclid(TICK.as_micros()).clamp(-1, 100)).expect("few")
}

/// A moment, at most a tick in the past: further back it makes no difference.
fn clamp(at: Timestamp) -> Timestamp {
    at.max(now() - TICK)
}

/// A row with what is found by it, and a digest of it.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) stored: Arc<Stored>,
    pub(crate) keys: Arc<[Key]>,
    digest: u64,
}

/// All rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    cells: BTreeMap<StreamId, Cell>,
}

impl Hash for Ledger {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (stream, cell) in &self.cells {
            stream.hash(state);
            cell.digest.hash(state);
        }
    }
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Ledger) -> bool {
        self.cells.len() == other.cells.len()
            && self.cells.iter().zip(&other.cells).all(|(a, b)| a.0 == b.0 && a.1.digest == b.1.digest)
    }
}

impl Ledger {
    pub(crate) fn get(&self, stream: &StreamId) -> Option<&Arc<Stored>> {
        self.cells.get(stream).map(|cell| &cell.stored)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&StreamId, &Cell)> {
        self.cells.iter()
    }

    pub(crate) fn put(&mut self, stream: StreamId, mut row: Row) {
        settle(&mut row);
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        let keys = row.keys().into();
        let head = Head { sequence: 1, hash: Sha([0; 32]) };
        let stored = Arc::new(Stored { head, row });
        self.cells.insert(stream, Cell { stored, keys, digest: hasher.finish() });
    }

    pub(crate) fn effect(&self, stream: &StreamId) -> Option<&EffectRow> {
        match &self.get(stream)?.row {
            Row::Effect(row) => Some(row),
            _ => None,
        }
    }

    pub(crate) fn action(&self, id: ActionId) -> Option<&ActionRow> {
        match &self.get(&StreamId::action(id))?.row {
            Row::Action(row) => Some(row),
            _ => None,
        }
    }

    pub(crate) fn approval(&self, id: ApprovalId) -> Option<&ApprovalRow> {
        match &self.get(&StreamId::approval(id))?.row {
            Row::Approval(row) => Some(row),
            _ => None,
        }
    }

    /// One step of the clock, as the rows see it.
    pub(crate) fn tick(&mut self) {
        for (stream, cell) in std::mem::take(&mut self.cells) {
            let mut row = cell.stored.row.clone();
            match &mut row {
                Row::Effect(row) => {
                    row.lease_until = row.lease_until.map(|until| clamp(until - TICK));
                    row.deadline = clamp(row.deadline - TICK);
                }
                Row::Approval(row) => row.expires_at = clamp(row.expires_at - TICK),
                _ => {
                    self.cells.insert(stream, cell);
                    continue;
                }
            }
            self.put(stream, row);
        }
    }

    /// Changes a row.
    pub(crate) fn change(&mut self, stream: &StreamId, change: impl FnOnce(&mut Row)) {
        let mut row = self.cells[stream].stored.row.clone();
        change(&mut row);
        self.put(*stream, row);
    }

    /// Forgets the ended actions that are not among these.
    pub(crate) fn forget(&mut self, wanted: &[ActionId]) {
        self.cells.retain(|stream, cell| match &cell.stored.row {
            Row::Action(row) => {
                let ended = matches!(row.state, ActionState::Ended { .. } | ActionState::Answered { .. });
                !ended || wanted.contains(&ActionId(stream.name))
            }
            _ => true,
        });
    }
}

/// Makes equal what no rule tells apart.
fn settle(row: &mut Row) {
    const RECEIPT: ReceiptId = ReceiptId([0; 16]);
    match row {
        Row::Action(row) => {
            (row.created_at, row.updated_at) = (now(), now());
            row.approval = None;
            row.decided.policy = Sha([0; 32]);
            row.decided.decision = Verdict::Allow;
            row.decided.reason.clear();
            match &mut row.state {
                ActionState::Ended { receipt, code, .. } => (*receipt, *code) = (RECEIPT, None),
                ActionState::Answered { receipt, first, .. } => (*receipt, *first) = (RECEIPT, RECEIPT),
                _ => {}
            }
        }
        Row::Approval(row) => {
            (row.created_at, row.updated_at) = (now(), now());
            for response in &mut row.private.responses {
                response.at = now();
            }
            if !row.open() {
                row.private.responses.clear();
                (row.action, row.consumed_by, row.revoked) = (ActionId([0; 16]), None, None);
            }
        }
        Row::Effect(row) => {
            (row.created_at, row.updated_at) = (now(), now());
            (row.result_at, row.code) = (None, None);
            // Only contracts, which nothing here has, look at these.
            (row.generation, row.first_begun_at, row.claimed_from) = (1, None, None);
            row.late.clear();
            (row.private.error, row.private.result) = (None, None);
            if !row.held() {
                row.deadline = now() - TICK;
            }
            if matches!(row.state, EffectState::Committed | EffectState::Failed) {
                row.lease_until = Some(now() - TICK);
            }
        }
        Row::Policy(row) => row.updated_at = now(),
        _ => {}
    }
}
