//! A private directory, existing or to be made: trusted directories down to a
//! base, private ones below it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::{PlaceError, PlaceErrorKind};
use super::judge::Account;
use super::private;
use super::walk::walk;

/// Where a private directory should be.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The base: an absolute path, links allowed.
    pub(crate) base: PathBuf,
    /// How many of its last components may be made.
    pub(crate) makeable: usize,
    /// Names below the base: private, no links.
    pub(crate) below: Vec<OsString>,
}

/// A judged location. Whatever of it exists is safe; making the rest keeps it so.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    account: Account,
    /// The deepest directory that existed when it was judged.
    existing: PathBuf,
    /// The directories after it, parents first.
    missing: Vec<PathBuf>,
}

impl Chain {
    /// Judges all of a location that exists. `base_missing` refuses a base
    /// that may not be made. Changes nothing.
    pub(crate) fn judge(
        location: &Location,
        account: Account,
        base_missing: fn() -> PlaceErrorKind,
    ) -> Result<Chain, PlaceError> {
        let walked = walk(&location.base, &account)?;
        if walked.missing.len() > location.makeable {
            return Err(PlaceError::at(walked.path(), base_missing()));
        }
        let mut chain = Chain { account, existing: walked.real, missing: Vec::new() };
        for name in walked.missing {
            chain.missing.push(chain.path().join(name));
        }
        for name in &location.below {
            chain = chain.below(name)?;
        }
        Ok(chain)
    }

    /// The private directory of this name inside it.
    pub(crate) fn below(mut self, name: impl AsRef<Path>) -> Result<Chain, PlaceError> {
        let next = self.path().join(name);
        if self.missing.is_empty() && self.account.owns_directory(&next)? {
            self.existing = next;
        } else {
            self.missing.push(next);
        }
        Ok(self)
    }

    /// The directory itself, without links.
    pub(crate) fn path(&self) -> &Path {
        self.missing.last().unwrap_or(&self.existing)
    }

    /// Whether it existed when it was judged.
    pub(crate) fn exists(&self) -> bool {
        self.missing.is_empty()
    }

    /// The deepest directory that existed when it was judged: it tells the file
    /// system on which the rest would be made.
    pub(crate) fn existing(&self) -> &Path {
        &self.existing
    }

    /// Makes what is missing, and judges it again: somebody may have been
    /// faster.
    pub(crate) fn make(&self) -> Result<(), PlaceError> {
        for directory in &self.missing {
            private::make_directory(directory)?;
            self.account.owns_directory(directory)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn location(base: PathBuf, makeable: usize) -> Location {
        Location { base, makeable, below: vec!["own".into()] }
    }

    #[test]
    fn only_as_much_of_the_base_is_made_as_is_allowed() {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().canonicalize().expect("its real path").join("a/b");
        let judge = |makeable| {
            Chain::judge(&location(base.clone(), makeable), Account::of_process(), || {
                PlaceErrorKind::HomeMissing
            })
        };
        assert_eq!(judge(1).expect_err("too much").code(), "state_home_missing");
        let chain = judge(2).expect("allowed");
        assert!(!chain.exists() && !base.exists(), "judging makes nothing");
        chain.make().expect("made");
        assert!(judge(0).expect("all there").exists());
        assert_eq!(fs::read_dir(base.join("own")).expect("listed").count(), 0);
    }

    #[test]
    fn a_directory_that_somebody_else_made_meanwhile_is_judged_before_use() {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().canonicalize().expect("its real path");
        let chain =
            Chain::judge(&location(base.clone(), 0), Account::of_process(), || PlaceErrorKind::HomeMissing)
                .expect("judged");
        fs::create_dir(base.join("own")).expect("made meanwhile");
        fs::set_permissions(base.join("own"), fs::Permissions::from_mode(0o755)).expect("its mode");
        assert_eq!(chain.make().expect_err("not private").code(), "state_not_private");
    }
}
