//! A temporary ground: a project, a home and a state home.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use onceseal_store::place::{Concessions, Place, PlaceError, Surroundings};

pub(crate) struct Base {
    _keep: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Base {
    pub(crate) fn new() -> Base {
        let keep = tempfile::tempdir().expect("a temporary directory");
        let path = keep.path().canonicalize().expect("its real path");
        for name in ["proj", "home", "xdg"] {
            fs::create_dir(path.join(name)).expect("a directory");
            chmod(&path.join(name), 0o755);
        }
        Base { _keep: keep, path }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Working in `proj`, with state home `xdg`.
    pub(crate) fn surroundings(&self) -> Surroundings {
        self.working_in("proj")
    }

    pub(crate) fn working_in(&self, directory: &str) -> Surroundings {
        Surroundings {
            state: None,
            xdg_state_home: Some(self.join("xdg").into()),
            home: Some(self.join("home").into()),
            ..Surroundings::of_process(self.join(directory))
        }
    }
}

pub(crate) fn find(surroundings: &Surroundings) -> Result<Place, PlaceError> {
    Place::find(surroundings, &Concessions::default())
}

/// The code of a refusal and the path that it is about.
pub(crate) fn refusal<T>(result: Result<T, PlaceError>) -> (&'static str, PathBuf) {
    let error = result.err().expect("a refusal");
    (error.code(), error.path().unwrap_or(Path::new("")).to_owned())
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it exists").mode() & 0o7777
}
