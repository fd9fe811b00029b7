//! Locks as the numbers by which PostgreSQL knows them.

use onceseal_core::hash::Hash;
use onceseal_core::lock::{Hold, Lock, Locks};

/// Who shares a number waits without need, and nothing else happens.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    schema: String,
    tenant_id: [u8; 16],
}

impl Numbers {
    pub(super) fn new(schema: &str, tenant_id: [u8; 16]) -> Numbers {
        Numbers { schema: schema.to_owned(), tenant_id }
    }

    /// The number of a lock.
    pub(super) fn of(&self, lock: &Lock) -> i64 {
        match lock {
            Lock::Stream(stream) => self.number(b"stream", &[&[stream.kind.number()], &stream.name]),
            Lock::Keys(index, bytes) => self.number(b"keys", &[&[index.number()], bytes]),
            Lock::Own => self.number(b"own", &[]),
        }
    }

    /// The number of the lock of whoever appends to the log.
    pub(super) fn sequencer(&self) -> i64 {
        self.number(b"sequencer", &[])
    }

    fn number(&self, what: &[u8], rest: &[&[u8]]) -> i64 {
        let mut parts: Vec<&[u8]> = vec![self.schema.as_bytes(), &[0], &self.tenant_id, what, &[0]];
        parts.extend(rest);
        first_eight(Hash::of("onceseal.lock.v1\n", &parts))
    }

    /// The numbers of these, ascending, each once: everybody takes them in this
    /// order, so nobody waits for one who waits for him.
    pub(super) fn sorted(&self, locks: &Locks) -> Vec<(i64, Hold)> {
        let mut numbers: Vec<(i64, Hold)> = locks.iter().map(|(lock, hold)| (self.of(lock), hold)).collect();
        numbers.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        numbers.dedup_by_key(|(number, _)| *number);
        numbers
    }
}

/// The lock that every transaction shares and a migration has alone.
pub(super) fn of_schema(schema: &str) -> i64 {
    first_eight(Hash::of("onceseal.lock.v1\n", &[schema.as_bytes(), &[0], b"schema"]))
}

fn first_eight(hash: Hash) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = hash.0;
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use onceseal_core::journal::Index;
    use onceseal_core::stream::{StreamId, StreamKind};

    use super::*;

    #[test]
    fn numbers_part_what_is_not_the_same() {
        let stream = |n| Lock::Stream(StreamId { kind: StreamKind::Effect, name: [n; 16] });
        let mut locks = Locks::default();
        for lock in [stream(1), stream(2), Lock::Keys(Index::Ask, vec![1; 16]), Lock::Own] {
            locks.add(lock, Hold::Shared);
        }
        let (one, other) = (Numbers::new("a", [1; 16]), Numbers::new("a", [2; 16]));
        let mut all: Vec<i64> = [&one, &other, &Numbers::new("b", [1; 16])]
            .iter()
            .flat_map(|numbers| numbers.sorted(&locks))
            .map(|(number, _)| number)
            .collect();
        all.extend([one.sequencer(), other.sequencer(), of_schema("a"), of_schema("b")]);
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(all.len(), 16);
    }

    #[test]
    fn they_are_taken_in_one_order_by_everybody() {
        let stream = |n| Lock::Stream(StreamId { kind: StreamKind::Effect, name: [n; 16] });
        let mut locks = Locks::default();
        (0..100).for_each(|n| locks.add(stream(n), Hold::Exclusive));
        let sorted = Numbers::new("a", [1; 16]).sorted(&locks);
        assert!(sorted.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
