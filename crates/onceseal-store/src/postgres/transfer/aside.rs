//! The file that a store moves from: halted while it is copied, put aside once the
//! copy is whole.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use onceseal_core::code::Code;
use rusqlite::Connection;

use super::tenants_of;
use crate::error::StoreError;
use crate::place::{MOVED, private};
use crate::sqlite;

/// A file that is copied. Whoever writes to it waits as long as this is there.
pub struct Halted {
    pub(super) file: PathBuf,
    /// In a transaction that only ends with it.
    pub(super) writer: Connection,
}

impl Halted {
    /// Looks whether the file can be put aside, before much is done for it.
    ///
    /// # Errors
    /// Something stands where it would be.
    pub(super) fn check(file: &Path) -> Result<(), StoreError> {
        match aside(file).exists() {
            true => {
                Err(StoreError::with(Code::StoreFailed, "a file that was put aside before is in the way"))
            }
            false => Ok(()),
        }
    }

    /// Puts the file aside, so that nobody acts on it any more: whoever waited for it
    /// finds none, and is refused. Returns where it is now.
    ///
    /// # Errors
    /// It cannot be renamed, or something stands there.
    pub fn put_aside(self) -> Result<PathBuf, StoreError> {
        let aside = aside(&self.file);
        Halted::check(&self.file)?;
        std::fs::rename(&self.file, &aside)?;
        if let Some(directory) = aside.parent() {
            private::sync_directory(directory)?;
        }
        drop(self.writer);
        side_files_aside(&self.file)?;
        crate::fault::reach("after_put_aside")?;
        Ok(aside)
    }
}

/// Where a file is once it has been put aside.
fn aside(file: &Path) -> PathBuf {
    named(file, MOVED)
}

fn named(file: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(end);
    PathBuf::from(name)
}

/// Where another process had it open, a part of it is still in its log.
fn side_files_aside(file: &Path) -> Result<(), StoreError> {
    for beside in ["-wal", "-shm"] {
        match std::fs::rename(named(file, beside), named(file, &format!("{MOVED}{beside}"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The ids of the tenants in this file, if it was put aside.
///
/// # Errors
/// It cannot be used.
pub fn put_aside_before(file: &Path) -> Result<Option<Vec<[u8; 16]>>, StoreError> {
    let aside = aside(file);
    // An empty one is left where there never was a store but the server's.
    let is_store = std::fs::metadata(&aside).is_ok_and(|found| found.len() > 0);
    if file.exists() || !is_store {
        return Ok(None);
    }
    // Whoever put it aside may have got no further.
    side_files_aside(file)?;
    let source = sqlite::Connector::new(aside, None)?.raw_writer()?;
    sqlite::require_current(&source)?;
    Ok(Some(tenants_of(&source)?.into_iter().map(|(_, tenant)| tenant.id).collect()))
}
