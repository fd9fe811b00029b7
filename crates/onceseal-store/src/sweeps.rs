//! Whose turn it is to sweep, where several processes could.

use crate::error::StoreError;
use crate::turnstile::Turnstile;

/// Keeps processes from sweeping one store at once, so that none does again what
/// another is doing. Nothing else rests on it.
pub trait Sweeps: Send + Sync {
    /// Runs `sweep`, unless another process is sweeping.
    ///
    /// # Errors
    /// It cannot be found out whether another is.
    fn alone(&self, sweep: &mut dyn FnMut()) -> Result<(), StoreError>;
}

impl Sweeps for Turnstile {
    fn alone(&self, sweep: &mut dyn FnMut()) -> Result<(), StoreError> {
        if let Some(_pass) = self.try_sweep()? {
            sweep();
        }
        Ok(())
    }
}
