//! `bench`: how fast this machine and disk are, with full evidence.
//!
//! Every figure is measured in the same run as the yardstick beside it: a
//! program that writes the same final rows in the same batches.

mod figures;
mod load;
mod operations;
mod processes;
mod runs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use clap::builder::ArgPredicate;
use clap::{Args, Subcommand};
use onceseal::audit::{AuditOptions, AuditReport, audit};
use onceseal::config::StoreAddress;
use onceseal::core::json::Value;
use onceseal::store::yardstick;

use crate::context::Context;
use crate::error::{CliError, UNUSABLE};
use figures::{Column, Columns, Row};
use load::{Crowd, Load, Others};
use runs::BenchRuns;

const COLUMNS: Columns<9> = Columns([
    Column("callers", "callers", 0),
    Column("actions_per_s", "actions/s", 0),
    Column("p50_us", "p50 us", 0),
    Column("p99_us", "p99 us", 0),
    // A server is not held against a file.
    Column("raw_ratio", "of raw?", 2),
    Column("bytes_per_action", "bytes/action", 0),
    Column("audited_per_s", "audited/s", 0),
    Column("memory_mib", "memory MiB", 0),
    Column("others_per_s", "others/s?", 0),
]);
const FIGURES: &str = "figures";

/// The address of a schema to measure, for processes of the measurement: a password
/// in it is nobody else's to see.
const SERVER: &str = "ONCESEAL_BENCH_SERVER";

/// Events before the first action: the store's and the policy's.
const PREAMBLE: u64 = 2;

/// What else can be measured.
#[derive(Debug, Subcommand)]
enum Other {
    /// How fast runs move on and leases are taken, and what a long run costs
    Runs(BenchRuns),
}

/// How to measure.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    other: Option<Other>,
    /// Callers at once, each waiting for its action before the next; 1 for --processes, 256 for --operations if not given
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [1, 16, 64, 256],
        default_value_ifs = [
            ("processes", ArgPredicate::IsPresent, "1"),
            ("operations", ArgPredicate::IsPresent, "256"),
        ],
    )]
    callers: Vec<usize>,
    #[command(flatten)]
    others: Others,
    /// Seconds for each figure
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Rounds, of which the medians are given
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: usize,
    /// A directory on the disk to measure; a private one is made in it and removed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Measure this PostgreSQL server instead, as in `store`: a schema `bench_…` is made for each figure, and left there
    #[arg(long, value_name = "URL", env = SERVER, hide_env_values = true)]
    server: Option<String>,
    /// Measure so many processes on one store instead, with as many callers each
    #[arg(long, value_name = "N", conflicts_with = "operations")]
    processes: Option<usize>,
    /// Measure operations instead: accepted by the callers, carried out by one worker
    #[arg(long)]
    operations: bool,
    /// So many operations wait when the worker begins, at least
    #[arg(long, value_name = "N", default_value_t = 0, requires = "operations")]
    backlog: u64,
    /// One round, in this new directory
    #[arg(long, hide = true)]
    round: Option<PathBuf>,
    /// One of those processes
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
    /// The yardstick, for the store in this directory
    #[arg(long, hide = true)]
    replay: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, bench: &Bench) -> Result<ExitCode, CliError> {
    let given = bench.server.as_deref();
    if let Some(Other::Runs(of)) = &bench.other {
        let scratch = Scratch::new(None)?;
        return runs::run(context, &scratch.0, given, of);
    }
    if let Some(place) = &bench.replay {
        return replay(context, place);
    }
    let are_none = bench.callers.contains(&0) || bench.processes == Some(0) || bench.others.are_none();
    if !(bench.seconds > 0.0 && bench.seconds <= 600.0) || bench.rounds == 0 || are_none {
        return Err(CliError::usage("numbers are at least 1, seconds up to 600"));
    }
    let crowd = |callers| Crowd { callers, others: bench.others, seconds: bench.seconds };
    if let (Some(place), [callers]) = (&bench.child, bench.callers.as_slice()) {
        return processes::child(context, place, given, &crowd(*callers));
    }
    if let (Some(place), [callers]) = (&bench.round, bench.callers.as_slice()) {
        let row = figures(place, given, &crowd(*callers))?;
        context.out.document(COLUMNS.document(FIGURES, &[row]))?;
        return Ok(ExitCode::SUCCESS);
    }
    let scratch = Scratch::new(bench.dir.as_deref())?;
    let server = |name: &str| given.map(|address| in_schema(address, name)).transpose();
    if bench.processes.is_some() || bench.operations {
        let [callers] = bench.callers.as_slice() else {
            return Err(CliError::usage("--processes and --operations take one number of callers"));
        };
        let (server, crowd) = (server("all")?, crowd(*callers));
        return match bench.processes {
            Some(processes) => processes::run(context, &scratch.0, server.as_deref(), processes, &crowd),
            None => operations::run(context, &scratch.0, server.as_deref(), &crowd, bench.backlog),
        };
    }
    let mut rows = Vec::new();
    for callers in &bench.callers {
        let rounds = (0..bench.rounds).map(|round| {
            let name = format!("{callers}_{round}");
            in_a_process(&scratch.0.join(&name), server(&name)?.as_deref(), &crowd(*callers))
        });
        rows.push(figures::median(&rounds.collect::<Result<Vec<_>, _>>()?));
    }
    if context.out.is_json() {
        context.out.document(COLUMNS.document(FIGURES, &rows))?;
    } else {
        let under = "synchronous=FULL, full evidence, audited clean after each round; medians.\n";
        context.out.text(&(COLUMNS.table(&rows) + under))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One round in a process of its own: what this one kept from the round before
/// is no part of the next one's memory or pace.
fn in_a_process(place: &Path, server: Option<&str>, crowd: &Crowd) -> Result<Row<9>, CliError> {
    let output = printed(part(server)?.args(crowd.arguments()).arg("--round").arg(place).output())?;
    COLUMNS.read(FIGURES, &output).ok_or_else(|| failed("printed no figures"))
}

/// The address of a schema that nobody else has.
fn in_schema(address: &str, name: &str) -> Result<String, CliError> {
    let join = if address.contains('?') { '&' } else { '?' };
    let schema = format!("bench_{}_{name}", std::process::id());
    let address = format!("{address}{join}schema={schema}");
    StoreAddress::parse(&address)?;
    Ok(address)
}

/// This program, to be run as a part of the measurement.
fn part(server: Option<&str>) -> Result<Command, CliError> {
    let program = std::env::current_exe().map_err(|error| failed(error.kind()))?;
    let mut command = Command::new(program);
    command.args(["--json", "bench"]);
    if let Some(server) = server {
        command.env(SERVER, server);
    }
    Ok(command)
}

/// What such a part printed.
fn printed(ended: std::io::Result<Output>) -> Result<Vec<u8>, CliError> {
    let output = ended.map_err(|error| failed(error.kind()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(figures::error_of(&output.stderr).unwrap_or_else(|| output.status.to_string())))
}

fn failed(why: impl std::fmt::Display) -> CliError {
    CliError::new("bench_process", format!("a process of the measurement: {why}"), UNUSABLE)
}

/// The audit after the load.
fn audited(load: &Load) -> Result<AuditReport, CliError> {
    let report = audit(load.control(), &AuditOptions::default())?;
    if report.is_clean() {
        return Ok(report);
    }
    Err(CliError::new("bench_not_clean", "the audit after the load found something", UNUSABLE))
}

/// One store under load, audited; then the yardstick on the same disk.
fn figures(place: &Path, server: Option<&str>, crowd: &Crowd) -> Result<Row<9>, CliError> {
    let load = Load::open(place, server)?;
    let ran = load.run(crowd)?;
    let memory_mib = peak_memory_mib();
    let start = Instant::now();
    let audited_per_s = audited(&load)?.events as f64 / start.elapsed().as_secs_f64();
    let bytes = load.control().store().read(|snapshot| snapshot.bytes()).map_err(onceseal::Error::from)?;
    load.control().close();
    // What a server can do its own tools say.
    let raw_s = if server.is_none() { replayed_s(place)? } else { 0.0 };
    Ok([
        crowd.callers as f64,
        ran.actions_per_s(),
        ran.percentile(50),
        ran.percentile(99),
        raw_s / ran.elapsed.as_secs_f64(),
        bytes as f64 / ran.latencies_us.len() as f64,
        audited_per_s,
        memory_mib,
        ran.others_per_s(),
    ])
}

/// The yardstick holds all rows in memory, so it runs in a process of its own:
/// this one's memory is the store's.
fn replayed_s(place: &Path) -> Result<f64, CliError> {
    let output = printed(part(None)?.arg("--replay").arg(place).output())?;
    let micros = String::from_utf8_lossy(&output).trim().parse::<f64>();
    micros.map(|micros| micros / 1e6).map_err(|_| failed("the yardstick printed no time"))
}

fn replay(context: &Context, place: &Path) -> Result<ExitCode, CliError> {
    let raw = place.join("raw.db");
    load::make_private_file(&raw).map_err(unusable)?;
    let database = place.join(onceseal::store::place::DATABASE);
    let replay = yardstick::replay(&database, &raw, PREAMBLE, usize::MAX)?;
    let micros = i64::try_from(replay.elapsed.as_micros()).unwrap_or(i64::MAX);
    context.out.line(&Value::Integer(micros))?;
    Ok(ExitCode::SUCCESS)
}

/// The most memory this process has had resident, in MiB; 0 where the system
/// does not say.
fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

fn unusable(error: std::io::Error) -> CliError {
    CliError::new("bench_place", format!("the place for the measurement: {}", error.kind()), UNUSABLE)
}

/// A private directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(within: Option<&Path>) -> Result<Scratch, CliError> {
        use std::os::unix::fs::DirBuilderExt;
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        let within = within.canonicalize().map_err(unusable)?;
        let path = within.join(format!("onceseal-bench-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(unusable)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left for whoever looks.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
