//! Operations: how fast they are accepted, and how fast one worker that does
//! nothing carries them out.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onceseal::Principal;
use onceseal::core::json::{Object, Value};
use onceseal::operations::{Operations, Tool};

use super::audited;
use super::figures::{Column, Columns};
use super::load::{self, Crowd, Load};
use crate::context::Context;
use crate::error::{CliError, UNUSABLE};

/// Operations that a worker carries out at once.
const AT_ONCE: usize = 256;

const COLUMNS: Columns<4> = Columns([
    Column("callers", "callers", 0),
    Column("dispatched_per_s", "dispatched/s", 0),
    Column("carried_out_per_s", "carried out/s", 0),
    Column("left_waiting", "left waiting", 0),
]);

/// `backlog`: so many more wait behind those that are measured.
pub(super) fn run(
    context: &Context,
    scratch: &Path,
    server: Option<&str>,
    crowd: &Crowd,
    backlog: u64,
) -> Result<ExitCode, CliError> {
    let load = Load::open(&scratch.join("operations"), server)?;
    let time = Duration::from_secs_f64(crowd.seconds);
    let mut contract = Object::new();
    contract.insert("name", load::ACTION);
    let tool = Tool::function(&contract, |_| async { Ok(Value::Bool(true)) });
    let tool = tool.map_err(|error| CliError::new("bench_caller", error.to_string(), UNUSABLE))?;
    let operations = load.runtime().block_on(Operations::of(load.control(), [tool]))?;
    let numbers = Arc::new(AtomicU64::new(0));

    let dispatch = |until: Stop| -> Result<(u64, Duration), CliError> {
        let (start, before) = (Instant::now(), numbers.load(Ordering::Relaxed));
        let tasks: Vec<_> = (0..crowd.callers)
            .map(|_| load.runtime().spawn(dispatching(operations.clone(), numbers.clone(), until)))
            .collect();
        for task in tasks {
            let ended = load.runtime().block_on(task);
            ended.map_err(|_| CliError::new("bench_caller", "a caller panicked", UNUSABLE))??;
        }
        Ok((numbers.load(Ordering::Relaxed) - before, start.elapsed()))
    };
    let (dispatched, took) = dispatch(Stop::At(Instant::now() + time))?;
    let dispatched_per_s = dispatched as f64 / took.as_secs_f64();
    if backlog > dispatched {
        dispatch(Stop::After(backlog))?;
    }

    let start = Instant::now();
    let worker = operations.worker().at_once(AT_ONCE).drain_for(Duration::from_secs(30));
    let log = load.control().store().read(|snapshot| snapshot.newest())?;
    load.runtime().block_on(async { worker.run(tokio::time::sleep(time)).await })?;
    let took = start.elapsed();
    // An operation that is carried out is four events.
    let carried = (load.control().store().read(|snapshot| snapshot.newest())? - log) / 4;
    let carried_per_s = carried as f64 / took.as_secs_f64();
    let waiting = numbers.load(Ordering::Relaxed) - carried;

    audited(&load)?;
    let row = [crowd.callers as f64, dispatched_per_s, carried_per_s, waiting as f64];
    if context.out.is_json() {
        context.out.document(COLUMNS.object(&row))?;
    } else {
        let table = COLUMNS.table(&[row]);
        let under = "synchronous=FULL, full evidence, audited clean; one worker that does nothing.\n";
        context.out.text(&(table + under))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// When a caller stops.
#[derive(Clone, Copy)]
enum Stop {
    At(Instant),
    After(u64),
}

async fn dispatching(
    operations: Operations,
    numbers: Arc<AtomicU64>,
    stop: Stop,
) -> Result<(), onceseal::Error> {
    loop {
        match stop {
            Stop::At(end) if Instant::now() >= end => return Ok(()),
            Stop::After(all) if numbers.load(Ordering::Relaxed) >= all => return Ok(()),
            _ => {}
        }
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let dispatch = operations.dispatch(load::ACTION).args(load::arguments(number));
        dispatch.by(Principal::agent("bench")).key(format!("key {number}")).send().await?;
    }
}
