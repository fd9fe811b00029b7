//! Whether a store is what its events say: the promises of one transaction
//! (P07), of rebuilding (P10) and of evidence (P12), checked from outside.

use std::collections::{BTreeMap, BTreeSet};

use onceseal_core::action::ActionState;
use onceseal_core::decide::evolve;
use onceseal_core::effect::EffectRow;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{
    Body, Event, Head, Index, Key, Row, Stored, chain_hash, open_text, seal_hash, sealed_text,
};
use onceseal_core::stream::{StreamId, Tenant};
use onceseal_store::read::{Page, Snapshot, StoredEvent, row_of};
use onceseal_store::{Store, StoreError};

/// What is wrong with a store, one sentence per fault; none if it is sound.
#[must_use]
pub fn faults(store: &Store) -> Vec<String> {
    let checked = store.read(|snapshot| {
        let mut check = Check { tenant: store.tenant(), snapshot, faults: snapshot.integrity()? };
        check.all()?;
        Ok(check.faults)
    });
    checked.unwrap_or_else(|error| vec![format!("cannot be read: {error}")])
}

struct Check<'a> {
    tenant: &'a Tenant,
    snapshot: &'a dyn Snapshot,
    faults: Vec<String>,
}

impl Check<'_> {
    fn all(&mut self) -> Result<(), StoreError> {
        let log = self.snapshot.log(0, usize::MAX)?;
        self.commands_are_whole(&log);
        let folded = self.fold(&log);
        let stored = self.rows_are(&folded)?;
        self.keys_are(&log, &stored)?;
        self.payloads_are_there(&log)?;
        self.actions_hold_what_is_held(&stored);
        Ok(())
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// The events of a command stand together, all of them.
    fn commands_are_whole(&mut self, log: &[StoredEvent]) {
        for (event, position) in log.iter().zip(1..) {
            if event.position != position {
                return self.fault(format!("position {position} of the log is missing"));
            }
        }
        let mut rest = log;
        while let Some(first) = rest.first() {
            let of = first.stamp.of as usize;
            let whole = rest.len() >= of
                && rest[..of].iter().zip(1..).all(|(event, part)| {
                    let (stamp, wanted) = (event.stamp, first.stamp);
                    (stamp.command, stamp.of, stamp.part) == (wanted.command, wanted.of, part)
                });
            if !whole {
                return self.fault(format!("the command at position {} is not whole", first.position));
            }
            rest = &rest[of..];
        }
    }

    /// Follows every chain, and folds every stream.
    fn fold(&mut self, log: &[StoredEvent]) -> BTreeMap<StreamId, Stored> {
        let mut folded: BTreeMap<StreamId, Stored> = BTreeMap::new();
        for stored in log {
            let stamp = &stored.stamp;
            let before = folded.remove(&stamp.stream);
            let (sequence, prior, row) = match before {
                Some(Stored { head, row }) => (head.sequence + 1, head.hash, Some(row)),
                None => (1, self.tenant.genesis(&stamp.stream), None),
            };
            if stamp.sequence != sequence {
                self.fault(format!("{}: event {} follows on {}", stamp.stream, stamp.sequence, sequence - 1));
            }
            let Some(event) = &stored.event else {
                self.fault(format!("position {}: does not decode", stored.position));
                continue;
            };
            if hash(stored, event, prior) != Some(stored.hash) {
                self.fault(format!("position {}: breaks the chain", stored.position));
            }
            match evolve(&stamp.stream, row, stamp.sequence, stamp.at, event) {
                Ok(row) => {
                    let head = Head { sequence: stamp.sequence, hash: stored.hash };
                    folded.insert(stamp.stream, Stored { head, row });
                }
                Err(corrupt) => self.fault(format!("position {}: {corrupt}", stored.position)),
            }
        }
        folded
    }

    /// The rows are the fold, but for leases that were moved.
    fn rows_are(
        &mut self,
        folded: &BTreeMap<StreamId, Stored>,
    ) -> Result<BTreeMap<StreamId, Stored>, StoreError> {
        let mut found = BTreeMap::new();
        for stream in self.snapshot.streams(None, usize::MAX)? {
            match row_of(self.snapshot.stream(&stream)?) {
                Some(stored) => drop(found.insert(stream, stored)),
                None => self.fault(format!("{stream}: its row does not decode")),
            }
        }
        for stream in folded.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            match (folded.get(stream), found.get(stream)) {
                (Some(folded), Some(found)) if with_lease_of(folded, found) == *found => {}
                _ => self.fault(format!("{stream}: its row is not what its events say")),
            }
        }
        Ok(found)
    }

    /// The keys are those of the rows and events: every receipt leads to its
    /// event, and nothing else is found.
    fn keys_are(
        &mut self,
        log: &[StoredEvent],
        stored: &BTreeMap<StreamId, Stored>,
    ) -> Result<(), StoreError> {
        let of_rows = stored.iter().flat_map(|(stream, stored)| {
            stored.row.keys().into_iter().map(|key| (key, *stream, 0)).collect::<Vec<_>>()
        });
        let of_events = log.iter().flat_map(|stored| {
            let keys = stored.event.as_ref().map(Event::keys).unwrap_or_default();
            keys.into_iter().map(|key| (key, stored.stamp.stream, stored.stamp.sequence)).collect::<Vec<_>>()
        });
        let mut wanted: BTreeMap<(Key, StreamId), u64> = BTreeMap::new();
        for (key, stream, sequence) in of_rows.chain(of_events) {
            wanted.insert((key, stream), sequence);
        }
        let mut found = BTreeMap::new();
        for index in Index::ALL {
            let to = vec![0xff; 64];
            let page =
                Page { index: *index, from: vec![], to, after: None, newest_first: false, limit: usize::MAX };
            for hit in self.snapshot.keys(&page)? {
                found.insert((Key { index: *index, bytes: hit.key }, hit.stream), hit.sequence);
            }
        }
        if wanted != found {
            let differ = wanted.keys().chain(found.keys()).find(|key| wanted.get(key) != found.get(key));
            self.fault(format!("an index is not what rows and events say: {differ:?}"));
        }
        Ok(())
    }

    /// Every text that an event names lies beside it.
    fn payloads_are_there(&mut self, log: &[StoredEvent]) -> Result<(), StoreError> {
        for stored in log {
            let Some(named) = stored.event.as_ref().and_then(named) else { continue };
            let payload = self.snapshot.payload(&stored.stamp.stream, stored.stamp.sequence)?;
            if payload.map(|payload| payload.hash()) != Some(named) {
                self.fault(format!("position {}: its text is missing or another", stored.position));
            }
        }
        Ok(())
    }

    /// An action runs exactly as long as it holds its effect.
    fn actions_hold_what_is_held(&mut self, stored: &BTreeMap<StreamId, Stored>) {
        let running = stored.iter().filter_map(|(stream, stored)| match &stored.row {
            Row::Action(row) if matches!(row.state, ActionState::Running { .. }) => {
                row.held.map(|(effect, fence)| (effect, fence, stream.name))
            }
            _ => None,
        });
        let held = stored.iter().filter_map(|(stream, stored)| match &stored.row {
            Row::Effect(row) if row.held() => Some((*stream, row.fence, row.holder.0)),
            _ => None,
        });
        if running.collect::<BTreeSet<_>>() != held.collect::<BTreeSet<_>>() {
            self.fault("running actions are not those that hold an effect".to_owned());
        }
    }
}

/// The event's hash, if its private part is what was sealed.
fn hash(stored: &StoredEvent, event: &Event, prior: Hash) -> Option<Hash> {
    let seal = match (sealed_text(event), stored.salt) {
        (Some(text), Some(salt)) => Some(seal_hash(&salt, &text)),
        (None, None) => None,
        _ => return None,
    };
    (seal == stored.seal).then(|| chain_hash(&open_text(&stored.stamp, event, prior, seal)))
}

/// The text that an event names.
fn named(event: &Event) -> Option<Hash> {
    match &event.body {
        Body::ActionStarted(_, sealed)
        | Body::ActionWaiting(_, sealed)
        | Body::ActionReady(_, sealed)
        | Body::ActionEnded(_, sealed) => sealed.proposal.as_ref().map(|proposal| proposal.arguments),
        Body::EffectSettled(_, sealed) | Body::EffectLate(_, sealed) => sealed.result,
        Body::EffectReconciled(_, sealed) | Body::EffectResolved(_, sealed) => sealed.result,
        Body::PolicyActivated(_, sealed) => sealed.text,
        Body::NoteAppended(_, sealed) => sealed.body,
        _ => None,
    }
}

/// A folded row with the lease that a renewal, which has no event, gave its
/// newest attempt.
fn with_lease_of(folded: &Stored, found: &Stored) -> Stored {
    let mut folded = folded.clone();
    if let (Row::Effect(row), Row::Effect(EffectRow { lease_until: Some(until), .. })) =
        (&mut folded.row, &found.row)
        && row.lease_until.is_some_and(|first| *until > first)
    {
        row.renew(*until);
    }
    folded
}
