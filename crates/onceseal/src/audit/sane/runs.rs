//! What a run and the definition it goes by say of each other.

use onceseal_core::code::Code;
use onceseal_core::run::{DeliveryRow, RunRow};
use onceseal_core::stream::Tenant;
use onceseal_store::{StoreError, read};

use super::{Judge, Named, code};

impl Judge<'_> {
    pub(super) fn run(&mut self, row: &RunRow) -> Result<(), StoreError> {
        let definition = match read::definition(self.snapshot, row.definition) {
            Ok(definition) => definition,
            // It is named where its own event is checked.
            Err(error) if matches!(error.code(), Code::Erased | Code::Corrupt) => return Ok(()),
            Err(error) => return Err(error),
        };
        let stands = definition.is_some_and(|definition| {
            definition.kind() == row.kind
                && definition.has(&row.state)
                && definition.is_terminal(&row.state) == row.terminal
        });
        if !stands {
            self.find(code::RUN_DIFFERS, "stands where its definition does not have it");
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
