//! A program that runs for an attempt, on this machine: at most one for an
//! effect, also when the worker that started it is dead or stopped.
//!
//! Its standard input is a file of the store's directory with the arguments, and
//! that file is locked. The lock is the open file's, which the worker hands over
//! when it starts the program: it lasts as long as the program does, or whatever
//! that has started and not cut off from its input.
//!
//! What a program writes its result to is a file of this one run. It may put
//! another in its place, so that the worker locks a third one for as long as it
//! wants the result: where nobody has that locked, the result is left over.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onceseal_core::hash::write_hex;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::limits::RESULT_BYTES;
use onceseal_core::stream::StreamId;
use rustix::fs::OFlags;

use crate::outcome::stand_in;

/// How often a lock is looked for that somebody removes at the same time.
const TRIES: usize = 16;

/// The files of a program: what it reads, and where it writes its result.
#[derive(Debug)]
pub(super) struct Running {
    input: PathBuf,
    result: PathBuf,
    wanted: PathBuf,
    /// Locked: somebody wants to read the result.
    _lock: File,
}

impl Running {
    /// Makes the files, and hands out the locked input. `None`: a program still
    /// runs for this effect.
    pub(super) fn begin(
        directory: &Path,
        effect: StreamId,
        arguments: &str,
    ) -> io::Result<Option<(Running, File)>> {
        let (directory, name) = place(directory, effect)?;
        let path = directory.join(format!("{name}.input"));
        let Some(mut input) = lock(&path)? else { return Ok(None) };
        input.set_len(0)?;
        input.write_all(arguments.as_bytes())?;
        input.rewind()?;
        Ok(Some((Running::new(&directory, &name, path)?, input)))
    }

    /// Makes a place for what a program writes that is asked about an attempt.
    /// `None`: a program still runs for this effect.
    pub(super) fn ask(directory: &Path, effect: StreamId) -> io::Result<Option<Running>> {
        let (directory, name) = place(directory, effect)?;
        let path = directory.join(format!("{name}.input"));
        if lock(&path)?.is_none() {
            return Ok(None);
        }
        Running::new(&directory, &name, path).map(Some)
    }

    fn new(directory: &Path, name: &str, input: PathBuf) -> io::Result<Running> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let mut own = String::new();
        write_hex(&random, &mut own);
        let path = |kind: &str| directory.join(format!("{name}.{own}.{kind}"));
        let (wanted, result) = (path("wanted"), path("result"));
        let lock = lock(&wanted)?.ok_or(ErrorKind::AlreadyExists)?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&result)?;
        Ok(Running { input, result, wanted, _lock: lock })
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

    /// Removes the files, and the input unless something still runs that reads it.
    pub(super) fn end(self) {
        // What cannot be removed is left over, and removed as that.
        let _ = fs::remove_file(&self.result);
        let _ = fs::remove_file(&self.wanted);
        remove_left(&self.input);
    }
}

/// Removes what programs have left that nobody runs and whose result nobody
/// waits for: their workers were killed.
pub(super) fn tidy(directory: &Path) {
    let files = fs::read_dir(directory.join("running")).into_iter().flatten().flatten();
    for path in files.map(|file| file.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.split('.').collect::<Vec<_>>()[..] {
            [effect, "input"] if is_hex(effect, 32) => remove_left(&path),
            [effect, own, "wanted"] if is_hex(effect, 32) && is_hex(own, 16) => {
                if let Ok(Some(_held)) = lock(&path) {
                    let _ = fs::remove_file(path.with_extension("result"));
                    let _ = fs::remove_file(&path);
                }
            }
            _ => {}
        }
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes a file that nobody has locked.
fn remove_left(path: &Path) {
    // While it is held nobody else can take it, and whoever waited sees that it is gone.
    if let Ok(Some(_held)) = lock(path) {
        let _ = fs::remove_file(path);
    }
}

/// The directory, made if it is not there, and what files of this effect are
/// called in it.
fn place(directory: &Path, effect: StreamId) -> io::Result<(PathBuf, String)> {
    let directory = directory.join("running");
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mut name = String::new();
    write_hex(&effect.name, &mut name);
    Ok((directory, name))
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

    use onceseal_core::stream::StreamKind;

    use super::*;

    const EFFECT: StreamId = StreamId { kind: StreamKind::Effect, name: [1; 16] };
    const OTHER: StreamId = StreamId { kind: StreamKind::Effect, name: [2; 16] };

    fn begun(at: &Path) -> Option<(Running, File)> {
        Running::begin(at, EFFECT, "{}").expect("usable")
    }

    fn files(at: &Path) -> usize {
        fs::read_dir(at.join("running")).expect("readable").count()
    }

    #[test]
    fn p03_an_effect_is_held_by_the_program_and_not_by_who_started_it() {
        let at = tempfile::tempdir().expect("a directory");
        let mut shell = Command::new("sh");
        let (_, input) = begun(at.path()).expect("free");
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut child =
            shell.args(["-c", "read _ <&2"]).stdin(input).stderr(reader).spawn().expect("a program");
        drop(shell);
        assert!(begun(at.path()).is_none(), "it runs");
        assert!(Running::ask(at.path(), EFFECT).expect("usable").is_none());
        tidy(at.path());
        assert!(begun(at.path()).is_none(), "it still does");
        assert!(Running::begin(at.path(), OTHER, "{}").expect("usable").is_some());
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
        assert_eq!(files(at.path()), 0);
    }

    #[test]
    fn each_run_has_a_result_of_its_own() {
        let at = tempfile::tempdir().expect("a directory");
        let ask = || Running::ask(at.path(), EFFECT).expect("usable").expect("nothing runs");
        let (one, two) = (ask(), ask());
        let (acting, _input) = begun(at.path()).expect("who asks stands in nobody's way");
        for (running, text) in [(&one, "1"), (&two, "2"), (&acting, "3")] {
            fs::write(running.result(), text).expect("written");
        }
        one.end();
        assert_eq!((two.read(), acting.read()), (Some(2.into()), Some(3.into())));
    }

    #[test]
    fn p13_what_killed_workers_left_is_removed_and_nothing_else() {
        let at = tempfile::tempdir().expect("a directory");
        drop(begun(at.path()).expect("free"));
        let (running, input) = Running::begin(at.path(), OTHER, "{}").expect("usable").expect("free");
        // A program may put another file in the place of the one that it was given.
        fs::write(at.path().join("running/new"), "3").expect("written");
        fs::rename(at.path().join("running/new"), running.result()).expect("replaced");
        for foreign in ["notes", "report.result", "report.input"] {
            fs::write(at.path().join("running").join(foreign), "").expect("written");
        }
        assert_eq!(files(at.path()), 9);
        tidy(at.path());
        assert_eq!(files(at.path()), 6, "what is in use, and what is none of ours");
        assert_eq!(running.read(), Some(3.into()));
        drop(input);
        running.end();
        assert_eq!(files(at.path()), 3);
    }
}
