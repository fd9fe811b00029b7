//! Which file systems cannot hold the state.
//!
//! WAL needs locks and shared memory that every opener sees. A file system
//! that another host can write, or that is served by a program, gives neither
//! for sure.

use std::io;
use std::path::Path;

/// Names the file system if it is refused. A function, so that tests can stand
/// in for mounts they cannot make.
pub(crate) type Probe = fn(&Path) -> io::Result<Option<&'static str>>;

/// The name of the network or host-shared file system at the path, `None` for
/// a local one.
#[cfg(target_os = "linux")]
pub(crate) fn shared(path: &Path) -> io::Result<Option<&'static str>> {
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "magic numbers are 32 bit")]
    let magic = rustix::fs::statfs(path)?.f_type as u32;
    Ok(name(magic))
}

/// The same on systems that mark local mounts (`MNT_LOCAL` of sys/mount.h).
#[cfg(not(target_os = "linux"))]
pub(crate) fn shared(path: &Path) -> io::Result<Option<&'static str>> {
    const MNT_LOCAL: u64 = 0x1000;
    let flags = u64::from(rustix::fs::statfs(path)?.f_flags);
    Ok((flags & MNT_LOCAL == 0).then_some("a network file system"))
}

/// Magic numbers from linux/magic.h and, where that has none, from the
/// module's own source.
#[cfg(target_os = "linux")]
fn name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517B | 0xFF53_4D42 | 0xFE53_4D42 => "SMB",
        // virtiofs, sshfs and every other user-space file system answer so.
        0x6573_5546 => "FUSE or virtiofs",
        0x0102_1997 => "9p",
        0x786F_4256 => "a VirtualBox shared folder",
        0xBACB_ACBC => "a VMware shared folder",
        0x7C7C_6673 => "a Parallels shared folder",
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0000_564C => "NCP",
        0x00C3_6400 => "Ceph",
        0x0BD0_0BD0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x2003_0528 => "OrangeFS",
        0x0116_1970 => "GFS2",
        0x7461_636F => "OCFS2",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_and_host_shared_file_systems_are_named_and_local_ones_are_not() {
        for (magic, expected) in [
            (0x6969, Some("NFS")),
            (0xFF53_4D42, Some("SMB")),
            (0x6573_5546, Some("FUSE or virtiofs")),
            (0x0102_1997, Some("9p")),
            (0xEF53, None),      // ext4
            (0x9123_683E, None), // btrfs
            (0x5846_5342, None), // xfs
            (0x2FC1_2FC1, None), // zfs
            (0x794C_7630, None), // overlayfs
            (0x0102_1994, None), // tmpfs
        ] {
            assert_eq!(name(magic), expected, "{magic:#x}");
        }
    }

    #[test]
    fn the_kernel_is_asked_about_the_path() {
        assert_eq!(shared(Path::new("/proc")).expect("procfs answers"), None);
        assert!(shared(Path::new("/nonexistent")).is_err());
    }
}
