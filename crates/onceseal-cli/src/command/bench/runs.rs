//! Runs and leases: how fast runs move on, how long an append takes in an old run
//! and in a young one, how fast one is verified, and how fast many are listed.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use onceseal::core::json::{Object, Value};
use onceseal::core::lease::Resource;
use onceseal::core::time::Span;
use onceseal::runs::{Run, RunFilter, Runs};
use onceseal::{Control, Error, Principal};

use super::audited;
use super::load::Load;
use crate::context::Context;
use crate::error::{CliError, UNUSABLE};

/// Runs that are listed.
const LISTED: usize = 10_000;
/// Runs of a page.
const PAGE: usize = 100;
/// Appends to each of which the median is taken.
const SAMPLE: usize = 200;
/// Events of a run that is young.
const YOUNG: u64 = 100;
/// A state of `simple` that may follow on itself.
const STATE: &str = "paused";

/// How to measure runs.
#[derive(Debug, Args)]
pub(crate) struct BenchRuns {
    /// Runs that move on at once, and leases that are taken at once
    #[arg(long, default_value_t = 256, value_name = "N")]
    callers: usize,
    /// Seconds for each pace
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Events of the long run
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    events: u64,
}

pub(super) fn run(
    context: &Context,
    scratch: &Path,
    server: Option<&str>,
    bench: &BenchRuns,
) -> Result<ExitCode, CliError> {
    if !(bench.seconds > 0.0 && bench.seconds <= 600.0) || bench.callers == 0 || bench.events < 1_000 {
        return Err(CliError::usage("callers are at least 1, events 1000, and seconds up to 600"));
    }
    let load = Load::open(&scratch.join("runs"), server)?;
    let time = Duration::from_secs_f64(bench.seconds);
    let many = pace(&load, bench.callers, time, |control, at| moving(control, format!("many-{at}")))?;
    let alone = pace(&load, 1, time, |control, _| moving(control, "alone".to_owned()))?;
    let leases = pace(&load, bench.callers, time, |control, at| leasing(control, at))?;
    let long = long(&load, bench)?;
    let (page_ms, all_ms) = listed(&load)?;
    audited(&load)?;
    let figures = [
        ("transitions_per_s", many, 0),
        ("transitions_per_s_of_one", alone, 0),
        ("leases_per_s", leases, 0),
        ("append_p50_us_young", long.young_us, 0),
        ("append_p50_us_old", long.old_us, 0),
        ("append_ratio", long.old_us / long.young_us, 2),
        ("verified_per_s", long.verified_per_s, 0),
        ("page_of_runs_ms", page_ms, 2),
        ("all_runs_ms", all_ms, 2),
    ];
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("callers", Value::Integer(i64::try_from(bench.callers).unwrap_or(i64::MAX)));
        object.insert("events", Value::Integer(i64::try_from(bench.events).unwrap_or(i64::MAX)));
        for (name, figure, decimals) in figures {
            let scale = 10_f64.powi(decimals);
            object.insert(name, Value::number((figure * scale).round() / scale).unwrap_or(Value::Null));
        }
        context.out.document(object)?;
    } else {
        let mut text = String::new();
        for (name, figure, decimals) in figures {
            let decimals = usize::try_from(decimals).unwrap_or_default();
            text.push_str(&format!("{name:26}{figure:12.decimals$}\n"));
        }
        text.push_str("synchronous=FULL, full evidence, audited clean. A lease is taken, renewed and\n");
        text.push_str("given up with an outcome; a page is of 100 runs out of 10,000 or more.\n");
        context.out.text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Something that a caller does again and again.
type Doing = std::pin::Pin<Box<dyn Future<Output = Result<Again, Error>> + Send>>;
/// How it is done once more.
type Again = Box<dyn FnMut() -> std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send>;

/// How often a second so many callers do something, each waiting for its answer
/// before it goes on.
fn pace(
    load: &Load,
    callers: usize,
    time: Duration,
    begin: impl Fn(Control, usize) -> Doing,
) -> Result<f64, CliError> {
    let begun: Vec<_> = (0..callers)
        .map(|at| load.runtime().block_on(begin(load.control().clone(), at)))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let tasks: Vec<_> = begun
        .into_iter()
        .map(|mut again| {
            load.runtime().spawn(async move {
                let mut done = 0_u64;
                while start.elapsed() < time {
                    again().await?;
                    done += 1;
                }
                Ok::<_, Error>(done)
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        let ended = load.runtime().block_on(task);
        done += ended.map_err(|_| CliError::new("bench_caller", "a caller panicked", UNUSABLE))??;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

fn runs(control: &Control) -> Runs {
    control.runs().by(Principal::agent("bench"))
}

async fn started(control: &Control, change: String) -> Result<Run, Error> {
    Ok(runs(control).start("simple").change(change).send().await?.run)
}

async fn moved(run: Run) -> Result<(), Error> {
    run.transition(STATE).send().await.map(drop)
}

/// Moves a run of its own on.
fn moving(control: Control, change: String) -> Doing {
    Box::pin(async move {
        let run = started(&control, change).await?;
        let again: Again = Box::new(move || Box::pin(moved(run.clone())));
        Ok(again)
    })
}

/// Takes a resource of its own, renews the lease, and gives it up with an outcome.
fn leasing(control: Control, at: usize) -> Doing {
    Box::pin(async move {
        let resource = Resource::Name(format!("bench {at}"));
        let again: Again = Box::new(move || {
            let (control, resource) = (control.clone(), resource.clone());
            Box::pin(async move {
                let taken = control.lease(resource).length(Span::minutes(1)).once().await?;
                let renewed = control.renew_lease(taken.lease, Span::minutes(2)).await?;
                control.commit_lease(renewed.lease, Object::new()).await.map(drop)
            })
        });
        Ok(again)
    })
}

/// What a long run costs, beside a young one in the same store.
struct Long {
    young_us: f64,
    old_us: f64,
    verified_per_s: f64,
}

fn long(load: &Load, bench: &BenchRuns) -> Result<Long, CliError> {
    let begin = |name: &str| load.runtime().block_on(started(load.control(), name.to_owned()));
    let (old, young) = (begin("old")?, begin("young")?);
    grow(load, &young, YOUNG)?;
    grow(load, &old, bench.events - SAMPLE as u64)?;
    // In turn, so that whatever else the machine does is done to both.
    let (mut of_young, mut of_old) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLE {
        for (run, took) in [(&young, &mut of_young), (&old, &mut of_old)] {
            let start = Instant::now();
            load.runtime().block_on(moved(run.clone()))?;
            took.push(start.elapsed());
        }
    }
    let start = Instant::now();
    let report = load.control().verify_run(old.id())?;
    let verified_per_s = report.events as f64 / start.elapsed().as_secs_f64();
    let micros = |took: Vec<Duration>| median(took).as_secs_f64() * 1e6;
    Ok(Long { young_us: micros(of_young), old_us: micros(of_old), verified_per_s })
}

/// Brings a run that was just started to so many events. Whoever waited for each
/// answer would make it long in hours.
fn grow(load: &Load, run: &Run, events: u64) -> Result<(), CliError> {
    let mut written = 1;
    while written < events {
        let at_once = (events - written).min(2_048);
        let tasks: Vec<_> = (0..at_once).map(|_| load.runtime().spawn(moved(run.clone()))).collect();
        for task in tasks {
            let ended = load.runtime().block_on(task);
            ended.map_err(|_| CliError::new("bench_caller", "a caller panicked", UNUSABLE))??;
        }
        written += at_once;
    }
    Ok(())
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() / 2]
}

/// A page of many runs, and all of them by pages: milliseconds, medians of five.
fn listed(load: &Load) -> Result<(f64, f64), CliError> {
    let starts: Vec<_> = (0..LISTED)
        .map(|at| {
            let control = load.control().clone();
            load.runtime().spawn(async move { started(&control, format!("listed-{at}")).await.map(drop) })
        })
        .collect();
    for start in starts {
        let ended = load.runtime().block_on(start);
        ended.map_err(|_| CliError::new("bench_caller", "a caller panicked", UNUSABLE))??;
    }
    let (mut pages, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        load.control().list_runs(&RunFilter::default(), PAGE)?;
        pages.push(start.elapsed());
        let start = Instant::now();
        load.control().list_runs(&RunFilter::default(), LISTED)?;
        whole.push(start.elapsed());
    }
    let millis = |took: Vec<Duration>| median(took).as_secs_f64() * 1e3;
    Ok((millis(pages), millis(whole)))
}
