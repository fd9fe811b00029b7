//! What a run and the definition it goes by say of each other.

use onceseal_core::code::Code;
use onceseal_core::run::RunRow;
use onceseal_store::{StoreError, read};

use super::{Judge, code};

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
}
