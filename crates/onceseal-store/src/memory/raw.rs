//! All that a memory store keeps, for whoever checks it.

use std::ops::Bound;

use onceseal_core::journal::{Index, Key};
use onceseal_core::stream::StreamId;

use super::{Kept, Picture};
use crate::error::StoreError;
use crate::raw::{Entry, Logged, Raw, RawEvent, RawKey, Whole, Wholes};

impl Raw for Picture {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        Ok(None)
    }

    fn ordinals(&self, after: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok((1..=signed(self.0.made.len())).filter(|ordinal| *ordinal > after).take(limit).collect())
    }

    fn wholes(&self, from: i64, to: i64, after: i64, limit: usize) -> Result<Wholes, StoreError> {
        let kept = &self.0;
        let mut page = Wholes::default();
        let mut left = limit;
        for ordinal in from.max(1)..=to.min(signed(kept.made.len())) {
            let Some(stream) = kept.named(ordinal) else { continue };
            let after = if ordinal == from { after } else { i64::MIN };
            let mut events = kept.raw_events(&stream, after, left.saturating_add(1));
            page.more = events.len() > left;
            events.truncate(left);
            left -= events.len();
            page.streams.push(Whole { ordinal, stream: Ok(stream), row: kept.stream(&stream), events });
            if page.more {
                break;
            }
        }
        Ok(page)
    }

    fn entries(&self, after: i64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let kept = &self.0;
        let skip = usize::try_from(after).unwrap_or_default();
        let entry = |(place, event): (usize, &crate::read::StoredEvent)| {
            let ordinal = kept.ordinals.get(&event.stamp.stream).copied().unwrap_or_default();
            let at = Logged::Own { ordinal: ordinal as i64, stamp: event.stamp, hash: event.hash };
            Entry { position: signed(place + 1), at }
        };
        Ok(kept.log.iter().enumerate().skip(skip).take(limit).map(entry).collect())
    }

    fn raw_keys(&self, after: Option<&RawKey>, limit: usize) -> Result<Vec<RawKey>, StoreError> {
        let kept = &self.0;
        let raw = |((key, ordinal), sequence): (&(Key, u64), &u64)| RawKey {
            index: key.index.number().into(),
            bytes: key.bytes.clone(),
            ordinal: *ordinal as i64,
            sequence: *sequence as i64,
        };
        let place = |key: &RawKey| {
            let index = Index::ALL.iter().copied().find(|index| i64::from(index.number()) == key.index)?;
            Some((Key { index, bytes: key.bytes.clone() }, key.ordinal.unsigned_abs()))
        };
        let from = after.and_then(place).map_or(Bound::Unbounded, Bound::Excluded);
        Ok(kept.keys.range((from, Bound::Unbounded)).take(limit).map(raw).collect())
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        let place = (key.clone(), ordinal.unsigned_abs());
        Ok(self.0.keys.get(&place).map(|sequence| *sequence as i64))
    }
}

impl Kept {
    fn named(&self, ordinal: i64) -> Option<StreamId> {
        self.made.get(usize::try_from(ordinal).ok()?.checked_sub(1)?).copied()
    }

    fn raw_events(&self, stream: &StreamId, after: i64, limit: usize) -> Vec<RawEvent> {
        let places = self.streams.get(stream).map(Vec::as_slice).unwrap_or_default();
        let skip = usize::try_from(after).unwrap_or_default();
        let raw = |place: &usize| {
            let event = self.log[*place].clone();
            let sequence = event.stamp.sequence;
            RawEvent {
                position: event.position as i64,
                sequence: sequence as i64,
                payload: Ok(self.payloads.get(&(*stream, sequence)).cloned()),
                event: Ok(event),
            }
        };
        places.iter().skip(skip).take(limit).map(raw).collect()
    }
}

fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
