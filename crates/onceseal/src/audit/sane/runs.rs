//! What a run and the definition it goes by say of each other.

use onceseal_core::run::{DeliveryRow, RunRow};
use onceseal_core::stream::Tenant;
use onceseal_store::StoreError;

use super::{Judge, Moves, Named, code};

impl Judge<'_> {
    /// A run went where its definition lets it, and stands where that has it.
    pub(super) fn run(&mut self, row: &RunRow, moves: &Moves) -> Result<(), StoreError> {
        let definition = match self.tally.definition(self.snapshot, row.definition)? {
            Named::Is(definition) => definition,
            // It is named where its own event is checked.
            Named::Unreadable => return Ok(()),
            Named::Absent => {
                self.find(code::RUN_DIFFERS, "goes by a definition that is not there");
                return Ok(());
            }
        };
        let is_state =
            |state: &str, ends: bool| definition.has(state) && definition.is_terminal(state) == ends;
        if definition.kind() != row.kind || !is_state(&row.state, row.terminal) {
            self.find(code::RUN_DIFFERS, "stands where its definition does not have it");
        }
        for ((from, to, ends), sequence) in moves {
            if !definition.permits(from, to) || !is_state(to, *ends) {
                let wrong = format!("went from {from} to {to} in event {sequence} against its definition");
                self.find(code::RUN_DIFFERS, &wrong);
            }
        }
        Ok(())
    }

    /// A delivery stands at a gate of its run, and is proven by an action that
    /// used the approval it names.
    pub(super) fn delivery(&mut self, tenant: &Tenant, row: &DeliveryRow) -> Result<(), StoreError> {
        if tenant.delivery(row.run, &row.gate, row.revision) != self.stream {
            self.misnamed("its run, gate and revision");
        }
        let known = match self.run_row(row.run)? {
            Named::Is(run) => run.revision_of(&row.gate) >= Some(row.revision),
            Named::Absent => false,
            Named::Unreadable => true,
        };
        if !known {
            self.find(code::RUN_DIFFERS, "is bound at a gate of which its run does not know");
        }
        let proven = match (row.approval, row.action) {
            (None, None) => true,
            (Some(approval), Some(action)) => match self.approval_row(approval)? {
                Named::Is(approval) => approval.consumed_by == Some(action),
                Named::Absent => false,
                Named::Unreadable => true,
            },
            _ => false,
        };
        if !proven {
            self.find(code::APPROVAL_DIFFERS, "is proven by an approval that was not used for it");
        }
        Ok(())
    }
}
