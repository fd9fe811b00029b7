//! Why a place is refused, and what to type next.
//!
//! The text names no path, so that it may travel; the path stands beside it
//! for the person at the terminal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A refusal, with the path that it is about.
#[derive(Debug)]
pub struct PlaceError {
    kind: PlaceErrorKind,
    path: Option<PathBuf>,
}

/// What is wrong. Each has a stable code, see [`PlaceError::code`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceErrorKind {
    /// `state_setting`: a directory that was set cannot be one.
    #[error("{setting} {reason}; set an absolute path, or unset it")]
    Setting {
        /// The variable or setting.
        setting: &'static str,
        /// What is wrong with its value.
        reason: &'static str,
    },
    /// `state_home_missing`: there is nothing to derive the default from.
    #[error("no home for the state; set HOME to an existing directory, or XDG_STATE_HOME or ONCESEAL_STATE")]
    HomeMissing,
    /// `state_parent_missing`: the parent of an explicit directory.
    #[error("the directory that should hold the state directory does not exist; create it first")]
    ParentMissing,
    /// `state_symlink`: below the base, nothing may be a link.
    #[error("a symbolic link stands in the state path; put the real directory or file there")]
    Symlink,
    /// `state_wrong_kind`: something else stands where this is expected.
    #[error("the state path holds something that is not a {0}; move it away")]
    WrongKind(&'static str),
    /// `state_foreign_owner`: a directory or file of another account.
    #[error("the state belongs to account {owner}; use that account, or another state directory")]
    ForeignOwner {
        /// User id of the owner.
        owner: u32,
    },
    /// `state_not_private`: others can read or write it.
    #[error("other accounts can reach the state (mode {mode:04o}); chmod it to {wanted:o}")]
    NotPrivate {
        /// The permission bits it has.
        mode: u32,
        /// The permission bits it should have.
        wanted: u32,
    },
    /// `state_hard_link`: a second name would mean a second set of SQLite's side files.
    #[error("a state file has more than one name (hard links); keep one and remove the others")]
    HardLink,
    /// `state_ancestor_owner`: its owner could replace what is below it.
    #[error(
        "a directory or link above the state belongs to account {owner}; choose a path owned by you or root"
    )]
    AncestorOwner {
        /// User id of the owner.
        owner: u32,
    },
    /// `state_ancestor_writable`: anybody could replace what is below it.
    #[error("anybody can write a directory above the state; chmod it o-w, or choose another path")]
    AncestorWritable,
    /// `state_ancestor_group`: a group could replace what is below it.
    #[error(
        "group {group} can write a directory above the state; chmod it g-w, or set `trust_group: {group}`"
    )]
    AncestorGroup {
        /// Group id of the directory.
        group: u32,
    },
    /// `state_inside_project`: where `git clean` and the agent's own `rm` reach it.
    #[error("the state would lie inside the project; choose a directory outside it")]
    InsideProject,
    /// `state_filesystem`: SQLite's locks and shared memory do not hold there.
    #[error(
        "the state would lie on {0}, where file locks cannot be relied on; use a local disk, or pass --force-filesystem"
    )]
    Filesystem(&'static str),
    /// `project_unavailable`: the working directory is gone or is no directory.
    #[error("the working directory cannot be used; change to an existing directory")]
    ProjectUnavailable,
    /// `project_missing`: the default state directory needs a project.
    #[error("no project here; run `onceseal init`, or set ONCESEAL_STATE")]
    ProjectMissing,
    /// `state_missing`: the project was made with state that is not there now.
    /// Acting without it would do again what it remembers.
    #[error(
        "the project's state is not here: it was made under another account, HOME or ONCESEAL_STATE, or it \
         was removed; go back to it or restore it, or run `onceseal project new` to begin again with nothing \
         remembered"
    )]
    StateMissing,
    /// `state_moved`: it is on a server now.
    #[error(
        "the project's store is on a server; set `store` in onceseal.yaml, or ONCESEAL_STORE, to its address"
    )]
    StateMoved,
    /// `project_in_use`: a new id would leave state behind that is in use.
    #[error(
        "this is the only place of the project, and what its state remembers would be forgotten and could \
         happen again; pass --forget if it may"
    )]
    ProjectInUse,
    /// `project_unreadable`: the project file is not what `init` writes.
    #[error("the project file {0}; restore it, or remove it and run `onceseal init` again")]
    ProjectUnreadable(&'static str),
    /// `project_copied`: the same id at a second living path, which is [`PlaceError::path`].
    #[error(
        "this project's id is in use at another path; run `onceseal project new` for an id of its own, \
         or `onceseal project adopt` to go on here instead of there"
    )]
    ProjectCopied,
    /// `project_roots_unreadable`: the file that remembers where projects are.
    #[error("the record of known projects {0}; move it away to have projects recorded anew")]
    RootsUnreadable(&'static str),
    /// `project_git_exclude`: git's exclude file cannot be extended.
    #[error("git's exclude file {0}; add the line `.onceseal/` to it yourself, then try again")]
    GitExclude(&'static str),
    /// `state_io`: the operating system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl PlaceError {
    pub(crate) fn new(kind: PlaceErrorKind) -> PlaceError {
        PlaceError { kind, path: None }
    }

    pub(crate) fn at(path: impl Into<PathBuf>, kind: PlaceErrorKind) -> PlaceError {
        PlaceError { kind, path: Some(path.into()) }
    }

    /// What is wrong, for a program.
    #[must_use]
    pub fn kind(&self) -> &PlaceErrorKind {
        &self.kind
    }

    /// The path that it is about: to be shown on this machine only.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The stable name of the refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            PlaceErrorKind::Setting { .. } => "state_setting",
            PlaceErrorKind::HomeMissing => "state_home_missing",
            PlaceErrorKind::ParentMissing => "state_parent_missing",
            PlaceErrorKind::Symlink => "state_symlink",
            PlaceErrorKind::WrongKind(_) => "state_wrong_kind",
            PlaceErrorKind::ForeignOwner { .. } => "state_foreign_owner",
            PlaceErrorKind::NotPrivate { .. } => "state_not_private",
            PlaceErrorKind::HardLink => "state_hard_link",
            PlaceErrorKind::AncestorOwner { .. } => "state_ancestor_owner",
            PlaceErrorKind::AncestorWritable => "state_ancestor_writable",
            PlaceErrorKind::AncestorGroup { .. } => "state_ancestor_group",
            PlaceErrorKind::InsideProject => "state_inside_project",
            PlaceErrorKind::Filesystem(_) => "state_filesystem",
            PlaceErrorKind::ProjectUnavailable => "project_unavailable",
            PlaceErrorKind::ProjectMissing => "project_missing",
            PlaceErrorKind::StateMissing => "state_missing",
            PlaceErrorKind::StateMoved => "state_moved",
            PlaceErrorKind::ProjectInUse => "project_in_use",
            PlaceErrorKind::ProjectUnreadable(_) => "project_unreadable",
            PlaceErrorKind::ProjectCopied => "project_copied",
            PlaceErrorKind::RootsUnreadable(_) => "project_roots_unreadable",
            PlaceErrorKind::GitExclude(_) => "project_git_exclude",
            PlaceErrorKind::Io { .. } => "state_io",
        }
    }

    /// The shell command that removes the cause, where one does. It holds the
    /// path, so it is for this machine only.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        let mode = match self.kind {
            PlaceErrorKind::NotPrivate { wanted, .. } => format!("{wanted:o}"),
            PlaceErrorKind::AncestorWritable => "o-w".to_owned(),
            PlaceErrorKind::AncestorGroup { .. } => "g-w".to_owned(),
            _ => return None,
        };
        let path = self.path.as_ref()?.to_str()?;
        Some(format!("chmod {mode} '{}'", path.replace('\'', r"'\''")))
    }
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for PlaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// Turns an I/O error into a refusal that says what was tried and where.
pub(crate) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
    let path = path.to_owned();
    move |source| PlaceError::at(path, PlaceErrorKind::Io { doing, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_refusal_names_no_path_and_the_command_quotes_it() {
        let kind = PlaceErrorKind::NotPrivate { mode: 0o644, wanted: 0o600 };
        let error = PlaceError::at("/home/o'neil/my state", kind);
        assert_eq!(error.to_string(), "other accounts can reach the state (mode 0644); chmod it to 600");
        assert_eq!(error.command().as_deref(), Some(r"chmod 600 '/home/o'\''neil/my state'"));
        assert_eq!(error.path(), Some(Path::new("/home/o'neil/my state")));
        assert_eq!(error.code(), "state_not_private");
    }

    #[test]
    fn an_io_refusal_keeps_its_cause() {
        let error = io_at("make a directory", Path::new("/x"))(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(error.to_string(), "cannot make a directory: entity not found");
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(error.command(), None);
    }
}
