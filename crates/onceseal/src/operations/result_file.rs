//! Where a program writes its result down: a file of its own, which nobody else
//! may read, gone once it has been read.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use onceseal_core::json::{self, Limits, Value};
use onceseal_core::limits::RESULT_BYTES;
use rustix::fs::OFlags;

use crate::outcome::stand_in;

/// An empty file that belongs to this account alone.
pub(super) struct ResultFile {
    path: PathBuf,
}

impl ResultFile {
    /// `None` where none can be made: then a program has no result.
    pub(super) fn new() -> Option<ResultFile> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).ok()?;
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("onceseal-{name}.json"));
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).ok()?;
        Some(ResultFile { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was written; `None` if nothing was. What is no JSON, or too much of
    /// it, is named as that: it was done all the same.
    pub(super) fn read(self) -> Option<Value> {
        let mut text = Vec::new();
        // A program may have put something else there, which must not be waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&self.path);
        let opened = opened.and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(ErrorKind::InvalidInput.into()),
        });
        let read = opened.and_then(|file| file.take(RESULT_BYTES as u64 + 1).read_to_end(&mut text));
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) if text.len() > RESULT_BYTES => Some(stand_in("too_large", text.len())),
            Ok(length) => {
                Some(json::read(&text, &Limits::RESULT).unwrap_or_else(|_| stand_in("no_json", length)))
            }
        }
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        // It may have been removed by its program.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> Option<Value> {
        let file = ResultFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        file.read()
    }

    #[test]
    fn what_a_program_writes_is_read_and_what_is_no_json_is_named() {
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
        let replaced = |by: &dyn Fn(&Path)| {
            let file = ResultFile::new().expect("a file");
            std::fs::remove_file(file.path()).expect("removed");
            by(file.path());
            file.read()
        };
        let fifo = |path: &Path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
        };
        assert_eq!(replaced(&fifo), None);
        assert_eq!(
            replaced(&|path| std::os::unix::fs::symlink("/etc/hostname", path).expect("a link")),
            None
        );
        assert_eq!(replaced(&|_| {}), None);
    }

    #[test]
    fn p13_the_file_is_its_own_and_is_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt;
        let file = ResultFile::new().expect("a file");
        let path = file.path().to_owned();
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }
}
