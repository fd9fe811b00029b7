//! `sim`: a remote for tests and demonstrations, that does what it is told.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use onceseal::core::hash::Hash;
use onceseal::core::json::{self, Limits, Object, Value};

use crate::context::Context;
use crate::error::{CliError, UNUSABLE};

/// Play a remote in a file: for tests and demonstrations of tools
///
/// A tool's command is `onceseal sim act --ledger FILE`, and how it is asked `onceseal sim ask --ledger FILE`. It honours
/// the provider key: under one key it acts once, and answers again as it did the first time.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Act, as a tool's command: exit 0, or 75 if it refuses
    Act(Place),
    /// Say what became of it, as a tool's status command: exit 0, or 44 if it knows of nothing
    Ask(Place),
    /// Say how it is to go next
    Tell {
        #[command(flatten)]
        place: Place,
        /// What the next act, or every question until `catch-up`, meets
        #[arg(value_enum)]
        course: Course,
    },
}

/// Where the remote keeps what it did.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// One JSON object a line
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// The member of its results that names what was made, and what such names begin with
    #[arg(long, value_name = "MEMBER=PREFIX", default_value = "id=SIM")]
    id: String,
}

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Course {
    /// It acts, and its answer is lost
    LoseAnswer,
    /// It never hears of it
    LoseRequest,
    /// It refuses, and nothing is done
    Refuse,
    /// What it does cannot be found
    Lag,
    /// Everything can be found again
    CatchUp,
}

const REFUSED: u8 = 75;
const ABSENT: u8 = 44;
/// Neither done nor refused.
const LOST: u8 = 1;

pub(crate) fn run(context: &Context, sim: &Sim) -> Result<ExitCode, CliError> {
    match sim {
        Sim::Act(place) => act(place),
        Sim::Ask(place) => ask(place),
        Sim::Tell { place, course } => {
            let mut ledger = Ledger::open(&place.ledger)?;
            let mut line = Object::new();
            let name =
                course.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            line.insert("told", name.as_str());
            ledger.add(line)?;
            context.out.text(&format!("{name}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn act(place: &Place) -> Result<ExitCode, CliError> {
    let named = place.id.split_once('=');
    let named = named.ok_or_else(|| CliError::usage("--id is MEMBER=PREFIX, as in id=SIM"))?;
    let (key, arguments) = given()?;
    let mut ledger = Ledger::open(&place.ledger)?;
    let course = ledger.next();
    if course.is_some() {
        let mut line = Object::new();
        line.insert("met", true);
        ledger.add(line)?;
    }
    match course {
        Some(Course::Refuse) => return Ok(ExitCode::from(REFUSED)),
        Some(Course::LoseRequest) => return Ok(ExitCode::from(LOST)),
        _ => {}
    }
    let answer = match ledger.done(&key) {
        Some(answer) => answer.clone(),
        None => {
            let answer = answer(named, &key, arguments);
            let mut line = answer.clone();
            line.insert("key", key);
            ledger.add(line)?;
            answer
        }
    };
    if course == Some(Course::LoseAnswer) {
        return Ok(ExitCode::from(LOST));
    }
    tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}

fn ask(place: &Place) -> Result<ExitCode, CliError> {
    let (key, _) = given()?;
    let ledger = Ledger::open(&place.ledger)?;
    match ledger.done(&key).filter(|_| !ledger.lags()) {
        Some(answer) => {
            tell(answer)?;
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::from(ABSENT)),
    }
}

/// What it answers: the arguments, and a name made of the key.
fn answer((member, prefix): (&str, &str), key: &str, arguments: Object) -> Object {
    let digest = Hash::of("onceseal.sim.v1\n", &[key.as_bytes()]).to_string();
    let hex = digest.trim_start_matches("sha256:");
    let number = u64::from_str_radix(&hex[..12], 16).unwrap_or_default() + 1;
    let mut data = arguments;
    data.insert(member, format!("{prefix}-{number}"));
    let mut answer = Object::new();
    answer.insert("data", Value::Object(data));
    answer.insert("receipt_id", format!("sim-receipt-{}", &hex[..24]));
    answer.insert("request_id", format!("sim-request-{}", &hex[24..48]));
    answer
}

/// What the worker says of the call.
fn given() -> Result<(String, Object), CliError> {
    let var = |name: &str| {
        let error =
            || CliError::usage(format!("{name} is not set: this is run by `onceseal worker`, as a tool"));
        std::env::var(name).map_err(|_| error())
    };
    let (key, arguments) = (var("ONCESEAL_PROVIDER_KEY")?, var("ONCESEAL_ARGUMENTS")?);
    match json::read(arguments.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(arguments)) => Ok((key, arguments)),
        _ => Err(CliError::usage("ONCESEAL_ARGUMENTS is not a JSON object")),
    }
}

/// Writes an answer down where the worker reads it.
fn tell(answer: &Object) -> Result<(), CliError> {
    let Some(path) = std::env::var_os("ONCESEAL_RESULT") else { return Ok(()) };
    let mut shown = answer.clone();
    shown.remove("key");
    std::fs::write(path, json::canonical(&Value::Object(shown))).map_err(failed)
}

/// What the remote did and was told, held by one process at a time.
struct Ledger {
    file: File,
    lines: Vec<Object>,
}

impl Ledger {
    fn open(path: &Path) -> Result<Ledger, CliError> {
        // Not to wait for a pipe that nobody writes, or read what has no end.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(failed(std::io::ErrorKind::InvalidInput.into()));
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(failed)?;
        // Given back when the file is closed, also by a process that is killed.
        file.lock().map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        // A line without its end was cut off while it was written: nothing was done.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(failed)?;
        text.truncate(whole);
        let line = |line: &str| match json::read(line.as_bytes(), &Limits::DATA) {
            Ok(Value::Object(line)) => Ok(line),
            _ => Err(CliError::new("sim_failed", "the ledger has a line that is no JSON object", UNUSABLE)),
        };
        let lines = text.lines().map(line).collect::<Result<_, _>>()?;
        Ok(Ledger { file, lines })
    }

    fn add(&mut self, line: Object) -> Result<(), CliError> {
        self.file.seek(std::io::SeekFrom::End(0)).map_err(failed)?;
        let text = format!("{}\n", json::canonical(&Value::Object(line.clone())));
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.lines.push(line);
        Ok(())
    }

    /// What it did under a key.
    fn done(&self, key: &str) -> Option<&Object> {
        self.lines.iter().find(|line| line.get("key").and_then(Value::as_text) == Some(key))
    }

    fn told(&self) -> impl Iterator<Item = Course> {
        self.lines
            .iter()
            .filter_map(|line| Course::from_str(line.get("told").and_then(Value::as_text)?, false).ok())
    }

    /// How the next act goes.
    fn next(&self) -> Option<Course> {
        let met = self.lines.iter().filter(|line| line.get("met").is_some()).count();
        self.told().filter(|course| !matches!(course, Course::Lag | Course::CatchUp)).nth(met)
    }

    fn lags(&self) -> bool {
        let of_time = |course: &Course| matches!(course, Course::Lag | Course::CatchUp);
        self.told().filter(of_time).last() == Some(Course::Lag)
    }
}

fn failed(error: std::io::Error) -> CliError {
    CliError::new("sim_failed", format!("the ledger cannot be used: {}", error.kind()), UNUSABLE)
}
