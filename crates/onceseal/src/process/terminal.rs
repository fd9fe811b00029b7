//! Lending the controlling terminal to the program's group.
//!
//! Invariant: a terminal that was lent is taken back when this is dropped, and
//! one that was not in this process's hands is never touched.

use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The controlling terminal of this process.
pub(super) struct Terminal {
    file: File,
    own: Pid,
    modes: Termios,
    lent: bool,
    keep_modes: bool,
}

impl Terminal {
    /// `None` if this process has no controlling terminal.
    pub(super) fn open() -> Option<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let modes = tcgetattr(&file).ok()?;
        Some(Self { file, own: getpgrp(), modes, lent: false, keep_modes: false })
    }

    /// Whether the program is sure to be the one that the terminal is for.
    /// In a pipeline it may be for another, such as a pager.
    pub(super) fn is_for_the_program() -> bool {
        stdin().is_terminal() && stdout().is_terminal()
    }

    /// Makes `group` the foreground group if this process's own is. Whether
    /// `group` has the terminal now.
    pub(super) fn lend(&mut self, group: Pid) -> bool {
        match tcgetpgrp(&self.file) {
            Ok(holder) if holder == group => true,
            Ok(holder) if holder == self.own => {
                self.lent |= tcsetpgrp(&self.file, group).is_ok();
                self.lent
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Leaves the terminal's modes as the program set them.
    pub(super) fn keep_modes(&mut self) {
        self.keep_modes = true;
    }

    fn take_back(&self) {
        // From the background, taking the terminal stops the whole group by
        // SIGTTOU unless the calling thread blocks it.
        let Ok(before) = SigSet::from_iter([Signal::SIGTTOU]).thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
            return;
        };
        // Both fail only for a terminal that has gone away: then there is
        // nothing to take back and nobody to tell.
        if tcsetpgrp(&self.file, self.own).is_ok() && !self.keep_modes {
            let _ = tcsetattr(&self.file, OptionalActions::Now, &self.modes);
        }
        // Cannot fail with a mask that the system gave.
        let _ = before.thread_set_mask();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.lent {
            self.take_back();
        }
    }
}
