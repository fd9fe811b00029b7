//! The mark: the newest log entry that this account has seen committed.
//!
//! It lies outside the state, so a state restored from a backup meets a mark
//! that is further than it is. What can be lost is only how far back is
//! noticed: the mark is replaced by rename, without waiting for the disk.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use onceseal_core::json::{Object, Value};

use crate::place::private::{self, Content, Durability};
use crate::place::{Concessions, Marks, PlaceError, Surroundings, record};

const SCHEMA: &str = "onceseal.mark/v1";
/// Many times what is written.
const FILE_BYTES_MAX: usize = 4096;

/// One entry of a tenant's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its position, from 1.
    pub position: u64,
    /// Its event's SHA-256.
    pub hash: [u8; 32],
}

/// Why a mark cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// `mark_corrupt`: nothing is known, and somebody should know why.
    #[error("the mark {0}; find out what changed it, then remove it: until the next one nothing is known")]
    Corrupt(&'static str),
    /// `mark_inside_state`: it would be restored with what it watches.
    #[error("the mark would lie inside the state directory; set `mark` to a directory outside it")]
    InsideState,
    /// The marks directory or a file in it is not safe; the code is the cause's.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

impl MarkError {
    /// The stable name of the refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            MarkError::Corrupt(_) => "mark_corrupt",
            MarkError::InsideState => "mark_inside_state",
            MarkError::Place(error) => error.code(),
        }
    }
}

/// The file that holds one tenant's mark.
#[derive(Debug)]
pub struct MarkFile {
    marks: Marks,
    path: PathBuf,
}

impl MarkFile {
    /// Finds a tenant's mark in the directory that `setting` names, else in
    /// `onceseal/marks` of the account's state home. Makes nothing.
    ///
    /// # Errors
    /// A directory that is not private to this account, or lies in the
    /// `state` directory.
    pub fn find(
        surroundings: &Surroundings,
        concessions: &Concessions,
        setting: Option<&OsStr>,
        state: Option<&Path>,
        tenant_id: [u8; 16],
    ) -> Result<MarkFile, MarkError> {
        let marks = Marks::judge(surroundings, concessions, setting)?;
        if state.is_some_and(|state| marks.directory().starts_with(state)) {
            return Err(MarkError::InsideState);
        }
        let path = marks.directory().join(record::hex(&tenant_id));
        Ok(MarkFile { marks, path })
    }

    /// The mark; `None` if there is none, so that nothing is known.
    ///
    /// # Errors
    /// A file that is not what [`advance`](Self::advance) writes.
    pub fn read(&self) -> Result<Option<Mark>, MarkError> {
        self.marks.judge_file(&self.path)?;
        match private::read_file(&self.path, FILE_BYTES_MAX)? {
            Content::Missing => Ok(None),
            Content::TooLong => Err(MarkError::Corrupt("is too long")),
            Content::Whole(bytes) => parse(&bytes).map(Some).map_err(MarkError::Corrupt),
        }
    }

    /// Moves the mark forward; says whether it moved. One that is as far
    /// already, written by another process, stays.
    ///
    /// # Errors
    /// As [`read`](Self::read), and what refuses to be written.
    pub fn advance(&self, mark: &Mark) -> Result<bool, MarkError> {
        let _lock = self.marks.lock(&self.path)?;
        if self.read()?.is_some_and(|found| found.position >= mark.position) {
            return Ok(false);
        }
        private::replace_file(&self.path, &write(mark), Durability::Loose)?;
        Ok(true)
    }

    /// Writes the mark again as it is, to see whether it can be written, and
    /// returns it.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn rewrite(&self) -> Result<Option<Mark>, MarkError> {
        let _lock = self.marks.lock(&self.path)?;
        let mark = self.read()?;
        if let Some(mark) = &mark {
            private::replace_file(&self.path, &write(mark), Durability::Loose)?;
        }
        Ok(mark)
    }

    /// Sets the mark, back too: after a person accepted that the state went
    /// back, or that the mark was corrupt.
    ///
    /// # Errors
    /// What refuses to be written.
    pub fn replace(&self, mark: &Mark) -> Result<(), MarkError> {
        let _lock = self.marks.lock(&self.path)?;
        Ok(private::replace_file(&self.path, &write(mark), Durability::Loose)?)
    }
}

fn parse(bytes: &[u8]) -> Result<Mark, &'static str> {
    let object = record::read(bytes, SCHEMA, 3)?;
    let text = |name| object.get(name).and_then(Value::as_text);
    let position = text("position").and_then(|text| text.parse().ok()).ok_or("has no position")?;
    let hash = text("hash").and_then(|text| text.strip_prefix("sha256:")).and_then(record::from_hex);
    Ok(Mark { position, hash: hash.ok_or("has no hash")? })
}

fn write(mark: &Mark) -> Vec<u8> {
    let mut object = Object::new();
    object.insert("hash", format!("sha256:{}", record::hex(&mark.hash)));
    object.insert("position", mark.position.to_string());
    record::write(object, SCHEMA)
}
