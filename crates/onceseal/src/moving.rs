//! A store moves from its file to a server.
//!
//! Invariant: at every moment at most one of them can be acted on. The file is the
//! store until it has been put aside, and the copy arrives only after that; whoever
//! ends between goes on by beginning again.

use std::path::{Path, PathBuf};

use onceseal_core::code::Code;
use onceseal_store::{
    Halted, Moved, Options, PostgresUrl, StoreError, arrived, migrate, put_aside_before, transfer,
};

use crate::config::ConfigError;
use crate::control::Control;
use crate::error::Error;
use crate::open::Opening;
use crate::seen::newest;
use crate::site::Site;

/// A store whose rows are on the server, and whose file is still the store. Whoever
/// writes to the file waits as long as this is there.
pub struct Moving {
    url: PostgresUrl,
    opening: Opening,
    tenants: Vec<Moved>,
    halted: Halted,
}

impl Moving {
    /// Copies the store in this file to the server that the settings name, with its
    /// journal as it is: all of its tenants, or nothing. A copy that nobody came to the
    /// end of is made anew.
    ///
    /// # Errors
    /// Either cannot be used, or the server has one of the tenants.
    pub fn begin(file: &Path, opening: &Opening) -> Result<Moving, Error> {
        let url = server(opening)?;
        let (tenants, halted) = transfer(file, url.clone(), &opening.options())?;
        Ok(Moving { url, opening: opening.clone(), tenants, halted })
    }

    /// Ends a move that was ended after the file had been put aside. Returns the tenants
    /// that are on the server since; there are none if it had come to its end.
    ///
    /// # Errors
    /// Either cannot be used.
    pub fn resume(file: &Path, opening: &Opening) -> Result<Vec<String>, Error> {
        match put_aside_before(file)? {
            Some(tenants) => Ok(arrived(server(opening)?, &tenants)?),
            None => Ok(Vec::new()),
        }
    }

    /// What was copied of each tenant.
    #[must_use]
    pub fn tenants(&self) -> &[Moved] {
        &self.tenants
    }

    /// Opens the copy of a tenant to read, `None` if it is not there.
    ///
    /// # Errors
    /// As [`Control::reading`].
    pub fn copy(&self, tenant: &Moved) -> Result<Option<Control>, Error> {
        let opening = self.of(tenant);
        let options = Options { arrives: true, ..opening.options() };
        // What this account has seen of the project's own store says nothing of the file.
        let site = Site::Server { url: Box::new(self.url.clone()), place: None };
        Control::reading_at(&site, &opening, options)
    }

    fn of(&self, tenant: &Moved) -> Opening {
        let mut opening = self.opening.clone();
        opening.settings.tenant.clone_from(&tenant.tenant);
        opening
    }

    /// Puts the file aside, so that nobody acts on it any more, and lets everybody act on
    /// the server; sets this account's marks to the logs as they are there. Returns where
    /// the file is now.
    ///
    /// # Errors
    /// The file cannot be renamed, a mark cannot be written, or the server does not
    /// answer; then [`Moving::resume`] ends it.
    pub fn end(self) -> Result<PathBuf, Error> {
        let mut marks = Vec::new();
        for tenant in self.tenants.iter().filter(|tenant| tenant.is_renumbered) {
            if let Some(copy) = self.copy(tenant)?
                && let Some(mark) = newest(copy.store())?
            {
                let opening = self.of(tenant);
                marks.push((Site::find(&opening)?.known(&opening)?.mark(tenant.id), mark));
            }
        }
        let tenants: Vec<_> = self.tenants.iter().map(|tenant| tenant.id).collect();
        let aside = self.halted.put_aside()?;
        for (file, mark) in marks {
            file.replace(&mark)?;
        }
        let arrived = arrived(self.url, &tenants)?;
        if arrived.len() < tenants.len() {
            // Another move made the copy anew meanwhile, or somebody removed it.
            return Err(StoreError::new(Code::StoreArriving).into());
        }
        Ok(aside)
    }
}

fn server(opening: &Opening) -> Result<PostgresUrl, Error> {
    match Site::find(opening)? {
        Site::Server { url, .. } => Ok(*url),
        Site::File(_) => Err(ConfigError::Setting("store: a server is needed".to_owned()).into()),
    }
}

impl Opening {
    /// Brings the schema of the server that the settings name to this program's.
    /// Returns the version that was found, 0 for none, and the one that is there now;
    /// nothing where the store is a file.
    ///
    /// # Errors
    /// The server cannot be used, or the schema is another program's or newer.
    pub fn migrate(&self) -> Result<Option<(i64, i64)>, Error> {
        match Site::find(self)? {
            Site::File(_) => Ok(None),
            Site::Server { url, .. } => Ok(Some(migrate(*url)?)),
        }
    }
}
