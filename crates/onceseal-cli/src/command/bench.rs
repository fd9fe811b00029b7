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
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::{Args, Subcommand};
use onceseal::audit::{AuditOptions, audit};
use onceseal::config::StoreAddress;
use onceseal::core::json::Value;
use onceseal::store::yardstick;

use crate::context::Context;
use crate::error::{CliError, UNUSABLE};
use figures::Figures;
use load::Load;
use runs::BenchRuns;

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
    /// Callers at once, each waiting for its action before the next
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256])]
    callers: Vec<usize>,
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
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Measure so many processes with one caller each on one file instead
    #[arg(long, value_name = "N")]
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
    if let Some(Other::Runs(of)) = &bench.other {
        let scratch = Scratch::new(None)?;
        return runs::run(context, &scratch.0, of);
    }
    if let Some(place) = &bench.child {
        return processes::child(context, place, bench.seconds);
    }
    if let Some(place) = &bench.replay {
        return replay(context, place);
    }
    if let (Some(place), [callers]) = (&bench.round, bench.callers.as_slice()) {
        let figures = figures(place, *callers, bench.seconds)?;
        context.out.document(figures::document(&[figures]))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !(bench.seconds > 0.0 && bench.seconds <= 600.0) || bench.rounds == 0 || bench.callers.contains(&0) {
        return Err(CliError::usage("callers and rounds are at least 1, seconds up to 600"));
    }
    let scratch = Scratch::new(bench.dir.as_deref())?;
    if bench.server.is_some() && (bench.processes.is_some() || bench.operations) {
        return Err(CliError::usage("--server measures actions of one process"));
    }
    if let Some(processes) = bench.processes {
        return processes::run(context, &scratch.0, processes, bench.seconds);
    }
    if bench.operations {
        let callers = bench.callers.last().copied().unwrap_or(1);
        return operations::run(context, &scratch.0, callers, bench.seconds, bench.backlog);
    }
    let mut rows = Vec::new();
    for callers in &bench.callers {
        let rounds = 0..bench.rounds;
        let figures = rounds.map(|round| {
            let name = format!("{callers}-{round}");
            let server = bench.server.as_ref().map(|address| in_schema(address, &name)).transpose()?;
            in_a_process(&scratch.0.join(name), *callers, bench.seconds, server)
        });
        rows.push(Figures::median(&figures.collect::<Result<Vec<_>, _>>()?));
    }
    if context.out.is_json() {
        context.out.document(figures::document(&rows))?;
    } else {
        context.out.text(&figures::table(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One round in a process of its own: what this one kept from the round before
/// is no part of the next one's memory or pace.
fn in_a_process(
    place: &Path,
    callers: usize,
    seconds: f64,
    server: Option<String>,
) -> Result<Figures, CliError> {
    let (callers, seconds) = (callers.to_string(), seconds.to_string());
    let output = own_process(|command| {
        if let Some(server) = server {
            command.env(load::SERVER, server);
        }
        command.args(["--callers", &callers, "--seconds", &seconds, "--round"]).arg(place);
    })?;
    Figures::read(&output).ok_or_else(|| failed("printed no figures"))
}

/// The address of a schema that nobody else has.
fn in_schema(address: &str, name: &str) -> Result<String, CliError> {
    let join = if address.contains('?') { '&' } else { '?' };
    let schema = format!("bench_{}_{}", std::process::id(), name.replace('-', "_"));
    let address = format!("{address}{join}schema={schema}");
    StoreAddress::parse(&address)?;
    Ok(address)
}

/// What this program prints when it is run as a part of the measurement.
fn own_process(arguments: impl FnOnce(&mut Command)) -> Result<Vec<u8>, CliError> {
    let program = std::env::current_exe().map_err(|error| failed(error.kind()))?;
    let mut command = Command::new(program);
    command.args(["--json", "bench"]);
    arguments(&mut command);
    let output = command.output().map_err(|error| failed(error.kind()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(figures::error_of(&output.stderr).unwrap_or_else(|| output.status.to_string())))
}

fn failed(why: impl std::fmt::Display) -> CliError {
    CliError::new("bench_process", format!("a process of the measurement: {why}"), UNUSABLE)
}

/// One store under load, audited; then the yardstick on the same disk.
fn figures(place: &Path, callers: usize, seconds: f64) -> Result<Figures, CliError> {
    let load = Load::open(place)?;
    let ran = load.run(callers, seconds)?;
    if ran.latencies_us.is_empty() {
        return Err(CliError::usage("no action ended in so short a time; give more --seconds"));
    }
    let memory_mib = peak_memory_mib();
    let start = Instant::now();
    let report = audit(load.control(), &AuditOptions::default())?;
    let audited_per_s = report.events as f64 / start.elapsed().as_secs_f64();
    if !report.is_clean() {
        return Err(CliError::new("bench_not_clean", "the audit after the load found something", UNUSABLE));
    }
    let bytes = load.control().store().read(|snapshot| snapshot.bytes()).map_err(onceseal::Error::from)?;
    load.control().close();
    // What a server can do its own tools say.
    let is_here = place.join(onceseal::store::place::DATABASE).exists();
    let raw_s = if is_here { replayed_s(place)? } else { 0.0 };
    let actions = ran.latencies_us.len() as f64;
    let actions_per_s = actions / ran.elapsed.as_secs_f64();
    Ok(Figures([
        callers as f64,
        actions_per_s,
        ran.percentile(50),
        ran.percentile(99),
        actions_per_s / (actions / raw_s),
        bytes as f64 / actions,
        audited_per_s,
        memory_mib,
    ]))
}

/// The yardstick holds all rows in memory, so it runs in a process of its own:
/// this one's memory is the store's.
fn replayed_s(place: &Path) -> Result<f64, CliError> {
    let output = own_process(|command| {
        command.arg("--replay").arg(place);
    })?;
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
