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
        self.batches(sequence, &sequence.batches, change, false)
            .map_err(|(_, differs)| format!("seed {seed}: {}", self.cut(sequence, change).unwrap_or(differs)))
    }

    /// Whether anything differs.
    pub(crate) fn differs(&self, sequence: &Sequence, change: Change) -> bool {
        self.batches(sequence, &sequence.batches, change, false).is_err()
    }

    /// The shortest beginning that is not alike, if it is so again.
    fn cut(&self, sequence: &Sequence, change: Change) -> Option<String> {
        let (last, _) = self.batches(sequence, &sequence.batches, change, true).err()?;
        let mut batches = sequence.batches[..=last].to_vec();
        let whole = std::mem::take(&mut batches[last].commands);
        let differs = (1..=whole.len()).find_map(|n| {
            batches[last].commands = whole[..n].to_vec();
            Some(self.batches(sequence, &batches, change, false).err()?.1)
        })?;
        let before: usize = batches[..last].iter().map(|batch| batch.commands.len()).sum();
        let Batch { now, reopen, commands } = &batches[last];
        let commands: Vec<String> = commands.iter().map(|said| format!("  {:?}", said.command)).collect();
        let opened = if *reopen { ", opened anew" } else { "" };
        let commands = commands.join("\n");
        Some(format!(
            "after {before} commands, at {now}{opened}, by these in one batch:\n{commands}\n{differs}"
        ))
    }

    /// Plays batches, and compares what is kept: at the end, or `closely`, after each.
    /// What differs, and after which batch it was found.
    fn batches(
        &self,
        sequence: &Sequence,
        batches: &[Batch],
        change: Change,
        closely: bool,
    ) -> Result<Answers, (usize, String)> {
        let name = format!("s{}", self.names.fetch_add(1, Ordering::Relaxed));
        let directory: &Path = self.directory.path();
        let mut stores = Stores::new(directory, &self.url, &name, &sequence.create, change);
        let mut answers = Answers::default();
        for (at, batch) in batches.iter().enumerate() {
            answers.batches += 1;
            answers.openings += usize::from(batch.reopen);
            stores.set_clock(batch.now);
            if batch.reopen {
                stores.reopen();
            }
            for answer in stores.run(&batch.commands).map_err(|differs| (at, differs))? {
                match answer {
                    Ok(Reply::Refused(_)) => answers.refused += 1,
                    Ok(_) => answers.granted += 1,
                    Err(_) => answers.failed += 1,
                }
            }
            if closely || at + 1 == batches.len() {
                stores.compare().map_err(|differs| (at, differs))?;
            }
        }
        Ok(answers)
    }
}
