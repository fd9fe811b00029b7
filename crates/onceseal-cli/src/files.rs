//! Files that a person names: read without waiting for what is none, and written so
//! that nobody else can read them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onceseal::core::hash::write_hex;
use rustix::fs::{Mode, OFlags};

use crate::error::CliError;
use crate::text::shown;

/// The content of a regular file of at most so many bytes, `-` for stdin.
pub(crate) fn read(path: &Path, most: usize) -> Result<Vec<u8>, CliError> {
    let is_stdin = path.as_os_str() == "-";
    let name = || if is_stdin { "standard input".to_owned() } else { named(path) };
    let unreadable = |why: String| CliError::usage(format!("{} cannot be read: {why}", name()));
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    let read = if is_stdin {
        io::stdin().take(limit).read_to_end(&mut content)
    } else {
        // Not to wait for a pipe that nobody writes.
        let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(|error| unreadable(why(&error)))?;
        let metadata = file.metadata().map_err(|error| unreadable(why(&error)))?;
        if !metadata.is_file() {
            let what = noun(metadata.file_type());
            let error = unreadable(format!("it is {what}, and a regular file is expected"));
            return Err(
                error.next("the same command with - as the file, and what is in it on standard input")
            );
        }
        file.take(limit).read_to_end(&mut content)
    };
    match read {
        Ok(_) if content.len() > most => Err(unreadable(format!("it is larger than {most} bytes"))),
        Ok(_) => Ok(content),
        Err(error) => Err(unreadable(why(&error))),
    }
}

/// A path as it was typed, to be told.
pub(crate) fn named(path: &Path) -> String {
    shown(&path.display().to_string())
}

/// Why the system does not do what it is asked with a file.
pub(crate) fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        kind => kind.to_string(),
    }
}

/// Why nothing could be written beside this file, if that can be seen.
pub(crate) fn room(file: &Path) -> Option<String> {
    /// Less than a store needs to be opened.
    const LITTLE: u64 = 256 * 1024;
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    let found = rustix::fs::statvfs(file.parent()?).ok()?;
    match most {
        _ if found.f_bavail.saturating_mul(found.f_frsize) < LITTLE => Some("the disk is full".to_owned()),
        Some(most) => Some(format!("no file may have more than {most} bytes here; see `ulimit -f`")),
        None => None,
    }
}

/// What stands at a name and is no regular file.
pub(crate) fn noun(kind: fs::FileType) -> &'static str {
    match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    Ok(File::from(rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?))
}

/// Opens a regular file to read, without waiting for what is none, and follows no link.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Makes a file that nobody else can read, where nothing stands.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A new file that nobody else can read, under a name that nobody can guess.
pub(crate) fn fresh(directory: &Path, prefix: &str) -> io::Result<(PathBuf, File)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = prefix.to_owned();
    write_hex(&random, &mut name);
    let path = directory.join(name);
    let file = make(&path)?;
    Ok((path, file))
}
