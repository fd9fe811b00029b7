//! Reading the configuration file: whatever stands at its name, without
//! waiting for it and without an end to come.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use onceseal_core::limits;
use rustix::fs::{Mode, OFlags};

use super::ConfigError;

/// Whether anything stands there; what cannot be looked at does.
pub(super) fn stands_at(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The whole content of a regular file that is not too large.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { file: path.to_owned(), reason };
    let failed = |error: io::Error| unreadable(why(path, &error));
    // Not to wait for a pipe that nobody writes.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(error) => return Err(failed(error.into())),
    };
    let kind = file.metadata().map_err(failed)?.file_type();
    if !kind.is_file() {
        return Err(unreadable(format!("it is {}, and a regular file is expected", noun(kind))));
    }
    let mut content = Vec::new();
    file.take(limits::POLICY_BYTES as u64 + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() > limits::POLICY_BYTES {
        return Err(ConfigError::TooLarge { file: path.to_owned() });
    }
    Ok(content)
}

fn why(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound if path.is_symlink() => "it is a symbolic link that leads nowhere".to_owned(),
        ErrorKind::NotFound => "there is no such file".to_owned(),
        kind => kind.to_string(),
    }
}

fn noun(kind: FileType) -> &'static str {
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Command;

    use crate::config::{Config, FILE};

    /// Everything that can stand at a name and is no file, and the words for it.
    fn impostors(directory: &Path) -> Vec<(PathBuf, &'static str)> {
        let path = |name: &str| directory.join(name);
        assert!(Command::new("mkfifo").arg(path("pipe")).status().expect("run").success());
        std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        fs::create_dir(path("directory")).expect("a directory");
        symlink("nothing", path("dangling")).expect("a link");
        symlink("circle", path("circle")).expect("a link");
        symlink("/dev/zero", path("endless")).expect("a link");
        vec![
            (path("pipe"), "it is a pipe, and a regular file is expected"),
            (path("directory"), "it is a directory, and a regular file is expected"),
            (path("dangling"), "it is a symbolic link that leads nowhere"),
            (path("endless"), "it is a device, and a regular file is expected"),
            (path("circle"), ""),
            (path("socket"), ""),
        ]
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_name_and_never_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, reason) in impostors(dir.path()) {
            let refusal = read(&path).expect_err("no file");
            assert_eq!(refusal.code(), "config_unreadable");
            let text = refusal.to_string();
            assert!(text.starts_with(path.to_str().expect("UTF-8")) && text.contains(reason), "{text}");
        }
        let missing = read(&dir.path().join("nope.yaml")).expect_err("nothing").to_string();
        assert!(missing.ends_with("/nope.yaml cannot be read: there is no such file"), "{missing}");
    }

    #[test]
    fn reading_ends_after_a_mebibyte_and_a_link_to_a_file_is_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        symlink(&path, dir.path().join("link")).expect("a link");
        fs::write(&path, vec![b' '; limits::POLICY_BYTES]).expect("written");
        assert_eq!(read(&dir.path().join("link")).expect("read").len(), limits::POLICY_BYTES);
        fs::write(&path, vec![b' '; limits::POLICY_BYTES + 1]).expect("written");
        let refusal = read(&path).expect_err("too large");
        assert_eq!(refusal.code(), "config_too_large");
        assert!(refusal.to_string().contains("/file is larger than 1 MiB"), "{refusal}");
    }

    #[test]
    fn whatever_stands_at_the_name_is_the_file_and_the_one_above_is_not_looked_for() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(FILE), "schema: onceseal.policy/v1\n").expect("written");
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        assert_eq!(Config::find_above(&inner), Some(dir.path().join(FILE)));
        for (impostor, _) in impostors(dir.path()) {
            fs::rename(&impostor, inner.join(FILE)).expect("moved");
            assert_eq!(Config::find_above(&inner), Some(inner.join(FILE)), "{}", impostor.display());
            fs::rename(inner.join(FILE), &impostor).expect("moved back");
        }
    }
}
