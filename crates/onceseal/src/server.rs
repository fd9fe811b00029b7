//! The server that a store is on, as an operator may want to know it.

use onceseal_store::ServerState;

use crate::error::Error;
use crate::open::Opening;
use crate::site::Site;

impl Opening {
    /// How the server is that the settings name; nothing where the store is a file. It
    /// is looked at by a connection of its own, whether anything is recorded there or
    /// not, and nothing is changed.
    ///
    /// # Errors
    /// `store_unreachable`, or an address that cannot be used.
    pub fn server(&self) -> Result<Option<ServerState>, Error> {
        match Site::find(self)? {
            Site::File(_) => Ok(None),
            Site::Server { url, .. } => {
                Ok(Some(ServerState::of(*url, &self.settings.tenant, self.clock.as_ref())?))
            }
        }
    }
}
