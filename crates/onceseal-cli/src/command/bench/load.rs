//! Callers that act as fast as they are answered.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onceseal::blocking;
use onceseal::config::{Config, Settings, StoreAddress};
use onceseal::core::json::{Object, Value};
use onceseal::store::place::Surroundings;
use onceseal::{Control, Failure, Opening, Principal};
use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// The address of a schema to measure, for processes of the measurement: a password
/// in it is nobody else's to see.
pub(super) const SERVER: &str = "ONCESEAL_BENCH_SERVER";

/// About 300 bytes of arguments with this text beside the others.
const NOTE: usize = 230;

pub(super) const ACTION: &str = "stripe.refund";

const POLICY: &str = r#"
schema: onceseal.policy/v1
actions:
  stripe.refund:
    effect: "refund:{payment_id}"
    rules:
      - when: { amount_gte: 0, amount_lte: 50000 }
        decision: allow
      - decision: deny
"#;

/// An open store with a policy.
pub(super) struct Load {
    control: Control,
    runtime: Runtime,
}

/// What a load came to.
pub(super) struct Ran {
    pub(super) elapsed: Duration,
    /// Of each complete action, ascending.
    pub(super) latencies_us: Vec<u64>,
}

impl Ran {
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let at = (self.latencies_us.len() * percent / 100).min(self.latencies_us.len().saturating_sub(1));
        self.latencies_us.get(at).map_or(0.0, |us| *us as f64)
    }
}

impl Load {
    /// Opens the store in this directory, making it if it is missing.
    pub(super) fn open(place: &Path) -> Result<Load, CliError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(|error| {
                CliError::new("runtime_failed", error.kind().to_string(), crate::error::UNUSABLE)
            })?;
        let settings = Settings { mark: Some(place.with_extension("marks")), ..Settings::default() };
        let mut opening = Opening::new(settings)?;
        // Never the store that this program otherwise acts on.
        opening.settings.store = match std::env::var(SERVER) {
            Ok(address) => Some(StoreAddress::parse(&address).map_err(CliError::from)?),
            Err(_) => None,
        };
        let within = place.parent().unwrap_or(place).to_owned();
        opening.surroundings = Surroundings { state: Some(place.into()), ..Surroundings::of_process(within) };
        let control = Control::found(&opening)?;
        let policy = Config::parse(POLICY.as_bytes())?.policy;
        runtime.block_on(control.activate(policy, false, None))?;
        Ok(Load { control, runtime })
    }

    pub(super) const fn control(&self) -> &Control {
        &self.control
    }

    pub(super) const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Runs complete actions until the time is over: one caller on a thread of
    /// its own, as a script does it, more of them as tasks.
    pub(super) fn run(&self, callers: usize, seconds: f64) -> Result<Ran, CliError> {
        let numbers = Numbers(Arc::new(AtomicU64::new(u64::from(std::process::id()) << 32)));
        let alone = blocking::Control::of(self.control.clone())?;
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(seconds);
        let mut latencies_us = match callers {
            1 => script(&alone, &numbers, end)?,
            _ => self.tasks(callers, &numbers, end)?,
        };
        let elapsed = start.elapsed();
        latencies_us.sort_unstable();
        Ok(Ran { elapsed, latencies_us })
    }

    fn tasks(&self, callers: usize, numbers: &Numbers, end: Instant) -> Result<Vec<u64>, CliError> {
        let tasks: Vec<_> = (0..callers)
            .map(|_| self.runtime.spawn(task(self.control.clone(), numbers.clone(), end)))
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            let ran = self.runtime.block_on(task);
            let ran = ran.map_err(|_| CliError::new("bench_caller", "a caller panicked", 2))?;
            latencies.extend(ran?);
        }
        Ok(latencies)
    }
}

/// What makes each action another one.
#[derive(Clone)]
struct Numbers(Arc<AtomicU64>);

impl Numbers {
    fn arguments(&self) -> Object {
        arguments(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// About 300 bytes.
pub(super) fn arguments(number: u64) -> Object {
    let mut arguments = Object::new();
    arguments.insert("payment_id", format!("txn_{number}"));
    arguments.insert("amount", Value::Integer(2_000));
    arguments.insert("note", "x".repeat(NOTE));
    arguments
}

fn script(control: &blocking::Control, numbers: &Numbers, end: Instant) -> Result<Vec<u64>, onceseal::Error> {
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        let call = control.action(ACTION).args(numbers.arguments()).by(Principal::agent("bench"));
        call.execute(|_| Ok::<_, Failure>(true))?;
        latencies.push(micros(start));
    }
    Ok(latencies)
}

async fn task(control: Control, numbers: Numbers, end: Instant) -> Result<Vec<u64>, onceseal::Error> {
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let start = Instant::now();
        let call = control.action(ACTION).args(numbers.arguments()).by(Principal::agent("bench"));
        call.execute(|_| async { Ok::<_, Failure>(true) }).await?;
        latencies.push(micros(start));
    }
    Ok(latencies)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// An empty file that only we can read.
pub(super) fn make_private_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}
