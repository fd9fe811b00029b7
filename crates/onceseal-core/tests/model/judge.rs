//! What must be so in every state, and between one state and the next.

use onceseal_core::action::{ActionRow, ActionState, Answer};
use onceseal_core::approval::Status;
use onceseal_core::effect::{EffectRow, EffectState};
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;

use crate::ghost::{AGREE, ANSWERS, P02_KEPT, P02_ONCE, P03_KNOWN, P03_LIVE, P06_WORD, WAITING};
use crate::protocol::{Protocol, State, Step};

impl Protocol {
    pub(crate) fn judge(&self, before: &State, step: &Step, after: &mut State) {
        let found = [
            self.words(after),
            self.leases(before, step, after),
            self.approvals(before, step, after),
            self.actions(after),
        ];
        if let Some(promise) = found.into_iter().flatten().next() {
            after.breaks(promise);
        }
    }

    /// Fences are those handed out; failed and committed were said.
    fn words(&self, state: &State) -> Option<&'static str> {
        for (stream, ghost) in self.keys.iter().zip(&state.keys) {
            let row = state.ledger.effect(stream);
            if row.map_or(0, |row| row.fence) != ghost.fence {
                return Some(P03_KNOWN);
            }
            let said = match row.map(|row| row.state) {
                Some(EffectState::Failed) => ghost.said_failed,
                Some(EffectState::Committed) => ghost.said_committed,
                _ => true,
            };
            if !said {
                return Some(P06_WORD);
            }
        }
        None
    }

    /// Nobody but its holder and the remote ends an attempt whose lease lives.
    fn leases(&self, before: &State, step: &Step, after: &State) -> Option<&'static str> {
        if matches!(step, Step::Settle(..) | Step::Reconcile { .. }) {
            return None;
        }
        for (at, stream) in self.keys.iter().enumerate() {
            let held =
                |state: &State| state.ledger.effect(stream).filter(|row| row.held()).map(|row| row.fence);
            let (was, is) = (held(before), held(after));
            let ghost = &before.keys[at];
            if was.is_some() && was != is && ghost.lease >= 0 && !ghost.reported {
                return Some(P03_LIVE);
            }
        }
        None
    }

    fn approvals(&self, before: &State, step: &Step, after: &State) -> Option<&'static str> {
        let calls = matches!(step, Step::Run { .. } | Step::Resume { .. });
        for (at, ask) in after.asks.iter().enumerate() {
            let id = self.ask_id(at);
            let row = after.ledger.approval(id)?;
            if (row.status == Status::Consumed) != ask.used {
                return Some(P02_ONCE);
            }
            if row.status == Status::Granted && (!ask.yes || ask.denied || ask.revoked) {
                return Some(ANSWERS);
            }
            let twin = |other: usize| {
                let open = after.ledger.approval(self.ask_id(other)).is_some_and(|row| row.open());
                let other = &after.asks[other];
                open && other.expires >= 0 && (other.content, other.policy) == (ask.content, ask.policy)
            };
            if row.open() && ask.expires >= 0 && (at + 1..after.asks.len()).any(twin) {
                return Some(ANSWERS);
            }
            let was = before.ledger.approval(id).map(|row| row.status);
            let stands = ask.expires >= 0 && self.same_rule(ask.content, ask.policy, after.policy);
            let kept = matches!(row.status, Status::Granted) || ask.used;
            if calls && was == Some(Status::Granted) && stands && !kept {
                return Some(P02_KEPT);
            }
        }
        None
    }

    fn actions(&self, state: &State) -> Option<&'static str> {
        for (stream, cell) in state.ledger.iter() {
            match &cell.stored.row {
                Row::Action(row) => {
                    let id = ActionId(stream.name);
                    if let ActionState::Waiting { approval } = row.state
                        && !state.ledger.approval(approval).is_some_and(|row| row.open() && row.action == id)
                    {
                        return Some(WAITING);
                    }
                    if !agrees(state, row) {
                        return Some(AGREE);
                    }
                }
                Row::Effect(row) if row.held() => {
                    let runs =
                        state.ledger.action(row.holder).is_some_and(|action| action.runs(stream, row.fence));
                    if !runs {
                        return Some(AGREE);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Whether an action is where its effect is.
fn agrees(state: &State, action: &ActionRow) -> bool {
    let Some((stream, fence)) = action.held else {
        return !matches!(action.state, ActionState::Running { .. } | ActionState::Answered { .. });
    };
    let Some(effect) = state.ledger.effect(&stream) else { return false };
    let result = match &action.state {
        ActionState::Running { fence: runs } => {
            return *runs == fence && effect.held() && effect.fence == fence;
        }
        ActionState::Ended { result, .. } | ActionState::Answered { result, .. } => *result,
        ActionState::Ready { .. } | ActionState::Waiting { .. } => return false,
        ActionState::Queued { .. } | ActionState::Parked { .. } => return false,
    };
    // A newer attempt exists only because this one did not happen.
    if effect.fence > fence { result == Answer::Failed } else { same(effect, result) }
}

fn same(effect: &EffectRow, result: Answer) -> bool {
    let state = match result {
        Answer::Committed => EffectState::Committed,
        Answer::Failed => EffectState::Failed,
        Answer::Ambiguous => EffectState::Ambiguous,
        Answer::Denied | Answer::Blocked | Answer::Cancelled => return false,
    };
    effect.state == state
}
