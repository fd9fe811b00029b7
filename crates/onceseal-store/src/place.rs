//! Where state lives, and whether it is safe there.
//!
//! A [`Place`] is a state directory and database path that passed every check:
//! above them only directories that no stranger can change, below the base
//! nothing that is linked, shared or another's, outside the project, on a file
//! system whose locks hold. Looking makes nothing; what is made is private
//! from its first moment. The database file is only ever made here, empty:
//! opening it again would, on closing, drop the locks of SQLite's connections.

mod chain;
mod error;
mod filesystem;
mod git;
mod ground;
mod identity;
mod judge;
pub(crate) mod private;
mod project;
pub(crate) mod record;
mod roots;

mod walk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use error::{PlaceError, PlaceErrorKind};
pub use git::GitExclude;
pub use identity::{Initialised, Origin, adopt, init, renew};
pub use project::{Project, ProjectId};

use chain::Chain;
use filesystem::Probe;
use ground::Ground;
pub(crate) use ground::Marks;
pub(crate) use judge::Account;
use roots::Seen;

/// The database's name in its directory.
pub const DATABASE: &str = "onceseal.db";
/// What is added to the name of a database where the store is on a server.
pub const MOVED: &str = ".moved";
/// What SQLite adds to the name of a database for the files beside it.
const SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// All that is taken from the process and its environment.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// `ONCESEAL_STATE`: the state directory itself, absolute.
    pub state: Option<OsString>,
    /// `XDG_STATE_HOME`; ignored unless absolute.
    pub xdg_state_home: Option<OsString>,
    /// `HOME`; ignored unless absolute.
    pub home: Option<OsString>,
    /// From here upward the project is looked for.
    pub working_directory: PathBuf,
    /// The user that must own the state.
    pub uid: u32,
    /// The process's own group, which may write directories above the state.
    pub gid: u32,
}

impl Surroundings {
    /// Those of this process, with this working directory.
    #[must_use]
    pub fn of_process(working_directory: PathBuf) -> Surroundings {
        let Account { uid, gid, .. } = Account::of_process();
        Surroundings {
            state: std::env::var_os("ONCESEAL_STATE"),
            xdg_state_home: std::env::var_os("XDG_STATE_HOME"),
            home: std::env::var_os("HOME"),
            working_directory,
            uid,
            gid,
        }
    }

    fn account(&self, concessions: &Concessions) -> Account {
        Account { uid: self.uid, gid: self.gid, trusted_group: concessions.trust_group }
    }
}

/// What settings and flags allow although it is refused otherwise.
#[derive(Debug, Clone, Default)]
pub struct Concessions {
    /// `trust_group`: id of a group that may write directories above the state.
    pub trust_group: Option<u32>,
    /// `--force-filesystem`: network and host-shared file systems too.
    pub any_filesystem: bool,
    /// State inside the project, where `git clean`, a container's rebuild or
    /// the agent's own `rm` can destroy it.
    pub inside_project: bool,
    /// Several living copies of one project: they share a store that is elsewhere.
    pub copies: bool,
}

/// What stands at the database path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// Nothing: a read shows an empty store and makes nothing.
    Missing,
    /// An empty file: whoever locks it first makes the schema.
    New,
    /// A file with content.
    Present,
}

/// A checked state directory and database path.
#[derive(Debug)]
pub struct Place {
    ground: Ground,
    directory: Chain,
    database: PathBuf,
    project: Option<Project>,
}

impl Place {
    /// Finds the place for these surroundings and checks all of it that exists.
    /// Makes nothing.
    ///
    /// # Errors
    /// The first thing that makes the state unsafe, or the project a copy;
    /// `project_missing` where the default directory needs a project.
    pub fn find(surroundings: &Surroundings, concessions: &Concessions) -> Result<Place, PlaceError> {
        Place::find_probing(surroundings, concessions, filesystem::shared)
    }

    fn find_probing(
        surroundings: &Surroundings,
        concessions: &Concessions,
        probe: Probe,
    ) -> Result<Place, PlaceError> {
        let ground = Ground::judge(surroundings, concessions, probe)?;
        let project = ground.nearest()?;
        let directory = ground.directory(project.as_ref())?;
        if let Some(project) = &project {
            ground.contain(directory.path(), &project.root)?;
            if !concessions.copies {
                ground.roots()?.refuse_copy(project.id, &Seen::at(&project.root)?)?;
            }
        }
        let database = directory.path().join(DATABASE);
        let place = Place { ground, directory, database, project };
        place.database_state()?;
        Ok(place)
    }

    /// Makes what is missing of the directory and the database file, records
    /// where the project is, and checks everything again. Call it before the
    /// first connection; a reader of a store that may not exist does without.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn prepare(&self) -> Result<(), PlaceError> {
        match &self.project {
            Some(project) => identity::record(&self.ground, project)?,
            None => self.ground.root.make()?,
        }
        self.directory.make()?;
        private::make_file(&self.database)?;
        self.ground.judge_filesystem(self.directory.path())?;
        if self.database_state()? == Database::New {
            // Whoever made the file may have died before this.
            private::sync_directory(self.directory.path())?;
        }
        Ok(())
    }

    /// Checks the database file and SQLite's files beside it, without opening
    /// any, and says what stands there.
    ///
    /// # Errors
    /// A file that is linked, shared, another account's or no file.
    pub fn database_state(&self) -> Result<Database, PlaceError> {
        let account = &self.ground.account;
        for suffix in SIDE_FILES {
            account.owns_file(&private::beside(&self.database, suffix))?;
        }
        let Some(found) = account.owns_file(&self.database)? else { return Ok(Database::Missing) };
        // The file may be a mount of its own.
        self.ground.judge_filesystem(&self.database)?;
        Ok(if found.len() == 0 { Database::New } else { Database::Present })
    }

    /// Says what stands at the database path, where something has to: a project
    /// is made together with its state, and has lost it if there is none.
    ///
    /// # Errors
    /// `state_missing`, `state_moved`, and as [`Place::database_state`].
    pub fn expect_state(&self) -> Result<Database, PlaceError> {
        match (self.database_state()?, &self.project) {
            (Database::Missing, _) if private::beside(&self.database, MOVED).exists() => {
                Err(PlaceError::at(self.directory.path(), PlaceErrorKind::StateMoved))
            }
            (Database::Missing, Some(_)) => {
                Err(PlaceError::at(self.directory.path(), PlaceErrorKind::StateMissing))
            }
            (found, _) => Ok(found),
        }
    }

    /// Puts an empty database file aside, for a store that is on a server: whoever looks
    /// for a file then is told `state_moved`. One with anything in it stays.
    ///
    /// # Errors
    /// As [`Place::database_state`], or the file cannot be renamed.
    pub fn put_aside(&self) -> Result<(), PlaceError> {
        if self.database_state()? != Database::New {
            return Ok(());
        }
        let aside = private::beside(&self.database, MOVED);
        std::fs::rename(&self.database, &aside).map_err(error::io_at("rename a file", &self.database))
    }

    /// The real path of the state directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of the database, for SQLite alone to open.
    #[must_use]
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// The project that the working directory is in. `None` only with an
    /// explicit state directory.
    #[must_use]
    pub fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io;

    fn surroundings(base: &Path) -> Surroundings {
        fs::create_dir_all(base.join("work")).expect("a directory");
        Surroundings {
            state: Some(base.join("state").into()),
            xdg_state_home: None,
            home: None,
            ..Surroundings::of_process(base.join("work"))
        }
    }

    #[test]
    fn ua_106_ua_107_a_network_or_host_shared_file_system_is_refused_naming_the_flag() {
        let dir = tempfile::tempdir().expect("a directory");
        let surroundings = surroundings(dir.path());
        let find =
            |concessions: &Concessions, probe: Probe| Place::find_probing(&surroundings, concessions, probe);
        let refusal = find(&Concessions::default(), |_| Ok(Some("NFS"))).expect_err("NFS");
        assert_eq!(refusal.code(), "state_filesystem");
        assert!(refusal.to_string().contains("NFS") && refusal.to_string().contains("--force-filesystem"));
        let forced = Concessions { any_filesystem: true, ..Concessions::default() };
        find(&forced, |_| Ok(Some("NFS"))).expect("forced");
        let unknown: Probe = |_| Err(io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(find(&Concessions::default(), unknown).expect_err("unknown").code(), "state_io");
        assert!(!dir.path().join("state").exists(), "nothing was made");
    }

    #[test]
    fn every_part_that_can_be_a_mount_of_its_own_is_looked_at() {
        let dir = tempfile::tempdir().expect("a directory");
        let xdg_state_home = Some(dir.path().join("xdg").into());
        let surroundings = Surroundings { state: None, xdg_state_home, ..surroundings(dir.path()) };
        init(&surroundings, &Concessions::default(), ProjectId::new([7; 16])).expect("a project");
        Place::find(&surroundings, &Concessions::default()).expect("safe").prepare().expect("made");
        let root: Probe = |path| Ok(path.ends_with("onceseal").then_some("9p"));
        let refusal = Ground::judge(&surroundings, &Concessions::default(), root).expect_err("9p");
        assert_eq!(refusal.code(), "state_filesystem");
        let directory: Probe = |path| Ok(path.ends_with("07".repeat(16)).then_some("9p"));
        let refusal = Place::find_probing(&surroundings, &Concessions::default(), directory).expect_err("9p");
        assert_eq!(refusal.code(), "state_filesystem");
    }

    #[test]
    fn a_database_file_that_is_a_mount_of_its_own_is_looked_at_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let surroundings = surroundings(dir.path());
        Place::find(&surroundings, &Concessions::default()).expect("safe").prepare().expect("made");
        let probe: Probe = |path| Ok(path.ends_with(DATABASE).then_some("9p"));
        let refusal = Place::find_probing(&surroundings, &Concessions::default(), probe).expect_err("9p");
        assert_eq!(
            (refusal.code(), refusal.path().map(|p| p.ends_with(DATABASE))),
            ("state_filesystem", Some(true))
        );
    }
}
