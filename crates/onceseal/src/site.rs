//! Where a store is: in a file of this host, or on a server of several.

use std::path::Path;

use onceseal_core::code::Code;
#[cfg(feature = "postgres")]
use onceseal_store::PostgresUrl;
use onceseal_store::mark::KnownTenant;
use onceseal_store::place::{Database, Place};
use onceseal_store::{Options, Store, StoreError};

use crate::error::Error;
use crate::open::Opening;

/// Where a store is.
pub(crate) enum Site {
    /// In the state directory.
    File(Place),
    /// On a server.
    #[cfg(feature = "postgres")]
    Server {
        /// Which.
        url: Box<PostgresUrl>,
        /// What stays on this host: where programs work. Absent outside a project.
        place: Option<Place>,
    },
}

impl Site {
    /// Where the settings have it, checked as far as it exists. Makes nothing.
    pub(crate) fn find(opening: &Opening) -> Result<Site, Error> {
        #[cfg(feature = "postgres")]
        if let Some(address) = &opening.settings.store {
            let place = match opening.place() {
                Ok(place) => Some(place),
                Err(error) if matches!(error.code(), "project_missing" | "state_home_missing") => None,
                Err(error) => return Err(error),
            };
            return Ok(Site::Server { url: Box::new(address.url()?), place });
        }
        Ok(Site::File(opening.place()?))
    }

    /// What lies on this host.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Site::File(place) => Some(place),
            #[cfg(feature = "postgres")]
            Site::Server { place, .. } => place.as_ref(),
        }
    }

    /// What this account knows of the tenant here: a project has one store, wherever
    /// that is, so an address that leads to another one is noticed.
    pub(crate) fn known(&self, opening: &Opening) -> Result<KnownTenant, Error> {
        let setting = opening.settings.mark.as_deref().map(Path::as_os_str);
        let (surroundings, concessions) = (&opening.surroundings, opening.concessions());
        let tenant = &opening.settings.tenant;
        let place = match self {
            Site::File(place) => place,
            #[cfg(feature = "postgres")]
            Site::Server { place: Some(place), .. } => place,
            #[cfg(feature = "postgres")]
            Site::Server { url, place: None } => {
                let server = url.identity();
                return Ok(KnownTenant::of_server(surroundings, &concessions, setting, &server, tenant)?);
            }
        };
        Ok(KnownTenant::find(surroundings, &concessions, setting, place.directory(), tenant)?)
    }

    /// Makes what has to be there before it is opened to act.
    ///
    /// A project whose state is gone gets no new one in its place.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        match self {
            Site::File(place) => {
                place.expect_state()?;
                Ok(place.prepare()?)
            }
            #[cfg(feature = "postgres")]
            Site::Server { .. } => Ok(()),
        }
    }

    /// Where the store is on a server, leaves no empty file for whoever forgets to say so
    /// and would begin again with nothing remembered.
    pub(crate) fn leave_file(&self) {
        match self {
            Site::File(_) => {}
            #[cfg(feature = "postgres")]
            Site::Server { place, .. } => {
                // Whoever cannot put it aside could not write to it either.
                let _ = place.as_ref().map(Place::put_aside);
            }
        }
    }

    /// Makes a store anew where a person accepts that the one that was seen is gone.
    pub(crate) fn prepare_anew(&self) -> Result<(), Error> {
        match self {
            Site::File(place) if place.expect_state()? != Database::Present => Ok(place.prepare()?),
            Site::File(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Site::Server { .. } => Ok(()),
        }
    }

    /// Whether there is a store. One that was written to may not be gone.
    pub(crate) fn exists(&self, opening: &Opening) -> Result<bool, Error> {
        let is_there = match self {
            Site::File(place) => place.expect_state()? == Database::Present,
            // The tenant is looked for when it is opened.
            #[cfg(feature = "postgres")]
            Site::Server { url, .. } => Store::is_on_server(url, &opening.settings.tenant)?,
        };
        match is_there {
            true => Ok(true),
            false if self.known(opening)?.id()?.is_none() => Ok(false),
            // It was written to, and has been emptied or removed since.
            false => Err(StoreError::new(Code::StoreWentBack).into()),
        }
    }

    /// Opens it to act.
    pub(crate) fn open(&self, options: &Options) -> Result<Store, StoreError> {
        match self {
            Site::File(place) => Store::sqlite(place.database().to_owned(), options),
            #[cfg(feature = "postgres")]
            Site::Server { url, .. } => Store::postgres((**url).clone(), options),
        }
    }

    /// Opens it to read; `None` if nothing is recorded for the tenant.
    pub(crate) fn open_to_read(&self, options: &Options) -> Result<Option<Store>, StoreError> {
        match self {
            Site::File(place) => Store::sqlite_reader(place.database().to_owned(), options),
            #[cfg(feature = "postgres")]
            Site::Server { url, .. } => Store::postgres_reader((**url).clone(), options),
        }
    }
}
