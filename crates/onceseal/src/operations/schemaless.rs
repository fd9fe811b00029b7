//! A program that was built without JSON Schemas takes no contract that has any.

use onceseal_core::json::{Object, Value};

/// No schemas.
#[derive(Debug, Clone, Default)]
pub(super) struct Schemas;

impl Schemas {
    pub(super) fn parse(contract: &Object) -> Result<Schemas, String> {
        match ["input", "output"].iter().any(|name| contract.get(name).is_some()) {
            true => Err("input, output: this program was built without JSON Schemas".to_owned()),
            false => Ok(Schemas),
        }
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "with schemas there is something to hold it against"
    )]
    pub(super) fn takes(&self, _: &Object) -> Result<(), String> {
        Ok(())
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "with schemas there is something to hold it against"
    )]
    pub(super) fn returns(&self, _: &Value) -> Result<(), String> {
        Ok(())
    }
}
