//! A server program in a directory of its own, and every process in there.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::account::Account;
use crate::until::until;
use crate::watchdog::Watchdog;

/// Asks what works in the directory to end at once, kills what does not, and
/// removes the directory. A server that was killed leaves a segment of shared
/// memory, which its pid file names.
const CLEAN: &str = r#"
here() {
  for process in /proc/[0-9]*; do
    if [ "$process/cwd" -ef "$1" ] || [ "$process/cwd" -ef "$1/data" ]; then echo "${process#/proc/}"; fi
  done
}
send() { for id in $(here "$2"); do kill -s "$1" "$id"; done; }
send QUIT "$1"
send CONT "$1"
left=250
while [ -n "$(here "$1")" ] && [ "$left" -gt 0 ]; do sleep 0.02; left=$((left - 1)); done
while [ -n "$(here "$1")" ]; do send KILL "$1"; sleep 0.02; done
segment=$(sed -n '7s/.* //p' "$1/data/postmaster.pid") && [ -n "$segment" ] && ipcrm -m "$segment"
rm -rf "$1"
"#;

/// The directory, and the process that was started in it.
#[derive(Debug)]
pub(crate) struct Daemon {
    directory: PathBuf,
    account: Account,
    child: Mutex<Option<Child>>,
    watchdog: Option<Watchdog>,
}

impl Daemon {
    /// An empty directory below this one, in which nothing runs yet.
    pub(crate) fn new(below: &Path, name: &str) -> Daemon {
        let made = tempfile::Builder::new().prefix(&format!("onceseal-{name}-")).tempdir_in(below);
        let directory = made.unwrap_or_else(|error| panic!("{}: {error}", below.display())).keep();
        let account = Account::of_servers();
        account.owns(&directory);
        let watchdog = Some(Watchdog::new(CLEAN, &directory));
        Daemon { directory, account, child: Mutex::new(None), watchdog }
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a file into the directory, for the server's eyes only.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        self.account.owns(&path);
        path
    }

    /// A program that runs in the directory, under the server's account.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.account.runs(&mut command);
        command.current_dir(&self.directory).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    /// Starts the server: what it prints is its log.
    pub(crate) fn start(&self, command: &mut Command) {
        let path = self.directory.join("log");
        let open = || OpenOptions::new().create(true).append(true).open(&path);
        let log: File = open().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        command.stdout(log.try_clone().expect("a handle")).stderr(log).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let before = self.child().replace(child);
        assert!(before.is_none(), "the server in {} runs already", self.directory.display());
    }

    /// What the server has printed.
    pub(crate) fn log(&self) -> String {
        fs::read(self.directory.join("log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The server's pid.
    ///
    /// # Panics
    /// If it is stopped.
    #[track_caller]
    pub(crate) fn pid(&self) -> u32 {
        self.child().as_ref().expect("the server is stopped").id()
    }

    /// How the server ended, if it did by itself.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child();
        let status = child.as_mut()?.try_wait().expect("wait");
        if status.is_some() {
            *child = None;
        }
        status
    }

    /// Sends a signal to the server, and waits until it ended.
    #[track_caller]
    pub(crate) fn stop(&self, signal: Signal) {
        send(self.pid(), signal);
        until("the server's end", || self.ended());
    }

    /// Kills the server, and what it started.
    pub(crate) fn kill(&self) {
        self.signal_all(Signal::KILL);
        until("the end of every process", || {
            self.signal_all(Signal::KILL);
            self.processes().is_empty().then_some(())
        });
        if let Some(mut child) = self.child().take() {
            let _ = child.wait();
        }
    }

    /// Sends a signal to the server first, which then starts nothing more,
    /// and to whatever it started.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let server = self.child().as_ref().map(Child::id);
        if let Some(server) = server {
            send(server, signal);
        }
        for pid in self.processes() {
            send(pid, signal);
        }
    }

    fn processes(&self) -> Vec<u32> {
        let data = self.directory.join("data");
        let ours = |process: &Path| {
            fs::read_link(process.join("cwd")).is_ok_and(|place| place == self.directory || place == data)
        };
        let running = fs::read_dir("/proc").expect("/proc").flatten();
        running
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .filter(|(_, process)| ours(process))
            .map(|(pid, _)| pid)
            .collect()
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.watchdog = None;
        if let Some(mut child) = self.child().take() {
            let _ = child.wait();
        }
    }
}

/// Sends a signal; who has ended meanwhile needs none.
fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    let _ = kill_process(pid, signal);
}
