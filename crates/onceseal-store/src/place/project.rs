//! The project: a directory that holds `.onceseal/project.json` and nothing
//! else of ours.
//!
//! The file only names the project. Whoever can write the project can write
//! it, so it is read as outside bytes and no path is taken from it.

use std::fmt;
use std::path::{Path, PathBuf};

use onceseal_core::json::{Object, Value};

use super::error::{PlaceError, PlaceErrorKind};
use super::judge::lstat;
use super::private::{self, Content, Durability};
use super::record;

const SCHEMA: &str = "onceseal.project/v1";
/// Many times what `init` writes.
const FILE_BYTES_MAX: usize = 4096;

/// The directory of ours inside a project.
pub(crate) const DIRECTORY: &str = ".onceseal";
const FILE: &str = "project.json";

/// Names a project: 128 random bits, written as 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectId([u8; 16]);

impl ProjectId {
    /// The id of these random bits.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> ProjectId {
        ProjectId(random)
    }

    /// The random bits.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Reads 32 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<ProjectId> {
        record::from_hex(text).map(ProjectId)
    }
}

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&record::hex(&self.0))
    }
}

impl fmt::Debug for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProjectId({self})")
    }
}

/// A directory with a project id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub(crate) root: PathBuf,
    pub(crate) id: ProjectId,
    /// Whether the project file is there; otherwise the state remembers the id.
    pub(crate) on_disk: bool,
}

impl Project {
    /// The real path of the project's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ProjectId {
        self.id
    }
}

/// The id in the project file of this directory, `None` without such a file.
pub(crate) fn read(root: &Path) -> Result<Option<ProjectId>, PlaceError> {
    if !directory_exists(root)? {
        return Ok(None);
    }
    let path = root.join(DIRECTORY).join(FILE);
    let unreadable = |reason| PlaceError::at(&path, PlaceErrorKind::ProjectUnreadable(reason));
    let bytes = match private::read_file(&path, FILE_BYTES_MAX)? {
        Content::Missing => return Ok(None),
        Content::TooLong => return Err(unreadable("is too long")),
        Content::Whole(bytes) => bytes,
    };
    let object = record::read(&bytes, SCHEMA, 2).map_err(unreadable)?;
    match object.get("id").and_then(Value::as_text).and_then(ProjectId::parse) {
        Some(id) => Ok(Some(id)),
        None => Err(unreadable("has no id of 32 hex digits")),
    }
}

/// Writes the project file, replacing one that is there.
pub(crate) fn write(root: &Path, id: ProjectId) -> Result<(), PlaceError> {
    let directory = root.join(DIRECTORY);
    if !directory_exists(root)? {
        private::make_directory(&directory)?;
    }
    let mut object = Object::new();
    object.insert("id", id.to_string());
    private::replace_file(&directory.join(FILE), &record::write(object, SCHEMA), Durability::Synced)
}

fn directory_exists(root: &Path) -> Result<bool, PlaceError> {
    let directory = root.join(DIRECTORY);
    match lstat(&directory)? {
        None => Ok(false),
        Some(found) if found.is_dir() => Ok(true),
        Some(_) => Err(PlaceError::at(
            directory,
            PlaceErrorKind::ProjectUnreadable("has no real directory to lie in"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const ID: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn the_file_is_one_line_of_canonical_json() {
        let dir = tempfile::tempdir().expect("a directory");
        let id = ProjectId::parse(ID).expect("an id");
        assert_eq!(read(dir.path()).expect("no project"), None);
        write(dir.path(), id).expect("written");
        let text = fs::read_to_string(dir.path().join(".onceseal/project.json")).expect("read");
        assert_eq!(text, format!("{{\"id\":\"{ID}\",\"schema\":\"onceseal.project/v1\"}}\n"));
        assert_eq!(read(dir.path()).expect("read"), Some(id));
    }

    #[test]
    fn anything_else_in_its_place_is_refused_never_guessed() {
        let long = format!("{{\"id\":\"{ID}\",\"schema\":\"onceseal.project/v1\"}}{}", " ".repeat(5000));
        for (text, reason) in [
            ("", "is not readable JSON"),
            ("[]", "is not a JSON object"),
            (&format!("{{\"id\":\"{ID}\"}}"), "has another schema"),
            (r#"{"id":"AB","schema":"onceseal.project/v1"}"#, "has no id of 32 hex digits"),
            (r#"{"id":1,"schema":"onceseal.project/v1"}"#, "has no id of 32 hex digits"),
            (
                &format!(r#"{{"id":"{ID}","path":"/","schema":"onceseal.project/v1"}}"#),
                "is not readable JSON",
            ),
            (&long, "is too long"),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            fs::create_dir(dir.path().join(DIRECTORY)).expect("a directory");
            fs::write(dir.path().join(".onceseal/project.json"), text).expect("a file");
            let refusal = read(dir.path()).expect_err(text);
            assert_eq!(refusal.code(), "project_unreadable");
            assert!(refusal.to_string().contains(reason), "{refusal}");
        }
    }

    #[test]
    fn links_in_the_project_are_not_followed() {
        let (dir, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        write(other.path(), ProjectId::new([7; 16])).expect("written");
        symlink(other.path().join(DIRECTORY), dir.path().join(DIRECTORY)).expect("a link");
        assert_eq!(read(dir.path()).expect_err("a link").code(), "project_unreadable");
        assert_eq!(
            write(dir.path(), ProjectId::new([8; 16])).expect_err("a link").code(),
            "project_unreadable"
        );
        fs::remove_file(dir.path().join(DIRECTORY)).expect("removed");
        fs::create_dir(dir.path().join(DIRECTORY)).expect("a directory");
        symlink(other.path().join(".onceseal/project.json"), dir.path().join(".onceseal/project.json"))
            .expect("a link");
        assert_eq!(read(dir.path()).expect_err("a link").code(), "state_symlink");
    }
}
