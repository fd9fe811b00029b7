//! Whose account servers run under: ours, or where that is root, which they
//! refuse, one that owns nothing else.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Gid, Uid, chown};

/// The account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account(Option<(u32, u32)>);

impl Account {
    /// The one that servers started by this process get.
    pub(crate) fn of_servers() -> Account {
        if !rustix::process::geteuid().is_root() {
            return Account(None);
        }
        let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
        let numbers = |name: &str| {
            let user = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut numbers = user.split(':').skip(2).map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        };
        let found = numbers("postgres").or_else(|| numbers("nobody"));
        Account(Some(found.expect("a user `postgres` or `nobody` in /etc/passwd")))
    }

    /// Makes a command run under it.
    pub(crate) fn runs(self, command: &mut Command) {
        if let Account(Some((user, group))) = self {
            command.uid(user).gid(group);
        }
    }

    /// Gives a file or directory to it.
    pub(crate) fn owns(self, path: &Path) {
        if let Account(Some((user, group))) = self {
            chown(path, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
                .unwrap_or_else(|error| panic!("chown {}: {error}", path.display()));
        }
    }
}
