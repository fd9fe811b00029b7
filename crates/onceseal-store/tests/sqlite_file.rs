//! Which files a store takes for its own, and what it leaves alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::decide::decide;
use onceseal_core::hash::Hash;
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_store::{Options, Parts, SCHEMA_VERSION, Store, StoreError};
use rusqlite::Connection;

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::sqlite(path.to_owned(), &Options::default())
}

fn refusal(path: &Path) -> Code {
    open(path).err().expect("it is refused").code()
}

fn note(store: &Store) -> Result<Reply, StoreError> {
    store.run(Command::Note(Note { body: "1".to_owned(), source: "a test".to_owned() }))
}

/// A directory with a new store in it that has been used and closed.
fn used() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    File::create_new(&path).expect("an empty file");
    let store = open(&path).expect("opened");
    note(&store).expect("noted");
    store.close();
    (dir, path)
}

/// Every file of a directory with its length and what hashes its bytes. What
/// every reader of a write-ahead log makes is left out: its index in shared
/// memory, and the log as long as it is empty.
fn contents(dir: &Path) -> BTreeMap<String, (usize, Hash)> {
    let entries = fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| {
        let bytes = fs::read(entry.path()).expect("read");
        (entry.file_name().into_string().expect("text"), (bytes.len(), Hash::of("", &[&bytes])))
    });
    named
        .filter(|(name, (len, _))| !(name.ends_with("-shm") || name.ends_with("-wal") && *len == 0))
        .collect()
}

/// Puts a copy of a database and what lies beside it into a directory of its
/// own, as a crash at this moment would leave it.
fn crashed(from: &Path) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    for suffix in ["", "-wal", "-journal"] {
        let source = PathBuf::from(format!("{}{suffix}", from.display()));
        if source.exists() {
            fs::copy(source, dir.path().join(format!("db{suffix}"))).expect("copied");
        }
    }
    let path = dir.path().join("db");
    (dir, path)
}

/// Another program's database, in the middle of a transaction that has
/// reached the disk in part.
fn in_the_middle(path: &Path, rows: usize) -> Connection {
    let other = Connection::open(path).expect("opened");
    other
        .execute_batch(
            "PRAGMA cache_size=1; PRAGMA cache_spill=1; BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS t (x);",
        )
        .expect("begun");
    for _ in 0..rows {
        other.execute("INSERT INTO t VALUES (randomblob(2000))", []).expect("inserted");
    }
    other
}

#[test]
fn another_programs_database_is_refused_and_left_byte_for_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let other = Connection::open(&path).expect("opened");
    other.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").expect("made");
    drop(other);
    let before = contents(dir.path());
    assert_eq!(refusal(&path), Code::StoreForeign);
    assert_eq!(contents(dir.path()), before, "nothing is written to it or beside it");
    let reader = Store::sqlite_reader(path, &Options::default());
    assert_eq!(reader.err().map(|error| error.code()), Some(Code::StoreForeign));
    assert_eq!(contents(dir.path()), before, "nor when it is only read");
}

#[test]
fn another_programs_write_ahead_log_is_not_carried_into_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let other = Connection::open(&path).expect("opened");
    other
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        .expect("made");
    let (dir, path) = crashed(&path);
    let before = contents(dir.path());
    assert!(before["db-wal"].0 > 4096, "the table is in the log only");
    assert_eq!(refusal(&path), Code::StoreForeign);
    let reader = Store::sqlite_reader(path, &Options::default());
    assert_eq!(reader.err().map(|error| error.code()), Some(Code::StoreForeign));
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn another_programs_unfinished_work_is_not_rolled_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let other = in_the_middle(&path, 20);
    other.execute_batch("COMMIT").expect("committed");
    drop(other);
    let other = in_the_middle(&path, 20);
    let (copy, path) = crashed(&path);
    drop(other);
    let before = contents(copy.path());
    assert!(before["db-journal"].0 > 0, "a journal waits to be played back");
    assert_eq!(refusal(&path), Code::StoreForeign);
    assert_eq!(contents(copy.path()), before);
}

#[test]
fn an_empty_file_that_a_crash_left_halfway_is_taken() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let other = in_the_middle(&path, 20);
    let (_copy, path) = crashed(&path);
    drop(other);
    File::options().write(true).open(&path).and_then(|file| file.set_len(4096)).expect("cut to a page");
    let store = open(&path).expect("opened: before the crash the file was empty");
    note(&store).expect("noted");
}

#[test]
fn what_is_no_database_is_refused_and_left_byte_for_byte() {
    for bytes in [&b"xy"[..], b"a text that is no database\n", &[0; 5000]] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        fs::write(&path, bytes).expect("written");
        assert_eq!(refusal(&path), Code::StoreForeign, "{} bytes", bytes.len());
        let left = BTreeMap::from([("db".to_owned(), (bytes.len(), Hash::of("", &[bytes])))]);
        assert_eq!(contents(dir.path()), left);
    }
}

#[test]
fn an_older_schema_is_brought_to_this_one_with_all_that_is_in_it() {
    let (_dir, path) = used();
    let older = "DROP TABLE own_rows; DELETE FROM schema_migrations WHERE id = 2; PRAGMA user_version = 1";
    Connection::open(&path).expect("opened").execute_batch(older).expect("as an older program left it");
    let version = || -> i32 {
        let file = Connection::open(&path).expect("opened");
        file.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a number")
    };
    let reader = Store::sqlite_reader(path.clone(), &Options::default()).expect("opened").expect("there");
    assert_eq!(reader.read(|snapshot| snapshot.log(0, 9)).expect("read").len(), 2);
    drop(reader);
    assert_eq!(version(), 1, "whoever only reads leaves it as it is");
    let store = open(&path).expect("opened");
    let beside = Command::Note(Note { body: "2".to_owned(), source: "a test".to_owned() });
    let done = store.run_with(beside, |_, rows| rows.put("a", b"one"));
    assert!(done.is_ok(), "{done:?}");
    let log = store.read(|snapshot| snapshot.log(0, 9)).expect("read");
    assert_eq!(log.len(), 3, "the tenant, the note from before and the one after");
    assert_eq!(store.own_row("a").expect("read"), Some(b"one".to_vec()));
    store.close();
    assert_eq!(version(), SCHEMA_VERSION);
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let (dir, path) = used();
    Connection::open(&path)
        .and_then(|newer| newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1))
        .expect("a newer program was here");
    let before = contents(dir.path());
    assert_eq!(refusal(&path), Code::StoreForeign);
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_store_that_another_program_brings_further_is_written_no_more() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    note(&store).expect("noted");
    let newer = Connection::open(&path).expect("a newer program comes");
    newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("and migrates");
    assert_eq!(note(&store).map_err(|error| error.code()), Err(Code::StoreForeign));
    newer.pragma_update(None, "user_version", SCHEMA_VERSION).expect("put back");
    note(&store).expect("it is ours again");
}

#[test]
fn a_store_in_whose_place_another_file_was_put_is_written_no_more() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    let (_other, restored) = used();
    fs::rename(&restored, &path).expect("another file takes its place");
    assert_eq!(note(&store).map_err(|error| error.code()), Err(Code::StoreForeign));
    fs::remove_file(&path).expect("removed");
    assert!(note(&store).is_err(), "what is written would be lost");
}

#[test]
fn p03_a_store_whose_log_was_removed_is_written_no_more() {
    for removed in [&["-wal", "-shm"][..], &["-wal"], &["-shm"]] {
        let (_dir, path) = used();
        let store = open(&path).expect("opened");
        note(&store).expect("noted");
        for suffix in removed {
            fs::remove_file(format!("{}{suffix}", path.display())).expect("removed");
        }
        // Whoever opens the path now would not see what is written to a removed file.
        assert_eq!(note(&store).map_err(|error| error.code()), Err(Code::StoreForeign), "{removed:?}");
    }
}

#[test]
fn p03_what_is_committed_to_a_log_that_is_gone_is_not_acknowledged() {
    let (_dir, path) = used();
    let mut parts = Parts::sqlite(path.clone(), &Options::default()).expect("the parts");
    parts.decide = Arc::new(move |pinned, view, command, now| {
        if matches!(command.command, Command::Note(_)) {
            fs::remove_file(format!("{}-wal", path.display())).expect("removed in the middle of a batch");
        }
        decide(pinned, view, command, now)
    });
    let store = Store::of(parts).expect("opened");
    let answer = note(&store).map_err(|error| error.code());
    assert_eq!(answer, Err(Code::CommitUnknown));
}

#[test]
fn a_store_whose_tenant_was_replaced_is_written_no_more() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    let other = Connection::open(&path).expect("another program comes");
    other.execute("UPDATE tenants SET tenant_id = randomblob(16)", []).expect("and restores another");
    assert_eq!(note(&store).map_err(|error| error.code()), Err(Code::StoreForeign));
}

#[test]
fn p02_only_the_account_that_made_the_store_is_proven_by_the_operating_system() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("onceseal.db");
    File::create_new(&path).expect("an empty file");
    let owner = |account: &str| {
        let options = Options { owner: Some(account.to_owned()), ..Options::default() };
        Parts::sqlite(path.clone(), &options).expect("the parts").owner
    };
    assert_eq!(owner("os:ann").as_deref(), Some("os:ann"), "it made the store");
    // In a user namespace an account can call itself anything.
    assert_eq!(owner("os:bob"), None);
    assert_eq!(owner("os:ann").as_deref(), Some("os:ann"));
}

#[test]
fn p03_a_store_whose_default_tenant_is_gone_does_not_get_another() {
    for change in ["UPDATE tenants SET tenant = 'other'", "DELETE FROM tenants"] {
        let (_dir, path) = used();
        let other = Connection::open(&path).expect("another program comes");
        other.execute_batch(&format!("PRAGMA foreign_keys=OFF; {change}")).expect("changed by hand");
        drop(other);
        assert_eq!(refusal(&path), Code::StoreForeign, "{change}");
        let read = Store::sqlite_reader(path.clone(), &Options::default()).map(drop);
        assert_eq!(read.map_err(|error| error.code()), Err(Code::StoreForeign), "{change}");
    }
}

#[test]
fn a_path_that_names_no_file_is_refused_and_nothing_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    // SQLite resolves such names against nothing, the lock files against here.
    std::env::set_current_dir(dir.path()).expect("entered");
    for name in
        ["", ":memory:", "file::memory:?cache=shared", "file:db", "file:db?mode=memory", ":other:", "a\0b"]
    {
        assert_eq!(refusal(Path::new(name)), Code::StoreFailed, "{name:?}");
        let reader = Store::sqlite_reader(PathBuf::from(name), &Options::default());
        assert_eq!(reader.err().map(|error| error.code()), Some(Code::StoreFailed), "{name:?}");
    }
    assert_eq!(refusal(Path::new("missing")), Code::StoreFailed);
    assert_eq!(refusal(dir.path()), Code::StoreFailed, "a directory");
    assert_eq!(contents(dir.path()), BTreeMap::new());
}

#[test]
fn a_link_is_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    File::create_new(&target).expect("an empty file");
    symlink(&target, &link).expect("a link");
    let before = contents(dir.path());
    assert_eq!(refusal(&link), Code::StoreFailed);
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_file_is_only_read_by_whoever_only_reads() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    note(&store).expect("noted");
    let (copy, path) = crashed(&path);
    let before = contents(copy.path());
    assert!(before["db-wal"].0 > 0, "some of it is in the log only");
    let reader = Store::sqlite_reader(path, &Options::default()).expect("opened").expect("it is there");
    let newest = reader.read(|snapshot| snapshot.newest()).expect("read");
    assert_eq!(newest, store.read(|snapshot| snapshot.newest()).expect("read"), "it sees the log");
    assert_eq!(note(&reader).map_err(|error| error.code()), Err(Code::StoreClosed));
    reader.close();
    let after_close = reader.read(|snapshot| snapshot.newest());
    assert_eq!(after_close.map_err(|error| error.code()), Err(Code::StoreClosed));
    assert_eq!(contents(copy.path()), before, "nothing has changed, no lock file has been made");
}

#[test]
fn closing_carries_the_log_into_the_file() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    note(&store).expect("noted");
    store.read(|snapshot| snapshot.newest()).expect("a reader has been there");
    store.close();
    let wal = PathBuf::from(format!("{}-wal", path.display()));
    assert!(!wal.exists(), "the file is whole without its log");
}

#[test]
fn settings_that_protect_are_as_they_have_to_be() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    assert_eq!(store.unsafe_settings().expect("read"), Vec::<String>::new());
    let memory = Store::memory(&Options::default()).expect("opened");
    assert_eq!(memory.unsafe_settings().expect("read").len(), 1, "a store in memory says that it forgets");
}

#[test]
fn a_program_that_does_not_know_the_turnstile_is_waited_for() {
    let (_dir, path) = used();
    let store = open(&path).expect("opened");
    let other = Connection::open(&path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("it writes");
    let ticket = store.submit(Command::Note(Note { body: "2".to_owned(), source: "a test".to_owned() }));
    // The writer holds the turn while it waits for the other's transaction.
    let lock = File::open(format!("{}.lock", path.display())).expect("a lock file");
    while lock.try_lock().is_ok() {
        lock.unlock().expect("unlocked");
        std::thread::yield_now();
    }
    other.execute_batch("COMMIT").expect("it is done");
    ticket.expect("taken").wait().expect("noted");
}
