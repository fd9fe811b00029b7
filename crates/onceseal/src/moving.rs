//! A store moves from its file to a server.

use std::path::{Path, PathBuf};

use onceseal_store::place::MOVED;
use onceseal_store::{Halted, Moved, StoreError, migrate, transfer};

use crate::error::Error;
use crate::open::Opening;
use crate::seen::newest;
use crate::site::Site;

/// A store whose rows are on the server, and whose file is still the store. Whoever
/// writes to the file waits as long as this is there.
pub struct Moving {
    file: PathBuf,
    opening: Opening,
    tenants: Vec<Moved>,
    halted: Halted,
}

impl Moving {
    /// Copies the store in this file to the server that the settings name, with its
    /// journal as it is: all of its tenants, or nothing.
    ///
    /// # Errors
    /// Either cannot be used, or the server has one of the tenants.
    pub fn begin(file: &Path, opening: &Opening) -> Result<Moving, Error> {
        let Site::Server { url, .. } = Site::find(opening)? else {
            return Err(crate::config::ConfigError::Setting("store: a server is needed".to_owned()).into());
        };
        let (tenants, halted) = transfer(file, *url, &opening.options())?;
        Ok(Moving { file: file.to_owned(), opening: opening.clone(), tenants, halted })
    }

    /// What was copied of each tenant.
    #[must_use]
    pub fn tenants(&self) -> &[Moved] {
        &self.tenants
    }

    /// Puts the file aside, so that nobody acts on it any more, and sets this
    /// account's marks to the logs as they are on the server. Returns where the file is
    /// now.
    ///
    /// # Errors
    /// The file cannot be renamed, or a mark cannot be written.
    pub fn end(self) -> Result<PathBuf, Error> {
        for tenant in self.tenants.iter().filter(|tenant| tenant.is_renumbered) {
            let mut opening = self.opening.clone();
            opening.settings.tenant.clone_from(&tenant.tenant);
            let site = Site::find(&opening)?;
            if let Some(store) = site.open_to_read(&opening.options())?
                && let Some(mark) = newest(&store)?
            {
                site.known(&opening)?.mark(store.tenant().id).replace(&mark)?;
            }
        }
        let named = |end: &str| {
            let mut name = self.file.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let aside = named(MOVED);
        if aside.exists() {
            return Err(StoreError::from(std::io::Error::from(std::io::ErrorKind::AlreadyExists)).into());
        }
        std::fs::rename(&self.file, &aside).map_err(StoreError::from)?;
        // Whoever waited finds no file, and is refused.
        drop(self.halted);
        // Where another process had it open, a part of it is still in its log.
        for beside in ["-wal", "-shm"] {
            match std::fs::rename(named(beside), named(&format!("{MOVED}{beside}"))) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::from(error).into());
                }
                _ => {}
            }
        }
        Ok(aside)
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
