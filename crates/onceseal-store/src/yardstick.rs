//! The yardstick of benchmarks: a program that writes the final rows of a
//! store to another file in the same batches, with the same settings, and does
//! nothing else. It decides nothing, reads nothing and updates nothing, so its
//! pace is what SQLite gives for these rows on this disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use onceseal_core::stream::Tenant;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::error::StoreError;
use crate::parts::new_tenant;
use crate::sqlite::Connector;

/// How a replay went.
#[derive(Debug, Clone, Copy)]
pub struct Replay {
    /// Transactions committed.
    pub batches: u64,
    /// The time they took.
    pub elapsed: Duration,
}

/// One row: into which table, and its values.
type Insert = (usize, Vec<Value>);

const TABLES: [(&str, usize); 4] = [("streams", 8), ("events", 14), ("payloads", 3), ("keys", 5)];

/// Writes the rows that `source` holds after log position `after` into
/// `target`, a new store file: a transaction for each batch of events that
/// were recorded at one time, at most `most` transactions.
///
/// # Errors
/// Either file cannot be used.
pub fn replay(source: &Path, target: &Path, after: u64, most: usize) -> Result<Replay, StoreError> {
    let batches = batches(source, after, most)?;
    let connector = Connector::new(target.to_owned(), None)?;
    connector.found(&new_tenant(Tenant::DEFAULT)?, None, 0)?;
    let connection = connector.raw_writer()?;
    let mut statements = Vec::new();
    for (table, columns) in TABLES {
        let marks = vec!["?"; columns].join(", ");
        statements.push(connection.prepare(&format!("INSERT OR REPLACE INTO {table} VALUES ({marks})"))?);
    }
    let (mut begin, mut commit) = (connection.prepare("BEGIN IMMEDIATE")?, connection.prepare("COMMIT")?);
    let start = Instant::now();
    for batch in &batches {
        begin.execute([])?;
        for (table, values) in batch {
            statements[*table].execute(params_from_iter(values))?;
        }
        commit.execute([])?;
    }
    Ok(Replay { batches: batches.len() as u64, elapsed: start.elapsed() })
}

/// The rows of each batch: a stream with its first event, its keys with its
/// last one.
fn batches(source: &Path, after: u64, most: usize) -> Result<Vec<Vec<Insert>>, StoreError> {
    let connection = Connector::new(source.to_owned(), None)?.raw_writer()?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let (mut of_position, mut first, mut last) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut batch, mut before) = (0, None);
    let mut events =
        connection.prepare("SELECT position, at, stream FROM events WHERE position > ?1 ORDER BY 1")?;
    let mut found = events.query([after])?;
    while let Some(row) = found.next()? {
        let (position, at, stream): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if before.is_some_and(|before| before != at) {
            batch += 1;
        }
        if batch == most {
            break;
        }
        before = Some(at);
        of_position.insert(position, batch);
        first.entry(stream).or_insert(batch);
        last.insert(stream, batch);
    }
    let mut batches = vec![Vec::new(); batch.min(most - 1) + 1];
    // Streams before the events that refer to them, each by the column that says when.
    for (table, column, when) in [(0, 0, &first), (1, 0, &of_position), (2, 0, &of_position), (3, 3, &last)] {
        let mut rows = connection.prepare(&format!("SELECT * FROM {}", TABLES[table].0))?;
        let mut found = rows.query([])?;
        while let Some(row) = found.next()? {
            if let Some(batch) = when.get(&row.get(column)?) {
                let values = (0..TABLES[table].1).map(|at| row.get(at)).collect::<Result<_, _>>()?;
                batches[*batch].push((table, values));
            }
        }
    }
    Ok(batches)
}
