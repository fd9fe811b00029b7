//! Which file is at a path.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Device and inode; zeros where no file is.
pub(super) type Identity = (u64, u64);

/// What is at this path, a link itself if it is one.
///
/// Nothing else is asked for: since Linux 6.13, a file whose times have been
/// looked at gets a new one with the next write, and that write's sync then
/// writes the inode too, which makes a commit a third slower.
pub(super) fn of(path: &Path) -> io::Result<Identity> {
    match look(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((0, 0)),
        found => found,
    }
}

#[cfg(target_os = "linux")]
fn look(path: &Path) -> io::Result<Identity> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    use rustix::io::Errno;

    match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO) {
        Ok(found) => Ok((makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino)),
        // Before Linux 4.11, or forbidden in a sandbox.
        Err(Errno::NOSYS | Errno::PERM) => stat(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
use stat as look;

fn stat(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;

    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
