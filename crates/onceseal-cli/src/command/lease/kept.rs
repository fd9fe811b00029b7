//! Where what proves a lease goes: to stdout, or to a file that nobody else can read
//! and that takes the place of nothing.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use onceseal::core::json;
use onceseal::runs::{Lease, LeaseNow};

use super::proof;
use crate::error::{CliError, UNUSABLE};
use crate::files::{self, named, noun, why};
use crate::out::SCHEMA;
use crate::text::{shell, shown};

/// Where what proves a lease is written.
#[derive(Debug, Args)]
pub(crate) struct Kept {
    /// Write what proves the lease to this file, which nobody else can read, and not to stdout. What stands there is
    /// left alone, and then nothing is taken, unless it proves the same lease
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// A place that was looked at.
pub(crate) struct Place<'a> {
    /// The file; `None` is stdout.
    file: Option<&'a Path>,
    /// A lease of the same holder that it proves.
    before: Option<Lease>,
}

impl Kept {
    /// Looks at the place before anything is taken. A file is in the way, unless it
    /// proves a lease that is `mine`: then this is asked again.
    pub(crate) fn look(&self, mine: impl FnOnce(&Lease) -> bool) -> Result<Place<'_>, CliError> {
        let Some(path) = self.to.as_deref() else { return Ok(Place { file: None, before: None }) };
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                rustix::fs::access(parent(path), rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
                    .map_err(|error| unwritten(path, &error.into()).because("nothing was taken"))?;
                return Ok(Place { file: Some(path), before: None });
            }
            Err(error) => return Err(unwritten(path, &error).because("nothing was taken")),
        };
        if !found.is_file() {
            let what = noun(found.file_type());
            return Err(in_the_way(path, &format!("it is {what}, and a new file is made")));
        }
        match proof::read(path).ok() {
            Some(lease) if mine(&lease) => Ok(Place { file: Some(path), before: Some(lease) }),
            Some(lease) => {
                let resource = lease.resource.to_string();
                let what = format!("it proves a lease on {}, fence {}", shown(&resource), lease.fence);
                Err(in_the_way(path, &what).next(removal(path)).next(format!(
                    "onceseal lease inspect {} says whether that still holds",
                    shell(&resource)
                )))
            }
            None if files::open_regular(path).is_err() => Err(in_the_way(path, "it cannot be read")),
            None => Err(in_the_way(path, "it is no file of a lease").next(removal(path))),
        }
    }
}

impl Place<'_> {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file
    }

    /// Writes what proves the lease, if it goes to a file. What is typed gets it again
    /// if that fails.
    pub(crate) fn write(&self, now: &LeaseNow, again: &str) -> Result<(), CliError> {
        let Some(path) = self.file else { return Ok(()) };
        let mut object = proof::object(now);
        object.insert("schema", SCHEMA);
        let text = json::canonical(&object.into()) + "\n";
        self.put(path, text.as_bytes()).map_err(|error| recoverable(unwritten(path, &error), again))
    }

    fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let (new, mut file) = files::fresh(parent(path), &format!(".{}.", name.to_string_lossy()))?;
        let written =
            file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| match &self.before {
                // It was looked at: what came there since is somebody else's.
                Some(before) if proof::read(path).is_ok_and(|there| there == *before) => {
                    fs::rename(&new, path)
                }
                Some(_) => Err(ErrorKind::AlreadyExists.into()),
                None => fs::hard_link(&new, path).or_else(|error| match error.kind() {
                    // Not every file system has links.
                    ErrorKind::Unsupported | ErrorKind::PermissionDenied => whole(path, content),
                    _ => Err(error),
                }),
            });
        // It was renamed, or has another name, or is of no use.
        let _ = fs::remove_file(&new);
        written.and_then(|()| fs::File::open(parent(path))?.sync_all())
    }

    /// What becomes of an answer that could not be printed: without a file nobody has
    /// what proves the lease.
    pub(crate) fn printed(&self, printed: Result<(), CliError>, again: &str) -> Result<(), CliError> {
        printed.map_err(|error| match self.file {
            Some(path) => error.because(format!("what proves the lease is in {}", named(path))),
            None => recoverable(error, again),
        })
    }
}

/// Makes a file with this content, or none.
fn whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = files::make(path)?;
    file.write_all(content).and_then(|()| file.sync_all()).inspect_err(|_| {
        // Nobody else has it yet, and half of it proves nothing.
        let _ = fs::remove_file(path);
    })
}

/// A lease that nobody can use, and how it is got again.
fn recoverable(error: CliError, again: &str) -> CliError {
    error
        .aloud()
        .because("the resource is held until the lease ends by itself")
        .next(format!("{again} gives the same lease"))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    CliError::new("output_failed", format!("{} cannot be written: {}", named(path), why(error)), UNUSABLE)
}

fn in_the_way(path: &Path, what: &str) -> CliError {
    CliError::new(
        "output_exists",
        format!("{} is there already, and nothing was taken", named(path)),
        UNUSABLE,
    )
    .because(what)
    .next("the same command with another file")
}

fn removal(path: &Path) -> String {
    format!("rm {}, once nobody needs it", shell(&path.display().to_string()))
}
