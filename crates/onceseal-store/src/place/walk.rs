//! From the root of the file system down to the base of the state.
//!
//! Every directory on the way, and every link followed, is judged before the
//! next step: whoever could redirect the walk later makes it refuse now.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::judge::{Account, lstat};

/// As many links as Linux follows in one look-up.
const LINKS_MAX: usize = 40;

/// Where an absolute path leads.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The part that exists, without links.
    pub(crate) real: PathBuf,
    /// The components after it that do not exist.
    pub(crate) missing: Vec<OsString>,
}

impl Walked {
    /// The whole path without links.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = self.real.clone();
        path.extend(&self.missing);
        path
    }
}

/// Follows an absolute path once, judging all that it passes.
pub(crate) fn walk(path: &Path, account: &Account) -> Result<Walked, PlaceError> {
    let mut real = PathBuf::from("/");
    let mut ahead = VecDeque::new();
    prepend(&mut ahead, path);
    let mut links = 0;
    judge(&real, account)?;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        let Some(found) = lstat(&next)? else {
            ahead.push_front(name);
            if ahead.iter().any(|name| name == "..") {
                return Err(PlaceError::at(next, PlaceErrorKind::ParentMissing));
            }
            return Ok(Walked { real, missing: ahead.into() });
        };
        if found.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(PlaceError::at(next, PlaceErrorKind::Symlink));
            }
            account.trusts_owner(&next, &found)?;
            let target = fs::read_link(&next).map_err(io_at("read a link", &next))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            prepend(&mut ahead, &target);
        } else {
            account.trusts_above(&next, &found)?;
            real = next;
        }
    }
    Ok(Walked { real, missing: Vec::new() })
}

fn judge(path: &Path, account: &Account) -> Result<(), PlaceError> {
    let found = fs::symlink_metadata(path).map_err(io_at("look at the state path", path))?;
    account.trusts_above(path, &found)
}

fn prepend(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn ground() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let real = dir.path().canonicalize().expect("its real path");
        (dir, real)
    }

    #[test]
    fn links_above_are_resolved_once() {
        let (_keep, base) = ground();
        fs::create_dir_all(base.join("real/deep")).expect("directories");
        symlink("real", base.join("relative")).expect("a link");
        symlink(base.join("relative"), base.join("absolute")).expect("a link");
        let walked = walk(&base.join("absolute/deep/../new/er"), &Account::of_process()).expect("trusted");
        assert_eq!(walked.real, base.join("real"));
        assert_eq!(walked.missing, ["new", "er"]);
        assert_eq!(walked.path(), base.join("real/new/er"));
    }

    #[test]
    fn a_link_into_a_directory_that_anybody_writes_is_refused() {
        let (_keep, base) = ground();
        let open = base.join("open");
        fs::create_dir(&open).expect("a directory");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
        fs::create_dir(base.join("private")).expect("a directory");
        // The end of the walk is private, but anybody could redirect it.
        symlink(base.join("private"), open.join("hop")).expect("a link");
        let refusal = walk(&open.join("hop"), &Account::of_process()).expect_err("redirectable");
        assert_eq!((refusal.code(), refusal.path()), ("state_ancestor_writable", Some(open.as_path())));
    }

    #[test]
    fn a_circle_of_links_and_a_way_back_out_of_nothing_are_refused() {
        let (_keep, base) = ground();
        symlink("b", base.join("a")).expect("a link");
        symlink("a", base.join("b")).expect("a link");
        let code = |path: PathBuf| walk(&path, &Account::of_process()).map_err(|e| e.code()).map(drop);
        assert_eq!(code(base.join("a")), Err("state_symlink"));
        assert_eq!(code(base.join("none/../x")), Err("state_parent_missing"));
    }

    #[test]
    fn a_file_above_the_state_is_refused() {
        let (_keep, base) = ground();
        fs::write(base.join("file"), "").expect("a file");
        let refusal = walk(&base.join("file/state"), &Account::of_process()).expect_err("a file");
        assert_eq!((refusal.code(), refusal.path()), ("state_wrong_kind", Some(base.join("file").as_path())));
    }
}
