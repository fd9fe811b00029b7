//! Where a program writes its result down: a file of its own, which nobody else
//! may read, gone once it has been read.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::limits::RESULT_BYTES;

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
        let read =
            File::open(&self.path).and_then(|file| file.take(RESULT_BYTES as u64 + 1).read_to_end(&mut text));
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

fn stand_in(problem: &str, bytes: usize) -> Value {
    let mut stand_in = Object::new();
    stand_in.insert("unstorable", problem);
    stand_in.insert("bytes", Value::Integer(i64::try_from(bytes).unwrap_or(json::SAFE_INTEGER)));
    stand_in.into()
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
    fn p13_the_file_is_its_own_and_is_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt;
        let file = ResultFile::new().expect("a file");
        let path = file.path().to_owned();
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }
}
