//! Where each known project was last seen: `roots.json` in the state root.
//!
//! Invariant: an id has one path and a path one id. The file is written only
//! under the lock beside it, and replaced whole.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onceseal_core::json::{Object, Value};

use super::error::{PlaceError, PlaceErrorKind, io_at};
use super::judge::Account;
use super::private::{self, Content, Durability};
use super::project::{self, ProjectId};
use super::record;

const SCHEMA: &str = "onceseal.roots/v1";
const FILE: &str = "roots.json";
const LOCK: &str = "roots.lock";
/// Some thousands of projects.
const FILE_BYTES_MAX: usize = 1 << 20;
/// From here on, paths that are gone are forgotten. A project that comes back
/// is recorded anew, by the id that it carries.
const FORGET_ABOVE: usize = 1000;

/// A directory, and what tells it from another at the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Seen {
    /// The directory that stands at a real path now.
    pub(crate) fn at(path: &Path) -> Result<Seen, PlaceError> {
        let found = fs::metadata(path).map_err(io_at("look at the project", path))?;
        Ok(Seen { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    fn is_same_directory(&self, other: &Seen) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the project `id`, last seen here, lives here still. What cannot
    /// be looked at counts as living.
    fn is_home_of(&self, id: ProjectId) -> bool {
        let now = match fs::metadata(&self.path) {
            Ok(found) if !found.is_dir() => return false,
            Ok(found) => Seen { path: PathBuf::new(), device: found.dev(), inode: found.ino() },
            Err(error) => return !is_gone(&error),
        };
        match project::read(&self.path) {
            Ok(Some(found)) => found == id,
            Ok(None) => now.is_same_directory(self),
            Err(_) => true,
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// All known projects.
#[derive(Debug, Default)]
pub(crate) struct Roots(BTreeMap<ProjectId, Seen>);

impl Roots {
    /// What is recorded in this state root; nothing if there is no record.
    pub(crate) fn load(state_root: &Path, account: &Account) -> Result<Roots, PlaceError> {
        let path = state_root.join(FILE);
        account.owns_file(&path)?;
        let unreadable = |reason| PlaceError::at(&path, PlaceErrorKind::RootsUnreadable(reason));
        match private::read_file(&path, FILE_BYTES_MAX)? {
            Content::Missing => Ok(Roots::default()),
            Content::TooLong => Err(unreadable("is too long")),
            Content::Whole(bytes) => Roots::parse(&bytes).map_err(unreadable),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Roots, &'static str> {
        let object = record::read(bytes, SCHEMA, usize::MAX)?;
        let roots = object.get("roots").and_then(Value::as_object).ok_or("has no list of projects")?;
        let entry = |(id, seen): (&str, &Value)| Some((ProjectId::parse(id)?, Seen::parse(seen)?));
        roots.iter().map(entry).collect::<Option<_>>().map(Roots).ok_or("has an entry that cannot be read")
    }

    fn save(&self, state_root: &Path) -> Result<(), PlaceError> {
        let mut roots = Object::new();
        for (id, seen) in &self.0 {
            roots.insert(id.to_string(), seen.to_value());
        }
        let mut object = Object::new();
        object.insert("roots", roots);
        let bytes = record::write(object, SCHEMA);
        let path = state_root.join(FILE);
        if bytes.len() > FILE_BYTES_MAX {
            return Err(PlaceError::at(path, PlaceErrorKind::RootsUnreadable("would get too long")));
        }
        private::replace_file(&path, &bytes, Durability::Synced)
    }

    /// The project last seen as exactly this directory.
    pub(crate) fn known_as(&self, here: &Seen) -> Option<ProjectId> {
        self.0.iter().find(|(_, seen)| *seen == here).map(|(id, _)| *id)
    }

    /// Refuses a project that lives on at the path where it was last seen,
    /// unless that is `here` under another name.
    pub(crate) fn refuse_copy(&self, id: ProjectId, here: &Seen) -> Result<(), PlaceError> {
        match self.0.get(&id) {
            Some(seen) if seen.path != here.path && !seen.is_same_directory(here) && seen.is_home_of(id) => {
                Err(PlaceError::at(&seen.path, PlaceErrorKind::ProjectCopied))
            }
            _ => Ok(()),
        }
    }

    /// Records that the project is here, and nothing else is.
    fn remember(&mut self, id: ProjectId, here: Seen) {
        self.0.retain(|_, seen| seen.path != here.path);
        if self.0.len() >= FORGET_ABOVE {
            self.0.retain(|_, seen| !matches!(fs::metadata(&seen.path), Err(error) if is_gone(&error)));
        }
        self.0.insert(id, here);
    }
}

/// The record under its lock, which is held until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedRoots {
    roots: Roots,
    state_root: PathBuf,
    _lock: File,
}

impl LockedRoots {
    pub(crate) fn open(state_root: &Path, account: &Account) -> Result<LockedRoots, PlaceError> {
        let lock = private::lock_file(&state_root.join(LOCK), account)?;
        let roots = Roots::load(state_root, account)?;
        Ok(LockedRoots { roots, state_root: state_root.to_owned(), _lock: lock })
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Records that the project is here.
    pub(crate) fn remember(&mut self, id: ProjectId, here: Seen) -> Result<(), PlaceError> {
        if self.roots.0.get(&id) == Some(&here) {
            return Ok(());
        }
        self.roots.remember(id, here);
        self.roots.save(&self.state_root)
    }
}

impl Seen {
    fn to_value(&self) -> Object {
        let mut object = Object::new();
        object.insert("path", path_to_text(&self.path));
        // As text: they are 64-bit numbers, JSON's are exact to 53.
        object.insert("device", self.device.to_string());
        object.insert("inode", self.inode.to_string());
        object
    }

    fn parse(value: &Value) -> Option<Seen> {
        let object = value.as_object()?;
        let text = |name| object.get(name).and_then(Value::as_text);
        Some(Seen {
            path: text_to_path(text("path")?)?,
            device: text("device")?.parse().ok()?,
            inode: text("inode")?.parse().ok()?,
        })
    }
}

/// A path as text: bytes that are not UTF-8, and `%`, are written `%xx`.
fn path_to_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    text
}

fn text_to_path(text: &str) -> Option<PathBuf> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let [byte] = record::from_hex(part.get(..2)?)?;
        bytes.push(byte);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ProjectId {
        ProjectId::new([n; 16])
    }

    fn seen(path: impl Into<PathBuf>, inode: u64) -> Seen {
        Seen { path: path.into(), device: u64::MAX, inode }
    }

    #[test]
    fn any_path_and_any_64_bit_number_come_back_as_they_were() {
        let dir = tempfile::tempdir().expect("a directory");
        let account = Account::of_process();
        let odd = OsString::from_vec(b"/a b/100%25/\xff\xfe/caf\xc3\xa9\n".to_vec());
        let mut locked = LockedRoots::open(dir.path(), &account).expect("opened");
        locked.remember(id(1), seen(odd.clone(), u64::MAX)).expect("recorded");
        locked.remember(id(2), seen("/b", 0)).expect("recorded");
        let read = Roots::load(dir.path(), &account).expect("read");
        assert_eq!(read.known_as(&seen(odd, u64::MAX)), Some(id(1)));
        assert_eq!(read.known_as(&seen("/b", 0)), Some(id(2)));
        assert_eq!(read.known_as(&seen("/b", 1)), None);
    }

    #[test]
    fn a_path_has_one_id_and_an_id_one_path() {
        let mut roots = Roots::default();
        roots.remember(id(1), seen("/a", 1));
        roots.remember(id(2), seen("/a", 1));
        roots.remember(id(2), seen("/b", 1));
        assert_eq!(roots.0.len(), 1);
        assert_eq!(roots.0.get(&id(2)), Some(&seen("/b", 1)));
    }

    #[test]
    fn paths_that_are_gone_are_forgotten_when_there_are_many() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut roots = Roots::default();
        roots.remember(id(0), Seen::at(dir.path()).expect("seen"));
        for n in 1..FORGET_ABOVE as u64 {
            let id = ProjectId::new((u128::from(n) << 64).to_be_bytes());
            roots.remember(id, seen(format!("/nonexistent/{n}"), n));
        }
        assert_eq!(roots.0.len(), FORGET_ABOVE);
        roots.remember(id(9), seen("/nonexistent/new", 7));
        assert_eq!(roots.0.keys().copied().collect::<Vec<_>>(), [id(0), id(9)]);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        for text in [
            "",
            r#"{"schema":"onceseal.roots/v1"}"#,
            r#"{"roots":{"x":{"device":"1","inode":"1","path":"/a"}},"schema":"onceseal.roots/v1"}"#,
            r#"{"roots":{"00000000000000000000000000000001":{"device":"1","path":"/a"}},"schema":"onceseal.roots/v1"}"#,
            r#"{"roots":{"00000000000000000000000000000001":{"device":"1","inode":"1","path":"/%"}},"schema":"onceseal.roots/v1"}"#,
        ] {
            private::replace_file(&dir.path().join(FILE), text.as_bytes(), Durability::Loose)
                .expect("written");
            let refusal = Roots::load(dir.path(), &Account::of_process()).expect_err(text);
            assert_eq!(refusal.code(), "project_roots_unreadable");
        }
    }
}
