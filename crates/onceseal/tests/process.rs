//! Real programs under the executor of `onceseal exec`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::future;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use onceseal::core::json::Object;
use onceseal::process::{Ended, Event, Process, SpawnErrorKind, classify};
use onceseal::{Failure, Outcome};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, test_kill_process, waitid};
use tempfile::TempDir;
use tokio::sync::oneshot;

#[path = "process/elsewhere.rs"]
mod elsewhere;
#[cfg(target_os = "linux")]
#[path = "process/terminal.rs"]
mod terminal;

const HOUR: Duration = Duration::from_secs(3600);
/// Longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn sh(script: &str) -> Process {
    Process::new("sh").arg("-c").arg(script).arg("sh")
}

async fn ended(process: &Process) -> Ended {
    process.run(Instant::now() + HOUR, |_| {}).await.ended
}

/// A pipe with a name: the program and whatever it leaves behind hold it open.
struct Fifo {
    _dir: TempDir,
    path: PathBuf,
}

impl Fifo {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self { _dir: dir, path }
    }

    /// Tells the first line, then everything after it once nobody holds the
    /// pipe any more.
    fn read(&self) -> (oneshot::Receiver<String>, mpsc::Receiver<String>) {
        let (first, first_line) = oneshot::channel();
        let (all, rest) = mpsc::channel();
        let path = self.path.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(File::open(path).unwrap());
            let (mut line, mut text) = (String::new(), String::new());
            reader.read_line(&mut line).unwrap();
            // Nobody listens any more only when the test has failed.
            let _ = first.send(line);
            reader.read_to_string(&mut text).unwrap();
            let _ = all.send(text);
        });
        (first_line, rest)
    }
}

/// Until the answer is dropped, Tokio's paused clock moves only by `advance`:
/// it does not run ahead while a blocking task is under way.
fn hold_the_clock() -> mpsc::Sender<()> {
    let (hold, held) = mpsc::channel();
    tokio::task::spawn_blocking(move || held.recv());
    hold
}

#[tokio::test]
async fn exit_0_is_committed() {
    let ended = ended(&sh("exit 0")).await;
    assert_eq!(ended, Ended::Exit(0));
    assert_eq!(classify(&ended, &BTreeSet::new()), Outcome::Committed);
}

#[tokio::test]
async fn p06_an_exit_code_is_not_executed_only_if_it_was_named() {
    let ended = ended(&sh("exit 75")).await;
    assert_eq!(ended, Ended::Exit(75));
    let code = || "exit_75".to_owned();
    assert_eq!(classify(&ended, &BTreeSet::from([75])), Outcome::NotExecuted { code: code() });
    assert_eq!(classify(&ended, &BTreeSet::from([74])), Outcome::Unknown { code: code() });
}

#[tokio::test]
async fn p06_a_program_that_is_an_executor_ends_as_its_exit_code_says() {
    let named = BTreeSet::from([75]);
    let run = async |script: &str| {
        let process = sh(script);
        process.run(Instant::now() + HOUR, |_| {}).await.executed(&named)
    };
    let mut exited = Object::new();
    exited.insert("exit", 0);
    assert_eq!(run("exit 0").await, Ok(exited.into()));
    let (code, message) = (Some("exit_75".into()), "the program exited with status 75".into());
    assert_eq!(run("exit 75").await, Err(Failure::NotExecuted { code, message }));
    let (code, message) = (Some("exit_1".into()), "the program exited with status 1".into());
    assert_eq!(run("exit 1").await, Err(Failure::Unknown { code, message }));
}

#[tokio::test]
async fn p06_a_program_that_a_signal_ended_is_unknown() {
    let ended = ended(&sh("kill -9 $$")).await;
    assert_eq!(ended, Ended::Signal(9));
    let outcome = classify(&ended, &(0..=255).collect());
    assert_eq!(outcome, Outcome::Unknown { code: "signal_9".into() });
}

#[tokio::test]
async fn a_program_that_never_ran_is_not_executed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let missing = dir.path().join("missing");
    let cases = [
        (Process::new(&missing), SpawnErrorKind::ProgramNotFound),
        (Process::new("onceseal-no-such-program"), SpawnErrorKind::ProgramNotFound),
        (Process::new(&file), SpawnErrorKind::PermissionDenied),
        (Process { cwd: Some(missing), ..sh("exit 0") }, SpawnErrorKind::NoSuchDirectory),
        (Process::new("sh").arg("a\0b"), SpawnErrorKind::NulByte),
    ];
    for (process, kind) in cases {
        let ended = ended(&process).await;
        assert_eq!(ended, Ended::NotStarted(kind));
        assert!(matches!(classify(&ended, &BTreeSet::new()), Outcome::NotExecuted { .. }));
    }
}

#[tokio::test]
async fn after_the_deadline_nothing_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let mut events = Vec::new();
    let ran = Process::new("touch").arg(&trace).run(Instant::now(), |event| events.push(event)).await;
    assert_eq!(ran.ended, Ended::NotStarted(SpawnErrorKind::DeadlinePassed));
    assert!(events.is_empty());
    assert!(!trace.exists());
}

#[tokio::test]
async fn environment_directory_and_arguments_reach_the_program_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let here = std::fs::canonicalize(dir.path()).unwrap();
    let mut process =
        sh(r#"[ "$X" = "a  b" ] && [ "$(pwd -P)" = "$1" ] && [ "$2" = '$(exit 9); *' ] && [ -n "$PATH" ]"#)
            .arg(&here)
            .arg("$(exit 9); *");
    process.env.push(("X".into(), "a  b".into()));
    process.cwd = Some(here);
    assert_eq!(ended(&process).await, Ended::Exit(0));
}

/// Runs a script to its deadline, and with `no_grace` the clock to the end of
/// the grace; what happened, and what was written to the pipe `$1` after its
/// first line.
async fn to_the_deadline(script: &str, no_grace: bool) -> (Ended, Vec<Event>, String) {
    let fifo = Fifo::new();
    let process = sh(script).arg(&fifo.path);
    let (ready, rest) = fifo.read();
    let deadline = tokio::time::Instant::now() + HOUR;
    let events = RefCell::new(Vec::new());
    let _held = hold_the_clock();
    let time_passes = async {
        ready.await.unwrap();
        tokio::time::advance(HOUR).await;
        while no_grace && !events.borrow().contains(&Event::Killed) {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        future::pending().await
    };
    let ran = tokio::select! {
        ran = process.run(deadline.into_std(), |event| events.borrow_mut().push(event)) => ran,
        () = time_passes => unreachable!("time does not end"),
    };
    let rest = rest.recv_timeout(PATIENCE).expect("somebody still holds the pipe");
    (ran.ended, events.into_inner(), rest)
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_the_whole_group_is_killed() {
    let grandchild =
        r#"exec 3>"$1"; sh -c 'trap "" TERM; echo ready >&3; while :; do sleep 60; done' & wait"#;
    let stubborn = format!("trap '' TERM; {grandchild}; wait");
    for script in [grandchild, &stubborn] {
        let (ended, events, _) = to_the_deadline(script, true).await;
        assert_eq!(ended, Ended::TimedOut);
        let [Event::Started { pid }, Event::Deadline, Event::Killed] = events[..] else {
            panic!("{events:?}");
        };
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        assert_eq!(test_kill_process(pid), Err(Errno::SRCH), "the program lives on");
        let outcome = classify(&ended, &(0..=255).collect());
        assert_eq!(outcome, Outcome::Unknown { code: "timed_out".into() });
    }
}

#[tokio::test(start_paused = true)]
async fn p06_a_program_that_ends_well_only_after_the_deadline_is_unknown() {
    let script = r#"exec 3>"$1"; trap 'echo cleaned >&3; exit 0' TERM; echo ready >&3; sleep 60 & wait"#;
    let (ended, _, written) = to_the_deadline(script, false).await;
    assert_eq!((ended, written.as_str()), (Ended::TimedOut, "cleaned\n"));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_program_has_its_grace_too() {
    let script = r#"exec 3>"$1"; trap 'echo cleaned >&3; exit 0' TERM
        (kill -STOP $$; echo ready >&3) & wait; sleep 60 & wait"#;
    let (ended, _, written) = to_the_deadline(script, false).await;
    assert_eq!((ended, written.as_str()), (Ended::TimedOut, "cleaned\n"));
}

#[tokio::test]
async fn a_dropped_run_kills_the_group() {
    let fifo = Fifo::new();
    let process =
        sh(r#"trap "" TERM INT HUP; exec 3>"$1"; sh -c 'echo ready >&3; while :; do sleep 60; done' & wait"#)
            .arg(&fifo.path);
    let (ready, rest) = fifo.read();
    tokio::select! {
        ran = process.run(Instant::now() + HOUR, |_| {}) => panic!("it ended: {ran:?}"),
        line = ready => assert_eq!(line.unwrap(), "ready\n"),
    }
    assert_eq!(rest.recv_timeout(PATIENCE).as_deref(), Ok(""), "the group lives on");
}

#[tokio::test]
async fn what_a_program_leaves_behind_when_it_ends_in_time_is_left_alone() {
    let (told, go) = (Fifo::new(), Fifo::new());
    let process =
        sh(r#"exec 3>"$1"; sh -c 'echo ready >&3; read line <"$0"; echo "alive $line" >&3' "$2" & exit 0"#)
            .arg(&told.path)
            .arg(&go.path);
    let (ready, rest) = told.read();
    assert_eq!(ended(&process).await, Ended::Exit(0));
    assert_eq!(ready.await.unwrap(), "ready\n");
    let path = go.path.clone();
    tokio::task::spawn_blocking(move || std::fs::write(path, "still\n")).await.unwrap().unwrap();
    assert_eq!(rest.recv_timeout(PATIENCE).as_deref(), Ok("alive still\n"));
}

#[tokio::test]
async fn p06_a_status_that_somebody_else_collected_is_unknown() {
    let ran = sh("exit 0")
        .run(Instant::now() + HOUR, |event| {
            if let Event::Started { pid } = event {
                let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).unwrap();
            }
        })
        .await;
    assert_eq!(ran.ended, Ended::Lost);
    let outcome = classify(&ran.ended, &BTreeSet::from([0]));
    assert_eq!(outcome, Outcome::Unknown { code: "status_lost".into() });
}

#[test]
fn p13_arguments_and_values_of_variables_are_not_in_the_debug_form() {
    let mut process = Process::new("pay").arg("--token=hunter2");
    process.env.push(("TOKEN".into(), "hunter3".into()));
    process.cwd = Some(Path::new("/srv").into());
    let shown = format!("{process:?}");
    assert!(shown.contains("pay") && shown.contains("TOKEN") && shown.contains("/srv"));
    assert!(!shown.contains("hunter"), "{shown}");
}
