//! The mark outside the state: what this account has seen committed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use onceseal_store::mark::{KnownTenant, Mark, MarkError, MarkFile};
use onceseal_store::place::Concessions;

use super::base::{Base, chmod, mode};

const NAME: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

fn known_tenant(
    base: &Base,
    setting: Option<&str>,
    state: Option<&str>,
    tenant: &str,
) -> Result<KnownTenant, MarkError> {
    let (setting, state) = (setting.map(OsStr::new), base.join(state.unwrap_or("state")));
    KnownTenant::find(&base.surroundings(), &Concessions::default(), setting, &state, tenant)
}

fn open(base: &Base, setting: Option<&str>, state: Option<&str>) -> Result<MarkFile, MarkError> {
    Ok(known_tenant(base, setting, state, "default")?.mark([0xcd; 16]))
}

fn default(base: &Base) -> (MarkFile, PathBuf) {
    (open(base, None, None).expect("safe"), base.join("xdg/onceseal/marks").join(NAME))
}

fn at(position: u64) -> Mark {
    Mark { position, hash: [position as u8; 32] }
}

fn code<T>(result: Result<T, MarkError>) -> &'static str {
    result.err().expect("a refusal").code()
}

#[test]
fn without_a_mark_nothing_is_known_and_nothing_is_made() {
    let base = Base::new();
    let (file, path) = default(&base);
    assert_eq!(file.read().expect("read"), None);
    assert!(!base.join("xdg/onceseal").exists());
    assert!(file.advance(&at(7)).expect("written"));
    assert_eq!(file.read().expect("read"), Some(at(7)));
    assert_eq!((mode(&path), mode(path.parent().expect("a parent"))), (0o600, 0o700));
    let hash = "07".repeat(32);
    let expected =
        format!("{{\"hash\":\"sha256:{hash}\",\"position\":\"7\",\"schema\":\"onceseal.mark/v1\"}}\n");
    assert_eq!(fs::read_to_string(path).expect("read"), expected);
}

#[test]
fn it_only_goes_forward_unless_somebody_accepts() {
    let base = Base::new();
    let (file, other) = (default(&base).0, default(&base).0);
    assert!(file.advance(&at(9)).expect("written"));
    assert!(!other.advance(&at(8)).expect("asked"), "another process was further");
    assert!(!other.advance(&Mark { hash: [0; 32], ..at(9) }).expect("asked"));
    assert_eq!(other.read().expect("read"), Some(at(9)));
    other.replace(&at(3)).expect("accepted");
    assert_eq!(file.read().expect("read"), Some(at(3)));
    assert!(file.advance(&at(u64::MAX)).expect("written"));
    assert_eq!(file.read().expect("read"), Some(at(u64::MAX)));
}

#[test]
fn many_at_once_leave_the_furthest_and_no_other_file() {
    let base = Base::new();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let base = &base;
            scope.spawn(move || {
                let (file, _) = default(base);
                for round in 0..50 {
                    file.advance(&at(4 * round + n + 1)).expect("written");
                    assert!(file.read().expect("never half a mark").is_some());
                }
            });
        }
    });
    let (file, path) = default(&base);
    assert_eq!(file.read().expect("read"), Some(at(200)));
    let names: Vec<_> = fs::read_dir(path.parent().expect("a parent")).expect("listed").collect();
    assert_eq!(names.len(), 4, "the mark, whose it is, and their locks: {names:?}");
}

#[test]
fn a_corrupt_mark_is_an_error_until_it_is_replaced() {
    let base = Base::new();
    let (file, path) = default(&base);
    file.advance(&at(7)).expect("written");
    let whole = fs::read_to_string(&path).expect("read");
    let wrong = [
        String::new(),
        whole[..20].to_owned(),
        whole.replace("07", "0G"),
        whole.replace("\"7\"", "\"-7\""),
        whole.replace("\"7\"", "7"),
        whole.replace("v1", "v2"),
        whole.replace("sha256:", ""),
        format!("{whole}{}", " ".repeat(5000)),
    ];
    for text in wrong {
        assert_ne!(text, whole);
        fs::write(&path, &text).expect("written");
        assert_eq!(code(file.read()), "mark_corrupt", "{text}");
        assert_eq!(code(file.advance(&at(8))), "mark_corrupt", "it is not written over: {text}");
    }
    file.replace(&at(8)).expect("accepted");
    assert_eq!(file.read().expect("read"), Some(at(8)));
}

#[test]
fn p05_which_tenant_was_seen_in_which_directory_is_remembered_until_somebody_accepts_another() {
    let base = Base::new();
    let here = |state, name| known_tenant(&base, None, Some(state), name).expect("safe");
    let known = |state, name| here(state, name).id().expect("read");
    assert_eq!(known("state", "default"), None);
    here("state", "default").mark([1; 16]).advance(&at(1)).expect("written");
    assert_eq!(known("state", "default"), Some([1; 16]));
    assert_eq!((known("state", "other"), known("elsewhere", "default")), (None, None));
    here("state", "default").mark([2; 16]).advance(&at(9)).expect("written");
    assert_eq!(known("state", "default"), Some([1; 16]), "using another does not make it the one");
    here("state", "default").mark([2; 16]).replace(&at(9)).expect("accepted");
    assert_eq!(known("state", "default"), Some([2; 16]));
    let names = fs::read_dir(base.join("xdg/onceseal/marks")).expect("listed");
    let path = names.map(|entry| entry.expect("an entry").path());
    let path = path.into_iter().find(|path| path.extension().is_some_and(|e| e == "tenant")).expect("it");
    assert_eq!(mode(&path), 0o600);
    for text in ["", "{}", r#"{"schema":"onceseal.mark.tenant/v1","tenant":"02"}"#] {
        fs::write(&path, text).expect("written");
        assert_eq!(code(here("state", "default").id()), "mark_corrupt", "{text}");
        assert_eq!(code(here("state", "default").mark([2; 16]).advance(&at(10))), "mark_corrupt", "{text}");
    }
}

#[test]
fn it_is_never_inside_the_state_directory() {
    let base = Base::new();
    let inside = base.join("xdg/onceseal/marks");
    for state in ["xdg/onceseal", "xdg/onceseal/marks", "xdg"] {
        assert_eq!(code(open(&base, None, Some(state))), "mark_inside_state", "{state}");
    }
    open(&base, None, Some("xdg/onceseal/mark")).expect("a longer name is another directory");
    let aside = base.join("aside");
    let aside = aside.to_str().expect("text");
    open(&base, Some(aside), Some("xdg/onceseal")).expect("outside").advance(&at(1)).expect("written");
    assert_eq!(mode(&base.join("aside")), 0o700);
    assert!(base.join("aside").join(NAME).exists() && !inside.exists());
    assert_eq!(code(open(&base, Some(&format!("{aside}/deeper")), Some("aside"))), "mark_inside_state");
}

#[test]
fn its_directory_and_files_are_judged_as_the_state_is() {
    let base = Base::new();
    let (file, path) = default(&base);
    file.advance(&at(7)).expect("written");
    chmod(&path, 0o644);
    assert_eq!(code(file.read()), "state_not_private");
    fs::rename(&path, base.join("elsewhere")).expect("moved");
    symlink(base.join("elsewhere"), &path).expect("a link");
    assert_eq!(code(file.read()), "state_symlink");
    chmod(path.parent().expect("a parent"), 0o755);
    assert_eq!(code(open(&base, None, None)), "state_not_private");
    for setting in ["", "marks"] {
        let error = open(&base, Some(setting), None).expect_err("no absolute path");
        assert_eq!(error.code(), "state_setting");
        assert!(error.to_string().starts_with("`mark` "), "{error}");
    }
    assert_eq!(code(open(&base, Some("/nonexistent/marks"), None)), "state_parent_missing");
}
