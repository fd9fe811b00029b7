//! What came of a trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::Fault;
use super::fleet::Told;
use crate::history::{Answer, Moment};

/// The pace is taken over so many microseconds.
const WINDOW: Moment = 500_000;

/// When a fault came, and when everybody could be served again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strike {
    pub(super) from: Moment,
    pub(super) to: Moment,
}

/// What came of a trial.
#[derive(Debug)]
pub struct Report {
    /// What befell the store.
    pub fault: Fault,
    /// What repeats the choices of the clients.
    pub seed: u64,
    /// Operations that were answered.
    pub operations: usize,
    /// Operations of which nobody knows whether they happened.
    pub unknown: usize,
    /// Effects that they were asked of.
    pub effects: usize,
    /// Attempts that were given.
    pub attempts: usize,
    /// How often the fault came.
    pub strikes: usize,
    /// Answers per second where nothing failed, as the median.
    pub pace: u64,
    /// After each fault, how long until every process was answered again, if it was.
    pub answered_after: Vec<Option<Duration>>,
    /// After each fault, how long until answers came at half the pace; `None` if they
    /// did not, before the next.
    pub paced_after: Vec<Option<Duration>>,
    /// Attempts that were given after the last fault.
    pub given_after: usize,
    /// Processes that noticed that the store lacks what they were told.
    pub noticed: usize,
    /// What was promised and not kept, each in a sentence.
    pub broken: Vec<String>,
}

impl Report {
    pub(super) fn new(
        fault: Fault,
        seed: u64,
        told: &[Told],
        strikes: &[Strike],
        broken: Vec<String>,
    ) -> Report {
        let mut processes: BTreeMap<usize, Vec<Moment>> = BTreeMap::new();
        for Told { process, operation, .. } in told {
            processes.entry(*process).or_default().extend(operation.answered);
        }
        processes.values_mut().for_each(|answers| answers.sort_unstable());
        let mut all: Vec<Moment> = processes.values().flatten().copied().collect();
        all.sort_unstable();
        let pace = pace(&all, strikes);
        let first_after = |answers: &Vec<Moment>, moment| {
            answers.get(answers.partition_point(|at| *at <= moment)).map(|at| at - moment)
        };
        let after = |strike: &Strike| {
            let firsts: Option<Vec<Moment>> =
                processes.values().map(|answers| first_after(answers, strike.to)).collect();
            firsts?.into_iter().max().map(duration)
        };
        let ends = strikes.iter().skip(1).map(|strike| strike.from).chain(all.last().copied());
        let paced = strikes.iter().zip(ends).map(|(strike, end)| {
            let half = (pace * WINDOW as u64 / 2_000_000) as usize;
            let start = (strike.to..end).step_by(50_000).find(|start| count(&all, *start) >= half)?;
            Some(duration(start + WINDOW - strike.to))
        });
        let given_since = |moment| {
            let given = |told: &&Told| matches!(told.operation.answer, Answer::Given { .. });
            told.iter().filter(given).filter(|told| told.operation.answered > Some(moment)).count()
        };
        Report {
            fault,
            seed,
            operations: all.len(),
            unknown: told.len() - all.len(),
            effects: told.iter().map(|told| &told.effect).collect::<BTreeSet<_>>().len(),
            attempts: given_since(Moment::MIN),
            strikes: strikes.len(),
            pace,
            answered_after: strikes.iter().map(after).collect(),
            paced_after: paced.collect(),
            given_after: strikes.last().map_or(0, |strike| given_since(strike.to)),
            noticed: 0,
            broken,
        }
    }
}

fn duration(microseconds: Moment) -> Duration {
    Duration::from_micros(microseconds.unsigned_abs())
}

/// How many were answered in the window from there.
fn count(answers: &[Moment], from: Moment) -> usize {
    let before = |moment| answers.partition_point(|at| *at < moment);
    before(from + WINDOW) - before(from)
}

/// The median of whole windows that no fault touches.
fn pace(answers: &[Moment], strikes: &[Strike]) -> u64 {
    let (Some(first), Some(last)) = (answers.first(), answers.last()) else { return 0 };
    // What a fault leaves behind is no pace either.
    let quiet = |from: &Moment| {
        strikes.iter().all(|strike| from + WINDOW < strike.from || *from > strike.to + 4 * WINDOW)
    };
    let starts = (*first..last - WINDOW).step_by(WINDOW as usize).filter(quiet);
    let mut counts: Vec<usize> = starts.map(|from| count(answers, from)).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).map_or(0, |median| *median as u64 * 1_000_000 / WINDOW as u64)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |found: &[Option<Duration>]| {
            let word =
                |d: &Option<Duration>| d.map_or("never".to_owned(), |d| format!("{:.1}", d.as_secs_f64()));
            found.iter().map(word).collect::<Vec<_>>().join(" ")
        };
        let Report { fault, seed, operations, unknown, effects, attempts, strikes, pace, .. } = self;
        write!(
            f,
            "{fault}, seed {seed}: {operations} operations answered and {unknown} not, {attempts} attempts at \
             {effects} effects, {strikes} faults; {pace} answers/s; all answered again after {} s, at half \
             the pace after {} s; {} promises broken",
            seconds(&self.answered_after),
            seconds(&self.paced_after),
            self.broken.len()
        )?;
        self.broken.iter().try_for_each(|broken| write!(f, "\n  {broken}"))
    }
}
