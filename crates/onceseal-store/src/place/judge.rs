//! Who may stand above the state, and how private it must be.
//!
//! Everything here looks through `lstat`: no link is followed.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::{PlaceError, PlaceErrorKind, io_at};

pub(crate) const PRIVATE_DIRECTORY: u32 = 0o700;
pub(crate) const PRIVATE_FILE: u32 = 0o600;
const ANY_OTHER: u32 = 0o077;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// The account that the state belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// A further group whose members are trusted with directories above.
    pub(crate) trusted_group: Option<u32>,
}

impl Account {
    pub(crate) fn of_process() -> Account {
        Account {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            trusted_group: None,
        }
    }

    /// Whether nobody else can replace what lies in this directory.
    pub(crate) fn trusts_above(&self, path: &Path, found: &Metadata) -> Result<(), PlaceError> {
        if !found.is_dir() {
            return Err(PlaceError::at(path, PlaceErrorKind::WrongKind("directory")));
        }
        self.trusts_owner(path, found)?;
        let mode = found.mode();
        // In a sticky directory only an entry's owner can rename or remove it.
        if mode & STICKY != 0 {
            return Ok(());
        }
        if mode & 0o002 != 0 {
            return Err(PlaceError::at(path, PlaceErrorKind::AncestorWritable));
        }
        let group = found.gid();
        if mode & 0o020 != 0 && group != self.gid && Some(group) != self.trusted_group {
            return Err(PlaceError::at(path, PlaceErrorKind::AncestorGroup { group }));
        }
        Ok(())
    }

    /// Whether a directory or link above the state is ours or root's.
    pub(crate) fn trusts_owner(&self, path: &Path, found: &Metadata) -> Result<(), PlaceError> {
        let owner = found.uid();
        if owner == self.uid || owner == ROOT {
            return Ok(());
        }
        Err(PlaceError::at(path, PlaceErrorKind::AncestorOwner { owner }))
    }

    /// Whether the directory exists, and if so is ours alone.
    pub(crate) fn owns_directory(&self, path: &Path) -> Result<bool, PlaceError> {
        let Some(found) = lstat(path)? else { return Ok(false) };
        if !found.is_dir() {
            return Err(not_a(path, &found, "directory"));
        }
        self.alone(path, &found, PRIVATE_DIRECTORY)?;
        Ok(true)
    }

    /// The file's metadata if it exists, is a file with one name, and ours alone.
    pub(crate) fn owns_file(&self, path: &Path) -> Result<Option<Metadata>, PlaceError> {
        let Some(found) = lstat(path)? else { return Ok(None) };
        self.accepts_file(path, &found)?;
        Ok(Some(found))
    }

    pub(crate) fn accepts_file(&self, path: &Path, found: &Metadata) -> Result<(), PlaceError> {
        if !found.is_file() {
            return Err(not_a(path, found, "regular file"));
        }
        self.alone(path, found, PRIVATE_FILE)?;
        if found.nlink() > 1 {
            return Err(PlaceError::at(path, PlaceErrorKind::HardLink));
        }
        Ok(())
    }

    fn alone(&self, path: &Path, found: &Metadata, wanted: u32) -> Result<(), PlaceError> {
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        if owner != self.uid {
            return Err(PlaceError::at(path, PlaceErrorKind::ForeignOwner { owner }));
        }
        if mode & ANY_OTHER != 0 {
            return Err(PlaceError::at(path, PlaceErrorKind::NotPrivate { mode, wanted }));
        }
        Ok(())
    }
}

/// What stands at the path itself; `None` if nothing does.
pub(crate) fn lstat(path: &Path) -> Result<Option<Metadata>, PlaceError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at("look at the state path", path)(error)),
    }
}

fn not_a(path: &Path, found: &Metadata, wanted: &'static str) -> PlaceError {
    let kind = if found.is_symlink() { PlaceErrorKind::Symlink } else { PlaceErrorKind::WrongKind(wanted) };
    PlaceError::at(path, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn directory(mode: u32) -> (tempfile::TempDir, Metadata) {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).expect("its mode");
        let found = fs::symlink_metadata(dir.path()).expect("its metadata");
        (dir, found)
    }

    /// An account that owns `found` and shares no group with it.
    fn owner(found: &Metadata) -> Account {
        Account { uid: found.uid(), gid: found.gid() + 1, trusted_group: None }
    }

    fn code(result: Result<(), PlaceError>) -> &'static str {
        result.map_or_else(|error| error.code(), |()| "trusted")
    }

    #[test]
    fn a_directory_above_is_trusted_only_if_no_stranger_can_replace_entries() {
        for (mode, expected) in [
            (0o755, "trusted"),
            (0o700, "trusted"),
            (0o757, "state_ancestor_writable"),
            (0o777, "state_ancestor_writable"),
            (0o1777, "trusted"),
            (0o1775, "trusted"),
            (0o775, "state_ancestor_group"),
            (0o2770, "state_ancestor_group"),
        ] {
            let (dir, found) = directory(mode);
            assert_eq!(code(owner(&found).trusts_above(dir.path(), &found)), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_group_that_can_write_above_is_accepted_if_it_is_our_own_or_named() {
        let (dir, found) = directory(0o775);
        let stranger = owner(&found);
        let own = Account { gid: found.gid(), ..stranger };
        let named = Account { trusted_group: Some(found.gid()), ..stranger };
        let other = Account { trusted_group: Some(found.gid() + 2), ..stranger };
        assert_eq!(code(own.trusts_above(dir.path(), &found)), "trusted");
        assert_eq!(code(named.trusts_above(dir.path(), &found)), "trusted");
        assert_eq!(code(other.trusts_above(dir.path(), &found)), "state_ancestor_group");
        let refusal = stranger.trusts_above(dir.path(), &found).expect_err("a foreign group");
        assert!(refusal.to_string().contains(&format!("trust_group: {}", found.gid())));
    }

    #[test]
    fn what_another_account_owns_is_refused_above_and_below() {
        let (dir, found) = directory(0o700);
        let other = Account { uid: found.uid() + 1, ..owner(&found) };
        let file = dir.path().join("db");
        fs::write(&file, "").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its mode");
        assert_eq!(other.owns_directory(dir.path()).map_err(|e| e.code()), Err("state_foreign_owner"));
        assert_eq!(other.owns_file(&file).map(drop).map_err(|e| e.code()), Err("state_foreign_owner"));
        // Root's own directories are trusted by everybody.
        let expected = if found.uid() == ROOT { "trusted" } else { "state_ancestor_owner" };
        assert_eq!(code(other.trusts_above(dir.path(), &found)), expected);
    }
}
