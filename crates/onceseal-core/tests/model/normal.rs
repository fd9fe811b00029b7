//! What makes no difference any more is made equal, so that histories that
//! permit the same become one state. This runs after a state was judged.

use onceseal_core::action::ActionState;
use onceseal_core::approval::{Source, Status};
use onceseal_core::effect::EffectState;
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;
use onceseal_core::stream::StreamId;

use crate::ghost::{AskGhost, Hold, Ran};
use crate::ledger::{TICK, now};
use crate::protocol::{Protocol, State};

/// Stands for a holder that nothing will ask for again.
const GONE: ActionId = ActionId([0xff; 16]);

impl Protocol {
    pub(crate) fn normalise(&self, state: &mut State) {
        self.holds(state);
        self.effects(state);
        self.asks(state);
        self.forget(state);
        state.holds.sort_unstable();
    }

    /// A fenced holder may say anything, whatever it did; without a live lease
    /// nothing is left to renew.
    fn holds(&self, state: &mut State) {
        for at in 0..state.holds.len() {
            let hold = state.holds[at];
            if state.fenced(&hold) {
                let Hold { key, action, fence, .. } = hold;
                state.holds[at] =
                    Hold { key, action, fence, begun: true, lease: -1, deadline: -1, ran: Ran::No };
            } else if hold.lease < 0 || !self.bounds.leases {
                state.holds[at].deadline = -1;
            }
        }
    }

    fn effects(&self, state: &mut State) {
        for key in 0..self.keys.len() {
            let Some(row) = state.ledger.effect(&self.keys[key]).cloned() else { continue };
            let held = state.holds.iter().any(|hold| hold.key == key && hold.fence == row.fence);
            let ghost = &mut state.keys[key];
            // What is under way for longer than a lease and the remote's own time is lost.
            ghost.in_flight &= ghost.lease >= 0;
            if row.state == EffectState::Committed {
                (ghost.in_flight, ghost.happened, ghost.said_failed) = (false, false, false);
            }
            if !row.held() {
                ghost.reported = true;
            }
            if ghost.reported && !ghost.in_flight {
                ghost.lease = -1;
            }
            let known = matches!(row.state, EffectState::Committed | EffectState::Failed);
            let mut settled = row.clone();
            if known && !held {
                (settled.holder, settled.answered_by) = (GONE, Some(Source::Holder));
                ghost.answered = true;
            }
            if settled.answered_by == Some(Source::Remote) {
                settled.answered_by = Some(Source::Person);
            }
            if row.held() && !(row.live(now()) && self.bounds.leases) {
                settled.deadline = now() - TICK;
            }
            if row.state == EffectState::Ambiguous && !self.watched(key) {
                settled.lease_until = Some(now() - TICK);
            }
            if settled != row {
                state.ledger.put(self.keys[key], Row::Effect(settled));
            }
        }
    }

    /// A closed request permits nothing: what it was about matters for a denial
    /// that is remembered, and for no other.
    fn asks(&self, state: &mut State) {
        for at in 0..state.asks.len() {
            let id = self.ask_id(at);
            let Some(row) = state.ledger.approval(id).cloned() else { continue };
            let remembered = row.status == Status::Denied && row.expires_at >= now();
            if row.open() || remembered {
                continue;
            }
            let used = state.asks[at].used;
            let (yes, denied, revoked) = (used, false, false);
            state.asks[at] = AskGhost { content: 0, policy: 0, expires: -1, yes, denied, revoked, used };
            let mut closed = row.clone();
            closed.expires_at = now() - TICK;
            closed.private.bound = self.bound();
            if closed != row {
                state.ledger.put(StreamId::approval(id), Row::Approval(closed));
            }
        }
    }

    fn forget(&self, state: &mut State) {
        let mut wanted: Vec<_> = state.holds.iter().map(|hold| hold.action).collect();
        let mut known = Vec::new();
        for (stream, cell) in state.ledger.iter() {
            match &cell.stored.row {
                Row::Effect(row) => wanted.push(row.holder),
                Row::Approval(row) if row.open() => wanted.push(row.action),
                Row::Action(row) => {
                    if let ActionState::Answered { result, receipt, .. } = row.state {
                        known.push((*stream, ActionState::Ended { result, code: None, receipt }));
                    }
                }
                _ => {}
            }
        }
        for (stream, ended) in known {
            state.ledger.change(&stream, |row| {
                if let Row::Action(row) = row {
                    row.state = ended;
                }
            });
        }
        state.ledger.forget(&wanted);
    }
}
