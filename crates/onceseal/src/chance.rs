//! Random numbers.

use onceseal_core::code::Code;
use onceseal_core::id::HolderKey;
use onceseal_store::StoreError;

use crate::error::Error;

/// 128 random bits, for what nobody else draws.
pub(crate) fn random() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::new(Code::Internal))?;
    Ok(bytes)
}

/// A key for whoever takes leases, drawn at random: it is kept, to ask again for
/// what was taken under it, and told to nobody.
///
/// # Errors
/// A system without random numbers.
pub fn holder_key() -> Result<HolderKey, Error> {
    random().map(HolderKey)
}

/// A random number that spreads a pause.
pub(crate) fn spread() -> u8 {
    let mut byte = [0; 1];
    // Without random numbers it is not spread, which is no harm.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}
