//! What can happen next in a state.

use onceseal_core::action::ActionState;
use onceseal_core::approval::Said;
use onceseal_core::effect::Outcome;
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;

use crate::ghost::Ran;
use crate::protocol::{CONTENTS, Protocol, State, Step};

impl Protocol {
    pub(crate) fn holder_steps(&self, state: &State, steps: &mut Vec<Step>) {
        let mut last = None;
        for &hold in &state.holds {
            // Two holds that are alike do the same.
            if last.replace(hold) == Some(hold) {
                continue;
            }
            steps.push(Step::Crash(hold));
            if self.bounds.leases {
                steps.push(Step::Renew(hold));
            }
            if state.fenced(&hold) || !self.watched(hold.key) {
                // Whatever it returns.
                steps.extend(Outcome::ALL.iter().map(|outcome| Step::Settle(hold, *outcome)));
                if !hold.begun || state.fenced(&hold) {
                    steps.push(Step::Begin(hold));
                }
                continue;
            }
            if !hold.begun {
                steps.push(Step::Begin(hold));
            }
            if hold.begun && hold.ran == Ran::No && hold.lease >= 0 {
                steps.extend([Ran::Done, Ran::Lost].map(|ran| Step::Perform(hold, ran)));
            }
            steps.push(Step::Settle(hold, Outcome::Ambiguous));
            match hold.ran {
                Ran::No => steps.push(Step::Settle(hold, Outcome::Failed)),
                Ran::Done => steps.push(Step::Settle(hold, Outcome::Committed)),
                Ran::Lost => {}
            }
        }
    }

    pub(crate) fn proposer_steps(&self, state: &State, steps: &mut Vec<Step>) {
        if state.holds.len() == self.bounds.holders {
            return;
        }
        for (content, (name, ..)) in CONTENTS.iter().enumerate() {
            steps.push(Step::Run { content, approval: None });
            if *name == "pay" {
                steps.extend((0..state.asks.len()).map(|ask| Step::Run { content, approval: Some(ask) }));
            }
        }
        for (stream, cell) in state.ledger.iter() {
            if let Row::Action(row) = &cell.stored.row
                && matches!(row.state, ActionState::Waiting { .. })
            {
                steps.push(Step::Resume { action: ActionId(stream.name) });
            }
        }
    }

    pub(crate) fn other_steps(&self, state: &State, steps: &mut Vec<Step>) {
        for key in 0..self.keys.len() {
            let ghost = &state.keys[key];
            if ghost.fence == 0 {
                continue;
            }
            if ghost.in_flight {
                steps.push(Step::Land(key));
            }
            steps.push(Step::LapseEffect(key));
            steps.extend([true, false].map(|happened| Step::Resolve { key, happened }));
            // The remote does not lie, and knows payments alone.
            if self.watched(key) {
                steps.push(Step::Reconcile { key, happened: ghost.happened });
            }
        }
        for approval in 0..state.asks.len() {
            steps.push(Step::LapseApproval(approval));
            steps.push(Step::Revoke(approval));
            for said in [Said::Yes, Said::No] {
                steps.extend([true, false].map(|entitled| Step::Answer { approval, said, entitled }));
            }
        }
        steps.extend([Step::Tick, Step::Activate]);
    }
}
