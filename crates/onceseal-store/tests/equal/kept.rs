//! Everything that a store keeps, as whoever reads it finds it.

use onceseal_core::journal::{Index, Payload};
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use onceseal_store::read::{Counts, Hit, Page, Snapshot, StoredEvent};
use onceseal_store::{Store, StoreError};

/// Hits on one page.
const PAGE: usize = 40;

#[derive(Debug, PartialEq)]
pub(crate) struct Kept {
    counts: Counts,
    newest: u64,
    /// By position, each with its hash.
    log: Vec<StoredEvent>,
    texts: Vec<((StreamId, u64), Payload)>,
    rows: Vec<(StreamId, Loaded)>,
    /// Each stream's events, one after another.
    streams: Vec<StoredEvent>,
    /// Of each index, the oldest first and the newest first.
    hits: Vec<(Index, bool, Vec<Hit>)>,
}

impl Kept {
    /// Reads all of it. Texts are asked for beside the events that have one in the
    /// `other` store, or beside every one: their number tells whether there are more.
    pub(crate) fn read(store: &Store, other: Option<&Kept>) -> Result<Kept, StoreError> {
        store.read(|snapshot| {
            let log = snapshot.log(0, usize::MAX)?;
            let all = snapshot.streams(None, usize::MAX)?;
            let (mut rows, mut streams) = (Vec::new(), Vec::new());
            for stream in all {
                rows.push((stream, snapshot.stream(&stream)?));
                streams.extend(snapshot.events(&stream, 1, usize::MAX)?);
            }
            let beside: Vec<(StreamId, u64)> = match other {
                Some(other) => other.texts.iter().map(|(place, _)| *place).collect(),
                None => log.iter().map(|event| (event.stamp.stream, event.stamp.sequence)).collect(),
            };
            let mut texts = Vec::new();
            for (stream, sequence) in beside {
                texts.extend(snapshot.payload(&stream, sequence)?.map(|text| ((stream, sequence), text)));
            }
            let mut hits = Vec::new();
            for index in Index::ALL {
                for newest_first in [false, true] {
                    hits.push((*index, newest_first, paged(snapshot, *index, newest_first)?));
                }
            }
            let (counts, newest) = (snapshot.counts()?, snapshot.newest()?);
            Ok(Kept { counts, newest, log, texts, rows, streams, hits })
        })
    }

    /// What is not the same in both, if anything.
    pub(crate) fn differs(&self, other: &Kept) -> Option<String> {
        let Kept { counts, newest, log, texts, rows, streams, hits } = other;
        first("the log", &self.log, log)
            .or_else(|| first("rows", &self.rows, rows))
            .or_else(|| first("streams", &self.streams, streams))
            .or_else(|| first("texts", &self.texts, texts))
            .or_else(|| {
                let all = self.hits.iter().zip(hits);
                all.map(|(one, other)| first(&format!("{} {}", one.0, one.1), &one.2, &other.2))
                    .find_map(|it| it)
            })
            .or_else(|| first("counts", &[(self.counts, self.newest)], &[(*counts, *newest)]))
    }
}

fn paged(snapshot: &dyn Snapshot, index: Index, newest_first: bool) -> Result<Vec<Hit>, StoreError> {
    let mut page = Page { index, from: vec![], to: vec![0xff; 80], after: None, newest_first, limit: PAGE };
    let mut all = Vec::new();
    loop {
        let hits = snapshot.keys(&page)?;
        let is_last = hits.len() < PAGE;
        page.after = hits.last().map(|hit| (hit.key.clone(), hit.stream));
        all.extend(hits);
        if is_last {
            return Ok(all);
        }
    }
}

fn first<T: PartialEq + std::fmt::Debug>(what: &str, one: &[T], other: &[T]) -> Option<String> {
    let at = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at))?;
    Some(format!("{what}, {at}: {:?}, not {:?}", other.get(at), one.get(at)))
}
