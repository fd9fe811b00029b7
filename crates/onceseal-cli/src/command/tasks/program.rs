//! The program of a worker: what it reads, what it is told, and what it leaves as
//! evidence.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use onceseal::core::hash::{Hash, write_hex};
use onceseal::core::json;
use onceseal::process::{Ended, Input, Process};
use onceseal::runs::TaskGuard;

use crate::command::lease::proof;
use crate::error::{CliError, UNUSABLE};

/// Evidence beyond this is a file of its own, and its digest the evidence.
const EVIDENCE: u64 = 16 * 1024 * 1024;

/// How a program ended, and the digest of what it left, if that can be read.
pub(super) struct Left {
    pub(super) ended: Ended,
    pub(super) evidence: Option<Hash>,
}

/// Runs a program for a task, with the task on its standard input, until it ends or
/// the lease is lost.
pub(super) async fn run(command: &[OsString], task: &TaskGuard) -> Result<Left, CliError> {
    let (program, args) = command.split_first().ok_or_else(|| CliError::usage("a program is needed"))?;
    let evidence = Evidence::make().map_err(no_place)?;
    let input = input(&json::canonical(&task.spec().clone().into())).map_err(no_place)?;
    let told = |name: &str, value: OsString| (OsString::from(format!("ONCESEAL_{name}")), value);
    let env = vec![
        told("RUN", task.run().id().to_string().into()),
        told("TASK", task.id().into()),
        told("TASK_PHASE", task.phase().into()),
        told("FENCE", task.fence().to_string().into()),
        told("EVIDENCE", evidence.0.clone().into()),
        // Whoever had the lease could say itself that its work is right.
        (proof::VARIABLE.into(), OsString::new()),
    ];
    let process = Process { args: args.to_vec(), env, input: Some(input), ..Process::new(program) };
    let ran = process.run_until(task.lost(), |_| {}).await;
    Ok(Left { ended: ran.ended, evidence: evidence.hash() })
}

fn no_place(error: io::Error) -> CliError {
    let message = format!("there is no place for what a program reads and leaves: {}", error.kind());
    CliError::new("work_place", message, UNUSABLE).next("set TMPDIR to a directory of yours")
}

/// A new file of the account's own among temporary files.
fn fresh() -> io::Result<(PathBuf, File)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = "onceseal-".to_owned();
    write_hex(&random, &mut name);
    let path = std::path::absolute(std::env::temp_dir())?.join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

/// What a program reads. Nothing is left of it when the program has ended.
fn input(text: &str) -> io::Result<Input> {
    let (path, mut file) = fresh()?;
    fs::remove_file(path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(Input::new(file))
}

/// The file that a program writes what shows its work to; gone with this.
struct Evidence(PathBuf);

impl Evidence {
    fn make() -> io::Result<Evidence> {
        Ok(Evidence(fresh()?.0))
    }

    /// The digest of what was written, as `sha256sum` prints it; `None` if it is no
    /// file any more, or too large.
    fn hash(&self) -> Option<Hash> {
        Some(Hash::of("", &[&read(&self.0).ok()?]))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A program may have put something else there, which must not be waited for.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    File::open(path)?.take(EVIDENCE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > EVIDENCE { Err(ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        // The program may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}
