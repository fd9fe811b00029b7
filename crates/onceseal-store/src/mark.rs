//! The mark: the newest log entry that this account has seen committed, and
//! which tenant it saw in which state directory.
//!
//! Both lie outside the state, so a state restored from a backup meets a mark
//! that is further than it is, and an emptied one a tenant that it does not
//! have. What can be lost is only how far back is noticed: the mark is replaced
//! by rename, without waiting for the disk.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use onceseal_core::hash::Hash;
use onceseal_core::json::{Object, Value};

use crate::place::private::{self, Content, Durability};
use crate::place::{Concessions, Marks, PlaceError, Surroundings, record};

const SCHEMA: &str = "onceseal.mark/v1";
const TENANT_SCHEMA: &str = "onceseal.mark.tenant/v1";
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

/// What this account knows of the tenant of one name in one state directory.
#[derive(Debug)]
pub struct KnownTenant {
    marks: Marks,
    path: PathBuf,
}

impl KnownTenant {
    /// Finds it in the directory that `setting` names, else in `onceseal/marks`
    /// of the account's state home. Makes nothing.
    ///
    /// # Errors
    /// A directory that is not private to this account, or lies in the
    /// `state` directory.
    pub fn find(
        surroundings: &Surroundings,
        concessions: &Concessions,
        setting: Option<&OsStr>,
        state: &Path,
        tenant: &str,
    ) -> Result<KnownTenant, MarkError> {
        let marks = Marks::judge(surroundings, concessions, setting)?;
        if marks.directory().starts_with(state) {
            return Err(MarkError::InsideState);
        }
        Ok(KnownTenant::at(marks, state.as_os_str().as_encoded_bytes(), tenant))
    }

    /// The same for a tenant of a store on a server, of which `identity` tells it
    /// from others.
    ///
    /// # Errors
    /// A directory that is not private to this account.
    pub fn of_server(
        surroundings: &Surroundings,
        concessions: &Concessions,
        setting: Option<&OsStr>,
        identity: &str,
        tenant: &str,
    ) -> Result<KnownTenant, MarkError> {
        let marks = Marks::judge(surroundings, concessions, setting)?;
        Ok(KnownTenant::at(marks, identity.as_bytes(), tenant))
    }

    fn at(marks: Marks, store: &[u8], tenant: &str) -> KnownTenant {
        let place = Hash::of("onceseal.mark.tenant.v1\n", &[store, b"\0", tenant.as_bytes()]);
        let path = marks.directory().join(format!("{}.tenant", record::hex(&place.0[..16])));
        KnownTenant { marks, path }
    }

    /// The id of the tenant that was seen here; `None` if none was.
    ///
    /// # Errors
    /// A file that is not what [`MarkFile::advance`] writes.
    pub fn id(&self) -> Result<Option<[u8; 16]>, MarkError> {
        self.marks.judge_file(&self.path)?;
        let bytes = match private::read_file(&self.path, FILE_BYTES_MAX)? {
            Content::Missing => return Ok(None),
            Content::TooLong => return Err(MarkError::Corrupt("is too long")),
            Content::Whole(bytes) => bytes,
        };
        let object = record::read(&bytes, TENANT_SCHEMA, 2).map_err(MarkError::Corrupt)?;
        let id = object.get("tenant").and_then(Value::as_text).and_then(record::from_hex);
        id.map(Some).ok_or(MarkError::Corrupt("has no tenant"))
    }

    /// The mark of a tenant with this id.
    #[must_use]
    pub fn mark(&self, tenant_id: [u8; 16]) -> MarkFile {
        let path = self.marks.directory().join(record::hex(&tenant_id));
        MarkFile {
            known: KnownTenant { marks: self.marks.clone(), path: self.path.clone() },
            tenant_id,
            path,
        }
    }

    /// Remembers the tenant's id, unless one is remembered.
    ///
    /// # Errors
    /// As [`id`](Self::id), and what refuses to be written.
    pub fn remember_first(&self, tenant_id: &[u8; 16]) -> Result<(), MarkError> {
        match self.id()? {
            Some(_) => Ok(()),
            None => self.remember(tenant_id),
        }
    }

    fn remember(&self, tenant_id: &[u8; 16]) -> Result<(), MarkError> {
        let _lock = self.marks.lock(&self.path)?;
        let mut object = Object::new();
        object.insert("tenant", record::hex(tenant_id));
        // Written once, and what it keeps from being forgotten is everything.
        private::replace_file(&self.path, &record::write(object, TENANT_SCHEMA), Durability::Synced)?;
        Ok(())
    }
}

/// The file that holds one tenant's mark.
#[derive(Debug)]
pub struct MarkFile {
    known: KnownTenant,
    tenant_id: [u8; 16],
    path: PathBuf,
}

impl MarkFile {
    /// Where it is remembered whose mark it is.
    #[must_use]
    pub fn known(&self) -> &KnownTenant {
        &self.known
    }

    /// The mark; `None` if there is none, so that nothing is known.
    ///
    /// # Errors
    /// A file that is not what [`advance`](Self::advance) writes.
    pub fn read(&self) -> Result<Option<Mark>, MarkError> {
        self.known.marks.judge_file(&self.path)?;
        match private::read_file(&self.path, FILE_BYTES_MAX)? {
            Content::Missing => Ok(None),
            Content::TooLong => Err(MarkError::Corrupt("is too long")),
            Content::Whole(bytes) => parse(&bytes).map(Some).map_err(MarkError::Corrupt),
        }
    }

    /// Moves the mark forward; says whether it moved. One that is as far
    /// already, written by another process, stays. The first time the tenant is
    /// remembered too.
    ///
    /// # Errors
    /// As [`read`](Self::read), and what refuses to be written.
    pub fn advance(&self, mark: &Mark) -> Result<bool, MarkError> {
        self.known.remember_first(&self.tenant_id)?;
        let _lock = self.known.marks.lock(&self.path)?;
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
        let _lock = self.known.marks.lock(&self.path)?;
        let mark = self.read()?;
        if let Some(mark) = &mark {
            private::replace_file(&self.path, &write(mark), Durability::Loose)?;
        }
        Ok(mark)
    }

    /// Sets the mark, back too, and whose it is: after a person accepted that the
    /// state went back or is another, or that the mark was corrupt.
    ///
    /// # Errors
    /// What refuses to be written.
    pub fn replace(&self, mark: &Mark) -> Result<(), MarkError> {
        self.known.remember(&self.tenant_id)?;
        let _lock = self.known.marks.lock(&self.path)?;
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
