//! The program of a worker: what it reads, what it is told, and what it leaves as
//! evidence.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use onceseal::core::hash::Hash;
use onceseal::core::json;
use onceseal::process::{Ended, Input, Process};
use onceseal::runs::TaskGuard;

use crate::command::lease::proof;
use crate::error::{CliError, UNUSABLE};
use crate::files;

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
        told("EVIDENCE", evidence.path.clone().into()),
        // Whoever had the lease could say itself that its work is right.
        (proof::VARIABLE.into(), OsString::new()),
    ];
    let process = Process {
        args: args.to_vec(),
        env,
        input: Some(input),
        passes_all_on: true,
        ..Process::new(program)
    };
    let ran = process.run_until(task.lost(), |_| {}).await;
    Ok(Left { ended: ran.ended, evidence: evidence.hash() })
}

/// Whether there is a program of this name, as the system would look for it.
pub(super) fn is_there(name: &str) -> bool {
    let is_program =
        |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if name.contains('/') {
        return is_program(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(name)))
}

fn no_place(error: io::Error) -> CliError {
    let message = format!("there is no place for what a program reads and leaves: {}", error.kind());
    CliError::new("work_place", message, UNUSABLE).next("set TMPDIR to a directory of yours")
}

/// What a program reads. Nothing is left of it when the program has ended.
fn input(text: &str) -> io::Result<Input> {
    let (path, mut file) = files::fresh(&temporary()?, "onceseal-input-")?;
    fs::remove_file(path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(Input::new(file))
}

/// The file that a program writes what shows its work to; gone with this.
///
/// The program may put another in its place, so that another file is locked for as
/// long as somebody wants it: where nobody has that locked, it is left over.
struct Evidence {
    path: PathBuf,
    wanted: PathBuf,
    _lock: File,
}

const WANTED: &str = "onceseal-wanted-";

impl Evidence {
    fn make() -> io::Result<Evidence> {
        let (wanted, lock) = files::fresh(&temporary()?, WANTED)?;
        lock.lock()?;
        let path = evidence_of(&wanted).ok_or(ErrorKind::InvalidInput)?;
        let evidence = Evidence { path, wanted, _lock: lock };
        files::make(&evidence.path)?;
        Ok(evidence)
    }

    /// The digest of what was written, as `sha256sum` prints it; `None` if it is no
    /// file any more, or too large.
    fn hash(&self) -> Option<Hash> {
        Some(Hash::of("", &[&read(&self.path).ok()?]))
    }
}

/// Where a program writes for which this file is locked.
fn evidence_of(wanted: &Path) -> Option<PathBuf> {
    let own = wanted.file_name()?.to_str()?.strip_prefix(WANTED)?;
    let is_own = own.len() == 32 && own.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_own.then(|| wanted.with_file_name(format!("onceseal-evidence-{own}")))
}

fn temporary() -> io::Result<PathBuf> {
    std::path::absolute(std::env::temp_dir())
}

/// Removes what the programs of workers left that were killed.
pub(super) fn tidy() {
    let entries = temporary().and_then(fs::read_dir).into_iter().flatten().flatten();
    for wanted in entries.map(|entry| entry.path()) {
        let Some(evidence) = evidence_of(&wanted) else { continue };
        // What cannot be looked at or removed is left over.
        if files::open_regular(&wanted).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(&evidence);
            let _ = fs::remove_file(&wanted);
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // A program may have put something else there, which must not be waited for.
    files::open_regular(path)?.take(EVIDENCE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > EVIDENCE { Err(ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        // The program may have removed it.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.wanted);
    }
}
