//! What stands before a project is known: the account, the state root, and
//! the working directory from which the project is looked for.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::chain::{Chain, Location};
use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::filesystem::Probe;
use super::judge::Account;
use super::private;
use super::project::{self, Project};
use super::roots::{Roots, Seen};
use super::{Concessions, Surroundings};

/// Our directory in the account's state home: it holds one of each project.
const PRODUCT: &str = "onceseal";
/// And one of marks.
const MARKS: &str = "marks";

/// Judged surroundings. Nothing was made.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) account: Account,
    pub(crate) working_directory: PathBuf,
    /// Where the record of projects is, and the state below or in it.
    pub(crate) root: Chain,
    /// Whether the state directory is the root itself rather than one of a
    /// project inside it.
    explicit: bool,
    concessions: Concessions,
    probe: Probe,
}

impl Ground {
    pub(crate) fn judge(
        surroundings: &Surroundings,
        concessions: &Concessions,
        probe: Probe,
    ) -> Result<Ground, PlaceError> {
        let given = &surroundings.working_directory;
        let unavailable = || PlaceError::at(given, PlaceErrorKind::ProjectUnavailable);
        let working_directory = fs::canonicalize(given).map_err(|_| unavailable())?;
        if !working_directory.is_dir() {
            return Err(unavailable());
        }
        let account = surroundings.account(concessions);
        let (location, explicit) = match &surroundings.state {
            Some(state) => (explicit("ONCESEAL_STATE", state)?, true),
            None => (inside_state_home(surroundings, &[PRODUCT])?, false),
        };
        let root = judge(&location, account, explicit)?;
        let ground =
            Ground { account, working_directory, root, explicit, concessions: concessions.clone(), probe };
        ground.judge_filesystem(ground.root.existing())?;
        Ok(ground)
    }

    /// The nearest project, upward from the working directory: by its file, or
    /// where that is missing by what the state remembers of the directory.
    pub(crate) fn nearest(&self) -> Result<Option<Project>, PlaceError> {
        let roots = self.roots()?;
        for directory in self.working_directory.ancestors() {
            let root = directory.to_owned();
            if let Some(id) = project::read(directory)? {
                return Ok(Some(Project { root, id, on_disk: true }));
            }
            if let Some(id) = roots.known_as(&Seen::at(directory)?) {
                return Ok(Some(Project { root, id, on_disk: false }));
            }
        }
        Ok(None)
    }

    pub(crate) fn roots(&self) -> Result<Roots, PlaceError> {
        if !self.root.exists() {
            return Ok(Roots::default());
        }
        Roots::load(self.root.path(), &self.account)
    }

    /// The state directory of this project.
    pub(crate) fn directory(&self, project: Option<&Project>) -> Result<Chain, PlaceError> {
        let directory = match (self.explicit, project) {
            (true, _) => self.root.clone(),
            (false, Some(project)) => self.root.clone().below(project.id.to_string())?,
            (false, None) => {
                return Err(PlaceError::at(&self.working_directory, PlaceErrorKind::ProjectMissing));
            }
        };
        self.judge_filesystem(directory.existing())?;
        Ok(directory)
    }

    /// Refuses a state that lies in the project, by whole components of real
    /// paths.
    pub(crate) fn contain(&self, state: &Path, project: &Path) -> Result<(), PlaceError> {
        if state.starts_with(project) && !self.concessions.inside_project {
            return Err(PlaceError::at(state, PlaceErrorKind::InsideProject));
        }
        Ok(())
    }

    /// Refuses a network or host-shared file system.
    pub(crate) fn judge_filesystem(&self, path: &Path) -> Result<(), PlaceError> {
        if self.concessions.any_filesystem {
            return Ok(());
        }
        match (self.probe)(path).map_err(io_at("ask for the kind of file system", path))? {
            Some(kind) => Err(PlaceError::at(path, PlaceErrorKind::Filesystem(kind))),
            None => Ok(()),
        }
    }
}

/// A lock of a mark is waited for so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// The judged directory of marks, which no project is in.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    account: Account,
    directory: Chain,
}

impl Marks {
    /// Judges the directory that was set, else the default one. Makes nothing.
    pub(crate) fn judge(
        surroundings: &Surroundings,
        concessions: &Concessions,
        setting: Option<&OsStr>,
    ) -> Result<Marks, PlaceError> {
        let account = surroundings.account(concessions);
        let location = match setting {
            Some(value) => explicit("`mark`", value)?,
            None => inside_state_home(surroundings, &[PRODUCT, MARKS])?,
        };
        Ok(Marks { account, directory: judge(&location, account, setting.is_some())? })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Refuses a file in it that is linked, shared, another's or none.
    pub(crate) fn judge_file(&self, path: &Path) -> Result<(), PlaceError> {
        self.account.owns_file(path).map(drop)
    }

    /// Makes the directory if it is missing, and waits for the lock beside a
    /// file in it, which is held until the answer is dropped. Whoever has it
    /// writes a line, so it is not waited for for long.
    pub(crate) fn lock(&self, path: &Path) -> Result<File, PlaceError> {
        self.directory.make()?;
        private::lock_file_within(&private::beside(path, ".lock"), &self.account, PATIENCE)
    }
}

fn judge(location: &Location, account: Account, explicit: bool) -> Result<Chain, PlaceError> {
    let missing = if explicit { || PlaceErrorKind::ParentMissing } else { || PlaceErrorKind::HomeMissing };
    Chain::judge(location, account, missing)
}

/// The location of a directory that was set: its parent must exist.
fn explicit(setting: &'static str, value: &OsStr) -> Result<Location, PlaceError> {
    let refused = |reason| PlaceError::at(value, PlaceErrorKind::Setting { setting, reason });
    if value.as_encoded_bytes().trim_ascii().is_empty() {
        return Err(refused("is blank"));
    }
    let path = Path::new(value);
    if !path.is_absolute() {
        // It would be another store in every working directory.
        return Err(refused("is not an absolute path"));
    }
    match (path.parent(), path.file_name()) {
        (Some(base), Some(name)) => {
            Ok(Location { base: base.to_owned(), makeable: 0, below: vec![name.to_owned()] })
        }
        _ => Err(refused("ends without a name of its own")),
    }
}

/// The location of these names in the account's state home, after the XDG Base
/// Directory Specification: what is not absolute is ignored, what is missing
/// is made.
fn inside_state_home(surroundings: &Surroundings, below: &[&str]) -> Result<Location, PlaceError> {
    let absolute =
        |value: &Option<OsString>| value.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    let (base, makeable) = if let Some(xdg) = absolute(&surroundings.xdg_state_home) {
        (xdg, usize::MAX)
    } else if let Some(home) = absolute(&surroundings.home) {
        (home.join(".local/state"), 2)
    } else {
        return Err(PlaceError::new(PlaceErrorKind::HomeMissing));
    };
    Ok(Location { base, makeable, below: below.iter().map(OsString::from).collect() })
}
