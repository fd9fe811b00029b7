//! Giving a directory its project id, and settling which of two copies is the
//! project.
//!
//! Everything is judged before anything is made, and decided under the lock of
//! the record of projects.

use std::path::{Path, PathBuf};

use super::error::{PlaceError, PlaceErrorKind};
use super::filesystem;
use super::git::{self, GitExclude};
use super::ground::Ground;
use super::project::{self, Project, ProjectId};
use super::roots::{LockedRoots, Roots, Seen};
use super::{Concessions, DATABASE, Surroundings};

/// Where the id of an initialised project came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The directory had none; this one is new.
    Created,
    /// The project file was there.
    Found,
    /// The file was missing; the state remembered this directory.
    Restored,
}

/// What `init` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// The project, whose root is the working directory.
    pub project: Project,
    /// Where its id came from.
    pub origin: Origin,
    /// What happened to git's exclude file.
    pub git: GitExclude,
    /// The directory of the nearest project that this one lies in, if any. It
    /// shares nothing with it.
    pub outer: Option<PathBuf>,
}

/// Makes the working directory a project; `fresh` is its id if it has none.
///
/// # Errors
/// The first thing that makes the state unsafe (nothing is made then), or the
/// project a copy; an exclude file of git that cannot be written.
pub fn init(
    surroundings: &Surroundings,
    concessions: &Concessions,
    fresh: ProjectId,
) -> Result<Initialised, PlaceError> {
    let ground = Ground::judge(surroundings, concessions, filesystem::shared)?;
    let root = ground.working_directory.clone();
    let mut record = open_record(&ground, &root)?;
    let here = Seen::at(&root)?;
    let (id, origin) = match (project::read(&root)?, record.roots().known_as(&here)) {
        (Some(id), _) => (id, Origin::Found),
        (None, Some(id)) => (id, Origin::Restored),
        (None, None) => (fresh, Origin::Created),
    };
    record.roots().refuse_copy(id, &here)?;
    let git = git::exclude(&root)?;
    if origin != Origin::Found {
        project::write(&root, id)?;
    }
    let outer = outer(&root, record.roots());
    record.remember(id, here)?;
    Ok(Initialised { project: Project { root, id, on_disk: true }, origin, git, outer })
}

/// The nearest directory above that is a project, as far as that can be seen:
/// it is only told, and decides nothing.
fn outer(root: &Path, roots: &Roots) -> Option<PathBuf> {
    let known = |directory: &Path| Seen::at(directory).is_ok_and(|seen| roots.known_as(&seen).is_some());
    let is_project = |directory: &&Path| !matches!(project::read(directory), Ok(None)) || known(directory);
    root.ancestors().skip(1).find(is_project).map(Path::to_owned)
}

/// Goes on with the project here: its id belongs to this directory from now
/// on, and another living copy is refused.
///
/// # Errors
/// As [`init`]; `project_missing` outside a project.
pub fn adopt(surroundings: &Surroundings, concessions: &Concessions) -> Result<Project, PlaceError> {
    let (ground, project) = nearest(surroundings, concessions)?;
    let mut record = open_record(&ground, &project.root)?;
    record.remember(project.id, Seen::at(&project.root)?)?;
    Ok(project)
}

/// Gives the project here the id `fresh`: it becomes a project of its own, and
/// the state of the old id stays with the other copy. Where there is no other
/// and the state is there, it is left behind only if it may be forgotten.
///
/// # Errors
/// As [`adopt`]; `project_in_use`.
pub fn renew(
    surroundings: &Surroundings,
    concessions: &Concessions,
    fresh: ProjectId,
    forget: bool,
) -> Result<Project, PlaceError> {
    let (ground, project) = nearest(surroundings, concessions)?;
    let mut record = open_record(&ground, &project.root)?;
    let alone = record.roots().refuse_copy(project.id, &Seen::at(&project.root)?).is_ok();
    if alone && !forget {
        let state = ground.directory(Some(&project))?.path().join(DATABASE);
        if ground.account.owns_file(&state)?.is_some() {
            return Err(PlaceError::at(state, PlaceErrorKind::ProjectInUse));
        }
    }
    project::write(&project.root, fresh)?;
    record.remember(fresh, Seen::at(&project.root)?)?;
    Ok(Project { id: fresh, on_disk: true, ..project })
}

/// Writes a missing project file again and records where the project is now.
pub(crate) fn record(ground: &Ground, project: &Project) -> Result<(), PlaceError> {
    let mut record = open_record(ground, &project.root)?;
    let here = Seen::at(&project.root)?;
    record.roots().refuse_copy(project.id, &here)?;
    if !project.on_disk && project::read(&project.root)?.is_none() {
        git::exclude(&project.root)?;
        project::write(&project.root, project.id)?;
    }
    record.remember(project.id, here)
}

fn nearest(surroundings: &Surroundings, concessions: &Concessions) -> Result<(Ground, Project), PlaceError> {
    let ground = Ground::judge(surroundings, concessions, filesystem::shared)?;
    let missing = || PlaceError::at(&ground.working_directory, PlaceErrorKind::ProjectMissing);
    let project = ground.nearest()?.filter(|project| project.on_disk).ok_or_else(missing)?;
    Ok((ground, project))
}

fn open_record(ground: &Ground, project: &Path) -> Result<LockedRoots, PlaceError> {
    ground.contain(ground.root.path(), project)?;
    ground.root.make()?;
    LockedRoots::open(ground.root.path(), &ground.account)
}
