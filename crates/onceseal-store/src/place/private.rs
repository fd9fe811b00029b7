//! Making and opening what is ours alone.
//!
//! The mode is given when the entry is made, never afterwards, and the last
//! component is never followed: there is no moment at which another account
//! could step in.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::judge::{Account, PRIVATE_DIRECTORY, PRIVATE_FILE};

/// Makes a directory if it is missing, so that it outlives a power loss; says
/// whether it was.
pub(crate) fn make_directory(path: &Path) -> Result<bool, PlaceError> {
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(io_at("make a directory", path)(error)),
    }
    if let Some(parent) = path.parent() {
        sync_directory(parent)?;
    }
    Ok(true)
}

/// Makes an empty file if nothing stands there, so that it outlives a power
/// loss; says whether it did.
pub(crate) fn make_file(path: &Path) -> Result<bool, PlaceError> {
    match open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => file.sync_all().map_err(io_at("write a file to disk", path))?,
        Err(Errno::EXIST) => return Ok(false),
        Err(error) => return Err(io_at("make a file", path)(error.into())),
    }
    if let Some(parent) = path.parent() {
        sync_directory(parent)?;
    }
    Ok(true)
}

/// Opens a file that processes lock, made if it is missing.
pub(crate) fn open_lock(path: &Path, account: &Account) -> Result<File, PlaceError> {
    let file = open(path, OFlags::RDWR | OFlags::CREATE).map_err(|error| refused_open(path, error))?;
    let found = file.metadata().map_err(io_at("look at a lock file", path))?;
    account.accepts_file(path, &found)?;
    Ok(file)
}

/// Waits for the lock on a file, which is held until the answer is dropped.
pub(crate) fn lock_file(path: &Path, account: &Account) -> Result<File, PlaceError> {
    let file = open_lock(path, account)?;
    lock(&file).map_err(io_at("lock a file", path))?;
    Ok(file)
}

/// Waits for a lock; signals that this process handles do not end the wait.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Reads a regular file of at most `limit` bytes; `None` if it is missing,
/// `Some(None)` if it is longer.
pub(crate) fn read_file(path: &Path, limit: usize) -> Result<Option<Option<Vec<u8>>>, PlaceError> {
    // Not to hang on a pipe that nobody writes.
    let file = match open(path, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(refused_open(path, error)),
    };
    if !file.metadata().map_err(io_at("look at a file", path))?.is_file() {
        return Err(PlaceError::at(path, PlaceErrorKind::WrongKind("regular file")));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(io_at("read a file", path))?;
    Ok(Some((bytes.len() <= limit).then_some(bytes)))
}

/// Whether a replaced file must outlive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Synced,
    /// Old or new after a power loss, or gone: for what can be lost.
    Loose,
}

/// Replaces a file by rename: readers see the old or the new, never a part.
///
/// The caller holds the lock under which this file is written.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), PlaceError> {
    let next = beside(path, ".new");
    // Left by a process that died here; never opened, whatever it is.
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_at("remove an unfinished file", &next)(error));
        }
        _ => {}
    }
    let mut file = open(&next, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
        .map_err(|error| io_at("make a file", &next)(error.into()))?;
    file.write_all(bytes).map_err(io_at("write a file", &next))?;
    if durability == Durability::Synced {
        file.sync_all().map_err(io_at("write a file to disk", &next))?;
    }
    fs::rename(&next, path).map_err(io_at("replace a file", path))?;
    match (durability, path.parent()) {
        (Durability::Synced, Some(parent)) => sync_directory(parent),
        _ => Ok(()),
    }
}

/// The path with something added to its last component.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open(path: &Path, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::from_raw_mode(PRIVATE_FILE)).map(File::from)
}

fn refused_open(path: &Path, error: Errno) -> PlaceError {
    let kind = match error {
        Errno::LOOP => PlaceErrorKind::Symlink,
        Errno::ISDIR | Errno::NXIO => PlaceErrorKind::WrongKind("regular file"),
        _ => return io_at("open a file", path)(error.into()),
    };
    PlaceError::at(path, kind)
}

fn sync_directory(path: &Path) -> Result<(), PlaceError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(io_at("write a directory to disk", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it exists").mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_private_and_made_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inner, file) = (dir.path().join("d"), dir.path().join("f"));
        assert!(make_directory(&inner).expect("made"));
        assert!(!make_directory(&inner).expect("there"));
        assert!(make_file(&file).expect("made"));
        assert!(!make_file(&file).expect("there"));
        open_lock(&dir.path().join("l"), &Account::of_process()).expect("opened");
        assert_eq!((mode(&inner), mode(&file), mode(&dir.path().join("l"))), (0o700, 0o600, 0o600));
    }

    #[test]
    fn a_link_a_pipe_or_a_shared_file_is_never_opened_as_a_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        symlink(path("elsewhere"), path("link")).expect("a link");
        let pipe = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, pipe, 0)
            .expect("a pipe");
        fs::create_dir(path("dir")).expect("a directory");
        fs::write(path("shared"), "").expect("a file");
        fs::set_permissions(path("shared"), fs::Permissions::from_mode(0o660)).expect("its mode");
        for (name, code) in [
            ("link", "state_symlink"),
            ("pipe", "state_wrong_kind"),
            ("dir", "state_wrong_kind"),
            ("shared", "state_not_private"),
        ] {
            let refusal = open_lock(&path(name), &Account::of_process()).expect_err(name);
            assert_eq!((refusal.code(), refusal.path()), (code, Some(path(name).as_path())));
        }
        assert!(!path("elsewhere").exists(), "the link was not followed");
        assert_eq!(read_file(&path("pipe"), 8).expect_err("a pipe").code(), "state_wrong_kind");
        assert_eq!(read_file(&path("link"), 8).expect_err("a link").code(), "state_symlink");
    }

    #[test]
    fn reading_is_bounded_and_replacing_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        assert_eq!(read_file(&path, 4).expect("missing"), None);
        // A link left where the next version is written must not be written through.
        fs::write(dir.path().join("victim"), "keep").expect("a file");
        fs::hard_link(dir.path().join("victim"), dir.path().join("f.new")).expect("a link");
        replace_file(&path, b"1234", Durability::Synced).expect("written");
        assert_eq!(read_file(&path, 4).expect("read"), Some(Some(b"1234".to_vec())));
        replace_file(&path, b"12345", Durability::Loose).expect("written");
        assert_eq!(read_file(&path, 4).expect("read"), Some(None));
        assert_eq!(fs::read(dir.path().join("victim")).expect("read"), b"keep");
        assert_eq!(mode(&path), 0o600);
        let names: Vec<_> = fs::read_dir(dir.path()).expect("listed").collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }
}
