//! Making and opening what is ours alone.
//!
//! The mode is given when the entry is made, never afterwards, and the last
//! component is never followed: there is no moment at which another account
//! could step in.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::judge::{Account, PRIVATE_DIRECTORY, PRIVATE_FILE};

/// Makes a directory, unless something stands there, and sees that it outlives
/// a power loss, whoever made it.
pub(crate) fn make_directory(path: &Path) -> Result<(), PlaceError> {
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io_at("make a directory", path)(error));
        }
        _ => {}
    }
    path.parent().map_or(Ok(()), sync_directory)
}

/// Makes an empty file, unless something stands there; opens nothing that
/// does. Its directory is left to be synced.
pub(crate) fn make_file(path: &Path) -> Result<(), PlaceError> {
    match open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => file.sync_all().map_err(io_at("write a file to disk", path)),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(io_at("make a file", path)(error.into())),
    }
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

/// As [`lock_file`], for so long at most.
pub(crate) fn lock_file_within(
    path: &Path,
    account: &Account,
    patience: Duration,
) -> Result<File, PlaceError> {
    let (file, until) = (open_lock(path, account)?, Instant::now() + patience);
    let mut pause = Duration::from_millis(1);
    while !try_lock(&file).map_err(io_at("lock a file", path))? {
        if Instant::now() >= until {
            return Err(io_at("lock a file", path)(io::ErrorKind::TimedOut.into()));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Ok(file)
}

/// Takes a lock if it is free; signals that this process handles do not matter.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
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

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Missing,
    TooLong,
    Whole(Vec<u8>),
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read_file(path: &Path, limit: usize) -> Result<Content, PlaceError> {
    // Not to hang on a pipe that nobody writes.
    let file = match open(path, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Content::Missing),
        Err(error) => return Err(refused_open(path, error)),
    };
    if !file.metadata().map_err(io_at("look at a file", path))?.is_file() {
        return Err(PlaceError::at(path, PlaceErrorKind::WrongKind("regular file")));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(io_at("read a file", path))?;
    Ok(if bytes.len() <= limit { Content::Whole(bytes) } else { Content::TooLong })
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

pub(crate) fn sync_directory(path: &Path) -> Result<(), PlaceError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(io_at("write a directory to disk", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::process::Command;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it exists").mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_private_and_made_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inner, file) = (dir.path().join("d"), dir.path().join("f"));
        make_directory(&inner).expect("made");
        make_file(&file).expect("made");
        fs::write(&file, "kept").expect("written");
        make_directory(&inner).expect("there");
        make_file(&file).expect("there");
        assert_eq!(fs::read(&file).expect("read"), b"kept");
        open_lock(&dir.path().join("l"), &Account::of_process()).expect("opened");
        assert_eq!((mode(&inner), mode(&file), mode(&dir.path().join("l"))), (0o700, 0o600, 0o600));
    }

    #[test]
    fn a_link_a_pipe_or_a_shared_file_is_never_opened_as_a_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        symlink(path("elsewhere"), path("link")).expect("a link");
        let made = Command::new("mkfifo").arg(path("pipe")).status().expect("run");
        assert!(made.success());
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
    fn p14_a_lock_that_somebody_keeps_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, account) = (dir.path().join("l"), Account::of_process());
        let kept = lock_file(&path, &account).expect("free");
        let patience = Duration::from_millis(5);
        let refused = lock_file_within(&path, &account, patience).expect_err("it is kept");
        assert!(refused.to_string().contains("lock a file"), "{refused}");
        drop(kept);
        lock_file_within(&path, &account, patience).expect("free again");
    }

    #[test]
    fn reading_is_bounded_and_replacing_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        assert_eq!(read_file(&path, 4).expect("missing"), Content::Missing);
        // A link left where the next version is written must not be written through.
        fs::write(dir.path().join("victim"), "keep").expect("a file");
        fs::hard_link(dir.path().join("victim"), dir.path().join("f.new")).expect("a link");
        replace_file(&path, b"1234", Durability::Synced).expect("written");
        assert_eq!(read_file(&path, 4).expect("read"), Content::Whole(b"1234".to_vec()));
        replace_file(&path, b"12345", Durability::Loose).expect("written");
        assert_eq!(read_file(&path, 4).expect("read"), Content::TooLong);
        assert_eq!(fs::read(dir.path().join("victim")).expect("read"), b"keep");
        assert_eq!(mode(&path), 0o600);
        let names: Vec<_> = fs::read_dir(dir.path()).expect("listed").collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }
}
