//! A program that runs for an attempt, on this machine: at most one under a
//! provider key, also when the worker that started it is dead or stopped.
//!
//! Its standard input is a file of the store's directory with the arguments, and
//! that file is locked. The lock is the open file's, which the worker hands over
//! when it starts the program: it lasts as long as the program does, or whatever
//! that has started and not cut off from its input.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onceseal_core::json::{self, Limits, Value};
use onceseal_core::limits::RESULT_BYTES;
use rustix::fs::OFlags;

use crate::outcome::stand_in;

/// How often a lock is looked for that somebody removes at the same time.
const TRIES: usize = 16;

/// The files of a program: what it reads, and where it writes its result.
#[derive(Debug)]
pub(super) struct Running {
    input: PathBuf,
    result: PathBuf,
}

impl Running {
    /// Makes the files, and hands out the locked input. `None`: a program still
    /// runs under this key.
    pub(super) fn begin(directory: &Path, key: &str, arguments: &str) -> io::Result<Option<(Running, File)>> {
        let running = Running::of(directory, key)?;
        let Some(mut input) = lock(&running.input)? else { return Ok(None) };
        input.set_len(0)?;
        input.write_all(arguments.as_bytes())?;
        input.rewind()?;
        running.make_result()?;
        Ok(Some((running, input)))
    }

    /// Makes a place for what a program writes that is asked about an attempt.
    /// `None`: a program still runs under this key.
    pub(super) fn ask(directory: &Path, key: &str) -> io::Result<Option<Running>> {
        let running = Running::of(directory, key)?;
        if lock(&running.input)?.is_none() {
            return Ok(None);
        }
        running.make_result()?;
        Ok(Some(running))
    }

    fn of(directory: &Path, key: &str) -> io::Result<Running> {
        let directory = directory.join("running");
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = |kind: &str| directory.join(format!("{key}.{kind}"));
        Ok(Running { input: path("input"), result: path("result") })
    }

    fn make_result(&self) -> io::Result<()> {
        match fs::remove_file(&self.result) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.result).map(drop)
    }

    /// Where the program writes its result.
    pub(super) fn result(&self) -> &Path {
        &self.result
    }

    /// What was written; `None` if nothing was. What is no JSON, or too much of
    /// it, is named as that: it was done all the same.
    pub(super) fn read(&self) -> Option<Value> {
        let mut text = Vec::new();
        // A program may have put something else there, which must not be waited for.
        let opened = regular(OpenOptions::new().read(true), &self.result);
        match opened.and_then(|file| file.take(RESULT_BYTES as u64 + 1).read_to_end(&mut text)) {
            Ok(0) | Err(_) => None,
            Ok(length) if length > RESULT_BYTES => Some(stand_in("too_large", length)),
            Ok(length) => {
                Some(json::read(&text, &Limits::RESULT).unwrap_or_else(|_| stand_in("no_json", length)))
            }
        }
    }

    /// Removes the files, unless something still runs: then whoever takes the key
    /// next does.
    pub(super) fn end(self) {
        // What cannot be removed is made anew by the next attempt, or never.
        if let Ok(Some(_held)) = lock(&self.input) {
            let _ = fs::remove_file(&self.result);
            let _ = fs::remove_file(&self.input);
        }
    }
}

/// Opens and locks the file of this name, made if it is not there. `None`:
/// somebody has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..TRIES {
        let file = regular(
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600),
            path,
        )?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Whoever had it may have removed it.
        let (mine, there) = (file.metadata()?, fs::symlink_metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (mine.dev(), mine.ino())) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Opens a regular file, without waiting for what is none.
fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = options.custom_flags(flags.cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn begun(at: &Path) -> Option<(Running, File)> {
        Running::begin(at, "osl_key", "{}").expect("usable")
    }

    #[test]
    fn p03_a_key_is_held_by_the_program_and_not_by_who_started_it() {
        let at = tempfile::tempdir().expect("a directory");
        let mut shell = Command::new("sh");
        let (_, input) = begun(at.path()).expect("free");
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut child =
            shell.args(["-c", "read _ <&2"]).stdin(input).stderr(reader).spawn().expect("a program");
        drop(shell);
        assert!(begun(at.path()).is_none(), "it runs");
        assert!(Running::ask(at.path(), "osl_key").expect("usable").is_none());
        assert!(Running::begin(at.path(), "osl_other", "{}").expect("usable").is_some());
        drop(writer);
        child.wait().expect("it ends");
        assert!(begun(at.path()).is_some());
    }

    #[test]
    fn what_a_program_writes_is_read_and_what_is_no_json_is_named() {
        let at = tempfile::tempdir().expect("a directory");
        let written = |text: &[u8]| {
            let (running, _input) = begun(at.path()).expect("free");
            fs::write(running.result(), text).expect("written");
            running.read()
        };
        assert_eq!(written(b""), None);
        assert_eq!(written(b" {\"a\":1}\n"), json::read(b"{\"a\":1}", &Limits::RESULT).ok());
        let problem = |value: Option<Value>| {
            let value = value?;
            value.as_object()?.get("unstorable")?.as_text().map(str::to_owned)
        };
        assert_eq!(problem(written(b"{a}")).as_deref(), Some("no_json"));
        assert_eq!(problem(written(&vec![b' '; RESULT_BYTES + 1])).as_deref(), Some("too_large"));
    }

    #[test]
    fn p14_what_is_no_file_any_more_is_neither_waited_for_nor_followed() {
        let at = tempfile::tempdir().expect("a directory");
        let replaced = |by: &dyn Fn(&Path)| {
            let (running, _input) = begun(at.path()).expect("free");
            fs::remove_file(running.result()).expect("removed");
            by(running.result());
            running.read()
        };
        let fifo =
            |path: &Path| assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
        assert_eq!(replaced(&fifo), None);
        assert_eq!(
            replaced(&|path| std::os::unix::fs::symlink("/etc/hostname", path).expect("a link")),
            None
        );
        assert_eq!(replaced(&|_| {}), None);
    }

    #[test]
    fn p13_the_files_are_the_accounts_own_and_are_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt;
        let at = tempfile::tempdir().expect("a directory");
        let (running, input) = begun(at.path()).expect("free");
        for path in [&running.input, &running.result] {
            assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600);
        }
        drop(input);
        running.end();
        assert_eq!(fs::read_dir(at.path().join("running")).expect("readable").count(), 0);
    }
}
