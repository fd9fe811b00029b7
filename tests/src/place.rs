//! Directories for stores that live as long as a test.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The database's name in every place.
pub const DATABASE: &str = "store.db";

/// A directory in memory, where the host has one: what is lost with the power
/// is decided by [`crate::vfs::Disk`], not by this disk.
///
/// # Panics
/// If there is no directory to be had.
#[must_use]
pub fn fast() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory for the test")
}

/// An empty database file as the place of the state makes it, in a directory
/// of its own under `parent`.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn database(parent: &Path, name: &str) -> PathBuf {
    let directory = parent.join(name);
    DirBuilder::new().mode(0o700).create(&directory).expect("a new directory");
    let path = directory.join(DATABASE);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a new file");
    path
}
