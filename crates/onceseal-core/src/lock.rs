//! What a decision depends on and what it changes, as locks: for stores on
//! which several processes decide at once.
//!
//! Whoever decides holds what it has looked at until its changes are
//! recorded, so what it saw is so still. Ranges that are not locked are hints:
//! what is found there is judged again by its row.

use std::collections::BTreeMap;

use crate::command::{Command, Stamped};
use crate::journal::{Index, Key};
use crate::stream::{StreamId, StreamKind};
use crate::view::{Pinned, Range, Read};

/// Something that is locked as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// A stream.
    Stream(StreamId),
    /// The keys of an index that begin with these bytes.
    Keys(Index, Vec<u8>),
    /// The caller's own rows.
    Own,
}

/// How it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// With others who hold it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// Locks, each at its strongest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locks(BTreeMap<Lock, Hold>);

impl Index {
    /// By how many of its first bytes a key is locked; `None`: ranges of this
    /// index are hints.
    const fn locked_by(self) -> Option<usize> {
        match self {
            // Everything of a run, of a lookup, of an intent or of a refusal.
            Index::Delivery | Index::Task | Index::Queue | Index::FormerRun => Some(16),
            Index::Denial => Some(32),
            Index::Refusal => Some(33),
            Index::Ask
            | Index::Scope
            | Index::Status
            | Index::Remote
            | Index::Run
            | Index::Below
            | Index::Dependent
            | Index::Handoff => Some(usize::MAX),
            // Lists, and texts that are found by their hash and never change.
            Index::Receipt
            | Index::PolicyText
            | Index::ToolText
            | Index::DefinitionText
            | Index::State
            | Index::Name
            | Index::Due
            | Index::Outbox => None,
        }
    }

    fn lock(self, key: &[u8]) -> Option<Lock> {
        let bytes = self.locked_by()?.min(key.len());
        Some(Lock::Keys(self, key[..bytes].to_owned()))
    }
}

impl Locks {
    /// What a command holds that looks at these.
    ///
    /// Keys are held alone by whoever looks for them: whoever only adds one or
    /// takes one out shares them with others who do.
    pub fn looks_at<'a>(
        &mut self,
        pinned: &Pinned,
        command: &Command,
        reads: impl IntoIterator<Item = &'a Read>,
    ) {
        for read in reads {
            match read {
                Read::Stream(stream) => self.add(Lock::Stream(*stream), hold(pinned, command, stream)),
                Read::Range(range) => {
                    if let Some(lock) = of_range(range) {
                        self.add(lock, Hold::Exclusive);
                    }
                }
                Read::Policy(_) | Read::Tool(_) | Read::Definition(_) | Read::Payload(..) => {}
            }
        }
    }

    /// What a command holds that changes this stream, whose row loses and gets
    /// these keys.
    pub fn changes<'a>(&mut self, stream: StreamId, keys: impl IntoIterator<Item = &'a Key>) {
        self.add(Lock::Stream(stream), Hold::Exclusive);
        for key in keys {
            if let Some(lock) = key.index.lock(&key.bytes) {
                self.add(lock, Hold::Shared);
            }
        }
    }

    /// One more, held so at least.
    pub fn add(&mut self, lock: Lock, hold: Hold) {
        let held = self.0.entry(lock).or_insert(hold);
        *held = hold.max(*held);
    }

    /// One less: of what nobody else can know of yet.
    pub fn without(&mut self, stream: &StreamId) {
        self.0.remove(&Lock::Stream(*stream));
    }

    /// These and those.
    pub fn join(&mut self, others: &Locks) {
        others.iter().for_each(|(lock, hold)| self.add(lock.clone(), hold));
    }

    /// Those of these that are not among those held, or not so strongly.
    #[must_use]
    pub fn beyond(&self, held: &Locks) -> Locks {
        let is_missing = |(lock, hold): &(&Lock, Hold)| held.0.get(*lock).is_none_or(|held| held < hold);
        Locks(self.iter().filter(is_missing).map(|(lock, hold)| (lock.clone(), hold)).collect())
    }

    /// Whether one of these is among those.
    #[must_use]
    pub fn meet(&self, others: &Locks) -> bool {
        self.both(others).next().is_some()
    }

    /// Whether these and those cannot be held by two at once.
    #[must_use]
    pub fn conflict(&self, others: &Locks) -> bool {
        self.both(others).any(|holds| holds != (Hold::Shared, Hold::Shared))
    }

    fn both<'a>(&'a self, others: &'a Locks) -> impl Iterator<Item = (Hold, Hold)> + 'a {
        let (few, many) = if self.0.len() < others.0.len() { (self, others) } else { (others, self) };
        few.iter().filter_map(|(lock, hold)| Some((hold, *many.0.get(lock)?)))
    }

    /// Each with how it is held.
    pub fn iter(&self) -> impl Iterator<Item = (&Lock, Hold)> {
        self.0.iter().map(|(lock, hold)| (lock, *hold))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How a stream is held at first by a command that looks at it: alone where it
/// is what the command is about. Should it change one that it only shares, it
/// begins again and holds that alone.
fn hold(pinned: &Pinned, command: &Command, stream: &StreamId) -> Hold {
    let is_subject = match stream.kind {
        StreamKind::Policy => matches!(command, Command::Activate(_)),
        StreamKind::Tool => matches!(command, Command::Declare(_)),
        StreamKind::Definition => false,
        StreamKind::Route => {
            matches!(command, Command::TryRoute(_) | Command::ReportRoute(_) | Command::CloseRoute(_))
        }
        // What a resource is a part of may be held by nobody while others take
        // other parts of it.
        StreamKind::Lease => match command {
            Command::AcquireLease(acquire) => *stream == pinned.tenant.lease(&acquire.resource.to_string()),
            _ => true,
        },
        _ => true,
    };
    if is_subject { Hold::Exclusive } else { Hold::Shared }
}

/// The lock on all keys of a range, if they have one in common.
fn of_range(range: &Range) -> Option<Lock> {
    let lock = range.index.lock(&range.from)?;
    (range.index.lock(&range.to).as_ref() == Some(&lock)).then_some(lock)
}

/// The locks of a command's usual path, and of what it makes under names drawn
/// for it none, unless it has no other: by its locks a commit that was not answered
/// is waited for.
#[must_use]
pub fn locks(pinned: &Pinned, command: &Stamped, reads: &[Read]) -> Locks {
    let mut locks = Locks::default();
    locks.looks_at(pinned, &command.command, reads);
    for stream in crate::decide::fresh(command) {
        locks.without(&stream);
    }
    if let (true, Some(stream)) = (locks.is_empty(), crate::decide::fresh(command).next()) {
        locks.add(Lock::Stream(stream), Hold::Exclusive);
    }
    locks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Nonce;
    use crate::hash::BlindingKey;
    use crate::store::Note;
    use crate::stream::Tenant;
    use crate::time::Timestamp;

    const ONE: StreamId = StreamId { kind: StreamKind::Effect, name: [1; 16] };

    fn range(index: Index, from: &[u8], to: &[u8]) -> Range {
        Range { index, from: from.to_owned(), to: to.to_owned(), limit: 1 }
    }

    #[test]
    fn a_lock_is_kept_at_its_strongest() {
        let mut locks = Locks::default();
        locks.add(Lock::Stream(ONE), Hold::Exclusive);
        locks.add(Lock::Stream(ONE), Hold::Shared);
        assert_eq!(locks.iter().next(), Some((&Lock::Stream(ONE), Hold::Exclusive)));
        let mut shared = Locks::default();
        shared.add(Lock::Stream(ONE), Hold::Shared);
        assert!(shared.beyond(&locks).is_empty(), "who holds it alone need not share it");
        assert_eq!(locks.beyond(&shared), locks, "who shares it does not hold it alone");
        assert!(shared.meet(&locks) && shared.conflict(&locks));
        assert!(shared.meet(&shared) && !shared.conflict(&shared), "two may share");
        assert!(!shared.meet(&Locks::default()));
    }

    #[test]
    fn what_has_no_other_lock_holds_what_it_makes() {
        let tenant = Tenant { name: "default".to_owned(), id: [1; 16], key: BlindingKey([2; 32]) };
        let pinned = Pinned::new(tenant, None);
        let note = Note { body: "1".to_owned(), source: "a test".to_owned() };
        let command = Stamped { command: Command::Note(note), made_at: 0, nonce: Nonce([3; 16]) };
        let held = locks(&pinned, &command, &[]);
        let fresh = crate::decide::fresh(&command).next().map(Lock::Stream);
        assert_eq!(held.iter().next(), fresh.as_ref().map(|lock| (lock, Hold::Exclusive)));
        let reads = [Read::Stream(ONE)];
        assert_eq!(locks(&pinned, &command, &reads).len(), 1, "which it need not where it has one");
    }

    #[test]
    fn whoever_looks_for_a_key_and_whoever_adds_one_meet_in_one_lock() {
        let run = [7; 16];
        let looked = of_range(&range(Index::Queue, &run, &[&run[..], &[0xff; 13]].concat()));
        let key = Key::of(Index::Queue, &[&run, &[1], &[9; 12]]);
        assert!(looked.is_some());
        assert_eq!(looked, key.index.lock(&key.bytes));
        let mut writer = Locks::default();
        writer.changes(ONE, [&key]);
        let held = writer.iter().find(|(lock, _)| Some(*lock) == looked.as_ref());
        assert_eq!(
            held.map(|(_, hold)| hold),
            Some(Hold::Shared),
            "those who add one do not wait for another"
        );
    }

    #[test]
    fn what_is_only_a_hint_is_not_locked() {
        let due = Key::due(Timestamp::MIN);
        assert_eq!(of_range(&range(Index::Due, &due.bytes, &due.bytes)), None);
        let mut writer = Locks::default();
        writer.changes(ONE, [&due]);
        assert_eq!(writer.len(), 1, "the stream alone");
    }

    #[test]
    fn a_range_over_several_locks_has_none() {
        assert_eq!(of_range(&range(Index::Queue, &[1; 16], &[2; 16])), None);
    }
}
