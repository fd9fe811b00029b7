//! Where state lives, and every reason to refuse it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use onceseal_store::place::{Concessions, DATABASE, Database, Place, ProjectId, Surroundings, init};

use super::base::{Base, chmod, find, mode, refusal};

const ID: &str = "abababababababababababababababab";

/// The base with its project initialised.
fn initialised() -> Base {
    let base = Base::new();
    init(&base.surroundings(), &Concessions::default(), ProjectId::new([0xab; 16])).expect("a project");
    base
}

/// Surroundings with the state directory set to a path below the base.
fn explicit(base: &Base, state: &str) -> Surroundings {
    Surroundings { state: Some(base.join(state).into()), ..base.surroundings() }
}

/// Surroundings whose explicit state directory `s` is made.
fn prepared(base: &Base) -> Surroundings {
    let surroundings = explicit(base, "s");
    find(&surroundings).expect("safe").prepare().expect("made");
    surroundings
}

#[test]
fn the_default_is_a_directory_of_the_project_in_the_state_home() {
    let base = initialised();
    let place = find(&base.surroundings()).expect("safe");
    assert_eq!(place.directory(), base.join("xdg/onceseal").join(ID));
    assert_eq!(place.database(), base.join("xdg/onceseal").join(ID).join(DATABASE));
    for ignored in [None, Some(OsString::new()), Some(OsString::from("rel/state"))] {
        let place = find(&Surroundings { xdg_state_home: ignored, ..base.surroundings() }).expect("safe");
        assert_eq!(place.directory(), base.join("home/.local/state/onceseal").join(ID));
    }
}

#[test]
fn the_default_is_made_with_its_parents_but_never_a_home() {
    let base = initialised();
    let deep = Surroundings { xdg_state_home: Some(base.join("new/state").into()), ..base.surroundings() };
    find(&deep).expect("safe").prepare().expect("made");
    assert_eq!(mode(&base.join("new")), 0o700);
    let none = Surroundings { xdg_state_home: None, ..base.surroundings() };
    for home in [None, Some(OsString::new()), Some(OsString::from("home"))] {
        assert_eq!(refusal(find(&Surroundings { home, ..none.clone() })).0, "state_home_missing");
    }
    let gone = Surroundings { home: Some(base.join("gone").into()), ..none };
    assert_eq!(refusal(find(&gone)).0, "state_home_missing");
    assert!(!base.join("gone").exists());
}

#[test]
fn a_state_directory_that_is_set_must_be_an_absolute_path_with_a_name() {
    let base = Base::new();
    for (value, reason) in [
        ("", "blank"),
        (" \t\n", "blank"),
        ("state", "absolute"),
        ("./state", "absolute"),
        ("~/state", "absolute"),
        ("/", "name"),
        ("/tmp/..", "name"),
    ] {
        let error =
            find(&Surroundings { state: Some(value.into()), ..base.surroundings() }).expect_err(value);
        assert_eq!(error.code(), "state_setting");
        let text = error.to_string();
        assert!(text.starts_with("ONCESEAL_STATE ") && text.contains(reason), "{value:?}: {text}");
    }
}

#[test]
fn a_state_directory_that_is_set_is_made_but_its_parent_never() {
    let base = Base::new();
    assert_eq!(refusal(find(&explicit(&base, "none/s"))), ("state_parent_missing", base.join("none")));
    prepared(&base);
    assert_eq!(mode(&base.join("s")), 0o700);
    assert!(!base.join("none").exists());
}

#[test]
fn looking_makes_nothing_and_preparing_makes_private_things() {
    let base = initialised();
    fs::remove_dir_all(base.join("xdg/onceseal")).expect("removed");
    let place = find(&base.surroundings()).expect("safe");
    assert_eq!(place.database_state().expect("looked"), Database::Missing);
    assert!(!base.join("xdg/onceseal").exists());
    place.prepare().expect("made");
    assert_eq!(place.database_state().expect("looked"), Database::New);
    for (path, expected) in [
        (place.directory().parent().expect("a parent"), 0o700),
        (place.directory(), 0o700),
        (place.database(), 0o600),
        (&base.join("xdg/onceseal/roots.json"), 0o600),
        (&base.join("proj/.onceseal"), 0o700),
        (&base.join("proj/.onceseal/project.json"), 0o600),
    ] {
        assert_eq!(mode(path), expected, "{path:?}");
    }
    fs::write(place.database(), "content").expect("written");
    place.prepare().expect("there already");
    assert_eq!(place.database_state().expect("looked"), Database::Present);
    assert_eq!(fs::read(place.database()).expect("read"), b"content");
}

/// Runs only as the other half of the next test, in a process whose umask
/// hides nothing.
#[test]
fn child_with_open_umask() {
    let Some(base) = std::env::var_os("BASE_OF_OPEN_UMASK") else { return };
    let base = PathBuf::from(base);
    rustix::process::umask(rustix::fs::Mode::empty());
    let surroundings = Surroundings {
        state: None,
        xdg_state_home: Some(base.join("xdg").into()),
        home: None,
        ..Surroundings::of_process(base.join("proj"))
    };
    init(&surroundings, &Concessions::default(), ProjectId::new([0xab; 16])).expect("a project");
    find(&surroundings).expect("safe").prepare().expect("made");
}

#[test]
fn no_umask_makes_anything_public() {
    let base = Base::new();
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "location::child_with_open_umask"])
        .env("BASE_OF_OPEN_UMASK", &base.path)
        .output()
        .expect("run");
    assert!(child.status.success(), "{child:?}");
    let mut ahead = vec![base.join("xdg/onceseal"), base.join("proj/.onceseal")];
    let mut seen = 0;
    while let Some(path) = ahead.pop() {
        let directory = path.is_dir();
        assert_eq!(mode(&path), if directory { 0o700 } else { 0o600 }, "{path:?}");
        if directory {
            ahead.extend(fs::read_dir(&path).expect("listed").map(|entry| entry.expect("an entry").path()));
        }
        seen += 1;
    }
    assert_eq!(seen, 7, "two directories and a state directory, roots and lock, database and project");
}

#[test]
#[cfg(target_os = "linux")]
fn modes_are_never_changed_afterwards_and_the_database_is_opened_once_in_its_life() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use std::mem::MaybeUninit;

    let base = Base::new();
    fs::create_dir(base.join("s")).expect("a directory");
    chmod(&base.join("s"), 0o700);
    let watch = inotify::init(CreateFlags::NONBLOCK).expect("inotify");
    inotify::add_watch(&watch, base.join("s"), WatchFlags::ALL_EVENTS).expect("a watch");
    // What happened since it was last asked, to the database and to all files.
    let happened = || {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        let (mut database, mut all) = (Vec::new(), ReadFlags::empty());
        while let Ok(event) = reader.next() {
            all |= event.events();
            if event.file_name().is_some_and(|name| name.to_bytes() == DATABASE.as_bytes()) {
                database.push(event.events());
            }
        }
        (database, all)
    };
    let place = find(&explicit(&base, "s")).expect("safe");
    place.prepare().expect("made");
    let (database, all) = happened();
    assert_eq!(database, [ReadFlags::CREATE, ReadFlags::OPEN, ReadFlags::CLOSE_WRITE]);
    assert!(!all.contains(ReadFlags::ATTRIB), "no mode was changed");
    place.prepare().expect("there");
    find(&explicit(&base, "s")).expect("safe").prepare().expect("there");
    assert_eq!(happened().0, [], "never opened again");
}

#[test]
fn what_others_can_read_is_refused_with_the_command_that_helps() {
    for (name, wrong, right) in [
        ("s", 0o750, 0o700),
        ("s", 0o705, 0o700),
        ("s/onceseal.db", 0o640, 0o600),
        ("s/onceseal.db", 0o604, 0o600),
        ("s/onceseal.db-wal", 0o660, 0o600),
        ("s/onceseal.db-shm", 0o644, 0o600),
        ("s/onceseal.db-journal", 0o644, 0o600),
    ] {
        let base = Base::new();
        let surroundings = prepared(&base);
        let path = base.join(name);
        if !path.exists() {
            fs::write(&path, "").expect("a file");
        }
        chmod(&path, wrong);
        let error = find(&surroundings).expect_err(name);
        assert_eq!((error.code(), error.path()), ("state_not_private", Some(path.as_path())));
        assert!(!error.to_string().contains(base.path.to_str().expect("text")), "{error}");
        let command = error.command().expect("a command");
        assert!(Command::new("sh").args(["-c", &command]).status().expect("run").success());
        assert_eq!(mode(&path), right, "{command}");
        find(&surroundings).expect("safe after the command");
    }
}

#[test]
fn a_symbolic_link_below_the_base_is_refused_wherever_it_points() {
    for name in ["onceseal", &format!("onceseal/{ID}"), &format!("onceseal/{ID}/{DATABASE}")] {
        let base = initialised();
        find(&base.surroundings()).expect("safe").prepare().expect("made");
        let path = base.join("xdg").join(name);
        let real = base.join("moved");
        fs::rename(&path, &real).expect("moved");
        symlink(&real, &path).expect("a link");
        assert_eq!(refusal(find(&base.surroundings())), ("state_symlink", path.clone()));
        fs::remove_file(&path).expect("removed");
        symlink(base.join("nowhere"), &path).expect("a link");
        assert_eq!(refusal(find(&base.surroundings())), ("state_symlink", path));
        assert!(!base.join("nowhere").exists());
    }
    let base = Base::new();
    let surroundings = prepared(&base);
    symlink(base.join("s"), base.join("link")).expect("a link");
    assert_eq!(refusal(find(&explicit(&base, "link"))), ("state_symlink", base.join("link")));
    let wal = base.join("s/onceseal.db-wal");
    symlink(base.join("elsewhere"), &wal).expect("a link");
    assert_eq!(refusal(find(&surroundings)), ("state_symlink", wal));
}

#[test]
fn a_link_above_the_base_is_resolved_once() {
    let base = initialised();
    symlink(base.join("xdg"), base.join("alias")).expect("a link");
    let aliased = Surroundings { xdg_state_home: Some(base.join("alias").into()), ..base.surroundings() };
    assert_eq!(find(&aliased).expect("safe").directory(), base.join("xdg/onceseal").join(ID));
}

#[test]
fn what_is_no_directory_or_no_file_is_refused() {
    type Make = fn(&Path);
    let kinds: [Make; 3] = [
        |path| fs::create_dir(path).expect("a directory"),
        |path| {
            assert!(Command::new("mkfifo").arg(path).status().expect("run").success());
        },
        |path| drop(UnixListener::bind(path).expect("a socket")),
    ];
    for make in kinds {
        let base = Base::new();
        let surroundings = prepared(&base);
        let path = base.join("s").join(DATABASE);
        fs::remove_file(&path).expect("removed");
        make(&path);
        chmod(&path, 0o700);
        assert_eq!(refusal(find(&surroundings)), ("state_wrong_kind", path));
    }
    let base = Base::new();
    fs::write(base.join("s"), "").expect("a file");
    assert_eq!(refusal(find(&explicit(&base, "s"))), ("state_wrong_kind", base.join("s")));
    assert_eq!(refusal(find(&explicit(&base, "s/deeper"))), ("state_wrong_kind", base.join("s")));
}

#[test]
fn a_database_with_two_names_is_refused() {
    let base = Base::new();
    let surroundings = prepared(&base);
    let database = base.join("s").join(DATABASE);
    fs::hard_link(&database, base.join("second")).expect("a link");
    assert_eq!(refusal(find(&surroundings)), ("state_hard_link", database));
}

/// Giving a file away needs root; the rule itself is tested for every account
/// beside it.
#[test]
fn what_another_account_owns_is_refused() {
    let stranger = rustix::fs::Uid::from_raw(54_321);
    let base = Base::new();
    let surroundings = prepared(&base);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for name in ["s/onceseal.db", "s"] {
        rustix::fs::chown(base.join(name), Some(stranger), None).expect("given away");
        assert_eq!(refusal(find(&surroundings)), ("state_foreign_owner", base.join(name)));
    }
    symlink(base.join("xdg"), base.join("alias")).expect("a link");
    std::os::unix::fs::lchown(base.join("alias"), Some(54_321), None).expect("given away");
    let aliased = Surroundings { state: Some(base.join("alias/s").into()), ..surroundings.clone() };
    assert_eq!(refusal(find(&aliased)), ("state_ancestor_owner", base.join("alias")));
    rustix::fs::chown(&base.path, Some(stranger), None).expect("given away");
    assert_eq!(refusal(find(&surroundings)), ("state_ancestor_owner", base.path.clone()));
    // To the stranger, these are its own; root's above are root's.
    let theirs = Surroundings { uid: 54_321, ..surroundings };
    assert_eq!(find(&theirs).expect("safe for them").database_state().expect("looked"), Database::New);
}

#[test]
fn a_directory_above_that_others_can_write_is_refused_unless_sticky_or_trusted() {
    let base = initialised();
    let xdg = base.join("xdg");
    let stranger = Surroundings { gid: base.surroundings().gid + 1, ..base.surroundings() };
    chmod(&xdg, 0o757);
    let error = find(&base.surroundings()).expect_err("writable");
    assert_eq!((error.code(), error.path()), ("state_ancestor_writable", Some(xdg.as_path())));
    assert!(error.command().expect("a command").starts_with("chmod o-w "));
    chmod(&xdg, 0o1777);
    find(&base.surroundings()).expect("sticky");
    chmod(&xdg, 0o775);
    find(&base.surroundings()).expect("writable by the process's own group");
    assert_eq!(refusal(find(&stranger)), ("state_ancestor_group", xdg));
    let trusting = Concessions { trust_group: Some(base.surroundings().gid), ..Concessions::default() };
    Place::find(&stranger, &trusting).expect("writable by a trusted group");
}

#[test]
fn state_inside_the_project_is_refused_before_anything_is_made() {
    let base = initialised();
    fs::create_dir(base.join("proj-other")).expect("a directory");
    fs::create_dir(base.join("proj/sub")).expect("a directory");
    symlink(base.join("proj"), base.join("alias")).expect("a link");
    for inside in ["proj/state", "proj/..state", "proj/...d", "proj/sub/state", "alias/state", "proj"] {
        chmod(&base.join("proj"), 0o700);
        let state = explicit(&base, inside);
        assert_eq!(refusal(find(&state)).0, "state_inside_project", "{inside}");
        let below = Surroundings { working_directory: base.join("proj/sub"), ..state };
        assert_eq!(refusal(find(&below)).0, "state_inside_project", "{inside} from below");
    }
    let xdg = Surroundings { xdg_state_home: Some(base.join("proj/xdg").into()), ..base.surroundings() };
    assert_eq!(refusal(find(&xdg)).0, "state_inside_project");
    let names: Vec<_> = fs::read_dir(base.join("proj")).expect("listed").collect();
    assert_eq!(names.len(), 2, "only .onceseal and sub: {names:?}");
    find(&explicit(&base, "proj-other/state")).expect("a longer name is another directory");
    let conceded = Concessions { inside_project: true, ..Concessions::default() };
    Place::find(&explicit(&base, "proj/state"), &conceded).expect("conceded").prepare().expect("made");
}

#[test]
fn the_default_needs_a_project_and_an_explicit_directory_does_not() {
    let base = Base::new();
    assert_eq!(refusal(find(&base.surroundings())), ("project_missing", base.join("proj")));
    assert_eq!(find(&explicit(&base, "s")).expect("safe").project(), None);
}

#[test]
fn a_working_directory_that_is_gone_or_no_directory_is_refused() {
    let base = Base::new();
    fs::write(base.join("file"), "").expect("a file");
    for name in ["file", "gone"] {
        assert_eq!(refusal(find(&base.working_in(name))), ("project_unavailable", base.join(name)));
    }
}
