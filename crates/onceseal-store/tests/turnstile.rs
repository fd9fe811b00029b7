//! Real processes at one turnstile: none starves, and the dead let go.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onceseal_store::turnstile::Turnstile;

const ROUNDS: usize = 2000;
const PROCESSES: usize = 4;
/// The shortest batch: less than what one synchronous write costs.
const COMMIT: Duration = Duration::from_micros(100);

/// What the child processes are told, in one variable: task, letter, database.
const TASK: &str = "TURNSTILE_TASK";

/// This program again, running only [`child`] with this task.
fn start(task: &str, letter: char, database: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .env(TASK, format!("{task} {letter} {}", database.to_str().expect("text")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Waits until the child says a word.
fn await_word(child: &mut Child, word: &str) {
    let mut lines = BufReader::new(child.stdout.as_mut().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("text").ends_with(word)), "the child ended before it said {word}");
}

/// Runs only as a child of the tests below.
#[test]
fn child() {
    let Ok(told) = std::env::var(TASK) else { return };
    let mut told = told.splitn(3, ' ');
    let mut next = || told.next().expect("a word").to_owned();
    let (task, letter, database) = (next(), next(), PathBuf::from(next()));
    let turnstile = Turnstile::open(&database).expect("opened");
    say("ready");
    match task.as_str() {
        "rounds" => enter_many_times(ROUNDS, &turnstile, &letter, &database),
        "once" => enter_many_times(1, &turnstile, &letter, &database),
        "hold" => {
            let _pass = turnstile.enter().expect("entered");
            let _sweep = turnstile.try_sweep().expect("asked").expect("nobody else");
            say("inside");
            // Until killed.
            let _ = std::io::stdin().read(&mut [0]);
        }
        other => panic!("no such task: {other}"),
    }
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().expect("said");
}

/// Writes its letter once each time it is inside, and stays as long as a commit.
fn enter_many_times(rounds: usize, turnstile: &Turnstile, letter: &str, database: &Path) {
    let mut log = OpenOptions::new().append(true).open(database.with_extension("log")).expect("a log");
    for _ in 0..rounds {
        let _pass = turnstile.enter().expect("entered");
        log.write_all(letter.as_bytes()).expect("written");
        // On a file system that keeps nothing, as long as a commit takes.
        let entered = Instant::now();
        while entered.elapsed() < COMMIT {}
    }
}

fn is_locked(database: &Path, suffix: &str) -> bool {
    let file = File::open(format!("{}{suffix}", database.display())).expect("a lock file");
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether a thread of the child waits in the queue, as far as the system tells.
fn queues(child: &Child) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", child.id())) else { return true };
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| name.trim_end() == "onceseal-turn")
}

/// Waits until the child is next.
fn await_next(child: &mut Child, database: &Path) {
    let begun = Instant::now();
    // It looks first whether both are free, and holds the gate for that too.
    while !(queues(child) && is_locked(database, ".gate")) {
        assert_eq!(child.try_wait().expect("asked"), None, "the child ended before it queued");
        assert!(begun.elapsed() < Duration::from_secs(30), "the child never held the gate");
        std::thread::yield_now();
    }
}

#[test]
fn no_process_gets_less_than_half_its_share_while_all_want_to_enter() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    let log = database.with_extension("log");
    File::create(&log).expect("a log");
    let turnstile = Turnstile::open(&database).expect("opened");
    let pass = turnstile.enter().expect("entered");
    let mut children: Vec<_> =
        ('a'..).take(PROCESSES).map(|letter| start("rounds", letter, &database)).collect();
    for child in &mut children {
        await_word(child, "ready");
    }
    drop(pass);
    for child in &mut children {
        assert!(child.wait().expect("ended").success());
    }
    let entries = std::fs::read(&log).expect("read");
    assert_eq!(entries.len(), PROCESSES * ROUNDS);
    let window = common_window(&entries);
    let share = window.len() / PROCESSES;
    assert!(share > ROUNDS / 4, "too short a window to judge: {}", window.len());
    for letter in (b'a'..).take(PROCESSES) {
        let entered = window.iter().filter(|&&found| found == letter).count();
        println!("{}: {entered} of {}", char::from(letter), window.len());
        assert!(2 * entered >= share, "{} entered {entered} times of {}", char::from(letter), window.len());
    }
}

/// From the moment all have been inside to the moment the first is done.
fn common_window(entries: &[u8]) -> &[u8] {
    let position = |letter: &u8| entries.iter().position(|found| found == letter).expect("it entered");
    let last = |letter: &u8| entries.iter().rposition(|found| found == letter).expect("it entered");
    let letters: Vec<u8> = (b'a'..).take(PROCESSES).collect();
    let start = letters.iter().map(position).max().expect("some");
    let end = letters.iter().map(last).min().expect("some");
    &entries[start.min(end)..end]
}

#[test]
fn whoever_leaves_cannot_come_back_before_the_one_who_waits() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("db");
        let log = database.with_extension("log");
        File::create(&log).expect("a log");
        let turnstile = Turnstile::open(&database).expect("opened");
        let pass = turnstile.enter().expect("entered");
        let mut child = start("once", 'a', &database);
        await_word(&mut child, "ready");
        await_next(&mut child, &database);
        drop(pass);
        let _pass = turnstile.enter().expect("entered again");
        assert_eq!(std::fs::read(&log).expect("read"), b"a", "the child was inside before us");
        assert!(child.wait().expect("ended").success());
    }
}

#[test]
fn a_process_that_is_killed_inside_lets_the_next_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    let turnstile = Turnstile::open(&database).expect("opened");
    let mut child = start("hold", 'a', &database);
    await_word(&mut child, "inside");
    assert!(is_locked(&database, ".lock") && !is_locked(&database, ".gate"));
    assert!(turnstile.try_sweep().expect("asked").is_none());
    child.kill().expect("killed");
    child.wait().expect("ended");
    drop(turnstile.enter().expect("entered"));
    assert!(turnstile.try_sweep().expect("asked").is_some());
}

#[test]
fn p14_a_process_that_keeps_its_turn_is_not_waited_for_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    let turnstile = Turnstile::open(&database).expect("opened");
    let mut child = start("hold", 'a', &database);
    await_word(&mut child, "inside");
    for _ in 0..2 {
        let late = turnstile.enter_within(Duration::from_millis(50)).map(drop);
        assert_eq!(late.expect_err("the child is inside").kind(), std::io::ErrorKind::TimedOut);
    }
    let other = Turnstile::open(&database).expect("opened");
    let late = other.enter_within(Duration::from_millis(50)).map(drop);
    assert_eq!(late.expect_err("it queues behind the first").kind(), std::io::ErrorKind::TimedOut);
    child.kill().expect("killed");
    child.wait().expect("ended");
    // What stayed behind in the queue lets whoever comes in, and is in nobody's way.
    drop(other.enter().expect("entered"));
    drop(turnstile.enter().expect("entered"));
    File::create(database.with_extension("log")).expect("a log");
    assert!(start("once", 'b', &database).wait().expect("ended").success());
    drop(other.enter().expect("entered again"));
}

#[test]
fn a_process_that_is_killed_while_it_is_next_lets_the_next_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    let turnstile = Turnstile::open(&database).expect("opened");
    let pass = turnstile.enter().expect("entered");
    let mut child = start("hold", 'a', &database);
    await_word(&mut child, "ready");
    await_next(&mut child, &database);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!is_locked(&database, ".gate"));
    drop(pass);
    drop(turnstile.enter().expect("entered"));
}

#[test]
fn threads_of_one_process_take_turns_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let turnstile = Turnstile::open(&dir.path().join("db")).expect("opened");
    let inside = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let _pass = turnstile.enter().expect("entered");
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "alone inside");
                    std::thread::yield_now();
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
    });
}

#[test]
fn one_sweeps_at_a_time_and_sweeping_does_not_wait_for_writing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, other) = (Turnstile::open(&dir.path().join("db")), Turnstile::open(&dir.path().join("db")));
    let (one, other) = (one.expect("opened"), other.expect("opened"));
    let _pass = one.enter().expect("entered");
    let sweep = other.try_sweep().expect("asked").expect("free");
    assert!(one.try_sweep().expect("asked").is_none(), "held by another opening");
    assert!(other.try_sweep().expect("asked").is_none(), "held by this opening");
    drop(sweep);
    assert!(one.try_sweep().expect("asked").is_some());
    assert!(other.try_sweep().expect("asked").is_some());
}

#[test]
fn its_files_are_private_and_never_links_and_the_database_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let database = dir.path().join("db");
    Turnstile::open(&database).expect("opened");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir.path()).expect("listed") {
        let entry = entry.expect("an entry");
        let mode = std::os::unix::fs::MetadataExt::mode(&entry.metadata().expect("its metadata"));
        assert_eq!(mode & 0o7777, 0o600);
        names.push(entry.file_name());
    }
    names.sort();
    assert_eq!(names, ["db.gate", "db.lock", "db.sweep"]);
    for suffix in [".gate", ".lock", ".sweep"] {
        let path = PathBuf::from(format!("{}{suffix}", database.display()));
        std::fs::remove_file(&path).expect("removed");
        symlink(dir.path().join("elsewhere"), &path).expect("a link");
        let refusal = Turnstile::open(&database).expect_err("a link");
        assert_eq!((refusal.code(), refusal.path()), ("state_symlink", Some(path.as_path())));
        std::fs::remove_file(&path).expect("removed");
    }
    assert!(!dir.path().join("elsewhere").exists());
}
