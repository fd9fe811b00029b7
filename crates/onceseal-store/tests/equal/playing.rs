//! A sequence on all stores, and the shortest beginning of it that is not alike.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use onceseal_core::reply::Reply;
use onceseal_servers::{Database, server};
use onceseal_store::PostgresUrl;

use crate::batches::{Batch, Sequence};
use crate::stores::{Change, Stores};

/// Where the stores are.
pub(crate) struct Ground {
    directory: tempfile::TempDir,
    url: PostgresUrl,
    _database: Database,
    names: AtomicU64,
}

/// How it went.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) batches: usize,
    pub(crate) openings: usize,
    pub(crate) granted: usize,
    pub(crate) refused: usize,
    pub(crate) failed: usize,
}

impl Answers {
    pub(crate) fn add(&mut self, more: &Answers) {
        self.batches += more.batches;
        self.openings += more.openings;
        self.granted += more.granted;
        self.refused += more.refused;
        self.failed += more.failed;
    }
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let database = server().new_database();
        let url = database.url().parse().expect("an address");
        let directory = tempfile::tempdir().expect("a directory");
        Ground { directory, url, _database: database, names: AtomicU64::new(0) }
    }

    /// Plays a seed's sequence. What differs, if anything, and after which commands.
    pub(crate) fn play(&self, seed: u64, sequence: &Sequence, change: Change) -> Result<Answers, String> {
        self.batches(sequence, &sequence.batches, change)
            .map_err(|differs| format!("seed {seed}: {}", self.cut(sequence, change).unwrap_or(differs)))
    }

    /// Whether anything differs.
    pub(crate) fn differs(&self, sequence: &Sequence, change: Change) -> bool {
        self.batches(sequence, &sequence.batches, change).is_err()
    }

    /// The shortest beginning that is not alike, if it is so again: what is not alike
    /// once is not alike ever after.
    fn cut(&self, sequence: &Sequence, change: Change) -> Option<String> {
        let (last, _) = shortest(sequence.batches.len(), |n| {
            self.batches(sequence, &sequence.batches[..n], change).err()
        })?;
        let mut batches = sequence.batches[..last].to_vec();
        let before: usize = batches[..last - 1].iter().map(|batch| batch.commands.len()).sum();
        let whole = std::mem::take(&mut batches[last - 1].commands);
        let (_, differs) = shortest(whole.len(), |n| {
            batches[last - 1].commands = whole[..n].to_vec();
            let differs = self.batches(sequence, &batches, change).err()?;
            Some(told(before, &batches[last - 1], &differs))
        })?;
        Some(differs)
    }

    /// Plays batches, and compares what is kept then. What differs.
    fn batches(&self, sequence: &Sequence, batches: &[Batch], change: Change) -> Result<Answers, String> {
        let name = format!("s{}", self.names.fetch_add(1, Ordering::Relaxed));
        let directory: &Path = self.directory.path();
        let mut stores = Stores::new(directory, &self.url, &name, &sequence.create, change);
        let mut answers = Answers::default();
        for batch in batches {
            answers.batches += 1;
            answers.openings += usize::from(batch.reopen);
            stores.set_clock(batch.now);
            if batch.reopen {
                stores.reopen();
            }
            for answer in stores.run(&batch.commands)? {
                match answer {
                    Ok(Reply::Refused(_)) => answers.refused += 1,
                    Ok(_) => answers.granted += 1,
                    Err(_) => answers.failed += 1,
                }
            }
        }
        stores.compare()?;
        Ok(answers)
    }
}

/// The lowest number, of those up to this one, from which on something differs; most
/// often it is a low one.
fn shortest(most: usize, mut differs: impl FnMut(usize) -> Option<String>) -> Option<(usize, String)> {
    let (mut alike, mut step, mut found) = (0, 1, None);
    while found.is_none() && alike < most {
        let next = most.min(alike + step);
        match differs(next) {
            Some(what) => found = Some((next, what)),
            None => (alike, step) = (next, step * 2),
        }
    }
    let mut found = found?;
    while found.0 - alike > 1 {
        let middle = alike + (found.0 - alike) / 2;
        match differs(middle) {
            Some(what) => found = (middle, what),
            None => alike = middle,
        }
    }
    Some(found)
}

fn told(before: usize, Batch { now, reopen, commands }: &Batch, differs: &str) -> String {
    let commands: Vec<String> = commands.iter().map(|said| format!("  {:?}", said.command)).collect();
    let opened = if *reopen { ", opened anew" } else { "" };
    let commands = commands.join("\n");
    format!("after {before} commands, at {now}{opened}, by these in one batch:\n{commands}\n{differs}")
}
