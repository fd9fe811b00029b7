//! The controlling terminal, on a pseudo-terminal.
//!
//! The process under test leads a session of its own whose terminal is the
//! pseudo-terminal's other end, so reading from the background is an error.

use std::fs::File;
use std::io::{BufReader, Write};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::elsewhere::{elsewhere, read_to};

struct Session {
    child: Child,
    keyboard: File,
    screen: BufReader<File>,
}

impl Session {
    /// Runs `script`, and the reading afterwards, in a session with a terminal.
    fn start(script: &str, stdout: fn(&File) -> Stdio) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // Opened by this process without becoming its controlling terminal.
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let terminal: File = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap().into();

        let inner = elsewhere(script, true);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let child = command
            .stdin(terminal.try_clone().unwrap())
            .stdout(stdout(&terminal))
            .stderr(terminal)
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let screen = BufReader::new(keyboard.try_clone().unwrap());
        Self { child, keyboard, screen }
    }

    fn whole(script: &str) -> Self {
        Self::start(script, |terminal| terminal.try_clone().unwrap().into())
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn see(&mut self, start: &str) -> String {
        read_to(&mut self.screen, start)
    }
}

#[test]
fn the_program_reads_the_terminal_and_then_it_is_taken_back() {
    let mut session = Session::whole("echo ready; read line; echo \"got $line\"");
    session.see("ready");
    session.press("for the program\n");
    session.see("got for the program");
    assert_eq!(session.see("ended "), "Exit(0)");
    session.press("for the caller\n");
    assert_eq!(session.see("read "), "Ok(15) \"for the caller\\n\"");
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn in_a_pipeline_the_terminal_is_lent_when_the_program_needs_it() {
    let mut session = Session::start("read line; exit $line", |_| Stdio::piped());
    let mut stdout = BufReader::new(session.child.stdout.take().unwrap());
    read_to(&mut stdout, "event Started");
    session.press("6\n");
    assert_eq!(read_to(&mut stdout, "ended "), "Exit(6)");
    session.press("for the caller\n");
    assert_eq!(read_to(&mut stdout, "read "), "Ok(15) \"for the caller\\n\"");
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn the_interrupt_key_reaches_the_program() {
    let mut session = Session::whole("read go; trap 'exit 9' INT; echo ready; until read line; do :; done");
    session.press("go\n");
    session.see("ready");
    session.press("\x03");
    assert_eq!(session.see("ended "), "Exit(9)");
    session.press("\n");
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn the_suspend_key_does_not_suspend_an_attempt() {
    let mut session = Session::whole(
        "read go; trap 'echo; echo continued' CONT; echo ready; until read line; do :; done; exit $line",
    );
    // Having read it, the program has the terminal, and the key is for it.
    session.press("go\n");
    session.see("ready");
    session.press("\x1a");
    session.see("continued");
    session.press("3\n");
    assert_eq!(session.see("ended "), "Exit(3)");
    session.press("\n");
    assert!(session.child.wait().unwrap().success());
}

#[test]
fn a_program_that_is_killed_leaves_the_terminal_as_it_was() {
    let mut session = Session::whole("stty raw -echo; kill -9 $$");
    assert_eq!(session.see("ended "), "Signal(9)");
    // A raw terminal would leave the carriage return in the line.
    session.press("line\r\n");
    assert_eq!(session.see("read "), "Ok(5) \"line\\n\"");
    assert!(session.child.wait().unwrap().success());
}
