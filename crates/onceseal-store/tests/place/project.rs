//! Which project a directory is, when it is moved, copied, cloned or loses its
//! file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use onceseal_store::place::{
    Concessions, GitExclude, Initialised, Origin, PlaceError, ProjectId, Surroundings, adopt, init, renew,
};

use super::base::{Base, chmod, find, mode, refusal};

const FILE: &str = ".onceseal/project.json";

fn id(n: u8) -> ProjectId {
    ProjectId::new([n; 16])
}

fn init_in(base: &Base, directory: &str, fresh: u8) -> Result<Initialised, PlaceError> {
    init(&base.working_in(directory), &Concessions::default(), id(fresh))
}

/// The id of the project that a directory is in.
fn id_in(base: &Base, directory: &str) -> Result<ProjectId, PlaceError> {
    let place = find(&base.working_in(directory))?;
    place.prepare()?;
    Ok(place.project().expect("a project").id())
}

fn run(program: &str, args: &[&str], directory: &Path) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .expect("run");
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn git(args: &[&str], directory: &Path) -> String {
    let identity =
        ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always"];
    run("git", &[&identity, args].concat(), directory)
}

/// Copies a directory as a person would, with everything in it.
fn copy(base: &Base, from: &str, to: &str) {
    run("cp", &["-a", from, to], &base.path);
}

#[test]
fn a_project_is_made_once_and_found_from_below() {
    let base = Base::new();
    fs::create_dir_all(base.join("proj/a/b")).expect("directories");
    let made = init_in(&base, "proj", 1).expect("made");
    assert_eq!((made.origin, made.git), (Origin::Created, GitExclude::NoRepository));
    assert_eq!((made.project.id(), made.project.root()), (id(1), base.join("proj").as_path()));
    assert_eq!(init_in(&base, "proj", 2).expect("there").origin, Origin::Found);
    assert_eq!(id_in(&base, "proj/a/b").expect("found"), id(1));
    let names: Vec<_> = fs::read_dir(base.join("proj/.onceseal")).expect("listed").collect();
    assert_eq!(names.len(), 1, "nothing else of ours: {names:?}");
}

#[test]
fn the_nearest_project_counts() {
    let base = Base::new();
    fs::create_dir_all(base.join("proj/inner/deep")).expect("directories");
    init_in(&base, "proj", 1).expect("made");
    init_in(&base, "proj/inner", 2).expect("made");
    assert_eq!(id_in(&base, "proj/inner/deep").expect("found"), id(2));
    assert_eq!(id_in(&base, "proj").expect("found"), id(1));
}

#[test]
fn a_project_made_inside_another_is_told_of_it_and_of_no_other_directory() {
    let base = Base::new();
    fs::create_dir_all(base.join("proj/a/inner/deep")).expect("directories");
    assert_eq!(init_in(&base, "proj", 1).expect("made").outer, None);
    let made = init_in(&base, "proj/a/inner", 2).expect("made");
    assert_eq!((made.project.id(), made.outer), (id(2), Some(base.join("proj"))));
    assert_eq!(init_in(&base, "proj/a/inner/deep", 3).expect("made").outer, Some(base.join("proj/a/inner")));
    // Without its file the outer one is known by what the state remembers, and
    // with a file that cannot be read it is one all the same.
    fs::remove_dir_all(base.join("proj/.onceseal")).expect("removed");
    assert_eq!(init_in(&base, "proj/a", 4).expect("made").outer, Some(base.join("proj")));
    fs::create_dir_all(base.join("other/inner")).expect("directories");
    fs::create_dir(base.join("other/.onceseal")).expect("a directory");
    fs::write(base.join("other").join(FILE), "{}").expect("written");
    assert_eq!(init_in(&base, "other/inner", 5).expect("made").outer, Some(base.join("other")));
}

#[test]
fn threads_that_make_one_project_at_once_agree_on_its_id() {
    let base = Base::new();
    let ids: Vec<ProjectId> = std::thread::scope(|scope| {
        let start = |n| {
            scope.spawn({
                let base = &base;
                move || init_in(base, "proj", n).expect("made")
            })
        };
        let threads: Vec<_> = (1..=8).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("ended").project.id()).collect()
    });
    assert_eq!(ids, [id_in(&base, "proj").expect("found"); 8]);
}

#[test]
fn a_moved_project_keeps_its_id() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    fs::rename(base.join("proj"), base.join("moved")).expect("moved");
    assert_eq!(id_in(&base, "moved").expect("moved"), id(1));
    // Another directory at the old path is another project.
    fs::create_dir(base.join("proj")).expect("a directory");
    assert_eq!(refusal(find(&base.surroundings())).0, "project_missing");
    init_in(&base, "proj", 2).expect("made");
    assert_eq!(id_in(&base, "moved").expect("found"), id(1));
}

#[test]
fn a_project_copied_and_then_removed_was_moved() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    copy(&base, "proj", "disk");
    fs::remove_dir_all(base.join("proj")).expect("removed");
    assert_eq!(id_in(&base, "disk").expect("moved"), id(1));
    // Restored from a backup: the same path, another inode.
    copy(&base, "disk", "backup");
    fs::rename(base.join("disk"), base.join("broken")).expect("moved");
    fs::rename(base.join("backup"), base.join("disk")).expect("moved");
    fs::remove_dir_all(base.join("broken")).expect("removed");
    assert_eq!(id_in(&base, "disk").expect("restored"), id(1));
}

#[test]
fn a_project_that_left_is_not_mistaken_for_the_one_that_took_its_path() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    init_in(&base, "home", 2).expect("made");
    copy(&base, "proj", "disk");
    fs::remove_dir_all(base.join("proj")).expect("removed");
    fs::rename(base.join("home"), base.join("proj")).expect("moved");
    assert_eq!(id_in(&base, "disk").expect("moved"), id(1));
    assert_eq!(id_in(&base, "proj").expect("moved"), id(2));
}

#[test]
fn a_copy_is_refused_until_it_is_adopted_or_renewed() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    copy(&base, "proj", "copy");
    let refused = ("project_copied", base.join("proj"));
    assert_eq!(refusal(find(&base.working_in("copy"))), refused);
    assert_eq!(refusal(init_in(&base, "copy", 2)), refused);
    assert_eq!(id_in(&base, "proj").expect("the original"), id(1));

    adopt(&base.working_in("copy"), &Concessions::default()).expect("adopted");
    assert_eq!(id_in(&base, "copy").expect("adopted"), id(1));
    assert_eq!(refusal(find(&base.surroundings())), ("project_copied", base.join("copy")));

    let own = renew(&base.surroundings(), &Concessions::default(), id(3), false).expect("renewed");
    assert_eq!((own.id(), own.root()), (id(3), base.join("proj").as_path()));
    assert_eq!(id_in(&base, "proj").expect("its own"), id(3));
    assert_eq!(id_in(&base, "copy").expect("adopted"), id(1));
}

#[test]
fn a_copy_is_found_although_the_original_lost_its_file_or_cannot_be_looked_at() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    copy(&base, "proj", "copy");
    fs::remove_dir_all(base.join("proj/.onceseal")).expect("removed");
    assert_eq!(refusal(find(&base.working_in("copy"))).0, "project_copied");
    fs::create_dir(base.join("proj/.onceseal")).expect("a directory");
    fs::write(base.join("proj").join(FILE), "{").expect("written");
    assert_eq!(refusal(find(&base.working_in("copy"))).0, "project_copied");
}

#[test]
fn a_copy_meets_the_check_again_where_it_is_recorded() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    fs::rename(base.join("proj"), base.join("away")).expect("moved");
    copy(&base, "away", "copy");
    let place = find(&base.working_in("copy")).expect("the original is gone");
    fs::rename(base.join("away"), base.join("proj")).expect("moved");
    assert_eq!(refusal(place.prepare()), ("project_copied", base.join("proj")));
}

#[test]
fn the_original_that_was_moved_stays_the_project_although_a_copy_took_its_path() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    fs::rename(base.join("proj"), base.join("moved")).expect("moved");
    copy(&base, "moved", "proj");
    assert_eq!(id_in(&base, "moved").expect("the same directory"), id(1));
    assert_eq!(refusal(find(&base.surroundings())), ("project_copied", base.join("moved")));
}

#[test]
fn another_name_of_the_same_directory_is_no_copy() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    symlink(base.join("proj"), base.join("alias")).expect("a link");
    assert_eq!(id_in(&base, "alias").expect("the same"), id(1));
    assert_eq!(id_in(&base, "proj").expect("the same"), id(1));
}

#[test]
fn a_missing_file_is_written_again_where_the_state_knows_the_directory() {
    let base = Base::new();
    fs::create_dir(base.join("proj/sub")).expect("a directory");
    init_in(&base, "proj", 1).expect("made");
    let text = fs::read(base.join("proj").join(FILE)).expect("read");
    fs::remove_dir_all(base.join("proj/.onceseal")).expect("removed");
    let place = find(&base.working_in("proj/sub")).expect("remembered");
    assert_eq!(place.project().expect("a project").id(), id(1));
    assert!(!base.join("proj").join(FILE).exists(), "looking writes nothing");
    place.prepare().expect("written again");
    assert_eq!(fs::read(base.join("proj").join(FILE)).expect("read"), text);
    assert_eq!(mode(&base.join("proj").join(FILE)), 0o600);
    fs::remove_dir_all(base.join("proj/.onceseal")).expect("removed");
    assert_eq!(init_in(&base, "proj", 2).expect("restored").origin, Origin::Restored);
    assert_eq!(fs::read(base.join("proj").join(FILE)).expect("read"), text);
}

#[test]
fn the_same_path_in_another_directory_is_not_remembered() {
    let base = Base::new();
    init_in(&base, "proj", 1).expect("made");
    fs::rename(base.join("proj"), base.join("old")).expect("moved");
    fs::remove_dir_all(base.join("old/.onceseal")).expect("removed");
    fs::create_dir(base.join("proj")).expect("a directory");
    assert_eq!(refusal(find(&base.surroundings())).0, "project_missing");
    // And the old directory is at another path.
    assert_eq!(refusal(find(&base.working_in("old"))).0, "project_missing");
}

#[test]
fn a_refused_state_leaves_the_project_untouched() {
    let base = Base::new();
    git(&["init", "-q"], &base.join("proj"));
    let before = fs::read(base.join("proj/.git/info/exclude")).expect("read");
    chmod(&base.join("xdg"), 0o777);
    assert_eq!(refusal(init_in(&base, "proj", 1)).0, "state_ancestor_writable");
    chmod(&base.join("xdg"), 0o755);
    let inside = Surroundings { xdg_state_home: Some(base.join("proj/x").into()), ..base.surroundings() };
    assert_eq!(refusal(init(&inside, &Concessions::default(), id(1))).0, "state_inside_project");
    assert!(!base.join("proj/.onceseal").exists() && !base.join("proj/x").exists());
    assert_eq!(fs::read(base.join("proj/.git/info/exclude")).expect("read"), before);
    for outside in [
        adopt(&base.surroundings(), &Concessions::default()),
        renew(&base.surroundings(), &Concessions::default(), id(1), false),
    ] {
        assert_eq!(refusal(outside).0, "project_missing");
    }
}

#[test]
fn git_ignores_the_project_file_and_clones_and_worktrees_get_an_id_of_their_own() {
    let base = Base::new();
    let proj = base.join("proj");
    git(&["init", "-q"], &proj);
    fs::create_dir(proj.join("sub")).expect("a directory");
    fs::write(proj.join("sub/file"), "x").expect("a file");
    git(&["add", "."], &proj);
    git(&["commit", "-qm", "c"], &proj);
    git(&["worktree", "add", "-q", "../tree"], &proj);
    // The worktree's line goes where all worktrees read it.
    for (n, name, line) in [
        (1, "tree", GitExclude::Added),
        (2, "proj", GitExclude::Already),
        (3, "proj/sub", GitExclude::Already),
    ] {
        let made = init_in(&base, name, n).expect("made");
        assert_eq!((made.project.id(), made.origin, made.git), (id(n), Origin::Created, line));
        assert_eq!(git(&["status", "--porcelain"], &base.join(name)), "");
    }
    assert_eq!(git(&["check-ignore", FILE], &proj), format!("{FILE}\n"));

    git(&["clone", "-q", "proj", "clone"], &base.path);
    assert_eq!(refusal(find(&base.working_in("clone"))).0, "project_missing");
    let made = init_in(&base, "clone", 4).expect("made");
    assert_eq!((made.project.id(), made.git), (id(4), GitExclude::Added));
    assert_eq!(git(&["status", "--porcelain"], &base.join("clone")), "");
    assert_eq!(id_in(&base, "proj").expect("found"), id(2));
}

#[test]
fn git_ignores_the_project_file_in_submodules_and_without_an_info_directory() {
    let base = Base::new();
    for name in ["proj", "lib"] {
        fs::create_dir_all(base.join(name)).expect("a directory");
        git(&["init", "-q", "--template="], &base.join(name));
        git(&["commit", "-q", "--allow-empty", "-m", "c"], &base.join(name));
    }
    git(&["submodule", "--quiet", "add", "../lib", "lib"], &base.join("proj"));
    git(&["commit", "-qm", "c"], &base.join("proj"));
    assert_eq!(init_in(&base, "proj/lib", 1).expect("made").git, GitExclude::Added);
    assert_eq!(init_in(&base, "proj", 2).expect("made").git, GitExclude::Added);
    assert_eq!(git(&["status", "--porcelain"], &base.join("proj/lib")), "");
    assert_eq!(git(&["status", "--porcelain"], &base.join("proj")), "");
}
