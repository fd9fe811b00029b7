//! Workers that are killed at random, a remote that loses answers, and what the
//! remote's own ledger says about it afterwards.

mod checks;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use onceseal::Error;
use onceseal::core::action::Principal;
use onceseal::core::journal::Kind;
use onceseal::core::json::Value;
use onceseal::operations::{Declared, Dispatching, Operations};
use onceseal_example_refunds::Counts;

use self::trial::Trial;
use crate::chance::Chance;

/// How much is tried at once.
#[derive(Debug, Clone)]
pub struct Size {
    /// Worker processes.
    pub workers: usize,
    /// Wishes, half of them under each contract.
    pub operations: usize,
    /// What a worker carries out at once.
    pub at_once: usize,
    /// Up to so long the remote takes over a refund.
    pub takes: Duration,
    /// A worker is killed after a pause between these two.
    pub pause: (Duration, Duration),
    /// No more are killed than so many.
    pub kills: usize,
    /// Longer than it takes; only a trial that fails waits for it.
    pub patience: Duration,
    /// Whether the remote keeps its word about keys. A trial that notices nothing
    /// if it does not is worth nothing.
    pub keeps_keys: bool,
}

impl Size {
    /// The whole size: eight workers, one killed every second.
    #[must_use]
    pub fn full() -> Size {
        Size {
            workers: 8,
            operations: 2_000,
            at_once: 2,
            takes: Duration::from_millis(200),
            pause: (Duration::from_millis(500), Duration::from_millis(1_500)),
            kills: usize::MAX,
            patience: Duration::from_secs(1_800),
            keeps_keys: true,
        }
    }

    /// One of which many are run beside each other.
    #[must_use]
    pub fn small() -> Size {
        Size {
            workers: 2,
            operations: 12,
            at_once: 3,
            pause: (Duration::from_millis(100), Duration::from_millis(1_500)),
            // Each request of the last operation would be killed, and the pauses
            // between them double.
            kills: 6,
            patience: Duration::from_secs(240),
            ..Size::full()
        }
    }
}

/// What became of a trial.
#[derive(Debug)]
pub struct Report {
    /// What it repeats.
    pub seed: u64,
    /// Operations that were accepted.
    pub operations: usize,
    /// Workers killed.
    pub kills: usize,
    /// What reached the remote.
    pub counts: Counts,
    /// Events of the journal, by kind.
    pub events: BTreeMap<&'static str, u64>,
    /// Lines of the remote's ledger beyond the first of a wish.
    pub duplicates: usize,
    /// Wishes that are in no line of it.
    pub lost: usize,
    /// How long it took.
    pub took: Duration,
    /// Promises that were not kept, each in a sentence.
    pub broken: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = |kind: Kind| self.events.get(kind.as_str()).copied().unwrap_or_default();
        let Counts { refunds, questions, lost, late, .. } = self.counts;
        write!(
            f,
            "seed {}: {} operations, {} attempts, {} leases lapsed, {} reconciled, {} kills; the remote got \
             {refunds} requests and {questions} questions, lost {lost}, was late with {late}; {} duplicates, \
             {} lost, {} promises broken; {:.1} s",
            self.seed,
            self.operations,
            events(Kind::EffectAcquired),
            events(Kind::EffectLapsed),
            events(Kind::EffectReconciled),
            self.kills,
            self.duplicates,
            self.lost,
            self.broken.len(),
            self.took.as_secs_f64()
        )?;
        self.broken.iter().try_for_each(|broken| write!(f, "\n  {broken}"))
    }
}

/// Runs a trial to its end; the seed repeats what is asked for and what goes
/// wrong, as far as clocks and schedulers let it.
///
/// # Panics
/// If it cannot be set up.
#[must_use]
pub fn run(program: &Path, seed: u64, size: &Size) -> Report {
    let begun = Instant::now();
    let mut trial = Trial::new(program, seed, size);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let control = trial.control(&runtime);
    let tools: Vec<_> =
        trial.config().tools.iter().map(Declared::tool).collect::<Result<_, _>>().expect("tools");
    let operations = runtime.block_on(Operations::of(&control, tools)).expect("active");
    for _ in 0..size.workers {
        let worker = trial.hire();
        trial.workers.push(worker);
    }
    let dispatched = runtime.spawn(dispatch(operations.clone(), seed, size.operations));
    trial.torment(&control, || dispatched.is_finished());
    trial.dismiss();
    trial
        .broken
        .extend(runtime.block_on(dispatched).expect("no panic").err().map(|e| format!("dispatch: {e}")));
    let paid = trial.service.paid();
    let (duplicates, lost) = trial.compare(&paid);
    runtime.block_on(trial.look(&operations, &paid));
    let log = control.log(0, usize::MAX).expect("readable");
    let mut events = BTreeMap::new();
    for event in log.into_iter().filter_map(|stored| stored.event) {
        *events.entry(event.body.kind().as_str()).or_default() += 1;
    }
    drop(operations);
    control.close();
    trial.audit();
    Report {
        seed,
        operations: size.operations,
        kills: trial.kills,
        counts: trial.service.counts(),
        events,
        duplicates,
        lost,
        took: begun.elapsed(),
        broken: std::mem::take(&mut trial.broken),
    }
}

/// The `n`-th wish.
fn wish(operations: &Operations, n: usize) -> Dispatching {
    let tool = if n.is_multiple_of(2) { "refund.asked" } else { "refund.repeated" };
    let amount = Value::Integer(1 + i64::try_from(n % 500).unwrap_or(0));
    let dispatch = operations.dispatch(tool).arg("payment", payment(n)).arg("amount", amount);
    dispatch.by(Principal::agent("bot")).key(format!("key-{n}"))
}

fn payment(n: usize) -> String {
    format!("p{n}")
}

/// Dispatches every wish, some of them twice.
async fn dispatch(operations: Operations, seed: u64, wishes: usize) -> Result<(), Error> {
    let mut chance = Chance::of(seed);
    for n in 0..wishes {
        wish(&operations, n).send().await?;
        if chance.below(5) == 0 {
            wish(&operations, n).send().await?;
        }
    }
    Ok(())
}
