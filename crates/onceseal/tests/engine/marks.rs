//! A store restored from yesterday does not know what was done since; the
//! account that saw it does.

use std::fs;
use std::path::Path;

use onceseal::core::journal::Kind;
use onceseal::core::lease::Resource;
use onceseal::core::time::Span;
use onceseal::{Control, Failure, Seen};

use crate::support::{Home, POLICY, clock, code, host, never, pay, policy};

async fn fine(_: onceseal::Call) -> Result<&'static str, Failure> {
    Ok("done")
}

/// Copies every file of a closed store.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
    // As the store made it: private.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("private");
}

/// A store with yesterday's copy beside it, and a day's work since.
async fn restored() -> Home {
    let home = Home::new();
    let (state, yesterday) = (home.dir.path().join("state"), home.dir.path().join("yesterday"));
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    pay(&control, "old", 5).execute(fine).await.expect("committed");
    control.close();
    copy(&state, &yesterday);
    let control = home.control(clock()).await.expect("the store");
    pay(&control, "new", 5).execute(fine).await.expect("committed");
    control.close();
    copy(&yesterday, &state);
    home
}

#[tokio::test]
async fn p05_a_store_that_went_back_is_refused_before_anything_runs_again() {
    let home = restored().await;
    let opened = home.control(clock()).await.map(drop);
    assert_eq!(opened.expect_err("it went back").code(), "store_went_back");
    // Again: being refused does not make it known.
    assert_eq!(code(home.control(clock()).await.map(drop)), "store_went_back");
}

/// A store with a payment made, and what is in its place now.
async fn replaced(with: impl FnOnce(&Path)) -> Home {
    let home = Home::new();
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    pay(&control, "old", 5).execute(fine).await.expect("committed");
    control.close();
    drop(control);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(home.dir.path().join(format!("state/onceseal.db{suffix}")));
    }
    with(&home.dir.path().join("state/onceseal.db"));
    home
}

/// Private, as what is there is.
fn emptied(database: &Path) {
    fs::write(database, "").expect("emptied");
}

/// A database as SQLite makes one that nothing is in.
fn bare(database: &Path) {
    emptied(database);
    rusqlite::Connection::open(database).expect("opened").execute_batch("VACUUM").expect("made");
    assert_ne!(fs::metadata(database).expect("there").len(), 0);
}

fn removed(database: &Path) {
    fs::remove_file(database).expect("removed");
}

/// A whole store, of other deeds.
fn another(database: &Path) {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let path = elsewhere.path().join("onceseal.db");
    fs::write(&path, "").expect("a file");
    let store = onceseal_store::Store::sqlite(path.clone(), &Default::default()).expect("made");
    drop(store);
    emptied(database);
    fs::write(database, fs::read(path).expect("a store")).expect("put in place");
}

#[tokio::test]
async fn p05_a_store_that_was_emptied_or_replaced_is_no_new_one() {
    for with in [emptied, bare, removed, another] as [fn(&Path); 4] {
        let home = replaced(with).await;
        let database = home.dir.path().join("state/onceseal.db");
        let before = fs::read(&database).ok();
        for _ in 0..2 {
            assert_eq!(code(home.control(clock()).await.map(drop)), "store_went_back");
        }
        let opening = home.opening(clock());
        let existing =
            tokio::task::spawn_blocking(move || Control::existing(&opening)).await.expect("no panic");
        assert_eq!(existing.map(drop).expect_err("refused").code(), "store_went_back");
        let after = fs::read(&database).ok();
        assert_eq!(after.unwrap_or_default(), before.unwrap_or_default(), "nothing was made in it");
        let opening = home.opening(clock());
        let reading =
            tokio::task::spawn_blocking(move || Control::reading(&opening)).await.expect("no panic");
        match reading {
            Err(error) => assert_eq!(error.code(), "store_went_back"),
            Ok(read) => {
                let control = read.expect("another store");
                assert!(matches!(control.seen(), Seen::WentBack { .. }), "{:?}", control.seen());
            }
        }
        let opening = home.opening(clock());
        let accept = move || Control::accept_went_back(&opening, host("ann"), "begin anew".into());
        let accepted = tokio::task::spawn_blocking(accept).await.expect("no panic").expect("accepted");
        assert!(matches!(accepted, Some(Seen::WentBack { .. })), "{accepted:?}");
        let control = home.control(clock()).await.expect("it opens");
        control.activate(policy(POLICY), false, None).await.expect("active");
        pay(&control, "old", 5).execute(fine).await.expect("forgotten, as was accepted");
    }
}

#[tokio::test]
async fn p05_whose_the_store_is_is_remembered_before_anything_runs() {
    let home = Home::new();
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    let kept = || -> Vec<String> {
        let names = fs::read_dir(home.dir.path().join("marks/onceseal/marks")).expect("marks");
        let names = names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".tenant")).collect()
    };
    let first = kept();
    assert_eq!(first.len(), 1, "by opening it");
    let seen = first.clone();
    let paid = pay(&control, "o", 5).execute(async move |_| {
        assert_eq!(kept(), seen);
        Ok::<_, Failure>("done")
    });
    paid.await.expect("committed");
}

#[tokio::test]
async fn p05_a_store_is_not_remembered_where_nothing_can_be_written_and_that_is_told() {
    let home = Home::new();
    let marks = home.dir.path().join("marks/onceseal/marks");
    let control = home.control(clock()).await.expect("a store");
    assert_eq!(control.mark_failure(), None);
    control.close();
    drop(control);
    let tenant = fs::read_dir(&marks).expect("marks").map(|entry| entry.expect("an entry").path());
    let tenant =
        tenant.into_iter().find(|path| path.extension().is_some_and(|it| it == "tenant")).expect("it");
    fs::remove_file(&tenant).expect("removed");
    break_lock(&tenant.with_extension("tenant.lock"));
    let control = home.control(clock()).await.expect("it acts");
    assert_eq!(control.mark_failure().expect("told").code, "state_symlink");
}

#[tokio::test]
async fn a_store_that_went_back_can_be_read_and_says_what_is_missing() {
    let home = restored().await;
    let opening = home.opening(clock());
    let read = tokio::task::spawn_blocking(move || Control::reading(&opening)).await.expect("no panic");
    let control = read.expect("readable").expect("there");
    match control.seen() {
        Seen::WentBack { seen, found } => assert!(seen > found, "{seen} {found}"),
        other => panic!("{other:?}"),
    }
    assert!(control.effect("pay:old").expect("readable").is_some());
    assert!(control.effect("pay:new").expect("readable").is_none());
}

#[tokio::test]
async fn p15_a_person_accepts_it_with_a_reason_and_is_named() {
    let home = restored().await;
    let (opening, again) = (home.opening(clock()), home.opening(clock()));
    let accept = |opening, reason: &str| {
        let reason = reason.to_owned();
        tokio::task::spawn_blocking(move || Control::accept_went_back(&opening, host("ann"), reason))
    };
    assert_eq!(code(accept(opening, " ").await.expect("no panic")), "out_of_bounds");
    let accepted = accept(again, "the disk was lost").await.expect("no panic").expect("accepted");
    assert!(matches!(accepted, Some(Seen::WentBack { .. })), "{accepted:?}");
    let control = home.control(clock()).await.expect("it opens");
    let events = control.log(0, 1_000).expect("readable").into_iter().filter_map(|event| event.event);
    assert_eq!(events.filter(|event| event.body.kind() == Kind::StoreAccepted).count(), 1);
    assert_eq!(code(pay(&control, "old", 5).execute(never).await), "duplicate");
    let opening = home.opening(clock());
    let nothing =
        tokio::task::spawn_blocking(move || Control::accept_went_back(&opening, host("ann"), "again".into()));
    assert!(nothing.await.expect("no panic").expect("nothing to accept").is_none());
}

#[tokio::test]
async fn a_store_with_another_history_at_the_same_length_is_noticed() {
    let home = restored().await;
    // Yesterday's copy is used elsewhere, until its log is longer than the mark.
    let elsewhere = Home::new();
    copy(&home.dir.path().join("yesterday"), &elsewhere.dir.path().join("state"));
    let other = elsewhere.control(clock()).await.expect("no mark there");
    for order in ["x", "y", "z"] {
        pay(&other, order, 5).execute(fine).await.expect("committed");
    }
    other.close();
    copy(&elsewhere.dir.path().join("state"), &home.dir.path().join("state"));
    assert_eq!(code(home.control(clock()).await.map(drop)), "store_went_back");
}

#[tokio::test]
async fn closing_twice_moves_no_mark_by_a_file_that_was_put_in_place_meanwhile() {
    let home = Home::new();
    let (state, yesterday) = (home.dir.path().join("state"), home.dir.path().join("yesterday"));
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    control.close();
    copy(&state, &yesterday);
    let control = home.control(clock()).await.expect("the store");
    pay(&control, "new", 5).execute(fine).await.expect("committed");
    control.close();
    // The file is replaced by a longer history while the handle is still around.
    let elsewhere = Home::new();
    copy(&yesterday, &elsewhere.dir.path().join("state"));
    let other = elsewhere.control(clock()).await.expect("no mark there");
    for order in ["x", "y", "z"] {
        pay(&other, order, 5).execute(fine).await.expect("committed");
    }
    other.close();
    copy(&elsewhere.dir.path().join("state"), &state);
    drop(control);
    assert_eq!(code(home.control(clock()).await.map(drop)), "store_went_back");
}

/// Whoever still has a file that was replaced knows nothing of the one in its place.
#[tokio::test]
async fn p05_whoever_has_a_replaced_file_moves_no_mark_and_loses_its_leases() {
    let home = restored().await;
    let (state, yesterday) = (home.dir.path().join("state"), home.dir.path().join("yesterday"));
    let opening = home.opening(clock());
    let accept = move || Control::accept_went_back(&opening, host("ann"), "it was restored".into());
    tokio::task::spawn_blocking(accept).await.expect("no panic").expect("accepted");
    let control = home.control(clock()).await.expect("the store");
    let lease =
        control.lease(Resource::Name("deploy".into())).length(Span::hours(1)).take().await.expect("held");
    let (beside, opening) = (home.dir.path().join("beside"), home.opening(clock()));
    // As a restore does it: by other files, under the same names.
    fs::rename(&state, &beside).expect("moved");
    copy(&yesterday, &state);
    let accept = move || Control::accept_went_back(&opening, host("ann"), "and again".into());
    tokio::task::spawn_blocking(accept).await.expect("no panic").expect("accepted");
    assert_eq!(code(control.mark()), "store_foreign");
    tokio::time::timeout(std::time::Duration::from_secs(60), lease.lost()).await.expect("at once");
    drop(lease);
    control.close();
    drop(control);
    home.control(clock()).await.expect("what was accepted is accepted");
}

#[tokio::test]
async fn the_mark_moves_while_the_store_is_used_so_that_a_crash_does_not_lose_it() {
    let home = Home::new();
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    pay(&control, "o", 5).execute(fine).await.expect("committed");
    let marks = home.dir.path().join("marks/onceseal/marks");
    let newest = control.store().read(|snapshot| snapshot.newest()).expect("readable");
    let late = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let texts = fs::read_dir(&marks)
            .into_iter()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.expect("an entry").path()).ok());
        if texts.into_iter().any(|text| text.contains(&format!("\"position\":\"{newest}\""))) {
            return;
        }
        assert!(std::time::Instant::now() < late, "no mark in {}", marks.display());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The lock of the mark in a home where there is one.
fn lock(home: &Home) -> std::path::PathBuf {
    let marks = fs::read_dir(home.dir.path().join("marks/onceseal/marks")).expect("marks");
    let mut names = marks.map(|entry| entry.expect("an entry").path());
    names.find(|path| path.extension().is_none()).expect("a mark").with_extension("lock")
}

/// Puts something in the place of the lock that nobody locks.
fn break_lock(lock: &Path) {
    fs::remove_file(lock).expect("removed");
    std::os::unix::fs::symlink("elsewhere", lock).expect("a link");
}

/// A store whose mark is at its newest entry, with the mark's lock.
async fn marked() -> (Home, Control, std::path::PathBuf) {
    let home = Home::new();
    let control = home.control(clock()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    control.mark().expect("moved");
    let lock = lock(&home);
    (home, control, lock)
}

#[tokio::test]
async fn p05_a_mark_that_cannot_be_written_is_told_with_how_far_it_is_behind() {
    let (home, control, lock) = marked().await;
    let state = control.mark_state().expect("readable").expect("on disk");
    assert_eq!((state.position, state.behind(), state.failure), (Some(state.newest), 0, None));
    break_lock(&lock);
    pay(&control, "o", 5).execute(fine).await.expect("committed");
    assert_eq!(code(control.mark()), "state_symlink");
    assert_eq!(control.mark_failure().expect("it failed").code, "state_symlink");
    // A handle that only reads, as another program has it, says so as well.
    let opening = home.opening(clock());
    let read = tokio::task::spawn_blocking(move || Control::reading(&opening)).await.expect("no panic");
    let reading = read.expect("readable").expect("there");
    for handle in [&control, &reading] {
        let now = handle.mark_state().expect("readable").expect("on disk");
        assert_eq!((now.position, now.newest), (state.position, state.newest + 4));
        assert_eq!((now.behind(), now.failure.map(|failure| failure.code)), (4, Some("state_symlink")));
    }
    reading.mark().expect("not its own to move");
    reading.close();
    assert_eq!(reading.mark_failure(), None, "it never tried");
    fs::remove_file(&lock).expect("removed");
    control.mark().expect("moved");
    assert_eq!(control.mark_failure(), None);
    assert_eq!(control.mark_state().expect("readable").expect("on disk").behind(), 0);
}

#[tokio::test]
async fn p05_a_mark_that_cannot_be_written_in_the_background_is_told_and_tried_again() {
    let (_home, control, lock) = marked().await;
    break_lock(&lock);
    pay(&control, "o", 5).execute(fine).await.expect("committed");
    until(|| control.mark_failure().is_some()).await;
    fs::remove_file(&lock).expect("removed");
    until(|| control.mark_failure().is_none()).await;
    assert_eq!(control.mark_state().expect("readable").expect("on disk").behind(), 0);
}

/// Lets the keeper's thread work until this is so.
async fn until(so: impl Fn() -> bool) {
    let late = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !so() {
        assert!(std::time::Instant::now() < late, "it is never so");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn p05_a_mark_that_cannot_be_written_on_closing_is_told() {
    let (_home, control, lock) = marked().await;
    pay(&control, "o", 5).execute(fine).await.expect("committed");
    break_lock(&lock);
    control.close();
    let failure = control.mark_failure().expect("it failed");
    assert!(failure.to_string().starts_with("state_symlink: "), "{failure}");
}

#[tokio::test]
async fn a_store_in_memory_has_no_mark() {
    let control = Control::memory(policy(POLICY), clock()).await.expect("a store");
    assert_eq!(control.mark_state().expect("readable"), None);
    control.mark().expect("nothing to do");
    assert_eq!(control.mark_failure(), None);
}
