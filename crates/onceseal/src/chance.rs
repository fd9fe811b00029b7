//! Random numbers.

use onceseal_core::code::Code;
use onceseal_store::StoreError;

use crate::error::Error;

/// 128 random bits, for what nobody else draws.
pub(crate) fn random() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::new(Code::Internal))?;
    Ok(bytes)
}

/// A random number that spreads a pause.
pub(crate) fn spread() -> u8 {
    let mut byte = [0; 1];
    // Without random numbers it is not spread, which is no harm.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}
