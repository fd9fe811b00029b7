//! Handoffs, played on both sides.

use onceseal_core::action::Principal;
use onceseal_core::approval::{Identity, Proof};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, HandoffState, PrepareHandoff, WithdrawHandoff};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::journal::Row;
use onceseal_core::lease::Resource;
use onceseal_core::time::Span;

use super::naive::Say;
use super::naive::handoffs::{By, Stage};
use super::play::Play;
use super::steps::Handing;

const RECEIPTS: u8 = 24;

fn receipt(number: u8) -> Hash {
    Hash([number % RECEIPTS; 32])
}

impl Play<'_> {
    /// What it is on both sides; nothing if there is no run yet.
    pub(crate) fn hand(&mut self, handing: Handing) -> Option<(Command, Result<Say, Code>)> {
        let count = self.runs.len();
        if count == 0 {
            return None;
        }
        let naive = &mut self.naive;
        Some(match handing {
            Handing::Prepare { run, lease, operator, receipt: number, facts } => {
                let held = (!self.leases.is_empty()).then(|| self.leases[lease % self.leases.len()].clone());
                let (run, giver, by) = match held.filter(|_| operator.is_none()) {
                    Some((run, lease)) => (run, Giver::Holder(lease.clone()), By::Holder(lease.fence)),
                    None => person(run % count, operator.unwrap_or(true)),
                };
                let said = naive.prepare(run, number % RECEIPTS, facts, by);
                let facts = ["{}", r#"{"n":1}"#, "[]"][usize::from(facts)].to_owned();
                let (resource, principal) = (Resource::Run(self.runs[run]), Principal::agent("bot"));
                let prepare =
                    PrepareHandoff { resource, receipt: receipt(number), facts, by: giver, principal };
                (Command::PrepareHandoff(Box::new(prepare)), said)
            }
            Handing::Accept { run, receipt: number, holder, seconds } => {
                let run = self.prepared(run, number);
                let said = self.naive.accept(run, number % RECEIPTS, holder, seconds);
                let (resource, holder) = (Resource::Run(self.runs[run]), HolderKey([holder; 16]));
                let (length, principal) = (Span::seconds(seconds), Principal::agent("next"));
                let receipt = receipt(number);
                (Command::AcceptHandoff(AcceptHandoff { resource, receipt, holder, length, principal }), said)
            }
            Handing::Withdraw { run, receipt: number, operator } => {
                let run = self.prepared(run, number);
                let (run, giver, by) = person(run, operator);
                let said = self.naive.withdraw(run, number % RECEIPTS, by);
                let (resource, receipt) = (Resource::Run(self.runs[run]), receipt(number));
                (Command::WithdrawHandoff(WithdrawHandoff { resource, receipt, by: giver }), said)
            }
        })
    }

    /// Mostly the run that the receipt is of.
    fn prepared(&self, run: usize, number: u8) -> usize {
        let known = self.naive.handoffs.get(&(number % RECEIPTS)).filter(|_| !run.is_multiple_of(8));
        known.map_or(run % self.runs.len(), |known| known.run)
    }

    /// Whether handoffs stand where the model has them.
    pub(crate) fn compare_handoffs(&self) -> Result<(), String> {
        for number in 0..RECEIPTS {
            let found = match self.world.row(&self.world.pinned.tenant.handoff(receipt(number))) {
                Some(Row::Handoff(row)) => {
                    let stage = match (row.state, row.holder) {
                        (HandoffState::Accepted, Some(holder)) => Stage::Accepted(self.holder(holder)),
                        (HandoffState::Withdrawn, _) => Stage::Withdrawn,
                        _ => Stage::Prepared,
                    };
                    Some((row.fence, stage))
                }
                _ => None,
            };
            let told = self.naive.handoffs.get(&number).map(|told| (told.fence, told.stage));
            if found != told {
                return Err(format!("handoff {number} is {found:?}, not {told:?}"));
            }
        }
        Ok(())
    }
}

fn person(run: usize, operator: bool) -> (usize, Giver, By) {
    let name = if operator { "owner" } else { "somebody" }.to_owned();
    let person = Identity { proof: Proof::Os, name };
    (run, Giver::Operator { person, reason: "it is gone".to_owned() }, By::Person(operator))
}
