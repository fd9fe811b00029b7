//! Git's exclude file: keeps the project file out of commits, and so out of
//! clones, which then get an id of their own.
//!
//! The look-up follows gitrepository-layout(5): `.git` may be a directory or a
//! file `gitdir: …`, and a worktree's directory names the common one in
//! `commondir`, where `info/exclude` lies.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::project;

/// What happened to git's exclude file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitExclude {
    /// The project is in no git repository.
    NoRepository,
    /// The project file was excluded already.
    Already,
    /// A line was added.
    Added,
}

/// Adds `.onceseal/` to the exclude file of the repository that the project is in.
pub(crate) fn exclude(root: &Path) -> Result<GitExclude, PlaceError> {
    let Some(git) = repository(root)? else { return Ok(GitExclude::NoRepository) };
    let info = common(git)?.join("info");
    let path = info.join("exclude");
    let line = format!("{}/", project::DIRECTORY);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io_at("read git's exclude file", &path)(error)),
    };
    if text.split(|&byte| byte == b'\n').any(|found| found.trim_ascii_end() == line.as_bytes()) {
        return Ok(GitExclude::Already);
    }
    match fs::create_dir(&info) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io_at("make git's info directory", &info)(error));
        }
        _ => {}
    }
    let unfinished = !text.is_empty() && !text.ends_with(b"\n");
    append(&path, &format!("{}{line}\n", if unfinished { "\n" } else { "" }))?;
    Ok(GitExclude::Added)
}

/// In one write, so that what others append meanwhile is kept.
fn append(path: &Path, text: &str) -> Result<(), PlaceError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => {
            return Err(PlaceError::at(path, PlaceErrorKind::GitExclude("is a symbolic link")));
        }
        Err(error) => return Err(io_at("open git's exclude file", path)(error.into())),
    };
    file.write_all(text.as_bytes()).map_err(io_at("write git's exclude file", path))
}

/// The git directory of the repository that a directory is in.
fn repository(from: &Path) -> Result<Option<PathBuf>, PlaceError> {
    for directory in from.ancestors() {
        let path = directory.join(".git");
        match fs::metadata(&path) {
            // As git does, pass by a directory that is no repository.
            Ok(found) if found.is_dir() && path.join("HEAD").is_file() => return Ok(Some(path)),
            Ok(found) if found.is_file() => return linked(directory, &path).map(Some),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_at("look for a git repository", &path)(error)),
        }
    }
    Ok(None)
}

/// The git directory that a `.git` file names.
fn linked(directory: &Path, file: &Path) -> Result<PathBuf, PlaceError> {
    let text = fs::read(file).map_err(io_at("read the .git file", file))?;
    let target = text.strip_prefix(b"gitdir:").map(|rest| path_of(rest.trim_ascii_start()));
    match target.map(|target| directory.join(target)) {
        Some(git) if git.join("HEAD").is_file() => Ok(git),
        _ => Err(PlaceError::at(file, PlaceErrorKind::GitExclude("is not where the .git file points"))),
    }
}

/// The directory that all worktrees of a repository share.
fn common(git: PathBuf) -> Result<PathBuf, PlaceError> {
    let path = git.join("commondir");
    match fs::read(&path) {
        Ok(text) => Ok(git.join(path_of(&text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(git),
        Err(error) => Err(io_at("read git's commondir file", &path)(error)),
    }
}

fn path_of(text: &[u8]) -> &Path {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Path::new(std::ffi::OsStr::from_bytes(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn repository_in(dir: &Path) -> PathBuf {
        fs::create_dir_all(dir.join(".git/info")).expect("directories");
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
        dir.join(".git/info/exclude")
    }

    #[test]
    fn the_line_is_added_once_on_a_line_of_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = repository_in(dir.path());
        fs::write(&path, "*.log").expect("a file without a newline at its end");
        assert_eq!(exclude(dir.path()).expect("added"), GitExclude::Added);
        assert_eq!(exclude(dir.path()).expect("there"), GitExclude::Already);
        assert_eq!(fs::read_to_string(&path).expect("read"), "*.log\n.onceseal/\n");
    }

    #[test]
    fn a_linked_exclude_file_is_read_but_never_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = repository_in(dir.path());
        fs::write(dir.path().join("mine"), "*.log\n").expect("a file");
        symlink(dir.path().join("mine"), &path).expect("a link");
        assert_eq!(exclude(dir.path()).expect_err("a link").code(), "project_git_exclude");
        fs::write(dir.path().join("mine"), ".onceseal/\r\n").expect("a file");
        assert_eq!(exclude(dir.path()).expect("there"), GitExclude::Already);
    }

    #[test]
    fn a_git_file_that_points_nowhere_is_refused_and_an_empty_git_directory_passed_by() {
        let dir = tempfile::tempdir().expect("a directory");
        let (outer, inner) = (repository_in(dir.path()), dir.path().join("inner"));
        fs::create_dir_all(inner.join(".git")).expect("directories");
        assert_eq!(exclude(&inner).expect("added"), GitExclude::Added);
        assert_eq!(fs::read_to_string(outer).expect("read"), ".onceseal/\n");
        fs::remove_dir(inner.join(".git")).expect("removed");
        fs::write(inner.join(".git"), "gitdir: ../nowhere\n").expect("a file");
        assert_eq!(exclude(&inner).expect_err("nowhere").code(), "project_git_exclude");
    }
}
