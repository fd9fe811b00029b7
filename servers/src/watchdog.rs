//! Cleans up behind a value, or behind its process: also one that is killed.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A shell that waits until our end of its pipe closes, as it does when we
/// drop it and when we die, and then runs its script.
///
/// Whatever is to be cleaned up is done there alone, so it is the same either
/// way, and the one way is tested by the other.
#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// A watchdog with this script, which finds the argument as `$1`.
    pub(crate) fn new(script: &str, argument: impl AsRef<OsStr>) -> Watchdog {
        let waiting = format!("trap '' HUP INT TERM\nread -r _\n{script}");
        let mut command = Command::new("sh");
        command.args(["-c", &waiting, "watchdog"]).arg(argument).current_dir("/");
        // A group of its own: a runner of tests kills the whole group of one
        // that takes too long. No output of ours: it would seem to go on.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Watchdog(command.spawn().expect("sh"))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Nothing is left to be done if it was killed.
        let _ = self.0.wait();
    }
}
