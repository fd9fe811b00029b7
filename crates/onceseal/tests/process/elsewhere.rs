//! Runs in a process of their own, because they are about its standard
//! streams and the signals sent to it.
//!
//! The test program starts itself with only [`the_other_side`] to do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use onceseal::process::Ended;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::{PATIENCE, sh};

const SCRIPT: &str = "ONCESEAL_TEST_SCRIPT";
const READ_AFTERWARDS: &str = "ONCESEAL_TEST_READ";

/// A command that runs `script` under protection and prints what happens, a
/// line each; with `read_afterwards` it then reads a line itself.
pub(crate) fn elsewhere(script: &str, read_afterwards: bool) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "elsewhere::the_other_side", "--ignored", "--nocapture", "--quiet"]);
    command.env(SCRIPT, script);
    if read_afterwards {
        command.env(READ_AFTERWARDS, "1");
    }
    command
}

#[test]
#[ignore = "started by the other tests, in a process of its own"]
fn the_other_side() {
    let script = std::env::var(SCRIPT).expect("started by another test");
    let ran = sh(&script).run_blocking(Instant::now() + PATIENCE, |event| println!("\nevent {event:?}"));
    println!("\nended {:?}", ran.ended);
    assert_ne!(ran.ended, Ended::TimedOut, "the test that started this has failed");
    if std::env::var_os(READ_AFTERWARDS).is_some() {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        println!("\nread {read:?} {line:?}");
    }
}

/// Reads to the line that starts with `start`; the rest of that line.
pub(crate) fn read_to(reader: &mut impl BufRead, start: &str) -> String {
    let mut seen = String::new();
    loop {
        let before = seen.len();
        let read = reader.read_line(&mut seen).unwrap_or(0);
        assert!(read > 0, "no line starts with {start:?} in: {seen}");
        if let Some(rest) = seen[before..].trim_end().strip_prefix(start) {
            return rest.to_owned();
        }
    }
}

fn start(script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child =
        elsewhere(script, false).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

#[test]
fn the_streams_pass_through() {
    let (mut child, mut stdout) = start("cat; exit 4");
    child.stdin.take().unwrap().write_all(b"in and out\n").unwrap();
    read_to(&mut stdout, "in and out");
    assert_eq!(read_to(&mut stdout, "ended "), "Exit(4)");
    assert!(child.wait().unwrap().success());
}

#[test]
fn sigint_and_sigterm_are_passed_on_and_the_real_exit_is_known() {
    for (name, signal, status) in [("INT", Signal::INT, 8), ("TERM", Signal::TERM, 7)] {
        let script = format!("trap 'exit {status}' {name}; echo ready; until read line; do :; done");
        let (mut child, mut stdout) = start(&script);
        read_to(&mut stdout, "ready");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let forwarded = read_to(&mut stdout, "event Forwarded");
        assert_eq!(forwarded, format!(" {{ signal: {} }}", signal.as_raw()));
        assert_eq!(read_to(&mut stdout, "ended "), format!("Exit({status})"));
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_signal_that_the_program_survives_does_not_end_the_waiting() {
    let (mut child, mut stdout) =
        start("trap 'echo heard' TERM; echo ready; until read line; do :; done; exit $line");
    read_to(&mut stdout, "ready");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    read_to(&mut stdout, "heard");
    child.stdin.take().unwrap().write_all(b"5\n").unwrap();
    assert_eq!(read_to(&mut stdout, "ended "), "Exit(5)");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_caller_itself_is_not_suspended_while_the_program_runs() {
    let (mut child, mut stdout) = start("read line; exit $line");
    read_to(&mut stdout, "event Started");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TSTP).unwrap();
    child.stdin.take().unwrap().write_all(b"5\n").unwrap();
    let change = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), change).unwrap().unwrap();
    assert!(status.exited(), "it was suspended");
    assert_eq!(read_to(&mut stdout, "ended "), "Exit(5)");
    assert!(child.wait().unwrap().success());
}
