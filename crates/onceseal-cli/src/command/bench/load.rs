//! Callers that act as fast as they are answered.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use onceseal::blocking;
use onceseal::config::{Config, Settings, StoreAddress};
use onceseal::core::json::{Object, Value};
use onceseal::store::place::Surroundings;
use onceseal::{Control, Failure, Opening, Principal};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::error::{CliError, UNUSABLE};

/// About 300 bytes of arguments with this text beside the others.
const NOTE: usize = 230;

pub(super) const ACTION: &str = "stripe.refund";

/// What may be said to those who hold a key and let it go.
const ANSWERS: [&str; 3] = ["not_executed", "in_progress", "duplicate"];

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

/// Who acts on the store at once, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    pub(super) callers: usize,
    pub(super) others: Others,
    pub(super) seconds: f64,
}

/// Who acts beside the callers: tasks that each hold a key and let it go.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Others {
    /// Beside the callers so many more that hold one and the same key and let it go, again and again
    #[arg(long, value_name = "N", conflicts_with_all = ["beside", "operations"])]
    hot: Option<usize>,
    /// Beside the callers so many more that do so with a key each, to compare with
    #[arg(long, value_name = "N", conflicts_with = "operations")]
    beside: Option<usize>,
}

impl Others {
    pub(super) fn are_none(&self) -> bool {
        self.hot == Some(0) || self.beside == Some(0)
    }

    /// The key of each.
    fn keys(&self) -> Vec<String> {
        let own = |at| format!("beside_{}_{at}", std::process::id());
        let hot = std::iter::repeat_n("hot".to_owned(), self.hot.unwrap_or_default());
        hot.chain((0..self.beside.unwrap_or_default()).map(own)).collect()
    }
}

impl Crowd {
    /// What asks a process of the measurement for this.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--callers".to_owned(), self.callers.to_string()];
        arguments.extend(["--seconds".to_owned(), self.seconds.to_string()]);
        for (option, others) in [("--hot", self.others.hot), ("--beside", self.others.beside)] {
            arguments.extend(others.into_iter().flat_map(|others| [option.to_owned(), others.to_string()]));
        }
        arguments
    }
}

/// An open store with a policy.
pub(super) struct Load {
    control: Control,
    runtime: Runtime,
}

/// What a load came to.
pub(super) struct Ran {
    pub(super) elapsed: Duration,
    /// Of each complete action, ascending; at least one.
    pub(super) latencies_us: Vec<u64>,
    /// What the others were answered.
    others: u64,
}

impl Ran {
    pub(super) fn actions_per_s(&self) -> f64 {
        self.latencies_us.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn others_per_s(&self) -> f64 {
        self.others as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let at = (self.latencies_us.len() * percent / 100).min(self.latencies_us.len() - 1);
        self.latencies_us[at] as f64
    }
}

impl Load {
    /// Opens the store in this directory or on the server, making it if it is missing.
    pub(super) fn open(place: &Path, server: Option<&str>) -> Result<Load, CliError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CliError::new("runtime_failed", error.kind().to_string(), UNUSABLE))?;
        let settings = Settings { mark: Some(place.with_extension("marks")), ..Settings::default() };
        let mut opening = Opening::new(settings)?;
        // Never the store that this program otherwise acts on.
        opening.settings.store = server.map(StoreAddress::parse).transpose()?;
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
    /// its own, as a script does it, more of them as tasks, as are the others.
    pub(super) fn run(&self, crowd: &Crowd) -> Result<Ran, CliError> {
        let numbers = Numbers(Arc::new(AtomicU64::new(u64::from(std::process::id()) << 32)));
        let alone = blocking::Control::of(self.control.clone())?;
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(crowd.seconds);
        let keys = crowd.others.keys().into_iter();
        let others = keys.map(|key| self.runtime.spawn(holding(self.control.clone(), key, end))).collect();
        let mut latencies_us = match crowd.callers {
            1 => script(&alone, &numbers, end)?,
            callers => {
                let tasks = (0..callers).map(|_| task(self.control.clone(), numbers.clone(), end));
                self.ended(tasks.map(|task| self.runtime.spawn(task)).collect())?.concat()
            }
        };
        let elapsed = start.elapsed();
        let others = self.ended(others)?.into_iter().sum();
        if latencies_us.is_empty() {
            return Err(CliError::usage("no action ended in so short a time; give more --seconds"));
        }
        latencies_us.sort_unstable();
        Ok(Ran { elapsed, latencies_us, others })
    }

    /// What the tasks came to.
    fn ended<T>(&self, tasks: Vec<JoinHandle<Result<T, onceseal::Error>>>) -> Result<Vec<T>, CliError> {
        let ended = tasks.into_iter().map(|task| {
            let ran = self.runtime.block_on(task);
            Ok(ran.map_err(|_| CliError::new("bench_caller", "a caller panicked", UNUSABLE))??)
        });
        ended.collect()
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
pub(super) fn arguments(payment: impl Display) -> Object {
    let mut arguments = Object::new();
    arguments.insert("payment_id", format!("txn_{payment}"));
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

/// Holds a key and lets it go, again and again. That somebody else holds it is an
/// answer too.
async fn holding(control: Control, key: String, end: Instant) -> Result<u64, onceseal::Error> {
    let mut answers = 0;
    while Instant::now() < end {
        let call = control.action(ACTION).args(arguments(&key)).by(Principal::agent("bench"));
        let held = call.execute(|_| async { Err::<bool, _>(Failure::not_executed("let go")) }).await;
        match held {
            Err(error) if !ANSWERS.contains(&error.code()) => return Err(error),
            _ => answers += 1,
        }
    }
    Ok(answers)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// An empty file that only we can read.
pub(super) fn make_private_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}
